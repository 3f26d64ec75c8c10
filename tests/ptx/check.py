#!/usr/bin/env python3
"""Kernels as nvcc compiled them, without a GPU: make check-ptx.

Runs the unit tests that take a device on an interpreter of PTX (tests/ptx/ptx.h). Needs a build with
CUDA, and minutes."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ['DML_BUILD'])
sys.path.insert(0, str(pathlib.Path(os.environ['DML_SOURCE']) / 'tests'))
import source  # noqa: E402


def link(tests):
    """Links the tests once more, with the interpreter's CUDA runtime in place of NVIDIA's."""
    for test in tests:
        (BUILD / test).unlink(missing_ok=True)
    subprocess.run([os.environ.get('MAKE') or 'make', '--quiet', 'EXEEXT=.ptx',
                    'CUDA_LIBS=tests/ptx/libptx.a -lm -lpthread', *tests], cwd=BUILD, check=True)


def run(test):
    """Prints how a test ended, with what it said if it failed; answers whether it passed."""
    run = subprocess.run([BUILD / test], cwd=BUILD, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT,
                         env={**os.environ, 'DML_TEST_DEVICE': 'cuda', 'DML_PTX': str(BUILD)})
    said = [f'# {line}' for line in run.stdout.splitlines()[-60:]] if run.returncode else []
    print('\n'.join([f'{"not ok" if run.returncode else "ok"} - {test}', *said]), flush=True)
    return run.returncode == 0


def main():
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        sys.exit('check-ptx: this build is without CUDA: install nvcc and configure again')
    tests = [f'{test}.ptx' for test in ['tests/ptx/test_ptx', *source.tests_on_a_device()]]
    link(tests)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        passed = list(pool.map(run, tests))
    print(f'{passed.count(True)} passed, {passed.count(False)} failed')
    return int(not all(passed))


if __name__ == '__main__':
    sys.exit(main())
