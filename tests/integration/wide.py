"""A job on wide data, whose parameters are three blocks, and its coordinator's death at a failpoint."""

import random
import signal

from harness import COORDINATOR, Process, lines_of, train, write_job

FEATURES = 9000  # three blocks of parameters, so that three shards have something to do


def wide_data(folder, name='wide.libsvm', rows=1200, seed=1, label=lambda rng: rng.choice([-1, 1])):
    rng = random.Random(seed)
    with open(folder / name, 'w') as file:
        for _ in range(rows):
            row = sorted(rng.sample(range(1, FEATURES + 1), 25))
            file.write(f'{label(rng)} ' +
                       ' '.join(f'{j}:{round(rng.gauss(0, 1), 2)}' for j in row) + '\n')
    return name


def wide_job(folder, **settings):
    """A job, and the model of an earlier run of it on part of the data."""
    data = folder / wide_data(folder)
    part = folder / 'part.libsvm'
    part.write_text(''.join(line + '\n' for line in lines_of(data)[:-20]))
    chosen = {'l2': 1e-3, 'max_steps': 12, 'gradient_tolerance': 1e-9, 'checkpoint_seconds': 0,
              'threads': 1, 'replicas': 1, 'shards': 2, **settings}
    earlier = write_job(folder, 'earlier', data=[part.name], **chosen)
    return write_job(folder, data=[data.name], **chosen), train(earlier)


def killed_at(point, job, *arguments, command='run'):
    """Runs until the coordinator is killed there; its workers end with it."""
    process = Process(COORDINATOR, command, job, *arguments, DML_FAILPOINT=f'coordinator.{point}:kill')
    finished = process.wait()
    process.end()
    assert finished.status == -signal.SIGKILL, finished
