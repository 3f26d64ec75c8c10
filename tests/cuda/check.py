#!/usr/bin/env python3
"""What can only be tried with a GPU: make check-cuda.

Runs on the GPU the unit tests that take a device, also under compute-sanitizer if it is installed,
and then training with the CPU, the GPU and both at once, which must give the same bits. Needs
nothing else. Without a GPU that this build can use it fails and says why.

If all has passed, it leaves a mark on the machine, without which `device = auto` is the CPU."""

import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ['DML_SOURCE'])
BUILD = pathlib.Path(os.environ['DML_BUILD'])
sys.path.insert(0, str(SOURCE / 'tests'))
import source  # noqa: E402

TOOLS = ('memcheck', 'racecheck', 'synccheck')
GRID = {'tests/integration/test_bits.py': {'DML_BITS': 'pairs'},
        'tests/integration/test_devices.py': {}}


def run(what, command, **environment):
    """Runs a test on the GPU, prints what it says if it fails, and answers whether it passed."""
    run = subprocess.run(command, cwd=BUILD, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT,
                         env={**os.environ, 'DML_TEST_DEVICE': 'cuda', **environment})
    print(f'{"not ok" if run.returncode else "ok"} - {what}', flush=True)
    if run.returncode:
        print('\n'.join('# ' + line for line in run.stdout.splitlines()[-60:]), flush=True)
    return run.returncode == 0


def on_the_device():
    for program, suite in source.suites_on_a_device():
        yield run(suite, [BUILD / program, suite])


def under_the_sanitizer():
    sanitizer = shutil.which('compute-sanitizer') or shutil.which(
        'compute-sanitizer', path=pathlib.Path(os.environ.get('NVCC') or '/').parent)
    if not sanitizer:
        print('ok - kernels under compute-sanitizer # SKIP it is not installed', flush=True)
        return
    for program, suite in source.suites_on_a_device():
        for tool in TOOLS:
            yield run(f'{suite} under {tool}', [sanitizer, '--tool', tool, '--target-processes', 'all',
                                                '--error-exitcode', '9', BUILD / program, suite])


def the_same_bits():
    for test, environment in GRID.items():
        if (SOURCE / test).exists():
            yield run(test, [sys.executable, SOURCE / test], **environment)


def leave_mark():
    """From now on `device = auto` takes GPUs of this name here."""
    mark = subprocess.run([BUILD / 'tests/cuda/device_list', '--mark'], capture_output=True, text=True)
    print(f'`device = auto` takes this GPU from now on: {mark.stdout.strip()}' if not mark.returncode
          else f'check-cuda: no mark could be left: {mark.stderr.strip()}')
    return mark.returncode


def main():
    if '#define HAVE_CUDA' not in (BUILD / 'config.h').read_text():
        sys.exit('check-cuda: this build is without CUDA: install nvcc and configure again')
    device = subprocess.run([BUILD / 'tests/cuda/device_list'], capture_output=True, text=True)
    print(device.stdout, end='', flush=True)
    if device.returncode:
        sys.exit(f'check-cuda: no GPU can be used: {device.stderr.strip()}')
    passed = [*on_the_device(), *under_the_sanitizer(), *the_same_bits()]
    print(f'{passed.count(True)} passed, {passed.count(False)} failed')
    return leave_mark() if all(passed) else 1


if __name__ == '__main__':
    sys.exit(main())
