#!/usr/bin/env python3
"""Checks that whatever a target needs that is run by hand is built by ./check as well, so that it
goes on to compile and link."""

import re
import sys

import source

COMPILES = re.compile(r'(?:^\t@?|&& |[;|] *)(?:\$\(\w*(?:CC|CCLD|LINK|COMPILE)\)|gcc|clang|cc)\s', re.M)
# Of rules that compile by themselves: libraries of which `make check` needs all.
BUILT_FOR_TESTS = re.compile(r'tests/unit/library[\w-]*\.so$')


def makefile():
    """All fragments as one text, without the conditions."""
    text = '\n'.join(path.read_text() for path in source.fragments())
    text = re.sub(r'\\\n\s*', ' ', text)
    return re.sub(r'^(?:if|else|endif|include)\b.*\n', '', text, flags=re.M)


def variables(text):
    found = {}
    for name, value in re.findall(r'^(\w+) \+?= *(.*)', text, re.M):
        found[name] = f'{found.get(name, "")} {value}'
    return found


def expand(words, values):
    """The words with variables of the fragments put in; those that configure sets stand for
    nothing."""
    while (after := re.sub(r'\$\((\w+)\)', lambda ref: values.get(ref[1], ''), words)) != words:
        words = after
    return words.replace('$(EXEEXT)', '').split()


def rules(text):
    """(target, prerequisites, recipe) of each rule."""
    return re.findall(r'^([\w./$()-]+):(?!=) ?(.*)\n((?:\t.*\n)*)', text, re.M)


def built(values):
    """What `make all`, `make check` and `make by-hand` build."""
    lists = ('bin_PROGRAMS', 'check_PROGRAMS', 'check_DATA', 'noinst_PROGRAMS', 'noinst_LIBRARIES',
             'check_LIBRARIES', 'EXTRA_PROGRAMS', 'EXTRA_LIBRARIES')
    return {'all', 'all-am', *(name for names in lists for name in expand(values.get(names, ''), values))}


def not_built(text):
    """Targets that need what is built for them alone."""
    values = variables(text)
    by_hand = set(expand(' '.join(re.findall(r'^\.PHONY: (.*)', text, re.M)), values))
    ready = built(values) | by_hand
    return [f'make {target} builds {name}, which is not in EXTRA_PROGRAMS'
            for target, needs, _ in rules(text) if target in by_hand
            for name in expand(needs, values) if '=' not in needs and name not in ready]


def beside_all(text):
    """Targets that need more than `all`: that runs a make of its own, beside which this one would
    compile the same files."""
    return [f'{target} needs all, and more: write all-am' for target, needs, _ in rules(text)
            if 'all' in needs.split() and needs.split() != ['all']]


def compile_apart(text):
    """Rules of our own that compile: nothing lists what they make."""
    return [f'{target}: a rule of its own compiles it' for target, _, recipe in rules(text)
            if not target.startswith('.') and not BUILT_FOR_TESTS.match(target)
            and COMPILES.search(recipe)]


def not_in_check():
    text = (source.ROOT / 'check').read_text()
    stages = re.findall(r'^\s*build (\w+) by-hand ', text, re.M)
    return [f'the {name} build of ./check does not build by-hand' for name in ('gcc', 'clang')
            if name not in stages]


def absent_suites(check):
    """Suites that ./check asks the unit programs for, by names that none has: it would run without
    them."""
    named = re.search(r"suites='([^']*)'", check)[1].split()
    files = (source.ROOT / 'tests/unit').glob('test_*.c')
    known = {name for path in files for name in re.findall(r'^SUITE\((\w+)\)', path.read_text(), re.M)}
    return [f'./check names the suite {name}, which is not there' for name in named if name not in known]


def planted():
    """Every rule must notice a violation made for it."""
    target = 'EXTRA_PROGRAMS = b\nx: all a b\n\tb\n.PHONY: x\n'
    seen = {'a program that is built for one target': not_built(target),
            'a target that needs all and a program': beside_all(target),
            'a rule that compiles': compile_apart('a: a.c\n\t$(FUZZ_CC) a.c\n'),
            'a suite that is not there': absent_suites("suites='loop no_suite'")}
    return [f'not noticed: {what}' for what, found in seen.items() if not found]


def main():
    text = makefile()
    return source.report([
        ('every rule notices a planted violation', planted()),
        ('what targets need that are run by hand is in the lists of what is built', not_built(text)),
        ('nothing is built beside all', beside_all(text)),
        ('only rules of automake compile', compile_apart(text)),
        ('./check builds what targets need that are run by hand', not_in_check()),
        ('the suites that ./check names are there', absent_suites((source.ROOT / 'check').read_text())),
    ])


if __name__ == '__main__':
    sys.exit(main())
