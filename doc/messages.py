#!/usr/bin/env python3
"""Writes the table of messages from wire/messages.def and the list of kinds of evaluation from wire/kinds.def
into man/dml-protocol.7, between their marks. `doc/messages.py --check` only says whether the page is out of
date."""

import itertools
import pathlib
import re
import sys
import textwrap

SOURCE = pathlib.Path(__file__).resolve().parents[1]

MESSAGE = re.compile(r'MESSAGE\((\w+),\s*\w+,\s*(\d+),\s*(\w+),\s*([01]),\s*((?:"[^"]*"\s*)+),\s*'
                     r'((?:\w+\(\w+\)\s*)+)\)', re.DOTALL)
SECTION_ROW = re.compile(r'SECTION\((\w+),\s*((?:"[^"]*"\s*)+),\s*((?:\w+\(\w+\)\s*)+)\)', re.DOTALL)
KIND = re.compile(r'KIND\((\w+),\s*(\w+),\s*(\d+),\s*(TOTALS_\w+),\s*(SUMS_\w+),\s*(?:\w+,\s*){5}'
                  r'((?:"[^"]*"\s*)+)\)', re.DOTALL)
TOTALS = {'TOTALS_LOSS': 1, 'TOTALS_LOSS_AND_CORRECT': 2, 'TOTALS_ROWS': 1, 'TOTALS_HESSIAN': 4}
SUMS = {'SUMS_NONE': 'no sums', 'SUMS_PARAMETERS': 'sums by parameter', 'SUMS_ROWS': 'sums by row and output',
        'SUMS_TRIANGLE': 'sums by pair of parameters'}
SECTION = re.compile(r'/\* ---- (.*?) ---- \*/')


def sections():
    """(title, [(name, number, ways, text, bulk, fields)]) in the order of the file. A section has no number."""
    text = (SOURCE / 'wire/messages.def').read_text()
    found, seen = [], 0
    for part in SECTION.split(text)[1:]:
        if seen % 2 == 0:
            found.append((part, []))
        else:
            for name, what, fields in SECTION_ROW.findall(part):
                found[-1][1].append((name, None, '', ''.join(re.findall('"([^"]*)"', what)), False,
                                     re.findall(r'(\w+)\((\w+)\)', fields)))
            for name, number, _, bulk, what, fields in MESSAGE.findall(part):
                what = ''.join(re.findall('"([^"]*)"', what))
                ways, says = re.split(r':\s*', what, maxsplit=1)
                kinds = re.findall(r'(\w+)\((\w+)\)', fields)
                found[-1][1].append((name, int(number), ways, says, bulk == '1', kinds))
        seen += 1
    listed = sum(len(messages) for _, messages in found)
    assert listed == len(re.findall(r'^(?:MESSAGE|SECTION)\(', text, re.M)), 'a message was not understood'
    return found


def field_name(field):
    return field.rstrip('_')


def roff(text):
    text = text.replace('\\', '\\e').replace('→', '\\(->').replace('…', '...')
    return re.sub(r'([.?;]) (?=[A-Z])', '\\1\n', text).replace('`', "'")


def sentence(text):
    return roff(text[0].upper() + text[1:] + ('' if text[-1] in '.?' else '.'))


def manual():
    lines = []
    for title, messages in sections():
        lines += [f'.Ss {title[0].upper()}{title[1:]}', '.Bl -tag -width Ds']
        for name, number, ways, says, bulk, kinds in messages:
            fields = '; '.join(f'{", ".join(field_name(field) for _, field in group)} '
                               f'{"section" if kind == "IN" else kind.lower()}'
                               for kind, group in itertools.groupby(kinds, key=lambda field: field[0]))
            lines += [f'.It Sy {name} Pq {number}, {roff(ways)}' if number else f'.It Sy {name}', sentence(says),
                      *textwrap.wrap(f'Fields: {fields}{"; then elements" if bulk else ""}.', 100)]
        lines += ['.El']
    return '\n'.join(lines) + '\n'


def kinds():
    """The kinds of evaluation, for the manual page."""
    text = (SOURCE / 'wire/kinds.def').read_text()
    found = KIND.findall(text)
    assert len(found) == len(re.findall(r'^KIND\(', text, re.M)), 'a kind was not understood'
    lines = ['.Bl -tag -width transpose']
    for _, name, number, totals, sums, what in sorted(found, key=lambda kind: int(kind[2])):
        what = roff(''.join(re.findall('"([^"]*)"', what)))
        lines += [f'.It Cm {name} Pq {number}', f'{what[0].upper()}{what[1:]}.',
                  f'Totals: {TOTALS[totals]}; {SUMS[sums]}.']
    return '\n'.join(lines) + '\n.El\n'


PAGES = {'man/dml-protocol.7': [(kinds, 'kinds list', '.\\" {}\n'), (manual, 'messages table', '.\\" {}\n')]}


def updated(page):
    """The page's text now, and as it should be."""
    text = changed = (SOURCE / page).read_text()
    for table, name, mark in PAGES[page]:
        begin, end = mark.format(f'begin of the {name}'), mark.format(f'end of the {name}')
        before, rest = changed.split(begin)
        changed = before + begin + table() + end + rest.split(end)[1]
    return text, changed


def out_of_date():
    return [page for page in PAGES if len(set(updated(page))) > 1]


def main():
    if sys.argv[1:] == ['--check']:
        stale = out_of_date()
        for page in stale:
            print(f'{page}: it does not have what wire/messages.def and wire/kinds.def say: run '
                  'doc/messages.py')
        return bool(stale)
    for page in PAGES:
        (SOURCE / page).write_text(updated(page)[1])
    return 0


if __name__ == '__main__':
    sys.exit(main())
