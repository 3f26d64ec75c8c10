#!/usr/bin/env python3
"""Features of tables by their ids: codes that look alike, many bins, and models of earlier ids."""

import json
import math
import random
import struct
import sys

from harness import BAD_DATA, CONFIG, dml, main, test, train, write_job


def write_codes(folder, rows=3000, codes=120, seed=1):
    """Columns of small integers, each code with an effect of its own."""
    rng = random.Random(seed)
    effect = [[rng.gauss(0, 1) for _ in range(codes)] for _ in range(4)]
    lines = ['a,b,c,d,y']
    for _ in range(rows):
        row = [rng.randrange(codes) for _ in range(4)]
        margin = sum(effect[column][code] for column, code in enumerate(row)) + rng.gauss(0, .3)
        lines.append(','.join(map(str, row)) + (',yes' if margin > 0 else ',no'))
    (folder / 'data.csv').write_text('\n'.join(lines) + '\n')


def predicted(folder, model, text, *arguments):
    (folder / 'rows.csv').write_text(text)
    finished = dml('predict', model, folder / 'rows.csv', *arguments)
    assert finished.status == 0, finished
    return [float(line) for line in finished.stdout.split()]


@test
def integer_codes_of_several_columns_are_categories(folder):
    write_codes(folder)
    result = train(write_job(folder, data=['data.csv'], l2=1e-3,
                             csv={'categories': ['a', 'b', 'c', 'd']}))
    assert result['features'] == 480, result
    state = folder / 'job.state'
    model = json.loads((state / 'models/1/model.json').read_text())
    assert len(set(model['feature_names'])) == 480
    head, unseen = 'a,b,c,d\n', [f'{code},x,x,x' for code in range(120, 1000)]
    margins = predicted(folder, state, head + '\n'.join(['x,x,x,x', *unseen]) + '\n', '--margins')
    assert set(margins) == {margins[0]}, 'a code that training did not have has a weight'


@test
def a_table_with_texts_is_refused_for_liblinear_and_told_what_has_it(folder):
    write_codes(folder, 500, 10)
    train(write_job(folder, data=['data.csv'], l2=1e-2, csv={'categories': ['a']}))
    finished = dml('export', folder / 'job.state', '--format', 'liblinear')
    assert finished.status == BAD_DATA and not finished.stdout, finished
    assert 'are hashes' in finished.stderr and '--format tsv and json' in finished.stderr, finished
    assert 'a=7\t' in dml('export', folder / 'job.state', '--format', 'tsv').stdout


@test
def a_network_of_two_classes_has_a_positive_one(folder):
    write_codes(folder, 300, 10)
    settings = {'data': ['data.csv'], 'objective': 'network', 'max_steps': 3,
                'csv': {'positive': 'no'}}
    train(write_job(folder, network={'layers': [2], 'loss': 'logistic'}, **settings))
    model = json.loads((folder / 'job.state/models/1/model.json').read_text())
    assert model['classes'] == ['yes', 'no'], model['classes']
    finished = dml('check', write_job(folder, network={'layers': [2]}, **settings))
    assert finished.status == CONFIG, finished
    assert 'needs a loss of the network with two classes, such as network.loss = logistic; ' \
        'the loss is softmax' in finished.stderr, finished


@test
def many_bins_make_a_model_that_can_be_read(folder):
    rng = random.Random(1)
    lines = ['u,v,w,x,y']
    for _ in range(3000):
        row = [rng.gauss(0, 1) for _ in range(4)]
        lines.append(','.join(f'{x:.4f}' for x in row) + (',1' if row[0] ** 2 > row[1] else ',0'))
    text = '\n'.join(lines) + '\n'
    for name in 'data.csv', 'test.csv':
        (folder / name).write_text(text)
    result = train(write_job(folder, data=['data.csv'], test=['test.csv'], l2=1e-4,
                             csv={'bins': 256}))
    assert result['features'] == 4 + 4 * 256 and result['test']['auc'] > .97, result
    assert len(predicted(folder, folder / 'job.state', text)) == 3000


# A model of version 3, where the column was the seed of a text's hash.
EARLIER = {
    'size': (0x0000000000000001, 1.75), 'color=red': (0x9bcfc45f6c87c68c, 1.5),
    'size=[-0.5, 0.25)': (0xb6ae08f119129bd0, -0.125),
    'size=(-inf, -0.5)': (0xb75f3bf37e8a3d5d, -0.375), 'color=77': (0xbc9692df010f9ec4, -2.25),
    'size=(missing)': (0xc7180ee36780ebe6, 0.5), 'color=blue': (0xd9885ba0bcc748f3, -1.125),
    'size=[0.25, inf)': (0xe74a1bf5afe726ee, -0.0625),
    'color=(missing)': (0xfdabae411772c1a0, 0.4375), 'color=7': (0xfec5d8c9fdb0f8ab, 1.4375)}
BIAS, MEAN = -0.1875, -0.078125


def write_earlier_model(folder):
    ids, weights = zip(*EARLIER.values())
    count = len(ids)
    header = {'__metadata__': {'format': 'dml', 'format_version': '3', 'objective': 'logistic'},
              'weight': {'dtype': 'F64', 'shape': [1, count], 'data_offsets': [0, 8 * count]},
              'bias': {'dtype': 'F64', 'shape': [1], 'data_offsets': [8 * count, 8 * count + 8]},
              'feature_id': {'dtype': 'U64', 'shape': [count],
                             'data_offsets': [8 * count + 8, 16 * count + 8]}}
    text = json.dumps(header).encode()
    text += b' ' * (-(8 + len(text)) % 64)
    folder.mkdir(parents=True)
    (folder / 'model.safetensors').write_bytes(
        struct.pack('<Q', len(text)) + text + struct.pack(f'<{count}d', *weights) +
        struct.pack('<d', BIAS) + struct.pack(f'<{count}Q', *ids))
    columns = [{'name': 'size', 'kind': 'number', 'found': True, 'mean': MEAN,
                'edges': [-0.5, 0.25]},
               {'name': 'color', 'kind': 'category'}, {'name': 'y', 'kind': 'label'}]
    (folder / 'model.json').write_text(json.dumps({
        'format_version': 3, 'objective': 'logistic', 'outputs': 1, 'intercept': True,
        'features': count, 'classes': ['no', 'yes'], 'feature_names': list(EARLIER),
        'preparation': {'columns': columns, 'missing': ['NA'], 'trim': True},
        'source': {'format': 'csv', 'header': 'yes', 'skip': []}}))


def earlier_margin(size, color):
    value = MEAN if size is None else size
    margin = BIAS + EARLIER['size'][1] * value
    bins = ['size=(-inf, -0.5)', 'size=[-0.5, 0.25)', 'size=[0.25, inf)']
    names = [bins[(size >= -.5) + (size >= .25)]] if size is not None else ['size=(missing)']
    names.append(f'color={color}' if color else 'color=(missing)')
    return margin + sum(EARLIER[name][1] for name in names if name in EARLIER)


ROWS = [(.5, 'red'), (-1., '7'), (.125, '77'), (None, 'blue'), (2., ''), (-.5, 'green')]


def lines_of(rows):
    return ''.join(f'{"" if size is None else size},{color}' + '\n' for size, color in rows)


@test
def a_model_of_earlier_ids_is_scored_as_it_was_trained(folder):
    write_earlier_model(folder / 'earlier')
    margins = predicted(folder, folder / 'earlier', 'size,color\n' + lines_of(ROWS), '--margins')
    assert all(math.isclose(a, earlier_margin(*row), abs_tol=1e-12)
               for a, row in zip(margins, ROWS, strict=True)), margins


def write_rows(folder, count=400):
    rng = random.Random(4)
    lines = ['size,color,y']
    for _ in range(count):
        size = None if rng.random() < .1 else round(rng.gauss(0, 1), 3)
        color = rng.choice(['red', 'blue', '7', '77', ''])
        margin = earlier_margin(size, color) + rng.gauss(0, .5)
        lines.append(lines_of([(size, color)]).strip() + (',yes' if margin > 0 else ',no'))
    (folder / 'data.csv').write_text('\n'.join(lines) + '\n')


@test
def a_night_after_a_model_of_earlier_ids_starts_from_zero_and_is_compared_with_it(folder):
    write_rows(folder)
    write_earlier_model(folder / 'job.state/models/1')
    (folder / 'job.state/models/current').symlink_to('1')
    job = write_job(folder, data=['data.csv'], l2=1e-3, holdout=.3, gate=['loss <= 2 * live'],
                    csv={'categories': ['color'], 'bins': 3})
    finished = dml('retrain', job, '--json')
    assert finished.status == 0, finished
    result = finished.json
    assert 'numbered texts in another way; this run starts from zero' in finished.stderr, finished
    assert result['published'] and result['run'] == 2, result
    again = dml('evaluate', folder / 'job.state/models/1', folder / 'data.csv', '--json').json
    live = result['holdout_live']
    assert live['loss'] < .5 and abs(live['loss'] - again['loss']) < .1, (live, again)
    assert not live.get('unseen_features'), live
    model = json.loads((folder / 'job.state/models/2/model.json').read_text())
    assert model['format_version'] == 5 and model['preparation']['ids'] == 2, model['preparation']


@test
def a_model_of_later_ids_is_refused(folder):
    write_codes(folder, 500, 10)
    train(write_job(folder, data=['data.csv'], l2=1e-2, csv={'categories': ['a']}))
    path = folder / 'job.state/models/1/model.json'
    model = json.loads(path.read_text())
    model['preparation']['ids'] = 3
    for name in [name for name in model if name.endswith('sha256')]:
        del model[name]
    path.write_text(json.dumps(model))
    finished = dml('predict', folder / 'job.state', folder / 'data.csv')
    assert finished.status == BAD_DATA and 'use the program that wrote it' in finished.stderr


sys.exit(main())
