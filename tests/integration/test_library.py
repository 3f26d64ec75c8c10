#!/usr/bin/env python3
"""libdml: a program that scores with it prints what `predict` prints, to the last digit."""

import random
import subprocess
import sys
from datetime import datetime, timedelta

from harness import BUILD, SOURCE, dml, main, small_data, small_job, test, train, write_job

SCORE = BUILD / 'examples/library/score'
HEADER = ['size', 'town', 'when', 'note', 'grade', 'far']
QUICK = {'max_steps': 5, 'l2': 1e-3}
SHOWN = ['', '--margins', '--probabilities', '--labels']


def rows_of(count=300, seed=1):
    """Cells of each kind, some of them missing, rare, unknown or odd."""
    rng = random.Random(seed)
    towns = ['Paris', 'Rome', ' Oslo', 'a, "quoted" one', 'Zürich', '', '?', 'NA']
    words = ['red', 'Green', 'ÉTÉ', 'x', 'slow train', 'snow_1', '中文字']
    for _ in range(count):
        when = datetime(2020, 1, 1) + timedelta(hours=rng.randrange(30000))
        yield [rng.choice(['', 'NA', '-1e3', ' 7 ']) if rng.random() < 0.1 else f'{rng.gauss(0, 9):.3f}',
               f'rare{rng.randrange(99)}' if rng.random() < 0.1 else rng.choice(towns),
               rng.choice(['', when.isoformat(' '), when.date().isoformat()]),
               ' '.join(rng.choices(words, k=rng.randrange(6))),
               rng.choice('1234'), repr(rng.random() * 1e6)]


def quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"') else cell


def write_rows(path, rows, header):
    path.write_text('\n'.join(','.join(map(quoted, row)) for row in [header, *rows]) + '\n')


def table_job(folder, name, labels, csv=None, **settings):
    """Trains on rows with these labels."""
    rows = list(rows_of(len(labels)))
    write_rows(folder / f'{name}.csv', [[*row, str(label)] for row, label in zip(rows, labels)],
               [*HEADER, 'y'])
    job = write_job(folder, name, data=[f'{name}.csv'], **{**QUICK, **settings},
                    csv={'label': 'y', 'dates': ['when'], 'text': ['note'], 'category_least': 3,
                         **(csv or {})})
    train(job, '--quiet')
    return folder / f'{name}.state'


def scored(model, data, *options):
    with open(data) as rows:
        finished = subprocess.run([SCORE, *options, model], stdin=rows, capture_output=True,
                                  text=True, timeout=60)
    assert finished.returncode == 0, finished
    return finished.stdout


def assert_as_predict(model, data, shown=SHOWN):
    """Whatever `predict` prints of the model, the program prints."""
    printed = 0
    for option in shown:
        options = [option] if option else []
        expected = dml('predict', model, data, *options)
        if expected.status == 64:
            continue
        assert expected.status == 0 and expected.stdout, expected
        assert scored(model, data, *options) == expected.stdout, (model, option)
        printed += 1
    assert printed


def labels_of(kind, count=300):
    rng = random.Random(kind)
    return [{'two': rng.choice('ab'), 'three': rng.choice('abc'), 'graded': rng.randrange(4),
             'lists': ','.join(rng.sample('abcd', rng.randrange(1, 3))),
             'count': rng.randrange(9), 'amount': round(rng.expovariate(1) + 0.01, 3)}[kind]
            for _ in range(count)]


LOSSES = {'logistic': 'two', 'squared_hinge': 'two', 'smooth_hinge': 'two', 'softmax': 'three',
          'one_vs_rest': 'three', 'ordinal': 'graded', 'multilabel': 'lists', 'squared': 'amount',
          'huber': 'amount', 'quantile': 'amount', 'poisson': 'count', 'gamma': 'amount',
          'tweedie': 'count'}


@test
def every_loss_is_scored_as_predict_does(folder):
    write_rows(folder / 'new.csv', rows_of(60, 2), HEADER)
    for loss, kind in LOSSES.items():
        model = table_job(folder, loss, labels_of(kind), objective=loss,
                          **({'multilabel': {'separator': ','}} if kind == 'lists' else {}))
        assert_as_predict(model, folder / 'new.csv')


@test
def bins_crosses_networks_and_calibrations_are_too(folder):
    write_rows(folder / 'new.csv', rows_of(60, 2), HEADER)
    for name, settings in {
            'bins': {'csv': {'bins': 5, 'text_values': 'log_tfidf', 'ngrams': 2}, 'cross': ['town*grade']},
            'pairs': {'csv': {'bins': 3, 'categories': ['grade'], 'hash': 8}, 'cross': 'pairs'},
            'rising': {'csv': {'bins': 4}, 'monotone': ['far = rising']},
            'platt': {'holdout': 0.3, 'calibrate': 'platt', 'threshold': 'f1', 'class_weight': 'balanced'},
            'isotonic': {'holdout': 0.3, 'calibrate': 'isotonic', 'threshold': 0.4},
            'network': {'objective': 'network', 'network': {'layers': 3, 'loss': 'logistic'}}}.items():
        assert_as_predict(table_job(folder, name, labels_of('two'), **settings), folder / 'new.csv')


@test
def offsets_and_weights_in_columns_are_read(folder):
    rows = [[*row[:1], row[4], str(0.1 + i % 3), str(i % 2 + 1), str(i % 4)]
            for i, row in enumerate(rows_of(100))]
    header = ['size', 'grade', 'exposed', 'heavy', 'y']
    write_rows(folder / 'data.csv', rows, header)
    train(write_job(folder, data=['data.csv'], objective='poisson', exposure='exposed', **QUICK,
                    csv={'label': 'y', 'weight': 'heavy'}))
    assert_as_predict(folder / 'job.state', folder / 'data.csv')


@test
def sparse_rows_are_scored_as_predict_does(folder):
    train(small_job(folder))
    new = small_data(folder, 'new.libsvm', seed=2)
    new.write_text(new.read_text() + '1 7:1 3:2 99:5\n-1\n')
    assert_as_predict(folder / 'job.state', new)


@test
def no_program_loads_a_library_at_its_start_that_it_seldom_needs(folder):
    # Every one costs each start; an archive member that is called for its neighbour brings them.
    data = ['sqlite', 'zstd', 'snappy', 'unistring']
    for program, seldom in (('dml-shard', data), ('dml-replica', data), ('dml-coordinator', [])):
        loaded = subprocess.run(['ldd', BUILD / program], capture_output=True, text=True, check=True).stdout
        assert not [line for line in loaded.splitlines()
                    if any(name in line for name in ('curl', 'gnutls', 'ldap', 'krb5', *seldom))], loaded


@test
def the_library_has_no_symbols_but_its_own(folder):
    """Those of library/libdml.map, each in the version in which it came; nothing that ends, forks or
    writes, and no code of training."""
    library = BUILD / 'libdml.so.0'
    given = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True,
                           check=True).stdout
    found = {line.split()[-1] for line in given.splitlines()}
    assert found - {'DML_1.0'} == symbols_of(SOURCE / 'library/libdml.map'), found
    taken = subprocess.run(['readelf', '-rW', library], capture_output=True, text=True,
                           check=True).stdout
    called = {line.split()[4].split('@')[0] for line in taken.splitlines()
              if len(line.split()) > 4 and line.split()[2].startswith('R_')}
    assert 'json_object_get' in called and 'mmap' in called, called
    forbidden = {'exit', '_exit', 'abort', 'fork', 'vfork', 'execv', 'execve', 'posix_spawn', 'kill',
                 'raise', 'signal', 'sigaction', 'socket', 'write', 'fprintf', 'fwrite', 'stderr',
                 'pthread_create', '__assert_fail', 'event_base_new', 'sqlite3_open'}
    assert not called & forbidden, called & forbidden


def symbols_of(path):
    symbols, version = set(), None
    for line in path.read_text().splitlines():
        words = line.replace('{', ' ').replace(';', ' ').split()
        if line.startswith('DML_'):
            version = words[0]
        elif words and line.startswith('    ') and words[0] != '*':
            symbols.add(f'{words[0]}@@{version}')
    return symbols


if __name__ == '__main__':
    sys.exit(main())
