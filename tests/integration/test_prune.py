#!/usr/bin/env python3
"""`prune` removes what nothing needs, says what, and no kill leaves a state that cannot be used."""

import contextlib
import re
import resource
import signal
import sqlite3
import sys

from harness import (AGAIN, COORDINATOR, UNAVAILABLE, Process, dml, endless_job, is_stopped, main,
                     small_data, small_job, test, train, write_job)


def prune(state, *options, **environment):
    finished = dml('prune', state, '--json', *options, **environment)
    assert finished.status == 0, finished
    return finished.json['folders'][0]


def kinds(answer):
    return sorted(item['kind'] for item in answer['removed'])


def bytes_in(folder):
    return sum(path.lstat().st_size for path in folder.rglob('*') if not path.is_dir())


def busy_state(folder):
    """Four models of which two are to be kept, and data and test data that changed once."""
    small_data(folder, 'test.libsvm', seed=3)
    for number in range(4):
        if number == 2:
            small_data(folder, rows=80, seed=5)
            small_data(folder, 'test.libsvm', rows=70, seed=4)
        else:
            small_data(folder, rows=60 if number < 2 else 80, seed=1 if number < 2 else 5)
        train(write_job(folder, data=['small.libsvm'], test=['test.libsvm'], l2=10.0 ** -number,
                        keep_models=2))
    return folder / 'job.state'


def check_usable(folder, state):
    """The live model predicts, a rollback works, and the next run reads nothing anew."""
    assert dml('predict', state, folder / 'small.libsvm').status == 0
    again = dml('run', folder / 'job.conf', '--fresh', '--json')
    assert again.status == 0, again
    for name in 'small.libsvm', 'test.libsvm':
        assert f'{name}: unchanged, its pack is used again' in again.stderr, again
    back = dml('rollback', state)
    assert back.status == 0, back


@test
def prune_removes_what_the_newest_run_and_kept_models_do_not_need(folder):
    state = busy_state(folder)
    before = sorted(state.rglob('*'))
    told = prune(state, '--dry-run')
    assert sorted(state.rglob('*')) == before
    assert kinds(told) == ['model', 'model', 'pack', 'pack', 'set'], told
    size = bytes_in(state)
    done = prune(state)
    assert done['removed'] == told['removed'] and done['bytes'] == told['bytes'], (done, told)
    assert sorted(path.name for path in (state / 'models').iterdir()) == ['3', '4', 'current']
    assert len(list(state.glob('packs/*.pack'))) == 2 and len(list(state.glob('packs/*.set'))) == 1
    assert abs(size - done['bytes'] - bytes_in(state)) < 100000, (size, done)  # dml.db may grow
    assert prune(state)['removed'] == []
    assert [run['run'] for run in dml('jobs', state, '--json').json['folders'][0]['runs']] == \
        [1, 2, 3, 4]
    check_usable(folder, state)


@test
def jobs_tells_the_sizes_of_runs_and_of_the_folder(folder):
    state = busy_state(folder)
    listed = dml('jobs', state, '--json').json['folders'][0]
    for run in listed['runs']:
        for name, part in ('model', 'models'), ('checkpoints', 'shards'):
            assert run['bytes'][name] == bytes_in(state / part / str(run['run'])), (run, part)
    assert listed['runs'][-1]['bytes']['model'] > 0, listed
    assert listed['bytes']['data'] == bytes_in(state / 'packs'), listed
    assert abs(listed['bytes']['all'] - bytes_in(state)) < 100000, listed
    table = dml('jobs', state).stdout.splitlines()
    assert re.fullmatch(r'\d+\.\d MB: models \d.*, checkpoints \d.*, data \d.*', table[-1]), table
    for item in prune(state, '--dry-run')['removed']:
        if item['kind'] == 'model':
            number = int(item['path'].rsplit('/', 1)[1])
            assert listed['runs'][number - 1]['bytes']['model'] == item['bytes'], item


@test
def the_table_says_what_and_how_much(folder):
    state = busy_state(folder)
    told = dml('prune', state, '-n')
    assert told.stdout.count('model ') == 2 and ' MB would be removed, ' in told.stdout, told
    done = dml('prune', state)
    assert f'{state}/models/1\n' in done.stdout and ' MB removed, ' in done.stdout, done


@test
def a_kill_between_any_two_removals_leaves_a_state_that_can_be_used(folder):
    state = busy_state(folder)
    for visit in range(1, 6):
        finished = dml('prune', state, DML_FAILPOINT='prune_remove:2:kill')
        if finished.status == 0:
            break
        assert finished.status == -signal.SIGKILL, finished
        assert dml('predict', state, folder / 'small.libsvm').status == 0
    assert visit == 5, visit
    assert not list(state.rglob('*.tmp.*')), list(state.rglob('*.tmp.*'))
    assert prune(state)['removed'] == []
    check_usable(folder, state)


@test
def others_wait_for_prune_until_it_has_something_to_remove(folder):
    """Who only reads is waited for, who works is not."""
    state = busy_state(folder)
    for place, reads in ('store_opened', True), ('prune_remove', False):
        process = Process(COORDINATOR, 'prune', state, DML_FAILPOINT=f'{place}:1:stop')
        process.until(lambda: is_stopped(process.pid), 'it stands still')
        assert (state / 'lock').read_text().endswith(' reads\n') == reads, place
        if not reads:
            assert dml('rollback', state).status == AGAIN
        process.signal(signal.SIGKILL)
        process.wait()


@test
def a_run_that_was_stopped_goes_on_after_prune(folder):
    job = endless_job(folder, max_steps=40, checkpoint_seconds=0)
    whole = train(job, '--set', f'state={folder / "whole.state"}')
    process = Process(COORDINATOR, 'run', job, DML_FAILPOINT='coordinator.state_step_commit:2:kill')
    assert process.wait().status == -signal.SIGKILL
    process.end()  # its workers, too
    train(write_job(folder, 'other', data=['small.libsvm'], state='job.state', max_steps=5,
                    objective='squared'), '--set', 'name=job')
    removed = prune(folder / 'job.state')['removed']
    assert not removed, removed
    result = train(job)
    assert result['model_sha256'] == whole['model_sha256'], (result, whole)
    assert result['restarts']['coordinator'] == 1, result


@test
def a_run_whose_checkpoints_went_is_not_gone_on_with_when_its_limit_is_raised(folder):
    job = small_job(folder, max_steps=2)
    train(job)
    train(job, '--set', 'l2=0.1')
    assert dml('prune', job).status == 0 and not (folder / 'job.state/shards/1').exists()
    finished = dml('run', job, '--json', '--set', 'max_steps=3')
    assert finished.status == 0 and finished.json['run'] == 3, finished
    assert 'continues' not in finished.json and finished.json['steps'] == 3, finished
    assert 'its checkpoints were removed: a new run starts' in finished.stderr, finished


@test
def what_a_killed_run_left_half_written_goes(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    (state / 'packs/abc.pack.tmp.123').write_text('x' * 1000)
    (state / 'models/7.tmp.99').mkdir()
    (state / 'models/7.tmp.99/model.json').write_text('{}')
    (state / 'shards/99').mkdir(parents=True)
    (state / 'packs/notes.txt').write_text('mine')
    assert kinds(prune(state)) == ['checkpoint', 'leftover', 'leftover']
    assert (state / 'packs/notes.txt').exists() and (state / 'models/1').exists()


@test
def run_keeps_the_newest_sets_and_makes_one_that_is_gone_again(folder):
    job = small_job(folder, keep_sets=2)
    sets, hashes = [], []
    for share in '0.1', '0.2', '0.3', '0.1':
        hashes.append(train(job, '--set', f'holdout={share}')['model_sha256'])
        sets.append({path.name for path in (folder / 'job.state/packs').glob('*.set')})
    assert [len(names) for names in sets] == [1, 2, 2, 2], sets
    assert sets[1] - sets[0] <= sets[2] and not sets[0] & sets[2] and sets[0] < sets[3], sets
    assert hashes[3] == hashes[0] and len(set(hashes)) == 3, hashes


@test
def a_live_run_and_a_folder_without_runs_are_refused(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job, '--quiet')
    try:
        process.until(lambda: dml('status', job).status == 0, 'it runs')
        finished = dml('prune', job)
        assert finished.status == AGAIN and 'already running' in finished.stderr, finished
    finally:
        process.end()
    empty = folder / 'empty.state'
    empty.mkdir()
    for command in ['prune'], ['prune', '--dry-run'], ['status'], ['jobs'], ['rollback'], ['report']:
        finished = dml(*command, empty)
        assert finished.status == UNAVAILABLE and 'empty.state' in finished.stderr, finished
    assert not list(empty.iterdir()), 'nothing is put into a folder that is none of ours'


def add_runs(state, first, last):
    """More runs like the first one, each decided about; of all but the last models were removed."""
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as store, store:
        names = [row[1] for row in store.execute('PRAGMA table_info(runs)')]
        row = dict(zip(names, store.execute('SELECT * FROM runs WHERE run = 1').fetchone()))
        for run in range(first, last + 1):
            values = {**row, 'run': run, 'uuid': f'u{run}', 'data': f'd{run}', 'origin': run}
            store.execute(f'INSERT INTO runs VALUES ({", ".join("?" * len(names))})',
                          list(values.values()))
            store.execute("INSERT INTO models (run, wall_ms, folder, sha256, removed_ms) "
                          "VALUES (?, 1, 'f', ?, ?)", (run, f'h{run}', run < last))
            store.execute("INSERT INTO publications (wall_ms, kind, run, previous_run, text, "
                          "settled_ms) VALUES (?, 'refused', ?, 1, '', 1)", (run, run))


def seconds_of_a_look(state):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = used()
    prune(state, '--dry-run')
    return used() - before


@test
def many_runs_are_looked_at_in_a_time_that_grows_as_they_do(folder):
    train(small_job(folder))
    state, few, many = folder / 'job.state', 5000, 20000
    add_runs(state, 2, few)
    first = min(seconds_of_a_look(state) for _ in range(2))
    add_runs(state, few + 1, many)
    second = min(seconds_of_a_look(state) for _ in range(2))
    assert second < 2 * many / few * first, (first, second)


if __name__ == '__main__':
    sys.exit(main())
