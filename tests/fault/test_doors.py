#!/usr/bin/env python3
"""Tables drawn at random over the types of their columns, each written as CSV, JSON Lines and Parquet, and
given to Python as a DataFrame of pandas and as a table of Arrow and polars. Whatever the door, one model
comes of a table, to the bit, and one prediction for each row; or each door refuses it, and says why.

`test_doors.py --seed N` repeats the table with that seed. DML_FAULTS=all draws more; a number draws as many.
"""

import datetime
import decimal
import importlib.util
import json
import os
import random
import shutil
import sys
import warnings

from faults import ALL, say, seed_of_arguments
from harness import BAD_DATA, CONFIG, SOURCE, Skip, dml as program, main, test, write_job

sys.path.insert(0, str(SOURCE / 'python'))

import dml  # noqa: E402
from dml._rows import shortest, text_of_number  # noqa: E402

SEED = seed_of_arguments()
COUNT = os.environ.get('DML_FAULTS', '')
TABLES = int(COUNT) if COUNT.isdigit() else 300 if ALL else 5
ZONES = ['UTC', '+02:00', '-03:30', 'America/New_York', 'Asia/Kolkata']


def one_of(*values):
    return lambda rng: rng.choice(values)


def integers(bits, signed=True):
    def draw(rng):
        most = 1 << (bits - signed)
        return rng.choice([0, 1, 7, most - 1, -most if signed else 3, rng.randrange(100), rng.randrange(most)])
    return draw


def real(rng):
    return rng.choice([0.0, -0.0, 1.0, 0.1, 1e10, 1e16, -2.5, 1e-7, 123456789.125, 1.5e300, 5e-324, rng.gauss(0, 1),
                       round(rng.gauss(0, 9), 2), float(rng.randrange(1000))])


def modest(rng):
    return rng.choice([0.0, -0.0, 1.0, 0.1, 1e10, -2.5, 1e-7, 16777217.0, rng.gauss(0, 1), round(rng.gauss(0, 9), 2)])


def moment(rng):
    return datetime.datetime(2024, rng.randint(1, 12), rng.randint(1, 28), rng.randrange(24),
                             rng.choice([0, 30]), rng.choice([0, 0, 7]))


def exact_decimal(rng):
    return decimal.Decimal(rng.choice([0, 150, -5, 100, rng.randrange(10 ** 6)])).scaleb(-2)


def text(letters, least=1, most=6):
    return lambda rng: ''.join(rng.choice(letters) for _ in range(rng.randint(least, most)))


# What a column's cells are, and the type of Arrow that has them.
def kinds(pyarrow):
    few = lambda draw: (lambda rng, seen={}: rng.choice(seen.setdefault(id(rng), [draw(rng) for _ in range(4)])))  # noqa
    return {
        'truth': (one_of(True, False), pyarrow.bool_()),
        'int8': (integers(8), pyarrow.int8()), 'int64': (integers(64), pyarrow.int64()),
        'uint16': (integers(16, False), pyarrow.uint16()), 'uint64': (integers(64, False), pyarrow.uint64()),
        'float': (modest, pyarrow.float32()), 'double': (real, pyarrow.float64()),
        'decimal': (exact_decimal, pyarrow.decimal128(12, 2)),
        'wide decimal': (exact_decimal, pyarrow.decimal128(38, 2)),
        'date': (lambda rng: moment(rng).date(), pyarrow.date32()),
        'stamp s': (moment, pyarrow.timestamp('s')), 'stamp ms': (moment, pyarrow.timestamp('ms')),
        'stamp us': (moment, pyarrow.timestamp('us')), 'stamp ns': (moment, pyarrow.timestamp('ns')),
        **{f'stamp of {zone}': (moment, pyarrow.timestamp('us', zone)) for zone in ZONES},
        'time': (lambda rng: moment(rng).time(), pyarrow.time64('us')),
        'duration': (lambda rng: datetime.timedelta(seconds=rng.randrange(10 ** 6)), pyarrow.duration('us')),
        'duration ns': (lambda rng: datetime.timedelta(seconds=rng.randrange(10 ** 6)), pyarrow.duration('ns')),
        'text': (few(text('abc')), pyarrow.string()), 'long text': (few(text('abc xyz', 3, 90)), pyarrow.large_string()),
        'unicode': (few(text('äß€𝄞ا\u200b\u00a0é')), pyarrow.string()),
        'odd text': (few(text('a"\',;\t|#=\\ ')), pyarrow.string()),
        'lines': (few(text('ab\n"')), pyarrow.string()),
        'blanks': (few(text('a ')), pyarrow.string()),
        'like a number': (few(one_of('1', '2', '1.0', '007', '-0', '1e5', '3')), pyarrow.string()),
        'like a truth': (few(one_of('true', 'false', 'True', 'no', '1')), pyarrow.string()),
        'like a date': (few(one_of('2024-01-01', '2024-02-03', '2024-02-03 10:00:00', '12:30:00')), pyarrow.string()),
        'like nothing': (few(one_of('NA', 'null', 'nan', '', 'None', '?', 'x')), pyarrow.string()),
        'level': (few(text('abcd', 1, 2)), pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
        'constant': (one_of(7), pyarrow.int32()), 'constant text': (one_of('same'), pyarrow.string()),
        'date of ms': (lambda rng: moment(rng).date(), pyarrow.date64()),
        'time s': (lambda rng: moment(rng).time(), pyarrow.time32('s')),
        'time ms': (lambda rng: moment(rng).time().replace(microsecond=rng.choice([0, 0, 250000])), pyarrow.time32('ms')),
        'time ns': (lambda rng: moment(rng).time().replace(microsecond=rng.choice([0, 1])), pyarrow.time64('ns')),
        'stamp with parts': (lambda rng: moment(rng).replace(microsecond=rng.randrange(10 ** 6)), pyarrow.timestamp('us')),
        'old stamp': (lambda rng: datetime.datetime(1700 + rng.randrange(400), 3, 1, 12), pyarrow.timestamp('ms')),
        'few doubles': (few(real), pyarrow.float64()), 'few floats': (few(modest), pyarrow.float32()),
        'codes': (few(text('0123456789', 2, 4)), pyarrow.string()),
        'number level': (few(one_of(1, 2, 30)), pyarrow.dictionary(pyarrow.int8(), pyarrow.int64())),
        'nothing': (one_of(None), pyarrow.string()), 'nothing at all': (one_of(None), pyarrow.float64()),
    }


DATES = ('date', 'stamp')


def draw_table(rng, pyarrow):
    rows = rng.randint(12, 70)
    columns, settings = {}, {'categories': [], 'dates': [], 'numbers': []}
    of = kinds(pyarrow)
    for i in range(rng.randint(1, 6)):
        kind = rng.choice(list(of))
        draw, type_ = of[kind]
        name = rng.choice([f'c{i}', f'a column {i}', f'größe {i}', f'c{i}.x', f'C"{i}'])
        missing = rng.choice([0, 0, 0.2, 0.8])
        values = [None if rng.random() < missing else draw(rng) for _ in range(rows)]
        columns[name] = (kind, pyarrow.array(values, type_))
        if kind.startswith(DATES) and rng.random() < 0.6:
            settings['dates'].append(name)
        elif rng.random() < 0.3:
            settings['categories'].append(name)
    names = list(columns)
    both = rng.choice([(0, 1), (False, True), ('no', 'yes'), ('False', 'True'), ('01', '02'), (-1.5, 2.0)])
    labels = [both[rng.random() < 0.5] for _ in range(rows - 2)] + list(both)
    rng.shuffle(names)
    for key, value in ('bins', 4), ('trim', False), ('category_least', 3), ('hash', 6), ('missing', ['NA', 'x']):
        if rng.random() < 0.1:
            settings[key] = value
    table = pyarrow.table({name: columns[name][1] for name in names} | {'y': labels})
    return table, {key: value for key, value in settings.items() if value}, \
        {name: kind for name, (kind, _) in columns.items()}


def json_cell(value, kind, written):
    """A cell as JSON has it: numbers and truths as such, and else the text that Arrow writes."""
    if value is None:
        return 'null'
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (datetime.date, datetime.time)):
        return json.dumps(written)
    return written if isinstance(value, (int, decimal.Decimal, datetime.timedelta)) else \
        text_of_number(value) if kind == 'double' else written


def write_table(folder, rng, table, of):
    """CSV, Parquet and JSON Lines of a table; answers the names."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
    pyarrow.csv.write_csv(table, folder / 'table.csv')
    pyarrow.parquet.write_table(
        table, folder / 'table.parquet', compression=rng.choice(['none', 'snappy', 'zstd', 'gzip']),
        use_dictionary=rng.choice([True, False]), data_page_version=rng.choice(['1.0', '2.0']),
        row_group_size=rng.choice([5, 1000]))
    written = [[text.as_py() for text in texts_of(column, pyarrow)] for column in table.columns]
    lines = []
    for i, row in enumerate(zip(*[column.to_pylist() for column in table.columns])):
        cells = [(name, json_cell(value, of.get(name), written[k][i]))
                 for k, (name, value) in enumerate(zip(table.column_names, row))]
        lines.append('{' + ', '.join(f'{json.dumps(name, ensure_ascii=False)}: {cell}' for name, cell in cells
                                     if not i or cell != 'null' or rng.random() < 0.5) + '}\n')
    (folder / 'table.jsonl').write_text(''.join(lines))
    return ['table.csv', 'table.parquet', 'table.jsonl']


def texts_of(column, pyarrow):
    """What write_csv() of Arrow writes for each cell."""
    import io
    out = io.BytesIO()
    if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
        return column
    pyarrow.csv.write_csv(pyarrow.table({'c': column}), out)
    lines = out.getvalue().decode().splitlines()[1:]
    return pyarrow.array([line.strip('"') if line else None for line in lines])


def forms_for_python(table):
    yield 'pandas', table.to_pandas(integer_object_nulls=True)  # else integers become numbers of 53 bits
    yield 'Arrow', table
    yield 'pandas of Arrow', table.to_pandas(types_mapper=importlib.import_module('pandas').ArrowDtype)
    single = [str(field.type) == 'float' for field in table.schema]  # which Python's own numbers are not
    yield 'dicts', [{name: shortest(value) if one and value is not None else value
                     for (name, value), one in zip(row.items(), single)} for row in table.to_pylist()]
    if importlib.util.find_spec('polars'):
        polars = importlib.import_module('polars')
        try:
            frame = polars.from_arrow(table)
        except Exception:  # polars has no decimals of such a width
            return
        yield 'polars', frame


def one_table(folder, seed, pyarrow):
    rng = random.Random(seed)
    table, csv, of = draw_table(rng, pyarrow)
    files = write_table(folder, rng, table, of)
    results, more = {}, {'cross': ['pairs']} if rng.random() < 0.15 else {}
    for file in files:
        job = write_job(folder, file, data=[file], max_steps=3, csv={'label': 'y', **csv}, **more)
        results[file] = program('run', job, '--json', '--publish')
        assert results[file].status in (0, BAD_DATA, CONFIG), results[file]
    about = '\n'.join([f'columns {of}, {csv}', *(f'{file}: {r.status} {r.stderr[-300:]}' for file, r in results.items())])
    assert len({result.status for result in results.values()}) == 1, about
    if results[files[0]].status:
        assert all(result.stderr.strip() for result in results.values()), about
        return False
    hashes = {file: result.json['model_sha256'] for file, result in results.items()}
    assert len(set(hashes.values())) == 1, f'{hashes}\n{about}'
    state = folder / 'table.csv.state'
    printed = {file: program('predict', state, folder / file) for file in files}
    assert len({(one.status, one.stdout) for one in printed.values()}) == 1, \
        f'{about}\n' + '\n'.join(f'{one.status} {one.stdout[:200]} {one.stderr[-300:]}' for one in printed.values())
    assert printed[files[0]].status == 0, printed[files[0]]
    expected = [float(line) for line in printed[files[0]].stdout.splitlines()]
    labels = program('predict', state, folder / files[0], '--labels').stdout.splitlines()
    with dml.open(state) as model, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for name, rows in forms_for_python(table):
            found = list(model.predict_values(rows))
            other = [(i, a, b) for i, (a, b) in enumerate(zip(found, expected)) if a != b]
            assert found == expected, f'{name}: {other[:3]}, {model.unseen}\n{about}'
            if model.describe()['labels']:
                assert list(model.predict(rows)) == labels, f'{name}: other labels\n{about}'
    return True


@test
def whatever_the_door_a_table_gives_one_model_and_one_prediction(folder):
    if not all(map(importlib.util.find_spec, ('pyarrow', 'pandas'))):
        raise Skip('pyarrow and pandas, which write the files, are not installed')
    import pyarrow
    base = random.SystemRandom().randrange(10 ** 6) * 1000
    seeds = [SEED] if SEED is not None else range(base, base + TABLES)
    say(f'seeds {seeds[0]} to {seeds[-1]}')
    failed, trained = [], 0
    for seed in seeds:
        (folder / str(seed)).mkdir()
        try:
            trained += one_table(folder / str(seed), seed, pyarrow)
        except Exception as error:
            failed.append(seed)
            for line in f'seed {seed} failed; repeat it with --seed {seed}: {type(error).__name__} {error}'.splitlines():
                say(line)
        shutil.rmtree(folder / str(seed))
    say(f'{trained} of {len(seeds)} tables were trained on, and the others refused by each door')
    assert not failed, f'seeds {failed}'


if __name__ == '__main__':
    sys.exit(main())
