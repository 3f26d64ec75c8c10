#!/usr/bin/env python3
"""What a run tells of the layers of a network: shapes, and the norms of weights and gradients."""

import math
import random
import sys

from harness import dml, main, read_safetensors, small_job, test, train, write_job

FEATURES, ROWS = 4, 150


def rings(folder):
    """Rows of two classes, by their distance from a point that is not 0; all values are there."""
    rng = random.Random(3)
    rows = [[round(rng.gauss(2, 1), 3) for _ in range(FEATURES)] for _ in range(ROWS)]
    path = folder / 'rings.csv'
    with open(path, 'w') as file:
        file.write(','.join(['far', *'abcd']) + '\n')
        for row in rows:
            far = sum((value - 2) ** 2 for value in row) > 3
            file.write(','.join([str(int(far)), *map(str, row)]) + '\n')
    return path, rows


def ring_job(folder, **settings):
    path, rows = rings(folder)
    return write_job(folder, **{'data': [path.name], 'csv': {'label': 'far'}, 'l2': 1e-3,
                                'objective': 'network', 'max_steps': 10, 'shards': 1,
                                'network': {'layers': [6, 3], 'loss': 'logistic'},
                                'early_stopping': 'off', **settings}), rows


def norm(values):
    return math.sqrt(math.fsum(value * value for value in values))


@test
def norms_are_those_of_the_model_with_the_input_centred(folder):
    job, rows = ring_job(folder)
    result = train(job)
    told = {tensor['name']: tensor for tensor in result['tensors']}
    arrays = read_safetensors(folder / 'job.state/models/1/model.safetensors')
    assert list(told) == ['W1', 'W2', 'W3', 'b1', 'b2', 'b3'], told
    assert (told['W1']['rows'], told['W1']['columns']) == (FEATURES, 6), told
    assert (told['b2']['rows'], told['b2']['columns']) == (1, 3), told
    means = [math.fsum(column) / ROWS for column in zip(*rows)]
    weights, b1 = arrays['W1'][1], arrays['b1'][1]
    centred = [b + math.fsum(mean * weights[j * 6 + k] for j, mean in enumerate(means))
               for k, b in enumerate(b1)]
    assert abs(norm(centred) - norm(b1)) > 1e-3, 'the means are not 0'
    for name, tensor in told.items():
        expected = norm(centred if name == 'b1' else arrays[name][1])
        assert abs(tensor['norm'] - expected) <= 1e-9 * expected, (tensor, expected)
    whole = norm(tensor['gradient_norm'] for tensor in told.values())
    assert 0 < result['gradient_max'] <= whole <= 10 * result['gradient_max'], (result, whole)


@test
def norms_are_the_same_on_any_workers_and_after_a_resumption(folder):
    job, _ = ring_job(folder)
    tensors = train(job)['tensors']
    for number, (shards, replicas) in enumerate([(2, 1), (3, 2)]):
        other = train(job, '--state', folder / f'{number}.state', '--set', f'shards={shards}',
                      '--set', f'replicas={replicas}')
        assert other['tensors'] == tensors, other
    train(job, '--state', folder / 'part.state', '--set', 'max_steps=4')
    assert train(job, '--state', folder / 'part.state')['tensors'] == tensors


@test
def a_run_that_has_ended_still_shows_its_layers(folder):
    job, _ = ring_job(folder)
    result = train(job)
    assert dml('status', job, '--json').json['tensors'] == result['tensors']
    shown = dml('status', job).stdout
    line = next(line for line in shown.splitlines() if line.startswith('W1 '))
    assert line.split()[1:4] == ['4', 'x', '6'], shown
    assert line.split()[4] == f'{result["tensors"][0]["norm"]:.4g}', shown
    page = dml('report', job)
    assert page.status == 0 and '"gradient_norm"' in (page.stdout or ''), page


@test
def a_linear_model_has_no_layers(folder):
    job = small_job(folder, max_steps=3)
    assert train(job)['tensors'] == []
    assert 'tensor' not in dml('status', job).stdout


@test
def accuracy_on_the_holdout_is_that_of_the_network(folder):
    job, _ = ring_job(folder, holdout=['0.3'], early_stopping=5, max_steps=40)
    result = train(job)
    best = result['early_stopping']
    assert best['holdout_accuracy'] == result['holdout']['accuracy'], result
    assert 0.5 < best['holdout_accuracy'] <= 1, result


if __name__ == '__main__':
    sys.exit(main())
