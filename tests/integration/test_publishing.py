#!/usr/bin/env python3
"""What `run` makes live and what it keeps, `publish`, and the tags of runs."""

import json
import os
import signal
import sys

from harness import (AGAIN, BAD_DATA, COORDINATOR, UNAVAILABLE, USAGE, Process, dml, endless_job, main,
                     small_job, test)
from nightly import Nights
from sweeps import killed, rows_of, write_rows


def live(folder):
    return int(os.readlink(folder / 'job.state/models/current'))


def decisions(folder):
    return rows_of(folder / 'job.state', 'SELECT kind, run, previous_run, settled_ms > 0 '
                                         'FROM publications ORDER BY publication')


def listed(folder):
    return dml('jobs', folder / 'job.state', '--json').json['folders'][0]['runs']


def publish(run, folder, *arguments, **environment):
    return dml('publish', run, folder / 'job.state', *arguments, **environment)


def make(job, *arguments, **options):
    """Trains, and leaves it to the command what becomes of the model."""
    finished = dml('run', job, '--json', *arguments, **options)
    assert finished.status == 0, finished
    return finished.json


# ---- run ----

@test
def the_first_model_goes_live_and_a_second_is_kept_until_it_is_published(folder):
    job = small_job(folder)
    first = make(job)
    assert first['published'] and first['live'] == first['model'], first
    finished = dml('run', job, '--json', '--set', 'l2=0.1')
    second = finished.json
    assert finished.status == 0 and second['decision'] == 'kept' and not second['published'], second
    assert second['live'] == first['model'] and live(folder) == 1, second
    assert 'run 2 is not live: run 1 is live' in finished.stderr, finished
    assert second['to_publish'] == f'dml-coordinator publish 2 {folder}/job.state', second
    assert [run['publication'] for run in listed(folder)] == ['live', 'kept']
    assert '- kept, not live' in dml('jobs', job).stdout
    assert 'kept and not live' in dml('retrain', job, '--set', 'l2=0.1').stdout
    made = publish('2', folder)
    assert made.status == 0 and 'run 2 is live, in place of run 1' in made.stdout, made
    assert live(folder) == 2 and dml('rollback', job).status == 0 and live(folder) == 1
    assert decisions(folder) == [('published', 1, 0, 1), ('kept', 2, 1, 1), ('published', 2, 1, 1),
                                 ('rolled back', 1, 2, 1)]


@test
def over_a_live_model_the_gate_of_the_job_decides(folder):
    job = small_job(folder, holdout='0.3')
    make(job)
    refused = dml('run', job, '--json', '--set', 'gate=loss <= 0.1 * live')
    assert refused.status == BAD_DATA and refused.json['decision'] == 'refused', refused
    assert refused.json['gate'][0]['holds'] is False and 'run 2 is refused' in refused.stderr, refused
    assert live(folder) == 1
    passed = make(job, '--set', 'gate=loss <= 2 * live')
    assert passed['published'] and passed['holdout_live'] == passed['holdout'] and live(folder) == 3
    assert make(job, '--set', 'gate=loss <= 0.1 * live', '--publish')['decision'] == 'published'
    assert live(folder) == 4


@test
def what_the_command_or_the_job_says_of_publishing_holds(folder):
    job = small_job(folder)
    assert not make(job, '--no-publish')['published'], 'also the first'
    assert not (folder / 'job.state/models/current').exists()
    assert make(job, '--set', 'publish=never')['live'] is None
    assert not dml('retrain', job, '--fresh', '--json', '--set', 'publish=never').json['published']
    assert make(job)['published'] and live(folder) == 4
    assert make(job, '--set', 'publish=always')['published'] and live(folder) == 5
    assert not make(job, '--set', 'publish=always', '--no-publish')['published']
    assert make(job, '--set', 'publish=never', '--publish')['published'] and live(folder) == 7
    both = dml('run', job, '--publish', '--no-publish')
    assert both.status == USAGE and 'exclude each other' in both.stderr, both


@test
def what_goes_on_from_a_live_run_goes_live_as_any_other_model_would(folder):
    job = small_job(folder, max_steps=2, holdout=0.3)
    make(job)
    for steps, options, published in ((3, ['--no-publish'], False), (4, [], False),
                                      (5, ['--set', 'gate=loss <= live'], True),
                                      (6, ['--publish'], True)):
        before = live(folder)
        on = make(job, '--set', f'max_steps={steps}', *options)
        assert (on['run'], on['continues']) == (steps - 1, steps - 2), on
        assert on['published'] == published, on
        assert live(folder) == (on['run'] if published else before), on


@test
def a_command_that_is_repeated_at_its_limit_trains_nothing_wherever_it_was_killed(folder):
    job = small_job(folder, max_steps=2, holdout=0.3)
    for number, place in enumerate(('run_ended', 'publish_decided', 'publish_settled'), 1):
        state = folder / f'{place}.state'
        killed('run', job, f'{place}:1', '--state', state)
        again = make(job, '--state', state)
        assert again['run'] == 1 and again['published'], (place, again)
        assert os.readlink(state / 'models/current') == '1', place
    kept = make(job, '--fresh', '--no-publish')
    again = make(job)
    assert (again['run'], again['decision'], again['live']) == (kept['run'], 'kept', None), again
    assert make(job, '--publish')['published'] and live(folder) == kept['run']
    assert make(job, '--set', 'max_seconds=100')['run'] == kept['run'], 'that is not the limit'
    assert make(job, '--set', 'max_steps=3', '--no-publish')['continues'] == kept['run']


@test
def a_model_of_no_step_is_not_live_because_nothing_else_is(folder):
    job = small_job(folder, max_seconds=0)
    for command in 'run', 'retrain':
        finished = dml(command, job, '--json', '--state', folder / command)
        assert finished.status == 0 and 'before the first step' in finished.stderr, finished
        result = finished.json
        assert (result['steps'], result['reason']) == (0, 'time limit'), result
        assert (result['decision'], result['published'], result['live']) == ('kept', False, None), result
    again = make(job, '--state', folder / 'run', '--set', 'max_seconds=100')
    assert again['published'] and again['steps'] > 0, again
    assert make(job, '--state', folder / 'asked', '--publish')['published']


@test
def a_command_at_its_limit_that_asks_for_another_threshold_makes_that_model(folder):
    job = small_job(folder, max_steps=2, holdout=0.3)
    first = make(job)
    for _ in range(2):
        other = make(job, '--set', 'threshold=0.25', '--no-publish')
        assert (other['run'], other['continues']) == (2, first['run']), other
        assert other['model_sha256'] == first['model_sha256'] and other['steps'] == 2, other
    details = json.loads((folder / 'job.state/models/2/model.json').read_text())
    assert '0.25' in json.dumps(details['settings']['threshold']), details
    assert make(job, '--set', 'threshold=0.25', '--set', 'calibrate=platt')['continues'] == 2


@test
def a_run_that_was_killed_before_its_decision_is_decided_about_by_the_same_command(folder):
    job = small_job(folder)
    make(job)
    for number, place in enumerate(('run_ended', 'publish_decided', 'publish_settled'), 2):
        killed('run', job, f'{place}:1', '--set', f'l2={number}')
        again = make(job, '--set', f'l2={number}')
        expected = number if place != 'publish_settled' else number + 1
        assert again['run'] == expected and again['decision'] == 'kept', (place, again)
        assert again['to_publish'] and live(folder) == 1, again
    assert [kind for kind, *_ in decisions(folder)] == ['published'] + 4 * ['kept'], decisions(folder)


# ---- publish ----

@test
def a_publication_that_was_killed_is_completed_by_the_same_command(folder):
    job = small_job(folder, on_publish=f'echo $DML_KIND $DML_RUN >> {folder}/told')
    make(job)
    make(job, '--no-publish')
    for place in 'publish_decided', 'model_linked', 'publish_announced':
        killed('publish', '2', f'{place}:1', folder / 'job.state')
        again = publish('2', folder)
        assert again.status == 0 and 'the interrupted publication is complete' in again.stdout, (place, again)
        assert live(folder) == 2 and dml('rollback', job).status == 0
        assert 'published 2\n' in (folder / 'told').read_text(), place
        (folder / 'told').unlink()
    killed('publish', '2', 'publish_decided:1', folder / 'job.state')
    assert make(job)['live'].endswith('/2'), 'another command completes it, too'


@test
def what_cannot_go_live_is_refused_with_why(folder):
    nights = Nights(folder, gate=['accuracy >= 0.7'])
    nights.add(1)
    nights.good()
    nights.add(2, rows=3000, mislabelled=True)
    assert nights.retrain().status == BAD_DATA
    refused = publish('2', folder)
    assert refused.status == BAD_DATA and live(folder) == 1, refused
    assert 'the gate refused run 2 on ' in refused.stderr and 'accuracy >= 0.7' in refused.stderr
    assert '--force' in refused.stderr, refused
    assert publish('2', folder, '--force').status == 0 and live(folder) == 2
    for name, status, why in (('9', UNAVAILABLE, 'no model of run 9'), ('none', UNAVAILABLE, '`jobs`'),
                              ('-1', USAGE, 'option'), ('0', USAGE, '`jobs`'),
                              ('job.conf', USAGE, 'publish 1 job.conf'),
                              ('my job.conf', USAGE, "publish 1 'my job.conf'")):
        finished = publish(name, folder)
        assert finished.status == status and why in finished.stderr, finished
    nights.add(3, rows=1200)
    nights.kill_in_training()
    unfinished = publish('3', folder)
    assert unfinished.status == UNAVAILABLE and 'has not ended' in unfinished.stderr, unfinished
    assert live(folder) == 2


@test
def a_run_that_was_cancelled_has_no_model_to_publish(folder):
    process = Process(COORDINATOR, 'run', endless_job(folder))
    process.until(lambda: dml('status', folder / 'job.state', '--json').stdout.find('"step":1') > 0, 'steps')
    process.signal(signal.SIGTERM)
    assert process.wait().status == AGAIN
    finished = publish('1', folder)
    assert finished.status == UNAVAILABLE and 'ended with `cancelled`' in finished.stderr, finished


@test
def a_command_that_is_stopped_ends_all_that_on_publish_has_started(folder):
    for hook in 'sleep 1000; true', "trap '' TERM; sleep 1000 & sleep 1000; wait":
        job = small_job(folder, on_publish=f'touch {folder}/begun; {hook}')
        process = Process(COORDINATOR, 'run', job, '--publish', '--fresh')
        try:
            process.until((folder / 'begun').exists, 'on_publish runs')
            process.signal(signal.SIGTERM)
            finished = process.wait(60)
            assert finished.status == AGAIN and not process.survivors(), finished
        finally:
            process.end()
        (folder / 'begun').unlink()


@test
def a_fold_of_a_sweep_is_not_published_and_any_full_fit_can_be(folder):
    write_rows(folder / 'rows.libsvm', 90, seed=2)
    job = small_job(folder, data=['rows.libsvm'], l2=[0.1, 0.01], folds=3)
    chosen = make(job, '--tag', 'swept')['run']
    fold = publish('3', folder)
    assert fold.status == UNAVAILABLE and 'run 3 is fold 1 of sweep 1' in fold.stderr, fold
    assert [run['run'] for run in listed(folder) if run['tag']] == [chosen]
    assert publish(str(3 - chosen), folder).status == 0 and live(folder) == 3 - chosen
    assert publish('swept', folder).status == 0 and live(folder) == chosen


@test
def of_two_publications_at_once_the_second_is_told_to_wait(folder):
    job = small_job(folder)
    make(job)
    make(job, '--no-publish')
    first = Process(COORDINATOR, 'publish', '2', folder / 'job.state',
                    DML_FAILPOINT='coordinator.publish_decided:1:delay:100000')
    first.until(lambda: publish('1', folder).status == AGAIN, 'it holds the folder')
    assert f'pid {first.pid}' in publish('1', folder).stderr
    first.end()
    assert publish('1', folder).status == 0 and live(folder) == 1
    assert decisions(folder)[-2:] == [('published', 2, 1, 1), ('published', 1, 2, 1)]


@test
def a_kept_model_is_no_version_to_go_back_to_and_stays_while_it_is_new(folder):
    nights = Nights(folder, keep_models=2)
    nights.add(1)
    nights.good()
    make(nights.job, '--no-publish', '--set', 'l2=0.5')
    nights.add(2)
    nights.good()
    assert sorted(os.listdir(nights.state / 'models')) == ['1', '3', 'current'], 'live, and the one before'
    assert dml('rollback', nights.state).status == 0 and live(folder) == 1


# ---- tags and notes ----

@test
def tags_and_notes_are_shown_and_name_runs(folder):
    job = small_job(folder)
    make(job, '--tag', 'first', '--note', 'as it was <b>')
    make(job, '--no-publish', '--tag', 'later')
    assert publish('later', folder).status == 0 and live(folder) == 2
    assert dml('rollback', job, '--to', 'first').status == 0 and live(folder) == 1
    labelled = publish('2', folder, '--no-publish', '--note', 'for June', '--json')
    assert labelled.status == 0 and labelled.json['run'] == 2, labelled
    assert labelled.json['live'] == f'{folder}/job.state/models/1', labelled
    assert publish('2', folder, '--no-publish', '--note', 'for June').stdout, 'without --json in words'
    assert publish('2', folder, '--no-publish').status == USAGE
    assert live(folder) == 1
    assert [(run['tag'], run['note']) for run in listed(folder)] == \
        [('first', 'as it was <b>'), ('later', 'for June')]
    table = dml('jobs', job).stdout
    assert 'first: as it was <b>\n' in table and 'later: for June\n' in table, table
    status = dml('status', job, '--json').json
    assert (status['tag'], status['note']) == ('later', 'for June'), status
    make(job, '--no-publish', '--tag', 'first')
    assert publish('first', folder).status == 0 and live(folder) == 3, 'the newest of that name'
    for tag in '7', '', 'two words', '-x', 'x' * 65:
        finished = dml('run', job, f'--tag={tag}')
        assert finished.status == USAGE and 'without spaces' in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
