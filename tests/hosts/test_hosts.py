#!/usr/bin/env python3
"""A job on several machines of which some fail, or do not reach others: the model is that of a quiet
run on one machine. A seed says what is trained, and what goes wrong and when; `--seeds 1-50` or
`--seeds 7` runs these."""

import concurrent.futures
import random
import subprocess
import sys
import time

from machines import Network, check_possible
from runs import METHODS, SLOW, Hosted
from schedules import SCHEDULES
import fencing  # noqa: F401  its schedules
from harness import main, tests

CHECKED = [2, 15, 21]  # by `make check`: short ones
AT_ONCE = 5  # they wait most of the time


def take_seeds():
    """Takes `--seeds FIRST-LAST` or `--seeds N` out of the arguments; None without."""
    if '--seeds' not in sys.argv:
        return None
    at = sys.argv.index('--seeds')
    first, _, last = sys.argv[at + 1].partition('-')
    del sys.argv[at:at + 2]
    return range(int(first), int(last or first) + 1)


def run_schedule(seed):
    rng = random.Random(seed)
    remote_storage = rng.random() < 0.3
    with Network(4, remote_storage, environment=SLOW) as network:
        run = Hosted(network, method=method_of(seed))
        start = time.monotonic()
        try:
            again_on = SCHEDULES[name_of_schedule(seed)](run, rng)
            result = run.conclude(again_on or [])
            took = time.monotonic() - start
            for machine in network.machines:
                machine.heal()
            run.check(result)
        except Exception as error:
            raise AssertionError(f'{error}\n{run.story()}') from error
        print(f'# {took:.1f} s, {len(run.starts)} starts, restarts {result["restarts"]}', flush=True)


def name_of_schedule(seed):
    return list(SCHEDULES)[seed % len(SCHEDULES)]


def method_of(seed):
    return list(METHODS)[seed % len(METHODS)]


def run_alone(seed):
    """In a process of its own, so that several run at once."""
    return subprocess.run([sys.executable, __file__, '--seeds', str(seed)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)


def add_test(seed, function):
    function.__name__ = f'seed {seed}: {method_of(seed)}, {name_of_schedule(seed)}'
    tests.append(function)


def add_one(seed):
    add_test(seed, lambda _: run_schedule(seed))


def add_awaited(seed, future):
    def result(_):
        check_possible()
        done = future.result()
        assert done.returncode == 0, done.stdout + done.stderr
        print('\n'.join(line for line in done.stdout.splitlines() if line.startswith('#')), flush=True)
    add_test(seed, result)


def run_all(seeds):
    """All of several begin at once, as far as AT_ONCE lets them; each test awaits its own."""
    if len(seeds) == 1:
        add_one(seeds[0])
        return main()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(run_alone, seed) for seed in seeds]
        for seed, future in zip(seeds, futures):
            add_awaited(seed, future)
        status = main()
    failed = sum(future.result().returncode != 0 for future in futures)
    print(f'# {len(seeds) - failed} passed, {failed} failed')
    return status


if __name__ == '__main__':
    sys.exit(run_all(take_seeds() or CHECKED))
