#!/usr/bin/env python3
"""Writes the table of messages from wire/messages.def into doc/PROTOCOL.md and
man/dml-protocol.7, between their marks. `doc/messages.py --check` only tells which are out of date."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = 'begin of the messages table', 'end of the messages table'

MESSAGE = re.compile(r'MESSAGE\((\w+),\s*\w+,\s*(\d+),\s*(\w+),\s*([01]),\s*((?:"[^"]*"\s*)+),\s*'
                     r'((?:\w+\(\w+\)\s*)+)\)', re.DOTALL)
SECTION = re.compile(r'/\* ---- (.*?) ---- \*/')


def sections():
    """(title, [(name, number, ways, text, bulk, fields)]) in the order of the file."""
    text = (SOURCE / 'wire/messages.def').read_text()
    found, seen = [], 0
    for part in SECTION.split(text)[1:]:
        if seen % 2 == 0:
            found.append((part, []))
        else:
            for name, number, _, bulk, what, fields in MESSAGE.findall(part):
                what = ''.join(re.findall('"([^"]*)"', what))
                ways, says = re.split(r':\s*', what, maxsplit=1)
                kinds = re.findall(r'(\w+)\((\w+)\)', fields)
                found[-1][1].append((name, int(number), ways, says, bulk == '1', kinds))
        seen += 1
    listed = sum(len(messages) for _, messages in found)
    assert listed == len(re.findall(r'^MESSAGE\(', text, re.M)), 'a message was not understood'
    return found


def field_name(field):
    return field.rstrip('_')


def markdown():
    lines = ['| no. | message | from → to | what it says | fields |', '|---|---|---|---|---|']
    for _, messages in sections():
        for name, number, ways, says, bulk, kinds in messages:
            fields = ', '.join(f'{field_name(field)} {kind.lower()}' for kind, field in kinds)
            lines.append(f'| {number} | {name} | {ways} | {says} | {fields}'
                         f'{", then elements" if bulk else ""} |')
    return '\n'.join(lines) + '\n'


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
            fields = ' ,\n.Va '.join(field_name(field) for _, field in kinds)
            lines += [f'.It Sy {name} Pq {number}, {roff(ways)}', sentence(says), 'Fields:',
                      f'.Va {fields} ;' if bulk else f'.Va {fields} .']
            lines += ['elements follow.'] if bulk else []
        lines += ['.El']
    return '\n'.join(lines) + '\n'


PAGES = {'doc/PROTOCOL.md': (markdown, f'<!-- {BEGIN} -->\n', f'<!-- {END} -->\n'),
         'man/dml-protocol.7': (manual, f'.\\" {BEGIN}\n', f'.\\" {END}\n')}


def updated(page):
    """The page's text now, and as it should be."""
    table, begin, end = PAGES[page]
    text = (SOURCE / page).read_text()
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return text, before + begin + table() + end + after


def out_of_date():
    return [page for page in PAGES if len(set(updated(page))) > 1]


def main():
    if sys.argv[1:] == ['--check']:
        stale = out_of_date()
        for page in stale:
            print(f'{page}: its table of messages is not that of wire/messages.def: run '
                  'doc/messages.py')
        return bool(stale)
    for page in PAGES:
        (SOURCE / page).write_text(updated(page)[1])
    return 0


if __name__ == '__main__':
    sys.exit(main())
