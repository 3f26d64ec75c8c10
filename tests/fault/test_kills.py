#!/usr/bin/env python3
"""Processes chosen at random are killed at random times, the coordinator and several at once among
them; the same command is given again if the coordinator died. The model is the quiet run's.

`test_kills.py CASE --seed N` repeats the run with that seed, and tells what it kills.
"""

import collections
import random
import sys
import time

from faults import (ALL, MINIBATCHES, PRECONDITIONED, check_counted_once, check_nothing_left,
                    check_preconditioned, chunks_of, conclude, kill, make_job,
                    name_of, quiet, run_of, say, seed_of_arguments)
from harness import main, test, words

SEED = seed_of_arguments()
RUNS = 200 if ALL else 5
KILLS_MAX = 4

# Names of this machine, and a command that starts workers as ssh would: all links are TLS.
OVER_TLS = {'hosts': ['127.0.0.1', '127.0.0.2'], 'launch': 'env DML_HOST=%h'}
HELLO_SECONDS = 60  # that a worker there waits whose coordinator was killed before it was greeted

# What a run is made of: the objective, how long replicas pause before a chunk at most (µs), and
# settings of the job. With the longest pauses evaluations take more than 100 ms and are journalled.
KINDS = [('logistic', 2000, {'weighted': True}), ('logistic', 25000, {}), ('softmax', 1500, {}),
         ('squared', 2000, {}), ('squared', 25000, {'weighted': True}),
         ('logistic', 2000, PRECONDITIONED),
         ('logistic', 25000, PRECONDITIONED), ('softmax', 1500, PRECONDITIONED),
         ('softmax', 1500, {'precondition': 'diagonal'}), ('logistic', 25000, {'standardise': True}),
         ('logistic', 2000, OVER_TLS), ('table', 2000, {'weighted': True}),
         ('network', 25000, {}), ('softmax', 2000, MINIBATCHES),
         ('network', 2000, {**MINIBATCHES, 'weighted': True})]
STEPS = {2000: 30, 1500: 25, 25000: 6}

# Steps in the span of common directions, so few that they leave the window soon.
COMMON = {'directions': 6, 'history': 4, 'gradient_tolerance': 1e-13, 'precondition': 'none'}
LEADING = {**COMMON, 'precondition': 'block', 'precondition_block': 100}
COMMON_KINDS = [('logistic', 2000, COMMON), ('logistic', 25000, {**COMMON, 'weighted': True}),
                ('softmax', 1500, COMMON), ('logistic', 1500, {**LEADING, 'standardise': True}),
                ('squared', 25000, COMMON), ('softmax', 25000, {**LEADING, 'weighted': True}),
                ('logistic', 2000, {**COMMON, 'standardise': True, 'weighted': True,
                                    'holdout': 0.2, 'early_stopping': 5}),
                ('softmax', 1500, {**LEADING, 'standardise': True, 'weighted': True,
                                   'holdout': 0.2, 'early_stopping': 5}),
                ('table', 2000, {**COMMON, 'directions': 1}),
                ('softmax', 1500, {**COMMON, 'history_type': 'double', 'holdout': 0.3,
                                   'early_stopping': 3})]
COMMON_RUNS = 60 if ALL else 2

# Strips of columns, with and without layers above them, and steps over working sets.
IN_TILES = {**COMMON, 'strip_columns': 2500}
NETWORK_IN_TILES = {'strip_columns': 2500, 'portion_chunks': 1}
WORKING = {'l1': 2e-4, 'l2': 0}
OTHER_KINDS = [('logistic', 2000, IN_TILES), ('network', 2000, NETWORK_IN_TILES),
               ('softmax', 1500, {**WORKING, 'weighted': True}),
               ('softmax', 1500, {**IN_TILES, 'holdout': 0.2, 'early_stopping': 3}),
               ('network', 1500, {**NETWORK_IN_TILES, 'weighted': True, 'holdout': 0.2}),
               ('logistic', 25000, WORKING), ('logistic', 2000, {**WORKING, 'strip_columns': 2500})]
OTHER_RUNS = 56 if ALL else 2


def draw_settings(rng):
    return {'replicas': rng.randint(1, 4), 'shards': rng.randint(1, 3),
            'threads': rng.randint(1, 2), 'checkpoint_seconds': rng.choice([0, 0.1]),
            'portion_chunks': rng.choice([0, 1, 4]), 'flush_ms': rng.choice([5, 50, 1000])}


def choose(rng, run):
    """Whom to kill: one, several, the coordinator, the coordinator with others, or all."""
    living = run.living()
    workers = [pid for pid in living if pid != run.now.pid]
    some = rng.sample(workers, rng.randint(1, len(workers))) if workers else []
    return rng.choice([some[:1], some[:1], some, [run.now.pid], [run.now.pid, *some], living])


def disturb(rng, run, seconds, tell):
    """Kills, and gives the command again where that ended it. Returns how often, and whom it
    killed."""
    reruns, killed = 0, []
    for _ in range(rng.randint(1, KILLS_MAX)):
        time.sleep(rng.uniform(0, seconds))
        if run.now.popen.poll() is not None:
            break
        victims = choose(rng, run)
        tell(f'kills {[(pid, name_of(pid)) for pid in victims]}')
        rng.shuffle(victims)
        killed += map(name_of, victims)
        for pid in victims:
            kill(pid)
        if run.now.pid in victims:
            run.now.popen.wait()
            if run.now.popen.returncode == 0:
                break  # it had ended just then
            time.sleep(rng.choice([0, 0, rng.uniform(0, 0.2)]))
            run.start()
            reruns += 1
    return reruns, killed


def one_run(folder, kinds, jobs, seed, tell):
    """Whom it killed, and which workers were lost by the count of the last start."""
    rng = random.Random(seed)
    kind = seed % len(kinds)
    objective, pause, more = kinds[kind]
    settings = draw_settings(rng)
    steps = STEPS[pause]
    environment = {'DML_SHUFFLE': str(seed + 1), 'DML_PAUSE_US': str(pause)}
    if kind not in jobs:
        (folder / str(kind)).mkdir()
        job = make_job(folder / str(kind), objective, max_steps=steps, **more)
        jobs[kind] = job, quiet(job)
        if more is PRECONDITIONED:
            check_preconditioned(jobs[kind][1])
        assert 'directions' not in more or jobs[kind][1]['directions'] > 0, jobs[kind][1]
    job, expected = jobs[kind]
    tell(f'{objective}, {more}, {settings}, {environment}')
    with run_of(job, f'seed-{seed}', *words(settings), **environment) as run:
        run.start()
        start = time.monotonic()
        reruns, killed = disturb(rng, run, seconds=0.5, tell=tell)
        result = conclude(run, reruns)
        took = time.monotonic() - start
        for member in 'model_sha256', 'steps', 'loss':
            assert result[member] == expected[member], \
                f'{member} is {result[member]}, the quiet run had {expected[member]}'
        check_nothing_left(run, 8 + (HELLO_SECONDS if more is OVER_TLS else 0))
        parts = 2 if 'strip_columns' in more else int('holdout' in more)
        evaluations = check_counted_once(run, chunks_of(run), parts)
    tell(f'{took:.1f} s, {reruns} reruns, {evaluations} evaluations, restarts {result["restarts"]}')
    return killed, result['restarts']


def many_runs(folder, kinds, count):
    base = random.SystemRandom().randrange(10 ** 6) * 1000
    seeds = [SEED] if SEED is not None else range(base, base + count)
    say(f'seeds {seeds[0]} to {seeds[-1]}')
    jobs, failed, lost, killed = {}, [], {}, collections.Counter()
    for seed in seeds:
        try:
            tell = say if SEED is not None else lambda text: None
            victims, restarts = one_run(folder, kinds, jobs, seed, tell)
            killed.update(victims)
            lost = {role: lost.get(role, 0) + count for role, count in restarts.items()}
        except AssertionError as error:
            failed.append(seed)
            say(f'seed {seed} failed; repeat it with {sys.argv[0]} CASE --seed {seed}')
            for line in str(error).splitlines():
                say(f'  {line}')
    say(f'{len(seeds)} runs, killed {dict(killed)}, restarts {lost}, failed {len(failed)}')
    assert not failed, f'seeds {failed}'


@test
def the_model_is_the_same_whoever_is_killed_whenever(folder):
    many_runs(folder, KINDS, RUNS)


@test
def the_model_of_common_directions_is_the_same_whoever_is_killed_whenever(folder):
    many_runs(folder, COMMON_KINDS, COMMON_RUNS)


@test
def the_model_in_tiles_or_over_working_sets_is_the_same_whoever_is_killed_whenever(folder):
    many_runs(folder, OTHER_KINDS, OTHER_RUNS)


if __name__ == '__main__':
    sys.exit(main())
