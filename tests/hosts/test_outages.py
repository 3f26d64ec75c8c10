#!/usr/bin/env python3
"""Outages of the coordinator's own network: no host answers for a while, and the run goes on."""

import contextlib
import sys
import time

from machines import Network
from runs import SLOW, Hosted
from harness import main, test


@contextlib.contextmanager
def coordinator_without_workers_beside_it():
    """A run of which some steps are done; the coordinator's machine has no worker."""
    with Network(3, environment=SLOW) as network:
        home, *others = network.machines
        run = Hosted(network, workers_on=others, replicas=2)
        run.start(home)
        run.until_step(2)
        try:
            yield run
        except Exception as error:
            raise AssertionError(f'{error}\n{run.story()}') from error


def cut_off(run, seconds, unplugged=False):
    """For so long, and until the run has noticed. Unplugged, the system says at once that there is no
    way; else nobody says anything."""
    if unplugged:
        run.home.on_net('ip', 'link', 'set', 'eth0', 'down')
    else:
        run.home.cut()
    time.sleep(seconds)
    run.until_said('no host answers')
    run.home.heal()


@test
def a_run_outlives_an_outage_of_the_network_of_its_coordinator(folder):
    with coordinator_without_workers_beside_it() as run:
        cut_off(run, 20)
        run.check(run.conclude())


@test
def a_run_outlives_a_cable_that_is_pulled_out_at_its_coordinator(folder):
    with coordinator_without_workers_beside_it() as run:
        cut_off(run, 8, unplugged=True)
        run.check(run.conclude())


@test
def a_cut_of_two_seconds_costs_no_worker(folder):
    """TCP sends again what was lost after 1.4 and 3 s. A busy machine may take too long to heal."""
    with coordinator_without_workers_beside_it() as run:
        start = time.monotonic()
        run.home.on_net('sh', '-c', 'iptables -A INPUT -i eth0 -j DROP; '
                        'iptables -A OUTPUT -o eth0 -j DROP; sleep 2.3; iptables -F')
        took = time.monotonic() - start
        result = run.conclude()
        assert took > 2.8 or not any(result['restarts'].values()), (took, result['restarts'])
        run.check(result)


if __name__ == '__main__':
    sys.exit(main())
