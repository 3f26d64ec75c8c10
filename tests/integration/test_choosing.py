#!/usr/bin/env python3
"""Choosing among the runs of a sweep: grids of l1 and l2, figures that decide, and one standard
error."""

import math
import os
import random
import re
import signal
import statistics
import sys

from harness import AGAIN, CONFIG, COORDINATOR, Process, dml, main, some, test, train, write_job
from sweeps import killed, rows_of, table_of, write_rows

L1, L2, FOLDS = [0.1, 0.03, 0.01], [0.1, 0.001], 3
GRID = [(l1, l2) for l1 in L1 for l2 in L2]
ONE_SE = '--set', 'choose=one_se', '--set', 'choose_by=auc'

# By scikit-learn 1.9.1 on the rows of grid_job() without those of each fold, whose hash says which
# they are: LogisticRegression(penalty='elasticnet', solver='saga', tol=1e-13, l1_ratio=l1/(l1+l2),
# C=1/(rows*(l1+l2))), log_loss, roc_auc_score and accuracy_score on the rows of the fold.
REFERENCE = {
    (0.1, 0.1): {'loss': [0.5824427, 0.5661295, 0.5606335],
                 'auc': [0.8162698, 0.861485, 0.8325775],
                 'accuracy': [0.6633663, 0.7604167, 0.7184466]},
    (0.1, 0.001): {'loss': [0.5539495, 0.5289918, 0.5217589],
                   'auc': [0.8162698, 0.8601824, 0.8378685],
                   'accuracy': [0.6732673, 0.7708333, 0.7184466]},
    (0.03, 0.1): {'loss': [0.5007977, 0.4958656, 0.4917631],
                  'auc': [0.8968254, 0.8983934, 0.8582766],
                  'accuracy': [0.7623762, 0.8333333, 0.7961165]},
    (0.03, 0.001): {'loss': [0.4398604, 0.4358261, 0.4604558],
                    'auc': [0.9, 0.8914459, 0.8590325],
                    'accuracy': [0.7821782, 0.8229167, 0.776699]},
    (0.01, 0.1): {'loss': [0.4751294, 0.4697504, 0.4732468],
                  'auc': [0.9099206, 0.9161963, 0.8628118],
                  'accuracy': [0.8217822, 0.8333333, 0.815534]},
    (0.01, 0.001): {'loss': [0.4101896, 0.399677, 0.4735965],
                    'auc': [0.9079365, 0.9122883, 0.8654573],
                    'accuracy': [0.8019802, 0.8229167, 0.8058252]},
}

# PoissonRegressor(alpha=l2, solver='newton-cholesky', tol=1e-12) of the same version, and half of
# mean_poisson_deviance.
POISSON = {1: [0.7569197, 0.7132929, 0.6154426],
           0.1: [0.6823756, 0.7583947, 0.5740811],
           0.01: [0.6733785, 0.7750434, 0.5739627]}


def grid_job(folder, **settings):
    if not (folder / 'rows.libsvm').exists():
        write_rows(folder / 'rows.libsvm', 300, 1, features=8)
    return write_job(folder, **{'data': ['rows.libsvm'], 'l1': L1, 'l2': L2, 'folds': FOLDS,
                                'shards': 1, **settings})


def write_counts(path, rows=240):
    rng = random.Random(5)
    with open(path, 'w') as file:
        for _ in range(rows):
            values = [round(rng.gauss(0, 1), 3) for _ in range(4)]
            mean = math.exp(0.4 * values[0] - 0.3 * values[1] + 0.2)
            count, time = 0, rng.expovariate(1)
            while time < mean:
                count, time = count + 1, time + rng.expovariate(1)
            file.write(f'{count} ' + ' '.join(f'{j}:{v!r}' for j, v in enumerate(values, 1)) + '\n')


def oracle(scores, higher, one_se):
    """The place of the value that is chosen, and of the best, by the rule's definition."""
    cost = [(-1 if higher else 1) * statistics.mean(folds) for folds in scores]
    best = min(range(len(cost)), key=lambda i: (cost[i], i))
    error = statistics.stdev(scores[best]) / math.sqrt(len(scores[best]))
    near = [i for i in range(len(cost)) if cost[i] <= cost[best] + error]
    return (near[0] if one_se else best), best


# ---- what it chooses ----

@test
def a_grid_is_scored_as_scikit_learn_scores_it_and_each_rule_chooses_by_its_definition(folder):
    job = grid_job(folder, gradient_tolerance=1e-9, loss_tolerance=0)
    picked = set()
    for by in 'loss', 'auc', 'accuracy':
        for choose in 'best', 'one_se':
            result = train(job, '--set', f'choose_by={by}', '--set', f'choose={choose}')
            path, chosen = result['path'], result['chosen']
            assert [(row['l1'], row['l2']) for row in path] == GRID, path
            for row, value in zip(path, GRID):
                got, expected = row['score'], REFERENCE[value][by]
                assert all(abs(a - b) < 2e-6 for a, b in zip(got['folds'], expected)), (by, row)
                assert math.isclose(got['mean'], statistics.mean(got['folds']), rel_tol=1e-12)
                assert math.isclose(got['standard_error'], rel_tol=1e-9, b=statistics.stdev(
                    got['folds']) / math.sqrt(FOLDS)), row
            place, best = oracle([REFERENCE[value][by] for value in GRID], by != 'loss',
                                 choose == 'one_se')
            assert [row['chosen'] for row in path] == [i == place for i in range(6)], (by, choose)
            assert (chosen['l1'], chosen['l2']) == GRID[place] and \
                chosen['run'] == result['run'] == path[place]['run'] and \
                chosen['best_run'] == path[best]['run'], chosen
            assert (chosen['choose'], chosen['choose_by']) == (choose, by), chosen
            assert (chosen['mean'], chosen['nonzero']) == \
                (path[place]['score']['mean'], path[place]['nonzero']), chosen
            picked.add((by, choose, place))
    assert len({place for _, _, place in picked}) > 2, f'the rules do not differ: {picked}'
    assert rows_of(folder / 'job.state', 'SELECT count(*), max(sweep) FROM runs') == [(24, 1)]


@test
def counts_are_chosen_by_their_deviance(folder):
    write_counts(folder / 'counts.libsvm')
    job = write_job(folder, data=['counts.libsvm'], objective='poisson', l2=list(POISSON),
                    folds=FOLDS, choose_by='deviance', gradient_tolerance=1e-9, loss_tolerance=0)
    path = train(job)['path']
    for row, expected in zip(path, POISSON.values()):
        assert all(abs(a - b) < 1e-6 for a, b in zip(row['score']['folds'], expected)), row
    assert [row['l2'] for row in path if row['chosen']] == [0.1], path


@test
def another_rule_chooses_among_the_same_models_without_training(folder):
    job = grid_job(folder)
    first = train(job)
    finished = dml('run', job, '--json', '--publish', *ONE_SE)
    second = finished.json
    assert 'sweep 1 has ended; another of its models may be chosen now' in finished.stderr
    assert first['run'] != second['run'] == second['chosen']['run'], second
    assert [row['model_sha256'] for row in first['path']] == \
        [row['model_sha256'] for row in second['path']]
    state = folder / 'job.state'
    assert os.readlink(state / 'models/current') == str(second['run'])
    assert rows_of(state, 'SELECT count(*) FROM runs') == [(24,)]
    assert train(job, *ONE_SE)['sweep']['number'] == 2, 'nothing was left to do'


@test
def a_live_model_that_another_rule_chooses_again_stays_live_without_a_decision(folder):
    job, state = grid_job(folder), folder / 'job.state'
    first = train(job)
    for options in ['--set', 'choose_by=brier'], ['--publish']:
        again = dml('run', job, '--json', *options).json
        assert again['run'] == first['run'] and again['live'] == first['model'], again
        assert (again['published'], again['decision']) == (True, 'published'), again
    assert rows_of(state, 'SELECT kind FROM publications') == [('published',)]
    runs = dml('jobs', state, '--json').json['folders'][0]['runs']
    assert [run['run'] for run in runs if run['publication'] == 'live'] == [first['run']], runs


@test
def without_folds_the_figure_is_that_of_the_holdout(folder):
    path = train(grid_job(folder, folds='off', holdout='0.3', choose_by='brier'))['path']
    scores = [row['score'] for row in path]
    assert all(score['folds'] == [] and score['standard_error'] is None for score in scores)
    assert [score['mean'] for score in scores] == [row['holdout']['brier'] for row in path]
    best = min(range(6), key=lambda i: scores[i]['mean'])
    assert [row['chosen'] for row in path] == [i == best for i in range(6)], path


@test
def a_figure_that_no_value_has_leaves_the_choice_to_the_loss(folder):
    write_rows(folder / 'rows.libsvm', 300, 1, features=8)
    rows = (folder / 'rows.libsvm').read_text().splitlines()
    positive = [row for row in rows if row.startswith('1')][:40]
    (folder / 'held.libsvm').write_text('\n'.join([*positive, '']))
    (folder / 'rows.libsvm').write_text('\n'.join([*(r for r in rows if r not in positive), '']))
    job = grid_job(folder, folds='off', holdout=['held.libsvm'], choose_by='auc')
    finished = dml('run', job, '--json')
    assert 'no value has the figure auc on the holdout, so loss decides' in finished.stderr
    losses = [row['holdout_loss'] for row in finished.json['path']]
    chosen = finished.json['chosen']
    assert chosen['choose_by'] == 'loss' and chosen['mean'] == min(losses), finished.json
    again = dml('run', job, '--json', '--fresh', '--set', 'choose_by=loss')
    assert again.json['chosen']['l1'] == chosen['l1'], again.json


# ---- the order of a grid, kills and workers ----

@test
def each_value_of_a_grid_starts_from_its_neighbour_in_fewer_evaluations(folder):
    write_rows(folder / 'rows.libsvm', 600, 1, features=30, decades=1)
    few = {'folds': 'off', 'holdout': '0.2', 'gradient_tolerance': 1e-8, 'loss_tolerance': 0}
    result = train(grid_job(folder, **few))
    starts = rows_of(folder / 'job.state', 'SELECT member, start_run FROM runs ORDER BY run')
    assert starts == [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 5)], starts
    alone = [train(grid_job(folder, l1=l1, l2=l2, **few), '--state', folder / f'{l1}.{l2}.state')
             for l1, l2 in GRID]
    assert all(abs(row['loss'] - single['loss']) < 1e-10
               for row, single in zip(result['path'], alone)), result['path']
    cold = sum(single['evaluations'] for single in alone)
    assert result['sweep']['evaluations'] < cold, (result['sweep'], cold)


KILLS = ['sweep_begun:1', 'run_ended:1', 'run_ended:2', 'run_ended:4', 'run_ended:6',
         'run_ended:7', 'run_ended:15', 'run_ended:24', 'start_written:3', 'start_written:11',
         'sweep_ended:1', 'publish_decided:1', 'store_committed_full:40']


@test
def a_grid_that_was_killed_anywhere_chooses_what_the_quiet_one_chose(folder):
    job = grid_job(folder, choose='one_se', choose_by='auc')
    expected = train(job, '--state', folder / 'quiet.state')
    for kill in some(KILLS):
        state = folder / f'{kill}.state'
        killed('run', job, kill, '--state', state)
        result = train(job, '--state', state)
        assert table_of(result) == table_of(expected), (kill, result['path'])
        assert result['model_sha256'] == expected['model_sha256'], kill
        assert len(rows_of(state, 'SELECT run FROM runs')) == 24, kill


@test
def a_choice_that_was_killed_is_made_by_the_same_command(folder):
    job = grid_job(folder)
    for kill in 'sweep_ended:1', 'publish_decided:1':
        state = folder / f'{kill}.state'
        first = train(job, '--state', state)
        killed('run', job, kill, '--publish', '--state', state, *ONE_SE)
        second = train(job, '--state', state, *ONE_SE)
        assert second['run'] != first['run'] and second['sweep']['number'] == 1, (kill, second)
        assert os.readlink(state / 'models/current') == str(second['run']), kill


@test
def a_run_that_is_chosen_again_stays_live(folder):
    job = grid_job(folder)
    first = train(job)
    for options in [], ['--no-publish'], ['--set', 'publish=never'], ['--publish']:
        finished = dml('run', job, '--set', 'choose_by=log_loss', '--json', *options)
        again = finished.json
        assert again['run'] == first['run'] and again['published'], (options, again)
        assert 'to_publish' not in again and 'warning' not in finished.stderr, (options, finished)
        listed = dml('jobs', job, '--json').json['folders'][0]['runs']
        assert [run['publication'] for run in listed if run['run'] == first['run']] == ['live'], (options, listed)


@test
def workers_do_not_change_a_grid(folder):
    job = grid_job(folder, choose='one_se', choose_by='average_precision')
    expected = table_of(train(job))
    more = train(job, '--state', folder / 'more.state', '--set', 'replicas=3', '--set',
                 'threads=2', '--set', 'shards=2')
    assert table_of(more) == expected, more['path']


@test
def retrain_publishes_what_the_rule_chooses(folder):
    job = grid_job(folder, choose='one_se', choose_by='auc', holdout='0.2')
    result = dml('retrain', job, '--json').json
    assert result['published'] and result['run'] == result['chosen']['run'], result
    assert result['chosen']['run'] != result['chosen']['best_run'], result['chosen']


# ---- what is shown ----

@test
def jobs_status_and_report_have_the_table_also_of_a_sweep_under_way(folder):
    job = grid_job(folder, choose='one_se')
    killed('run', job, 'run_ended:8')
    partial = dml('status', job, '--json').json
    sweep = partial['sweep']
    assert (sweep['done'], sweep['runs'], sweep['member']) == (8, 24, 7), sweep
    assert len(sweep['path']) == 6 and partial['chosen'] is None, partial
    scores = sweep['path'][1]['score']
    assert scores['mean'] is None and scores['folds'][0] and scores['folds'][1:] == [None] * 2
    result = train(job)
    status = dml('status', job, '--json').json
    sweeps = dml('jobs', job, '--json').json['folders'][0]['sweeps']
    assert status['chosen'] == result['chosen'] == sweeps[0]['chosen'], status
    assert [row.pop('publication') for row in status['sweep']['path']].count('live') == 1
    assert [row.pop('publication') for row in sweeps[0]['path']].count('live') == 1
    assert status['sweep']['path'] == result['path'] == sweeps[0]['path'], status
    report = folder / 'report.html'
    assert dml('report', job, '-o', report).status == 0
    assert '"best_run":' in report.read_text().replace(': ', ':')
    text = dml('jobs', job).stdout
    assert f'chosen: run {result["run"]}, l1 = ' in text and 'std error' in text, text
    words = dml('status', job).stdout
    assert f'job run {result["run"]}: ended' in words and '; live' in words.splitlines()[0], words
    assert f'sweep 1: 24 runs\nchosen: run {result["run"]}, ' in words and 'std error' in words, words
    assert f' {result["run"]}*' in words and f' {result["run"]}*' in text.split('std error')[1], words


@test
def a_sweep_is_one_run_where_runs_are_listed_unless_folds_are_asked_for(folder):
    job = grid_job(folder, l1=0, l2=[1e-2, 1e-4, 1e-6])
    chosen = train(job)['run']
    other = train(job, '--set', 'l2=0.1', '--set', 'folds=off')['run']

    def listed(*options):
        table = dml('jobs', job, *options).stdout.split('\nsweep')[0]
        return [int(line[:4]) for line in table.splitlines()[2:] if line[:4].strip().isdigit()], table

    assert listed()[0] == [chosen, other], listed()
    assert 'more runs of sweeps: --folds lists them' in listed()[1], listed()
    assert listed('--folds')[0] == list(range(1, other + 1)) and 'fold 3' in listed('--folds')[1]
    assert dml('publish', str(4 - chosen) if chosen != 2 else '1', folder / 'job.state').status == 0
    assert len(listed()[0]) == 3, 'what is live is always listed'
    runs = dml('jobs', job, '--json', '--sort', 'loss').json['folders'][0]['runs']
    folds = [(run.get('sweep') or {}).get('fold', 0) > 0 for run in runs]
    assert folds == sorted(folds) and sum(folds) == other - 4, 'folds are not ranked'
    assert [run['run'] for run in runs if (run.get('sweep') or {}).get('chosen')] == [chosen]
    steps = [path for path in re.findall(r'steps\?since=0&run=(\d+)', dml('report', job).stdout)]
    assert sorted(map(int, steps)) == [1, 2, 3, other], steps


@test
def a_live_sweep_tells_how_far_it_is(folder):
    values = [0.9 ** i for i in range(60)]
    # Replicas pause, or all of it may be over before it is asked.
    process = Process(COORDINATOR, 'run', grid_job(folder, l1=0, l2=values), '--quiet', DML_SHUFFLE='1',
                      DML_PAUSE_US='5000')
    seen = []

    def answers():
        finished = dml('status', folder / 'job.state', '--json')
        status = finished.json if finished.status == 0 else {}
        if (status.get('sweep') or {}).get('done', 0) > 3 and status['state'] != 'ended':
            seen.append(status)
        return seen

    process.until(answers, 'it tells of the sweep')
    process.popen.send_signal(signal.SIGTERM)
    finished = process.wait()
    assert finished.status == AGAIN, finished
    process.end()
    sweep = seen[0]['sweep']
    assert sweep['runs'] == 240 and sweep['done'] in (sweep['member'], sweep['member'] + 1), sweep
    assert len(sweep['path']) == min(sweep['done'], 60) and seen[0]['chosen'] is None, sweep
    assert [row['l2'] for row in sweep['path']] == values[:len(sweep['path'])], sweep


@test
def a_run_of_no_sweep_has_none(folder):
    job = grid_job(folder, l1=0, l2=0.1, folds='off')
    train(job)
    status = dml('status', job, '--json').json
    assert status['sweep'] is None and status['chosen'] is None, status
    assert dml('jobs', job, '--json').json['folders'][0]['sweeps'] == []


@test
def the_short_result_shows_what_was_chosen_and_how_good_two_classes_are(folder):
    lines = dml('run', grid_job(folder, holdout='0.2', choose_by='auc')).stdout
    flat = ' '.join(lines.split())
    assert all(f', {name} 0.' in flat
               for name in ('accuracy', 'auc', 'f1', 'precision', 'recall', 'average_precision')), lines
    scored = [line for line in lines.splitlines() if line.startswith(('holdout', ' ' * 13))]
    assert len(scored) > 1 and max(map(len, scored)) <= 80, lines
    assert '\nchosen       run ' in lines and ' with a standard error of ' in lines, lines
    head = next(line for line in lines.splitlines() if line.split()[:1] == ['l2'])
    assert head.split() == ['l2', 'l1', 'nonzero', 'loss', 'auc', 'std', 'error', 'run', 'evals']


@test
def the_short_result_of_counts_has_their_deviance(folder):
    write_counts(folder / 'counts.libsvm')
    job = write_job(folder, data=['counts.libsvm'], objective='poisson', holdout='0.3')
    lines = dml('run', job).stdout
    assert ', deviance 0.' in ' '.join(lines.split()), lines


@test
def classes_are_printed_from_the_most_frequent_and_json_keeps_their_order(folder):
    rng = random.Random(3)
    labels = ['1'] * 20 + ['2'] * 60 + ['3'] * 20 + ['4'] * 100
    (folder / 'rows.libsvm').write_text(''.join(
        f'{label} {label}:1 9:{rng.random()!r}\n' for label in labels))
    train(write_job(folder, data=['rows.libsvm'], objective='softmax'))
    text = dml('evaluate', folder / 'job.state', folder / 'rows.libsvm').stdout
    listed = [line.split()[:2] for line in text.split('class ')[1].splitlines()[1:5]]
    assert listed == [['4', '100'], ['2', '60'], ['1', '20'], ['3', '20']], text
    figures = dml('evaluate', folder / 'job.state', folder / 'rows.libsvm', '--json').json
    assert [c['class'] for c in figures['classes']] == ['1', '2', '3', '4'], figures


# ---- bad input ----

@test
def what_cannot_be_chosen_by_is_refused_with_what_can(folder):
    job = grid_job(folder)
    for setting, why in (
            ('choose_by=rmse', 'key `choose_by`: "rmse": the objective does not have this figure; '
                               'figures of logistic: loss, log_loss, accuracy, precision'),
            ('choose_by=acuracy', 'did you mean `accuracy`?'),
            ('choose_by=coverage', 'key `choose_by`: "coverage" is not valid; allowed: a figure'),
            ('choose=one', 'allowed: best, one_se'),
            ('l1={ 0.1, 0.01, 0.1 }', 'key `l1`: 0.1 is given twice; allowed: once'),
            ('folds=off', 'key `l1`: a list of values needs rows to choose among their models')):
        finished = dml('check', job, '--set', setting)
        assert finished.status and why in finished.stderr, (setting, finished)
    finished = dml('check', job, '--set', 'choose=one_se', '--set', 'folds=off', '--set',
                   'holdout=0.2')
    assert finished.status == CONFIG and 'key `choose`: one_se needs folds' in finished.stderr
    assert 'figures of squared: loss, rmse, mae, r2' in dml(
        'check', job, '--set', 'objective=squared', '--set', 'choose_by=auc').stderr


@test
def the_figures_that_can_decide_are_completed(folder):
    words = dml('complete', '--', 'run', 'x.conf', '--set', 'choose_by=a').stdout.split()
    assert words == ['choose_by=accuracy', 'choose_by=auc', 'choose_by=average_precision'], words
    assert 'choose_by=coverage' not in dml('complete', '--', 'run', 'x.conf', '--set',
                                           'choose_by=').stdout


@test
def a_grid_that_is_too_large_is_refused(folder):
    values = [1 / (i + 1) for i in range(40)]
    finished = dml('check', grid_job(folder, l1=values, l2=values))
    assert finished.status == CONFIG, finished
    assert 'key `l1`: 40 values with 40 of `l2` are 1600 models; allowed: at most 1000' in \
        finished.stderr


@test
def keys_that_choose_nothing_are_warned_of(folder):
    finished = dml('check', grid_job(folder, l1=0, l2=0.1, folds='off', choose_by='auc'))
    assert finished.status == 0 and \
        'key `choose_by`: has no effect without a list of values or `folds`' in finished.stderr


if __name__ == '__main__':
    sys.exit(main())
