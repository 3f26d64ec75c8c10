#!/usr/bin/env python3
"""One epoch of Downpour beside one pass of Vowpal Wabbit, both by their defaults: log loss and AUC
on rows that neither has seen, the seconds of processors that the whole training took, from text on,
and the ratios of Downpour's to the other's. And what an epoch alone takes: one more, of a run of some.

    bench/one_pass.py [--orders N] [--set KEY=VALUE]... [--work FOLDER] [ROW...]

    ROW       farm_ads (every fifth row is held out), clicks (made: 30 columns of 10 to 50,000 codes,
              100,000 rows, of which 3 % are clicks), text (made: tf-idf in rows of unit length, 20,000
              rows), words (the same of 20 Newsgroups, every fifth row held out); all without any
    --orders  in how many orders of the rows; 3
    --set     a setting of the job
    --work    where the virtual environment of Vowpal Wabbit is made; bench/one_pass in the build
              folder

Run it in the build folder, like the tests.
"""

import argparse
import gzip
import itertools
import math
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import made_rows  # noqa: E402
from harness import BUILD, SHARED, dml, heed_interrupts, train, write_job  # noqa: E402
from peers import environment  # noqa: E402
from wide_text import documents  # noqa: E402

EPOCHS = 1, 11

# Learns a file of its own format as its command does, and prints the seconds of processors that this
# took, and what it says of the rows of the test.
VOWPAL_WABBIT = '''
import sys, time, vowpalwabbit
train, test = sys.argv[1:]
began = time.process_time()
vw = vowpalwabbit.Workspace(f'-d {train} --loss_function logistic --link logistic -b 24 --quiet')
print(time.process_time() - began)
for line in open(test):
    label, features = line.split(' ', 1)
    print(label, vw.predict('| ' + features))
'''


# ---- data: rows of LIBSVM, for training and for the test ----

def every_fifth(rows):
    return ([row for i, row in enumerate(rows) if i % 5 != 4], rows[4::5])


def farm_ads():
    with gzip.open(SHARED / 'farm_ads.libsvm.gz', 'rt') as file:
        return every_fifth(file.readlines())


def clicks():
    lines = made_rows.clicks()
    return lines[:100_000], lines[100_000:]


def text():
    lines = made_rows.text()
    return lines[:20_000], lines[20_000:]


def words():
    rows = documents(SHARED / 'news20.libsvm.gz')
    return every_fifth(made_rows.tf_idf([(1 if label <= 10 else -1, dict(terms)) for label, terms in rows]))


ROWS = {'farm_ads': farm_ads, 'clicks': clicks, 'text': text, 'words': words}


# ---- what they come to ----

def figures_of(pairs):
    """(log loss, AUC) of pairs of a label and a probability."""
    loss = statistics.fmean(-math.log(max(p if label > 0 else 1 - p, 1e-15)) for label, p in pairs)
    ranked, below, wins = sorted(pairs, key=lambda pair: pair[1]), 0, 0.0
    for _, group in itertools.groupby(ranked, key=lambda pair: pair[1]):
        labels = [label for label, _ in group]
        positive = sum(label > 0 for label in labels)
        negative = len(labels) - positive
        wins += positive * (below + negative / 2)
        below += negative
    return loss, wins / (below * (len(pairs) - below))


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def trained(folder, seed, epochs, settings):
    """The model, and what it took."""
    job = write_job(folder, data=['train'], optimizer='downpour',
                    downpour={'epochs': epochs, 'seed': 1 + seed})
    before = processor_seconds()
    model = train(job, '--fresh', *(word for s in settings for word in ('--set', s)))['model']
    return model, processor_seconds() - before


def downpour(folder, seed, settings):
    """Log loss, AUC and seconds. What the test takes is not counted: it is evaluated apart."""
    model, seconds = trained(folder, seed, 1, settings)
    test = dml('evaluate', model, folder / 'test', '--json').json
    return test['log_loss'], test['auc'], seconds


def epoch_seconds(folder, orders, settings):
    """Of an epoch more: the least that runs of few epochs and of more took tell it."""
    few, more = (min(trained(folder, seed, epochs, settings)[1] for seed in orders)
                 for epochs in EPOCHS)
    return (more - few) / (EPOCHS[1] - EPOCHS[0])


def in_order(lines, seed):
    """As Vowpal Wabbit reads them, in the order of a seed; 0: as they are."""
    rows = [line.replace(' ', ' | ', 1) for line in lines]
    if seed:
        random.Random(seed).shuffle(rows)
    return ''.join(rows)


def vowpal_wabbit(folder, seed, python):
    (folder / 'ordered').write_text(in_order((folder / 'train').open(), seed))
    said = subprocess.run([python, '-c', VOWPAL_WABBIT, folder / 'ordered', folder / 'test'],
                          capture_output=True, text=True, check=True).stdout
    seconds, *rows = said.splitlines()
    return *figures_of([tuple(map(float, line.split())) for line in rows]), float(seconds)


def means(figures):
    return [statistics.fmean(column) for column in zip(*figures)]


def show(name, contender, figures):
    loss, auc, seconds = means(figures)
    losses = ' '.join(f'{figure[0]:.4f}' for figure in figures)
    print(f'| {name} | {contender} | {loss:.4f} | {losses} | {auc:.4f} | {seconds:.2f} |', flush=True)


def show_epoch(name, seconds, other):
    whole = min(figure[2] for figure in other)
    print(f'| {name} | an epoch / Vowpal Wabbit, the least of each | | | | '
          f'{seconds:.2f} / {whole:.2f} |', flush=True)


def show_ratios(name, own, other):
    loss, auc, seconds = (a / b for a, b in zip(means(own), means(other)))
    losses = ' '.join(f'{a[0] / b[0]:.3f}' for a, b in zip(own, other))
    print(f'| {name} | Downpour / Vowpal Wabbit | {loss:.3f} | {losses} | {auc:.4f} '
          f'| {seconds:.2f} |', flush=True)


def run():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--orders', type=int, default=3)
    parser.add_argument('--set', action='append', default=[])
    parser.add_argument('--work', type=pathlib.Path, default=BUILD / 'bench/one_pass')
    parser.add_argument('rows', nargs='*', metavar='ROW')
    options = parser.parse_args()
    python = environment(options.work, ('vowpalwabbit',))
    print('| data | | mean log loss | by order | mean AUC | seconds of processors |\n'
          '|---|---|---|---|---|---|')
    for name in options.rows or ROWS:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            for part, lines in zip(('train', 'test'), ROWS[name]()):
                (folder / part).write_text(''.join(lines))
            orders = range(options.orders)
            own = [downpour(folder, seed, options.set) for seed in orders]
            show(name, 'Downpour', own)
            other = [vowpal_wabbit(folder, seed, python) for seed in orders]
            show(name, 'Vowpal Wabbit', other)
            show_ratios(name, own, other)
            show_epoch(name, epoch_seconds(folder, orders, options.set), other)


if __name__ == '__main__':
    heed_interrupts()
    run()
