#!/usr/bin/env python3
"""Every `run` and `retrain` leaves a trace: a night that failed, had nothing to do, was refused, was stopped or
killed is in the record, and what is shown of it says why."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import sys
import urllib.request

import metrics_text
from harness import (AGAIN, BAD_DATA, CONFIG, COORDINATOR, CREATE, IO, PERMISSION, UNAVAILABLE, Process, dml, main,
                     ordinary_user, small_job, test, train)
from nightly import SLOW, Nights

LOST = 'its end is not recorded: it was killed, its machine went down, or its disk was full'


def rows(state):
    """(outcome, status, run, times) and the reason of each row, oldest first."""
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        found = database.execute('SELECT outcome, status, run, times, reason FROM invocations '
                                 'ORDER BY invocation').fetchall()
    return [row[:4] for row in found], [row[4] for row in found]


@test
def each_night_leaves_what_it_came_to_and_why(folder):
    nights = Nights(folder)
    empty = nights.retrain('--cron')
    assert empty.status == BAD_DATA and 'no file matches' in empty.stderr, empty
    nights.good_nights(1)
    for _ in range(2):
        assert nights.retrain('--cron').status == 0
    nights.add(2, rows=1500, mislabelled=True)
    refused, again = (nights.retrain('--cron') for _ in range(2))
    assert refused.status == again.status == BAD_DATA, (refused, again)
    (nights.inbox / '03.libsvm').write_text('1 3:x\n')
    bad = nights.retrain('--cron')
    (nights.inbox / '03.libsvm').unlink()
    nights.add(3)
    assert nights.retrain('--set', 'publish=never').status == 0
    found, reasons = rows(nights.state)
    assert found == [('failed', 65, 0, 1), ('published', 0, 1, 1), ('nothing new', 0, 0, 2),
                     ('refused', 65, 2, 1), ('nothing new', 65, 0, 1), ('failed', 65, 0, 1),
                     ('kept', 0, 3, 1)], found
    for printed, reason in (empty, reasons[0]), (refused, reasons[3]), (again, reasons[4]), (bad, reasons[5]):
        assert printed.stderr == f'dml-coordinator: {reason}\n', (printed, reason)
    assert reasons[2] == 'no new data since run 1', reasons


@test
def many_idle_nights_are_one_row_and_do_not_grow_the_database(folder):
    nights = Nights(folder)
    nights.good_nights(1)
    nights.good()
    size = (nights.state / 'dml.db').stat().st_size
    for _ in range(30):
        assert nights.retrain('--cron').status == 0
    assert (nights.state / 'dml.db').stat().st_size == size
    assert (nights.state / 'dml.db-wal').stat().st_size < 1 << 20
    assert rows(nights.state)[0] == [('published', 0, 1, 1), ('nothing new', 0, 0, 31)]
    nights.good_nights(2)
    assert rows(nights.state)[0][1:] == [('nothing new', 0, 0, 31), ('published', 0, 2, 1)]


@test
def a_night_that_was_killed_is_told_by_the_next_one(folder):
    nights = Nights(folder)
    nights.good_nights(1)
    nights.add(2, rows=2000)
    nights.kill_in_training()
    assert rows(nights.state)[0][1:] == [('', -1, 0, 1)]
    after = nights.retrain()
    assert after.status == 0 and LOST in after.stderr, after
    found, reasons = rows(nights.state)
    assert found == [('published', 0, 1, 1), ('lost', -1, 0, 1), ('published', 0, 2, 1)], found
    assert reasons[1] == LOST, reasons
    assert LOST not in nights.retrain().stderr


@test
def a_command_that_was_stopped_says_so_wherever_it_was(folder):
    nights = Nights(folder)
    nights.add(1, rows=2000)
    training = nights.start(**SLOW)
    training.until(lambda: nights.step(training) >= 2, 'a step')
    training.signal(signal.SIGTERM)
    assert training.wait().status == AGAIN
    nights.add(2)
    packing = nights.start(DML_FAILPOINT='coordinator.pack_publish:1:delay:3000')
    packing.until(lambda: '"packing"' in dml('status', nights.state, '--json').stdout, 'it packs')
    packing.signal(signal.SIGINT)
    assert packing.wait().status == AGAIN
    found, reasons = rows(nights.state)
    assert found[0] == ('stopped', AGAIN, 1, 1) and 'the same command goes on' in reasons[0], found
    assert found[1:] == [('stopped', AGAIN, 0, 1)] and reasons[1] == 'interrupted', (found, reasons)


@test
def a_run_leaves_its_trace_too(folder):
    job = small_job(folder, holdout='0.3')
    train(job)
    assert dml('run', job, '--set', 'gate=loss <= 0.1 * live').status == BAD_DATA
    assert dml('run', job, '--set', 'l2=7').status == 0
    (folder / 'small.libsvm').unlink()
    gone = dml('run', job)
    found, reasons = rows(folder / 'job.state')
    assert found == [('published', 0, 1, 1), ('refused', 65, 2, 1), ('kept', 0, 3, 1),
                     ('failed', gone.status, 0, 1)], found
    assert reasons[3] in gone.stderr and 'small.libsvm' in reasons[3], (reasons, gone)


@test
def a_full_disk_is_told_and_costs_no_more_than_the_trace(folder):
    nights = Nights(folder)
    nights.good_nights(1)
    first = nights.retrain('--cron', DML_FAILPOINT='coordinator.store_commit:1:enospc')
    assert first.status == IO and 'dml.db: No space left' in first.stderr, first
    last = nights.retrain(DML_FAILPOINT='coordinator.store_commit:2:enospc')
    assert last.status == 0 and 'what came of this command is not recorded' in last.stderr, last
    nights.good_nights(2)
    found, reasons = rows(nights.state)
    assert found == [('published', 0, 1, 1), ('lost', -1, 0, 1), ('published', 0, 2, 1)], found
    assert 'disk was full' in reasons[1], reasons


@test
def what_fails_before_the_record_is_open_leaves_it_as_it_is(folder):
    nights = Nights(folder)
    nights.good_nights(1)
    before = rows(nights.state)
    nights.job.write_text(nights.job.read_text() + 'l2 = many\n')
    assert nights.retrain().status == CONFIG
    assert rows(nights.state) == before
    nights.job.write_text(nights.job.read_text().replace('l2 = many\n', ''))
    nights.add(2)
    first = nights.start(**SLOW)
    first.until(lambda: nights.step(first) >= 1, 'a step')
    first.signal(signal.SIGSTOP)  # nobody can wait for its end
    assert nights.retrain().status == AGAIN
    first.signal(signal.SIGCONT)
    assert first.wait().status == 0
    before[0].append(('published', 0, 2, 1))
    assert rows(nights.state)[0] == before[0]
    user = ordinary_user(folder)
    if user:
        os.chmod(nights.state, 0o500)
        refused = nights.retrain(user=user)
        os.chmod(nights.state, 0o700)
        assert refused.status in (CREATE, PERMISSION), refused
        assert rows(nights.state)[0] == before[0]


def told(state):
    """The first column of each row that `jobs --json` has, and the failures up to now."""
    folder = dml('jobs', state, '--json').json['folders'][0]
    return [(row['outcome'], row['status'], row['run'], row['times']) for row in folder['invocations']], \
        folder['failures']


@contextlib.contextmanager
def served(*states):
    server = Process(COORDINATOR, 'serve', *states)
    found = server.until(lambda: re.search(r' at (http://\S+) ', server.so_far(server.output)), 'it listens')
    try:
        yield lambda path: urllib.request.urlopen(found[1] + path, timeout=30).read().decode()
    finally:
        server.end()


def metrics(text):
    samples, wrong = metrics_text.read(text)
    assert not wrong, wrong
    return [samples.get((f'dml_{name}', labels)) for labels in [next(iter(samples))[1]]
            for name in ('last_invocation_status', 'consecutive_failures', 'state_readable')]


@test
def a_night_that_fails_is_shown_wherever_one_looks(folder):
    nights = Nights(folder)
    nights.good_nights(1)
    quiet = dml('jobs', nights.state), dml('status', nights.state)
    assert not any('command' in shown.stdout for shown in quiet), quiet
    nights.good()
    (nights.inbox / '02.libsvm').write_text('1 3:<b>\n')
    for _ in range(2):
        assert nights.retrain('--cron').status == BAD_DATA
    assert told(nights.state) == ([('published', 0, 1, 1), ('nothing new', 0, None, 1),
                                   ('failed', 65, None, 2)], 2)
    jobs = dml('jobs', nights.state).stdout
    assert re.search(r'commands since then\n\S+ \S+ retrain: nothing new: no new data since run 1\n', jobs), jobs
    line = r'retrain: failed \(65\), 2 times since \S+ \S+: \S+02.libsvm:1: the value in "3:<b>" is not'
    status = dml('status', nights.state)
    assert re.search(line, jobs) and re.search('last command: .*' + line, status.stdout), (jobs, status)
    assert dml('status', nights.state, '--json').json['invocation']['times'] == 2
    assert metrics(dml('metrics', nights.state).stdout) == [65, 2, 1]
    train(small_job(folder, state=str(folder / 'other.state'), name='other'))
    with served(nights.state, folder / 'other.state') as ask:
        index = ask('')
        assert index.count('last command') == 1 and re.search(line.replace('<', '&lt;'), index), index
        assert index.count('<b>') == 0 and '✕ last command' in index, index
        assert json.loads(ask('1/api/v1/runs'))['failures'] == 2
        assert metrics(ask('metrics'))[:2] == [65, 2]
    (nights.inbox / '02.libsvm').unlink()
    nights.add(3)
    result = nights.good()
    assert (result['outcome'], result['invocation'], result['failures_before']) == ('published', 5, 2), result
    assert told(nights.state)[1] == 0 and metrics(dml('metrics', nights.state).stdout) == [0, 0, 1]
    assert nights.good()['outcome'] == 'nothing new'


@test
def a_first_night_that_fails_is_shown_though_there_is_no_run(folder):
    nights = Nights(folder)
    for _ in range(3):
        assert nights.retrain('--cron').status == BAD_DATA
    said = dml('status', nights.state)
    assert said.status == UNAVAILABLE and 'nothing was run there yet' in said.stderr, said
    assert re.search('retrain: failed [(]65[)], 3 times since .*no file matches', said.stderr), said
    assert 'no file matches' in dml('jobs', nights.state).stdout
    (folder / 'empty.state').mkdir()
    with served(nights.state, folder / 'empty.state') as ask:
        assert 'no file matches' in ask('')
        assert metrics(ask('metrics')) == [65, 3, 1]


@test
def a_command_at_work_is_running_and_one_that_was_killed_is_lost(folder):
    nights = Nights(folder)
    nights.add(1, rows=2000)
    process = nights.start(**SLOW)
    process.until(lambda: nights.step(process) >= 1, 'a step')
    assert told(nights.state) == ([('running', None, None, 1)], 0)
    assert 'retrain: running\n' in dml('jobs', nights.state).stdout
    process.signal(signal.SIGKILL)
    process.popen.wait()
    process.deserted()
    assert told(nights.state) == ([('lost', None, None, 1)], 1)
    assert f'retrain: lost: {LOST}' in dml('jobs', nights.state).stdout
    assert metrics(dml('metrics', nights.state).stdout) == [None, 1, 1]
    assert nights.good()['failures_before'] == 1
    assert told(nights.state) == ([('lost', None, None, 1), ('published', 0, 1, 1)], 0)


sys.exit(main())
