#!/usr/bin/env python3
"""One epoch of Downpour beside one pass of Vowpal Wabbit, both by their defaults: log loss and AUC
on rows that neither has seen.

    bench/one_pass.py [--orders N] [--set KEY=VALUE]... [--work FOLDER] [ROW...]

    ROW       farm_ads (every fifth row is held out), clicks (made: 30 columns of 10 to 50,000 codes,
              100,000 rows, of which 3 % are clicks), text (made: tf-idf in rows of unit length, 20,000
              rows), words (the same of 20 Newsgroups, every fifth row held out); all without any
    --orders  in how many orders of the rows; 3
    --set     a setting of the job
    --work    where the virtual environment of Vowpal Wabbit is made; bench/one_pass in the build
              folder

Run it in the build folder, like the tests.
"""

import argparse
import gzip
import itertools
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import BUILD, SHARED, heed_interrupts, train, write_job  # noqa: E402
from peers import environment  # noqa: E402
from wide_text import documents  # noqa: E402

# Reads LIBSVM, learns it in the order of a seed (0: as it is), and prints what it says of the test.
VOWPAL_WABBIT = '''
import math, random, sys, vowpalwabbit
train, test, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
vw = vowpalwabbit.Workspace('--loss_function logistic --link logistic -b 24 --quiet')
rows = [line.split(' ', 1) for line in open(train)]
if seed:
    random.Random(seed).shuffle(rows)
for label, features in rows:
    vw.learn(f'{label} | {features}')
for line in open(test):
    label, features = line.split(' ', 1)
    print(label, vw.predict('| ' + features))
'''


# ---- data: rows of LIBSVM, for training and for the test ----

def every_fifth(rows):
    return ([row for i, row in enumerate(rows) if i % 5 != 4], rows[4::5])


def farm_ads():
    with gzip.open(SHARED / 'farm_ads.libsvm.gz', 'rt') as file:
        return every_fifth(file.readlines())


def zipf(count, power):
    return list(itertools.accumulate(1 / (k + 1) ** power for k in range(count)))


def clicks():
    rng, rows = random.Random(1), 125_000
    sizes = [round(10 * 5000 ** (j / 29)) for j in range(30)]
    codes, margins, first = [[] for _ in range(rows)], [0.0] * rows, 1
    for size in sizes:
        effects = [rng.gauss(0, 0.35) for _ in range(size)]
        for i, code in enumerate(rng.choices(range(size), cum_weights=zipf(size, 1), k=rows)):
            codes[i].append(first + code)
            margins[i] += effects[code]
        first += size
    low, high = -20.0, 5.0
    while high - low > 1e-3:  # the intercept that makes 3 %
        middle = (low + high) / 2
        share = statistics.fmean(1 / (1 + math.exp(-m - middle)) for m in margins)
        low, high = (low, middle) if share > 0.03 else (middle, high)
    lines = [f'{1 if rng.random() < 1 / (1 + math.exp(-m - low)) else -1} '
             + ' '.join(f'{code}:1' for code in row) + '\n' for row, m in zip(codes, margins)]
    return lines[:100_000], lines[100_000:]


def tf_idf(rows):
    """Lines of (label, {column: count}), as rows of unit length."""
    found = {}
    for _, counts in rows:
        for column in counts:
            found[column] = found.get(column, 0) + 1
    lines = []
    for label, counts in rows:
        values = {j: c * math.log(len(rows) / found[j]) for j, c in sorted(counts.items())}
        length = math.hypot(*values.values()) or 1
        lines.append(f'{label} '
                     + ' '.join(f'{j}:{v / length:.6g}' for j, v in values.items() if v) + '\n')
    return lines


def text():
    """Two classes whose words differ a little in how frequent they are."""
    rng, words = random.Random(2), 30_000
    tilts = [rng.gauss(0, 0.11) for _ in range(words)]
    of_class = {sign: list(itertools.accumulate(math.exp(sign * tilt) / (k + 1) ** 1.05
                                                for k, tilt in enumerate(tilts)))
                for sign in (-1, 1)}
    rows = []
    for _ in range(25_000):
        label, counts = rng.choice((-1, 1)), {}
        length = 20 + int(rng.expovariate(1 / 80))
        for word in rng.choices(range(1, words + 1), cum_weights=of_class[label], k=length):
            counts[word] = counts.get(word, 0) + 1
        rows.append((label, counts))
    lines = tf_idf(rows)
    return lines[:20_000], lines[20_000:]


def words():
    rows = documents(SHARED / 'news20.libsvm.gz')
    return every_fifth(tf_idf([(1 if label <= 10 else -1, dict(terms)) for label, terms in rows]))


ROWS = {'farm_ads': farm_ads, 'clicks': clicks, 'text': text, 'words': words}


# ---- what they come to ----

def figures_of(pairs):
    """(log loss, AUC) of pairs of a label and a probability."""
    loss = statistics.fmean(-math.log(max(p if label > 0 else 1 - p, 1e-15)) for label, p in pairs)
    ranked, below, wins = sorted(pairs, key=lambda pair: pair[1]), 0, 0.0
    for _, group in itertools.groupby(ranked, key=lambda pair: pair[1]):
        labels = [label for label, _ in group]
        positive = sum(label > 0 for label in labels)
        negative = len(labels) - positive
        wins += positive * (below + negative / 2)
        below += negative
    return loss, wins / (below * (len(pairs) - below))


def downpour(folder, seed, settings):
    job = write_job(folder, data=['train'], test=['test'], optimizer='downpour',
                    downpour={'epochs': 1, 'seed': seed})
    test = train(job, '--fresh', *(word for s in settings for word in ('--set', s)))['test']
    return test['log_loss'], test['auc']


def vowpal_wabbit(folder, seed, python):
    said = subprocess.run([python, '-c', VOWPAL_WABBIT, folder / 'train', folder / 'test',
                           str(seed)], capture_output=True, text=True, check=True).stdout
    return figures_of([tuple(map(float, line.split())) for line in said.splitlines()])


def show(name, contender, figures):
    losses = ' '.join(f'{loss:.4f}' for loss, _ in figures)
    print(f'| {name} | {contender} | {statistics.fmean(loss for loss, _ in figures):.4f} | {losses} '
          f'| {statistics.fmean(auc for _, auc in figures):.4f} |', flush=True)


def run():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--orders', type=int, default=3)
    parser.add_argument('--set', action='append', default=[])
    parser.add_argument('--work', type=pathlib.Path, default=BUILD / 'bench/one_pass')
    parser.add_argument('rows', nargs='*', metavar='ROW')
    options = parser.parse_args()
    python = environment(options.work, ('vowpalwabbit',))
    print('| data | | mean log loss | by order | mean AUC |\n|---|---|---|---|---|')
    for name in options.rows or ROWS:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            for part, lines in zip(('train', 'test'), ROWS[name]()):
                (folder / part).write_text(''.join(lines))
            orders = range(options.orders)
            show(name, 'Downpour', [downpour(folder, 1 + seed, options.set) for seed in orders])
            show(name, 'Vowpal Wabbit', [vowpal_wabbit(folder, seed, python) for seed in orders])


if __name__ == '__main__':
    heed_interrupts()
    run()
