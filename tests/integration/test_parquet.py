#!/usr/bin/env python3
"""Parquet as data: the model is that of the CSV of the same table, wherever tables are read. The
files were made by pyarrow: tests/unit/parquet/fixtures.py."""

import importlib.util
import json
import random
import re
import shutil
import sys

from harness import BAD_DATA, IO, SOURCE, Skip, dml, main, test, train, write_job

FILES = SOURCE / 'tests/unit/parquet'
TABLE = {'label': 'y', 'dates': ['day', 'stamp']}
KINDS = {'csv': 'table.csv', 'parquet': 'dictionary.parquet'}


def prepare(folder):
    for kind, name in KINDS.items():
        shutil.copy(FILES / name, folder / f'data.{kind}')


@test
def the_model_is_that_of_the_csv_and_each_reads_the_other(folder):
    prepare(folder)
    models = [train(write_job(folder, name=kind, data=[f'data.{kind}'], format=kind, csv=TABLE,
                              l2=1e-3)) for kind in KINDS]
    assert models[0]['model_sha256'] == models[1]['model_sha256'], models
    columns = ('--columns', 'kind,price,stamp,label,probability')
    found = [dml('predict', folder / f'{model}.state', folder / f'data.{kind}', *columns).stdout
             for model in KINDS for kind in KINDS]
    assert found.count(found[0]) == 4 and found[0].count('\n') == 40, found
    with open(folder / 'data.parquet') as file:
        piped = dml('predict', folder / 'csv.state', '-', *columns, stdin=file)
    assert piped.stdout == found[0], piped
    with open(folder / 'data.parquet') as file:
        lost = dml('predict', folder / 'csv.state', '-', stdin=file, TMPDIR=str(folder / 'none'))
    assert lost.status == IO and f"in {folder / 'none'}; TMPDIR names" in lost.stderr, lost
    figures = [json.loads(dml('evaluate', folder / 'csv.state', folder / f'data.{kind}', '--json').stdout)
               for kind in KINDS]
    assert figures[0]['loss'] == figures[1]['loss'], figures


@test
def init_says_of_a_table_what_it_says_of_its_csv(folder):
    prepare(folder)
    said = [dml('init', '-o', '-', folder / f'data.{kind}', '--set', 'csv.label=y') for kind in KINDS]
    assert said[0].status == said[1].status == 0, said
    assert said[0].stdout.replace('data.csv', 'data.parquet') == said[1].stdout, said


@test
def what_is_not_read_is_refused_by_name(folder):
    for name, why in {'brotli': 'compressed by brotli', 'nested': 'it is nested'}.items():
        shutil.copy(FILES / f'{name}.parquet', folder)
        job = write_job(folder, name=name, data=[f'{name}.parquet'], csv={'label': 'y'})
        for command in 'run', 'check':
            ended = dml(command, job)
            assert ended.status == BAD_DATA, ended
            assert f'{name}.parquet: column "' in ended.stderr and why in ended.stderr, ended


@test
def amounts_in_columns_of_texts_are_numbers_as_in_csv(folder):
    """As a feature, a label and a weight, with values of a dictionary and without, and where some are missing."""
    if not importlib.util.find_spec('pyarrow'):
        raise Skip('pyarrow, which writes the files, is not installed')
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet
    rng = random.Random(1)
    prices = [rng.randrange(100, 5000000) / 100 for _ in range(80)]
    columns = {
        'price': [None if i % 9 == 8 else f'${price:,.2f}' for i, price in enumerate(prices)],
        'rise': [rng.choice(['12%', '-3.5%', '(4%)', '\u22127%', '0']) for _ in prices],
        'weight': [rng.choice(['1 EUR', '2 EUR']) for _ in prices],
        'value': [f'{3 * price + rng.random():,.2f} €' for price in prices],
    }
    table = pyarrow.table(columns)
    pyarrow.csv.write_csv(table, folder / 'rows.csv')
    for name, coded in ('coded', True), ('plain', False):
        pyarrow.parquet.write_table(table, folder / f'{name}.parquet', use_dictionary=coded, row_group_size=30)
    csv = {'label': 'value', 'weight': 'weight', 'amounts': list(columns)}
    found = set()
    for file in 'rows.csv', 'coded.parquet', 'plain.parquet':
        job = write_job(folder, data=[file], test=['coded.parquet'], objective='squared', csv=csv)
        result = train(job, '--fresh')
        assert result['features'] == 3 and result['test']['r2'] > 0.5, result
        printed = [dml('predict', result['model'], folder / other) for other in ('rows.csv', 'plain.parquet')]
        assert all(said.status == 0 for said in printed), printed
        found |= {(result['model_sha256'], said.stdout) for said in printed}
        proposed = dml('init', folder / file, '--set', 'csv.label=value', '-o', '-').stdout
        assert re.search('amounts *= .*"price", "rise", .*"value"', proposed), proposed
    assert len(found) == 1, found


if __name__ == '__main__':
    sys.exit(main())
