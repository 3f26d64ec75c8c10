#!/usr/bin/env python3
"""Two versions of the programs on one state folder and in one run, while processes are killed. The
older one is built from a stored commit of this repository, with versions of protocol and state that
differ from those of today."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from faults import conclude, make_job, quiet, run_of
from harness import AGAIN, COORDINATOR, REPLICA, SHARD, SOURCE, UNAVAILABLE, Process, Skip, main, test

OLDER = '8577308b'
PROGRAMS = COORDINATOR, SHARD, REPLICA
VERSIONS = {'wire/message.h': 'PROTOCOL_VERSION', 'coordinator/machine/machine.h': 'STATE_VERSION'}
SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '8000'}


def command(*words, cwd):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(('MAKE', 'MFLAGS', 'DML_'))}
    done = subprocess.run([str(word) for word in words], cwd=cwd, text=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f'{words}: {done.stdout[-3000:]}'
    return done.stdout


def older_version(header, name):
    """The number before today's."""
    own = int(re.search(rf'define {name} (\d+)', (SOURCE / header).read_text())[1])
    return own - 1


def build_older(folder):
    """A folder with the older programs."""
    known = shutil.which('git') and subprocess.run(
        ['git', '-C', SOURCE, 'cat-file', '-e', f'{OLDER}^{{commit}}'], capture_output=True)
    if not known or known.returncode:
        raise Skip(f'no git, or no commit {OLDER} here, as in a tarball or a shallow clone')
    source, build = folder / 'older', folder / 'older/build'
    source.mkdir()
    with subprocess.Popen(['git', '-C', SOURCE, 'archive', OLDER], stdout=subprocess.PIPE) as archive:
        subprocess.run(['tar', 'x'], cwd=source, stdin=archive.stdout, check=True)
    for header, name in VERSIONS.items():
        path = source / header
        text, changed = re.subn(rf'(define {name}) \d+', rf'\1 {older_version(header, name)}',
                                path.read_text())
        assert changed == 1, header
        path.write_text(text)
    build.mkdir()
    command('./bootstrap', cwd=source)
    command('../configure', '--quiet', '--without-cuda', 'CFLAGS=-O1', cwd=build)
    command('make', '--quiet', f'-j{len(os.sched_getaffinity(0))}',
            *(program.name for program in PROGRAMS), cwd=build)
    return build


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
    older, own = build_older(folder), COORDINATOR.parent
    names = [program.name for program in PROGRAMS]
    job = make_job(folder, max_steps=60, checkpoint_seconds=0)
    expected = quiet(job)['model_sha256']
    programs = folder / 'programs'
    programs.mkdir()
    for first, second in (older, own), (own, older):
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
            if first == own:
                ended = now.wait()
                assert ended.status == UNAVAILABLE and 'shard' in ended.stderr.splitlines()[-1], ended
            else:
                now.end()

            # The other version refuses the run and changes nothing, also when it is killed.
            for _ in range(3):
                other = run.start(DML_FAILPOINT='coordinator.store_opened:1:kill')
                other.wait()
                refused = run.start().wait()
                assert refused.status == UNAVAILABLE and 'version' in refused.stderr, refused
                for word in 'status', 'jobs':  # the older program does not know the record of today
                    asked = Process(programs / COORDINATOR.name, word, run.state).wait()
                    assert asked.status == (0 if second == own else UNAVAILABLE), asked

            # The program that began the run ends it, through another kill.
            take(programs, first, *names)
            run.start(DML_FAILPOINT='coordinator.state_step_commit:3:kill').wait()
            result = conclude(run, 20)
            assert result['model_sha256'] == expected, result


sys.exit(main())
