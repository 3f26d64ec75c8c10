#!/usr/bin/env python3
"""State folders that the caller may read but not write: another user's, or on a read-only mount."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from harness import (COORDINATOR, PERMISSION, UNAVAILABLE, Process, Skip, dml, endless_job,
                     main, run, small_job, test, train)

NOBODY = 65534


def contents(state):
    """What each file holds, and when folders last changed."""
    return {path: hashlib.sha256(path.read_bytes()).digest() if path.is_file() else
            path.stat().st_mtime_ns for path in [state, *state.rglob('*')]}


def readable(state):
    """Whoever else is on the machine may read the folder, but not its lock."""
    if os.geteuid() != 0:
        raise Skip('only root can be another user')
    state.chmod(0o755)
    state.parent.chmod(0o755)
    try:
        run(COORDINATOR, '--version', user=NOBODY, cwd='/')
    except PermissionError:
        raise Skip('this is root, and others may not run the programs here') from None


def as_other(*arguments, **options):
    return run(COORDINATOR, *arguments, user=NOBODY, cwd='/', **options)


def report(state):
    return as_other('report', state, '-o', '-')


@contextlib.contextmanager
def live_run(folder, **settings):
    job = endless_job(folder, **settings)
    process = Process(COORDINATOR, 'run', job, '--verbose')
    try:
        process.until(lambda: 'step 20:' in process.so_far(process.errors), 'there are steps')
        yield folder / 'job.state', process
    finally:
        process.end()


@test
def a_folder_that_may_not_be_read_is_told_as_such_with_what_its_owner_can_do(folder):
    state = folder / 'job.state'
    train(small_job(folder))
    readable(state)
    state.chmod(0o700)
    for command in (('predict', state, folder / 'small.libsvm'), ('jobs', state), ('status', state)):
        refused = as_other(*command)
        assert refused.status == PERMISSION and re.search('chmod (-R )?go[+]r[xX]', refused.stderr), refused
        assert str(state) in refused.stderr and 'no model' not in refused.stderr, refused
    refused = as_other('prune', state)
    assert refused.status == PERMISSION and refused.stderr.count(str(state)) == 2, refused


@test
def another_user_is_told_what_prune_would_remove_if_all_may_be_read(folder):
    state = folder / 'job.state'
    for number in range(3):
        train(small_job(folder, l2=10.0 ** -number, keep_models=1))
    owners = dml('prune', state, '--dry-run', '--json').json
    assert owners['folders'][0]['removed'], owners
    readable(state)
    refused = as_other('prune', state, '--dry-run')
    assert refused.status == PERMISSION and f'cannot list {state}/packs' in refused.stderr, refused
    (state / 'packs').chmod(0o755)
    packs = [path for path in (state / 'packs').iterdir() if path.suffix == '.pack']
    packs[0].chmod(0o600)
    refused = as_other('prune', state, '--dry-run')
    assert refused.status == PERMISSION and f'cannot read {packs[0]}' in refused.stderr, refused
    packs[0].chmod(0o644)
    before = contents(state)
    told = as_other('prune', state, '--dry-run', '--json')
    assert told.status == 0 and told.json == owners, told
    refused = as_other('prune', state)
    assert refused.status == PERMISSION and contents(state) == before, refused


@test
def a_state_that_cannot_be_made_is_answered_with_the_option_for_another(folder):
    train(small_job(folder))
    readable(folder / 'job.state')
    refused = as_other('run', folder / 'job.conf', '--state', '/proc/none.state')
    assert refused.status and '--state DIR' in refused.stderr, refused


@test
def another_user_reads_what_was_run_and_leaves_no_trace(folder):
    state = folder / 'job.state'
    train(small_job(folder))
    readable(state)
    temporary = folder / 'temporary'
    temporary.mkdir()
    temporary.chmod(0o1777)
    owners = dml('status', state, '--json').json
    before = contents(state)
    assert as_other('status', state, '--json', TMPDIR=str(temporary)).json == owners
    jobs = as_other('jobs', state, '--json', TMPDIR=str(temporary)).json
    assert jobs['folders'][0]['runs'][0]['state'] == 'ended', jobs
    page = report(state)
    assert page.status == 0 and '"state":"ended"' in page.stdout.replace(' ', ''), page.stderr
    data = folder / 'small.libsvm'
    for command in (('predict', state, data), ('evaluate', state, data),
                    ('export', state, '--format', 'tsv')):
        assert as_other(*command).status == 0, command
    assert contents(state) == before
    assert not list(temporary.iterdir())


@test
def another_user_reads_what_a_killed_coordinator_left_in_its_log(folder):
    with live_run(folder) as (state, process):
        readable(state)
        process.until(lambda: as_other('status', state, '--json').json['step'] > 0,
                      'steps are in the log')
        process.end()
        assert (state / 'dml.db-wal').stat().st_size > 0
        before = contents(state)
        answer = as_other('status', state, '--json')
        assert answer.status == 0 and answer.json['step'] > 0, answer
        assert answer.json['state'] == 'unknown' and 'write access' in answer.stderr, answer
        assert contents(state) == before
        owners = dml('status', state, '--json').json
        assert owners['state'] == 'interrupted', owners
        unknown = {**owners['invocation'], 'outcome': 'unknown', 'reason': None}
        assert {**owners, 'state': 'unknown', 'invocation': unknown} == answer.json


@test
def another_user_sees_the_record_of_a_live_run_but_may_not_stop_it(folder):
    with live_run(folder) as (state, process):
        readable(state)
        steps = []
        while len(steps) < 8 or steps[0] == steps[-1] and len(steps) < 300:
            answer = as_other('status', state, '--json')
            assert answer.status == 0 and answer.json['state'] == 'unknown', answer
            assert 'for the live state ask as root' in answer.stderr, answer
            steps.append(answer.json['step'])
            time.sleep(0.1)
        assert steps == sorted(steps) and steps[0] < steps[-1], steps
        runs = as_other('jobs', state, '--json').json['folders'][0]['runs']
        assert runs[-1]['state'] == 'unknown', runs
        assert report(state).status == 0
        refused = as_other('cancel', state)
        assert refused.status == PERMISSION and 'only its owner' in refused.stderr, refused
        assert dml('status', state, '--json').json['state'] == 'running'


@test
def another_user_serves_the_page_of_a_folder_that_it_may_only_read(folder):
    train(small_job(folder))
    readable(folder / 'job.state')
    server = Process(COORDINATOR, 'serve', folder / 'job.state', user=NOBODY, cwd='/')
    try:
        url = server.until(lambda: server.so_far(server.output), 'it listens').split()[5]
        with urllib.request.urlopen(url.rstrip('/') + '/api/v1/status') as answer:
            assert json.load(answer)['state'] == 'ended'
    finally:
        server.signal(signal.SIGTERM)
        server.wait()


@test
def what_changes_while_a_page_is_read_is_shown_by_the_next_one(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    readable(state)
    server = Process(COORDINATOR, 'serve', state, user=NOBODY, cwd='/',
                     DML_FAILPOINT='store_opened:1:delay:600')

    def newest():
        with urllib.request.urlopen(url.rstrip('/') + '/api/v1/status') as answer:
            return json.load(answer)['run']

    try:
        url = server.until(lambda: server.so_far(server.output), 'it listens').split()[5]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(newest)
            time.sleep(0.2)
            train(small_job(folder, l2=0.5))
            assert first.result() == 1
        time.sleep(7)  # what takes long is looked at ten times as seldom
        assert newest() == 2
    finally:
        server.signal(signal.SIGTERM)
        server.wait()


@test
def a_folder_that_cannot_be_read_or_copied_is_refused_by_name(folder):
    state = folder / 'job.state'
    train(small_job(folder))
    readable(state)
    answer = as_other('status', state, TMPDIR='/nowhere')
    assert answer.status != 0 and 'set TMPDIR' in answer.stderr, answer
    (state / 'dml.db').chmod(0o600)
    answer = as_other('status', state)
    assert answer.status == PERMISSION and 'cannot read' in answer.stderr, answer
    assert 'dml.db' in answer.stderr, answer
    (state / 'dml.db').rename(state / 'elsewhere')
    answer = as_other('status', state)
    assert answer.status == UNAVAILABLE and 'nothing was run there' in answer.stderr, answer
    for command in ('prune', 'rollback'):
        answer = as_other(command, state)
        assert answer.status == PERMISSION and 'cannot change the state' in answer.stderr, answer


@test
def a_read_only_mount_is_read_by_its_owner(folder):
    state, mount = folder / 'job.state', folder / 'mount'
    train(small_job(folder))
    mount.mkdir()
    script = ('mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && '
              '! touch "$2/x" 2>/dev/null && exec "$3" status "$2" --json')
    if not shutil.which('unshare') or subprocess.run(
            ['unshare', '-m', 'true'], capture_output=True).returncode:
        raise Skip('this user may not mount')
    answer = run('unshare', '-m', 'sh', '-c', script, 'sh', state, mount, COORDINATOR)
    assert answer.status == 0 and answer.json['state'] == 'ended', answer


if __name__ == '__main__':
    sys.exit(main())
