"""What tests of the one model share: runs that are divided otherwise, or lose processes.

Each job runs undivided and in one other division; three jobs of a test have every pair of values of two
settings. With DML_BITS=all (make check-bits) each job runs in every combination.
With DML_FAULTS=all (make check-faults) each place is met by both workers of a role; else every second
place is met, by one of them.
"""

import itertools
import os
import random

from harness import ALL, some, train, words
from sweeps import killed, rows_of

EVERY_DIVISION = [{'shards': shards, 'replicas': replicas, 'threads': threads}
                  for shards in (1, 2) for replicas in (1, 3) for threads in (1, 2)]
PAIRS_OF_VALUES = [EVERY_DIVISION[i] for i in (0, 3, 5, 6)]
HOSTS = ['127.0.0.1', '127.0.0.2:2', '127.0.0.3']
EVERYTHING = os.environ.get('DML_BITS') == 'all'
DIVISIONS = EVERY_DIVISION if EVERYTHING else PAIRS_OF_VALUES
others = itertools.cycle(PAIRS_OF_VALUES[1:])


def one_model(job, check, *arguments):
    """However the work is divided; `check` is asked of each result."""
    models = {}
    for divided in EVERY_DIVISION if EVERYTHING else (PAIRS_OF_VALUES[0], next(others)):
        result = train(job, '--fresh', *arguments, *words(divided))
        check(result)
        models.setdefault(result['model_sha256'], []).append(divided)
    assert len(models) == 1, models


def one_model_however_handed_out(job):
    """However much is handed out and flushed at a time."""
    models = {train(job, '--fresh', '--set', f'portion_chunks={chunks}', '--set',
                    f'flush_ms={flush}')['model_sha256']
              for chunks, flush in ((0, 1000), (1, 1), (2, 5), (50, 1000))[:4 if EVERYTHING else 2]}
    assert len(models) == 1, models


def write_weights(path, rows):
    """Weights of rows far apart, some of them 0."""
    rng = random.Random(4)
    path.write_text(''.join(f'{rng.choice([0, 0.01, 1, 7])}\n' for _ in range(rows)))


def on_hosts(folder, job_of, check):
    """Replicas fetch a part of the point, or of a vector of rows, from shards on other hosts."""
    common = {'max_steps': 6, 'threads': 1}
    here = train(job_of(folder, shards=2, replicas=3, **common))
    check(here)
    for shards in 1, 3:
        there = train(job_of(folder, shards=shards, hosts=HOSTS, launch='env DML_HOST=%h',
                             **common), '--fresh')
        assert (there['replicas'], there['shards']) == (3, shards), there
        assert there['model_sha256'] == here['model_sha256'], (shards, there, here)


def by_turns(role, *places):
    """Rules for one of the two workers of a role at each place, or for both."""
    return [f'{role}{worker}.{place}' for number, place in enumerate(places)
            for worker in ((0, 1) if ALL else (number // 2 % 2,))]


def survives(folder, job, check, *rules):
    """With each of these rules for failpoints of workers the model is that of a quiet run."""
    expected = train(job, '--state', folder / 'quiet')
    check(expected)
    for number, rule in enumerate(some(rules, 2)):
        state, fired = folder / f'{number}.state', folder / f'{number}.fired'
        result = train(job, '--state', state, DML_FAILPOINT=f'{rule}:kill',
                       DML_FAILPOINT_ONCE=str(fired))
        assert (folder / f'{number}.fired.0').exists(), f'{rule} was never met'
        assert result['model_sha256'] == expected['model_sha256'], f'{rule}: another model'


def survives_its_coordinators(folder, job, *places):
    expected = train(job, '--state', folder / 'quiet')
    for place in some(places, 2):
        state = folder / f'{place}.state'
        killed('run', job, place, '--state', state)
        result = train(job, '--state', state)
        assert result['model_sha256'] == expected['model_sha256'], f'{place}: another model'


def has_one_path(folder, job):
    """A sweep gives the same models on other workers."""
    found = []
    for divided in {'shards': 1, 'replicas': 1, 'threads': 2}, {'shards': 2, 'replicas': 3}:
        state = folder / f'{divided["shards"]}.state'
        found.append((train(job, '--state', state, *words(divided))['model_sha256'],
                      rows_of(state, 'SELECT DISTINCT r.member, m.sha256 FROM runs r JOIN models m '
                                     'USING (run) ORDER BY r.member')))
    assert found[0] == found[1] and len(found[0][1]) >= 6, found


def has_the_bits_of_a_device(job):
    models = {device: train(job, '--fresh', '--set', f'device={device}')['model_sha256']
              for device in ('cpu', 'emulated')}
    assert len(set(models.values())) == 1, models


def goes_on_from_a_model(folder, job):
    """A run that starts from the model of another one is soon where that one ended."""
    cold = train(job)
    warm = train(job, '--start', cold['model'], '--state', folder / 'warm')
    assert warm['start'] and warm['steps'] < cold['steps'] / 4, (cold, warm)
    assert abs(warm['loss'] - cold['loss']) <= 1e-9 * cold['loss'], (cold, warm)


def goes_on_from_its_limit(folder, job_of):
    """A run whose step limit is raised ends where one ends that had the higher limit at once."""
    whole = train(job_of(folder, max_steps=14), '--state', folder / 'whole')
    job = job_of(folder, max_steps=7)
    state = folder / 'parts'
    train(job, '--state', state)
    longer = train(job, '--state', state, '--set', 'max_steps=14')
    assert longer['steps'] == whole['steps'] == 14, (longer, whole)
    assert abs(longer['loss'] - whole['loss']) <= 1e-6 * whole['loss'], (longer, whole)


def check_stop(result, rows):
    best = result['early_stopping']
    assert result['strips'] > 1 and result['reason'] == 'early stopping', result
    assert 0 < best['best_step'] < result['steps'], result
    assert result['examples'] + result['holdout']['examples'] == rows, result


def stops_early(job, rows, *arguments):
    """At the loss, and the accuracy, that the best point has on the holdout."""
    result = train(job, '--fresh', *arguments)
    check_stop(result, rows)
    best, scored = result['early_stopping'], result['holdout']
    assert abs(best['holdout_loss'] - scored['loss']) <= 1e-12 * scored['loss'], result
    accuracy = best['holdout_accuracy']
    assert (accuracy is None if 'accuracy' not in scored else
            abs(accuracy - scored['accuracy']) <= 1e-12), result


def steps_like_whole_rows(folder, job, width, count, *arguments, figures='loss, gradient_max'):
    """The first steps are those of whole rows, but for rounding."""
    steps = []
    for columns in width, 0:
        state = folder / f'{columns}.state'
        result = train(job, '--state', state, '--set', f'strip_columns={columns}', *arguments)
        assert (result['strips'] > 1) == (columns > 0), result
        steps.append(rows_of(state, f'SELECT {figures}, holdout_loss, holdout_accuracy '
                                    f'FROM steps WHERE step <= {count} ORDER BY step'))
    assert len(steps[0]) == len(steps[1]) == count + 1, steps
    for tiles, whole in zip(*steps):
        for a, b in zip(tiles, whole):
            assert a == b or abs(a - b) <= 1e-9 * abs(b), steps
