#!/usr/bin/env python3
"""One of four replicas is ten times as slow: the time per evaluation, compared with an ideal division
of the work. Measured as the program is, and with an equal part for each replica and no copies.

Replicas sleep before each chunk (DML_SHUFFLE, DML_PAUSE_US), the slow one ten times as long. So their
speeds do not depend on the number of processors. Prints the ratios.
"""

import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'fault'))

from faults import conclude, make_job, run_of, workers_at  # noqa: E402
from harness import REPLICA  # noqa: E402

REPLICAS, SLOWDOWN = 4, 10


def evaluation_seconds(run):
    """Without the first two: nothing is known of the replicas yet."""
    with run.database() as database:
        rows = database.execute('SELECT seconds FROM evaluations ORDER BY evaluation').fetchall()
    return statistics.median(seconds for seconds, in rows[2:])


def measure(job, name, sockets, pauses_us, *arguments):
    """Seconds an evaluation, and the result."""
    environments = [{'DML_SHUFFLE': '1', 'DML_PAUSE_US': str(us)} for us in pauses_us]
    with workers_at(sockets, REPLICA, environments), run_of(job, name, *arguments) as run:
        run.start()
        result = conclude(run, 0)
        return evaluation_seconds(run), result


def main():
    pause_us = int(os.environ.get('PAUSE_US') or 30000)
    equal, one_slow = [pause_us] * REPLICAS, [pause_us] * (REPLICAS - 1) + [pause_us * SLOWDOWN]
    with tempfile.TemporaryDirectory() as folder:
        sockets = [pathlib.Path(folder) / f'replica{i}' for i in range(REPLICAS)]
        job = make_job(pathlib.Path(folder), rows=60000, max_steps=6, replicas=REPLICAS, shards=1,
                       replica_addresses=[f'unix:{path}' for path in sockets])
        even, expected = measure(job, 'even', sockets, equal)
        chunks = expected['values'] * 8 // (16 << 10)
        equal_parts = ('--set', f'portion_chunks={-(-chunks // REPLICAS)}',
                       '--set', 'backup_copies=false')
        slow, with_slow = measure(job, 'slow', sockets, one_slow)
        plain, with_plain = measure(job, 'plain', sockets, one_slow, *equal_parts)
        assert with_plain['backup_copies'] == 0
        for result in with_slow, with_plain:
            assert result['model_sha256'] == expected['model_sha256']
        ideal = even * REPLICAS / (REPLICAS - 1 + 1 / SLOWDOWN)
        print(f'four equal replicas: {even:.3f} s an evaluation')
        print(f'one slowed tenfold, ideally: {ideal:.3f} s')
        print(f'as it is, portions that adapt and backup copies: {slow:.3f} s, '
              f'{slow / ideal:.3f} of the ideal, {with_slow["backup_copies"]} copies')
        print(f'an equal part for each and no copies: {plain:.3f} s, '
              f'{plain / ideal:.3f} of the ideal')


if __name__ == '__main__':
    main()
