#!/usr/bin/env python3
"""Cross-validation: folds by the hash of a row, and sweeps with folds that were broken off."""

import math
import os
import random
import signal
import statistics
import sys

from harness import BAD_DATA, CONFIG, COORDINATOR, Process, dml, main, test, train, write_job
from row_hash import fold_of, row_hash
from sweeps import killed, rows_of, table_of, write_rows

VALUES = [0.3, 0.01, 0.0003]
FOLDS = 3
KILLS = 60 if os.environ.get('DML_FAULTS') == 'all' else 6


def fold_job(folder, **settings):
    if not (folder / 'rows.libsvm').exists():
        write_rows(folder / 'rows.libsvm', 300, 1, features=8)
    return write_job(folder, **{'data': ['rows.libsvm'], 'l2': VALUES, 'folds': FOLDS,
                                'precondition': 'none', 'shards': 1, **settings})


def hashes(state):
    """Of all models, by member; a member that was begun anew gives the same."""
    return rows_of(state, 'SELECT DISTINCT r.member, m.sha256 FROM runs r JOIN models m USING (run) '
                          'ORDER BY r.member')


# ---- what it gives ----

@test
def each_fold_evaluates_a_model_of_all_other_rows(folder):
    """The oracle trains and scores on files that were split by the documented hash."""
    exact = {'loss_tolerance': 0, 'gradient_tolerance': 1e-9}
    path = train(fold_job(folder, seed=7, **exact))['path']
    lines = (folder / 'rows.libsvm').read_text().splitlines()
    fold = [fold_of(row_hash(line), 7, FOLDS) for line in lines]
    for i in range(FOLDS):
        for name, part in ('in', True), ('out', False):
            (folder / f'{name}{i}.libsvm').write_text(''.join(
                f'{line}\n' for line, f in zip(lines, fold) if (f == i + 1) == part))
    for row in path:
        losses = []
        for i in range(FOLDS):
            job = write_job(folder, f'o{i}', data=[f'out{i}.libsvm'], test=[f'in{i}.libsvm'],
                            l2=row['l2'], **exact)
            result = train(job, '--state', folder / f'{i}.{row["l2"]}.state')
            losses.append(result['test']['loss'])
        got = row['folds']
        assert all(math.isclose(a, b, rel_tol=1e-7) for a, b in zip(got['losses'], losses)), row
        assert math.isclose(got['mean'], statistics.mean(got['losses']), rel_tol=1e-12), row
        assert math.isclose(got['deviation'], statistics.stdev(got['losses']), rel_tol=1e-9), row
    best = min(path, key=lambda row: row['folds']['mean'])
    assert [row['l2'] for row in path if row['chosen']] == [best['l2']]


@test
def the_winner_is_the_full_fit_and_nothing_is_left_of_the_folds(folder):
    job = fold_job(folder)
    assert '# 12 runs: 3 values of l2, each on all rows and without each of 3 folds' in \
        dml('check', job).stdout
    result = train(job)
    state = folder / 'job.state'
    assert result['examples'] == 300 and result['run'] <= 3, result
    assert result['sweep'] == {'number': 1, 'runs': 12, 'done': 12, 'folds': 3, 'choose': 'best',
                               'choose_by': 'loss', 'evaluations': result['sweep']['evaluations']}
    assert os.readlink(state / 'models/current') == str(result['run'])
    assert {path.name for path in (state / 'models').iterdir()} == {'1', '2', '3', 'current'}
    assert len(list((state / 'packs').glob('*.set'))) == 1
    assert rows_of(state, 'SELECT start_run FROM runs WHERE run > 3 ORDER BY run') == \
        [(1,), (2,), (3,)] * 3
    assert 'accuracy' in result['path'][0]['folds']['figures'], result


@test
def with_early_stopping_no_run_starts_where_its_holdout_was_trained_on(folder):
    """It would stay there: the rows of its fold are those that stop it."""
    job = fold_job(folder, holdout=['0.2'], early_stopping=2)
    path = train(job)['path']
    assert len({row['folds']['mean'] for row in path}) == len(VALUES), path
    write_rows(folder / 'rows.libsvm', 300, 2, features=8)
    again = dml('retrain', job, '--json')
    assert again.status in (0, BAD_DATA) and again.json['run'] > 12, again
    starts = rows_of(folder / 'job.state', "SELECT sweep, member, start_model > '' FROM runs ORDER BY run")
    assert starts == [(1, i, 0) for i in range(12)] + [(2, i, i < 3) for i in range(12)], starts


@test
def one_value_with_folds_reports_its_figures(folder):
    result = train(fold_job(folder, l2=0.01))
    assert len(result['path']) == 1 and result['path'][0]['chosen'], result
    assert len(result['path'][0]['folds']['losses']) == FOLDS and result['run'] == 1, result


@test
def rows_of_a_holdout_are_in_no_fold(folder):
    result = train(fold_job(folder, l2=0.01, holdout='0.4'))
    state = folder / 'job.state'
    counts = [count for (count,) in rows_of(
        state, "SELECT json_extract(result, '$.holdout.examples') FROM runs WHERE member > 0")]
    assert sum(counts) == result['examples'] and sum(counts) < 300, (counts, result['examples'])


@test
def other_seeds_give_other_folds(folder):
    losses = [train(fold_job(folder, l2=0.01, seed=seed), '--fresh')['path'][0]['folds']['losses']
              for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2], losses


@test
def more_folds_than_rows_are_refused_by_name(folder):
    write_rows(folder / 'rows.libsvm', 12, 1)
    finished = dml('run', fold_job(folder, folds=60))
    assert finished.status == BAD_DATA and 'of 60 has none of the 12 rows' in finished.stderr
    finished = dml('check', fold_job(folder, folds=1))
    assert finished.status == CONFIG and 'key `folds`' in finished.stderr, finished


# ---- sweeps that were broken off ----

@test
def a_cross_validation_killed_at_random_moments_gives_the_table_of_the_quiet_one(folder):
    job = fold_job(folder)
    expected = table_of(train(job, '--state', folder / 'quiet.state'))
    models = hashes(folder / 'quiet.state')
    seed = random.SystemRandom().randrange(10 ** 6)
    print(f'# seed {seed}', flush=True)
    rng = random.Random(seed)
    state, kills, result = folder / 'job.state', 0, None
    while kills < KILLS:
        commits = rng.randrange(1, 60)
        process = Process(COORDINATOR, 'run', job, '--json', DML_FAILPOINT=
                          f'coordinator.store_committed_full:{commits}:kill')
        finished = process.wait()
        process.end()
        assert finished.status in (0, -signal.SIGKILL), finished
        kills += finished.status != 0
        result = finished.json if finished.status == 0 else None
        if result:
            assert table_of(result) == expected, result['path']
    if not result:
        assert table_of(train(job)) == expected
    assert hashes(state) == models


@test
def a_class_that_one_fold_has_alone_is_told_before_training(folder):
    lines = [f'{i % 2} 1:{i}' for i in range(40)] + ['2 1:50', '2 1:50']
    (folder / 'rows.libsvm').write_text('\n'.join([*lines, '']))
    place = fold_of(row_hash('2 1:50'), 1, FOLDS)
    warned = dml('run', fold_job(folder, objective='softmax', l2=0.1))
    words = f'1 class has all rows in one fold: "2" in fold {place};'
    assert warned.status == 0 and warned.stderr.count(words) == 1, warned
    (folder / 'rows.csv').write_text('1,y\n' + ''.join(f'{i},n\n' for i in range(30)))
    binary = fold_job(folder, data=['rows.csv'], objective='logistic', l2=0.1,
                      csv={'header': 'no'})
    refused = dml('run', binary, '--state', folder / 'two.state')
    assert refused.status == BAD_DATA and 'all rows of class "y", 1, are in' in refused.stderr, refused
    assert 'sweep' not in refused.stderr and not rows_of(folder / 'two.state',
                                                         'SELECT run FROM runs'), refused
    (folder / 'rows.libsvm').write_text('\n'.join([*lines[:40], '']))
    fine = dml('run', fold_job(folder, l2=0.1), '--fresh')
    assert fine.status == 0 and 'in one fold' not in fine.stderr, fine


@test
def a_fold_that_is_cut_short_leaves_no_set_behind(folder):
    job = fold_job(folder)
    for visit in 5, 7, 12:
        killed('run', job, f'run_ended:{visit}')
        train(job)
        assert len(list((folder / 'job.state/packs').glob('*.set'))) == 1, visit
        kept = [path.name for path in (folder / 'job.state/models').iterdir()]
        assert len(kept) % 3 == 1, kept


if __name__ == '__main__':
    sys.exit(main())
