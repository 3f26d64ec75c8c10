#!/usr/bin/env python3
"""Jobs of a real Slurm, which is started for each test: whatever happens to nodes, jobs and Slurm
itself, the model is that of a quiet run on one machine. `check` runs the first test, `check-slurm`
all of them."""

import os
import signal
import sys
import time

from cluster import Cluster, main, test
from jobs import PATH, SLOW, Job, Watcher, make_job

ALL = os.environ.get('DML_SLURM') == 'all'


def long_test(function):
    """A test of make check-slurm only."""
    return test(function) if ALL else function


def check_end(job, watcher, expected):
    assert job.until_ended() == 'COMPLETED', (job.slurm, job.said())
    assert job.hash() == expected, job.said()
    assert watcher.looks > 10 and not watcher.wrong, watcher.wrong


@test
def a_lost_node_is_worked_around_and_used_again(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state')
        job.until_step(3)
        cluster.kill_node('n4')
        cluster.start_node('n4')
        check_end(job, watcher, expected)
        assert job.slurm['Restarts'] == '0', job.slurm
        said = job.said().split('replica 3 was lost')
        assert len(said) > 1 and 'replica 3 is running' in said[-1], job.said()


@long_test
def a_job_that_lost_the_node_of_its_coordinator_goes_on_when_it_has_nodes_again(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state')
        job.until_step(3)
        cluster.kill_node('n1')
        job.until(lambda: job.slurm['JobState'] == 'PENDING', 'it waits again')
        cluster.start_node('n1')
        check_end(job, watcher, expected)
        assert len(job.runs()) == 1, job.runs()


@long_test
def one_node_after_another_is_lost_and_the_last_goes_on(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state', DML_PAUSE_US='200000')
        for step, name in (2, 'n2'), (4, 'n4'), (6, 'n3'):
            job.until_step(step)
            cluster.kill_node(name)
        check_end(job, watcher, expected)


def loses_two_nodes(folder, **settings):
    config, expected = make_job(folder, **settings)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state', DML_PAUSE_US='200000')
        for step, name in (2, 'n4'), (4, 'n2'):
            job.until_step(step)
            cluster.kill_node(name)
            cluster.start_node(name)
        check_end(job, watcher, expected)


@long_test
def nodes_lost_amid_searches_over_common_directions_cost_no_bit(folder):
    loses_two_nodes(folder, directions=6, history=4, precondition='none', max_steps=12,
                    gradient_tolerance=1e-13)


@long_test
def nodes_lost_beside_working_sets_of_l1_cost_no_bit(folder):
    loses_two_nodes(folder, l1=3e-4, l2=0)


@long_test
def a_job_that_has_ended_is_not_begun_again_from_a_node_without_its_slurmd(folder):
    """What watches over the first node lives on there."""
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state')
        job.until_step(2)
        cluster.kill_slurmd('n2')
        check_end(job, watcher, expected)
        watches = 'squeue --noheader'
        assert cluster.commands_with(watches), 'nobody watches'
        cluster.until(lambda: not cluster.commands_with(watches), 'the watch has ended')
        assert job.slurm['JobState'] == 'COMPLETED' and job.slurm['Restarts'] == '0', job.slurm


@long_test
def a_requeued_job_goes_on(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state')
        for step in 3, 6:
            job.until_step(step)
            assert cluster.command('scontrol', 'requeue', job.number).status == 0
            job.until(lambda: job.slurm['JobState'] == 'PENDING', 'it waits again')
        check_end(job, watcher, expected)
        assert job.slurm['Restarts'] == '2', job.slurm
        assert len(job.runs()) == 1, job.runs()


@long_test
def a_killed_coordinator_finds_its_workers_again(folder):
    """Those on nodes with one address, too: a worker is looked for on the node of its name."""
    config, expected = make_job(folder)
    twice = ('DML_FAILPOINT=coordinator.send_EVALUATE:50:kill dml-coordinator "$@"; '
             'dml-coordinator "$@"')
    with Cluster() as cluster:
        ended = cluster.command(
            'salloc', '--nodes=4', '--exclusive', 'bash', '-c', twice, 'bash', 'run', config,
            '--json', '--verbose', '--set', 'hosts=slurm', PATH=PATH, **SLOW)
        assert ended.status == 0 and ended.json['model_sha256'] == expected, ended
        assert ended.json['restarts'] == {'coordinator': 1, 'shard': 0, 'replica': 0}, ended
        assert 'is not the one that was there' not in ended.stderr, ended


def check_stopped_and_requeued(job, watcher, expected):
    job.until(lambda: job.slurm['Restarts'] == '1', 'it is requeued')
    check_end(job, watcher, expected)
    assert 'terminated: stopping' in job.said(), job.said()
    assert len(job.runs()) == 1, job.runs()


@long_test
def before_its_time_limit_a_job_stops_and_gets_in_line_again(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        # Limits are in minutes, and the signal comes up to a minute early: here after 10 to 40 s.
        job = Job(cluster, config, folder / 'job.state', '--time=1', '--signal=B:TERM@50',
                  DML_PAUSE_US='250000')
        check_stopped_and_requeued(job, watcher, expected)


@long_test
def the_same_where_the_site_requeues_by_the_exit_status(folder):
    config, expected = make_job(folder)
    with Cluster(conf='RequeueExit=75') as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state')
        job.until_step(3)
        assert cluster.command('scancel', '--batch', '--signal=TERM', job.number).status == 0
        check_stopped_and_requeued(job, watcher, expected)


@long_test
def a_job_that_stops_while_the_controller_is_away_gets_in_line_again(folder):
    config, expected = make_job(folder)
    # Steps that ended meanwhile are told of only a minute later: their nodes are in order.
    conf = 'UnkillableStepTimeout=180'
    with Cluster(conf=conf) as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state', DML_PAUSE_US='200000')
        job.until_step(2)
        time.sleep(6)  # the controller saves every five seconds what it has started
        cluster.kill_controller()
        for pid in cluster.commands_with('dml-coordinator'):
            os.kill(pid, signal.SIGTERM)
        cluster.until(lambda: 'Unable to contact slurm controller' in job.said(), 'it asked in vain')
        cluster.start_controller()
        cluster.until(cluster.states, 'the controller answers')
        check_stopped_and_requeued(job, watcher, expected)


@long_test
def two_jobs_on_one_state_folder_train_one_after_the_other(folder):
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        jobs = [Job(cluster, config, folder / 'job.state', '--nodes=2') for _ in range(2)]
        for job in jobs:
            check_end(job, watcher, expected)
        assert 'already running' in jobs[0].said() + jobs[1].said(), jobs[0].said()


@long_test
def a_controller_that_forgets_that_it_started_a_job_harms_nothing(folder):
    """It kills what it does not know, and holds the job if it then finds it running."""
    config, expected = make_job(folder)
    with Cluster() as cluster, Watcher(folder / 'job.state') as watcher:
        job = Job(cluster, config, folder / 'job.state', '--nodes=2')
        job.until_step(0)
        cluster.kill_controller()
        cluster.start_controller()
        cluster.until(cluster.states, 'the controller answers')
        job.until(lambda: job.slurm['JobState'] != 'RUNNING', 'it has lost the job')
        cluster.until(lambda: 'held' in job.slurm['Reason'] or job.slurm['JobState'] == 'RUNNING',
                      'it has found it again')
        cluster.command('scontrol', 'release', job.number)
        check_end(job, watcher, expected)


def cancelled(folder, conf):
    config, _ = make_job(folder)
    with Cluster(conf=conf) as cluster:
        job = Job(cluster, config, folder / 'job.state')
        job.until_step(2)
        assert cluster.command('scancel', job.number).status == 0
        assert job.until_ended() == 'CANCELLED', job.slurm
        cluster.until(lambda: cluster.states() == ['idle'] * 4, 'the nodes are free')
        time.sleep(8)  # after which a requeued job would have begun
        assert job.slurm['JobState'] == 'CANCELLED' and job.slurm['Restarts'] == '0', job.slurm


@long_test
def a_cancelled_job_does_not_come_back(folder):
    cancelled(folder, '')


@long_test
def nor_where_the_site_requeues_by_the_exit_status(folder):
    cancelled(folder, 'RequeueExit=75')


@long_test
def two_clusters_at_once_do_not_meet(folder):
    with Cluster(nodes=2) as one, Cluster(nodes=2) as other:
        ran = one.command('srun', '--nodes=2', '--ntasks=2', 'printenv', 'SLURM_CONF')
        assert ran.stdout.split() == [one.environment['SLURM_CONF']] * 2, ran
        other.kill_node('n1')
        other.until(lambda: other.states() == ['down*', 'idle'], 'the killed node is missed')
        assert one.states() == ['idle', 'idle'], one.logs()


sys.exit(main())
