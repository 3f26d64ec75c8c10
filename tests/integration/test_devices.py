#!/usr/bin/env python3
"""Devices change no bit of a model, and who asks for one that cannot be had is told what to do.

The emulated device is everywhere. Where there is a GPU, all of this is done with that, too.
"""

import contextlib
import random
import signal
import subprocess

from harness import (ALL, CONFIG, COORDINATOR, REPLICA, SHARD, SOURCE, UNAVAILABLE, USAGE, Process, dml,
                     emulated_for_auto, main, run, small_job, some, test, train, words, write_job)

# Steps are few, so a run takes a blink and ends for the same reason everywhere.
SHORT = {'max_steps': 4, 'gradient_tolerance': 0, 'loss_tolerance': 0, 'l2': 1e-3, 'history': 3,
         'precondition': 'none', 'checkpoint_seconds': 0}
JOBS = {
    'sparse logistic': ('sparse', {'objective': 'logistic'}),
    'dense softmax': ('dense', {'objective': 'softmax'}),
    'network': ('dense', {'objective': 'network', 'network.layers': 5, 'holdout': '{}'}),
    'l1': ('sparse', {'objective': 'logistic', 'l1': 1e-3}),
    'curvature': ('dense', {'objective': 'softmax', 'precondition': 'block'}),
    'standardise': ('dense', {'objective': 'softmax', 'standardise': 'true'}),
    'downpour before a network': ('dense', {'objective': 'network', 'network.layers': 5, 'holdout': '{}',
                                            'start': 'downpour'}),
    'downpour with l1': ('sparse', {'objective': 'logistic', 'l1': 1e-3, 'start': 'downpour'}),
    'downpour alone': ('dense', {'objective': 'softmax', 'standardise': 'true', 'optimizer': 'downpour'}),
}


def gpus():
    """Of this machine: the names that --device takes."""
    lines = run(REPLICA, '--devices').stdout.splitlines()
    return [line.split()[0] for line in lines if line.startswith('cuda:')]


def devices():
    return ['emulated'] + (['cuda'] if gpus() else [])


def sparse_text(rng):
    """Two shards have elements, and there are several chunks."""
    lines = []
    for row in range(300):
        ids = sorted({1 + int(6000 * rng.random() ** 3) for _ in range(40)} | {1 + row * 20})
        values = {j: round(rng.gauss(0, 1), 3) for j in ids}
        lines.append(f'{int(sum(values.values()) + rng.gauss(0, 2) > 0)} ' +
                     ' '.join(f'{j}:{v}' for j, v in values.items()) + '\n')
    return ''.join(lines)


def dense_text(rng):
    lines = []
    for _ in range(120):
        values = [rng.randrange(-999, 1000) for _ in range(30)]
        lines.append(','.join(f'{v}e-2' for v in values) +
                     f',{min(2, max(0, int(sum(values[:3]) / 1000 + 1.5)))}\n')
    return ''.join(lines)


def make_job(folder, kind, name='job'):
    """A job in a folder of its own, so that each has its own runs."""
    rng = random.Random(5)
    place = folder / name.replace(' ', '-')
    place.mkdir()
    (place / 'data').write_text(sparse_text(rng) if kind == 'sparse' else dense_text(rng))
    return write_job(place, data=['data'], format='libsvm' if kind == 'sparse' else 'csv')


def trained(job, settings, device, **environment):
    return train(job, '--fresh', *words({**SHORT, **settings, 'device': device}), **environment)


def used(result):
    return {row['device'].split()[0].split(':')[0]: (row['shards'], row['replicas'])
            for row in result['devices']}


class Worker(Process):
    """One that is started by hand."""

    def __init__(self, program, folder, name, *options, **environment):
        self.address = f'unix:{folder}/{name}'
        super().__init__(program, '--listen', self.address, *options, **environment)
        self.until(lambda: 'listening' in self.so_far(self.output), 'it listens')


@contextlib.contextmanager
def workers(folder, **lists):
    """One of each role for each of the devices, that stay; the settings that name them."""
    started = []
    try:
        for role, program in ('shard', SHARD), ('replica', REPLICA):
            started += [(role, Worker(program, folder, f'{role}-{i}', '--stay', '--device', device))
                        for i, device in enumerate(lists[role])]
        yield {f'{role}_addresses': '{' + ', '.join(f'"{worker.address}"' for of, worker in started
                                                    if of == role) + '}'
               for role in ('shard', 'replica')}
    finally:
        for _, worker in started:
            worker.end()


# ---- the same bits ----

@test
def the_model_is_the_same_whatever_computes_it(folder):
    for name, (kind, settings) in some([*JOBS.items()], 2):
        job = make_job(folder, kind, name)
        expected = trained(job, settings, 'cpu')
        assert used(expected).keys() == {'cpu'}, expected['devices']
        for device in devices():
            for shards, replicas in ((1, 2), (2, 1))[:2 if ALL else 1]:
                result = trained(job, {**settings, 'shards': shards, 'replicas': replicas}, device)
                assert used(result) == {device: (shards, replicas)}, (name, result['devices'])
                assert result['model_sha256'] == expected['model_sha256'], (name, device, shards)
                assert result['steps'] == expected['steps'], (name, device)
                assert (result['steps'] > 0) == ('optimizer' not in settings), (name, result)


@test
def workers_on_devices_and_on_processors_work_together(folder):
    both = ['cpu', *devices()]
    with workers(folder, shard=both, replica=both) as addresses:
        for name, (kind, settings) in some([*JOBS.items()]):
            job = make_job(folder, kind, name)
            expected = trained(job, settings, 'cpu')
            for _ in range(50):  # a run does not wait for all replicas that others start
                result = trained(job, {**settings, **addresses, 'portion_chunks': 1}, 'cpu')
                assert result['model_sha256'] == expected['model_sha256'], name
                if all(replicas for _, replicas in used(result).values()):
                    break
            assert used(result) == {device: (1, 1) for device in both}, (name, result['devices'])


# ---- one in the place of another ----

@test
def a_worker_that_is_killed_may_be_replaced_by_one_of_the_other_kind(folder):
    job = make_job(folder, 'sparse')
    expected = trained(job, {}, 'cpu')
    number = 0
    for device in devices():
        for first, second in (device, 'cpu'), ('cpu', device):
            for program, place in (REPLICA, 'replica0.send_FLUSHED:3'), (SHARD, 'shard0.send_RESULT:6'):
                number += 1
                role = program.name.removeprefix('dml-')
                name = f'{role}-{number}'
                victim = Worker(program, folder, name, '--device', first, DML_FAILPOINT=f'{place}:kill')
                settings = {**SHORT, 'device': 'cpu', f'{role}_addresses': victim.address}
                process = Process(COORDINATOR, 'run', job, '--fresh', '--json', *words(settings))
                assert victim.wait().status == -signal.SIGKILL, victim
                (folder / name).unlink()
                other = Worker(program, folder, name, '--device', second)
                finished = process.wait()
                assert finished.status == 0, finished
                assert other.wait().status == 0, other
                result = finished.json
                assert result['model_sha256'] == expected['model_sha256'], (first, second, role)
                assert second in used(result), result['devices']


@test
def a_run_goes_on_with_what_it_was_not_begun_with(folder):
    job = make_job(folder, 'sparse')
    expected = trained(job, {}, 'cpu')
    for device in devices():
        for first, second in (device, 'cpu'), ('cpu', device):
            begun = trained(job, {'max_steps': 2}, first)
            assert begun['reason'] == 'step limit' and begun['steps'] == 2, begun
            result = train(job, *words({**SHORT, 'device': second}))
            assert result['continues'] == begun['run'], (begun, result)
            assert used(result).keys() == {second}, result['devices']
            assert result['model_sha256'] == expected['model_sha256'], (first, second)


# ---- devices that fail ----

def failing(folder, job, fault, device, settings=None):
    """A run in which one device fails once."""
    settings = {**SHORT, **(settings or {}), 'device': device, 'replicas': 1}
    fired = folder / f'{fault}-{device}-{len(settings)}'.replace(':', '-')
    finished = dml('run', job, '--fresh', '--json', *words(settings),
                   **emulated_for_auto(folder), DML_FAILPOINT=f'{fault}:hit',
                   DML_FAILPOINT_ONCE=str(fired))
    assert finished.status == 0, finished
    assert fired.with_name(f'{fired.name}.0').exists(), (fault, finished)
    return finished


@test
def a_device_that_fails_costs_no_bit(folder):
    job = make_job(folder, 'sparse')
    for number, settings in enumerate(({}, {'start': 'downpour'})):
        expected = trained(job, settings, 'cpu')
        for role in 'replica', 'shard':
            for fault in some(['device_launch:10', 'device_lost:60'][::1 - 2 * number], 2):
                finished = failing(folder, job, f'{role}0.{fault}', 'emulated', settings)
                result = finished.json
                assert result['model_sha256'] == expected['model_sha256'], finished
                assert result['restarts'][role] == 1, finished
                assert used(result).keys() == {'emulated'}, finished


@test
def a_worker_that_may_choose_goes_on_without_the_device_that_failed(folder):
    job = make_job(folder, 'sparse')
    expected = trained(job, {}, 'cpu')
    for fault in some(['replica0.device_memory:1', 'replica0.device_launch:30', 'replica0.device_lost:60',
                       'shard0.device_launch:10', 'shard0.device_memory:1', 'shard0.device_lost:60'], 2):
        finished = failing(folder, job, fault, 'auto')
        result = finished.json
        assert result['model_sha256'] == expected['model_sha256'], finished
        assert 'computes on the CPU' in finished.stderr, finished


# ---- a device that nobody has checked ----

@test
def auto_takes_only_a_device_that_was_checked_on_this_machine(folder):
    job = make_job(folder, 'sparse')
    unchecked = {'DML_AUTO_DEVICE': 'emulated', 'DML_DEVICE_MARK': str(folder / 'none')}
    sentence = 'the CPU: emulated was not checked on this machine: run `make check-cuda`'
    settings = words({**SHORT, 'device': 'auto'})
    finished = dml('run', job, '--fresh', '--json', *settings, **unchecked)
    assert used(finished.json).keys() == {'cpu'}, finished
    assert f'computes on {sentence}' in finished.stderr, finished
    finished = dml('check', job, *settings, **unchecked)
    assert f'# replicas compute on {sentence}' in finished.stdout, finished
    assert used(trained(job, {}, 'emulated', **unchecked)).keys() == {'emulated'}, 'asked for by name'

    checked = emulated_for_auto(folder)
    finished = dml('run', job, '--fresh', '--json', *settings, **checked)
    assert used(finished.json).keys() == {'emulated'}, finished
    mark = folder / 'tests-emulated.mark'
    mark.write_text(mark.read_text().replace('driver none', 'driver 550.54.15'))
    finished = dml('run', job, '--fresh', '--json', *settings, **checked)
    assert used(finished.json).keys() == {'cpu'}, finished
    assert 'emulated was checked with another driver (550.54.15, now none)' in finished.stderr, finished


# ---- what users get wrong ----

def refused(finished, status, *texts):
    assert finished.status == status, finished
    for text in texts:
        assert text in finished.stderr, (text, finished)


@test
def a_device_that_is_none_is_refused(folder):
    job = small_job(folder)
    for device in 'gpu', 'CUDA', 'cuda:x', 'cuda:-1', '':
        if device:
            refused(dml('check', job, '--set', f'device={device}'), USAGE, 'key `device`', 'cuda:N')
        for program in SHARD, REPLICA:
            refused(run(program, '--listen', f'unix:{folder}/x', '--device', device), USAGE,
                    f'--device {device}: ', 'cuda:NUMBER')
    refused(dml('check', small_job(folder, device='gpu')), CONFIG, 'job.conf:3: key `device`')


@test
def a_gpu_that_is_not_there_is_refused_before_anything_begins(folder):
    job = small_job(folder)
    missing = ['cuda:1000'] + ([] if gpus() else ['cuda', 'cuda:0'])
    for device in missing:
        for command in 'check', 'run', 'retrain':
            finished = dml(command, job, '--set', f'device={device}', '--set', 'holdout=0.2')
            refused(finished, UNAVAILABLE, 'key `device`: device cuda')
            assert 'started' not in finished.stderr and 'was lost' not in finished.stderr, finished
        for program in SHARD, REPLICA:
            refused(run(program, '--listen', f'unix:{folder}/x', '--device', device), UNAVAILABLE,
                    'device cuda')
            assert not (folder / 'x').exists()
    assert not list((folder / 'job.state').glob('packs/*')), 'data was packed'


@test
def work_that_no_device_does_is_refused_but_not_by_auto(folder):
    job = small_job(folder, objective='network', precondition='kronecker')
    for device in 'emulated', 'cuda':
        for command in 'check', 'run':
            refused(dml(command, job, '--set', f'device={device}'), CONFIG, 'key `device`', 'Kronecker',
                    'allowed here: cpu, or auto')
    library = folder / 'library.so'
    subprocess.run(['cc', f'-I{SOURCE}', '-shared', '-fPIC', '-o', library,
                    SOURCE / 'tests/unit/plugin_library.c'], check=True)
    own = small_job(folder, name='own', objective='plugin', plugin={'library': library}, device='cuda')
    refused(dml('check', own), CONFIG, 'key `device`', 'plug-ins')
    finished = dml('check', job)
    assert '# replicas compute on the CPU: networks with the Kronecker' in finished.stdout, finished


@test
def check_says_what_is_computed_where(folder):
    job = small_job(folder)
    here = run(REPLICA, '--devices').stdout.splitlines()
    lines = dml('check', job).stdout.splitlines()
    assert [f'# this machine: {line}' for line in here] == [x for x in lines if 'this machine' in x]
    if not gpus():
        assert '# shards compute on the CPU' in lines and '# replicas compute on the CPU' in lines
    lines = dml('check', job, '--set', 'device=emulated').stdout.splitlines()
    assert '# replicas compute on an emulated device: slow, for tests' in lines, lines
    for key, line in (('summary=model', '# replicas compute on the CPU: errors of estimates are'),
                      ('bounds="1 = [0, 1]"', '# shards compute on the CPU: limits of columns are')):
        lines = dml('check', job, '--set', 'device=emulated', '--set', key).stdout
        assert line in lines and 'compute on an emulated device' in lines, (key, lines)
    lines = dml('check', job, '--set', 'device=cuda', '--set', 'hosts={"a", "b"}').stdout
    assert '# workers are on other hosts' in lines, lines


@test
def the_status_and_the_result_say_what_each_worker_computes_on(folder):
    job = small_job(folder, device='emulated', precondition='none')
    finished = dml('run', job)
    assert 'devices      emulated (1 shard, 1 replica)' in finished.stdout, finished
    status = dml('status', job)
    heading, *rows = status.stdout.splitlines()[-3:]
    assert heading.endswith('restarts  device'), status
    assert all(row.endswith('  emulated') for row in rows), status
    told = dml('status', job, '--json').json['processes']
    assert [process['device'] for process in told] == ['emulated', 'emulated'], told
    train(job, '--fresh', '--set', 'device=cpu')
    assert 'device' not in dml('status', job).stdout


if __name__ == '__main__':
    main()
