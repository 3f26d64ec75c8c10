#!/usr/bin/env python3
"""Whether tiles keep their promise: a model of many columns on processes of little memory.

    bench/wide.py [--columns N] [--values N] [--strip N] [--replica MB] [--steps N]
                  [--l1 X | --units N] [--folder PATH]

Generates rows (bench/wide_data) and trains on them a few steps three times: by processes without
limits, by processes whose control groups hold them to their limits, and there again with SIGKILL
for each role in the middle of the run. Replicas may use --replica MB, shard and coordinator what
`check` says. The model must have the same bits. Prints for each role what `check` says, and the
most that it took: its own memory and what it made to share, without mapped files, which the system
may drop at any time.

It needs root, for the groups (of either version); 400 bytes of disk for each column, and memory
for the shard: about 140 bytes a column. The folder keeps the text, so that it is made once.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import BUILD, COORDINATOR, REPLICA, SHARD, Process, dml, words, write_job  # noqa: E402

GROUPS = pathlib.Path('/sys/fs/cgroup')
MB = 1e6
BASE = 40 * MB  # what check says of a process that has no data
ROLES = ['coordinator', 'shard', 'replica']
ROW_VALUES = 100
HOURS = 3600
POLL_SECONDS = 0.02

# When whom is killed, as shares of the time that an undisturbed run trains for.
KILLS = [('replica', 0.2), ('shard', 0.4), ('coordinator', 0.6), ('replica', 0.8)]


class Group:
    """A control group for memory, without swap."""

    def __init__(self, name):
        one = (GROUPS / 'memory').is_dir()
        if not one:
            (GROUPS / 'cgroup.subtree_control').write_text('+memory')
        self.folder = GROUPS / ('memory' if one else '') / f'dml-wide-{os.getpid()}-{name}'
        self.folder.mkdir(exist_ok=True)
        self.limit = 'memory.limit_in_bytes' if one else 'memory.max'
        self.write('memory.swappiness' if one else 'memory.swap.max', 0)
        self.events = 'memory.oom_control' if one else 'memory.events'
        self.own = ['rss', 'shmem'] if one else ['anon', 'shmem']

    def write(self, name, value):
        (self.folder / name).write_text(f'{value}')

    def hold(self, limit):
        self.write(self.limit, int(limit))

    def read(self, name):
        lines = (self.folder / name).read_text().splitlines()
        return {word: int(number) for word, number in map(str.split, lines)}

    def kills(self):
        """How many processes the system has killed here for lack of memory."""
        return self.read(self.events)['oom_kill']

    def taken(self):
        """Bytes, but for mapped files. What processes share counts for the one that made it."""
        found = self.read('memory.stat')
        return sum(found[word] for word in self.own)

    def prefix(self):
        """What runs a command in the group."""
        return ['sh', '-c', f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', 'sh']

    def remove(self):
        self.folder.rmdir()


class Run:
    """A run with a shard and a replica that are started by hand, and again when they end."""

    def __init__(self, job, folder, groups):
        self.job, self.groups = job, groups
        self.address = {role: f'unix:{folder}/{role}' for role in ('shard', 'replica')}
        self.process, self.most = {}, dict.fromkeys(ROLES, 0)
        self.restarts = dict.fromkeys(ROLES, -1)
        self.ended = False

    def start(self, role):
        program = {'shard': SHARD, 'replica': REPLICA}.get(role)
        if program:
            command = [program, '--listen', self.address[role], '--stay']
        else:
            command = [COORDINATOR, 'run', self.job, '--json', *words(
                {f'{name}_addresses': at for name, at in self.address.items()})]
            command += [] if self.restarts[role] >= 0 else ['--fresh']
        self.process[role] = Process(*command, prefix=self.groups[role].prefix())
        self.restarts[role] += 1

    def watch(self):
        while not self.ended:
            for role, group in self.groups.items():
                self.most[role] = max(self.most[role], group.taken())
            time.sleep(POLL_SECONDS)

    def kill(self, role):
        self.process[role].signal(signal.SIGKILL)
        self.process[role].popen.wait()
        self.start(role)

    def go(self, kills=()):
        """Answers the result. `kills`: who, and seconds since the training began."""
        for role in 'shard', 'replica', 'coordinator':
            self.start(role)
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        try:
            if kills:
                self.wait_for('step 0:')
            begun = time.monotonic()
            for role, seconds in kills:
                time.sleep(max(0, begun + seconds - time.monotonic()))
                assert self.process['coordinator'].popen.poll() is None, 'it ended before a kill'
                self.kill(role)
            finished = self.process['coordinator'].wait(6 * HOURS)
        finally:
            self.ended = True
            watcher.join()
            for process in self.process.values():
                process.end()
        assert finished.status == 0, finished
        return finished.json

    def wait_for(self, text):
        process = self.process['coordinator']
        while text not in process.so_far(process.errors):
            assert process.popen.poll() is None, process.wait()
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def groups_of_roles():
    groups = {role: Group(role) for role in ROLES}
    try:
        yield groups
    finally:
        for group in groups.values():
            group.remove()


def data_of(folder, columns, values):
    path = folder / f'{columns}-{values}.libsvm'
    if not path.exists():
        begun = path.with_suffix('.part')
        with open(begun, 'w') as file:
            subprocess.run([BUILD / 'bench/wide_data', f'{-(-values // ROW_VALUES)}',
                            f'{columns}', f'{ROW_VALUES}'], stdout=file, check=True)
        begun.rename(path)
    return path


def tell(name, result, run):
    print(f'{name}: {result["model_sha256"][:16]}, loss {result["loss"]:.9g}, '
          f'{result["steps"]} steps, {result["evaluations"]} evaluations in '
          f'{result["seconds"]["train"]:.0f} s; restarts '
          + ', '.join(f'{role} {run.restarts[role]}' for role in ROLES), flush=True)


def measure(folder, job, groups, replica_bytes):
    """Answers a row for the table of each role."""
    quiet = Run(job, folder, groups)
    expected = quiet.go()
    assert expected['strips'] > 1, expected
    print(f'{expected["examples"]} rows, {expected["features"]} columns, {expected["values"]} values, '
          f'{expected["strips"]} strips')
    tell('no limits', expected, quiet)
    said = dml('check', job, '--json').json['memory_bytes']
    limits = {**said, 'replica': replica_bytes}
    most = dict.fromkeys(ROLES, 0)
    for role, group in groups.items():
        print(f'{role}: at most {quiet.most[role] / MB:.0f} MB, check says {said[role] / MB:.0f}',
              flush=True)
        group.hold(limits[role])
    train = expected['seconds']['train']
    for name, kills in (('limits', []), ('kills', [(role, share * train) for role, share in KILLS])):
        run = Run(job, folder, groups)
        result = run.go(kills)
        tell(name, result, run)
        assert result['model_sha256'] == expected['model_sha256'], (result, expected)
        most = {role: max(most[role], run.most[role]) for role in ROLES}
    starved = {role: group.kills() for role, group in groups.items()}
    assert not any(starved.values()), starved
    return [(role, said[role], limits[role], most[role], quiet.most[role]) for role in ROLES]


def write_table(rows, full):
    print('\n| MB | check says | limit | at most | without limits, with preparing |')
    print('|---|---|---|---|---|')
    for role, *figures in rows:
        print(f'| {role} | ' + ' | '.join(f'{figure / MB:.0f}' for figure in figures) + ' |')
    for role, said, _, most, _ in rows:
        assert most <= said, f'{role}: check says too little'
        # The estimate of a replica has the point besides, which a shard of the same host shares, that of
        # the coordinator the model's file, which is mapped.
        assert not full or role != 'shard' or said <= 1.6 * most + BASE, f'{role}: check says too much'


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--columns', type=float, default=5e6)
    options.add_argument('--values', type=float, default=0, help='2.1 a column if not given')
    options.add_argument('--strip', type=float, default=2**21)
    options.add_argument('--replica', type=float, default=256, help='MB')
    options.add_argument('--steps', type=int, default=5)
    options.add_argument('--l1', type=float, default=0, help='and no directions')
    options.add_argument('--units', type=int, default=0, help='of a network with one hidden layer')
    options.add_argument('--folder', type=pathlib.Path)
    given = options.parse_args()
    columns, values = int(given.columns), int(given.values or 2.1 * given.columns)
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        model = {'objective': 'logistic', 'directions': 3}
        if given.l1:
            model = {'objective': 'logistic', 'l1': given.l1}
        elif given.units:
            model = {'objective': 'network', 'early_stopping': 'off',
                     'network': {'layers': [given.units], 'loss': 'logistic'}}
        job = write_job(folder, data=[data_of(folder, columns, values)], l2=1e-6, strip_columns=int(given.strip), history=3, **model,
                        max_steps=given.steps, gradient_tolerance=0, loss_tolerance=0,
                        replicas=1, shards=1, threads=2, reconnect_seconds=600)
        with groups_of_roles() as groups:
            # A network's few steps do not fill the history.
            write_table(measure(folder, job, groups, given.replica * MB), not given.units)


if __name__ == '__main__':
    sys.exit(main())
