#!/usr/bin/env python3
"""retrain and rollback, one behaviour at a time; test_nights.py has them together."""

import contextlib
import os
import random
import signal
import sqlite3
import sys
import time

from harness import (AGAIN, BAD_DATA, CONFIG, COORDINATOR, IO, UNAVAILABLE, dml, lines_of, main,
                     shared, test, train, write_job)
from nightly import SLOW, Nights, check_model


def query(nights, sql):
    with contextlib.closing(sqlite3.connect(nights.state / 'dml.db')) as database:
        return database.execute(sql).fetchall()


def publications(nights):
    return query(nights, 'SELECT kind, run, previous_run, settled_ms > 0 FROM publications '
                         'ORDER BY publication')


def refused(nights, night=7):
    nights.add(night, rows=3000, mislabelled=True)
    finished = nights.retrain('--json')
    assert finished.status == BAD_DATA, finished
    return finished


# ---- the gate ----

@test
def a_gate_that_cannot_be_understood_is_refused_with_its_line(folder):
    job = write_job(folder, data=['x'], holdout='0.1', gate=['loss <= 2 * lively'])
    finished = dml('check', job)
    assert finished.status == CONFIG, finished
    assert 'job.conf:3: key `gate`' in finished.stderr and '1.01 * live' in finished.stderr, finished


@test
def a_gate_without_a_holdout_is_refused(folder):
    finished = dml('check', write_job(folder, data=['x'], gate=['loss <= live']))
    assert finished.status == CONFIG and 'set `holdout`' in finished.stderr, finished


@test
def a_gate_on_a_figure_that_the_objective_lacks_is_refused(folder):
    finished = dml('check', write_job(folder, data=['x'], holdout='0.1', gate=['rmse <= live']))
    assert finished.status == CONFIG and 'rmse <= live' in finished.stderr, finished


@test
def a_model_that_the_gate_refuses_does_not_go_live(folder):
    nights = Nights(folder)
    nights.add(1)
    first = nights.good()
    assert first['published'] and first['live'].endswith('/models/1'), first
    finished = refused(nights)
    result = finished.json
    assert result['published'] is False and result['live'] == first['live'], result
    held = {entry['condition']: entry['holds'] for entry in result['gate']}
    assert held == {'loss <= 1.05 * live': False, 'accuracy >= 0.7': False}, result
    assert result['holdout_live'] == first['holdout'], result
    assert 'loss <= 1.05 * live does not hold: the new model\'s loss' in finished.stderr, finished
    assert check_model(nights.state / 'models') == first['model_sha256']
    assert (nights.state / 'models/2/model.json').exists(), 'it cannot be looked at'
    assert nights.of('refused') == [2] and nights.of('live') == [1]
    again = nights.retrain()
    assert again.status == BAD_DATA and not again.stdout, again
    assert 'no new data since run 2, which was refused: ' in again.stderr, again


@test
def a_tag_of_a_night_without_a_run_is_told_to_name_none(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good_nights(1)
    for label, *option in (('tag', '--tag', 'b'), ('note', '--note', 'why'),
                           ('tag', '--tag', 'b', '--json')):
        idle = nights.retrain(*option)
        assert f'`--{label}` has no effect: no run was made; `publish 1 ' in idle.stderr, idle
    assert 'no effect' not in nights.retrain('--tag', 'b', '--cron').stderr
    assert 'no effect' not in nights.retrain().stderr
    assert dml('publish', 'b', nights.job, '--no-publish', '--tag', 'c').status == UNAVAILABLE
    nights.add(2)
    assert 'no effect' not in nights.retrain('--tag', 'b').stderr
    assert dml('publish', 'b', nights.job, '--no-publish', '--tag', 'c').status == 0


@test
def a_gate_that_goes_on_refusing_is_told_each_night_until_somebody_acts(folder):
    nights = Nights(folder, gate=['loss <= 0.5 * live'])
    nights.good_nights(1)
    for night in 2, 3:
        nights.add(night)
        refused = nights.retrain('--cron')
        assert refused.status == BAD_DATA and 'run %d is refused' % night in refused.stderr, refused
    day = time.strftime('%Y-%m-%d ')
    words = f'the gate has refused 2 times since {day}'
    assert words in refused.stderr and 'the model of run 1 has been live' in refused.stderr, refused
    quiet = nights.retrain('--cron')
    assert quiet.status == BAD_DATA and not quiet.stdout and words in quiet.stderr, quiet
    assert 'loss <= 0.5 * live does not hold' in quiet.stderr, quiet
    told = nights.retrain('--json').json
    assert told['reason'] == 'no new data' and told['refusals']['count'] == 2, told
    assert told['refusals']['since_ms'] > 0 and len(nights.runs()) == 3
    assert dml('publish', '3', '--force', nights.state).status == 0
    silent = nights.retrain('--cron')
    assert silent.status == 0 and not silent.stdout + silent.stderr, silent


@test
def the_table_of_runs_marks_what_is_live_and_what_was_refused(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good()
    nights.add(2)
    nights.good()
    refused(nights)
    table = dml('jobs', nights.state, COLUMNS='80').stdout
    lines = [line for line in table.splitlines() if not line.startswith('      ')]
    assert [line[:5] for line in lines[2:-1]] == ['   1 ', '   2*', '   3!', '* liv'], table
    assert all(len(line) <= 80 for line in table.splitlines()[1:]), table
    why = f'refused: {nights.runs()[-1]["why"]}'
    assert 'accuracy >= 0.7 does not hold: ' in why and [run['why'] for run in nights.runs()[:2]] == [None, None]
    assert f'      {why}\n' in dml('jobs', nights.state).stdout, 'off a terminal it is whole'
    assert f'\n{why}\n' in dml('status', nights.state).stdout
    assert dml('status', nights.state, '--json').json['why'] == nights.runs()[-1]['why']


@test
def an_absolute_floor_binds_the_first_model_too(folder):
    nights = Nights(folder, gate=['accuracy >= 0.999'])
    nights.add(1)
    finished = nights.retrain()
    assert finished.status == BAD_DATA, finished
    assert not (nights.state / 'models/current').exists()


@test
def a_holdout_by_share_evaluates_both_models_on_the_same_rows(folder):
    nights = Nights(folder, holdout=0.3)
    nights.add(1)
    first = nights.good()
    nights.add(2)
    second = nights.good()
    assert second['holdout']['examples'] == second['holdout_live']['examples'] > \
        first['holdout']['examples']


# ---- new data ----

@test
def without_new_data_nothing_is_done(folder):
    nights = Nights(folder)
    nights.add(1)
    first = nights.good()
    result = nights.good()
    assert result['reason'] == 'no new data' and result['published'] is False, result
    assert result['live'] == first['live'] and len(nights.runs()) == 1
    silent = nights.retrain('--cron')
    assert silent.status == 0 and not silent.stdout and not silent.stderr, silent
    assert publications(nights) == [('published', 1, 0, 1)]


@test
def fresh_trains_again_on_the_same_data_and_leaves_what_is_unfinished(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good()
    assert nights.good('--fresh')['published'] and nights.live() == 2
    nights.add(2)
    nights.kill_in_training()
    assert nights.good('--fresh')['run'] == 4 and nights.published() == [1, 2, 4]


@test
def only_what_is_new_is_packed_and_the_live_model_is_where_it_starts(folder):
    nights = Nights(folder)
    nights.add(1)
    first = nights.good()
    nights.add(2)
    finished = nights.retrain('--json')
    assert '01.libsvm: unchanged' in finished.stderr and '02.libsvm: packed' in finished.stderr
    result = finished.json
    assert result['start'] == {'model_sha256': first['model_sha256'], 'run': 1}, result
    warm = result['warm_start']
    assert warm['cold_evaluations'] == first['evaluations'], result
    assert warm['evaluations'] == result['evaluations']
    assert (f'{warm["evaluations"]} evaluations; the last start from zero took '
            f'{first["evaluations"]}') in finished.stderr, finished


@test
def what_a_run_was_made_from_is_recorded_and_packs_of_files_that_went_are_removed(folder):
    nights = Nights(folder, gate=['accuracy >= 0.7'])
    for night in 1, 2:
        nights.add(night)
    nights.good()
    (nights.inbox / '01.libsvm').unlink()
    nights.good()
    with contextlib.closing(sqlite3.connect(nights.state / 'dml.db')) as database:
        recorded = database.execute('SELECT run, position, path, fingerprint, rows FROM sources '
                                    'ORDER BY run, position').fetchall()
    assert [(run, position, path[-9:], rows) for run, position, path, _, rows in recorded] == [
        (1, 0, '01.libsvm', 300), (1, 1, '02.libsvm', 300), (2, 0, '02.libsvm', 300)], recorded
    packs = {path.stem for path in (nights.state / 'packs').glob('*.pack')}
    assert recorded[1][3] in packs and len(packs) == 2, 'the pack of 02 and that of the holdout'


@test
def warm_start_can_be_switched_off(folder):
    nights = Nights(folder, warm_start=False)
    nights.add(1)
    nights.good()
    nights.add(2)
    result = nights.good()
    assert 'start' not in result and 'warm_start' not in result, result


@test
def five_percent_more_rows_take_at_most_half_the_evaluations_of_a_cold_start(folder):
    """Without the preconditioner, with which a cold start takes few evaluations anyway."""
    lines = lines_of(shared('a9a.gz'))[::4]
    most = len(lines) * 20 // 21
    (folder / 'in').mkdir()
    (folder / 'in/1.txt').write_text('\n'.join(lines[:most]) + '\n')
    job = write_job(folder, data=['in/*.txt'], l2=1e-5, precondition='none')
    assert dml('retrain', job).status == 0
    (folder / 'in/2.txt').write_text('\n'.join(lines[most:]) + '\n')
    result = dml('retrain', job, '--json').json
    cold = train(job, '--state', folder / 'cold.state')
    print(f'# warm {result["evaluations"]}, cold {cold["evaluations"]}: {result["warm_start"]}')
    assert 2 * result['evaluations'] <= cold['evaluations'], (result, cold)
    assert result['warm_start']['ratio'] <= 0.5, result


# ---- what was left unfinished ----

@test
def an_unfinished_run_is_finished_on_its_own_data_before_new_data_is_trained_on(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good()
    nights.add(2)
    nights.kill_in_training()
    nights.add(3)
    result = nights.good()
    assert result['run'] == 3 and result['published'], result
    assert publications(nights) == [('published', 1, 0, 1), ('published', 2, 1, 1),
                                    ('published', 3, 2, 1)]
    assert nights.runs()[1]['reason'] and result['start']['run'] == 2, result


@test
def a_run_that_was_told_to_stop_is_finished_by_the_next(folder):
    nights = Nights(folder)
    nights.add(1, rows=1200)
    process = nights.start('--cron', **SLOW)
    process.until(lambda: nights.step(process) >= 1, 'a step')
    process.signal(signal.SIGTERM)
    finished = process.wait()
    assert finished.status == AGAIN and not finished.stdout, finished
    result = nights.good()
    assert result['published'] and result['run'] == 1, result
    assert result['restarts']['coordinator'] == 1, result


@test
def a_run_that_was_told_to_stop_before_its_first_step_starts_where_it_would_have(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good()
    nights.add(2)
    fired = folder / 'fired'
    process = nights.start('--cron', DML_FAILPOINT='replica0.receive_EVALUATE:1:delay:100000',
                           DML_FAILPOINT_ONCE=str(fired))
    process.until((folder / 'fired.0').exists, 'its first evaluation')
    process.signal(signal.SIGTERM)
    finished = process.wait()
    process.end()
    assert finished.status == AGAIN and 'before a step was kept' in finished.stderr, finished
    nights.add(3)
    result = nights.good()
    assert result['run'] == 3 and result['start']['run'] == 2, result
    assert query(nights, 'SELECT start_run FROM runs ORDER BY run') == [(0,), (1,), (2,)]


@test
def what_goes_on_from_a_live_run_is_finished_by_the_next_night_and_evaluated(folder):
    nights = Nights(folder, gate=['accuracy >= 0.7'], max_steps=3)
    nights.add(1, rows=1200)
    first = nights.good()
    assert first['reason'] == 'step limit', first
    nights.kill_in_training('--set', 'max_steps=200', command='run', steps=4)
    refused = nights.retrain('--json', '--set', 'max_steps=200', '--set', 'gate=accuracy >= 0.999')
    assert refused.status == BAD_DATA and refused.json['run'] == 2, refused
    assert refused.json['continues'] == 1 and nights.live() == 1, refused
    assert check_model(nights.state / 'models') == first['model_sha256']


PLACES = ['run_ended:1', 'publish_decided:1', 'model_linked:1', 'publish_announced:1',
          'model_remove:1']
OTHER_PLACES = ['model_publish:1', 'model_published:1', 'model_link:1', 'publish_settled:1',
                *[f'store_committed_full:{visit}' for visit in range(1, 9)]]
BY_CHANCE = 'store_committed_full:8'  # whether a night commits so often depends on how fast it is


def walked():
    """Where to die: with DML_FAULTS=all (make check-faults) everywhere."""
    if os.environ.get('DML_FAULTS') == 'all':
        return PLACES + OTHER_PLACES
    return PLACES + random.sample(OTHER_PLACES, 1)


def three_nights(folder, name, failpoint=None):
    """What comes of three nights; the third is cut off at the failpoint, and the command given
    again. None if it never came there by chance."""
    (folder / name).mkdir()
    nights = Nights(folder / name, keep_models=2, on_publish='echo $DML_RUN >> ../told')
    for night in 1, 2:
        nights.add(night)
        nights.good(cwd=nights.inbox)
    nights.add(3)
    if failpoint:
        killed = nights.start('-q', cwd=nights.inbox, DML_FAILPOINT=failpoint)
        status = killed.popen.wait()
        if status == 0 and BY_CHANCE in failpoint:
            return None
        assert status == -signal.SIGKILL, killed.wait()
    result = nights.good(cwd=nights.inbox)
    told = (nights.folder / 'told').read_text().split()
    assert sorted(set(told)) == ['1', '2', '3'] and len(told) <= 4, told
    kept = sorted(path.name for path in (nights.state / 'models').iterdir())
    assert kept == ['2', '3', 'current'], kept
    assert result['live'].endswith('/models/3'), result
    return check_model(nights.state / 'models'), publications(nights), len(nights.runs())


def terminate(process):
    process.signal(signal.SIGTERM)
    ended = process.wait()
    assert ended.status == AGAIN, ended
    assert 'dml-coordinator: terminated; the same command goes on from here' in ended.stderr, ended


@test
def sigterm_before_and_after_training_says_that_the_same_command_goes_on(folder):
    nights = Nights(folder)
    nights.add(1)
    for place in 'pack_published', 'model_published', 'run_ended', 'publish_decided':
        log = folder / place
        process = nights.start('--cron', DML_FAILPOINT=f'coordinator.{place}:1:delay:100000',
                               DML_FAILPOINT_LOG=str(log))
        process.until(lambda: log.exists() and place in log.read_text(), place)
        terminate(process)
    assert nights.retrain('--cron').status == 0 and nights.live() == 1
    assert nights.published() == [1], nights.runs()


@test
def sigterm_reaches_on_publish_which_the_next_retrain_runs_again(folder):
    nights = Nights(folder, on_publish='trap \'touch ended; exit\' TERM; touch begun; '
                                       'while :; do sleep 0.05; done')
    nights.add(1)
    process = nights.start('--cron', cwd=folder)
    process.until((folder / 'begun').exists, 'on_publish')
    terminate(process)
    end = time.monotonic() + 60
    while not (folder / 'ended').exists():
        assert time.monotonic() < end, 'it goes on'
        time.sleep(0.02)
    again = nights.retrain('--cron', '--set', 'on_publish=touch again', cwd=folder)
    assert again.status == 0 and (folder / 'again').exists() and nights.live() == 1, again


@test
def a_lost_database_costs_no_model_and_one_can_go_back_to_them(folder):
    nights = Nights(folder, on_publish='true')
    nights.good_nights(1, 2)
    for file in nights.state.glob('dml.db*'):
        file.unlink()
    nights.add(3)
    finished = nights.retrain('--json')
    assert finished.json['run'] == 3 and nights.live() == 3, finished
    assert 'a model of run 2 that dml.db does not know: this is run 3' in finished.stderr, finished
    assert {path.name for path in (nights.state / 'models').iterdir()} == {'1', '2', '3', 'current'}
    back = dml('rollback', nights.job)
    assert back.status == 0 and nights.live() == 2, back
    assert nights.good()['reason'] == 'no new data' and nights.live() == 2


@test
def no_run_begins_where_the_models_that_it_must_not_replace_cannot_be_listed(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.state.mkdir()
    (nights.state / 'models').symlink_to('models')
    finished = nights.retrain()
    assert finished.status == IO, finished
    assert f'cannot list {nights.state / "models"}: ' in finished.stderr, finished
    assert query(nights, 'SELECT run FROM runs') == [], finished


@test
def whatever_the_instant_of_a_kill_the_next_retrain_ends_where_it_would_have(folder):
    quiet = three_nights(folder, 'quiet')
    assert [decision[:3] for decision in quiet[1]] == \
        [('published', 1, 0), ('published', 2, 1), ('published', 3, 2)], quiet
    for place in walked():
        ended = three_nights(folder, place.replace(':', '-'), f'coordinator.{place}:kill')
        assert ended in (quiet, None), (place, ended, quiet)


# ---- publishing ----

@test
def on_publish_is_told_what_is_live_and_may_ask_its_coordinator(folder):
    nights = Nights(folder, on_publish='env | grep ^DML_ > told; echo said; '
                                       f'{COORDINATOR} jobs $DML_STATE > runs')
    nights.add(1)
    nights.good(cwd=folder)
    nights.add(2)
    finished = nights.retrain('--json', cwd=folder)
    result = finished.json
    told = dict(line.split('=', 1) for line in (folder / 'told').read_text().splitlines())
    models = nights.state.resolve() / 'models'
    assert told['DML_KIND'] == 'published' and told['DML_JOB'] == 'job', told
    assert told['DML_RUN'] == '2' and told['DML_MODEL'] == str(models / '2'), told
    assert told['DML_PREVIOUS'] == str(models / '1'), told
    assert told['DML_MODEL_SHA256'] == result['model_sha256'], told
    assert told['DML_STATE'] == str(nights.state.resolve()), told
    assert 'said' in finished.stderr and 'said' not in finished.stdout, finished
    assert 'live' in (folder / 'runs').read_text(), finished
    events = [text for text, in query(nights, "SELECT text FROM events WHERE kind = 'publish'")]
    assert events == ['on_publish ended with status 0'] * 2, events


def signals_in(path):
    return [number for number in signal.valid_signals() if
            int(path.read_text().split()[1], 16) >> (number - 1) & 1]


@test
def on_publish_ignores_no_signal_that_its_caller_did_not(folder):
    nights = Nights(folder, on_publish='grep SigIgn /proc/self/status > ignored')
    nights.add(1)
    nights.good(cwd=folder)
    ignored = signals_in(folder / 'ignored')
    assert not {signal.SIGPIPE, signal.SIGXFSZ} & set(ignored), ignored


@test
def the_ends_of_children_are_heard_of_whatever_the_caller_did_with_sigchld(folder):
    # posix_spawn() blocks all signals of the caller for a moment.
    nights = Nights(folder, on_publish='grep SigIgn /proc/self/status > ignored; sleep 0.3; '
                                       'grep SigBlk /proc/$PPID/status > blocked')
    nights.add(1)
    nights.good(cwd=folder, prefix=['env', '--ignore-signal=CHLD', '--block-signal=CHLD'])
    assert signal.SIGCHLD not in signals_in(folder / 'ignored')
    assert signal.SIGCHLD not in signals_in(folder / 'blocked')


@test
def on_publish_reads_nothing_of_what_its_caller_has_to_read(folder):
    nights = Nights(folder, on_publish='cat > read')
    nights.add(1)
    (folder / 'script').write_text('the next command\n')
    with open(folder / 'script') as script:
        nights.good(cwd=folder, stdin=script)
    assert (folder / 'read').read_text() == ''


@test
def a_model_stays_live_when_on_publish_fails(folder):
    nights = Nights(folder, on_publish='exit 3')
    nights.add(1)
    finished = nights.retrain('--cron')
    assert finished.status == UNAVAILABLE, finished
    assert 'on_publish ended with status 3: `exit 3`' in finished.stderr, finished
    assert nights.live() == 1 and publications(nights) == [('published', 1, 0, 1)]
    assert nights.retrain('--cron').status == 0


@test
def only_so_many_versions_are_kept_and_the_last_that_was_refused(folder):
    nights = Nights(folder, keep_models=2)
    nights.good_nights(1, 2, 3)
    refused(nights)
    assert {path.name for path in (nights.state / 'models').iterdir()} == {'2', '3', '4', 'current'}
    assert len(list((nights.state / 'packs').glob('*.set'))) == 1
    assert not list((nights.state / 'shards').iterdir())


# ---- going back ----

@test
def putting_live_what_is_live_says_so_and_runs_on_publish_again(folder):
    nights = Nights(folder, on_publish='echo $DML_RUN >> told')
    nights.add(1)
    nights.good(cwd=folder)
    same = dml('rollback', nights.job, '--to', '1', cwd=folder)
    assert same.status == 0 and 'was live already; on_publish was run again' in same.stdout, same
    assert (folder / 'told').read_text().split() == ['1', '1']


@test
def rollback_goes_back_version_by_version(folder):
    nights = Nights(folder, on_publish='echo $DML_KIND $DML_RUN >> told')
    hashes = []
    for night in 1, 2, 3:
        nights.add(night)
        hashes.append(nights.good(cwd=folder)['model_sha256'])
    back = dml('rollback', nights.job, '--json', cwd=folder)
    assert back.status == 0 and back.json['run'] == 2, back
    assert back.json['model_sha256'] == hashes[1] == check_model(nights.state / 'models')
    assert dml('rollback', nights.state, cwd=folder).status == 0
    assert nights.live() == 1 and nights.of('live') == [1]
    end = dml('rollback', nights.state, cwd=folder)
    assert end.status == UNAVAILABLE and 'no other version was live before' in end.stderr, end
    assert nights.live() == 1
    told = (folder / 'told').read_text().splitlines()
    assert told == ['published 1', 'published 2', 'published 3', 'rolled back 2', 'rolled back 1']


@test
def a_version_that_was_rolled_back_from_is_not_published_again_by_the_same_data(folder):
    nights = Nights(folder)
    nights.good_nights(1, 2)
    assert dml('rollback', nights.job).status == 0
    assert nights.good()['reason'] == 'no new data'
    assert nights.live() == 1
    nights.add(3)
    result = nights.good()
    assert result['start']['run'] == 1 and nights.live() == 3, result
    assert dml('rollback', nights.job).status == 0
    assert nights.live() == 1, 'it went back to the bad one'


@test
def rollback_to_a_run_puts_that_live_and_one_that_is_gone_is_named(folder):
    nights = Nights(folder, keep_models=2)
    nights.good_nights(1, 2, 3)
    refused(nights)
    gone = dml('rollback', nights.job, '--to', '1')
    assert gone.status == UNAVAILABLE and 'there is no model of run 1' in gone.stderr, gone
    assert dml('rollback', nights.job, '--to', 'x').status == UNAVAILABLE
    assert dml('rollback', nights.job, '--to', '4').status == 0
    assert nights.live() == 4 and nights.of('live') == [4]
    assert dml('rollback', nights.job).status == 0
    assert nights.live() == 3


@test
def the_version_that_the_next_rollback_goes_to_is_kept(folder):
    nights = Nights(folder, keep_models=2)
    nights.good_nights(1, 2, 3)
    assert dml('rollback', nights.job).status == 0 and nights.live() == 2
    nights.add(4)
    nights.good('--set', 'keep_models=1')
    assert nights.live() == 4
    assert dml('rollback', nights.job).status == 0 and nights.live() == 2


@test
def run_with_publish_does_not_ask_the_gate(folder):
    nights = Nights(folder)
    nights.add(1)
    nights.good()
    nights.add(2, rows=3000, mislabelled=True)
    train(nights.job)
    assert nights.live() == 2 and publications(nights)[-1] == ('published', 2, 1, 1)
    assert nights.good()['reason'] == 'no new data'


if __name__ == '__main__':
    sys.exit(main())
