"""Training jobs in a Slurm cluster: the script of the examples, a job to train, and looks at it from
outside while it runs."""

import os
import sys
import threading
import time

import cluster  # noqa: F401: it finds the modules of the other tests

from harness import BUILD, SOURCE, dml, train, write_job

sys.path.insert(0, str(SOURCE / 'tests/fault'))

from faults import write_data  # noqa: E402
from nightly import check_model  # noqa: E402

SCRIPT = SOURCE / 'examples/train.sbatch'

PATH = f'{BUILD}:{os.environ["PATH"]}'

# Evaluations take long enough to be interrupted.
SLOW = {'DML_SHUFFLE': '7', 'DML_PAUSE_US': '50000'}


def make_job(folder, **settings):
    """A job file that says nothing of hosts, and the hash of the model that it gives here."""
    data = write_data(folder)
    settings = {'l2': 1e-4, 'max_steps': 30, 'gradient_tolerance': 1e-7, **settings}
    job = write_job(folder, data=[data.name], loss_tolerance=0, checkpoint_seconds=0,
                    reconnect_seconds=5, **settings)
    return job, train(job, '--state', folder / 'laptop.state')['model_sha256']


class Watcher:
    """Looks at all models of a state folder, again and again, until it is told to stop: each that is
    there must be whole."""

    def __init__(self, state):
        self.models, self.wrong, self.looks = state / 'models', [], 0
        self.going_on = True
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.going_on = False
        self.thread.join()

    def watch(self):
        while self.going_on:
            self.look()
            time.sleep(0.002)

    def look(self):
        self.looks += 1
        for model in self.models.glob('*'):
            try:
                if model.name.isdigit() or model.name == 'current':
                    check_model(self.models, model.name)
            except Exception as why:  # whatever it is, it belongs into the test's report
                self.wrong.append(f'{model}: {why!r}')


class Job:
    """A job in the queue of a cluster, on a state folder."""

    def __init__(self, cluster, job, state, *options, **environment):
        self.cluster, self.state = cluster, state
        self.log = job.parent / f'{state.name}.log'
        self.number = cluster.sbatch(
            SCRIPT, f'--output={self.log}', *options, after=('run', job, '--state', state, '--verbose'),
            PATH=PATH, **{**SLOW, **environment})

    def said(self):
        return self.log.read_text() if self.log.exists() else ''

    @property
    def slurm(self):
        return self.cluster.job(self.number)

    def step(self):
        """How far the run has come; −1: it has not begun."""
        asked = dml('status', self.state, '--json')
        return asked.json['step'] if asked.status == 0 else -1

    def until(self, condition, what):
        try:
            return self.cluster.until(condition, what)
        except AssertionError as why:
            raise AssertionError(f'{why}\n{self.said()}\n{self.slurm}') from None

    def until_step(self, step):
        self.until(lambda: self.step() >= step, f'step {step}')

    def until_ended(self):
        """What Slurm says of it at its end: COMPLETED."""
        return self.until(lambda: self.slurm['JobState'] if self.slurm['JobState'] in (
            'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL') else None, 'the job ends')

    def hash(self):
        return check_model(self.state / 'models')

    def runs(self):
        return dml('jobs', self.state, '--json').json['folders'][0]['runs']

