#!/usr/bin/env python3
"""A job on machines that share no folder: only the coordinator's has anything of the job, and a
machine that loses its power has lost its disk. The model is that of a quiet run on one machine.
Seeds are those of test_hosts.py, with other schedules."""

import sys

from machines import Network
from runs import SLOW, Hosted
from schedules import SCHEDULES, amid, for_a_while, others
from seeds import Seeds
from harness import test

CHECKED = [6]  # by `make check`
ELSEWHERE = 'h2', 'h3', 'h4'

# Of the schedules, those that leave the coordinator on its machine.
APART = {name: SCHEDULES[name] for name in (
    'a machine is not heard', 'a machine is cut off', 'a machine is unplugged', 'packets are lost',
    'a link is slow', 'two machines do not reach each other', 'a machine is gone for good',
    'a machine restarts', 'all but one are gone for good', 'a machine freezes',
    'one after the other fails')}


def schedule(function):
    APART[function.__name__.replace('_', ' ')] = function
    return function


@schedule
def workers_are_killed(run, rng):
    with amid(run, rng):
        pass
    for _ in range(rng.randint(1, 4)):
        rng.choice(run.network.machines).kill(rng.choice(['dml-shard', 'dml-replica', 'dml-']))


@schedule
def a_disk_is_full(run, rng):
    victim = rng.choice(others(run))
    with amid(run, rng):
        victim.fill_disk()
    if rng.random() < 0.5:
        for_a_while(rng)
        victim.drain_disk()


@schedule
def all_disks_are_full_from_the_beginning(run, rng):
    for machine in run.network.machines:
        machine.fill_disk()
    with amid(run, rng):
        pass


def kill_coordinator(run):
    run.home.kill('dml-coordinator')
    return [run.home]


@schedule
def the_coordinator_is_killed(run, rng):
    with amid(run, rng):
        return kill_coordinator(run)


@schedule
def the_coordinator_is_killed_and_a_machine_restarts(run, rng):
    victim = rng.choice(run.network.machines[1:])
    with amid(run, rng):
        kill_coordinator(run)
        victim.power_off()
    victim.power_on()
    return [run.home]


@schedule
def all_machines_restart(run, rng):
    with amid(run, rng):
        for machine in run.network.machines:
            machine.power_off()
    for machine in run.network.machines:
        machine.power_on()
    return [run.network.machines[0]]


def network_of(rng=None):
    return Network(4, apart=True, environment=SLOW)


@test
def a_job_trains_on_machines_of_which_three_see_nothing_of_it(folder):
    with network_of() as network:
        run = Hosted(network)
        run.start(network.machines[0])
        result = run.conclude()
        run.check(result)
        assert not any(result['restarts'].values()), result
        assert all(host['workers'] and not host['failures'] for host in result['hosts']), result
        left = [path for machine in network.machines for path in machine.files()]
        assert not left, f'the run has ended, and left {left}'
        for host in 'h1', *ELSEWHERE:
            said = f'host {host} does not see the state folder' in run.log()
            assert said == (host in ELSEWHERE), run.log()


if __name__ == '__main__':
    sys.exit(Seeds(__file__, APART, network_of).main(CHECKED))
