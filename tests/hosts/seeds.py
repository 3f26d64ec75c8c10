"""One schedule for each seed: what a seed says, one run of it, and several at once."""

import concurrent.futures
import random
import subprocess
import sys
import time

from machines import check_possible
from runs import METHODS, Hosted
from harness import main, tests

AT_ONCE = 5  # they wait most of the time


def take_seeds():
    """Takes `--seeds FIRST-LAST` or `--seeds N` out of the arguments; None without."""
    if '--seeds' not in sys.argv:
        return None
    at = sys.argv.index('--seeds')
    first, _, last = sys.argv[at + 1].partition('-')
    del sys.argv[at:at + 2]
    return range(int(first), int(last or first) + 1)


def method_of(seed):
    return list(METHODS)[seed % len(METHODS)]


class Seeds:
    """Of a script: its schedules by name, and `network_of`, which makes the machines with a source of
    random numbers."""

    def __init__(self, script, schedules, network_of):
        self.script, self.schedules, self.network_of = script, schedules, network_of

    def schedule_of(self, seed):
        return list(self.schedules)[seed % len(self.schedules)]

    def run(self, seed):
        rng = random.Random(seed)
        with self.network_of(rng) as network:
            run = Hosted(network, method=method_of(seed))
            start = time.monotonic()
            try:
                again_on = self.schedules[self.schedule_of(seed)](run, rng)
                result = run.conclude(again_on or [])
                took = time.monotonic() - start
                for machine in network.machines:
                    machine.heal()
                run.check(result)
            except Exception as error:
                raise AssertionError(f'{error}\n{run.story()}') from error
            print(f'# {took:.1f} s, {len(run.starts)} starts, restarts {result["restarts"]}',
                  flush=True)

    def run_alone(self, seed):
        """In a process of its own, so that several run at once."""
        return subprocess.run([sys.executable, self.script, '--seeds', str(seed)],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def add(self, seed, function):
        function.__name__ = f'seed {seed}: {method_of(seed)}, {self.schedule_of(seed)}'
        tests.append(function)

    def add_awaited(self, seed, future):
        def result(_):
            check_possible()
            done = future.result()
            assert done.returncode == 0, done.stdout + done.stderr
            print('\n'.join(line for line in done.stdout.splitlines() if line.startswith('#')),
                  flush=True)
        self.add(seed, result)

    def main(self, checked):
        """Those of the arguments, or else what is checked always, beside the tests that the script
        has itself. Several begin at once, as far as AT_ONCE lets them; each test awaits its own."""
        given = take_seeds()
        seeds = given or checked
        if given:
            tests.clear()
        if len(seeds) == 1:
            self.add(seeds[0], lambda _: self.run(seeds[0]))
            return main()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(self.run_alone, seed) for seed in seeds]
            for seed, future in zip(seeds, futures):
                self.add_awaited(seed, future)
            status = main()
        failed = sum(future.result().returncode != 0 for future in futures)
        print(f'# {len(seeds) - failed} passed, {failed} failed')
        return status
