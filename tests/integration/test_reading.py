#!/usr/bin/env python3
"""Data is read alike wherever it is read: for training, as holdout, as test data and for
scoring."""

import sys

from harness import dml, main, test, train, write_job


def csv_rows(rows, label=lambda k: 'yes' if k * 7 % 5 < 2 else 'no'):
    """Rows of three numbers and a label, which no plane separates."""
    return [f'{k % 9},{k * 31 % 17},{k % 4},{label(k)}' for k in range(rows)]


def csv_file(folder, rows, name='data.csv', header=None):
    path = folder / name
    path.write_text('\n'.join(([header] if header else []) + rows) + '\n')
    return path


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
