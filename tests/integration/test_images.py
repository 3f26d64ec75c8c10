#!/usr/bin/env python3
"""Arrays as data: IDX and .npy files, with labels in files of their own."""

import gzip
import os
import random
import struct
import sys

from harness import (BAD_DATA, CONFIG, COORDINATOR, Skip, USAGE, dml, main, read_safetensors, run,
                     shared, test, train, write_job)

HIGH, WIDE = 6, 5
CLOSE = {'l2': 1e-3, 'gradient_tolerance': 1e-7}


def made_images(rows, seed=1):
    """Images of bytes, of which many are 0, and the digit of each: 0, 1 or 2."""
    rng = random.Random(seed)
    images, digits = [], []
    for _ in range(rows):
        digit = rng.randrange(3)
        lit = [(j * 7 + digit * 3) % 9 < 4 for j in range(HIGH * WIDE)]
        images.append([min(255, max(0, int(rng.gauss(120 if on else 40, 70)))) for on in lit])
        digits.append(digit)
    return images, digits


def idx(cells, *dimensions):
    return struct.pack(f'>HBB{len(dimensions)}I', 0, 8, len(dimensions), *dimensions) + bytes(cells)


def npy(kind, letter, values, shape):
    header = repr({'descr': kind, 'fortran_order': False, 'shape': shape}).encode() + b'\n'
    return (b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header +
            struct.pack(f'<{len(values)}{letter}', *values))


def flat(images):
    return [cell for image in images for cell in image]


def write_images(folder, name, rows, seed=1):
    """The same rows in every format: NAME.idx.gz, NAME.npy, NAME.csv; labels NAME.digits."""
    images, digits = made_images(rows, seed)
    (folder / f'{name}.idx.gz').write_bytes(
        gzip.compress(idx(flat(images), rows, HIGH, WIDE)))
    (folder / f'{name}.npy').write_bytes(
        npy('<f4', 'f', flat(images), (rows, HIGH * WIDE)))
    (folder / f'{name}.digits').write_bytes(idx(digits, rows))
    (folder / f'{name}.digits.npy').write_bytes(npy('<i8', 'q', digits, (rows,)))
    (folder / f'{name}.csv').write_text(
        ''.join(','.join(map(str, row + [digit])) + '\n' for row, digit in zip(images, digits)))


def tensors(folder, name):
    model = read_safetensors(folder / f'{name}.state/models/1/model.safetensors')
    return {key: value for key, value in model.items()}


def assert_same_model(folder, one, other):
    a, b = tensors(folder, one), tensors(folder, other)
    assert a.keys() == b.keys() and all(a[key] == b[key] for key in a), (one, other)


@test
def arrays_give_the_model_of_the_same_csv_to_the_bit(folder):
    write_images(folder, 'some', 700)
    for objective, more in (('softmax', {}), ('squared', {'replicas': 2, 'threads': 2}),
                            ('softmax', {'l1': 1e-3, 'standardise': True})):
        settings = {'objective': objective, **CLOSE, **more}
        text = train(write_job(folder, f'csv-{objective}-{len(more)}', data=['some.csv'], **settings))
        for data, labels in (('some.idx.gz', 'some.digits'), ('some.npy', 'some.digits.npy')):
            name = f'{data}-{objective}-{len(more)}'
            result = train(write_job(folder, name, data=[data], labels=[labels], **settings))
            assert_same_model(folder, name, f'csv-{objective}-{len(more)}')
            assert (result['loss'], result['evaluations']) == (text['loss'], text['evaluations'])


@test
def pack_and_inspect_say_what_type_values_have(folder):
    write_images(folder, 'some', 50)
    for data, name in (('some.idx.gz', 'bytes'), ('some.npy', 'float')):
        job = write_job(folder, name, data=[data], labels=['some.digits'], objective='softmax')
        packed = dml('pack', job, '--json').json
        assert packed['value_type'] == name, packed
        pack, = (folder / f'{name}.state/packs').glob('*.pack')
        shown = dml('inspect', pack, '--json').json
        assert (shown['value_type'], shown['format']) == (name, data[5:8]), shown
        assert shown['labels_hash'], shown
    for name, value in ('ones', '1'), ('float', '0.5'), ('double', '0.123'):
        (folder / f'{name}.libsvm').write_text(
            ''.join(f'{i % 2} {i}:{value}\n' for i in range(1, 30)))
        job = write_job(folder, name, data=[f'{name}.libsvm'])
        packed = dml('pack', job, '--json').json
        assert packed['value_type'] == name, packed


@test
def every_file_has_its_labels_in_order(folder):
    for name, seed in (('a', 1), ('b', 2), ('held', 3), ('tested', 4)):
        write_images(folder, name, 300, seed)
    beside = {'labels': ['a.digits', 'b.digits.npy'], 'holdout_labels': ['held.digits'],
              'test_labels': ['tested.digits.npy']}
    arrays = train(write_job(folder, 'arrays', data=['a.idx.gz', 'b.idx.gz'], holdout=['held.idx.gz'],
                             test=['tested.idx.gz'], objective='softmax', **CLOSE, **beside))
    text = train(write_job(folder, 'text', data=['a.csv', 'b.csv'], holdout=['held.csv'],
                           test=['tested.csv'], objective='softmax', **CLOSE))
    assert_same_model(folder, 'arrays', 'text')
    for part in ('holdout', 'test'):
        for figures in arrays[part], text[part]:
            figures.pop('rows', None)  # raw rows are other bytes
        assert arrays[part] == text[part] and arrays[part]['accuracy'] > 0.6, (arrays, text)


@test
def images_are_scored_like_the_same_csv(folder):
    write_images(folder, 'some', 400)
    write_images(folder, 'other', 100, 9)
    write_job(folder, 'job', data=['some.idx.gz'], labels=['some.digits'], objective='softmax', **CLOSE)
    train(folder / 'job.conf')
    model = folder / 'job.state/models/1'
    expected = dml('predict', model, folder / 'other.csv', '--set', 'format=csv').stdout
    assert expected.count('\n') == 100
    assert dml('predict', model, folder / 'other.idx.gz').stdout == expected
    with open(folder / 'other.idx.gz') as file:
        assert run(COORDINATOR, 'predict', model, '-', stdin=file).stdout == expected
    assert dml('predict', model, '--set', 'format=npy', folder / 'other.npy').stdout == expected
    figures = dml('evaluate', '--json', model, folder / 'other.csv', '--set', 'format=csv').stdout
    labels = f'labels={folder / "other.digits"}'
    assert dml('evaluate', '--json', model, folder / 'other.idx.gz', '--set', labels).stdout == figures
    refused = dml('evaluate', model, folder / 'other.idx.gz')
    assert refused.status == BAD_DATA and 'key `labels`' in refused.stderr, refused
    refused = dml('evaluate', model, folder / 'other.idx.gz', folder / 'other.idx.gz', '--set', labels)
    assert refused.status == USAGE and '1 file of labels for 2 files of data' in refused.stderr, refused


@test
def a_network_sees_bytes_as_0_to_1(folder):
    for name, rows, seed in (('some', 300, 1), ('held', 100, 2)):
        write_images(folder, name, rows, seed)
        images, digits = made_images(rows, seed)
        (folder / f'{name}.scaled').write_text(
            ''.join(','.join(repr(cell / 255) for cell in image) + f',{digit}\n'
                    for image, digit in zip(images, digits)))
    settings = {'objective': 'network', 'network': {'layers': [4]}, 'max_steps': 4}
    bytes_ = train(write_job(folder, 'bytes', data=['some.idx.gz'], labels=['some.digits'],
                             holdout=['held.idx.gz'], holdout_labels=['held.digits'], **settings))
    scaled = train(write_job(folder, 'scaled', data=['some.scaled'], holdout=['held.scaled'],
                             **settings))
    for a, b in ((bytes_['loss'], scaled['loss']),
                 (bytes_['holdout']['loss'], scaled['holdout']['loss'])):
        assert abs(a / b - 1) < 1e-6, (bytes_, scaled)


@test
def images_of_another_size_are_not_scored(folder):
    write_images(folder, 'some', 200)
    train(write_job(folder, data=['some.idx.gz'], labels=['some.digits'], objective='softmax', **CLOSE))
    (folder / 'small').write_bytes(idx([1, 2, 3], 1, 3))
    refused = dml('predict', folder / 'job.state/models/1', folder / 'small')
    assert refused.status == BAD_DATA and '3 numbers, and 30 are trained on' in refused.stderr, refused
    train(write_job(folder, 'text', data=['some.csv'], objective='softmax', **CLOSE))
    refused = dml('predict', folder / 'text.state/models/1', folder / 'some.idx.gz', '--set',
                  'format=idx')
    assert refused.status == BAD_DATA and 'no columns with names' in refused.stderr, refused


@test
def a_stream_of_images_is_trained_on(folder):
    write_images(folder, 'some', 300)
    settings = {'labels': ['some.digits'], 'objective': 'softmax', **CLOSE}
    train(write_job(folder, 'file', data=['some.idx.gz'], **settings))
    job = write_job(folder, 'stream', data=['-'], **settings)
    with open(folder / 'some.idx.gz') as file:
        finished = run(COORDINATOR, 'run', job, stdin=file)
    assert finished.status == 0, finished
    assert_same_model(folder, 'stream', 'file')


@test
def rows_have_weights_beside_their_labels(folder):
    write_images(folder, 'some', 300)
    (folder / 'weights').write_text('2\n' * 100 + '0\n' * 50 + '1\n' * 150)
    settings = {'weights': ['weights'], 'objective': 'softmax', **CLOSE}
    train(write_job(folder, 'text', data=['some.csv'], **settings))
    train(write_job(folder, 'array', data=['some.npy'], labels=['some.digits'], **settings))
    assert_same_model(folder, 'array', 'text')


@test
def changed_labels_train_anew(folder):
    write_images(folder, 'some', 200)
    job = write_job(folder, data=['some.idx.gz'], labels=['some.digits'], objective='softmax', **CLOSE)
    first = train(job)
    _, digits = made_images(200)
    (folder / 'some.digits').write_bytes(idx([(d + 1) % 3 for d in digits], 200))
    assert train(job)['model_sha256'] != first['model_sha256']


@test
def what_is_wrong_with_arrays_is_named(folder):
    write_images(folder, 'some', 50)
    write_images(folder, 'few', 20)
    (folder / 'cut').write_bytes(gzip.decompress((folder / 'some.idx.gz').read_bytes())[:-1])
    (folder / 'huge').write_bytes(struct.pack('>HBB3I', 0, 8, 3, 2**32 - 1, 2**20, 16) + b'x')
    (folder / 'objects.npy').write_bytes(npy('|O', 'B', [0], (1,)))

    def refuse(status, *expected, **settings):
        finished = dml('run', write_job(folder, 'bad', objective='softmax', **settings))
        assert finished.status == status, finished
        for text in expected:
            assert text in finished.stderr, (text, finished)
        assert not (folder / 'bad.state/models').exists() or not any(
            (folder / 'bad.state/models').iterdir())

    some = {'data': ['some.idx.gz'], 'labels': ['some.digits']}
    refuse(BAD_DATA, 'few.digits has 20 labels', 'some.idx.gz has 50 rows',
           data=['some.idx.gz'], labels=['few.digits'])
    refuse(BAD_DATA, 'no labels in its rows', 'key `labels`', data=['some.idx.gz'])
    refuse(BAD_DATA, 'some.csv is text', 'some.digits', data=['some.csv'], labels=['some.digits'])
    refuse(BAD_DATA, 'cut is truncated', 'says 50 rows, and it has 49', data=['cut'],
           labels=['some.digits'])
    refuse(BAD_DATA, 'huge', 'labels', data=['huge'], labels=['some.digits'])
    refuse(BAD_DATA, 'never read', data=['objects.npy'], labels=['some.digits'])
    refuse(BAD_DATA, 'is not a .npy file', format='npy', **some)
    refuse(CONFIG, '`labels`', '1 file of labels for 2 files of `data`',
           data=['some.idx.gz', 'few.idx.gz'], labels=['some.digits'])
    refuse(CONFIG, '`test_labels`', 'no `test`', test_labels=['some.digits'], **some)
    refuse(CONFIG, '`holdout_labels`', 'share', holdout=0.5, holdout_labels=['some.digits'], **some)
    refuse(CONFIG, '`csv.weight`', csv={'weight': '1'}, **some)


@test
def what_numpy_saves_is_read(folder):
    try:
        import numpy
    except ImportError:
        raise Skip('numpy is not installed') from None
    rng = numpy.random.default_rng(1)
    values = rng.normal(0, 50, (200, 3, 2))
    labels = rng.integers(0, 2, 200)
    reference = None
    for kind in ('i1', '<i2', '>i2', '<i4', '<i8', '>f4', '<f4', '<f8', '>f8'):
        array = values.astype('i1').astype(kind)
        name = f'{kind[-2:]}{kind[0] == ">"}'
        numpy.save(folder / f'{name}.npy', array)
        numpy.save(folder / 'labels.npy', labels.astype('bool' if kind == 'i1' else kind))
        train(write_job(folder, name, data=[f'{name}.npy'], labels=['labels.npy'], **CLOSE))
        reference = reference or name
        assert_same_model(folder, name, reference)


@test
def fashion_mnist_is_trained_on_as_it_is(folder):
    if not os.environ.get('DML_BY_HAND'):
        raise Skip('it takes minutes: DML_BY_HAND=1 runs it')
    files = {key: [shared(f'fashion_mnist/{name}-ubyte.gz')] for key, name in (
        ('data', 'train-images-idx3'), ('labels', 'train-labels-idx1'),
        ('test', 't10k-images-idx3'), ('test_labels', 't10k-labels-idx1'))}
    result = train(write_job(folder, objective='softmax', l2=1e-4, max_steps=100, **files), seconds=3000)
    assert (result['examples'], result['features']) == (60000, 784), result
    assert result['test']['accuracy'] > 0.83, result


sys.exit(main())
