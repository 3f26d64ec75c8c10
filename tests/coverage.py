#!/usr/bin/env python3
"""Prints which share of the lines of the product was executed, folder by folder, from what gcov knows of the
objects below the current folder: of a build with --coverage in which tests have run."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

import source

PRODUCT = [folder for folder in source.FOLDERS if folder not in ('tests', 'bench', 'examples')]
AT_ONCE = 50  # objects that one gcov reads


def lines_of(notes):
    """(source, line, executed) of all lines with code of these objects."""
    run = subprocess.run(['gcov', '--json-format', '--stdout', *map(str, notes)], capture_output=True, text=True, check=True)
    decoder, text = json.JSONDecoder(), run.stdout.lstrip()
    while text:
        report, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        for file in report['files']:
            path = pathlib.Path(report['current_working_directory'], file['file']).resolve()
            for line in file['lines']:
                yield path, line['line_number'], line['count'] > 0


def executed_lines():
    """Of each file of the product: its lines with code, and whether any object has executed them."""
    notes = sorted(pathlib.Path('.').rglob('*.gcno'))
    with concurrent.futures.ThreadPoolExecutor() as threads:
        parts = threads.map(lambda at: list(lines_of(notes[at:at + AT_ONCE])), range(0, len(notes), AT_ONCE))
    files = {}
    for path, number, executed in (line for part in parts for line in part):
        if path.is_relative_to(source.ROOT):
            name = path.relative_to(source.ROOT).as_posix()
            if name.split('/')[0] in PRODUCT:
                file = files.setdefault(name, {})
                file[number] = file.get(number, False) or executed
    return files


def row(name, lines):
    executed = sum(lines)
    return f'{name:24} {len(lines):7} {executed:9} {100 * executed / max(len(lines), 1):6.1f} %'


def main():
    """With --files, a line for each file, too."""
    files = executed_lines()
    print(f'{"":24} {"lines":>7} {"executed":>9}')
    for folder in PRODUCT:
        there = sorted(name for name in files if name.startswith(f'{folder}/'))
        if there:
            print(row(f'{folder}/', [line for name in there for line in files[name].values()]))
        if '--files' in sys.argv:
            print('\n'.join(f'  {row(name, list(files[name].values()))}' for name in there))
    print(row('all', [line for file in files.values() for line in file.values()]))


if __name__ == '__main__':
    main()
