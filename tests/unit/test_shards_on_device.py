#!/usr/bin/env python3
"""The unit tests of shards that say nothing of devices, on the emulated device."""

import os
import subprocess

TESTS = ('interpreter', 'shard', 'slices', 'orthant_programs', 'shard_scaling', 'shard_bounds',
         'precondition', 'precondition_leading', 'checkpoint', 'checkpoint_damage',
         'checkpoint_factor', 'checkpoint_rows', 'saving', 'adagrad_programs', 'row_vectors')

print(f'1..{len(TESTS)}')
failed = 0
for number, name in enumerate(TESTS, 1):
    build = os.environ.get('DML_BUILD') or '.'
    run = subprocess.run([f'{build}/tests/unit/shard_tests', name], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True,
                         env={**os.environ, 'DML_TEST_DEVICE': 'emulated'})
    print(f'{"not ok" if run.returncode else "ok"} {number} - {name} on the emulated device')
    if run.returncode:
        print('\n'.join('# ' + line for line in run.stdout.splitlines()[-30:]))
        failed = 1
raise SystemExit(failed)
