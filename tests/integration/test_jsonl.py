#!/usr/bin/env python3
"""JSON Lines: rows of a table whose columns are keys; the model is that of the same CSV."""

import json
import random
import sys

from harness import BAD_DATA, dml, main, test, train, write_job

TABLE = {'label': 'y', 'skip': ['id'], 'dates': ['when'], 'text': ['review'], 'weight': 'w'}
CITIES = ['Ham"burg', 'Köln', 'a,b', 'x\ny', '日本😀', ' lead', None]


def rows_of(count, seed=1):
    rng = random.Random(seed)
    return [{'id': i, 'age': rng.choice([None, rng.randint(1, 90)]),
             'size': round(rng.gauss(0, 1), rng.randint(1, 16)), 'city': rng.choice(CITIES),
             'flag': rng.random() < .5, 'when': f'2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}',
             'review': rng.choice(['a good film', 'a bad film', 'so so']),
             'w': rng.choice([1, 2, .5]), 'y': rng.choice(['no', 'yes'])} for i in range(count)]


def cell(value):
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return '' if value is None else json.dumps(value)


def write_csv(path, rows):
    lines = [','.join(rows[0])] + [','.join(map(cell, row.values())) for row in rows]
    path.write_text('\n'.join(lines) + '\n')


def write_jsonl(path, rows):
    """With keys in any order, null or no key for a missing value, and escapes or none."""
    rng = random.Random(2)
    lines = []
    for i, row in enumerate(rows):
        items = [(key, value) for key, value in row.items() if value is not None or i % 2 == 0]
        if i % 3 == 2:
            rng.shuffle(items)
        lines.append(json.dumps(dict(items), ensure_ascii=i % 5 < 2))
    path.write_text('\n\n'.join(lines) + '\n')


def refused(folder, text, *arguments):
    (folder / 'e.jsonl').write_bytes(text if isinstance(text, bytes) else text.encode())
    job = write_job(folder, name='e', data=['e.jsonl'])
    ended = dml('run', job, '--fresh', *arguments)
    assert ended.status == BAD_DATA, ended
    return ended.stderr


@test
def the_model_is_that_of_the_same_csv(folder):
    rows = rows_of(3000)
    write_csv(folder / 'data.csv', rows)
    write_jsonl(folder / 'data.jsonl', rows)
    models = [train(write_job(folder, name=kind, data=[f'data.{kind}'], csv=TABLE))
              for kind in ('csv', 'jsonl')]
    assert models[0]['model_sha256'] == models[1]['model_sha256'], models
    assert models[0]['loss'] == models[1]['loss'] < 0.6932
    # Either model reads either file, which is told by content, and a pipe line by line.
    columns = ('--columns', 'id,city,label,probability')
    found = [dml('predict', folder / f'{model}.state', folder / f'data.{kind}', *columns).stdout
             for model in ('csv', 'jsonl') for kind in ('csv', 'jsonl')]
    assert found.count(found[0]) == 4, [text[:200] for text in found]
    lines = (folder / 'data.jsonl').read_text().split('\n\n')[:3]
    (folder / 'few').write_text('\n'.join(lines) + '\n')
    with open(folder / 'few') as few:
        piped = dml('predict', folder / 'csv.state', '-', *columns, stdin=few)
    assert found[0].startswith(piped.stdout) and piped.stdout.count('\n') >= 3
    status = [json.loads(dml('evaluate', folder / 'csv.state', folder / f'data.{kind}', '--json').stdout)
              for kind in ('csv', 'jsonl')]
    assert status[0]['loss'] == status[1]['loss'] and status[0]['auc'] == status[1]['auc']


@test
def keys_of_several_files_add_up(folder):
    rows = rows_of(300)
    for row in rows[100:]:
        row['late'] = row['id'] % 7
    write_jsonl(folder / 'a.jsonl', rows[:100])
    write_jsonl(folder / 'b.jsonl', rows[100:])
    job = write_job(folder, data=['a.jsonl', 'b.jsonl'], csv=TABLE)
    train(job)
    model = json.loads((folder / 'job.state/models/current/model.json').read_text())
    assert 'late' in [column['name'] for column in model['preparation']['columns']]
    # In one file, a key that the first lines lack is a column if a key of the job names it.
    far = [{'a': i % 5, 'y': i % 2} for i in range(40000)] + [{'a': 1, 'b': 2, 'y': 1}]
    text = '\n'.join(map(json.dumps, far))
    named = refused(folder, text)
    assert 'e.jsonl:40001: the key "b", at byte 10, is not in the first lines' in named, named
    job = write_job(folder, name='e', data=['e.jsonl'], csv={'numbers': ['b']})
    assert train(job)['examples'] == 40001
    counted = train(write_job(folder, name='f', data=['e.jsonl'], bad_lines=1))
    assert counted['examples'] == 40000, counted


@test
def objects_in_objects_are_columns_by_their_paths(folder):
    """As if the keys had been written so; but not of a key that is left out, whatever it holds."""
    rows = [{'who': None if row['id'] % 9 == 4 else {'age': row['age'], 'at': {'city': row['city']}},
             'more': {'n': [1], 'id': row['id']}, 'size': row['size'], 'y': row['y']} for row in rows_of(500)]
    flat = [{'who.age': (row['who'] or {}).get('age'), 'who.at.city': row['who'] and row['who']['at']['city'],
             'size': row['size'], 'y': row['y']} for row in rows]
    (folder / 'deep.jsonl').write_text(''.join(json.dumps(row) + '\n' for row in rows))
    write_jsonl(folder / 'flat.jsonl', flat)
    models = {name: train(write_job(folder, name=name, data=[f'{name}.jsonl'],
                                    csv={'label': 'y', 'skip': ['more'] if name == 'deep' else []}))
              for name in ('deep', 'flat')}
    names = [[line.split('\t')[0] for line in dml('export', folder / f'{name}.state', '--format', 'tsv')
              .stdout.splitlines()] for name in models]
    assert 'who.at.city=Köln' in names[0] and sorted(names[0]) == sorted(names[1]), names
    assert models['deep']['loss'] == models['flat']['loss'], models
    found = [dml('predict', folder / 'deep.state', folder / f'{name}.jsonl').stdout for name in models]
    assert found[0] == found[1] and found[0].count('\n') == 500
    assert 'column 3 (more.n), at byte' in refused(folder, (folder / 'deep.jsonl').read_text())
    # Columns that are left out by their numbers keep these.
    (folder / 'e.jsonl').write_text(''.join(f'{{"a": {{"b": {k}}}, "c": {k * k}, "y": {k % 2}}}\n' for k in range(9)))
    assert train(write_job(folder, name='e', data=['e.jsonl'], csv={'skip': [1]}))['features'] == 1


@test
def what_is_no_object_of_cells_is_refused_by_line_and_place(folder):
    good, bad = '{"a": 1, "y": 0}\n', []
    for line, said in (
            ('{"a": 2, "y": 1, "a": 3}', 'e.jsonl:2: the key "a" stands twice, again at byte 18'),
            ('{"a": [1], "y": 1}', 'e.jsonl:2: column 1 (a), at byte 7, holds a list'),
            ('{"a": 1e999, "y": 1}', 'not a finite number'),
            ('{"a": NaN, "y": 1}', 'write null for a missing number'),
            ('{"a": 01, "y": 1}', 'begins with 0'),
            ('{"a": "\\ud800", "y": 1}', 'surrogates'),
            ('{"a": "\\u0000", "y": 1}', '\\u0000'),
            (b'{"a": "\xff", "y": 1}', 'not UTF-8'),
            (b'{"a": "\xc0\xaf", "y": 1}', 'not UTF-8'),
            ('{"a": 1, "y": 1', 'the line ends early'),
            ('{"a": 1, "y": 1} {}', 'something behind the object'),
            ('{"a": 1, "y": 1,}', 'byte 17'),
            ('{"a": ' + '[' * 100000, '512 deep'),
            ('{"a": 1, "y": "two\\nlines"}', 'line break'),
            ('[1, 2]', 'something else than an object')):
        text = good.encode() + (line if isinstance(line, bytes) else line.encode())
        found = refused(folder, text)
        assert said in found and 'e.jsonl:2:' in found, (line[:50], found)
        bad.append(text[len(good):] + b'\n')
    for text in ('[\n' + good + ']', '{\n"a": 1}', '[' + good.strip() + ']'):
        assert 'jq -c' in refused(folder, text), text
    (folder / 'e.jsonl').write_bytes(b''.join([good.encode(), *bad, b'{"a": 2, "y": 1}\n']))
    limits = {'data': ['e.jsonl'], 'bad_lines': len(bad)}
    assert train(write_job(folder, name='g', **limits))['examples'] == 2
    # A key that is left out may hold anything that is JSON.
    (folder / 'e.jsonl').write_text(good + '{"a": 2, "tags": [1, {"b": []}], "y": 1}\n')
    assert train(write_job(folder, name='h', data=['e.jsonl'], csv={'skip': ['tags'], 'label': 'y'})
                 )['examples'] == 2


if __name__ == '__main__':
    sys.exit(main())
