#!/usr/bin/env python3
"""Parquet files by pyarrow.

    tests/unit/parquet/fixtures.py check   every type, encoding, codec and page version, with nulls and
                                           without: the model of each file must be that of its CSV, to
                                           the bit
    tests/unit/parquet/fixtures.py write   writes the files of this folder anew
"""

import datetime
import decimal
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

BUILD = pathlib.Path(os.environ.get('DML_BUILD', 'build'))
HERE = pathlib.Path(__file__).resolve().parent
DATES = 'dates = {"day", "stamp"}'


def columns(rows, rng):
    """Name: (values, type, encodings besides the usual ones)."""
    start = datetime.datetime(2020, 1, 1)
    stamps = [start + datetime.timedelta(seconds=int(s), microseconds=int(u))
              for s, u in zip(rng.integers(0, 10**8, rows), rng.integers(0, 10**6, rows))]
    days = [datetime.date(1890, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 70000, rows)]
    integer = ['DELTA_BINARY_PACKED', 'BYTE_STREAM_SPLIT']
    text = ['DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY']
    split = ['BYTE_STREAM_SPLIT']
    return {
        'double': (rng.normal(size=rows).tolist(), pa.float64(), split),
        'cents': (rng.normal(size=rows).round(2).tolist(), pa.float64(), split),
        'float': (rng.normal(size=rows).astype('f4').tolist(), pa.float32(), split),
        'wide': ((10.0 ** rng.uniform(-30, 30, rows)).astype('f4').tolist(), pa.float32(), split),
        'half': (list(rng.normal(size=rows).astype('f2')), pa.float16(), split),
        'int8': (rng.integers(-99, 99, rows).tolist(), pa.int8(), integer),
        'int32': (rng.integers(-2**31, 2**31, rows).tolist(), pa.int32(), integer),
        'uint32': (rng.integers(0, 2**32, rows).tolist(), pa.uint32(), integer),
        'int64': (rng.integers(-2**62, 2**62, rows).tolist(), pa.int64(), integer),
        'uint64': ([int(x) << 1 for x in rng.integers(0, 2**62, rows)], pa.uint64(), integer),
        'truth': ((rng.random(rows) < 0.4).tolist(), pa.bool_(), ['RLE']),
        'kind': ([f'kind "{x}", or other' for x in rng.integers(0, 9, rows)], pa.string(), text),
        'code': ([f'{x:03d}' for x in rng.integers(0, 20, rows)], pa.string(), text),
        'fixed': ([b'%02d' % x for x in rng.integers(10, 20, rows)], pa.binary(2), ['DELTA_BYTE_ARRAY']),
        'day': (days, pa.date32(), integer),
        'stamp': (stamps, pa.timestamp('us'), integer),
        'price': ([decimal.Decimal(int(x)).scaleb(-2) for x in rng.integers(-10**6, 10**6, rows)],
                  pa.decimal128(9, 2), ['DELTA_BYTE_ARRAY', 'BYTE_STREAM_SPLIT']),
        'sum': ([decimal.Decimal(int(x) * 10**8 + 7).scaleb(-10) for x in rng.integers(-10**15, 10**15, rows)],
                pa.decimal128(30, 10), ['DELTA_BYTE_ARRAY']),
    }


def table(rows, nulls, seed=1):
    """Columns of all types, and labels that depend on some."""
    rng = np.random.default_rng(seed)
    made = columns(rows, rng)
    arrays = {name: pa.array([None if rng.random() < nulls else v for v in values], kind)
              for name, (values, kind, _) in made.items()}
    margin = np.array(made['double'][0]) + np.array(made['int8'][0]) / 50
    arrays['y'] = pa.array((margin + rng.normal(size=rows) > 0).astype(int))
    return pa.table(arrays), {name: encodings for name, (_, _, encodings) in made.items()}


def layouts(encodings):
    """Names and options of write_table() that together have every encoding."""
    yield 'dictionary', {}
    yield 'plain', {'use_dictionary': False}
    for i in range(2):
        some = {name: each[i % len(each)] for name, each in encodings.items()}
        yield f'encoded{i}', {'use_dictionary': False, 'column_encoding': some}


def model_hash(folder, data, keys=DATES):
    job = folder / 'job.conf'
    state = folder / (data.name + '.state')
    job.write_text(f'name = t\ndata = {{ "{data}" }}\nobjective = logistic\nl2 = 1e-3\n'
                   f'csv {{ label = "y" {keys} }}\n')
    subprocess.run([BUILD / 'dml-coordinator', 'run', job, '--state', state, '-q'], check=True,
                   stdout=subprocess.DEVNULL)
    return hashlib.sha256((state / 'models/1/model.safetensors').read_bytes()).hexdigest()


def check():
    tried = wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for nulls in (0, 0.2):
            made, encodings = table(700, nulls)
            csv = folder / f'nulls{nulls}.csv'
            pa.csv.write_csv(made, csv)
            expected = model_hash(folder, csv)
            for (layout, options), codec, version in itertools.product(
                    layouts(encodings), ('none', 'snappy', 'gzip', 'zstd', 'lz4'), ('1.0', '2.0')):
                file = folder / f'{layout}-{codec}-{version}-{nulls}.parquet'
                pq.write_table(made, file, compression=codec, data_page_version=version, row_group_size=300,
                               data_page_size=900, write_page_checksum=codec == 'gzip', **options)
                tried += 1
                if model_hash(folder, file) != expected:
                    wrong += 1
                    print(f'{file.name}: another model')
    print(f'{tried} files, {wrong} of which have another model than their CSV')
    return wrong > 0


def write():
    folder = HERE
    made, encodings = table(40, 0.1)
    pa.csv.write_csv(made, folder / 'table.csv')
    codecs = iter(('snappy', 'gzip', 'zstd', 'lz4'))
    for layout, options in layouts(encodings):
        codec = next(codecs)
        pq.write_table(made, folder / f'{layout}.parquet', compression=codec, row_group_size=25, data_page_size=200,
                       data_page_version='1.0' if codec in ('snappy', 'gzip') else '2.0', store_schema=False,
                       write_page_checksum=codec in ('gzip', 'zstd'), write_statistics=False, **options)
    few = made.select(['double', 'kind', 'y']).slice(0, 5)
    pq.write_table(few, folder / 'brotli.parquet', compression='brotli', store_schema=False)
    lists = few.append_column('list', pa.array([[1], [], None, [2, 3], [4]]))
    pq.write_table(lists.select(['double', 'list', 'kind', 'y']), folder / 'nested.parquet', store_schema=False)
    pa.csv.write_csv(few, folder / 'few.csv')
    index = {'id': [5, 7, 6, 9, 8], '__index_level_1__': [4, 2, 0, 1, 3]}
    indexed = pa.table({'double': few['double'], 'y': few['y'], **index}).replace_schema_metadata(
        {'pandas': json.dumps({'index_columns': ['id', '__index_level_1__', {'kind': 'range'}], 'columns': []})})
    pq.write_table(indexed, folder / 'index.parquet')
    row = {'n': pa.array([3]), 'x': pa.array([0.5]), 't': pa.array(['red']), 'z': pa.array([None], pa.int64())}
    pq.write_table(pa.table(row), folder / 'row.parquet', store_schema=False)
    with pq.ParquetWriter(folder / 'groups.parquet', few.schema, store_schema=False) as writer:
        for rows in few.slice(0, 0), few.slice(0, 2), few.slice(0, 0), few.slice(2), few.slice(0, 0):
            writer.write_table(rows)


if __name__ == '__main__':
    sys.exit({'check': check, 'write': write}[sys.argv[1] if sys.argv[1:] else 'check']())
