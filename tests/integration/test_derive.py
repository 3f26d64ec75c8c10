#!/usr/bin/env python3
"""`publish --set threshold=...`: the model of a finished run with another threshold, which goes live."""

import json
import os
import re
import shutil
import signal
import sys

from harness import (BAD_DATA, COORDINATOR, UNAVAILABLE, USAGE, Process, dml, main, small_data, small_job, some, test,
                     train, write_job)
from nightly import Nights
from responses import labels_of, made_job
from sweeps import killed, rows_of


def model_of(state, run):
    """model.json without what differs from run to run."""
    details = json.loads((state / f'models/{run}/model.json').read_text())
    details.pop('json_sha256')
    for name in 'run', 'seconds', 'derived', 'published':
        details['result'].pop(name, None)
    return details


def listed(state):
    return dml('jobs', state, '--json').json['folders'][0]['runs']


def live(state):
    return int(os.readlink(state / 'models/current'))


def publish(*arguments, **environment):
    return dml('publish', *arguments, **environment)


@test
def the_model_is_the_one_that_a_training_with_this_threshold_makes(folder):
    for name, holdout in ('file', ['held']), ('files', ['held', 'n?w']), ('share', 0.3):
        job = made_job(folder, name, holdout=holdout, cost={'false_positive': 1, 'false_negative': 5},
                       class_weight=['1 = 2'])
        state = folder / f'{name}.state'
        train(job)
        tensors = (state / 'models/1/model.safetensors').read_bytes()
        for rule in '0.3', 'cost', 'precision >= 0.8', 'auto', 'f1':
            setting = ('--set', f'threshold={rule}')
            finished = publish('1', state, '--json', *setting)
            assert finished.status == 0, finished
            made = finished.json['run']
            trained = train(job, *setting, '--fresh')
            assert model_of(state, made) == model_of(state, trained['run']), (name, rule)
            assert (state / f'models/{made}/model.safetensors').read_bytes() == tensors
            if rule == 'auto':
                assert made == 1 and 'derived' not in finished.json, finished.json
                continue
            assert finished.json['threshold'] == trained['threshold'], finished.json
            assert finished.json['derived'] == {'run': 1, 'set': {'threshold': rule}}, finished.json
            labels = [dml('predict', state / f'models/{run}', folder / 'new', '--labels').stdout
                      for run in (made, trained['run'])]
            assert labels[0] == labels[1] and len(labels[0].split()) == len(labels_of(folder / 'new'))


@test
def costs_calibration_and_several_classes_are_those_of_the_run(folder):
    job = made_job(folder, calibrate='platt')
    train(job)
    settings = ('--set', 'threshold=cost', '--set', 'cost.false_negative=7', '--set', 'cost.false_positive=2')
    made = publish('1', job, '--json', *settings)
    assert made.status == 0 and made.json['derived']['set'] == {
        'threshold': 'cost', 'cost.false_negative': 7, 'cost.false_positive': 2}, made
    trained = train(job, '--fresh', *settings)
    assert model_of(folder / 'job.state', 2) == model_of(folder / 'job.state', trained['run'])
    lists = folder / 'lists'
    lists.mkdir()
    (lists / 'rows').write_text(''.join(
        f'{",".join(["1"] * (k % 3 > 0) + ["2"] * (k % 5 > 2)) or 3} 1:{k % 3} 2:{k % 5} 3:{k % 7}\n'
        for k in range(300)))
    job = write_job(lists, data=['rows'], objective='multilabel', holdout=0.3, l2=1e-3)
    train(job)
    made = publish('1', job, '--json', '--set', 'threshold=f1')
    trained = train(job, '--fresh', '--set', 'threshold=f1')
    assert made.json['threshold'] == trained['threshold'], made
    assert model_of(lists / 'job.state', 2) == model_of(lists / 'job.state', 3)


@test
def the_record_says_how_the_model_came_about_and_a_rollback_goes_back(folder):
    job, state = small_job(folder, holdout=0.3, on_publish=f'echo $DML_KIND $DML_RUN >> {folder}/told'), \
        folder / 'job.state'
    train(job)
    made = publish('1', state, '--set', 'threshold=0.2', '--tag', 'wide')
    assert made.status == 0 and 'run 2 is the model of run 1 with threshold = 0.2: 0.2\non the holdout: accuracy' \
        in made.stdout, made
    assert 'the model of run 2 is live, in place of run 1' in made.stdout and 'job file' in made.stderr, made
    first, second = listed(state)
    assert second['derived'] == {'run': 1, 'set': {'threshold': '0.2'}} and first['derived'] is None, second
    assert second['changed'] == {'threshold': {'from': 'auto', 'to': '0.2'}} and second['tag'] == 'wide', second
    assert second['holdout']['threshold'] == 0.2 and second['holdout']['rows'] == first['holdout']['rows']
    assert [second[name] for name in ('loss', 'steps', 'reason', 'model_sha256')] == [
        first[name] for name in ('loss', 'steps', 'reason', 'model_sha256')], second
    assert '      the model of run 1 with threshold = 0.2: 0.2\n' in dml('jobs', state).stdout
    status = dml('status', state, '--json').json
    assert (status['run'], status['derived'], status['publication']) == (2, second['derived'], 'live'), status
    assert rows_of(state, 'SELECT command, start_run FROM runs WHERE run = 2') == [('publish', 1)]
    assert rows_of(state, 'SELECT text FROM publications WHERE run = 2') == [
        ('by `publish`, the model of run 1 with threshold = 0.2',)]
    again = publish('1', state, '--set', 'threshold=0.2')
    assert 'the model of run 2 was live already' in again.stdout and len(listed(state)) == 2, again
    assert dml('rollback', state).status == 0 and live(state) == 1
    assert dml('rollback', state).status == UNAVAILABLE, 'nothing was live before run 1'
    assert publish('1', state, '--set', 'threshold=0.2').status == 0 and (live(state), len(listed(state))) == (2, 2)
    assert (folder / 'told').read_text().split('\n')[-2] == 'published 2'
    twice = publish('wide', state, '--set', 'threshold=auto', '--json').json
    assert twice['run'] == 3 and twice['threshold'] is None, twice
    assert model_of(state, 3) == model_of(state, 1)
    train(job, '--set', 'l2=0.1')
    assert publish('1', state, '--set', 'threshold=0.7').status == 0
    assert listed(state)[-1]['changed'] == {'threshold': {'from': 'auto', 'to': '0.7'}}, 'not against the run before'


@test
def killed_at_any_place_it_is_completed_by_the_same_command(folder):
    job = small_job(folder, holdout=0.3, on_publish='true')
    train(job)
    dml('run', job, '--no-publish', '--set', 'l2=0.1')
    origin, settings = folder / 'job.state', ('--set', 'threshold=f1')

    def copy(name):
        shutil.copytree(origin, folder / name, symlinks=True)
        return folder / name
    quiet, log = copy('quiet'), folder / 'log'
    assert publish('2', quiet, *settings, DML_FAILPOINT_LOG=str(log)).status == 0
    expected = [(run['run'], run['publication'], run['derived']) for run in listed(quiet)]
    assert [each[:2] for each in expected] == [(1, 'published'), (2, 'kept'), (3, 'live')], expected
    places = re.findall(r'^coordinator\d*\.(\w+)$', log.read_text(), re.M)
    assert {'derived_model', 'derived_run', 'publish_decided', 'model_linked', 'publish_announced'} <= set(places)
    visits = [(place, visit) for place in places for visit in (1, 2, 3)]
    for place, visit in visits if os.environ.get('DML_FAULTS') == 'all' else (
            [(place, 1) for place in places] + some([each for each in visits if each[1] > 1], every=4)):
        state = copy('killed')
        process = Process(COORDINATOR, 'publish', '2', state, *settings,
                          DML_FAILPOINT=f'coordinator.{place}:{visit}:kill')
        status = process.wait().status
        assert status in (0, -signal.SIGKILL), (place, visit)
        again = publish('2', state, *settings)
        assert again.status == 0 and 'run 3 is live' in again.stdout or 'run 3 was live already' in again.stdout, again
        found = [(run['run'], run['publication'], run['derived']) for run in listed(state)]
        assert found == expected, (place, visit, found)
        assert model_of(state, 3) == model_of(quiet, 3), (place, visit)
        names = sorted(path.name for path in (state / 'models').iterdir() if '.tmp.' not in path.name)
        assert names == ['1', '2', '3', 'current'], (place, visit, names)
        assert dml('rollback', state).status == 0 and live(state) == 1, (place, visit)
        shutil.rmtree(state)


@test
def what_would_change_a_parameter_or_has_no_threshold_is_refused(folder):
    job, state = small_job(folder, holdout=0.3), folder / 'job.state'
    train(job)
    small_data(folder, 'other.libsvm', rows=90)
    numbers = write_job(folder, 'numbers', data=['other.libsvm'], objective='squared')
    train(numbers)
    plain = write_job(folder, 'plain', data=['other.libsvm'])
    train(plain)
    for place, setting, status, words in (
            (state, 'l2=1', USAGE, '`publish` trains nothing'),
            (job, 'calibrate=platt', USAGE, 'threshold, cost.false_positive and cost.false_negative'),
            (job, 'data=other.libsvm', USAGE, '`run JOBFILE --set ...`'),
            (state, 'threshold=1.5', USAGE, 'a probability from 0 to 1'),
            (folder / 'numbers.state', 'threshold=0.3', USAGE, 'objective squared'),
            (folder / 'plain.state', 'threshold=f1', USAGE, 'no holdout')):
        finished = publish('1', place, '--set', setting)
        assert finished.status == status and words in finished.stderr, finished
    no_cost = publish('1', state, *(word for key in ('false_positive', 'false_negative')
                                    for word in ('--set', f'cost.{key}=0')), '--set', 'threshold=cost')
    assert no_cost.status == USAGE and 'both costs are 0' in no_cost.stderr, no_cost
    kept = publish('1', state, '--no-publish', '--tag', 'a', '--set', 'threshold=0.3')
    assert kept.status == USAGE and '--no-publish' in kept.stderr, kept
    gone = publish('7', state, '--set', 'threshold=0.3')
    assert gone.status == UNAVAILABLE and 'run 7' in gone.stderr, gone
    assert len(listed(state)) == 1 and publish('1', folder / 'plain.state', '--set', 'threshold=0.3').status == 0


@test
def without_the_rows_a_number_is_set_and_figures_that_depend_on_it_are_left_out(folder):
    job, state = small_job(folder, holdout=0.3, test=['small.libsvm']), folder / 'job.state'
    train(job)
    shutil.rmtree(state / 'packs')
    rule = publish('1', state, '--set', 'threshold=f1')
    assert rule.status == UNAVAILABLE and 'set a probability' in rule.stderr and len(listed(state)) == 1, rule
    made = publish('1', state, '--set', 'threshold=0.3')
    assert made.status == 0 and 'are left out' in made.stderr and live(state) == 2, made
    first, second = listed(state)
    for over in 'holdout', 'test':
        assert 'accuracy' in first[over] and 'accuracy' not in second[over], second
        assert first[over]['auc'] == second[over]['auc'], second
    labels = dml('predict', state, folder / 'small.libsvm', '--labels').stdout.split()
    chances = [float(line) for line in dml('predict', state, folder / 'small.libsvm').stdout.split()]
    assert labels == ['1' if chance >= 0.3 else '-1' for chance in chances]


@test
def a_model_that_the_gate_refused_needs_force_and_nights_go_on_from_the_one_that_is_live(folder):
    nights = Nights(folder, gate=['accuracy >= 0.7'])
    nights.good_nights(1)
    nights.add(2, rows=3000, mislabelled=True)
    assert nights.retrain().status == BAD_DATA
    refused = publish('2', nights.state, '--set', 'threshold=0.4')
    assert refused.status == BAD_DATA and 'the gate refused run 2' in refused.stderr and len(nights.runs()) == 2
    assert publish('2', nights.state, '--set', 'threshold=0.4', '--force').status == 0 and nights.live() == 3
    assert publish('1', nights.state, '--set', 'threshold=0.4').status == 0 and nights.live() == 4
    (nights.inbox / '02.libsvm').unlink()
    nights.add(5)
    result = nights.good()
    assert result['start'] == {'model_sha256': nights.runs()[0]['model_sha256'], 'run': 4}, result
    assert nights.live() == 5 and 'threshold' not in result, result
    assert dml('rollback', nights.state).status == 0 and nights.live() == 4
    assert 'no new data' in nights.retrain().stdout and nights.live() == 4


@test
def a_run_whose_decision_was_cut_off_is_not_published_over_its_own_threshold(folder):
    job, state = small_job(folder, holdout=0.3), folder / 'job.state'
    killed('run', job, 'run_ended:1')
    assert publish('1', state, '--set', 'threshold=0.3').status == 0 and live(state) == 2
    for command in 'retrain', 'run':
        finished = dml(command, job)
        assert finished.status == 0 and live(state) == 2, finished
    assert [run['publication'] for run in listed(state)][:2] == ['kept', 'live']


if __name__ == '__main__':
    sys.exit(main())
