#!/usr/bin/env python3
"""Checks what nvcc made of the kernels (PTX, kept beside the objects): that every operation is
rounded as on the processor. ptxas is told not to contract either."""

import collections
import os
import pathlib
import re
import sys

import source

BUILD = pathlib.Path(os.environ.get('DML_BUILD') or '.')
APPROXIMATE = re.compile(r'\.(approx|ftz|full)\b|\b(ex2|lg2|sin|cos|tanh|rsqrt)\.')
UNROUNDED = re.compile(r'\b(add|sub|mul|mad|fma|div|rcp|sqrt)\.(f32|f64)\b')
FUSED = re.compile(r'\b(fma|mad)\.\w+\.(f32|f64)\b')
PLANTED = """
.visible .entry _Z12shift_kernel15shift_arguments(
	fma.rn.f64 	%fd4, %fd1, %fd2, %fd3;
	mul.f64 	%fd4, %fd1, %fd2;
	div.full.f32 	%f4, %f1, %f2;
	rcp.approx.ftz.f64 	%fd4, %fd1;
	add.rn.f64 	%fd4, %fd1, %fd2;
"""


def fusing():
    """The kernels whose lists say that their bodies use fma()."""
    texts = [path.read_text() for folder in source.FOLDERS
             for path in (source.ROOT / folder).rglob('*_kernels.def')]
    kernels = [entry for text in texts for entry in re.split(r'^KERNEL\(', text, flags=re.M)[1:]]
    return {entry.split(',')[0] for entry in kernels if '/* fma() */' in entry}


def function(line):
    """The name of the function that begins in this line of PTX, as in the source; or None."""
    found = re.search(r'\.(?:entry|func) .*?(\w+)\s*\(', line)
    mangled = found and re.match(r'_Z(\d+)(\w+)', found[1])
    return mangled[2][:int(mangled[1])].removesuffix('_kernel') if mangled else found and found[1]


def lines(texts):
    """(where, function, line) of every line of PTX."""
    for where, text in texts:
        name = None
        for line in text.splitlines():
            name = function(line) or name
            yield where, name, line


def found_in(texts, allowed):
    """(contracted, approximate): what should not be there."""
    contracted, approximate = collections.Counter(), collections.Counter()
    for where, name, line in lines(texts):
        operation = f'{where}: {name}: {line.split()[0] if line.strip() else ""}'
        if UNROUNDED.search(line) or FUSED.search(line) and name not in allowed:
            contracted[operation] += 1
        if APPROXIMATE.search(line):
            approximate[operation] += 1
    return [[f'{operation}, {count} times' for operation, count in found.items()]
            for found in (contracted, approximate)]


def main():
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        return source.report([('kernels round as the processor # SKIP this build is without CUDA', [])])
    texts = [(path.relative_to(BUILD).as_posix(), path.read_text())
             for folder in (*source.FOLDERS, 'tests/unit') if folder != 'bench'
             for path in sorted(BUILD.glob(f'{folder}/*.nvcc/*.ptx'))]
    contracted, approximate = found_in(texts, fusing())
    planted = found_in([('planted', PLANTED)], set())
    return source.report([
        ('the code of kernels is there', [] if texts else ['no *.nvcc/*.ptx']),
        ('a kernel fuses operations only if its list says /* fma() */', contracted),
        ('nothing is approximate or flushed to zero', approximate),
        ('what is planted is noticed', [] if [len(f) for f in planted] == [2, 2] else planted),
    ])


if __name__ == '__main__':
    sys.exit(main())
