#!/usr/bin/env python3
"""Checks that README.md and doc/ say of the tree what is so: files and targets that they name are
there, and a list of the files to change is complete for the example that it names."""

import re
import sys

import source

DOCUMENTS = ['README.md', *sorted(f'doc/{path.name}' for path in (source.ROOT / 'doc').glob('*.md')),
             'bench/NOTES.md', 'tests/fault/README.md', 'tests/hosts/README.md']

# What a list need not name: what tells of a change, and what was measured.
BESIDE = {'NEWS', 'bench/RESULTS.md', *DOCUMENTS}

# What configure makes, and names that stand for any.
NOT_IN_THE_TREE = {'config.h', 'FOLDER/local.mk', 'tests/unit/FOLDER.mk'}

# "To add one, as `name`, change exactly these files", and the numbered list behind it.
LIST = re.compile(r'To\s+add\s+(?:one|an?\s[\w\s]+?),\s+as\s+`(\w+)`,\s+change\s+exactly\s+these\s'
                  r'+files[^:]*:\n\n((?:(?:\d+\.| ) .*\n)+)')
FILE = re.compile(r'`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|def|py|md|mk|sh|cu|html|[1-8])|NEWS)`')
TARGET = re.compile(r'make ((?:check|bench)-[\w-]+|fuzz|screenshots)')


def text_of(name):
    return (source.ROOT / name).read_text()


def fragments():
    return ''.join(path.read_text() for path in source.fragments())


def known_files():
    """Paths below the root of everything that a document may name."""
    return {path.relative_to(source.ROOT).as_posix()
            for folder in (*source.FOLDERS, 'man', 'doc', 'examples', 'completion', 'quickstart')
            for path in (source.ROOT / folder).rglob('*') if path.is_file()} | {'NEWS', 'README.md'}


def absent_files(documents, known):
    """Names of sources that no file has. A name without a folder is that of a file anywhere, and
    one with it may begin in the folder that the text is about."""
    return [f'{document} names {name}' for document, text in documents
            for name in dict.fromkeys(FILE.findall(text)) if name not in NOT_IN_THE_TREE
            and not any(f'/{path}'.endswith(f'/{name}') for path in known)]


def absent_targets(documents):
    makefiles = fragments()
    return [f'{document} names make {target}' for document, text in documents
            for target in dict.fromkeys(TARGET.findall(text))
            if not re.search(rf'^{target}:', makefiles, re.M)]


def lists(documents):
    """(document, example, files) of each list of files to change."""
    return [(document, example, FILE.findall(items)) for document, text in documents
            for example, items in LIST.findall(text)]


def unlisted(example, listed, files):
    """Files that name the example and are not in its list. Tests count if the list has one."""
    word = re.compile(rf'(?<![a-z]){example}(?![a-z_])', re.I)
    with_tests = any(name.startswith('tests/') for name in listed)
    return [path for path, text in files
            if path not in listed and path not in BESIDE
            and (with_tests or not path.startswith('tests/')) and word.search(text)]


def incomplete_lists(documents, known):
    """And files in a list that are not there: those have their full paths."""
    files = [(path, text_of(path)) for path in sorted(known)
             if re.fullmatch(r'[\w./-]+\.(c|h|def|cu|py|md|mk|html|conf|[1-8])', path)]
    return [f'{document}, to add one as {example}: {name} is not there'
            for document, example, listed in lists(documents)
            for name in listed if name not in known] + \
        [f'{document}, to add one as {example}: {name} names it, but is not in the list'
         for document, example, listed in lists(documents)
         for name in unlisted(example, listed, files)]


def planted():
    """Every rule must notice a violation made for it."""
    text = ('To add one, as `made_up`, change exactly these files:\n\n'
            '1. `base/gone.c`: it, and\n   more; `make check-gone`.\n')
    document = [('a.md', text)]
    seen = {
        'a file that is not there': absent_files(document, {'base/here.c'}),
        'a target that is not there': absent_targets(document),
        'a file that a list names and is not there': incomplete_lists(document, set()),
        'a file that a list lacks': unlisted('made_up', ['a.c'], [('b.c', 'case MADE_UP:')]),
    }
    return [f'not noticed: {what}' for what, found in seen.items() if not found]


def main():
    documents, known = [(name, text_of(name)) for name in DOCUMENTS], known_files()
    return source.report([
        ('every rule notices a planted violation', planted()),
        ('files that documents name are there', absent_files(documents, known)),
        ('targets that documents name are there', absent_targets(documents)),
        ('lists of the files to change name what the example names',
         incomplete_lists(documents, known) if len(lists(documents)) > 1 else ['no list was found']),
    ])


if __name__ == '__main__':
    sys.exit(main())
