#!/usr/bin/env python3
"""Checks the sources against the written style, as far as a script can."""

import re
import shutil
import subprocess
import sys

import source
import survey

COLUMNS_MAX = 100
TARGETS = {'all', 'check', 'clean', 'dist', 'distcheck', 'install', 'installcheck', 'uninstall'}
WITHOUT_SUBJECT_MAX = 30  # comments of the product that take their subject from another place
CLANG_FORMAT = '14'  # others lay out the same settings differently


def per_line(files, what, bad):
    return [f'{path}:{number}: {what}' for path, text in files
            for number, line in enumerate(text.split('\n'), 1) if bad(line)]


def unguarded(files):
    """Headers whose guard is missing or not named after them."""
    found = []
    for path, text in files:
        name = re.sub(r'\W', '_', path.split('/')[-1]).upper()
        guard = rf'^#ifndef (DML_(?:\w+_)?{name})\n#define \1$'
        if path.endswith('.h') and not re.search(guard, text, re.M):
            found.append(f'{path} has no guard DML_…{name}')
    return found


def released_targets():
    """Files of a release that are named like a target of make: make would take the file for the
    target."""
    text = '\n'.join(path.read_text() for path in [source.ROOT / 'Makefile.am',
                                                   *source.ROOT.rglob('*/local.mk')])
    released = re.findall(r'^(?:EXTRA_DIST|dist_\w+) \+?= ((?:.*\\\n)*.*)', text, re.M)
    return [f'{name} is released, and a target of make' for names in released
            for name in names.split() if name in TARGETS]


def no_clang_format():
    """Why clang-format cannot be used, or None."""
    if not shutil.which('clang-format'):
        return 'clang-format is not installed'
    version = subprocess.run(['clang-format', '--version'], capture_output=True, text=True).stdout
    if f'version {CLANG_FORMAT}.' not in version:
        return f'clang-format is not of version {CLANG_FORMAT}'
    return None


def misformatted(files):
    """What clang-format would change."""
    paths = [path for path, _ in files if not path.endswith('.def')]
    run = subprocess.run(['clang-format', '--dry-run', '-Werror', *paths], cwd=source.ROOT,
                         capture_output=True, text=True)
    return [line for line in run.stderr.splitlines() if ': error:' in line]


def comments_without_subject(files):
    """Comments of the product that begin with "Of", "The same" or "Likewise", if there are too many."""
    found = [f'{path}:{line}: begins with "{opening}": name the subject' for path, text in files
             if path.split('/')[0] in survey.PRODUCT
             for line, opening in survey.comments_without_subject(text)]
    return found if len(found) > WITHOUT_SUBJECT_MAX else []


def planted():
    """The lint of comments must notice what is made for it, and spare the rest."""
    bad = ['/* Of a row. */', '/* The same for rows. */', 'int a; /* likewise */', '/*\n * Likewise. */',
           '// the same', '/* Of: */']
    good = ['/* Offsets of rows. */', 'int a; /* of a row */', '/* They are the same. */', '/* The samples. */']
    return [f'not noticed: {text}' for text in bad if not survey.comments_without_subject(text)] + \
        [f'refused: {text}' for text in good if survey.comments_without_subject(text)]


def web_files():
    """The parts of the status page, as (path relative to the root, text)."""
    return [(path.relative_to(source.ROOT).as_posix(), path.read_text()) for folder in source.FOLDERS
            for path in sorted((source.ROOT / folder).rglob('*')) if path.suffix in ('.html', '.css', '.js')]


def main():
    code = list(source.c_files())
    files = code + web_files()
    formatted, why_not = 'clang-format would change nothing', no_clang_format()
    return source.report([
        (f'{formatted} # SKIP {why_not}', []) if why_not else (formatted, misformatted(code)),
        (f'no line is longer than {COLUMNS_MAX} columns',
         per_line(files, 'too long', lambda line: len(line) > COLUMNS_MAX)),
        ('no tabs', per_line(files, 'has a tab', lambda line: '\t' in line)),
        ('no blanks at the end of a line', per_line(files, 'ends in blanks',
                                                    lambda line: line != line.rstrip())),
        ('nothing that is released is a target of make', released_targets()),
        (f'at most {WITHOUT_SUBJECT_MAX} comments take their subject from elsewhere',
         comments_without_subject(code) + planted()),
        ('headers have guards named after them', unguarded(code)),
    ])


if __name__ == '__main__':
    sys.exit(main())
