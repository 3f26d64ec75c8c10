"""One job on the machines of a network: what a quiet run on one machine gives, the same command on
one machine after another, and what must hold at the end."""

import contextlib
import re
import signal
import sqlite3
import time

from machines import BIN, SHARED, wait_for

import faults
from harness import DEADLINE_SECONDS

RECONNECT_SECONDS = 12
SETTINGS = {'rows': 3000, 'max_steps': 20, 'shards': 2, 'replicas': 4, 'checkpoint_seconds': 0.5,
            'reconnect_seconds': RECONNECT_SECONDS}
# What is trained: lines, steps over common directions with vectors of rows on the shards, the same
# in tiles, and working sets of l1.
METHODS = {
    'lines': {},
    'directions': {'directions': 6, 'history': 4, 'precondition': 'none',
                   'gradient_tolerance': 1e-13, 'max_steps': 12},
    'l1': {'l1': 3e-4, 'l2': 0},
    'tiles': {'strip_columns': 3000, 'directions': 3, 'history': 3, 'precondition': 'none',
              'max_steps': 8},
}
# Replicas pause before chunks, so that there is time for faults.
SLOW = {'DML_SHUFFLE': '3', 'DML_PAUSE_US': '60000'}
END_SECONDS = DEADLINE_SECONDS  # on a busy machine a run that loses packets takes three minutes


class Hosted:
    """`now` is the process of the last start, `home` the machine it is on. Each machine has a
    replica, and the first two have a shard each; with `workers_on` only these machines have."""

    def __init__(self, network, workers_on=None, method='lines', **settings):
        self.network, self.method = network, method
        quiet = network.folder / 'quiet'
        quiet.mkdir()
        settings = {**SETTINGS, **METHODS[method], **settings}
        self.expected = faults.quiet(faults.make_job(quiet, **settings))
        self.job = faults.make_job(network.shared, **settings,
                                   hosts=[machine.name for machine in workers_on or network.machines])
        self.state = network.shared / 'state'
        self.starts, self.now, self.home = [], None, None

    # ---- the coordinator ----

    def start(self, machine, **environment):
        self.home = machine
        self.now = machine.start(
            BIN / 'dml-coordinator', 'run', SHARED / self.job.name, '--json', '--verbose',
            '--state', SHARED / 'state', **SLOW, **environment)
        self.starts.append(self.now)
        return self.now

    def start_held(self, machine, place, visit=1):
        """The coordinator stops itself at that visit of a failpoint; go_on() ends that."""
        self.start(machine, DML_FAILPOINT=f'coordinator.{place}:{visit}:stop')

        def is_there():
            assert self.now.popen.poll() is None, f'it ended before {place}'
            return any(map(faults.is_stopped, self.coordinators()))
        wait_for(is_there, f'it is at {place}', END_SECONDS)

    def coordinators(self):
        return self.home.processes('dml-coordinator')

    def go_on(self):
        for pid in self.coordinators():
            faults.kill(pid, signal.SIGCONT)
        self.home.go_on()

    def log(self):
        return self.now.so_far(self.now.errors)

    def until_step(self, step):
        """That step is done, or the run is over."""
        def steps():
            return self.now.popen.poll() is not None or any(
                int(n) >= step for n in re.findall(r'info: step (\d+): loss ', self.log()))
        wait_for(steps, f'step {step}', END_SECONDS)

    def until_said(self, pattern, seconds=END_SECONDS):
        """Seconds until the coordinator has said so."""
        start = time.monotonic()
        wait_for(lambda: re.search(pattern, self.log()), f'it says {pattern}', seconds)
        return time.monotonic() - start

    def conclude(self, machines=()):
        """Waits for the end. While the coordinator dies with its machine, the command is given on
        the next of `machines`."""
        machines = list(machines)
        while True:
            finished = self.now.wait(END_SECONDS)
            if finished.status == 0:
                return finished.json
            assert finished.status == -signal.SIGKILL and machines, f'ended: {finished}'
            self.start(machines.pop(0))

    # ---- what must hold ----

    def check(self, result):
        for member in 'model_sha256', 'steps', 'loss':
            assert result[member] == self.expected[member], \
                f'{member} is {result[member]}, the quiet run had {self.expected[member]}'
        # Labels and sizes are of rows: of the tiles of a row, one is read.
        faults.check_counted_once(self, faults.chunks_of(self), parts=int(self.method == 'tiles'))
        self.check_nobody_left()
        parts = [path for path in self.state.rglob('*')
                 if '.tmp' in path.name and self.state / 'shards' not in path.parents]
        assert not parts, f'unfinished files are left: {parts}'

    def check_nobody_left(self):
        """Workers that nobody could tell of the end wait for a coordinator, and then end too."""
        def left():
            return {machine.name: [f'{faults.name_of(pid)} {pid}' for pid in machine.processes('dml-')]
                    for machine in self.network.machines if machine.is_on}
        start = time.monotonic()
        while any(left().values()):
            assert time.monotonic() < start + 70, f'they live on: {left()}'
            time.sleep(0.1)

    def database(self):
        return contextlib.closing(sqlite3.connect(f'file:{self.state}/dml.db?mode=ro', uri=True))

    def story(self):
        logs = sorted(self.state.glob('log/*'))
        return '\n'.join([str(process.finished(process.popen.poll())) for process in self.starts] +
                         [f'---- {path.name}\n{path.read_text(errors="replace")}' for path in logs])
