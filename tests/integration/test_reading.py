#!/usr/bin/env python3
"""Data is read alike wherever it is read: for training, as holdout, as test data and for
scoring."""

import os
import sys

from harness import BAD_DATA, CONFIG, USAGE, dml, main, shared, test, train, write_job


def csv_rows(rows, label=lambda k: 'yes' if k * 7 % 5 < 2 else 'no'):
    """Rows of three numbers and a label, which no plane separates."""
    return [f'{k % 9},{k * 31 % 17},{k % 4},{label(k)}' for k in range(rows)]


def csv_file(folder, rows, name='data.csv', header=None):
    path = folder / name
    path.write_text('\n'.join(([header] if header else []) + rows) + '\n')
    return path


# ---- files under several names ----

@test
def a_file_met_again_under_another_name_counts_once_with_a_warning(folder):
    data = csv_file(folder, csv_rows(60))
    (folder / 'link.csv').symlink_to(data.name)
    os.link(data, folder / 'hard.csv')
    for names in (['data.csv', './data.csv'], ['*.csv'], ['data.csv', 'd*'],
                  [data.name, data.name]):
        finished = dml('run', write_job(folder, data=names, l2=1e-2), '--json')
        assert finished.json['examples'] == 60 and ' again: it counts once' in finished.stderr, \
            finished


@test
def data_that_is_held_out_under_another_name_is_refused(folder):
    data = csv_file(folder, csv_rows(60))
    (folder / 'link').symlink_to(data.name)
    os.link(data, folder / 'hard')
    for name in 'link', 'hard', './data.csv':
        finished = dml('run', write_job(folder, data=[data.name], holdout=[name]))
        assert finished.status == CONFIG and 'one of the files of `data`' in finished.stderr, finished
    finished = dml('run', write_job(folder, data=[data.name], test=['link'], l2=1e-2))
    assert finished.status == 0 and 'key `test`: ' in finished.stderr, finished


@test
def copies_with_the_same_content_get_a_warning(folder):
    data = csv_file(folder, csv_rows(60))
    copy = csv_file(folder, csv_rows(60), 'copy.csv')
    finished = dml('run', write_job(folder, data=[data.name, copy.name], l2=1e-2), '--json')
    assert finished.json['examples'] == 120 and 'their rows count twice' in finished.stderr, finished
    finished = dml('run', write_job(folder, data=[data.name], holdout=[copy.name], l2=1e-2))
    assert finished.status == 0 and 'copy.csv has the same content as' in finished.stderr, finished


# ---- headers ----

@test
def a_first_row_with_a_missing_or_malformed_field_is_not_lost(folder):
    for first in '4,-,1,yes', '4,x.5,1,yes', '4,3,1,':
        data = csv_file(folder, [first, *csv_rows(60)])
        job = write_job(folder, data=[data.name], l2=1e-2)
        finished = dml('run', job)
        assert finished.status == BAD_DATA and 'data.csv:1: ' in finished.stderr, finished
        assert 'csv.header = yes' in finished.stderr or first == '4,3,1,', finished
        finished = dml('run', job, '--set', 'bad_lines=1', '--json')
        assert finished.json['examples'] == 60 and 'skipped: ' in finished.stderr, finished


@test
def the_first_row_of_adult_is_a_row(folder):
    job = write_job(folder, data=[shared('adult.data.gz')])
    assert dml('run', job, '--json').json['examples'] == 32561


def trained(folder, header=None, objective='logistic', **csv):
    """The state folder of a model of 60 rows; with `header`, of named columns."""
    data = csv_file(folder, csv_rows(60), header=header)
    train(write_job(folder, data=[data.name], l2=1e-2, objective=objective, csv=csv))
    return folder / 'job.state'


def test_data(folder, data, **settings):
    """The result of training as trained() does, with `data` to test on, or what refuses it."""
    return dml('run', write_job(folder, data=['data.csv'], test=[data.name], l2=1e-2,
                                **settings), '--json', '--fresh')


def scores(folder, data, *arguments):
    return [dml(command, folder / 'job.state', data, *arguments)
            for command in ('predict', 'evaluate')]


@test
def rows_are_scored_as_training_found_them_whatever_the_first_looks_like(folder):
    trained(folder)
    for first in 'missing,,NA,yes', 'a,b,c,yes', '-,3,1,yes', 'x,3,1,yes':
        data = csv_file(folder, [first, *csv_rows(5)], 'new.csv')
        for finished in [*scores(folder, data), test_data(folder, data)]:
            assert finished.status == BAD_DATA and not finished.stdout, finished
            assert 'new.csv:1: column 1' in finished.stderr, finished
        predicted, evaluated = scores(folder, data, '--set', 'bad_lines=1')
        assert predicted.stdout.startswith('\n'), predicted
        assert len(predicted.stdout.splitlines()) == 6, predicted
        assert 'skipped: ' in predicted.stderr and 'new.csv:1: ' in predicted.stderr, predicted
        assert 'examples          5' in evaluated.stdout, evaluated


@test
def a_header_is_expected_where_training_had_one(folder):
    trained(folder, header='a,b,c,y')
    data = csv_file(folder, csv_rows(5), 'new.csv')
    for finished in [*scores(folder, data), test_data(folder, data)]:
        assert finished.status == BAD_DATA and 'the column "a" is missing' in finished.stderr, finished
    predicted, evaluated = scores(folder, data, '--set', 'csv.header=no')
    assert len(predicted.stdout.splitlines()) == 5, predicted
    assert 'examples          5' in evaluated.stdout, evaluated


@test
def rows_of_more_or_fewer_columns_are_refused_at_the_first(folder):
    trained(folder)
    for row, said in ('1,2,3,4,yes', '5 columns, where'), ('1,2', '2 columns and no label, where'):
        data = csv_file(folder, [row, *csv_rows(5)], 'new.csv')
        finished = dml('predict', folder / 'job.state', data)
        assert finished.status == BAD_DATA and f'new.csv:1: {said}' in finished.stderr, finished
    csv_file(folder, ['1,2,3,4,yes'], 'other.csv')
    finished = dml('run', write_job(folder, data=['data.csv', 'other.csv']))
    assert finished.status == BAD_DATA and 'other.csv:1: 5 columns, where' in \
        finished.stderr, finished


@test
def a_single_column_is_csv_again_for_a_model_of_csv(folder):
    rows = [f'{k % 9},{"yes" if k * 7 % 5 < 2 else "no"}' for k in range(60)]
    train(write_job(folder, data=[csv_file(folder, rows).name], l2=1e-2))
    data = csv_file(folder, ['0', '1'], 'new.csv')
    labelled = csv_file(folder, ['0,no', '1,yes'], 'labelled.csv')
    predicted = dml('predict', folder / 'job.state', data)
    assert len(set(predicted.stdout.splitlines())) == 2, predicted
    assert predicted.stdout == dml('predict', folder / 'job.state', labelled).stdout, predicted


@test
def a_holdout_is_read_as_its_data_was(folder):
    data = csv_file(folder, csv_rows(60))
    csv_file(folder, ['a,b,c,yes', *csv_rows(9)], 'held.csv')
    job = write_job(folder, data=[data.name], l2=1e-2, holdout=['held.csv'])
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'held.csv:1: column 1 holds "a"' in finished.stderr, \
        finished


@test
def predict_takes_only_settings_that_say_how_data_is_read(folder):
    trained(folder)
    for finished in scores(folder, folder / 'data.csv', '--set', 'l2=1'):
        assert finished.status == USAGE and not finished.stdout, finished
        assert 'format, csv.header, csv.delimiter, ' in finished.stderr


# ---- labels ----

@test
def what_columns_are_is_settled_by_the_model(folder):
    state = trained(folder, header='a,b,c,y')
    (folder / 'new.csv').write_text('a,b,c,y\n1,2,3,yes\nold,2,3,no\n')
    for command in 'predict', 'evaluate':
        for key in 'csv.categories=a', 'csv.missing=old', 'csv.dates=a', 'csv.hash=4', 'csv.text=a':
            refused = dml(command, state, folder / 'new.csv', '--set', key)
            assert refused.status == USAGE and 'the model determines' in refused.stderr, refused
            assert 'csv.decimal' in refused.stderr and 'csv.text,' not in refused.stderr, refused
        told = dml(command, state, folder / 'new.csv').stderr
        assert 'holds "old"' in told and 'the model was trained on' in told, told
        assert 'csv.categories' not in told and 'bad_lines = NUMBER' in told, told


@test
def labels_that_only_other_programs_take_for_numbers_are_texts_everywhere(folder):
    labels = ['0x01', 'inf', '1e999']
    data = csv_file(folder, csv_rows(60, lambda k: labels[k * 7 % 5 % 3]))
    job = write_job(folder, data=[data.name], test=[data.name], l2=1e-2, objective='softmax')
    result = train(job)
    assert 'unseen_labels' not in result['test'], result
    finished = dml('evaluate', folder / 'job.state', data, '--json')
    assert finished.json == result['test'], finished


if __name__ == '__main__':
    sys.exit(main())
