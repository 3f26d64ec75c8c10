#!/usr/bin/env python3
"""Errors of the columns that a job names: those of the inverse of all second derivatives, in models of
any size, with the same bits however the work is divided and whoever dies."""

import json
import math
import os
import random
import sys
from pathlib import Path

from divided import DIVISIONS
from harness import ALL, CONFIG, dml, main, test, train, words, write_job
from summaries import rows_of, write_csv
from sweeps import killed

LOSSES = ('squared', 'logistic', 'poisson', 'gamma', 'tweedie', 'softmax', 'one_vs_rest',
          'multilabel', 'proportional_odds')
LABELS = {'one_vs_rest': 'softmax', 'multilabel': 'softmax', 'proportional_odds': 'softmax'}


def job_of(folder, loss, **settings):
    rng = random.Random(3)
    rows = [{**row, 'shop': f's{rng.randrange(40)}'} for row in rows_of(LABELS.get(loss, loss), 300)]
    if loss == 'proportional_odds':
        rows = [{**row, 'y': ('red', 'green', 'blue').index(row['y'])} for row in rows]
    write_csv(folder / 'rows.csv', rows)
    own = {'multilabel': {'multilabel': {'separator': ';'}}}.get(loss, {})
    csv = {'label': 'y', **({'weight': 'w'} if loss in ('poisson', 'logistic') else {'skip': ['w']})}
    return write_job(folder, data=['rows.csv'], objective=loss, csv=csv, **own,
                     **{'summary': 'robust', 'summary_cluster': 'shop', **settings})


def table_of(result, *options):
    finished = dml('summary', result['model'], '--json', *options)
    assert finished.status == 0, finished
    table = json.loads(finished.stdout)
    return table, {(row.get('class', ''), row['name']): row for row in table['rows']}


def covariance_of(result):
    return json.loads((Path(result['model']) / 'summary.json').read_text())['covariance']


def near(found, expected, relative):
    return math.isclose(found, expected, rel_tol=relative, abs_tol=1e-9)


def assert_same(one, all_, members, relative):
    for key, row in one.items():
        other = all_[key]
        assert row.get('aliased') == other.get('aliased'), (key, row, other)
        assert row.get('reference') == other.get('reference'), (key, row, other)
        for member in members if 'aliased' not in row else ():
            assert near(row[member], other[member], relative), (key, member, row, other)


@test
def errors_are_those_of_the_inverse_for_every_loss(folder):
    penalties = {'l2': 0}, {'l2': 0.01, 'standardise': True}
    for number, loss in enumerate(LOSSES):
        for settings in penalties if ALL else penalties[number % 2:][:1]:
            job = job_of(folder, loss, **settings)
            whole = train(job, '--fresh')
            some = train(job_of(folder, loss, summary_columns=['*'], **settings), '--fresh')
            for options in [], ['--robust'], ['--cluster', 'shop']:
                (one, single), (two, every) = table_of(some, *options), table_of(whole, *options)
                assert set(single) == set(every), (loss, options, set(single) ^ set(every))
                # The inverse is of the very optimum, and this is of a point that is near. With l2
                # it knows the effective parameters, which are in dispersions and small samples.
                counted = settings['l2'] and (two['test'] == 't' or options[:1] == ['--cluster'])
                assert_same(single, every, ['error'], 5e-2 if counted else 1e-4)
                for key, row in single.items():
                    error = every[key].get('error', math.inf)
                    assert abs(row['estimate'] - every[key]['estimate']) < 0.02 * error, (loss, key)
                assert one.get('clusters') == two.get('clusters'), (one, two)
            distance = covariance_of(some)['distance']
            assert distance < 0.02, (loss, settings, distance)


@test
def errors_are_exact_where_the_point_is(folder):
    """The inverse at the same point: a run that makes no step."""
    for loss in 'logistic', 'softmax', 'gamma', 'proportional_odds':
        first = train(job_of(folder, loss, summary_columns=['x', 'region=*', '(intercept*']), '--fresh')
        whole = train(job_of(folder, loss), '--fresh', '--start', first['model'], '--set',
                      'max_steps=0')
        assert first['model_sha256'] == whole['model_sha256'], loss
        for options in [], ['--robust=HC1'], ['--cluster', 'shop']:
            (_, single), (_, every) = table_of(first, *options), table_of(whole, *options)
            assert {name for _, name in single} < {name for _, name in every}, single
            assert 'z' not in {name for _, name in single}, single
            assert_same(single, every, ['error', 'estimate', 'p', 'low'], 1e-6)


@test
def a_model_of_many_columns_has_the_errors_of_the_ones_named(folder):
    """Least squares over levels and x: that of x is of its differences from the means of levels."""
    rng = random.Random(9)
    levels, rows = 9000, 30000
    table = [(i % levels, 1000 + 3 * rng.random()) for i in range(rows)]
    table = [(level, x, 0.5 * x + level % 7 + rng.gauss(0, 1)) for level, x in table]
    lines = [f'{y!r} {1}:{x!r} {2 + level}:1\n' for level, x, y in table]
    (folder / 'rows').write_text(''.join(lines))
    job = write_job(folder, data=['rows'], objective='squared', intercept=False, l2=0,
                    summary='robust', summary_columns=['1'])
    result = train(job)
    of_level = {}
    for level, x, y in table:
        of_level.setdefault(level, []).append((x, y))
    means = {level: [math.fsum(c) / len(c) for c in zip(*cells)] for level, cells in of_level.items()}
    apart = [(x - means[level][0], y - means[level][1]) for level, x, y in table]
    square = math.fsum(x * x for x, _ in apart)
    slope = math.fsum(x * y for x, y in apart) / square
    rests = [y - slope * x for x, y in apart]
    dispersion = math.fsum(r * r for r in rests) / (rows - levels - 1)
    summary, named = table_of(result)
    assert list(named) == [('', '1')], named
    row = named['', '1']
    assert near(row['estimate'], slope, 1e-6), (row, slope)
    assert near(row['error'], math.sqrt(dispersion / square), 1e-8), (row, dispersion / square)
    assert summary['fit']['parameters'] == levels + 1, summary['fit']
    robust = math.sqrt(math.fsum((x * r) ** 2 for (x, _), r in zip(apart, rests))) / square
    row = table_of(result, '--robust')[1]['', '1']
    assert near(row['error'], robust, 1e-6), (row, robust)


@test
def the_bits_are_the_same_however_the_work_is_divided(folder):
    job = job_of(folder, 'poisson', summary_columns=['x', 'z', 'region=*'])
    found = {json.dumps(covariance_of(train(job, '--fresh', *words(divided))))
             for divided in [*DIVISIONS, {'shards': 3}]}
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        found.add(json.dumps(covariance_of(train(job, '--fresh'))))
    finally:
        os.sched_setaffinity(0, every)
    assert len(found) == 1, found


@test
def errors_outlive_coordinators_and_shards(folder):
    job = job_of(folder, 'poisson', summary_columns=['x', 'region=*'], checkpoint_seconds=0)
    expected = covariance_of(train(job, '--state', folder / 'quiet'))
    killed('run', job, 'single_errors:3', '--state', folder / 'c')
    assert covariance_of(train(job, '--state', folder / 'c')) == expected
    result = train(job, '--state', folder / 's', DML_FAILPOINT='shard0.receive_PROGRAM:6:kill',
                   DML_FAILPOINT_ONCE=str(folder / 'fired'))
    assert (folder / 'fired.0').exists() and covariance_of(result) == expected, result


@test
def what_follows_from_others_is_told(folder):
    rows = [{**row, 'twice': 2 * row['x'], 'seven': 7} for row in rows_of('logistic', 300)]
    write_csv(folder / 'rows.csv', rows)
    job = write_job(folder, data=['rows.csv'], objective='logistic', summary='model',
                    csv={'label': 'y', 'skip': ['w']}, summary_columns=['twice', 'z', 'seven'])
    table, named = table_of(train(job))
    assert named['', 'twice']['aliased'] and named['', 'z']['error'] > 0, named
    notes = ' '.join(table['notes'])
    assert '2 aliased: twice, seven' in notes and 'Shown are' in notes, notes
    text = dml('summary', folder / 'job.state').stdout
    assert all(len(line) <= 80 for line in text.splitlines()), text


@test
def what_follows_from_others_is_counted_as_by_the_inverse(folder):
    """Copies, constants, sums of columns, and a number that is a function of a category."""
    makers = {'twice': lambda row: 2 * row['x'], 'seven': lambda row: 7,
              'both': lambda row: row['x'] - 0.01 * row['z'],
              'code': lambda row: {'north': 1, 'south': 4, 'west': 5}[row['region']],
              'far': lambda row: 5000 + 3 * row['z'], 'none': lambda row: 0}
    rng = random.Random(8)
    for loss in LOSSES:
        for _ in range(3 if ALL else 1):
            chosen = rng.sample(list(makers), rng.randrange(1, 5))
            made = rows_of(LABELS.get(loss, loss), 300)
            if loss == 'proportional_odds':
                made = [{**row, 'y': ('red', 'green', 'blue').index(row['y'])} for row in made]
            write_csv(folder / 'rows.csv',
                      [{**row, **{name: makers[name](row) for name in chosen}} for row in made])
            own = {'multilabel': {'multilabel': {'separator': ';'}}}.get(loss, {})
            base = {'data': ['rows.csv'], 'objective': loss, 'summary': 'robust', 'l2': 0,
                    'csv': {'label': 'y', 'skip': ['w']}, **own}
            two, every = table_of(train(write_job(folder, **base), '--fresh'))
            one, single = table_of(train(write_job(folder, **base, summary_columns=['*']), '--fresh'))
            for member in 'parameters', 'freedom':
                assert one['fit'][member] == two['fit'][member], (loss, chosen, one['fit'], two['fit'])
            assert near(one['fit']['loss'], two['fit']['loss'], 1e-6), (loss, chosen, one['fit'], two['fit'])
            for key, row in single.items():
                other = every[key]
                assert row.get('aliased') == other.get('aliased'), (loss, chosen, key, row, other)
                if 'aliased' not in row:
                    assert near(row['error'], other['error'], 1e-3), (loss, chosen, key, row, other)
                    off = abs(row['estimate'] - other['estimate'])
                    assert off < 0.02 * other['error'], (loss, chosen, key, row, other)


@test
def a_column_for_each_text_beside_an_intercept_leaves_one_out_in_any_format(folder):
    rng = random.Random(2)
    (folder / 'rows').write_text(''.join(
        f'{rng.gauss(0, 1)!r} {1 + i % 7}:1 {8 + i % 3}:1 11:{rng.gauss(50, 1)!r}\n' for i in range(500)))
    result = train(write_job(folder, data=['rows'], objective='squared', l2=0, summary='model',
                             summary_columns=['11']))
    table, _ = table_of(result)
    assert table['fit']['parameters'] == 10 and table['fit']['freedom'] == 490, table['fit']


@test
def names_that_say_nothing_are_refused(folder):
    for settings, why in [({'summary_columns': ['nothing*']}, '"nothing*" fits no column'),
                          ({'summary_columns': ['x'], 'summary': 'none', 'summary_cluster': None},
                           'without `summary`'),
                          ({'summary_columns': ['x'], 'l1': 0.1}, 'with l1')]:
        settings = {key: value for key, value in settings.items() if value is not None}
        job = job_of(folder, 'logistic', **settings)
        if settings.get('summary') == 'none':
            job.write_text(job.read_text().replace('summary_cluster = "shop"', ''))
        said = dml('run', job)
        assert said.status == CONFIG and why in said.stderr, (settings, said)


if __name__ == '__main__':
    sys.exit(main())
