#!/usr/bin/env python3
"""Two versions of the programs on one state folder and in one run, while processes are killed. The
later one is built from the sources of today, with the next version of every format that two programs
share, and a step that upgrades the database."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

from faults import conclude, make_job, quiet, run_of
from harness import COORDINATOR, REPLICA, SHARD, SOURCE, UNAVAILABLE, Process, Skip, main, test

PROGRAMS = COORDINATOR, SHARD, REPLICA
VERSIONS = {'wire/message.h': 'PROTOCOL_VERSION', 'coordinator/machine/machine.h': 'STATE_VERSION',
            'shard/checkpoint.h': 'CHECKPOINT_VERSION', 'store/internal.h': 'STORE_VERSION'}
SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '8000'}


def command(*words, cwd):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(('MAKE', 'MFLAGS', 'DML_'))}
    done = subprocess.run([str(word) for word in words], cwd=cwd, text=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f'{words}: {done.stdout[-3000:]}'
    return done.stdout


def replace_once(path, pattern, new):
    text, changed = re.subn(pattern, new, path.read_text())
    assert changed == 1, (path, pattern)
    path.write_text(text)


def build_later(folder):
    """A folder with programs of the next version of each format: today's sources with other numbers,
    and a step that brings the database of today up to it."""
    listed = shutil.which('git') and subprocess.run(
        ['git', '-C', SOURCE, 'ls-files', '-z'], capture_output=True, text=True)
    if not listed or listed.returncode:
        raise Skip('no git, or no repository here, as in a tarball')
    source, build = folder / 'later', folder / 'later/build'
    for name in filter(None, listed.stdout.split('\0')):
        if (SOURCE / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, source / name, follow_symlinks=False)
    for header, name in VERSIONS.items():
        replace_once(source / header, rf'(define {name}) (\d+)', lambda m: f'{m[1]} {int(m[2]) + 1}')
    replace_once(source / 'store/open.c', r'(\{\[1\] = UPGRADES)\}',
                 r'\1, [STORE_VERSION - 1] = "CREATE TABLE later (x INTEGER);"}')
    build.mkdir()
    command('./bootstrap', cwd=source)
    command('../configure', '--quiet', '--without-cuda', 'CFLAGS=-O1', cwd=build)
    command('make', '--quiet', f'-j{len(os.sched_getaffinity(0))}',
            *(program.name for program in PROGRAMS), cwd=build)
    return build


def database(state):
    """The version of the database, and whether it has been brought up to date."""
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as connection:
        [[version]] = connection.execute('PRAGMA user_version')
        [[tables]] = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'later'")
    return version, tables


def take(programs, build, *names):
    """Puts programs of a build in place, as an installer does: another file takes the name."""
    for name in names:
        shutil.copy(build / name, programs / f'{name}.new')
        (programs / f'{name}.new').rename(programs / name)


def kill_one(run, role):
    [pid, *_] = run.of_role(role)
    os.kill(pid, signal.SIGKILL)


@test
def two_versions_alive_end_with_one_model_or_the_reason(folder):
    later, own = build_later(folder), COORDINATOR.parent
    names = [program.name for program in PROGRAMS]
    job = make_job(folder, max_steps=60, checkpoint_seconds=0)
    expected = quiet(job)['model_sha256']
    programs = folder / 'programs'
    programs.mkdir()
    for first, second in (own, later), (later, own):
        shutil.rmtree(folder / 'both.state', ignore_errors=True)
        take(programs, first, *names)
        with run_of(job, 'both', **SLOW) as run:
            run.command = (programs / COORDINATOR.name, *run.command[1:])

            # A replica whose program was replaced is done without, a shard ends the run by name.
            now = run.start_held(4)
            take(programs, second, *names)
            run.go_on()
            kill_one(run, 'replica')
            kill_one(run, 'shard')
            ended = now.wait()
            assert ended.status == UNAVAILABLE and 'shard' in ended.stderr.splitlines()[-1], ended
            made = database(run.state)

            # The other version refuses the run and changes nothing, also when it is killed.
            for _ in range(3):
                other = run.start(DML_FAILPOINT='coordinator.store_opened:1:kill')
                other.wait()
                refused = run.start().wait()
                assert refused.status == UNAVAILABLE and 'version' in refused.stderr, refused
                for word in 'status', 'jobs':  # today's program does not know the later record
                    asked = Process(programs / COORDINATOR.name, word, run.state).wait()
                    assert asked.status == (0 if second == later else UNAVAILABLE), asked
                for word in ('prune', 'publish 1', 'rollback') if second == later else ():
                    refused = Process(programs / COORDINATOR.name, *word.split(), run.state).wait()
                    assert refused.status == UNAVAILABLE, refused
                    assert 'end the run with the program that began it' in refused.stderr, refused
                    assert 'nothing was changed' in refused.stderr, refused
                assert database(run.state) == made, database(run.state)

            # The program that began the run ends it, through another kill.
            take(programs, first, *names)
            run.start(DML_FAILPOINT='coordinator.state_step_commit:3:kill').wait()
            result = conclude(run, 20)
            assert result['model_sha256'] == expected, result

            # Then the later one brings the database up to date, as a whole or not at all.
            take(programs, later, *names)
            if first == own:
                run.start(DML_FAILPOINT='coordinator.store_commit_full:1:kill').wait()
                assert database(run.state) == made == (made[0], 0), database(run.state)
                assert run.start().wait().status == 0
                assert database(run.state) == (made[0] + 1, 1), database(run.state)

            # A run that only the first one can end is given up by --fresh.
            if first == own:
                run.command = (*run.command, '--state', str(folder / 'given.state'))
                take(programs, own, *names)
                run.start(DML_FAILPOINT='coordinator.state_step_commit:3:kill').wait()
                take(programs, later, *names)
                assert run.start().wait().status == UNAVAILABLE
                fresh = Process(*run.command, '--fresh').wait()
                assert fresh.json['run'] == 2 and fresh.json['model_sha256'] == expected, fresh
                assert database(folder / 'given.state') == (made[0] + 1, 1)


sys.exit(main())
