#!/usr/bin/env python3
"""A set that changes while it is trained on: nothing of it is counted, the run ends by a name, and the
same command makes the set again from its packs and ends with the model of a quiet run."""

import os
import signal
import sys
import time

from harness import AGAIN, BAD_DATA, COORDINATOR, IO, Process, endless_job, main, test, train

# A chunk is not computed at once, so that a change falls between two uses.
SLOW = {'DML_SHUFFLE': '1', 'DML_PAUSE_US': '2000'}


def started(folder, **settings):
    job = endless_job(folder, **settings)
    process = Process(COORDINATOR, 'run', job, **SLOW)
    process.until(lambda: ': loss ' in process.so_far(process.errors), 'a step')
    time.sleep(0.1)  # more than a tick of the clock of files
    [path] = (folder / 'job.state/packs').glob('*.set')
    return job, process, path


def flip(path, at):
    """As an accident would, in place."""
    with open(path, 'r+b') as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 64]))


def check_goes_on(folder, job, path):
    quiet = train(job, '--set', 'max_steps=400', '--state', folder / 'quiet.state')
    result = train(job, '--set', 'max_steps=400')
    assert result['run'] == 1 and result['model_sha256'] == quiet['model_sha256'], (result, quiet)
    assert path.exists()


@test
def a_set_that_is_written_to_while_it_is_used_is_made_again(folder):
    for settings in {}, {'scratch': str(folder / 'copies')}:
        place = folder / f'with{len(settings)}'
        place.mkdir()
        job, process, path = started(place, max_steps=1000000, **settings)
        try:
            flip(path, path.stat().st_size // 4)
            ended = process.wait(60) if not settings else None
            if settings:  # the copies are whole
                process.signal(signal.SIGTERM)
                assert process.wait().status == AGAIN
                continue
        finally:
            process.end()
        assert ended.status == BAD_DATA, ended
        assert f'{path}: the checksum of chunk' in ended.stderr.splitlines()[-1], ended
        assert 'same command' in ended.stderr and not path.exists(), ended
        assert not list(place.glob('job.state/models/*')), ended
        check_goes_on(place, job, path)


@test
def a_set_that_is_cut_short_while_it_is_used_ends_the_run_by_its_name(folder):
    for part in 0, 64, 5000:
        place = folder / str(part)
        place.mkdir()
        job, process, path = started(place)
        try:
            os.truncate(path, part)
            ended = process.wait(60)
        finally:
            process.end()
        assert ended.status in (BAD_DATA, IO), ended
        last = ended.stderr.splitlines()
        assert any(str(path) in line and 'cut short' in line for line in last), ended
        check_goes_on(place, job, path)


@test
def a_set_that_is_touched_is_verified_and_goes_on(folder):
    job, process, path = started(folder)
    try:
        for _ in range(20):
            os.utime(path)
            time.sleep(0.02)
        process.signal(signal.SIGTERM)
        assert process.wait().status == AGAIN
    finally:
        process.end()
    check_goes_on(folder, job, path)


sys.exit(main())
