#!/usr/bin/env python3
"""A run that lasts longer than ten minutes, whose processes die when all of them are old: whatever
has an age must have none that matters. Part of `make check-hosts`."""

import re
import signal
import sys
import time

from machines import Network, wait_for
from runs import Hosted
from harness import main, test

SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '9000000'}  # an evaluation takes half a minute
OLD_SECONDS = 315  # OpenSSL gives a session 304 s, unless it is told otherwise


class Aging:
    """A run, and how old it is."""

    def __init__(self, network):
        self.run = Hosted(network)
        self.begin = time.monotonic()

    def age(self):
        return time.monotonic() - self.begin

    def wait_until(self, seconds):
        while self.age() < seconds:
            assert self.run.now.popen.poll() is None, f'it ended after {self.age():.0f} s'
            time.sleep(1)

    def lose(self, machine, program, name):
        """Kills that worker, which is old; another one takes its place."""
        comes = rf'debug: {name} is running'
        before = len(re.findall(comes, self.run.log()))
        machine.kill(program)
        wait_for(lambda: len(re.findall(comes, self.run.log())) > before, f'{name} is back', 60)

    def lose_coordinator(self, machine):
        """The next one takes the workers that live."""
        self.run.home.kill('dml-coordinator')
        assert self.run.now.wait(60).status == -signal.SIGKILL
        self.run.start(machine)
        wait_for(lambda: len(set(re.findall(r'debug: (\w+ \d) is running', self.run.log()))) == 6,
                 'all workers are greeted', 60)
        said = self.run.log()
        assert 'did not come up' not in said and 'was lost' not in said, said


@test
def a_run_of_more_than_ten_minutes_outlives_kills_of_workers_and_coordinators(folder):
    with Network(4, environment=SLOW) as network:
        h1, h2, h3, h4 = network.machines
        long = Aging(network)
        try:
            long.run.start(h1)
            long.wait_until(OLD_SECONDS)
            long.lose(h3, 'dml-replica', 'replica 2')
            long.lose_coordinator(h1)
            long.lose(h2, 'dml-shard', 'shard 1')
            long.wait_until(2 * OLD_SECONDS)
            long.lose_coordinator(h4)
            long.lose(h2, 'dml-replica', 'replica 1')
            finished = long.run.now.wait(1200)
            assert finished.status == 0, f'ended: {finished}'
            assert long.age() > 600
            long.run.check(finished.json)
        except Exception as error:
            raise AssertionError(f'{error}\n{long.run.story()}') from error


if __name__ == '__main__':
    sys.exit(main())
