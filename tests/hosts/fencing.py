"""Schedules in which a coordinator lives on after another one, on another machine, has taken its run
over: it must not write anything any more. That takes a storage that has given the lock of the first
to the second: with remote storage it is so as soon as the first is cut off; else the first is told
to let go of its lock."""

import hashlib
import time

from schedules import schedule
from runs import END_SECONDS
from faults import is_free

# Ends of a coordinator that was replaced: unavailable, I/O, try again.
FENCED = (69, 74, 75)


def begin_without_lock(run):
    """The first coordinator is at some step, and the lock is no longer its own."""
    first = run.start(run.network.machines[0],
                      DML_FAILPOINT='coordinator.lock_released:30:hit', DML_FAILPOINT_ONCE='/tmp/once')
    run.until_step(2)
    first.until(lambda: run.home.has('/tmp/once.0'), 'it lets go of the lock')
    first.until(lambda: is_free(run.state / 'lock'), 'the lock is free')
    return first


def files_of(state):
    """All in the state folder but logs, by hash."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(state.rglob('*'))
            if path.is_file() and path.parent.name != 'log'}


def replace(run, rng, stop, go_on):
    """The first coordinator is stopped in some way; when another one has taken over, or is through,
    it goes on, finds itself replaced, and changes nothing."""
    first = begin_without_lock(run)
    old = run.home
    stop(old)
    time.sleep(rng.choice([0, 5]))
    run.start(rng.choice([machine for machine in run.network.machines if machine is not old]))
    late = rng.random() < 0.5
    if late:
        run.conclude()
        before = files_of(run.state)
    else:
        run.until_step(rng.randint(1, 8))
    go_on(old)
    finished = first.wait(END_SECONDS)
    assert finished.status in FENCED, f'the replaced coordinator ended: {finished}'
    if late:
        assert files_of(run.state) == before, 'the replaced coordinator wrote'
    print(f'# the first ended with {finished.status}: {finished.stderr.strip().splitlines()[-1]}')


@schedule
def a_coordinator_that_was_cut_off_was_replaced(run, rng):
    """Its machine still reaches the storage: it could go on alone, with workers there."""
    def stop(old):
        old.cut('both', [machine for machine in run.network.machines if machine is not old])
    replace(run, rng, stop, lambda old: old.heal())


@schedule
def a_coordinator_that_was_frozen_was_replaced(run, rng):
    replace(run, rng, lambda old: old.freeze(), lambda old: old.thaw())


@schedule
def a_coordinator_without_storage_was_replaced(run, rng):
    """Its machine reaches nothing. Where the storage is remote, reading and writing hang."""
    replace(run, rng, lambda old: old.cut('both'), lambda old: old.heal())
