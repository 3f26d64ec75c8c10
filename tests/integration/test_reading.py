#!/usr/bin/env python3
"""Data is read alike wherever it is read: for training, as holdout, as test data and for
scoring."""

import sys

from harness import BAD_DATA, dml, main, shared, test, train, write_job


def csv_rows(rows, label=lambda k: 'yes' if k * 7 % 5 < 2 else 'no'):
    """Rows of three numbers and a label, which no plane separates."""
    return [f'{k % 9},{k * 31 % 17},{k % 4},{label(k)}' for k in range(rows)]


def csv_file(folder, rows, name='data.csv', header=None):
    path = folder / name
    path.write_text('\n'.join(([header] if header else []) + rows) + '\n')
    return path


# ---- headers ----

@test
def a_first_row_with_a_missing_or_malformed_field_is_not_lost(folder):
    for first in ',3,1,yes', '4,x.5,1,yes':
        data = csv_file(folder, [first, *csv_rows(60)])
        job = write_job(folder, data=[data.name], l2=1e-2)
        finished = dml('run', job)
        assert finished.status == BAD_DATA and 'data.csv:1: column' in finished.stderr, finished
        assert 'csv.header = yes' in finished.stderr, finished
        finished = dml('run', job, '--set', 'bad_lines=1', '--json')
        assert finished.json['examples'] == 60 and 'skipped: ' in finished.stderr, finished


@test
def the_first_row_of_adult_is_a_row(folder):
    job = write_job(folder, data=[shared('adult.data.gz')])
    finished = dml('run', job)
    assert finished.status == BAD_DATA and 'adult.data.gz:1: column 2 holds "State-gov"' in \
        finished.stderr, finished


# ---- labels ----

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
