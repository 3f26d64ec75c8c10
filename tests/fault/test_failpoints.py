#!/usr/bin/env python3
"""Walks the failpoints. Scenes that between them come to every place are run once to see who comes
where; then again for each place: the process is killed there, the first time and a later time, and
where it is a write, that fails. Every run ends with the quiet run's model, after at most one more
start of the same command.

With DML_FAULTS=all every place is walked, in a test for each scene, else a sample. `--seed N` draws the
same sample.
"""

import functools
import pathlib
import random
import re
import sys
import tempfile
import time

from faults import (ALL, PRECONDITIONED, check_counted_once, check_nothing_left, check_preconditioned,
                    chunks_of, make_job, quiet, run_of, say, seed_of_arguments)
from harness import COORDINATOR, REPLICA, SHARD, UNAVAILABLE, main, run, some, test, tests, train
from scenes import (BY_CHANCE, DEVICES, KINDS, LONG, SCENES, WALKED_ELSEWHERE, Scene, exists,
                    places_of, places_of_kind, what)

SEED = seed_of_arguments()
SAMPLE = 8
LATER = 3


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
        self.jobs, self.number = {}, 0

    def job(self, scene):
        key = scene.name
        if key not in self.jobs:
            place = self.folder / str(len(self.jobs))
            place.mkdir()
            job = make_job(place, rows=2500, **scene.settings)
            if scene.name == 'scaled':
                scale(place / 'logistic.libsvm')
            arguments = ['--start', first_model(job)] if scene.warm else []
            expected = quiet(job, *arguments)
            if PRECONDITIONED.items() <= scene.settings.items():
                check_preconditioned(expected)
            self.jobs[key] = job, arguments, expected['model_sha256']
        return self.jobs[key]

    def run(self, scene, *rules, reruns=0):
        """The result, which rules were met, those of the scene last, and where somebody came to."""
        self.number += 1
        job, arguments, expected = self.job(scene)
        log, fired = self.folder / f'{self.number}.visits', self.folder / f'{self.number}.fired'
        every = [*rules, *(scene.rules.split(',') if scene.rules else ())]
        environment = {'DML_FAILPOINT_LOG': str(log), 'DML_FAILPOINT_ONCE': str(fired),
                       **({'DML_FAILPOINT': ','.join(every)} if every else {}), **scene.environment}
        with run_of(job, f'run-{self.number}', *arguments) as run:
            result = scene.drive(run, scene, reruns, **environment)
            assert result['model_sha256'] == expected, 'another model'
            check_nothing_left(run)
            check_counted_once(run, chunks_of(run), parts=2 if result['strips'] else 0)
        met = [exists(f'{fired}.{number}') for number in range(len(every))]
        return result, met, {re.sub(r'^(\w*?)\d*\.', r'\1.', line)
                             for line in log.read_text().splitlines()}


def list_failpoints():
    """Their kinds and texts."""
    lines = [line.split(maxsplit=2) for program in (COORDINATOR, SHARD, REPLICA)
             for line in run(program, '--list-failpoints').stdout.splitlines()]
    return {name: (kind, text) for name, kind, text in lines}


def rules_for(place, kind):
    if kind == 'switch':
        return
    for visit in 1, LATER:
        yield f'{place}:{visit}:kill'
    if kind == 'write':
        for action in 'eio', 'enospc':
            for visit in 1, LATER:
                yield f'{place}:{visit}:{action}'


class Plan:
    """All scenes, each run once: who comes where, and so what is to be walked."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix='dml-test-')
        self.walk = Walk(pathlib.Path(self.temporary.name))
        self.failpoints = list_failpoints()
        self.visits, self.rules, self.failed = {}, {}, {}
        for scene in SCENES:
            start = time.monotonic()
            before = set().union(*self.visits.values())
            try:
                _, met, here = self.walk.run(scene)
                assert all(met), f'of {scene.rules} some were never met: {met}'
            except AssertionError as error:
                self.failed[scene.name] = error
                continue
            new = sorted(place for place in here
                         if place not in before or place.startswith(scene.anew))
            self.visits[scene.name] = here
            self.rules[scene.name] = [rule for place in new for rule in
                                      rules_for(place, self.failpoints[place.split('.')[1]][0])]
            say(f'{scene.name}: {len(new)} new places, {time.monotonic() - start:.1f} s')


@functools.cache
def plan():
    return Plan()


def walk_all(rules):
    """Runs each scene with its rule, and tells which of them failed, and how."""
    failed, unmet = [], 0
    for scene, rule in rules:
        try:
            needs_rerun = rule.startswith('coordinator.') or not rule.endswith('kill')
            _, met, _ = plan().walk.run(scene, rule, reruns=int(needs_rerun))
            unmet += not met[0]
        except AssertionError as error:
            failed.append(rule)
            say(f'{rule} in "{scene.name}" failed')
            for line in str(error).splitlines():
                say(f'  {line}')
    say(f'{len(rules)} runs, {unmet} never came to their place so often, {len(failed)} failed')
    assert not failed, f'{failed}'


@test
def every_scene_ends_with_the_model_of_a_quiet_run(folder):
    assert not plan().failed, plan().failed


def check_visits(existing, visited, by_chance):
    """Each way by name."""
    never = sorted(place for place in existing - visited if what(place) not in by_chance)
    unknown = sorted(place for place in visited - existing if what(place) not in by_chance)
    assert not never, f'nobody comes to {never}'
    assert not unknown, f'scenes.py does not know that {unknown} may be come to'


@test
def every_role_comes_to_each_place_that_it_may_come_to(folder):
    check_visits(set(places_of(plan().failpoints)) - WALKED_ELSEWHERE,
                 set().union(*plan().visits.values()), BY_CHANCE)
    known = {what(place) for place in places_of(plan().failpoints)} | BY_CHANCE
    assert {what(f'.{name}') for name in plan().failpoints} <= known, 'whose failpoints are those?'


for kind in KINDS:
    def behaviour(folder, kind=kind):
        visited = (plan().visits[scene.name] for scene in SCENES if scene.kind == kind)
        check_visits(places_of_kind(kind, places_of(plan().failpoints)), set().union(*visited),
                     BY_CHANCE | LONG)
    behaviour.__name__ = f'every role comes to each place of {kind}'
    test(behaviour)


def walked(scene):
    def behaviour(folder):
        walk_all([(scene, rule) for rule in plan().rules[scene.name]])
    behaviour.__name__ = f'{scene.name}: a death or a failed write anywhere costs a rerun at most'
    return test(behaviour)


@test
def a_process_that_dies_or_cannot_write_anywhere_costs_no_more_than_a_rerun(folder):
    rules = [(scene, rule) for scene in SCENES for rule in plan().rules.get(scene.name, ())]
    seed = SEED if SEED is not None else random.SystemRandom().randrange(10 ** 6)
    say(f'a sample of {SAMPLE} of {len(rules)}, --seed {seed}')
    walk_all(random.Random(seed).sample(rules, SAMPLE))


if ALL:
    tests.pop()
    for each in SCENES:
        walked(each)


# ---- several faults, one in the recovery from the other ----

# A shard is lost when a step is durable: then whoever has a part in the way back.
FIRST = 'shard0.receive_PROGRAM@receive_RETAIN:5:kill'
SECOND = [*(f'shard{shard}.{place}:1' for shard in (0, 1)
            for place in ('receive_RESTORE', 'restore_begin', 'restore_done', 'send_RESTORED')),
          *(f'replica{replica}.{place}:3' for replica in (0, 1)  # the first two are those of the start
            for place in ('receive_SHARD_AT', 'send_GREET', 'receive_GREETED')),
          'coordinator.launch_worker:5', 'coordinator.state_attempt:2', 'coordinator.state_rollback:1',
          'coordinator.send_RESTORE:1', 'coordinator.send_RESTORE:2', 'coordinator.receive_RESTORED:1',
          'coordinator.receive_RESTORED:2', 'coordinator.send_SHARD_SETUP:3']

# Each process of the worker meets the next rule. The only replica, without which nothing goes on.
STAGES = {
    'shard1': ('receive_HELLO', 'send_WELCOME', 'receive_SHARD_SETUP', 'fence_write', 'fence_written',
               'send_READY', 'receive_GREET', 'receive_PROGRAM', 'send_STAGED'),
    'replica0': ('receive_HELLO', 'send_WELCOME', 'receive_REPLICA_SETUP', 'receive_SHARD_AT',
                 'send_GREET', 'send_READY', 'receive_EVALUATE', 'send_FETCH', 'send_STAGE'),
}


def undisturbed(kind, **settings):
    return Scene(kind, settings={**KINDS[kind][0], 'portion_chunks': 1, 'max_steps': 8, **settings})


for kind in KINDS:
    def behaviour(folder, kind=kind):
        walk, scene = Walk(folder), undisturbed(kind)
        for rule in SECOND if ALL else random.sample(SECOND, 1):
            reruns = int(rule.startswith('coordinator'))
            _, met, _ = walk.run(scene, FIRST, f'{rule}:kill', reruns=reruns)
            assert all(met), f'{FIRST}, {rule}: {met}'
    behaviour.__name__ = f'a second fault on the way back from a first costs no bit of {kind}'
    test(behaviour)


@test
def a_worker_that_dies_at_each_stage_of_its_start_is_replaced_each_time(folder):
    walk, scene = Walk(folder), undisturbed('tiles', replicas=1)
    for worker, stages in STAGES.items():
        result, met, _ = walk.run(scene, *(f'{worker}.{stage}:1:kill' for stage in stages))
        assert all(met), f'{worker}: {met}'
        assert result['restarts'][worker[:-1]] == len(stages), result['restarts']


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
    for number, rule in enumerate(some(OPENING, 2) + STREAMING + some(AT_WORK, 2)):
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
