#!/usr/bin/env python3
"""Machines that share no folder: only the coordinator's has anything of the job."""

import signal
import sys

from machines import Network
from runs import SLOW, Hosted
import faults
from harness import main, test

ELSEWHERE = 'h2', 'h3', 'h4'


@test
def workers_that_see_nothing_of_the_job_say_so(folder):
    with Network(apart=True, environment=SLOW) as network:
        run = Hosted(network)
        run.start(network.machines[0])
        for host in ELSEWHERE:
            run.until_said(f'host {host} does not see the state folder')
        for pid in run.coordinators():
            faults.kill(pid, signal.SIGINT)
        run.now.wait()
        run.check_nobody_left()
        assert 'host h1 does not see' not in run.log()


if __name__ == '__main__':
    sys.exit(main())
