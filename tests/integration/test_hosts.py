#!/usr/bin/env python3
"""Workers on hosts: several names of this machine, and a command in the place of ssh."""

import sys

from harness import CONFIG, UNAVAILABLE, dml, main, small_job, test, train

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
                           ({'hosts': ['a', 'local']}, '`local` stands alone'),
                           ({'launch': LAUNCH}, 'is for workers on other hosts'),
                           ({'hosts': ['a'], 'shard_addresses': ['a:1']}, 'remove one of both')]:
        finished = dml('check', small_job(folder, **settings))
        assert finished.status == CONFIG and said in finished.stderr, finished


@test
def a_command_that_is_not_there_is_named(folder):
    finished = dml('run', small_job(folder, hosts=HOSTS, launch='no-such-command %h'))
    assert finished.status == UNAVAILABLE, finished
    assert 'cannot run no-such-command (see key `launch`): No such file' in finished.stderr, finished


sys.exit(main())
