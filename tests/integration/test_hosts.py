#!/usr/bin/env python3
"""Workers on hosts: several names of this machine, and a command in the place of ssh."""

import contextlib
import os
import pathlib
import re
import signal
import sys

from harness import (AGAIN, BUILD, CONFIG, COORDINATOR, UNAVAILABLE, Process, dml, endless_job, main,
                     small_job, test, train)

HOSTS = ['127.0.0.1', '127.0.0.2:2', '127.0.0.3']
LAUNCH = 'env DML_HOST=%h'


@test
def hosts_train_the_model_of_one_machine(folder):
    expected = train(small_job(folder))
    for shards in 1, 3:
        got = train(small_job(folder, hosts=HOSTS, launch=LAUNCH, shards=shards), '--fresh')
        assert got['model_sha256'] == expected['model_sha256'], (got, expected)
        assert (got['replicas'], got['shards']) == (3, shards), got
        assert got['restarts'] == {'coordinator': 0, 'shard': 0, 'replica': 0}, got
    logs = sorted(path.name for path in (folder / 'job.state/log').iterdir())
    assert logs == [f'{role}-{i}.log' for role in ('replica', 'shard') for i in range(3)], logs


@test
def nodes_of_slurm_without_a_slurm_job_are_refused_before_data_is_read(folder):
    job = small_job(folder, hosts='slurm')
    refused = dml('run', job, SLURM_JOB_NODELIST='')
    assert refused.status == UNAVAILABLE, refused
    assert 'no Slurm job' in refused.stderr and 'packed' not in refused.stderr, refused


def launcher(folder, **cases):
    """A command for `launch` that does something else on some hosts: {last number: shell text}."""
    path = folder / 'go'
    lines = ''.join(f'127.0.0.{number[1:]}) {text};;\n' for number, text in cases.items())
    path.write_text(f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{lines}*) exec "$@";;\nesac\n')
    path.chmod(0o755)
    return f'{path} %h'


MUTE = 'exec sleep 1000'
DEAD = 'echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255'
DEAF = 'echo "listening tls:$host:9"; exec sleep 1000'  # nobody listens there


def hosts_to(last):
    return [f'127.0.0.{number}' for number in range(2, last + 1)]


def host_of(answer, number):
    return next(host for host in answer['hosts'] if host['name'] == f'127.0.0.{number}')


@test
def a_run_begins_on_the_one_host_of_ten_that_answers(folder):
    expected = train(small_job(folder))
    launch = launcher(folder, n2=MUTE, n3=DEAD, n4=DEAF, n5=MUTE, n6=DEAD, n7=DEAF, n8=MUTE,
                      n9=DEAD, n10=DEAF)
    job = small_job(folder, hosts=hosts_to(11), launch=launch, shards=4)
    got = train(job, '--fresh')
    assert got['model_sha256'] == expected['model_sha256'], (got, expected)
    assert host_of(got, 11)['state'] == 'up' and host_of(got, 11)['workers'] == 5, got
    assert host_of(got, 3)['state'] != 'up' and 'No route to host' in host_of(got, 3)['why'], got
    assert 'refused' in host_of(got, 4)['why'], got
    assert host_of(got, 2)['workers'] == 0, got
    status = dml('status', job, '--json').json
    assert status['hosts'] == got['hosts'], status
    assert {process['host'] for process in status['processes']} == {'127.0.0.11'}, status
    assert '127.0.0.3 ' in dml('status', job).stdout


@test
def what_is_known_of_hosts_holds_for_all_runs_of_a_path(folder):
    launch = launcher(folder, n3=f'echo >> {folder}/tries; {DEAD}', n4=MUTE)
    job = small_job(folder, hosts=hosts_to(4)[::-1], launch=launch, shards=2, folds=2,
                    l2=[1.0, 0.1, 0.01])
    got = train(job, '--fresh')
    here = train(small_job(folder, folds=2, l2=[1.0, 0.1, 0.01]), '--fresh')
    hashes = [[row['model_sha256'] for row in result['path']] for result in (got, here)]
    assert hashes[0] == hashes[1], hashes
    tries = len((folder / 'tries').read_text())
    assert tries <= 6, f'{tries} starts on a dead host, in {got["sweep"]["runs"]} runs'
    assert host_of(got, 3)['state'] != 'up', got


@test
def a_shard_waits_a_moment_for_its_own_host(folder):
    launch = launcher(folder, n2='sleep 0.5; exec "$@"')
    job = small_job(folder, hosts=hosts_to(3), launch=launch, shards=1)
    train(job, '--fresh')
    processes = dml('status', job, '--json').json['processes']
    assert [p['host'] for p in processes if p['role'] == 'shard'] == ['127.0.0.2'], processes


@test
def if_no_host_answers_a_line_for_each_says_why(folder):
    launch = launcher(folder, n2=DEAD, n3='echo "sh: dml: not found" >&2; exit 1', n4='exit 3')
    finished = dml('run', small_job(folder, hosts=hosts_to(4), launch=launch))
    assert finished.status == UNAVAILABLE, finished
    for said in ['host 127.0.0.2: ', 'status 255: ssh: connect to host 127.0.0.2 port 22: No route',
                 'host 127.0.0.3: ', 'sh: dml: not found', 'status 3 and wrote nothing',
                 'no host is left that workers can be started on']:
        assert said in finished.stderr, (said, finished)


@test
def a_host_may_greet_with_much_text(folder):
    expected = train(small_job(folder))
    greetings = {'n2': 'yes "Welcome to the machine room." | head -c 500000',
                 'n3': 'head -c 50000 /dev/zero | tr "\\0" x; echo; printf "\\033]0;title\\007"',
                 'n4': 'head -c 4080 /dev/zero | tr "\\0" x; echo'}
    launch = launcher(folder, **{host: f'{text}; exec "$@"' for host, text in greetings.items()})
    got = train(small_job(folder, hosts=hosts_to(4), launch=launch, shards=3), '--fresh')
    assert got['model_sha256'] == expected['model_sha256'], (got, expected)
    assert [host['failures'] for host in got['hosts']] == [0, 0, 0], got


@test
def what_a_host_says_in_place_of_the_line_of_the_worker_is_told(folder):
    launch = launcher(folder, n2='exec yes "Welcome to the machine room."',
                      n3='echo "This account is currently not available."; exit 1')
    finished = dml('run', small_job(folder, hosts=hosts_to(3), launch=launch))
    assert finished.status == UNAVAILABLE, finished
    for said in ['wrote 1 MiB, but not where the worker listens: Wel',
                 'exited with status 1: This account is currently not available.']:
        assert said in finished.stderr, (said, finished)


@test
def an_interrupted_run_leaves_nothing_behind_on_any_host(folder):
    launch = launcher(folder, n2=MUTE, n3='trap "" TERM; sleep 1000')
    job = endless_job(folder, hosts=hosts_to(5)[::-1], launch=launch)
    process = Process(COORDINATOR, 'run', job)
    try:
        process.until(lambda: 'step' in process.so_far(process.errors), 'it trains')
        process.signal(signal.SIGINT)
        finished = process.wait(60)
        assert finished.status == AGAIN, finished
        assert not process.survivors(), finished
    finally:
        process.end()


@test
def what_a_launch_command_has_started_ends_with_it(folder):
    """The worker ends as it is told; what the command began beside it hears of nothing."""
    launch = launcher(folder, n2='trap "" TERM; sleep 1000 & exec "$@"', n3='sleep 1000 & "$@"')
    train(small_job(folder, hosts=hosts_to(3), launch=launch, shards=2), '--fresh')


def workers_on(process, host):
    """Ids of the workers that run on a host."""
    found = []
    for pid in process.survivors():
        with contextlib.suppress(OSError):
            variables = pathlib.Path(f'/proc/{pid}/environ').read_bytes().split(b'\0')
            name = pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
            if f'DML_HOST={host}'.encode() in variables and name in ('dml-shard', 'dml-replica'):
                found.append(pid)
    return sorted(found)


def steps_of(process):
    return re.findall(r': step (\d+): loss', process.so_far(process.errors))


def trains(process):
    process.until(lambda: steps_of(process), 'it trains')


@test
def a_host_that_is_lost_in_the_middle_costs_no_bit(folder):
    settings = {'max_steps': 1000, 'checkpoint_seconds': 0.2}
    expected = train(endless_job(folder, **settings))
    (folder / 'go').write_text('#!/bin/sh\n[ -e "$0.$1" ] && exit 255\nDML_HOST=$1; export DML_HOST\n'
                               'shift; exec "$@"\n')
    (folder / 'go').chmod(0o755)
    job = endless_job(folder, hosts=HOSTS, launch=f'{folder}/go %h', shards=3, **settings)
    process = Process(COORDINATOR, 'run', job, '--json', '--fresh')
    try:
        trains(process)
        (folder / 'go.127.0.0.1').touch()
        for pid in workers_on(process, '127.0.0.1'):
            os.kill(pid, signal.SIGKILL)
        got = process.wait(120)
        assert got.status == 0 and not process.survivors(), got
    finally:
        process.end()
    assert got.json['model_sha256'] == expected['model_sha256'], (got, expected)
    assert host_of(got.json, 1)['workers'] == 0, got
    assert got.json['restarts']['shard'] == 1, got
    assert re.search(r'warning: shard \d was lost', got.stderr), got


def workers_of(job):
    """The workers that the status of a job names."""
    status = dml('status', job, '--json')
    processes = status.json['processes'] if status.status == 0 else []
    return [p for p in processes if p['role'] != 'coordinator']


@contextlib.contextmanager
def orphans(folder):
    """A job whose coordinator was killed, and its workers: two shards and two replicas.

    A run begins without the replicas of slow hosts. A worker that the coordinator had not met is
    not known to the next one, and not adopted: so all are waited for."""
    job = endless_job(folder, hosts=hosts_to(3), launch=LAUNCH, shards=2)
    process = Process(COORDINATOR, 'run', job, DML_FAILPOINT='replica1.receive_HELLO:1:delay:300')
    try:
        trains(process)
        process.until(lambda: [p['state'] for p in workers_of(job)] == ['running'] * 4,
                      'it has met all workers')
        process.signal(signal.SIGKILL)
        process.popen.wait()
        yield job, workers_of(job)
        assert process.deserted(), 'workers outlive their run'
    finally:
        process.end()


def interrupted(process):
    process.signal(signal.SIGINT)
    finished = process.wait(60)
    assert finished.status == AGAIN, finished
    return finished


@test
def the_next_coordinator_adopts_the_workers_that_live(folder):
    with orphans(folder) as (job, workers):
        process = Process(COORDINATOR, 'run', job)
        try:
            trains(process)
            for host in hosts_to(3):
                assert not workers_on(process, host), \
                    f'it started others than {workers}: {process.finished(None)}'
            got = workers_of(job)
            assert sorted(p['pid'] for p in got) == sorted(p['pid'] for p in workers), (got, workers)
            finished = interrupted(process)
        finally:
            process.end()
        assert 'was lost' not in finished.stderr and 'did not come up' not in finished.stderr, finished


@test
def an_adopted_worker_that_does_not_answer_is_replaced_and_not_touched(folder):
    with orphans(folder) as (job, workers):
        [mute] = [p['pid'] for p in workers if (p['role'], p['index']) == ('shard', 1)]
        os.kill(mute, signal.SIGSTOP)
        process = Process(COORDINATOR, 'run', job)
        try:
            trains(process)
            finished = interrupted(process)
        finally:
            process.end()
        assert 'shard 1 did not come up' in finished.stderr, finished
        os.kill(mute, signal.SIGKILL)  # it is there still


@test
def a_shell_behind_ssh_gets_words_as_they_are_and_the_path_finds_programs(folder):
    odd = folder / "a state; it's $HOME"
    odd.mkdir()
    ssh = folder / 'ssh'  # joins its words as the real one does; one host has no such folder
    ssh.write_text(f'#!/bin/sh\nhost=$1; shift; PATH={BUILD}:$PATH\n'
                   'case "$host $1" in 127.0.0.3\\ */*) echo "sh: $1: not found" >&2; exit 127;; esac\n'
                   'exec sh -c "exec $*"\n')
    ssh.chmod(0o755)
    settings = {'hosts': hosts_to(3), 'launch': f'{ssh} %h', 'shards': 2}
    process = Process(COORDINATOR, 'run', endless_job(odd, **settings))
    try:  # a short run may end before a replica comes
        job = odd / 'job.conf'
        process.until(lambda: [p['state'] for p in workers_of(job)] == ['running'] * 4, 'all work')
        told = dml('status', job, '--json').json
        interrupted(process)
    finally:
        process.end()
    assert [host['failures'] for host in told['hosts']] == [0, 0], told
    assert {p['host'] for p in told['processes'] if p['role'] == 'replica'} == set(hosts_to(3)), told
    expected = train(small_job(folder))
    got = train(small_job(odd, **settings, checkpoint_seconds=0), '--fresh')
    assert got['model_sha256'] == expected['model_sha256'], (got, expected)


@test
def a_worker_gets_the_key_by_standard_input_alone(folder):
    (folder / 'go').write_text('#!/bin/sh\nshift\n{ echo "$*"; env; } >>"$0.seen"\nexec "$@"\n')
    (folder / 'go').chmod(0o755)
    job = small_job(folder, hosts=HOSTS, launch=f'{folder}/go %h')
    train(job)
    state = job.with_suffix('.state')
    seen = [folder / 'go.seen', *state.glob('log/*'), state / 'dml.db']
    key = (state / 'key').read_bytes().strip()
    assert len(key) == 64 and not [path for path in seen if key in path.read_bytes()]
    assert '--key - ' in seen[0].read_text()


@test
def a_command_that_withholds_standard_input_is_told_what_to_do(folder):
    launch = launcher(folder, n2='exec "$@" </dev/null', n3='echo 12345 | "$@"')
    finished = dml('run', small_job(folder, hosts=hosts_to(3), launch=launch))
    assert finished.status == UNAVAILABLE, finished
    for said in ('no key came by standard input: the launch command must pass it on (ssh without -n, '
                 'kubectl exec -i,', 'no key came, but something else'):
        assert said in finished.stderr, (said, finished)


@test
def a_host_is_a_name_and_a_command_names_it(folder):
    for value, said in [('-oProxyCommand=reboot', 'is not valid'), ('a b', 'is not valid'),
                        ('a:0', 'is not valid'), ('user@a', 'is not valid'), ('', 'is empty')]:
        finished = dml('check', small_job(folder, hosts=[value]))
        assert finished.status == CONFIG, finished
        assert f'key `hosts`: "{value}" {said}; allowed: local, slurm, or' in finished.stderr, finished
    for value in 'ssh', 'ssh %x', 'ssh "%h', 'ssh %%h':
        finished = dml('check', small_job(folder, hosts=['a'], launch=value.replace('"', '\\"')))
        assert finished.status == CONFIG and 'a command with %h' in finished.stderr, finished
    for settings, said in [({'hosts': ['a', 'b', 'A:4']}, '"A" is named twice'),
                           ({'hosts': ['a', 'local']}, '`local` must be the only entry'),
                           ({'launch': LAUNCH}, 'is for workers on other hosts'),
                           ({'hosts': ['a'], 'shard_addresses': ['a:1']}, 'remove one of the two')]:
        finished = dml('check', small_job(folder, **settings))
        assert finished.status == CONFIG and said in finished.stderr, finished


@test
def a_command_that_is_not_there_is_named(folder):
    finished = dml('run', small_job(folder, hosts=HOSTS, launch='no-such-command %h'))
    assert finished.status == UNAVAILABLE, finished
    assert 'cannot run no-such-command (see key `launch`): No such file' in finished.stderr, finished


sys.exit(main())
