#!/usr/bin/env python3
"""The shuffled sets that minibatches are trained on: what they hold, from data of all kinds, and that
L-BFGS comes to the same on them as on ordinary sets."""

import math
import random
import sys

from harness import dml, main, small_data, test, train, write_job

POURS = {'start': 'downpour', 'downpour': {'epochs': 1, 'rate': 0.1, 'seed': 4}}
EXACT = {'l2': 1e-2, 'gradient_tolerance': 1e-10, 'loss_tolerance': 0}


def the_set(state):
    path, = (state / 'packs').glob('*.set')
    return dml('inspect', path, '--json').json


@test
def a_job_with_minibatches_has_a_shuffled_set_that_keeps_the_holdout(folder):
    small_data(folder, rows=500)
    settings = {'data': ['small.libsvm'], 'holdout': 0.2, 'early_stopping': 'off'}
    for name, own in ('plain', {}), ('pours', POURS), ('alone', {'optimizer': 'downpour'}):
        assert dml('pack', write_job(folder, name, **settings, **own)).status == 0
        made = the_set(folder / f'{name}.state')
        if not own:
            assert 'shuffled_rows_per_chunk' not in made and 'holdout_chunks' not in made, made
            continue
        rows = made['shuffled_rows_per_chunk']  # as small as the minibatches that auto takes
        assert rows == (64 if name == 'pours' else 8), made
        assert made['rows'] + made['holdout_rows'] == 500 and made['holdout_rows'] > 50, made
        assert made['chunks'] - made['holdout_chunks'] == math.ceil(made['rows'] / rows), made


@test
def one_file_or_many_give_the_same_model(folder):
    lines = small_data(folder, rows=700).read_text().splitlines(keepends=True)
    for i, (first, end) in enumerate(((0, 1), (1, 400), (400, 700))):
        (folder / f'part{i}').write_text(''.join(lines[first:end]))
    settings = {**POURS, 'holdout': 0.1, 'l2': 1e-3}
    whole = train(write_job(folder, 'whole', data=['small.libsvm'], threads=1, **settings))
    parts = train(write_job(folder, 'parts', data=['part0', 'part1', 'part2'], threads=3, replicas=2,
                            **settings))
    assert whole['model_sha256'] == parts['model_sha256'], (whole, parts)


def write_table(folder):
    """Numbers of which some are missing, categories, weights."""
    source = random.Random(2)
    with open(folder / 'table.csv', 'w') as file:
        file.write('a,b,c,weight,label\n')
        for _ in range(500):
            a, b = round(source.gauss(0, 1), 3), source.choice('xyz')
            label = source.gauss(a, 1) + (b == 'x') > 0
            missing = source.random() < 0.1
            file.write(f'{"" if missing else a},{b},{round(source.gauss(5, 1), 2)},'
                       f'{source.choice([0, 1, 2.5])},{"yes" if label else "no"}\n')


def write_lists(folder):
    source = random.Random(3)
    with open(folder / 'lists', 'w') as file:
        for _ in range(500):
            x = [round(source.gauss(0, 1), 3) for _ in range(3)]
            own = [str(k) for k in range(3) if source.gauss(x[k], 1) > 0]
            file.write(f'{",".join(own)} ' + ' '.join(f'{j + 1}:{v}' for j, v in enumerate(x)) + '\n')


def write_images(folder):
    """IDX files of 400 images of 3×4 bytes, and of their classes."""
    source = random.Random(4)
    classes = [source.randrange(3) for _ in range(400)]
    cells = bytes(source.randrange(60 * (k + 1)) for k in classes for _ in range(12))
    sizes = b''.join(size.to_bytes(4, 'big') for size in (400, 3, 4))
    (folder / 'images.idx').write_bytes(b'\0\0\x08\x03' + sizes + cells)
    (folder / 'classes.idx').write_bytes(b'\0\0\x08\x01' + sizes[:4] + bytes(classes))


@test
def l_bfgs_comes_to_the_optimum_of_the_ordinary_set(folder):
    write_table(folder)
    write_lists(folder)
    write_images(folder)
    kinds = {
        'table': {'data': ['table.csv'], 'objective': 'logistic', 'class_weight': ['yes = 3'],
                  'csv': {'label': 'label', 'weight': 'weight', 'bins': 4}},
        'lists': {'data': ['lists'], 'objective': 'multilabel'},
        'images': {'data': ['images.idx'], 'labels': ['classes.idx'], 'objective': 'softmax',
                   'standardise': True},
    }
    for name, settings in kinds.items():
        plain, pours = (train(write_job(folder, f'{name}{bool(own)}', **settings, **EXACT, **own))
                        for own in ({}, POURS))
        assert the_set(folder / f'{name}True.state')['shuffled_rows_per_chunk'] == 64
        assert math.isclose(plain['loss'], pours['loss'], rel_tol=1e-9), (name, plain, pours)


@test
def folds_are_left_out_of_shuffled_sets(folder):
    small_data(folder, rows=400)
    settings = {'data': ['small.libsvm'], 'folds': 3, **EXACT}
    plain, pours = (train(write_job(folder, f'job{bool(own)}', **settings, **own))['path'][0]['folds']
                    for own in ({}, POURS))
    assert all(math.isclose(a, b, rel_tol=1e-6)
               for a, b in zip(plain['losses'], pours['losses'], strict=True)), (plain, pours)


@test
def a_holdout_that_weighs_nothing_is_not_measured(folder):
    small_data(folder, rows=200)
    small_data(folder, 'held.libsvm', rows=80, seed=2)
    (folder / 'ones').write_text('1\n' * 200)
    job = write_job(folder, data=['small.libsvm'], holdout=['held.libsvm'], weights=['ones'],
                    holdout_weights=['weights'], optimizer='downpour')
    for weight, told in ('0', False), ('1', True):
        (folder / 'weights').write_text(f'{weight}\n' * 80)
        epochs = [line for line in dml('run', job, '--fresh').stderr.splitlines() if 'info: epoch' in line]
        assert epochs and all((' holdout ' in line) == told for line in epochs), epochs


if __name__ == '__main__':
    sys.exit(main())
