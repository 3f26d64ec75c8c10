#!/usr/bin/env python3
"""How much work a fault costs at most, read from the database.

A killed run: what was done since the last durable step, which is checkpoint_seconds, the step in
which a checkpoint fell due, and its writing. A replica that is stopped for good: what it has
computed and not flushed, which is one interval of flush_ms.
"""

import re
import sys
import time

from faults import (check_counted_once, check_nothing_left, chunks_of, conclude, kill, long_test,
                    make_job, quiet, run_of, steps_of, until_step)
from harness import main, test

# ---- killed runs ----

CHECKPOINT_S = 1
SLACK_S = 1  # commits ten times a second, and processes that are not scheduled for a while
STEPS_BEFORE = 40  # at 100 ms or more: far more than CHECKPOINT_S + SLACK_S
STEPS = 60  # far more than are made until one sees the last of those before
SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '20000'}


def slow_job(folder):
    job = make_job(folder, checkpoint_seconds=CHECKPOINT_S, max_steps=STEPS, gradient_tolerance=0)
    return job, quiet(job)


def check_work_at_risk(run, durable, killed_ms):
    """What was done after the durable step, by the clock, is at most checkpoint_seconds and the
    longest step and the longest writing of a checkpoint that the database tells of."""
    with run.database() as database:
        accepted = dict(database.execute('SELECT step, wall_ms FROM steps ORDER BY step'))
        writing_ms = [wall_ms - accepted[step] for step, wall_ms in
                      database.execute('SELECT step, wall_ms FROM durable_steps')]
    times = [accepted[step] for step in sorted(accepted) if accepted[step] < killed_ms]
    step_ms = max(b - a for a, b in zip(times, times[1:] + [killed_ms]))
    at_risk_ms = killed_ms - accepted[durable]
    bound_ms = (CHECKPOINT_S + SLACK_S) * 1000 + step_ms + max(writing_ms)
    assert at_risk_ms <= bound_ms, f'{at_risk_ms} ms of work were lost, {bound_ms:.0f} at most'
    assert max(times) - min(times) > bound_ms, 'the run was too short to tell'


def newest_durable(run):
    with run.database() as database:
        return database.execute('SELECT max(step) FROM durable_steps').fetchone()[0]


def killed(folder, disturb):
    """All processes are killed, after other faults perhaps; the next start does again what was done
    after the newest durable step and nothing else."""
    job, expected = slow_job(folder)
    with run_of(job, 'killed', **SLOW) as run:
        run.start()
        disturb(run)
        until_step(run, STEPS_BEFORE)
        killed_ms = int(time.time() * 1000)
        for pid in run.living():
            kill(pid)
        run.now.popen.wait()
        durable = newest_durable(run)
        check_work_at_risk(run, durable, killed_ms)
        run.start(DML_PAUSE_US='0')
        result = conclude(run, 0)
        assert min(steps_of(run)) == durable + 1, f'went on with {min(steps_of(run))}'
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)


@test
def a_killed_run_does_again_what_one_checkpoint_interval_held(folder):
    killed(folder, lambda run: None)


@long_test
def coordinators_killed_one_after_another_do_not_put_the_checkpoint_off(folder):
    """Each lives for less than checkpoint_seconds and finds the shards where the last one left
    them: no step is undone, and the steps that have gathered become durable all the same."""
    def disturb(run):
        for step in range(4, STEPS_BEFORE, 2):
            until_step(run, step)
            kill(run.now.pid)
            run.now.popen.wait()
            with run.database() as database:
                last = database.execute('SELECT max(step) FROM steps').fetchone()[0]
            run.start()
            until_step(run, last + 1)
            assert min(steps_of(run)) == last + 1, f'{min(steps_of(run))} after {last}'
    killed(folder, disturb)


@long_test
def a_killed_shard_costs_what_one_checkpoint_interval_held(folder):
    """The run goes on by itself, back at a durable step, which an event names."""
    job, expected = slow_job(folder)
    with run_of(job, 'shard', **SLOW) as run:
        run.start()
        until_step(run, STEPS_BEFORE)
        killed_ms = int(time.time() * 1000)
        kill(run.of_role('shard')[0])
        result = conclude(run, 0)
        with run.database() as database:
            texts = [text for text, in database.execute('SELECT text FROM events')]
        back = [int(n) for n in re.findall(r'back to step (\d+), attempt 2', '\n'.join(texts))]
        assert len(back) == 1, f'the events are {texts}'
        check_work_at_risk(run, back[0], killed_ms)
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)


# ---- replicas that are stopped for good ----

FLUSH = 5  # of ten or so


def stopped(folder, flush_ms, pause_us, **settings):
    """Replica 1 stops itself when it is about to report its fifth flush: the worst moment, since it
    holds a whole interval's work. What it reported before stays counted. Returns what the run told,
    and what events told of chunks that went to others."""
    job = make_job(folder, rows=40000, gradient_tolerance=1, portion_chunks=2, flush_ms=flush_ms,
                   directions=0, **settings)  # one evaluation
    expected = quiet(job)
    fired = folder / 'fired'
    with run_of(job, 'stopped', DML_SHUFFLE='5', DML_PAUSE_US=str(pause_us),
                DML_FAILPOINT=f'replica1.send_FLUSHED:{FLUSH}:stop',
                DML_FAILPOINT_ONCE=str(fired)) as run:
        run.start()
        result = conclude(run, 0)
        assert (folder / 'fired.0').exists(), 'the replica was not stopped'
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)
        check_counted_once(run, chunks_of(run))
        with run.database() as database:
            incarnation, = database.execute("SELECT min(incarnation) FROM processes"
                                            " WHERE role = 'replica' AND idx = 1").fetchone()
            counted = [sequence for sequence, in database.execute(
                'SELECT DISTINCT sequence FROM portions WHERE incarnation = ? ORDER BY sequence',
                (incarnation,))]
            returned = [int(text.split()[0]) for text, in
                        database.execute("SELECT text FROM events WHERE kind = 'returned'")]
    assert counted == list(range(1, FLUSH)), f'of the stopped replica counted flushes {counted}'
    return run.story(), returned


@long_test
def a_stopped_replica_costs_one_flush_interval(folder):
    """Without backup copies, what it was handed and has not had counted goes to others once it is
    silent: one event says how many chunks. It pauses pause_us / 2 on average before each, however
    busy the machine is, so that these are at most what fits into one interval of flush_ms, as much
    again for what it may compute while the shards take the flush, and a portion handed in advance.
    Its whole part of the evaluation is some four times as much."""
    flush_ms, pause_us = 500, 80000
    _, returned = stopped(folder, flush_ms, pause_us, backup_copies=False)
    assert len(returned) == 1, f'{returned} chunks went back'
    bound = 2 * flush_ms * 1000 // (pause_us // 2) + 2
    assert 0 < returned[0] <= bound, f'{returned[0]} chunks were lost, {bound} at most'


@test
def backup_copies_end_an_evaluation_before_a_stopped_replica_is_missed(folder):
    story, _ = stopped(folder, 100, 20000)
    assert 'replica 1 was lost' not in story, story


if __name__ == '__main__':
    sys.exit(main())
