#!/usr/bin/env python3
"""Tables in KEY=VALUE folders: the model is that of the files with the columns written out."""

import csv
import json
import random
import re
import sys
from urllib.parse import quote

from harness import BAD_DATA, COORDINATOR, Skip, dml, main, test, write_job
from sweeps import killed

MISSING = '__HIVE_DEFAULT_PARTITION__'
LABELLED = ['--set', 'csv.label=y']


def part_rows(seed, shift, count=120):
    rng = random.Random(seed)
    for _ in range(count):
        a, b = round(rng.gauss(0, 1), 3), rng.choice(['x', 'y', 'z'])
        yield {'a': a, 'b': b, 'y': int(a + shift + 'xyz'.index(b) - 1 + rng.gauss(0, 1) > 0)}


def write_csv(path, rows, names):
    with open(path, 'w', newline='') as file:
        writer = csv.DictWriter(file, names, lineterminator='\n', extrasaction='ignore')
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path, rows, names):
    path.write_text(''.join(json.dumps({name: row[name] for name in names}) + '\n' for row in rows))


def write_parquet(path, rows, names):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Skip('pyarrow is not here')
    columns = {}
    for name in names:
        cells = [row[name] for row in rows]
        columns[name] = pyarrow.array([None if cell == '' else cell for cell in cells],
                                      pyarrow.string() if name in ('b', 'kind', 'town') else
                                      pyarrow.float64() if name == 'a' else pyarrow.int64())
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


WRITERS = {'csv': write_csv, 'jsonl': write_jsonl, 'parquet': write_parquet}

# Numbers, one missing in the first folder; texts with what paths cannot have; both as one column.
FOLDERS = [('', 'north', '1'), (7, 'a/b=c %', '2'), (11, 'ü, "q"', 'odd'), (11, '', '2'), (2024, 'north', '')]
KEYS = ['month', 'town', 'kind']


def value(cell):
    return MISSING if cell == '' else quote(str(cell), safe='')


def tree_and_parts(folder, ending, seed=0):
    """The tree's files below `folder`/tree, and the same rows with all columns in `folder`/flat, in the order
    in which the tree's are taken."""
    write, parts = WRITERS[ending], []
    for number, cells in enumerate(FOLDERS):
        given = dict(zip(KEYS, cells))
        rows = list(part_rows(seed + number, number / 3 - 1))
        path = folder / 'tree' / '/'.join(f'{key}={value(given[key])}' for key in KEYS) / f'part-0.{ending}'
        path.parent.mkdir(parents=True)
        write(path, rows, ['a', 'b', 'y'])
        parts.append((str(path), [{**row, **given} for row in rows]))
    (folder / 'flat').mkdir()
    (folder / 'tree/_SUCCESS').touch()
    for number, (_, rows) in enumerate(sorted(parts, key=lambda part: part[0].encode())):
        write(folder / f'flat/{number}.{ending}', rows, ['a', 'b', 'y', *KEYS])


def trained(folder, name, data, *settings, **keys):
    job = write_job(folder, name=name, data=data, l2=1e-2, replicas=1, shards=1, **keys)
    return dml('run', job, '--json', *LABELLED, *settings)


def folders_are_columns(folder, ending):
    tree_and_parts(folder, ending)
    tree_and_parts(folder / 'more', ending, seed=50)
    # what a column is, is found of all folders, and of flat files in the first: `kind` has numbers there
    kinds = [word for key in ('town', 'kind') for word in ('--set', f'csv.categories={key}')]
    expected = trained(folder, 'flat', ['flat/*'], *kinds, holdout=['more/flat/*'], test=['more/flat/*'])
    assert expected.status == 0, expected
    for name, data, held in (('tree', ['tree'], ['more/tree/']),
                             ('glob', [f'tree/**/*.{ending}'], ['more/**/part-*']),
                             ('stars', ['tree/month=*/*/kind=*/*'], ['more/tree/**']),
                             ('matched', ['tree/month=*'], ['more/tre?/*=*/']),
                             ('deep', ['tree/**/town=*'], ['more/tr*'])):
        ended = trained(folder, name, data, holdout=held, test=held)
        assert ended.status == 0, ended
        assert 'columns of KEY=VALUE folders are taken: month, town, kind' in ended.stderr, ended
        for figure in 'model_sha256', 'holdout', 'test':
            of = [{key: value for key, value in json.items() if key not in ('files', 'rows')}
                  if isinstance(json := one.json[figure], dict) else json for one in (ended, expected)]
            assert of[0] == of[1], (name, figure, of)
    models = folder / 'flat.state', folder / 'tree.state'
    flat = [*sorted((folder / 'more/flat').iterdir())]
    outputs = set()
    for model in models:
        for data in flat, [folder / 'more/tree']:
            ended = dml('predict', model, *data)
            assert ended.status == 0, ended
            outputs.add(ended.stdout)
    assert len(outputs) == 1 and outputs.pop().count('\n') == 600
    figures = {dml('evaluate', '--json', models[1], *data).stdout for data in (flat, [folder / 'more/tree'])}
    assert len(figures) == 1, figures
    carried = dml('predict', models[1], '--columns', 'town,month,probability', folder / 'more/tree').stdout
    again = dml('predict', models[1], '--columns', 'town,month,probability', *flat).stdout
    assert carried == again and 'a/b=c %' in carried, (carried[:200], again[:200])


@test
def folders_of_csv_are_columns(folder):
    folders_are_columns(folder, 'csv')


@test
def folders_of_json_lines_are_columns(folder):
    folders_are_columns(folder, 'jsonl')


@test
def folders_of_parquet_are_columns(folder):
    folders_are_columns(folder, 'parquet')


def files(folder, parts, names=('a', 'b', 'y')):
    """Writes CSV files of rows of their own: PATH to what their rows have besides."""
    for number, (path, given) in enumerate(parts.items()):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        rows = [{**row, **given} for row in part_rows(number, number / 2 - 0.5)]
        write_csv(folder / path, rows, [*names, *given])


def model_of(ended):
    assert ended.status == 0, ended
    return ended.json['model_sha256']


def refused(ended, *words):
    assert ended.status == BAD_DATA and all(word in ended.stderr for word in words), ended


@test
def files_that_lack_a_folder_are_refused_or_have_it_missing(folder):
    files(folder, {'t/a.csv': {}, 't/run=1/b.csv': {}, 't/run=2/c.csv': {}})
    files(folder, {'f/0.csv': {}, 'f/1.csv': {'run': 1}, 'f/2.csv': {'run': 2}})
    refused(trained(folder, 'refused', ['t']), 't/a.csv is in no folder run=VALUE', 't/run=1/b.csv', 'csv.folders = none')
    ended = trained(folder, 'missing', ['t'], missing_columns='missing')
    assert model_of(ended) == model_of(trained(folder, 'flat', ['f/*']))
    ended = trained(folder, 'none', ['t'], '--set', 'csv.folders=none')
    assert model_of(ended) == model_of(trained(folder, 'skip', ['f/*'], '--set', 'csv.skip=run'))
    files(folder, {'u/x=1/x=2/a.csv': {}})
    refused(trained(folder, 'twice', ['u']), 'u/x=1/x=2/a.csv is in two folders x=VALUE')
    # lines without columns have none from folders either
    for number, name in enumerate(('l/a.svm', 'l/k=1/b.svm')):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(''.join(f'{i % 2} {1 + i % 2}:1 3:{i + number}\n' for i in range(50)))
    job = write_job(folder, name='lines', data=['l'])
    model_of(dml('run', job, '--json'))


@test
def a_folder_of_all_files_is_a_column_only_if_it_is_named(folder):
    files(folder, {'v=1/w=1/a.csv': {}, 'v=1/w=2/b.csv': {}})
    files(folder, {'f/0.csv': {'v': 1, 'w': 1}, 'f/1.csv': {'v': 1, 'w': 2}})
    ended = trained(folder, 'auto', ['v=1'])
    assert 'the folder v=1 is that of all files, and no column' in ended.stderr, ended
    assert model_of(ended) == model_of(trained(folder, 'one', ['f/*'], '--set', 'csv.skip=v'))
    both = model_of(trained(folder, 'both', ['f/*']))
    for name, setting in ('all', 'csv.folders=all'), ('named', 'csv.numbers=v'):
        assert model_of(trained(folder, name, ['v=1'], '--set', setting)) == both
    assert model_of(trained(folder, 'skip', ['v=1'], '--set', 'csv.skip=v')) == ended.json['model_sha256']
    # what is scored may have another value of it, or none
    files(folder, {'v=2/w=1/c.csv': {}, 'w=1/c.csv': {}})
    for data in folder / 'v=2', folder / 'w=1', folder / 'f/0.csv':
        assert dml('predict', folder / 'auto.state', data).status == 0
    files(folder, {'bare/c.csv': {}})
    refused(dml('predict', folder / 'auto.state', folder / 'bare'), 'the column "w" is missing',
            'a folder w=VALUE of its path does, too')
    refused(dml('predict', folder / 'auto.state', folder / 'f/../v=1/w=1/../../plain.csv'), 'plain.csv')
    refused(dml('predict', folder / 'all.state', folder / 'w=1'), 'the column "v" is missing')
    # the folder of the job is none of the data's
    within = folder / 'x=3'
    files(within, {'w=1/a.csv': {}, 'w=2/b.csv': {}})
    ended = trained(within, 'auto', ['w=1/*', 'w=2/*'])
    assert 'x=3' not in ended.stderr.replace('/x=3/', ''), ended
    model_of(ended)


@test
def init_says_which_columns_folders_give(folder):
    files(folder, {'t/v=1/a.csv': {}, 't/v=2/b.csv': {}})
    told = dml('init', 't', '-o', '-', cwd=folder).stdout
    assert re.search(r"v, number, the value of each file's folder$", told, re.M), told


@test
def a_column_of_the_file_must_have_what_its_folder_says(folder):
    files(folder, {'t/w=1/u=x/a.csv': {'w': '1.0', 'u': 'x'}, 't/w=2/u=/b.csv': {'w': 2, 'u': ''}})
    ended = trained(folder, 'both', ['t'])
    assert model_of(ended) == model_of(trained(folder, 'none', ['t'], '--set', 'csv.folders=none'))
    assert dml('predict', folder / 'both.state', folder / 't').status == 0
    with open(folder / 't/w=2/u=/b.csv', 'a') as file:
        file.write('1,x,1,3,\n1,x,1,2,x\n')
    refused(trained(folder, 'other', ['t']), 'b.csv:122: column 4 (w) has another value than the folder w=2')
    bad = trained(folder, 'bad', ['t'], bad_lines=2)
    assert model_of(bad) == model_of(ended) and 'b.csv:123: column 5 (u)' in bad.stderr, bad
    refused(dml('predict', folder / 'both.state', folder / 't', '--set', 'bad_lines=0'), 'b.csv:122')
    assert dml('predict', folder / 'none.state', folder / 't').status == 0  # as it was trained
    files(folder, {'l/y=1/a.csv': {}, 'l/y=0/b.csv': {}})
    refused(trained(folder, 'label', ['l']), 'l/y=0/b.csv:1: the column "y" stands in the file')


@test
def folders_may_be_labels_weights_and_dates(folder):
    parts = {'class=cat/weight=2/day=2024-03-01/a.csv': ['cat', 2, '2024-03-01'],
             'class=dog/weight=0.5/day=2024-11-30/b.csv': ['dog', 0.5, '2024-11-30'],
             f'class=dog/weight=1/day={MISSING}/c.csv': ['dog', 1, '']}
    names = ['class', 'weight', 'day']
    files(folder, {'t/' + path: {} for path in parts}, ['a', 'b'])
    files(folder, {f'f/{i}.csv': dict(zip(names, cells)) for i, cells in enumerate(parts.values())}, ['a', 'b'])
    settings = [word for setting in ('label=class', 'weight=weight', 'dates=day') for word in ('--set', 'csv.' + setting)]
    ended = trained(folder, 'tree', ['t'], *settings)
    assert model_of(ended) == model_of(trained(folder, 'flat', ['f/*'], *settings)), ended
    # without a key the label is the last column of the file itself
    ended = dml('run', write_job(folder, name='last', data=['t'], objective='softmax'), '--json')
    assert ended.json['classes'] == 3 if 'classes' in ended.json else ended.status == 0, ended


@test
def a_table_without_names_has_no_columns_of_folders(folder):
    for number in 0, 1:
        (folder / f'd/w={number}').mkdir(parents=True)
        rows = [f'{row["a"]},{row["y"]}' for row in part_rows(number, 0)]
        (folder / f'd/w={number}/a.csv').write_text('\n'.join(rows) + '\n')
    ended = dml('run', write_job(folder, data=['d']), '--json')
    assert 'the folder w=0 is no column' in ended.stderr and 'model_sha256' in ended.stdout, ended
    assert dml('predict', folder / 'job.state', folder / 'd').status == 0


@test
def a_share_holds_out_the_same_rows_with_and_without_folders(folder):
    files(folder, {'t/w=1/a.csv': {}, 't/w=2/b.csv': {}})
    ids = {trained(folder, name, ['t'], '--set', f'csv.folders={name}', holdout=0.3).json['holdout']['rows']
           for name in ('auto', 'none')}
    assert len(ids) == 1, ids


@test
def nights_take_new_folders_and_finish_what_was_killed(folder):
    parts = {f't/day={day}/part-0.csv': {} for day in range(1, 5)}
    files(folder, parts)
    (folder / 't').rename(folder / 'all')
    (folder / 't').mkdir()
    keys = {'data': ['t'], 'l2': 1e-2, 'warm_start': False, 'replicas': 1, 'shards': 1}
    job = write_job(folder, name='night', **keys)
    for day in range(1, 5):
        (folder / f'all/day={day}').rename(folder / f't/day={day}')
        if day == 3:
            killed('retrain', job, 'send_PROGRAM:8', *LABELLED)
        ended = dml('retrain', job, '--json', *LABELLED)
        assert ended.status == 0, ended
        whole = dml('run', write_job(folder, name=f'whole{day}', **keys), '--json', *LABELLED)
        assert model_of(whole) == ended.json['model_sha256'], (day, ended)
        assert ('day' in [column['name'] for column in json.loads(
            (folder / 'night.state/models/current/model.json').read_text())['preparation']['columns']]) == (day > 1)
    assert ended.stderr.count('unchanged') == 3, ended
    idle = dml('retrain', job, '--json', *LABELLED)
    assert idle.status == 0 and 'packed' not in idle.stderr, idle
    for day in range(1, 4):  # the column stays, so the model that is live is evaluated with it
        (folder / f't/day={day}').rename(folder / f'all/day={day}')
    ended = dml('retrain', job, '--json', *LABELLED)
    assert ended.status == 0 and 'is that of all files' not in ended.stderr + idle.stderr, ended
    assert ended.json['examples'] == 120 and 'counts as missing' not in ended.stderr, ended


@test
def init_looks_into_a_folder(folder):
    files(folder, {f'sales/region={MISSING}/a.csv': {}, 'sales/region=n%20w/b.csv': {}, 'sales/region=s/c.csv': {}})
    ended = dml('init', folder / 'sales/', cwd=folder)
    text = (folder / 'sales.conf').read_text()
    assert ended.status == 0 and 'b.csv, one of several files, 4 columns' in text, (ended, text)
    ended = dml('run', folder / 'sales.conf', '--json')
    assert 'columns of KEY=VALUE folders are taken: region' in ended.stderr, ended
    model_of(ended)


@test
def a_glob_that_matches_files_tells_of_the_folders_it_passes_over(folder):
    files(folder, {'d/old.csv': {}, 'd/w=1/a.csv': {}})
    ended = trained(folder, 'both', ['d/*'])
    assert ended.json['examples'] == 120 and 'such as' in ended.stderr and 'd/w=1' in ended.stderr, ended


@test
def a_folder_of_data_may_hold_the_job_and_its_state(folder):
    files(folder, {'v/a1.csv': {}, 'v/x/a2.csv': {}})
    right = model_of(trained(folder, 'apart', ['v'], '--set', 'folds=2'))
    for data, state in (['.'], 'st'), (['./**'], 'x/st'), (['**/*'], 'y/z/st'):
        (folder / 'v' / state).parent.mkdir(parents=True, exist_ok=True)
        write_job(folder / 'v', data=data, state=state, l2=1e-2, replicas=1, shards=1)
        for again in False, True:
            ended = dml('retrain', 'job.conf', '--json', *LABELLED, '--set', 'folds=2', cwd=folder / 'v')
            assert ended.status == 0 and 'passed over' not in ended.stderr, ended
            assert ended.json.get('model_sha256', right) == right, ended
    ended = dml('predict', 'st', '.', cwd=folder / 'v')
    assert ended.status == 0 and ended.stdout.count('\n') == 240 and not ended.stderr, ended
    for path in 'v/a1.csv', 'v/x/a2.csv':
        (folder / path).unlink()
    refused(dml('predict', 'st', '.', cwd=folder / 'v'), 'is a folder, and no file of data is below it')


if __name__ == '__main__':
    sys.exit(main())
