#!/usr/bin/env python3
"""A coordinator that lost its lock and was replaced writes nothing more. On a network file system a
lock is a lease: a process that is stopped for long enough loses it and is not told."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import (AGAIN, COORDINATOR, Process, Skip, dml, endless_job, is_stopped, main,
                     small_job, test, train)

# As if every lock had been granted: the first coordinator then hinders the second in nothing.
SHIM = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

int flock(int descriptor, int operation) {
    (void)descriptor, (void)operation;
    return 0;
}

static int control(const char *name, int descriptor, int command, void *argument) {
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
    if (command == F_SETLK || command == F_SETLKW)
        return 0;
    if (command == F_GETLK) {
        ((struct flock *)argument)->l_type = F_UNLCK;
        return 0;
    }
    return real(descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return control("fcntl", descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return control("fcntl64", descriptor, command, argument);
}
'''


def shim(folder):
    """The path of the shim."""
    compiler = shutil.which('cc') or shutil.which('gcc')
    if not compiler:
        raise Skip('there is no C compiler')
    (folder / 'shim.c').write_text(SHIM)
    subprocess.run([compiler, '-shared', '-fPIC', '-o', folder / 'shim.so', folder / 'shim.c',
                    '-ldl'], check=True)
    return str(folder / 'shim.so')


def snapshot(state):
    """What every file, link and folder of the state holds."""
    found = {}
    for path in sorted(state.rglob('*')):
        what = os.readlink(path) if path.is_symlink() else \
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ''
        found[str(path)] = what, path.lstat().st_ino
    return found


def replaced(folder, job, until, command='run', **environment):
    """Stops a coordinator that has no real locks, lets another one take over and end, and lets the
    first go on. It must change nothing and end with 75."""
    state = folder / 'job.state'
    first = Process(COORDINATOR, command, job, LD_PRELOAD=shim(folder), **environment)
    quiet = {key: value for key, value in environment.items() if key != 'DML_FAILPOINT'}
    try:
        first.until(lambda: until(first), 'it is far enough')
        first.signal(signal.SIGSTOP)
        second = dml(command, job, '--set', 'max_seconds=1', '--json', **quiet)
        assert second.status == 0, second
        before = snapshot(state)
        first.signal(signal.SIGCONT)
        finished = first.wait(60)
        assert finished.status == AGAIN, finished
        assert re.search('took (this run|over)', finished.stderr), finished
        after = snapshot(state)
        assert after == before, (set(after.items()) ^ set(before.items()), finished)
        assert dml('status', job, '--json', **quiet).json['state'] == 'ended'
    finally:
        first.end()
    return second.json


def stands_still(process):
    return is_stopped(process.pid)


@test
def a_coordinator_that_was_replaced_while_it_trained_changes_nothing(folder):
    """Within a transaction, and after a durable step; each with and without a log."""
    for kind in 'network', 'local':
        for point in 'store_commit:3', 'state_step_commit:3':
            here = folder / f'{kind}-{point[:7]}'
            here.mkdir()
            job = endless_job(here, checkpoint_seconds=0.1)
            replaced(here, job, stands_still, DML_FILESYSTEM=kind,
                     DML_FAILPOINT=f'coordinator.{point}:stop')


@test
def nor_does_one_that_was_about_to_publish(folder):
    """At its last moments: before the model gets its place, before `current` changes, before the run
    ends, before old files go."""
    places = ('model_publish', 'store_commit_full:3', 'run_ended', 'model_link',
              'model_linked')
    for place in places:
        here = folder / place.partition(':')[0]
        here.mkdir()
        point, _, visit = place.partition(':')
        job = small_job(here, max_steps=3)  # it could go on, so no thread removes checkpoints
        replaced(here, job, stands_still, DML_FILESYSTEM='network',
                 DML_FAILPOINT=f'coordinator.{point}:{visit or 1}:stop')


@test
def nor_does_one_that_was_replaced_while_it_packed(folder):
    job = small_job(folder)
    replaced(folder, job, stands_still, DML_FILESYSTEM='network',
             DML_FAILPOINT='coordinator.pack_publish:1:stop')


@test
def a_run_on_a_network_file_system_gives_the_same_model(folder):
    job = small_job(folder)
    shared = train(job, DML_FILESYSTEM='network')
    assert not (folder / 'job.state/dml.db-wal').exists()
    assert train(job, '--state', folder / 'own.state')['model_sha256'] == shared['model_sha256']
    again = train(job, '--fresh')  # the folder was copied to a local disk
    assert again['model_sha256'] == shared['model_sha256'], (again, shared)


@test
def a_holder_on_another_host_is_named_with_its_host(folder):
    job = endless_job(folder)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until(lambda: 'step 0:' in process.so_far(process.errors), 'it steps')
        lock = folder / 'job.state/lock'
        holder = lock.read_text().split()
        assert holder[0] == str(process.pid) and holder[1] == os.uname().nodename, holder
        process.signal(signal.SIGSTOP)
        refused = dml('run', job)
        assert refused.status == AGAIN, refused
        assert f'already running, pid {process.pid};' in refused.stderr, refused
        lock.write_text(f'{process.pid} elsewhere 7\n')
        refused = dml('run', job)
        assert f'already running, pid {process.pid} on host elsewhere;' in refused.stderr, refused
        process.signal(signal.SIGCONT)
        assert process.wait(60).status == AGAIN  # it is not the holder any more
    finally:
        process.end()


if __name__ == '__main__':
    sys.exit(main())
