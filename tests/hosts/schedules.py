"""What goes wrong on a network while a job is run on it. A schedule gets a run that has not begun
and a source of random numbers. When it returns, the run must be able to come to its end, with the
model of a quiet run; it returns the machines on which the command is given again if the machine of
the coordinator was lost."""

import contextlib
import time

SCHEDULES = {}
LOST_SECONDS = 20  # whoever is out of reach for so long counts as lost

# Where the coordinator stands when something goes wrong, and the visits of that place: while it
# greets and sets up, hands out, folds, takes a checkpoint, and reads the model at the end.
PLACES = [('send_HELLO', 4), ('send_SHARD_SETUP', 2), ('send_REPLICA_SETUP', 3), ('state_attempt', 1),
          ('send_EVALUATE', 20), ('send_FOLD', 30), ('state_accept', 30), ('send_CHECKPOINT', 1),
          ('state_step_commit', 1), ('send_READ', 1), ('send_READ', 1)]
# In the middle of a search over the span of directions, or beside a working set: its programs, and
# its evaluations of products and second derivatives.
AMID_A_SEARCH = [('send_PROGRAM', 60), ('send_EVALUATE', 60), ('state_accept', 60)]


def schedule(function):
    SCHEDULES[function.__name__.replace('_', ' ')] = function
    return function


@contextlib.contextmanager
def amid(run, rng, machine=None):
    """Starts the run. Within, it is at some step, or its coordinator stands still at some place."""
    machine = machine or run.network.machines[0]
    if rng.random() < 0.4:
        run.start(machine)
        run.until_step(rng.randint(0, 8))
        yield
    else:
        place, visits = rng.choice(PLACES if run.method == 'lines' else PLACES + AMID_A_SEARCH)
        run.start_held(machine, place, rng.randint(1, visits))
        yield
        run.go_on()


def others(run):
    return [machine for machine in run.network.machines if machine is not run.home]


def for_a_while(rng):
    time.sleep(rng.choice([1, 4, LOST_SECONDS]))


# ---- links ----

def cut_one(run, rng, direction):
    victim = rng.choice(run.network.machines[1:])
    with amid(run, rng):
        victim.cut(direction)
    for_a_while(rng)
    victim.heal()


@schedule
def a_machine_is_not_heard(run, rng):
    cut_one(run, rng, 'out')


@schedule
def a_machine_hears_nothing(run, rng):
    cut_one(run, rng, 'in')


@schedule
def a_machine_is_cut_off(run, rng):
    cut_one(run, rng, 'both')


@schedule
def a_machine_is_unplugged(run, rng):
    victim = rng.choice(run.network.machines[1:])
    with amid(run, rng):
        victim.unplug()
    for_a_while(rng)
    victim.heal()


@schedule
def packets_are_lost(run, rng):
    for machine in run.network.machines:
        machine.lose(0.05)
    with amid(run, rng):
        pass


@schedule
def a_link_is_slow(run, rng):
    rng.choice(run.network.machines).slow('4mbit')
    with amid(run, rng):
        pass


@schedule
def two_machines_do_not_reach_each_other(run, rng):
    """Both reach the coordinator; it depends on their roles whether that matters."""
    one, other = rng.sample(run.network.machines[1:], 2)
    with amid(run, rng):
        one.cut(rng.choice(['in', 'out', 'both']), [other])
    for_a_while(rng)
    one.heal()


# ---- machines ----

@schedule
def a_machine_is_gone_for_good(run, rng):
    with amid(run, rng):
        rng.choice(others(run)).power_off(silently=rng.random() < 0.5)


@schedule
def a_machine_restarts(run, rng):
    victim = rng.choice(run.network.machines[1:])
    with amid(run, rng):
        victim.power_off(silently=rng.random() < 0.5)
    time.sleep(rng.choice([0, 3]))
    victim.power_on()


@schedule
def all_but_one_are_gone_for_good(run, rng):
    with amid(run, rng):
        for machine in others(run):
            machine.power_off()


@schedule
def a_machine_freezes(run, rng):
    """Its kernel still answers, and its processes go on later as if nothing had been."""
    victim = rng.choice(run.network.machines[1:])
    with amid(run, rng):
        victim.freeze()
    for_a_while(rng)
    victim.thaw()


@schedule
def the_machine_of_the_coordinator_is_gone_for_good(run, rng):
    with amid(run, rng):
        run.home.power_off()
    time.sleep(rng.choice([0, 4, LOST_SECONDS]))
    return others(run)


@schedule
def all_machines_restart(run, rng):
    with amid(run, rng):
        for machine in run.network.machines:
            machine.power_off()
    for machine in run.network.machines:
        machine.power_on()
    return [rng.choice(run.network.machines)]


@schedule
def one_after_the_other_fails(run, rng):
    with amid(run, rng):
        pass
    for _ in range(rng.randint(2, 5)):
        victim = rng.choice(run.network.machines[1:])
        fault, seconds = rng.choice(['in', 'out', 'both', 'freeze', 'restart']), rng.uniform(0, 8)
        if fault == 'restart':
            victim.power_off()
        elif fault == 'freeze':
            victim.freeze()
        else:
            victim.cut(fault)
        time.sleep(seconds)
        if fault == 'restart':
            victim.power_on()
        elif fault == 'freeze':
            victim.thaw()
        else:
            victim.heal()
