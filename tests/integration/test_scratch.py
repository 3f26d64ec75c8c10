#!/usr/bin/env python3
"""`scratch`: replicas keep a copy of the chunks that they are given on a local disk."""

import re
import sys

from harness import BAD_DATA, USAGE, dml, main, small_data, test, train, write_job


def make(folder, rows=4000, name='job', **settings):
    """A job of some fifteen chunks, and one with scratch."""
    data = small_data(folder, rows=rows)
    common = {'data': [data.name], 'l2': 1e-3, 'precondition': 'none', 'max_steps': 8,
              'replicas': 2, 'threads': 1, **settings}
    return (write_job(folder, f'{name}-plain', **common),
            write_job(folder, name, scratch=folder / 'scratch', **common))


def copies(folder):
    return sorted((folder / 'scratch').glob('dml-*.scratch'))


def set_of(folder, job='job'):
    found, = (folder / f'{job}.state/packs').glob('*.set')
    return found


@test
def a_copy_is_made_shared_by_replicas_used_again_and_gives_the_same_bits(folder):
    plain, job = make(folder)
    expected = train(plain)['model_sha256']
    assert train(job)['model_sha256'] == expected
    copy, = copies(folder)
    whole = set_of(folder)
    assert copy.stat().st_size == whole.stat().st_size and copy.stat().st_blocks, copy
    before = copy.read_bytes()
    # Chunks are at their places; the sections around them are not copied.
    same = sum(a == b for a, b in zip(before, whole.read_bytes()))
    assert same > len(before) / 2, same
    assert train(job, '--fresh')['model_sha256'] == expected
    assert copy.read_bytes() == before and copies(folder) == [copy]
    first = train(job, '--fresh', '--set', 'max_steps=3')
    later = train(job, '--set', f'scratch={folder}/other')
    assert later['continues'] == first['run'] and later['model_sha256'] == expected, later


@test
def a_copy_that_was_damaged_is_made_anew(folder):
    plain, job = make(folder)
    expected = train(plain)['model_sha256']
    train(job)
    copy, = copies(folder)
    sound = copy.read_bytes()
    for damage in (lambda b: bytes(x ^ 0x55 for x in b), lambda b: b[:len(b) // 2], lambda b: b''):
        copy.write_bytes(damage(sound))
        assert train(job, '--fresh')['model_sha256'] == expected
        again = copy.read_bytes()
        # All chunks are sound again: what differs are places that are not copied.
        assert train(job, '--fresh')['model_sha256'] == expected and copy.read_bytes() == again


@test
def a_damaged_set_is_not_hidden_by_what_a_copy_lacks(folder):
    _, job = make(folder)
    train(job)
    copy, = copies(folder)
    copy.write_bytes(b'')
    path = set_of(folder)
    content = bytearray(path.read_bytes())
    content[600] ^= 1  # in the first chunk
    path.write_bytes(content)
    finished = dml('run', job, '--fresh')
    assert finished.status == BAD_DATA and 'checksum of chunk 0' in finished.stderr, finished


@test
def a_full_disk_and_a_folder_that_cannot_be_made_cost_a_line_and_no_more(folder):
    plain, job = make(folder)
    expected = train(plain)['model_sha256']
    full = dml('run', job, '--json', DML_FAILPOINT='replica.scratch_write:3:enospc')
    assert full.status == 0 and full.json['model_sha256'] == expected, full
    assert 1 <= len(re.findall('No space left on device: chunks that it lacks', full.stderr)) <= 2
    (folder / 'file').touch()
    for nowhere in folder / 'file', folder / 'file/below', '/proc/none':
        finished = dml('run', job, '--fresh', '--json', '--set', f'scratch={nowhere}')
        assert finished.status == 0 and finished.json['model_sha256'] == expected, finished
        assert len(re.findall('no copy of the set is kept', finished.stderr)) == 2, finished


@test
def copies_that_no_run_uses_are_removed(folder):
    _, job = make(folder)
    train(job)
    first, = copies(folder)
    small_data(folder, rows=3000, seed=9)
    train(job)
    second, = copies(folder)
    assert first != second


@test
def a_relative_path_is_refused(folder):
    _, job = make(folder)
    finished = dml('check', job, '--set', 'scratch=here')
    assert finished.status == USAGE and 'an absolute path' in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
