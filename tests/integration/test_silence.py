#!/usr/bin/env python3
"""A worker that is at long work stays, one that is frozen in it is replaced: the model is the same."""

import sys
import time

from harness import main, small_job, test, train

SILENCE_SECONDS = 10
NONE_LOST = {'coordinator': 0, 'shard': 0, 'replica': 0}


def timed(job, failpoint):
    began = time.monotonic()
    result = train(job, '--fresh', DML_FAILPOINT=failpoint)
    return result, time.monotonic() - began


def slow(worker, first, seconds=2.5, portions=5):
    """Long work in one go: from that sign of life on, a worker waits before each."""
    return ','.join(f'{worker}.heartbeat:{visit}:delay:{int(seconds * 1000)}'
                    for visit in range(first, first + portions))


@test
def a_worker_whose_set_up_takes_longer_than_the_silence_limit_is_not_lost(folder):
    job = small_job(folder)
    expected = train(job)
    for worker in 'shard0', 'replica0':
        result, seconds = timed(job, slow(worker, 1))
        assert seconds > SILENCE_SECONDS, seconds
        assert result['restarts'] == NONE_LOST, result
        assert result['model_sha256'] == expected['model_sha256'], (result, expected)


@test
def a_worker_that_is_stopped_in_its_set_up_is_replaced_as_soon_as_any_other(folder):
    job = small_job(folder)
    expected = train(job)
    for worker in 'shard', 'replica':
        result, seconds = timed(job, f'{worker}0.heartbeat:3:stop')
        assert result['restarts'] == {**NONE_LOST, worker: 1}, result
        assert seconds < 2 * SILENCE_SECONDS, seconds
        assert result['model_sha256'] == expected['model_sha256'], (result, expected)


if __name__ == '__main__':
    sys.exit(main())
