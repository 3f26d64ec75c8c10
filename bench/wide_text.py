#!/usr/bin/env python3
"""Makes a large set of wide text from 20 Newsgroups: each word crossed with those that stand after
it, as tf-idf in rows of unit length.

    bench/wide_text.py [--binary] [--source FILE] OUTPUT

15,935 rows, 1.6 million columns and 8.7 million values, 146 MB of LIBSVM text; a minute and
1 GB of memory. The same command gives the same bytes. Labels are the 20 classes; with --binary, 1
for the first ten and -1 for the others.
"""

import argparse
import collections
import gzip
import math
import os
import pathlib
import sys

SOURCE = pathlib.Path(os.environ.get('DML_SOURCE') or pathlib.Path(__file__).resolve().parents[1])
SHARED = pathlib.Path(os.environ.get('DML_SHARED') or SOURCE / '../shared').resolve() / 'data'

WORDS = 62_061
REACH = 9  # a word is crossed with so many words after it
ROWS_LEAST = 2  # a pair of fewer rows is left out


def documents(path):
    """Of each row the class and its words' counts, by rising number of the word."""
    with gzip.open(path, 'rt') as file:
        for line in file:
            label, *terms = line.split()
            yield int(label), [tuple(map(int, term.split(':'))) for term in terms]


def terms_of(words):
    """Counts of a row's words, and of its pairs; a pair's number lies beyond those of the words."""
    yield from words
    for i, (word, count) in enumerate(words):
        for other, times in words[i + 1:i + 1 + REACH]:
            yield (word + 1) * (WORDS + 1) + other, min(count, times)


def rows_of_terms(rows):
    found = collections.Counter()
    for _, words in rows:
        found.update(term for term, _ in terms_of(words))
    return found


def columns_of(found):
    """Words keep their numbers; pairs follow, by first appearance."""
    column, last = {}, WORDS
    for term, rows in found.items():
        if term <= WORDS:
            column[term] = term
        elif rows >= ROWS_LEAST:
            last += 1
            column[term] = last
    return column


def weights_of(words, column, rarity):
    """The row's columns and their tf-idf, sorted; its length is 1 unless it is empty."""
    weight = sorted((column[term], count * rarity[column[term]])
                    for term, count in terms_of(words) if term in column)
    length = math.sqrt(sum(value * value for _, value in weight))
    return [(j, value / length) for j, value in weight if value]


def write_wide_text(source, output, binary=False):
    rows = list(documents(source))
    found = rows_of_terms(rows)
    column = columns_of(found)
    rarity = {j: math.log(len(rows) / found[term]) for term, j in column.items()}
    del found
    values = 0
    with open(output, 'w') as file:
        for label, words in rows:
            weight = weights_of(words, column, rarity)
            values += len(weight)
            label = (1 if label <= 10 else -1) if binary else label
            file.write(f'{label} ' + ' '.join(f'{j}:{value:.6g}' for j, value in weight) + '\n')
    return len(rows), len(column), values


def main():
    parser = argparse.ArgumentParser(description='Makes a large set of wide text.')
    parser.add_argument('output', type=pathlib.Path)
    parser.add_argument('--binary', action='store_true', help='two classes instead of 20')
    parser.add_argument('--source', type=pathlib.Path, default=SHARED / 'news20.libsvm.gz')
    arguments = parser.parse_args()
    if not arguments.source.exists():
        sys.exit(f'{arguments.source} is not there: --source FILE names news20.libsvm.gz')
    made = write_wide_text(arguments.source, arguments.output, arguments.binary)
    print('{:,} rows, {:,} columns, {:,} values'.format(*made))


if __name__ == '__main__':
    main()
