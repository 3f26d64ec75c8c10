#!/usr/bin/env python3
"""A value means the same whatever program wrote it: texts in another spelling, hashed ones too, in the files
that a run is tested on as in those that are predicted later, and durations in another unit."""

import datetime
import importlib.util
import json
import random
import re
import sys
import warnings

from harness import SOURCE, Skip, dml, main, test, train, write_job
from row_hash import row_hash

sys.path.insert(0, str(SOURCE / 'python'))

# What programs write for the same values: a truth, a number, a moment, a code that is itself alone.
SPELLINGS = {
    'pandas': lambda row: (str(row[0]), f'{row[1]}.0', f'2024-05-{row[2]:02} 00:00:00', row[3]),
    'Arrow': lambda row: (str(row[0]).lower(), str(row[1]), f'2024-05-{row[2]:02} 00:00:00.000000', row[3]),
    'spreadsheet': lambda row: (str(row[0]).upper(), str(row[1]), f'2024-05-{row[2]:02}', row[3]),
}
NAMES = ('flag', 'number', 'day', 'code')
COLUMNS = {'categories': ['number', 'day'], 'label': 'y'}


def draw_rows(count=300, seed=1):
    rng, rows = random.Random(seed), []
    for _ in range(count):
        row = rng.random() < 0.5, rng.randrange(6), rng.randint(1, 5), f'0{rng.randrange(4)}'
        margin = 1.5 * row[0] - 0.4 * row[1] + 0.5 * row[2] - 0.5
        rows.append((row, 'yes' if rng.random() < 1 / (1 + 2.718 ** -margin) else 'no'))
    return rows


def write_as(folder, program, rows, name):
    lines = [','.join((*SPELLINGS[program](row), y)) for row, y in rows]
    (folder / name).write_text('\n'.join([','.join((*NAMES, 'y')), *lines]) + '\n')


def write_all(folder, rows, name):
    for program in SPELLINGS:
        write_as(folder, program, rows, f'{name}.{program}.csv')


@test
def hashed_texts_match_in_any_spelling(folder):
    write_all(folder, draw_rows(), 'rows')
    for columns in {}, {'hash': 6}, {'hash': 18}:
        models, printed = set(), set()
        for trained in SPELLINGS:
            result = train(write_job(folder, data=[f'rows.{trained}.csv'], csv={**COLUMNS, **columns}), '--fresh')
            models.add(result['model_sha256'])
            for program in SPELLINGS:
                said = dml('predict', result['model'], folder / f'rows.{program}.csv')
                assert said.status == 0 and 'warning' not in said.stderr, said
                printed.add(said.stdout)
        assert not columns or len(models) == 1, (columns, models)
        assert len(printed) == (1 if columns else len(models)), columns


@test
def a_run_is_tested_as_its_model_is_evaluated(folder):
    write_all(folder, draw_rows(), 'rows')
    write_all(folder, draw_rows(seed=2), 'more')
    job = {'categories': ['number', 'day'], 'label': 'y'}
    for columns in {}, {'category_least': 40}, {'hash': 10}, {'bins': 3, 'categories': ['day']}:
        for crosses in {}, {'cross': ['flag*day']}:
            for program in SPELLINGS:
                about = columns, crosses, program
                result = train(write_job(folder, data=['rows.Arrow.csv'], test=[f'more.{program}.csv'],
                                         csv={**job, **columns}, **crosses), '--fresh')
                said = dml('evaluate', result['model'], folder / f'more.{program}.csv', '--json')
                later = json.loads(said.stdout)
                for figure in 'log_loss', 'auc', 'accuracy':
                    own = result['test'][figure]
                    assert abs(own - later[figure]) <= 1e-12 * abs(own), (about, figure, own, later[figure])


@test
def held_out_rows_match_texts_in_any_spelling(folder):
    rows, held = [], []  # those that are held out are all in another spelling than those that are trained on
    for row, y in draw_rows(600):
        own, other = (','.join((*SPELLINGS[program](row), y)) for program in ('Arrow', 'pandas'))
        if row_hash(own) >= 0.4 * 2 ** 64:
            rows.append(own)
        elif row_hash(other) < 0.4 * 2 ** 64:
            held.append(other)
    head = ','.join((*NAMES, 'y'))
    (folder / 'rows.csv').write_text('\n'.join([head, *rows, *held]) + '\n')
    (folder / 'held.csv').write_text('\n'.join([head, *held]) + '\n')
    for columns in {}, {'category_least': 10}, {'hash': 10}:
        result = train(write_job(folder, data=['rows.csv'], csv={**COLUMNS, **columns}, holdout=0.4), '--fresh')
        assert result['examples'] == len(rows) and result['holdout']['examples'] == len(held), result
        later = dml('evaluate', result['model'], folder / 'held.csv', '--json').json
        assert abs(result['holdout']['log_loss'] - later['log_loss']) < 1e-12, (columns, result['holdout'], later)


@test
def a_live_model_is_compared_on_rows_in_another_spelling(folder):
    write_all(folder, draw_rows(), 'rows')
    write_all(folder, draw_rows(seed=2), 'more')
    settings = {'csv': COLUMNS, 'gate': ['log_loss <= live + 0.001']}
    for program in SPELLINGS:
        job = write_job(folder, data=[f'rows.{program}.csv'], holdout=[f'more.{program}.csv'], **settings)
        said = dml('retrain', job, '--json')
        assert said.status == 0, said
        live = re.search(r'live (0\.\d+)\)', said.stderr)
        assert abs(float(live[1]) - log_loss) < 1e-4 if live else program == 'pandas', (program, log_loss, said)
        log_loss = said.json['holdout']['log_loss']


def durations(pyarrow, rows, unit):
    per_second = {'s': 1, 'ms': 10 ** 3, 'us': 10 ** 6, 'ns': 10 ** 9}[unit]
    return pyarrow.table({'wait': pyarrow.array([seconds * per_second for seconds, _ in rows], pyarrow.duration(unit)),
                          'y': [label for _, label in rows]})


@test
def durations_are_counted_in_the_unit_of_training(folder):
    if not all(map(importlib.util.find_spec, ('pyarrow', 'pandas'))):
        raise Skip('pyarrow and pandas, which write the files, are not installed')
    import pandas
    import pyarrow
    import pyarrow.parquet
    import dml as library
    rng = random.Random(1)
    rows = [(seconds, 3.0 + 0.25 * seconds) for seconds in (rng.randrange(100) for _ in range(60))]
    tables = {unit: durations(pyarrow, rows, unit) for unit in ('s', 'ms', 'us', 'ns')}
    for unit, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f'{unit}.parquet')
    for unit in tables:
        result = train(write_job(folder, data=[f'{unit}.parquet'], test=['ms.parquet'], objective='squared',
                                 l2=0, csv={'label': 'y'}), '--fresh')
        assert result['test']['rmse'] < 1e-4, (unit, result['test'])
        expected = [y for _, y in rows]
        for other in tables:
            said = dml('predict', result['model'], folder / f'{other}.parquet')
            assert said.status == 0, said
            assert all(abs(float(a) - b) < 1e-3 for a, b in zip(said.stdout.split(), expected)), (unit, other)
        with library.open(result['model']) as model, warnings.catch_warnings():
            warnings.simplefilter('error')
            spans = [datetime.timedelta(seconds=seconds) for seconds, _ in rows]
            for form in (*tables.values(), pandas.DataFrame({'wait': spans}), [{'wait': span} for span in spans],
                         *(table.to_pandas() for table in tables.values())):
                found = model.predict_values(form)
                assert all(abs(a - b) < 1e-3 for a, b in zip(found, expected)), (unit, type(form))
    # Files of one run may have several units, too.
    mixed = train(write_job(folder, data=['s.parquet', 'ns.parquet'], objective='squared', l2=0,
                            csv={'label': 'y'}), '--fresh')
    assert mixed['loss'] < 1e-6, mixed


if __name__ == '__main__':
    sys.exit(main())
