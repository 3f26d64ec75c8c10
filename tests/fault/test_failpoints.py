#!/usr/bin/env python3
"""Walks the failpoints. Jobs that between them visit every failpoint are run once to see who comes
where; then again for each place and role: the process is killed there, the first time and a later
time, and where it is a write, that fails. Every run ends with the quiet run's model, after at most
one more start of the same command.

With DML_FAULTS=all every place is walked, else a sample. `--seed N` draws the same sample.
"""

import random
import signal
import sys
import time

from faults import (ALL, MINIBATCHES, PRECONDITIONED, REPLICAS, check_counted_once, check_nothing_left,
                    check_preconditioned, chunks_of, flip, is_free, kill, make_job, quiet, run_of,
                    say, seed_of_arguments)
from harness import (AGAIN, BAD_DATA, COORDINATOR, CREATE, IO, REPLICA, SHARD, UNAVAILABLE,
                     emulated_for_auto, main, run, test, train)

SEED = seed_of_arguments()
SAMPLE = 20
LATER = 3

# `auto` takes the emulated device in place of a GPU.
DEVICES = emulated_for_auto()

SLOW = {'DML_SHUFFLE': '7', 'DML_PAUSE_US': '10000'}  # evaluations longer than 100 ms


class Scenario:
    """A job, what goes wrong in it anyway, and how often the command is given for that."""

    def __init__(self, name, rules='', starts=1, environment=None, settings=None, drive=None,
                 warm=False, anew=(), anew_role='shard'):
        self.name, self.rules, self.starts, self.warm = name, rules, starts, warm
        # Places that are walked here though another scenario came to them.
        self.anew, self.anew_role = anew, anew_role
        self.environment = environment or {}
        self.settings = {'checkpoint_seconds': 0, 'max_steps': 12, **(settings or {})}
        self.drive = drive or go_on


def go_on(run, scenario, reruns, **environment):
    """Starts until the end, and again while the process was killed or a write failed."""
    run.start(**environment)
    return to_the_end(run, scenario, reruns, **environment)


def to_the_end(run, scenario, reruns, **environment):
    allowed = scenario.starts - 1 + reruns
    while True:
        finished = run.now.wait()
        if finished.status == 0:
            return finished.json
        assert finished.status in (-signal.SIGKILL, CREATE, IO), f'ended with {finished.status}'
        assert finished.status < 0 or 'dml-coordinator: ' in finished.stderr, 'no reason given'
        assert allowed, 'the command had to be given too often'
        allowed -= 1
        run.start(**environment)


def with_damage(run, scenario, reruns, **environment):
    """A byte of a chunk is wrong: that is said, and what is right again goes on."""
    pack(run)
    for path in (run.state / 'packs').glob('*.set'):
        flip(path)
    run.start(**environment)
    while True:
        finished = run.now.wait()
        if finished.status == BAD_DATA:
            break
        assert finished.status == -signal.SIGKILL and reruns, f'ended with {finished.status}'
        reruns -= 1
        run.start(**environment)
    assert '.set' in finished.stderr, 'the damaged file is not named'
    for path in (run.state / 'packs').glob('*.set'):
        path.unlink()
    return go_on(run, Scenario(''), reruns, **environment)


def pack(run_):
    finished = run(COORDINATOR, 'pack', run_.command[2], '--state', run_.state)
    assert finished.status == 0, finished


def with_two(run, scenario, reruns, **environment):
    """The lock is lost: another coordinator takes over and the first finds itself fenced out. The
    replicas stand still until then, so that the first does not come to its end before."""
    fired = environment['DML_FAILPOINT_ONCE']
    first = run.start(**environment)
    rule = environment['DML_FAILPOINT'].count(',')
    while first.popen.poll() is None and not (exists(f'{fired}.{rule}') and
                                              is_free(run.state / 'lock')):
        time.sleep(0.01)
    standing = run.of_role('replica')
    run.start(**environment)
    finished = first.wait()
    for pid in standing:
        kill(pid, signal.SIGCONT)
    result = to_the_end(run, scenario, reruns, **environment)
    assert finished.status in (AGAIN, -signal.SIGKILL), f'the first ended with {finished.status}'
    return result


def exists(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False


# Walked elsewhere: only retrain comes to the first (test_retrain.py), only prune to the second
# (test_prune.py), only workers that someone else started under the name of a host to the third
# (test_loop.py), only replicas with scratch to the fourth (test_scratch.py), only networks in tiles to
# the fifth (test_network_tiles.py).
WALKED_ELSEWHERE = {'model_remove', 'prune_remove', 'name_lookup', 'scratch_write', 'upper_fetched'}

# Visited as a rule: a coordinator that was replaced is told so by a worker, unless its own look at the
# lock file comes first. test_host.c holds that a worker tells it.
BY_CHANCE = {'receive_REFUSED', 'send_REFUSED'}

SCENARIOS = [
    Scenario('plain', settings={'on_publish': 'true', 'holdout': 0.2}),
    Scenario('scaled'),
    Scenario('in coordinates', settings={'standardise': True}),
    Scenario('a shard of a network is lost', rules='shard.receive_PROGRAM:9:kill',
             settings={'objective': 'network', 'portion_chunks': 1},
             anew=('receive_', 'send_'), anew_role='replica'),
    Scenario('layers of a network are mixed',
             settings={'objective': 'network', 'precondition': 'kronecker', 'features': 60}),
    Scenario('a shard is lost among minibatches', rules='shard.receive_PROGRAM:9:kill',
             settings={**MINIBATCHES, 'portion_chunks': 1, 'max_steps': 2},
             anew=('checkpoint_', 'restore_', 'receive_', 'send_')),
    Scenario('the coordinator is lost among minibatches', starts=2,
             rules='coordinator.state_accept:60:kill',
             settings={**MINIBATCHES, 'portion_chunks': 1, 'max_steps': 2},
             anew=('state_', 'send_', 'receive_'), anew_role='coordinator'),
    Scenario('it starts from a model', warm=True),
    Scenario('a path', settings={'l2': [1e-2, 1e-3, 1e-4], 'holdout': 0.2, 'max_steps': 5},
             anew=('start_', 'model_', 'run_ended', 'publish_'), anew_role='coordinator'),
    Scenario('a shard with a preconditioner is lost', rules='shard.factor_done:2:kill',
             settings={**PRECONDITIONED, 'portion_chunks': 1},
             anew=('checkpoint_', 'restore_', 'retain_', 'file_', 'send_RESULT', 'send_STAGED')),
    Scenario('a shard with common directions is lost', rules='shard.rows_advanced:5:kill',
             settings={'directions': 4, 'history': 3, 'precondition': 'none', 'portion_chunks': 1},
             anew=('checkpoint_', 'restore_', 'retain_', 'file_', 'rows_')),
    Scenario('a shard with bounds is lost', rules='shard.receive_PROGRAM:9:kill',
             settings={'features': 60, 'portion_chunks': 1,
                       'bounds': ['1-20 = [-0.1, 0.1]', '30 = [0, inf]']}),
    Scenario('a shard that finds errors of estimates is lost', rules='shard.covariance_done:1:kill',
             settings={'features': 60, 'portion_chunks': 1, 'summary': 'robust'},
             anew=('checkpoint_', 'covariance_', 'restore_')),
    Scenario('the coordinator dies while it finds errors', rules='coordinator.single_errors:2:kill',
             starts=2, settings={'features': 60, 'portion_chunks': 1, 'summary': 'robust',
                                 'summary_columns': ['1', '2', '3']}, anew=('model_', 'single_')),
    Scenario('a shard is lost', rules='shard.receive_PROGRAM:9:kill'),
    Scenario('the coordinator is lost', rules='coordinator.state_accept:40:kill', starts=2,
             environment=SLOW, settings={'max_steps': 3, 'portion_chunks': 1}),
    Scenario('a replica is late', rules='replica.send_FLUSHED:4:delay:400', environment=SLOW,
             settings={'max_steps': 8, 'portion_chunks': 2, 'flush_ms': 20}),
    Scenario('a device is lost', environment=DEVICES,
             rules='replica0.device_lost@send_READY:9:hit',
             settings={'max_steps': 4, 'features': 60, 'precondition': 'none'}),
    Scenario('a chunk is damaged', settings={'max_steps': 5}, drive=with_damage),
    Scenario('the lock is lost', drive=with_two, environment=SLOW, settings={'max_steps': 4},
             rules=','.join([*(f'replica{i}.receive_EVALUATE:3:stop' for i in range(REPLICAS)),
                             'coordinator.lock_released:40:hit'])),
]


# ---- one run ----

def scale(path):
    """Columns of very different size have exponents of their own."""
    lines = []
    for line in path.read_text().splitlines():
        words = line.split()
        for i, word in enumerate(words[1:], 1):
            feature, value = word.split(':')
            if int(feature) % 2:
                words[i] = f'{feature}:{float(value) * 2.0 ** -30!r}'
        lines.append(' '.join(words))
    path.write_text('\n'.join(lines) + '\n')


def first_model(job):
    return train(job, '--set', 'max_steps=3', '--state', job.parent / 'first.state')['model']


class Walk:
    def __init__(self, folder):
        self.folder = folder
        self.jobs, self.visited, self.points = {}, set(), []
        self.unfired, self.number = [], 0

    def job(self, scenario):
        key = scenario.name
        if key not in self.jobs:
            place = self.folder / str(len(self.jobs))
            place.mkdir()
            job = make_job(place, rows=2500, **scenario.settings)
            if scenario.name == 'scaled':
                scale(place / 'logistic.libsvm')
            arguments = ['--start', first_model(job)] if scenario.warm else []
            expected = quiet(job, *arguments)
            if PRECONDITIONED.items() <= scenario.settings.items():
                check_preconditioned(expected)
            self.jobs[key] = job, arguments, expected['model_sha256']
        return self.jobs[key]

    def run(self, scenario, rule=None, reruns=0):
        """Whether the rule was ever met."""
        self.number += 1
        job, arguments, expected = self.job(scenario)
        log, fired = self.folder / f'{self.number}.visits', self.folder / f'{self.number}.fired'
        rules = ','.join(r for r in (rule, scenario.rules) if r)
        environment = {'DML_FAILPOINT_LOG': str(log), 'DML_FAILPOINT_ONCE': str(fired),
                       **({'DML_FAILPOINT': rules} if rules else {}), **scenario.environment}
        with run_of(job, f'run-{self.number}', *arguments) as run:
            result = scenario.drive(run, scenario, reruns, **environment)
            assert result['model_sha256'] == expected, 'another model'
            check_nothing_left(run)
            check_counted_once(run, chunks_of(run))
        here = {(line.split('.')[0].rstrip('0123456789'), line.split('.')[1])
                for line in log.read_text().splitlines()}
        new = {(role, name) for role, name in here
               if (role, name) not in self.visited
               or role == scenario.anew_role and name.startswith(scenario.anew)}
        self.visited |= here
        return exists(f'{fired}.0'), sorted(new)


def list_failpoints():
    kinds = {}
    for program in COORDINATOR, SHARD, REPLICA:
        for line in run(program, '--list-failpoints').stdout.splitlines():
            name, kind = line.split()[:2]
            kinds[name] = kind
    return kinds


def rules_for(role, name, kind):
    if kind == 'switch':
        return
    for visit in 1, LATER:
        yield f'{role}.{name}:{visit}:kill'
    if kind == 'write':
        for action in 'eio', 'enospc':
            for visit in 1, LATER:
                yield f'{role}.{name}:{visit}:{action}'


@test
def a_process_that_dies_or_cannot_write_anywhere_costs_no_more_than_a_rerun(folder):
    kinds, walk, rules = list_failpoints(), Walk(folder), []
    for scenario in SCENARIOS:
        start = time.monotonic()
        _, new = walk.run(scenario)
        say(f'{scenario.name}: {len(new)} new places, {time.monotonic() - start:.1f} s')
        rules += [(scenario, role, name, rule)
                  for role, name in new for rule in rules_for(role, name, kinds[name])]
    never = sorted(set(kinds) - WALKED_ELSEWHERE - BY_CHANCE - {name for _, name in walk.visited})
    say(f'{len(kinds) - len(never)} of {len(kinds)} failpoints visited; never: {never or "none"}')
    seed = SEED if SEED is not None else random.SystemRandom().randrange(10 ** 6)
    if not ALL:
        say(f'a sample of {SAMPLE} of {len(rules)}, --seed {seed}')
        rules = random.Random(seed).sample(rules, SAMPLE)
    failed, unmet = [], 0
    for scenario, role, name, rule in rules:
        try:
            needs_rerun = role == 'coordinator' or not rule.endswith('kill')
            met, _ = walk.run(scenario, rule, reruns=int(needs_rerun))
            unmet += not met
        except AssertionError as error:
            failed.append(rule)
            say(f'{rule} in "{scenario.name}" failed')
            for line in str(error).splitlines():
                say(f'  {line}')
    say(f'{len(rules)} runs, {unmet} never came to their place so often, {len(failed)} failed')
    assert not failed, f'{failed}'
    assert not never, f'never visited: {never}'


# ---- devices ----

# While it is opened, a device's worker turns to the CPU itself.
OPENING = ['replica0.device_memory:1', 'shard0.device_lost:1', 'replica0.device_hang:1']

# What does not fit into its memory later is brought there each time.
STREAMING = ['replica0.device_memory@send_READY:1']

# Else the worker is replaced.
AT_WORK = ['replica0.device_launch@send_READY:5',
           'replica0.device_lost@send_READY:9', 'shard0.device_launch@send_READY:3',
           'shard0.device_lost@send_READY:20', 'replica0.device_hang@send_READY:3',
           'shard0.device_hang@send_READY:3']

# The thread that drives a replica's device waits for minutes.
PATIENT = ['replica0.device_hang@send_READY:3']


def warned(finished):
    return sum('computes on the CPU' in line and ' warning: ' in line
               for line in finished.stderr.splitlines())


def run_with(job, name, rule, *arguments, **environment):
    """How it ended, and whether the rule was met."""
    fired = job.parent / f'{name}.fired'
    with run_of(job, name, *arguments, DML_FAILPOINT=f'{rule}:hit', DML_FAILPOINT_ONCE=fired,
                **environment) as run_:
        finished = run_.start().wait()
        check_nothing_left(run_)
        if finished.status == 0:
            check_counted_once(run_, chunks_of(run_))
    return finished, exists(f'{fired}.0')


def device_job(folder):
    return make_job(folder, rows=800, features=60, max_steps=4, checkpoint_seconds=0,
                    precondition='none', replicas=1, shards=1)


@test
def a_device_that_fails_is_done_without_and_the_model_is_the_same(folder):
    job = device_job(folder)
    expected = quiet(job)['model_sha256']
    for number, rule in enumerate(OPENING + STREAMING + AT_WORK):
        patience = {'DML_DEVICE_PATIENCE_MS': '100'} if rule in PATIENT else {}
        finished, met = run_with(job, f'auto-{number}', rule, **DEVICES, **patience)
        assert met, f'{rule} was never met'
        assert finished.json['model_sha256'] == expected, f'{rule}: another model'
        assert warned(finished) == (rule not in STREAMING), f'{rule}: {finished.stderr}'
        restarts = finished.json['restarts']
        assert sum(restarts.values()) == (rule in AT_WORK), f'{rule}: {restarts}'


@test
def a_device_that_was_asked_for_is_tried_again_and_the_end_names_it(folder):
    job = device_job(folder)
    expected = quiet(job)['model_sha256']
    finished, met = run_with(job, 'once', 'replica0.device_launch@send_READY:4', '--set',
                             'device=emulated')
    assert met and finished.json['model_sha256'] == expected, finished
    assert not warned(finished), f'it turned to the CPU: {finished.stderr}'
    with run_of(job, 'always', '--set', 'device=emulated', DML_DEVICE_BYTES='1000') as run_:
        finished = run_.start().wait()
        check_nothing_left(run_)
    assert finished.status == UNAVAILABLE, finished
    assert 'emulated: no memory' in finished.stderr.splitlines()[-1], finished.stderr
    finished = quiet(job, '--set', 'device=auto', DML_DEVICE_BYTES='1000', **DEVICES)
    assert finished['model_sha256'] == expected, finished


if __name__ == '__main__':
    sys.exit(main())
