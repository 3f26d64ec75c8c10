"""What the tests of `retrain` share: a folder that grows by a file a night, and looks at what is
live."""

import functools
import hashlib
import json
import os
import random
import signal
import struct

from harness import COORDINATOR, Process, dml, write_job

FEATURES = 30

# Evaluations take long enough to be interrupted.
SLOW = {'DML_SHUFFLE': '7', 'DML_PAUSE_US': '60000'}


class Nights:
    """A job whose data folder, holdout and state lie in `folder`."""

    def __init__(self, folder, **settings):
        self.folder, self.inbox, self.state = folder, folder / 'inbox', folder / 'job.state'
        self.inbox.mkdir()
        rng = random.Random(11)
        self.weights = [rng.gauss(0, 1) for _ in range(FEATURES + 1)]
        self.write(folder / 'holdout.libsvm', 400, seed=999)
        self.job = write_job(folder, **{
            'data': ['inbox/*.libsvm'], 'holdout': ['holdout.libsvm'], 'l2': 1e-4, 'replicas': 1,
            'shards': 1, 'threads': 1, 'gate': ['loss <= 1.05 * live', 'accuracy >= 0.7'],
            'gradient_tolerance': 1e-6, 'checkpoint_seconds': 0, 'reconnect_seconds': 2,
            **settings})

    def write(self, path, rows, seed, mislabelled=False):
        rng = random.Random(seed)
        with open(path.with_suffix('.part'), 'w') as file:
            for _ in range(rows):
                row = {j: round(rng.gauss(0, 1), 2)
                       for j in sorted(rng.sample(range(1, FEATURES + 1), 8))}
                margin = sum(self.weights[j] * v for j, v in row.items()) + rng.gauss(0, 1)
                file.write(f'{int((margin > 0) != mislabelled)} ' +
                           ' '.join(f'{j}:{v}' for j, v in row.items()) + '\n')
        path.with_suffix('.part').rename(path)

    def add(self, night, rows=300, **options):
        self.write(self.inbox / f'{night:02}.libsvm', rows, night, **options)

    def retrain(self, *arguments, **environment):
        return dml('retrain', self.job, *arguments, **environment)

    def start(self, *arguments, command='retrain', **environment):
        return Process(COORDINATOR, command, self.job, *arguments, **environment)

    def good(self, *arguments, **environment):
        """Retrains and returns the members of the result."""
        finished = self.retrain('--json', *arguments, **environment)
        assert finished.status == 0, finished
        return finished.json

    def good_nights(self, *numbers):
        """New data and a good retraining in each of these nights."""
        for number in numbers:
            self.add(number)
            self.good()

    def runs(self):
        return dml('jobs', self.state, '--json').json['folders'][0]['runs']

    def of(self, publication):
        return [run['run'] for run in self.runs() if run['publication'] == publication]

    def published(self):
        """Runs whose models are or were live."""
        return [run['run'] for run in self.runs() if run['publication'] in ('live', 'published')]

    def live(self):
        return int(os.readlink(self.state / 'models/current'))

    def kill_in_training(self, *arguments, command='retrain', steps=2):
        """Starts, and kills the coordinator alone once it has made some steps."""
        process = self.start(*arguments, command=command, **SLOW)
        process.until(lambda: self.step(process) >= steps, 'a step')
        process.signal(signal.SIGKILL)
        process.popen.wait()

    def step(self, process):
        """How far the process has come; −1 if it does not train yet."""
        asked = dml('status', self.state, '--json')
        if asked.status or asked.json.get('pid') != process.pid:
            return -1
        return asked.json['step']


@functools.lru_cache
def check_files(data, described):
    """The hash of a model that is whole. A service reads the same bytes over and over."""
    said = json.loads(described)['model_sha256']
    length, = struct.unpack('<Q', data[:8])
    tensors = json.loads(data[8:8 + length])
    found = hashlib.sha256()
    for name in 'weight', 'bias':
        first, last = tensors[name]['data_offsets']
        assert 8 + length + last <= len(data), f'{name} is cut off'
        found.update(data[8 + length + first:8 + length + last])
    assert found.hexdigest() == said, 'the parameters are not those that model.json names'
    return said


def check_model(models, version='current'):
    """Reads models/VERSION as a program that uses it would. The model must be whole, and both files of
    the same version. Returns its hash."""
    folder = os.open(models / version, os.O_PATH | os.O_DIRECTORY)
    try:
        with open(os.open('model.safetensors', os.O_RDONLY, dir_fd=folder), 'rb') as file:
            data = file.read()
        with open(os.open('model.json', os.O_RDONLY, dir_fd=folder)) as file:
            described = file.read()
    finally:
        os.close(folder)
    return check_files(data, described)
