#!/usr/bin/env python3
"""The pages of `make html`: all of them are there, and each of their references leads to one."""

import re
import shutil
import subprocess
import sys

from harness import SOURCE, Skip, main, test


@test
def each_reference_of_the_pages_leads_somewhere(folder):
    for program, package in ('mandoc', 'mandoc'), ('cmark-gfm', 'cmark-gfm'):
        if not shutil.which(program):
            raise Skip(f'{package} is not installed')
    made = subprocess.run([sys.executable, SOURCE / 'doc/pages.py', folder], capture_output=True, text=True)
    assert made.returncode == 0, made
    pages = {page.name: page.read_text() for page in folder.glob('*.html')}
    assert {f'{page.name}.html' for page in (SOURCE / 'man').glob('*.[1-8]')} <= set(pages), sorted(pages)
    names = {name: set(re.findall('id="([^"]+)"', page)) for name, page in pages.items()}
    for name, page in pages.items():
        for reference in re.findall('(?:href|src)="([^"]+)"', page):
            if re.match('[a-z]+:', reference):
                continue
            file, _, anchor = reference.partition('#')
            assert (folder / file).exists() and (not anchor or anchor in names[file]), f'{name}: {reference}'
    assert pages['index.html'].index('dml-intro(7)') < pages['index.html'].index('dml-cluster(7)')
    assert '"title": "Weights"' in (folder / 'search.js').read_text()


if __name__ == '__main__':
    sys.exit(main())
