#!/usr/bin/env python3
"""Nights of a table whose columns move, come and go."""

import csv
import json
import random
import sys

from harness import dml, main, test, write_job
from sweeps import killed

HEADER = ['age', 'color', 'size', 'town', 'label']

def rows_of(seed, count=400):
    """Rows by column; `extra` says nearly all about the label."""
    rng = random.Random(seed)
    for _ in range(count):
        row = {'age': rng.randrange(18, 80), 'color': rng.choice(['red', 'green', 'blue']),
               'size': round(rng.gauss(0, 10), 2), 'town': rng.choice('NSEW'),
               'extra': round(rng.gauss(0, 1), 2)}
        margin = (0.05 * (row['age'] - 50) + 'rgb'.index(row['color'][0]) - 1 + 0.1 * row['size']
                  + 'NSEW'.index(row['town']) - 1.5 + 2 * row['extra'] + rng.gauss(0, 0.5))
        yield {**row, 'label': 'yes' if margin > 0 else 'no'}


class Table:
    """A job with `retrain` on a file that is exported anew each night."""

    def __init__(self, folder, label='label', **settings):
        folder.mkdir(exist_ok=True)
        self.folder, self.state = folder, folder / 'job.state'
        named = f'csv {{ label = {label} }}\n' if label else ''
        self.job = write_job(folder, **{
            'data': ['data.csv'], 'l2': 1e-3, 'replicas': 1, 'shards': 1, 'threads': 1,
            'holdout': ['held.csv'], 'gradient_tolerance': 1e-7, 'gate': ['loss <= 1.05 * live'],
            **settings})
        # a row whose cells move stands otherwise in its file, so a share would hold out others
        self.export(99, [*HEADER[:-1], 'extra', 'label'], 'held.csv')
        self.job.write_text(self.job.read_text() + named)

    def export(self, seed, columns, name='data.csv', header=True):
        with open(self.folder / name, 'w', newline='') as file:
            writer = csv.DictWriter(file, columns, extrasaction='ignore', lineterminator='\n')
            if header:
                writer.writeheader()
            writer.writerows(rows_of(seed))
        return self.folder / name

    def night(self, seed, columns):
        """A result that went live, and the messages."""
        self.export(seed, columns)
        finished = dml('retrain', self.job, '--json')
        assert finished.status == 0, finished
        assert finished.json['published'], finished
        return finished.json, finished.stderr

    def preparation(self):
        text = (self.state / 'models/current/model.json').read_text()
        return json.loads(text)['preparation']['columns']

    def weights(self):
        text = dml('export', self.state, '--format', 'json').stdout
        return {f['name']: f['weights'][0] for f in json.loads(text)['features']}


MOVED = ['town', 'label', 'size', 'age', 'color']


def two_nights(folder, second, **settings):
    table = Table(folder, **settings)
    table.night(1, HEADER)
    return table, *table.night(2, second)


def assert_moving_changes_nothing(folder, **settings):
    _, still, _ = two_nights(folder / 'still', HEADER, **settings)
    table, moved, said = two_nights(folder / 'moved', MOVED, **settings)
    assert 'matched by name' in said and 'nothing to start from' not in said, said
    assert moved['warm_start']['evaluations'] == still['warm_start']['evaluations'], moved
    assert moved['model_sha256'] == still['model_sha256'], (moved, still)
    return table


@test
def columns_that_move_between_nights_change_no_bit_of_a_warm_start(folder):
    table = assert_moving_changes_nothing(folder)
    names = [column['name'] for column in table.preparation()]
    assert names == HEADER, names


@test
def run_compares_moved_columns_with_the_live_model_as_retrain_does(folder):
    table = Table(folder)
    table.night(1, HEADER)
    table.export(2, MOVED)
    for options in ['--no-publish'], []:
        finished = dml('run', table.job, '--json', *options)
        assert finished.status == 0 and 'matched by name' in finished.stderr, finished
    assert finished.json['published'] and finished.json['holdout_live'], finished
    names = [column['name'] for column in table.preparation()]
    assert names == HEADER, names


@test
def hashed_texts_of_columns_that_move_keep_their_weights(folder):
    assert_moving_changes_nothing(folder, csv={'hash': 6, 'label': 'label'}, label=None)


@test
def a_run_on_moved_columns_goes_on_after_a_kill_with_the_same_bits(folder):
    quiet, result, _ = two_nights(folder / 'quiet', MOVED)
    table = Table(folder / 'killed', checkpoint_seconds=0)
    table.night(1, HEADER)
    table.export(2, MOVED)
    killed('retrain', table.job, 'send_PROGRAM:8')
    again = dml('retrain', table.job, '--json')
    assert again.status == 0 and again.json['restarts']['coordinator'] == 1, again
    assert again.json['model_sha256'] == result['model_sha256'], (again, result)


@test
def the_same_rows_in_another_order_of_columns_are_no_new_data(folder):
    table = Table(folder)
    table.night(1, HEADER)
    table.export(1, MOVED)
    again = dml('retrain', table.job, '--json')
    assert again.status == 0 and again.json['reason'] == 'no new data', again


@test
def a_column_more_is_used_and_a_column_less_counts_as_missing_in_the_live_model(folder):
    table, result, said = two_nights(folder, ['extra', 'label', 'color', 'age', 'size'])
    assert 'column 4 (town) is not there' in said and 'nothing to start from' not in said, said
    columns = {column['name']: column for column in table.preparation()}
    assert list(columns) == [*HEADER, 'extra'], columns
    assert columns['town'] == {'name': 'town', 'kind': 'skip', 'place': 0}, columns
    assert columns['extra']['kind'] == 'number' and columns['extra']['place'] == 1, columns
    assert table.weights()['extra'] > 1, table.weights()
    assert result['warm_start']['evaluations'] > 0, result
    _, said = table.night(3, [*HEADER[:4], 'extra', 'label'])
    assert table.weights()['town=W'] > 0.5, table.weights()
    kinds = {column['name']: column['kind'] for column in table.preparation()}
    assert kinds['town'] == 'category' and kinds['extra'] == 'number', kinds


@test
def the_label_that_was_the_last_column_is_found_by_its_name(folder):
    table, _, _ = two_nights(folder, ['label', 'age', 'color', 'size', 'town'], label=None)
    model = json.loads((table.state / 'models/current/model.json').read_text())
    assert model['classes'] == ['no', 'yes'], model['classes']


@test
def a_file_without_names_stands_as_the_last_file_that_was_trained_on(folder):
    table, _, _ = two_nights(folder, ['extra', *MOVED])
    named = table.export(3, ['color', *HEADER[2:], 'age', 'extra'], 'named.csv')
    bare = table.export(3, ['extra', *MOVED], 'bare.csv', header=False)
    scores = [dml('predict', table.state, data, '--set', f'csv.header={header}')
              for data, header in ((named, 'yes'), (bare, 'no'))]
    assert scores[0].status == scores[1].status == 0, scores
    assert scores[0].stdout == scores[1].stdout and len(scores[0].stdout) > 4000, scores


@test
def bins_whose_edges_move_start_from_the_live_model(folder):
    _, result, said = two_nights(folder, HEADER, csv={'bins': 8, 'label': 'label'}, label=None)
    assert 'nothing to start from' not in said and result['warm_start'], said


@test
def a_column_that_turns_from_numbers_to_texts_or_back_is_told_even_to_cron(folder):
    """One stray text among numbers makes most of a short column look like a category."""
    def write(sizes):
        rows = ''.join(f'{size},{"NSEW"[i % 4]},{i % 2}\n' for i, size in enumerate(sizes))
        (folder / 'data.csv').write_text('size,town,label\n' + rows)

    numbers = [round(0.5 * (i % 7) + i % 3, 1) for i in range(80)]
    texts = [['small', 'large'][i % 2 if i % 5 else 0] for i in range(80)]
    job = write_job(folder, data=['data.csv'], csv={'label': 'label'})
    for sizes, said in ((numbers, ''), (texts, 'holds texts now, and numbers'), (texts, ''),
                        (numbers, 'holds numbers now, and texts'), (numbers[::-1], '')):
        write(sizes)
        night = dml('retrain', job, '--cron')
        assert night.status == 0, night
        told = [line for line in night.stderr.splitlines() if ' now, and ' in line]
        assert len(told) == bool(said) and all(said in line and 'size' in line for line in told), \
            (said, night)


@test
def two_columns_of_one_name_are_each_compared_with_their_own_night_before(folder):
    job = write_job(folder, data=['data.csv'], csv={'label': 'label'})
    for rows in 80, 90:
        text = ''.join(f'{0.5 * (i % 7)},{"NSEW"[i % 4]},{i % 2}\n' for i in range(rows))
        (folder / 'data.csv').write_text('x,x,label\n' + text)
        night = dml('retrain', job, '--cron')
        assert night.status == 0 and ' now, and ' not in night.stderr, night


if __name__ == '__main__':
    sys.exit(main())
