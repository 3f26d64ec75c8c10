#!/usr/bin/env python3
"""One of four replicas slowed tenfold: time per evaluation against an ideal division of what speed
is left, and against portions of a fixed, large size.

Replicas sleep before each chunk (DML_SHUFFLE, DML_PAUSE_US), so that four of them have their full
speed on any machine; one is stopped for 90 ms of every 100. Prints the ratios.
"""

import os
import pathlib
import signal
import statistics
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'fault'))

from faults import conclude, kill, make_job, run_of, train  # noqa: E402

REPLICAS, SLOWDOWN = 4, 10
STOP_S, GO_S = 0.090, 0.010
LARGE_PORTIONS = 16  # portions of a fixed size: four a replica


def slow_down(pid, ended):
    """Stopped nine tenths of the time, until it is over."""
    while not ended.is_set():
        kill(pid, signal.SIGSTOP)
        ended.wait(STOP_S)
        kill(pid, signal.SIGCONT)
        ended.wait(GO_S)
    kill(pid, signal.SIGCONT)


def evaluation_seconds(run):
    """Without the first two: nothing is known of the replicas yet."""
    with run.database() as database:
        rows = database.execute('SELECT seconds FROM evaluations ORDER BY evaluation').fetchall()
    return statistics.median(seconds for seconds, in rows[2:])


def measure(job, name, slowed, *arguments, **environment):
    """Seconds an evaluation, and the result."""
    with run_of(job, name, *arguments, **environment) as run:
        run.start()
        run.now.until(lambda: len(run.of_role('replica')) == REPLICAS and
                      'info: step 0' in run.now.so_far(run.now.errors), 'step 0')
        ended = threading.Event()
        thread = threading.Thread(target=slow_down, args=(run.of_role('replica')[1], ended))
        if slowed:
            thread.start()
        try:
            result = conclude(run, 0)
        finally:
            ended.set()
        return evaluation_seconds(run), result


def main():
    pause_us = int(os.environ.get('PAUSE_US') or 30000)
    with tempfile.TemporaryDirectory() as folder:
        job = make_job(pathlib.Path(folder), rows=60000, max_steps=6, replicas=REPLICAS, shards=1)
        environment = {'DML_SHUFFLE': '1', 'DML_PAUSE_US': str(pause_us)}
        expected = train(job, '--fresh', '--set', 'max_steps=6')
        chunks = expected['values'] * 8 // (16 << 10)
        fixed = ('--set', f'portion_chunks={max(1, chunks // LARGE_PORTIONS)}')
        even, _ = measure(job, 'even', False, **environment)
        slow, with_slow = measure(job, 'slow', True, **environment)
        large, with_large = measure(job, 'large', True, *fixed, **environment)
        ideal = even * REPLICAS / (REPLICAS - 1 + 1 / SLOWDOWN)
        for result in with_slow, with_large:
            assert result['model_sha256'] == expected['model_sha256']
        print(f'an evaluation takes {even:.3f} s with four equal replicas')
        print(f'one slowed tenfold: {slow:.3f} s, {slow / ideal:.3f} of the ideal {ideal:.3f} s, '
              f'{with_slow["backup_copies"]} backup copies')
        print(f'with large portions: {large:.3f} s, {large / ideal:.3f} of the ideal')


if __name__ == '__main__':
    main()
