#!/usr/bin/env python3
"""Every `run` and `retrain` leaves a trace: a night that failed, had nothing to do, was refused, was stopped or
killed is in the record, and what is shown of it says why."""

import contextlib
import os
import signal
import sqlite3
import sys
import time

from harness import AGAIN, BAD_DATA, CONFIG, CREATE, PERMISSION, dml, main, ordinary_user, small_job, test, train
from nightly import SLOW, Nights

LOST = 'it never ended: it was killed, or its machine went down'


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
    assert after.status == 0 and 'never ended: it was killed' in after.stderr, after
    found, reasons = rows(nights.state)
    assert found == [('published', 0, 1, 1), ('lost', -1, 0, 1), ('published', 0, 2, 1)], found
    assert reasons[1] == LOST, reasons
    assert 'never ended' not in nights.retrain().stderr


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
    packing.until(lambda: dml('status', nights.state, '--json').json['state'] == 'packing', 'it packs')
    time.sleep(0.3)
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


sys.exit(main())
