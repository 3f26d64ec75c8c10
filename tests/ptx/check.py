#!/usr/bin/env python3
"""Kernels as nvcc compiled them, without a GPU: make check-ptx.

Runs the unit tests that take a device on an interpreter of PTX (tests/ptx/ptx.h), and then whole
runs of the programs: on the CPU and on the interpreted GPU they must end with the same model. Needs
a build with CUDA, and minutes."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ['DML_BUILD'])
PROGRAMS = ['dml-coordinator', 'dml-replica', 'dml-shard']
RUNS = [('wdbc',), ('network',), ('network', 'start=downpour')]  # of examples/, and what is set
sys.path.insert(0, str(pathlib.Path(os.environ['DML_SOURCE']) / 'tests'))
import source  # noqa: E402


def link(tests):
    """Links the tests once more, with the interpreter's CUDA runtime in place of NVIDIA's."""
    for test in tests:
        (BUILD / test).unlink(missing_ok=True)
    subprocess.run([os.environ.get('MAKE') or 'make', '--quiet', 'EXEEXT=.ptx',
                    'CUDA_LIBS=tests/ptx/libptx.a -lm -lpthread', *tests], cwd=BUILD, check=True)


def run(test):
    """Prints how a program, or one suite of it, ended, with what it said if it failed; answers whether
    it passed."""
    program, *suite = test
    run = subprocess.run([BUILD / program, *suite], cwd=BUILD, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT,
                         env={**os.environ, 'DML_TEST_DEVICE': 'cuda', 'DML_PTX': str(BUILD)})
    said = [f'# {line}' for line in run.stdout.splitlines()[-60:]] if run.returncode else []
    print('\n'.join([f'{"not ok" if run.returncode else "ok"} - {" ".join(test)}', *said]), flush=True)
    return run.returncode == 0


def model_of(folder, job, settings, device):
    """The hash of the model of an example, and what its workers computed on; else why there is none."""
    chosen = [part for setting in [*settings, f'device={device}'] for part in ('--set', setting)]
    example = pathlib.Path(os.environ['DML_SOURCE']) / 'examples' / f'{job}.conf'
    done = subprocess.run([folder / 'dml-coordinator', 'run', example, '--json', *chosen, '--state',
                           folder / f'{job}.{device}'], text=True, capture_output=True,
                          env={**os.environ, 'DML_PTX': str(BUILD)})
    if done.returncode:
        return done.stderr.strip().splitlines()[-1], []
    result = json.loads(done.stdout)
    return result['model_sha256'], result['devices']


def compare(job, *settings):
    """Prints whether a run on the interpreted GPU ends with the model of the CPU."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program in PROGRAMS:
            shutil.copy(BUILD / f'{program}.ptx', folder / program)
        here, _ = model_of(folder, job, settings, 'cpu')
        there, devices = model_of(folder, job, settings, 'cuda')
    same = here == there and devices != [] and all(used['device'].startswith('cuda:0') for used in devices)
    print(f'{"ok" if same else "not ok"} - a run of {" ".join([f"{job}.conf", *settings])}: {here}, '
          f'{there}, {devices}', flush=True)
    return same


def main():
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        sys.exit('check-ptx: this build is without CUDA: install nvcc and configure again')
    tests = [('tests/ptx/test_ptx.ptx',),
             *((f'{program}.ptx', suite) for program, suite in source.suites_on_a_device())]
    link([*sorted({program for program, *_ in tests}), *(f'{program}.ptx' for program in PROGRAMS)])
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        passed = [*pool.map(run, tests), *pool.map(lambda chosen: compare(*chosen), RUNS)]
    print(f'{passed.count(True)} passed, {passed.count(False)} failed')
    return int(not all(passed))


if __name__ == '__main__':
    sys.exit(main())
