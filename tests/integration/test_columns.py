#!/usr/bin/env python3
"""What `predict --columns` writes: predictions beside cells of the data, so that they can be joined."""

import csv
import io
import json
import sys

from harness import BAD_DATA, USAGE, dml, main, test, train, write_job

NAMES = 'id', 'age', 'city', 'note', 'label'
ROWS = [(f'{i:05}', str(20 + i * 37 % 60), ('Oslo', 'Rome, Italy')[i % 3 == 0], f'say "{i}"\nor {i},',
         ('no', 'yes', 'maybe')[(i * 37 % 60 > 30) + (i % 7 == 0 and i * 37 % 60 > 30)])
        for i in range(120)]


def write_table(path, rows=ROWS, names=NAMES):
    with open(path, 'w', newline='') as file:
        csv.writer(file, lineterminator='\n').writerows([names, *rows])
    return path


def trained(folder, name='job', **keys):
    write_table(folder / 'table.csv')
    job = {'csv': {'label': 'label', 'skip': ['id', 'note']}, 'objective': 'softmax', **keys}
    train(write_job(folder, name, data=['table.csv'], **job))
    return folder / f'{name}.state'


def predicted(*arguments):
    finished = dml('predict', *arguments)
    assert finished.status == 0, finished
    return finished


def table(*arguments):
    return list(csv.reader(io.StringIO(predicted(*arguments).stdout)))


@test
def cells_of_the_data_stand_beside_what_is_predicted(folder):
    model, data = trained(folder), folder / 'table.csv'
    head, *rows = table(model, data, '--header', '--columns', 'note,id,city,label,probabilities,margins')
    classes = predicted(model, data, '--header', '--probabilities').stdout.splitlines()[0].split()
    assert head == ['note', 'id', 'city', 'label', *(f'probability:{name}' for name in classes),
                    *(f'margin:{name}' for name in classes)], head
    assert [row[:3] for row in rows] == [[row[3], row[0], row[2]] for row in ROWS]
    for option, first, count in ('--labels', 3, 1), ('--probabilities', 4, 3), ('--margins', 7, 3):
        lines = [' '.join(row[first:first + count]) for row in rows]
        assert lines == predicted(model, data, option).stdout.splitlines(), option
    best = table(model, data, '--columns', 'probability')
    assert [row[0] for row in best] == [max(row[4:7], key=float) for row in rows]


@test
def a_column_of_the_data_may_be_called_as_a_prediction(folder):
    model, data = trained(folder), folder / 'table.csv'
    lines = predicted(model, data, '--json', '--columns', 'label,column:label,"age",1').stdout
    for line, row, label in zip(lines.splitlines(), ROWS, predicted(model, data, '--labels').stdout.split()):
        assert json.loads(line) == {'label': label, 'column:label': row[4], 'age': row[1], '1': row[0]}, line


@test
def rows_without_a_prediction_keep_their_line(folder):
    model, data = trained(folder), folder / 'some.csv'
    write_table(data, [ROWS[0], ('7', 'old'), ('8', '40', 'Oslo', '', ''), ROWS[1]])
    rows = table(model, data, '--set', 'bad_lines=2', '--columns', 'id,label,probability:no')
    assert [row[0] for row in rows] == [ROWS[0][0], '', '8', ROWS[1][0]], rows
    assert rows[1] == ['', '', ''] and all(rows[3]), rows
    lines = predicted(model, data, '--set', 'bad_lines=2', '--columns', 'id,label', '--json').stdout
    assert lines.splitlines()[1] == 'null', lines


@test
def numbers_have_a_value_and_a_margin(folder):
    model = trained(folder, csv={'label': 'age', 'skip': ['id', 'note']}, objective='poisson')
    rows = table(model, folder / 'table.csv', '--columns', 'value,margin,id')
    assert [row[0] for row in rows] == predicted(model, folder / 'table.csv').stdout.split()
    assert [row[2] for row in rows] == [row[0] for row in ROWS]


@test
def a_row_whose_value_is_too_large_keeps_its_cells(folder):
    write_table(folder / 'amounts.csv', [(f'{i}', f'{i}', f'{i // 9}') for i in range(60)],
                ('id', 'amount', 'count'))
    train(write_job(folder, 'counts', data=['amounts.csv'], objective='poisson',
                    csv={'label': 'count', 'skip': ['id']}))
    data = write_table(folder / 'large.csv', [('a', '1e9', '1'), ('b', '2', '1')], ('id', 'amount', 'count'))
    options = '--set', 'bad_lines=1', '--columns', 'id,value,column:count'
    rows = table(folder / 'counts.state', data, *options)
    assert rows[0] == ['a', '', '1'] and rows[1][0] == 'b' and float(rows[1][1]) > 0, rows
    first = predicted(folder / 'counts.state', data, '--json', *options).stdout.splitlines()[0]
    assert json.loads(first) == {'id': 'a', 'value': None, 'column:count': '1'}, first


@test
def columns_that_are_not_there_are_refused(folder):
    model, data = trained(folder), folder / 'table.csv'
    for columns, status, words in (('id,value', USAGE, 'predicts classes: take label'),
                                   ('id,margin', USAGE, 'take margins, or margin:CLASS'),
                                   ('id,,label', USAGE, 'empty name'),
                                   ('id,id', USAGE, 'has id twice'),
                                   ('probabilities,probability:no', USAGE, 'probability:no twice'),
                                   ('probability:yess', USAGE, 'did you mean `yes`'),
                                   ('idd', BAD_DATA, 'did you mean `id`')):
        finished = dml('predict', model, data, '--columns', columns)
        assert finished.status == status and words in finished.stderr, (columns, finished)
        assert not finished.stdout, finished
    assert dml('predict', model, data, '--columns', 'id', '--labels').status == USAGE
    (folder / 'x.libsvm').write_text('1 1:1 2:1\n0 1:2\n')
    train(write_job(folder, 'sparse', data=['x.libsvm']))
    finished = dml('predict', folder / 'sparse.state', folder / 'x.libsvm', '--columns', 'id,label')
    assert finished.status == BAD_DATA and 'only a table' in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
