"""Reads metrics in Prometheus' text format 0.0.4, and finds what breaks the format or its
conventions."""

import re

NAME = r'[a-zA-Z_][a-zA-Z0-9_]*'
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)')
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
ABBREVIATED = {'s', 'ms', 'us', 'ns', 'sec', 'secs', 'b', 'kb', 'mb', 'gb', 'milliseconds',
               'kilobytes', 'megabytes', 'minutes', 'hours', 'percent'}


def labels_of(text):
    """The labels of a sample as a tuple of pairs, or None where they are malformed."""
    labels = []
    while text:
        match = LABEL.match(text)
        if not match:
            return None
        labels.append((match[1], match[2]))
        text = text[match.end():]
    return tuple(labels)


def read(text):
    """{(name, labels): value} and what is wrong, as a list of texts."""
    samples, wrong, types, helped, ended = {}, [], {}, set(), set()
    current = None
    if not text.endswith('\n'):
        wrong.append('the last line has no end')
    for line in text.splitlines():
        if line.startswith('# '):
            kind, name, rest = line[2:].split(' ', 2)
            seen = helped if kind == 'HELP' else types
            if name in seen or name in ended:
                wrong.append(f'{kind} of {name} comes twice or late')
            if kind == 'HELP':
                helped.add(name)
            else:
                types[name] = rest
            if current not in (None, name):
                ended.add(current)
            current = name
            continue
        match = SAMPLE.fullmatch(line)
        labels = labels_of(match[2]) if match and match[2] else ()
        if not match or labels is None:
            wrong.append(f'malformed: {line}')
            continue
        if match[1] != current:
            wrong.append(f'{match[1]} stands outside its group')
        if (match[1], labels) in samples:
            wrong.append(f'{line}: twice')
        samples[match[1], labels] = float(match[3].replace('Inf', 'inf'))
    for name in {name for name, _ in samples}:
        wrong += against_conventions(name, types.get(name), name in helped)
    wrong += [f'{name} has no sample' for name in set(types) - {name for name, _ in samples}]
    return samples, wrong


def against_conventions(name, kind, helped):
    wrong = []
    if kind not in ('counter', 'gauge'):
        wrong.append(f'{name} has no type')
    if not helped:
        wrong.append(f'{name} has no help')
    if (kind == 'counter') != name.endswith('_total'):
        wrong.append(f'{name}: _total is for counters, and for all of them')
    if not name.startswith(('dml_', 'process_')):
        wrong.append(f'{name} has not the prefix')
    if name != name.lower() or set(name.split('_')) & ABBREVIATED:
        wrong.append(f'{name}: base units, written out, in lower case')
    if name.endswith(('_count', '_sum', '_bucket')):
        wrong.append(f'{name} ends like a part of a histogram')
    return wrong
