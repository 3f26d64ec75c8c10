#!/usr/bin/env python3
"""A command that was cut off between a decision and its end, and is given again: it completes what
it had begun, says so, and does nothing twice."""

import os
import signal
import sys

from harness import COORDINATOR, UNAVAILABLE, Process, dml, main, small_job, test, train
from sweeps import killed, rows_of


def live(state):
    """What `jobs` calls live, which is what is live."""
    runs = dml('jobs', state, '--json').json['folders'][0]['runs']
    listed = [run['run'] for run in runs if run['publication'] == 'live']
    assert listed == [int(os.readlink(state / 'models/current'))], runs
    return listed[0], [run['run'] for run in runs if run['publication'] == 'pending']


def versions(folder, **settings):
    """Three of them, of which the third is live."""
    job = small_job(folder, **settings)
    for _ in range(3):
        train(job, '--fresh')
    return job, folder / 'job.state'


@test
def a_rollback_that_was_killed_and_is_repeated_goes_back_once(folder):
    _, state = versions(folder, on_publish='true')
    for place, before in (('publish_decided', (3, [2])), ('model_linked', (2, [])),
                          ('publish_announced', (2, []))):
        killed('rollback', state, f'{place}:1')
        assert live(state) == before, place
        if place == 'publish_decided':
            assert '+ publication was interrupted' in dml('jobs', state).stdout
        repeated = dml('rollback', state)
        assert repeated.status == 0 and 'the interrupted rollback is complete' in repeated.stdout, repeated
        assert 'run 2 is live again, in place of run 3' in repeated.stdout, repeated
        assert live(state) == (2, []), place
        assert dml('rollback', state, '--to', '3').status == 0
    assert dml('rollback', state).status == 0
    assert dml('rollback', state).status == 0
    assert live(state) == (1, [])


@test
def a_repeated_rollback_heeds_the_run_that_it_names(folder):
    _, state = versions(folder)
    killed('rollback', state, 'publish_decided:1')
    assert dml('rollback', state, '--to', '1').status == 0
    assert live(state) == (1, [])
    killed('rollback', state, 'publish_decided:1', '--to', '2')
    again = dml('rollback', state, '--to', '2', '--json')
    assert again.json['run'] == 2 and again.json['previous_run'] == 1, again
    assert live(state) == (2, [])


@test
def a_repeated_rollback_fails_as_the_first_would_have(folder):
    job, state = versions(folder)
    job.write_text(job.read_text() + 'on_publish = "exit 3"\n')
    killed('rollback', job, 'publish_decided:1')
    repeated = dml('rollback', job)
    assert repeated.status == UNAVAILABLE and 'status 3' in repeated.stderr, repeated
    assert live(state) == (2, [])


@test
def a_rollback_completes_a_publication_first_and_goes_back_from_it(folder):
    job, state = versions(folder)
    killed('run', job, 'publish_decided:1', '--fresh', '--publish')
    assert live(state) == (3, [4])
    back = dml('rollback', state)
    assert 'run 3 is live again, in place of run 4' in back.stdout, back
    assert 'the model of run 4 is live: an earlier command had decided it' in back.stderr, back
    assert live(state) == (3, [])


@test
def a_run_that_was_killed_after_its_training_is_not_trained_again(folder):
    job = small_job(folder)
    state = folder / 'job.state'
    for number, place in enumerate(('run_ended', 'publish_decided', 'model_linked'), 1):
        killed('run', job, f'{place}:1', '--fresh', '--publish')
        repeated = dml('run', job, '--json', '--publish')
        assert repeated.status == 0 and repeated.json['run'] == number, repeated
        assert f'run {number} had ended when an earlier command was interrupted' in repeated.stderr
        assert live(state) == (number, [])
    assert train(job)['run'] == 4, 'what was complete is trained anew'
    killed('run', job, 'run_ended:1', '--fresh')
    assert train(job, '--fresh')['run'] == 6
    killed('run', job, 'run_ended:1', '--fresh')
    assert train(job, '--set', 'l2=0.5')['run'] == 8


@test
def a_model_that_prune_removed_before_it_was_killed_is_noted_by_the_next(folder):
    job = small_job(folder, keep_models=1)
    state = folder / 'job.state'
    for _ in range(4):
        train(job, '--fresh')
    process = Process(COORDINATOR, 'prune', state, DML_FAILPOINT='prune_remove:2:kill')
    assert process.wait().status == -signal.SIGKILL
    assert dml('prune', state).status == 0
    kept = sorted(int(path.name) for path in (state / 'models').glob('[0-9]*'))
    assert [run for run, in rows_of(state, 'SELECT run FROM models WHERE removed_ms = 0')] == kept
    assert dml('prune', state, '--json').json['folders'][0]['removed'] == []


sys.exit(main())
