"""What the tests of sweeps share: data, the record, and commands that are killed."""

import contextlib
import random
import signal
import sqlite3

from harness import COORDINATOR, Process


def write_rows(path, rows, seed, mode='w', features=12, decades=0):
    """Two classes that a plane separates badly, of columns whose sizes span so many decades."""
    rng = random.Random(seed)
    with open(path, mode) as file:
        for _ in range(rows):
            values = [round(rng.gauss(0, 1), 3) for _ in range(features)]
            scale = [10 ** (decades * j / features) for j in range(features)]
            margin = sum(v / (j + 1) for j, v in enumerate(values)) + rng.gauss(0, 1)
            file.write(f'{1 if margin > 0 else -1} ' +
                       ' '.join(f'{j + 1}:{v * scale[j]!r}' for j, v in enumerate(values)) + '\n')


def rows_of(state, query):
    with contextlib.closing(sqlite3.connect(state / 'dml.db')) as database:
        return database.execute(query).fetchall()


def table_of(result):
    """What two sweeps of the same must agree in, to the bit."""
    keys = ('l2', 'l1', 'loss', 'holdout_loss', 'steps', 'evaluations', 'model_sha256', 'folds',
            'score', 'chosen')
    return [[row.get(key) for key in keys] for row in result['path']]


def killed(command, job, place, *arguments):
    """Gives the command; its coordinator is killed at that place, and then its workers."""
    process = Process(COORDINATOR, command, job, *arguments,
                      DML_FAILPOINT=f'coordinator.{place}:kill')
    finished = process.wait()
    process.end()
    assert finished.status == -signal.SIGKILL, finished
