#!/usr/bin/env python3
"""Full disks and damaged files: named, never a wrong model, and after repair the same bits."""

import contextlib
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

from faults import (ALL, check_nothing_left, conclude, flip, kill, make_job, quiet, run_of, steps_of)
from harness import BAD_DATA, CREATE, IO, UNAVAILABLE, Skip, main, test

SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '6000'}
ENDINGS = (0, CREATE, IO)


# ---- full disks ----

@contextlib.contextmanager
def small_disk(folder, kilobytes):
    """A file system of that size, mounted in the folder."""
    if os.geteuid() != 0:
        raise Skip('only root may mount a small file system')
    folder.mkdir()
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={kilobytes}k', 'dml-test',
                              folder], capture_output=True, text=True)
    if mounted.returncode:
        raise Skip(f'a small file system cannot be mounted: {mounted.stderr.strip()}')
    try:
        yield folder
    finally:
        subprocess.run(['umount', '-l', folder], check=True)


def free_bytes(folder):
    status = os.statvfs(folder)
    return status.f_bavail * status.f_bsize


def fill(folder, leave):
    """Leaves that many bytes."""
    with open(folder / 'ballast', 'wb') as file:
        with contextlib.suppress(OSError):
            while free_bytes(folder) > leave:
                file.write(bytes(min(1 << 16, free_bytes(folder) - leave)))
                file.flush()


def check_ending(run, finished):
    assert finished.status in ENDINGS, f'ended with {finished.status}'
    if finished.status:
        last = finished.stderr.strip().splitlines()[-1]
        assert re.search(r'No space left|disk full', last) and str(run.state) in last, last


def full_disk(folder, leave, evaluation, size=16000, **settings):
    """The disk fills up where that evaluation of the job begins (None: before the run does).
    Returns how that ended."""
    job = make_job(folder, max_steps=10, **{'checkpoint_seconds': 0, **settings})
    expected = quiet(job)
    with small_disk(folder / 'disk', size) as disk, run_of(job, 'full', **SLOW) as run:
        run.command = (*run.command[:-1], disk / 'state')
        run.state = disk / 'state'
        if evaluation is None:
            fill(disk, leave)
            run.start()
        else:
            run.start_held(evaluation)
            fill(disk, leave)
            run.go_on()
        finished = run.now.wait()
        check_ending(run, finished)
        if finished.status:
            check_nothing_left(run)
            (disk / 'ballast').unlink()
            run.start()
        result = conclude(run, 0)
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)
        return finished


@test
def a_disk_that_is_full_from_the_start_is_named(folder):
    finished = full_disk(folder, 0, None)
    assert finished.status in (CREATE, IO), finished


@test
def a_disk_too_full_for_packing_is_named(folder):
    finished = full_disk(folder, 300_000, None)
    assert finished.status in (CREATE, IO), finished


@test
def a_disk_that_fills_up_costs_a_rerun_at_most(folder):
    ended = {}
    for leave in (0, 20_000, 60_000, 120_000, 250_000, 400_000) if ALL else (0, 120_000):
        place = folder / str(leave)
        place.mkdir()
        ended[leave] = full_disk(place, leave, 4).status
    assert any(ended.values()), f'the disk was never full: {ended}'


@test
def a_checkpoint_that_cannot_be_written_is_reported_and_the_next_one_is(folder):
    job = make_job(folder, max_steps=10, checkpoint_seconds=0)
    expected = quiet(job)
    rule = 'shard.file_write:3:enospc'
    with run_of(job, 'checkpoint', DML_FAILPOINT=rule, **SLOW) as run:
        run.start()
        result = conclude(run, 0)
        assert 'could not write the checkpoint' in run.story()
        assert result['model_sha256'] == expected['model_sha256']


@test
def a_model_that_cannot_be_written_is_written_by_the_next_start(folder):
    for leave in 10_000, 60_000:
        place = folder / str(leave)
        place.mkdir()
        full_disk(place, leave, 11, checkpoint_seconds=1000)


# ---- damaged files ----

def checkpoints_seen(run):
    """Of how many steps shard 0 has had a checkpoint. A third one is begun when the second step is
    durable, which the database would tell, were it not locked."""
    seen = set()

    def look():
        seen.update(path.name for path in checkpoints(run))
        return len(seen)
    return look


@contextlib.contextmanager
def broken_off(folder, name):
    """A run all of whose processes were killed, with two durable steps. Another start is quick."""
    job = make_job(folder, max_steps=30, checkpoint_seconds=0)
    expected = quiet(job)
    with run_of(job, name, DML_SHUFFLE='3', DML_PAUSE_US='0') as run:
        run.start(DML_PAUSE_US='40000')  # so that it does not end before it is killed
        seen = checkpoints_seen(run)
        run.now.until(lambda: seen() > 2, 'two durable steps')
        for pid in run.living():
            kill(pid, signal.SIGKILL)
        run.now.popen.wait()
        yield run, expected


def checkpoints(run):
    """Of shard 0, newest first."""
    found = [path for path in (run.state / 'shards').glob('*/0/step-*') if path.suffix == '']
    return sorted(found, key=lambda path: -int(path.name[5:]))


def check_goes_on(run, expected):
    run.start()
    result = conclude(run, 0)
    assert result['model_sha256'] == expected['model_sha256'], 'another model'
    check_nothing_left(run)


def durable_steps(run):
    with run.database() as database:
        return [step for step, in
                database.execute('SELECT step FROM durable_steps ORDER BY number DESC')]


@test
def the_older_checkpoint_serves_if_the_newest_is_damaged(folder):
    with broken_off(folder, 'newest') as (run, expected):
        newest, older = durable_steps(run)
        flip(next(p for p in checkpoints(run) if p.name == f'step-{newest}'))
        check_goes_on(run, expected)
        story = run.story()
        assert f'step-{newest}' in story, 'the damaged file is not named'
        assert min(steps_of(run)) <= older + 1


@test
def two_damaged_checkpoints_are_a_refusal_that_names_them(folder):
    with broken_off(folder, 'both') as (run, expected):
        kept = {path: path.read_bytes() for path in checkpoints(run)}
        for path in kept:
            flip(path)
        run.start()
        finished = run.now.wait()
        assert finished.status == BAD_DATA, f'ended with {finished.status}'
        assert '/step-' in finished.stderr.splitlines()[-1], finished.stderr
        check_nothing_left(run)
        for path, content in kept.items():
            path.write_bytes(content)
        check_goes_on(run, expected)


@test
def a_missing_checkpoint_is_like_a_damaged_one(folder):
    with broken_off(folder, 'missing') as (run, expected):
        next(p for p in checkpoints(run) if p.name == f'step-{durable_steps(run)[0]}').unlink()
        check_goes_on(run, expected)


class Saved:
    """A broken off run as it was, to be damaged and taken up many times."""

    def __init__(self, run, expected, folder):
        self.run, self.expected, self.folder = run, expected, folder
        self.newest, self.older = durable_steps(run)
        shutil.copytree(run.state, folder, ignore=shutil.ignore_patterns('*.sock'))

    def put_back(self):
        shutil.rmtree(self.run.state)
        shutil.copytree(self.folder, self.run.state)

    def file(self, step):
        return next(path for path in checkpoints(self.run) if path.name == f'step-{step}')

    def start(self):
        return self.run.start().wait()

    def check_goes_on_from(self, step):
        finished = self.start()
        assert finished.status == 0, f'ended with {finished.status}'
        assert finished.json['model_sha256'] == self.expected['model_sha256'], 'another model'
        assert min(steps_of(self.run)) == step + 1, f'made steps {steps_of(self.run)}'
        check_nothing_left(self.run)
        self.run.starts.clear()
        return finished

    def check_refuses(self):
        finished = self.start()
        assert finished.status == BAD_DATA, f'ended with {finished.status}'
        assert f'/step-{self.older}' in finished.stderr.splitlines()[-1], finished.stderr
        assert not list(self.run.state.glob('models/*')), 'there is a model all the same'
        check_nothing_left(self.run)
        self.run.starts.clear()


def header_bytes(path):
    """The number behind magic and version (doc/FORMATS.md)."""
    return struct.unpack_from('=8xII', path.read_bytes())[1]


@test
def a_flipped_byte_of_a_checkpoint_is_named_and_the_older_one_serves(folder):
    """Every byte of the header and 200 of the rest, one after another: the older step's checkpoint
    serves. Some of them in both checkpoints: that is refused, and goes on once it is repaired."""
    rng = random.Random(5)
    with broken_off(folder, 'flips') as (run, expected):
        saved = Saved(run, expected, folder / 'saved')
        damaged = saved.file(saved.newest)
        size, header = damaged.stat().st_size, header_bytes(damaged)
        offsets = [*range(header), *(rng.randrange(header, size) for _ in range(200))]
        for offset in offsets if ALL else [0, 9, size - 1, *rng.sample(offsets, 3)]:
            saved.put_back()
            flip(saved.file(saved.newest), offset)
            finished = saved.check_goes_on_from(saved.older)
            assert f'step-{saved.newest}' in finished.stderr, f'byte {offset} unnoticed'
        for offset in rng.sample(offsets, 20 if ALL else 1):
            saved.put_back()
            both = saved.file(saved.newest), saved.file(saved.older)
            for path in both:
                flip(path, offset % path.stat().st_size)
            saved.check_refuses()
            for path in both:
                flip(path, offset % path.stat().st_size)
            saved.check_goes_on_from(saved.older)


def damaged_database(folder, name, damage):
    """Either the run goes on to the same model, or the database is named and set aside by hand."""
    with broken_off(folder, name) as (run, expected):
        damage(run.state)
        run.start()
        finished = run.now.wait()
        if finished.status:
            assert finished.status in (BAD_DATA, UNAVAILABLE, IO), f'ended with {finished.status}'
            last = finished.stderr.splitlines()[-1]
            assert 'dml.db' in last or '/step-' in last, last
            for path in run.state.glob('dml.db*'):
                path.unlink()
            run.start()
        result = conclude(run, 0)
        assert result['model_sha256'] == expected['model_sha256'], 'another model'
        check_nothing_left(run)


def truncate(path, keep):
    os.truncate(path, int(path.stat().st_size * keep))


@test
def a_truncated_database_is_named(folder):
    for keep in (0.3, 0.6, 0.9) if ALL else (0.5,):
        place = folder / str(keep)
        place.mkdir()
        damaged_database(place, 'database', lambda state: truncate(state / 'dml.db', keep))


@test
def a_truncated_write_ahead_log_costs_steps_but_no_bits(folder):
    for keep in (0, 0.3, 0.9) if ALL else (0.5,):
        place = folder / str(keep)
        place.mkdir()
        damaged_database(place, 'log', lambda state: truncate(state / 'dml.db-wal', keep))


@test
def a_flipped_byte_in_a_chunk_is_named(folder):
    job = make_job(folder, max_steps=6)
    expected = quiet(job)
    with run_of(job, 'chunk') as run:
        run.start()
        conclude(run, 0)
        for path in (run.state / 'packs').glob('*.set'):
            size = path.stat().st_size
            content = path.read_bytes()
            for offset in range(size // 16, size, size // (12 if ALL else 4)):
                path.write_bytes(content)
                flip(path, offset)
                run.command = (*run.command[:-1], run.state)
                run.now.end()
                run.starts.clear()
                run.command = (*run.command, '--fresh')
                run.start()
                finished = run.now.wait()
                run.command = run.command[:-1]
                if finished.status == 0:  # padding, or rewritten
                    assert finished.json['model_sha256'] == expected['model_sha256']
                    continue
                assert finished.status in (BAD_DATA, IO), f'{finished.status} at {offset}'
                assert '.set' in finished.stderr, f'{offset}: {finished.stderr}'
            path.unlink()
        check_goes_on(run, expected)


if __name__ == '__main__':
    sys.exit(main())
