#!/usr/bin/env python3
"""Networks beside scikit-learn's MLPClassifier (Adam), and beside linear models.

    bench/networks.py [images | stopping | tables]...

It needs numpy and scikit-learn, and the shared data sets. Run it in the build folder, like the
tests.

    images     Fashion-MNIST, accuracy on its 10,000 test images after each pass over the 60,000
               others: passes (ours are evaluations) and seconds to some accuracies, and the best of
               all. Test images judge here and choose nothing.
    stopping   the same images as a user would train: the defaults, which hold out a tenth of the rows
               and stop by it, then the accuracy on the test images.
    tables     Adult and a part of covtype: a hidden layer beside the linear model, by rows held out.
"""

import gzip
import pathlib
import sqlite3
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import COORDINATOR, SHARED, heed_interrupts, run, write_job  # noqa: E402

IMAGES = SHARED / 'fashion_mnist'
MARKS = 0.87, 0.875, 0.88, 0.885
PASSES = 75
SMALL = {'network': {'layers': [100]}}
LARGE = {'network': {'layers': [300, 100], 'activation': 'relu'}}


def train(folder, name, **settings):
    job = write_job(folder, name, **settings)
    finished = run(COORDINATOR, 'run', job, '--json', seconds=3600)
    assert finished.status == 0, finished
    return finished.json


# ---- images ----

def files_of(kind):
    return [str(next(IMAGES.glob(f'{kind}-{part}-idx*'))) for part in ('images', 'labels')]


def images(**settings):
    data, labels = files_of('train')
    return {'data': [data], 'labels': [labels], 'objective': 'network', 'threads': 1, 'replicas': 1,
            'shards': 1, **settings}


def judged_by_test(passes=PASSES, **settings):
    data, labels = files_of('t10k')
    return images(holdout=[data], holdout_labels=[labels], early_stopping=1000, loss_tolerance=0,
                  max_steps=passes, **settings)


def curve_of(state):
    """Of each step: passes so far, seconds since the first, accuracy."""
    database = sqlite3.connect(state / 'dml.db')
    trials = dict(database.execute('SELECT step, count(*) FROM evaluations GROUP BY step'))
    steps = database.execute('SELECT step, wall_ms, holdout_accuracy FROM steps ORDER BY step')
    curve, passes, first = [], 0, None
    for step, wall_ms, accuracy in steps.fetchall():
        passes += trials.get(step, 0)
        first = first or wall_ms
        curve.append((passes, (wall_ms - first) / 1e3, accuracy))
    database.close()
    return curve


def numbers(path):
    import numpy as np
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
        data = file.read()
    dimensions = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], 'big') for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dimensions[0], -1)


def adam_curve(layers, activation, epochs=40):
    """The same of MLPClassifier, on centred pixels from 0 to 1; one thread, as ours."""
    import numpy as np
    import threadpoolctl
    from sklearn.neural_network import MLPClassifier
    x, y, test, answers = (numbers(path) for path in files_of('train') + files_of('t10k'))
    mean = x.mean(axis=0) / 255
    x, test = x / 255 - mean, test / 255 - mean
    model = MLPClassifier(layers, activation=activation, random_state=1, max_iter=1, warm_start=True)
    curve, seconds = [], 0
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for epoch in range(1, epochs + 1):
            start = time.monotonic()
            model.fit(x, y.ravel())
            seconds += time.monotonic() - start
            curve.append((epoch, seconds, np.mean(model.predict(test) == answers.ravel())))
    return curve


def print_curve(name, curve):
    cells = []
    for mark in MARKS:
        reached = next((f'{passes} / {seconds:.0f} s' for passes, seconds, accuracy in curve
                        if accuracy >= mark), 'never')
        cells.append(reached)
    passes, seconds, best = max(curve, key=lambda point: point[2])
    print(f'| {name} | {" | ".join(cells)} | {best:.4f} at {passes} / {seconds:.0f} s |', flush=True)


def show_images(folder):
    print(f'| Fashion-MNIST | {" | ".join(f"passes / seconds to {m}" for m in MARKS)} | best |')
    print('|---' * (len(MARKS) + 2) + '|')
    for network, layers, activation, words in ((SMALL, (100,), 'tanh', '784-100-10 tanh'),
                                               (LARGE, (300, 100), 'relu', '784-300-100-10 relu')):
        for precondition in 'none', 'kronecker':
            for precision in 'double', 'float':
                name = f'{words}, {precondition}, {precision}'
                train(folder, name.replace(' ', ''), **judged_by_test(
                    network={**network['network'], 'precision': precision},
                    precondition=precondition))
                print_curve(name, curve_of(folder / f'{name.replace(" ", "")}.state'))
        print_curve(f'{words}, MLPClassifier', adam_curve(layers, activation))


def show_stopping(folder):
    print('| Fashion-MNIST, defaults | steps | evaluations | seconds | holdout | test |')
    print('|---|---|---|---|---|---|')
    data, labels = files_of('t10k')
    for network, words in (SMALL, '784-100-10 tanh'), (LARGE, '784-300-100-10 relu'):
        for precondition in 'none', 'kronecker':
            name = f'{words}, {precondition}'
            result = train(folder, name.replace(' ', ''),
                           **images(test=[data], test_labels=[labels], precondition=precondition,
                                    network={**network['network'], 'precision': 'float'}))
            print(f'| {name} | {result["steps"]} | {result["evaluations"]} | '
                  f'{result["seconds"]["train"]:.0f} | {result["holdout"]["accuracy"]:.4f} | '
                  f'{result["test"]["accuracy"]:.4f} |', flush=True)


# ---- tables ----

def tables():
    yield 'Adult', {'data': [str(SHARED / 'adult.data.gz')], 'objective': 'logistic'}
    yield 'covtype, 7 classes', {'data': [str(SHARED / 'covtype.20k.csv.gz')],
                                 'objective': 'softmax'}


def show_tables(folder):
    print('| table | linear: loss, accuracy | hidden layer of 30: loss, accuracy | steps |')
    print('|---|---|---|---|')
    for name, settings in tables():
        common = {**settings, 'holdout': [0.2], 'standardise': True, 'l2': 1e-4}
        linear = train(folder, f'{name[:5]}-linear', **common)
        network = train(folder, f'{name[:5]}-network', **{
            **common, 'objective': 'network', 'early_stopping': 20, 'precondition': 'kronecker',
            'network': {'layers': [30], 'loss': settings['objective']}})
        both = ' | '.join(f'{r["holdout"]["loss"]:.4f}, {r["holdout"]["accuracy"]:.4f}'
                          for r in (linear, network))
        print(f'| {name} | {both} | {network["steps"]} |', flush=True)


def show(shows):
    """Runs those that the command names, or all."""
    heed_interrupts()
    for word in sys.argv[1:] or shows:
        with tempfile.TemporaryDirectory() as folder:
            shows[word](pathlib.Path(folder))


if __name__ == '__main__':
    show({'images': show_images, 'stopping': show_stopping, 'tables': show_tables})
