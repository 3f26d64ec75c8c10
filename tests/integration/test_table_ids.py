#!/usr/bin/env python3
"""Features of tables by their ids: codes that look alike, and many bins."""

import json
import random
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


sys.exit(main())
