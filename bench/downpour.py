#!/usr/bin/env python3
"""Minibatches before L-BFGS, beside L-BFGS alone and Adam.

    bench/downpour.py [small | large | linear]...

It needs numpy and scikit-learn, and the shared data sets. Run it in the build folder, like the
tests.

    small       Fashion-MNIST, 784-100-10 tanh: passes over its 60,000 rows (an epoch of minibatches
                is one, an evaluation of L-BFGS another) and seconds to some accuracies on the
                10,000 test images, and the best of all. Test images judge here and choose nothing.
    large       the same of 784-300-100-10 relu.
    linear      a9a and Fashion-MNIST by softmax, where F is convex: passes until F is so much
                above the least that was found, relatively.
"""

import sqlite3

from networks import (MARKS, SHARED, adam_curve, curve_of, images, judged_by_test, print_curve,
                      show, train)

ABOVE = 1e-1, 1e-2, 1e-3, 1e-4
POURED = {'start': 'downpour'}
EPOCHS = 15
METHODS = (
    ('Downpour, then L-BFGS', POURED),
    ('L-BFGS', {}),
    ('Downpour', {'optimizer': 'downpour', 'downpour': {'epochs': EPOCHS}}),
    ('L-BFGS, kronecker', {'precondition': 'kronecker'}),
)


# ---- networks ----

def epochs_of(state):
    """Of each epoch: its number, seconds since training began, accuracy."""
    with sqlite3.connect(state / 'dml.db') as database:
        rows = database.execute('SELECT epoch, seconds, holdout_accuracy FROM downpour_epochs '
                                'ORDER BY epoch').fetchall()
    curve, seconds = [], 0
    for epoch, took, accuracy in rows:
        seconds += took
        curve.append((epoch, seconds, accuracy))
    return curve


def whole_curve(state):
    epochs = epochs_of(state)
    passes, seconds, _ = epochs[-1] if epochs else (0, 0, 0)
    return epochs + [(passes + more, seconds + later, accuracy)
                     for more, later, accuracy in curve_of(state)]


def show_network(folder, layers, activation, passes):
    print(f'| Fashion-MNIST | {" | ".join(f"passes / seconds to {m}" for m in MARKS)} | best |')
    print('|---' * (len(MARKS) + 2) + '|')
    words = '-'.join(map(str, [784, *layers, 10])) + f' {activation}'
    network = {'layers': layers, 'activation': activation, 'precision': 'float'}
    for number, (name, settings) in enumerate(METHODS):
        train(folder, f'job{number}', **judged_by_test(passes, network=network, **settings))
        print_curve(f'{words}, {name}', whole_curve(folder / f'job{number}.state'))
    print_curve(f'{words}, Adam (scikit-learn)', adam_curve(layers, activation, EPOCHS))


def show_small(folder):
    show_network(folder, [100], 'tanh', 60)


def show_large(folder):
    show_network(folder, [300, 100], 'relu', 60)


# ---- linear models ----

def losses_of(state):
    """F by passes, of steps."""
    passes, losses = len(epochs_of(state)), []
    with sqlite3.connect(state / 'dml.db') as database:
        trials = dict(database.execute('SELECT step, count(*) FROM evaluations GROUP BY step'))
        for step, loss in database.execute('SELECT step, loss FROM steps ORDER BY step'):
            passes += trials.get(step, 0)
            losses.append((passes, loss))
    return losses


def show_linear(folder):
    print(f'| F above the least, relatively | {" | ".join(map(str, ABOVE))} |')
    print('|---' * (len(ABOVE) + 1) + '|')
    softmax = {**images(), 'objective': 'softmax', 'l2': 1e-4, 'max_steps': 200}
    logistic = {'data': [str(SHARED / 'a9a.gz')], 'objective': 'logistic', 'l2': 1e-4}
    for words, job in ('a9a', logistic), ('Fashion-MNIST, softmax', softmax):
        curves = {}
        for name, settings in (('L-BFGS', {}), ('Downpour, then L-BFGS', POURED)):
            file = f'{job["objective"]}{len(curves)}'
            train(folder, file, **job, **settings)
            curves[name] = losses_of(folder / f'{file}.state')
        least = min(loss for curve in curves.values() for _, loss in curve)
        for name, curve in curves.items():
            cells = [str(next((passes for passes, loss in curve if loss <= least * (1 + above)),
                              'never')) for above in ABOVE]
            print(f'| {words}, {name} | {" | ".join(cells)} |', flush=True)


if __name__ == '__main__':
    show({'small': show_small, 'large': show_large, 'linear': show_linear})
