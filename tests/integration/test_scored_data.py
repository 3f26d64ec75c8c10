#!/usr/bin/env python3
"""What a model is to be scored on is read and checked before it is trained."""

import sys

from harness import BAD_DATA, dml, main, small_data, small_job, test, train, write_job


def refused(job, *words, command='run'):
    """The command ends at once: no run has begun, and the message has these words."""
    finished = dml(command, job, '--json')
    assert finished.status == BAD_DATA, finished
    assert all(word in finished.stderr for word in words), finished
    assert 'step 0' not in finished.stderr, f'it was trained: {finished}'
    runs = dml('jobs', job, '--json')
    assert not any(state['runs'] for state in runs.json['folders']), runs
    return finished


def each_key(folder, content, *words, name='other.libsvm', **settings):
    """The same file is refused as test data and as a holdout, by `run` and by `retrain`."""
    (folder / name).write_text(content)
    for key in ('test', 'holdout'):
        for command in ('run', 'retrain'):
            job = small_job(folder, **{key: [name], **settings})
            refused(job, name, *words, command=command)


@test
def malformed_test_and_holdout_files_are_found_before_training(folder):
    good = small_data(folder, 'more.libsvm', seed=2).read_text()
    each_key(folder, good + '1 3:x\n', ':61:')


@test
def an_empty_or_missing_test_file_is_found_before_training(folder):
    each_key(folder, '', 'no rows')
    refused(small_job(folder, test=['nowhere.libsvm']), 'nowhere.libsvm')


@test
def data_none_of_whose_labels_is_trained_on_is_an_error(folder):
    other = ''.join(line.replace('-1 ', '7 ', 1).replace('1 ', '8 ', 1) if line[0] == '1' else
                    '7 ' + line.split(' ', 1)[1]
                    for line in small_data(folder, 'more.libsvm').read_text().splitlines(True))
    each_key(folder, other, 'none of the 60 labels', '(-1, 1)')
    each_key(folder, other.replace('7 ', 'a ', 60).replace('8 ', 'b '), 'number',
             objective='squared')


@test
def one_label_that_is_known_is_enough(folder):
    (folder / 'other.libsvm').write_text('1 1:1\n7 2:1\n8 3:1\n')
    result = train(small_job(folder, test=['other.libsvm']))
    assert (result['test']['examples'], result['test']['unseen_labels']) == (3, 2), result


@test
def a_table_without_the_columns_is_found_before_training(folder):
    rows = [f'{k % 7},{k % 5},{k * 3 % 11},{k * 7 % 3 == 0:d}' for k in range(60)]
    (folder / 'data.csv').write_text('a,b,c,y\n' + '\n'.join(rows) + '\n')
    (folder / 'other.csv').write_text('a,x,c,y\n' + '\n'.join(rows) + '\n')
    for key in ('test', 'holdout'):
        job = write_job(folder, data=['data.csv'], **{key: ['other.csv']})
        refused(job, 'other.csv:1: the column "b" is missing')


@test
def test_data_is_scored_as_evaluate_scores_it_and_packed_once(folder):
    small_data(folder, 'more.libsvm', seed=2)
    job = small_job(folder, test=['more.libsvm'])
    result = train(job)
    evaluated = dml('evaluate', folder / 'job.state', folder / 'more.libsvm', '--json')
    assert evaluated.json == result['test'], (evaluated, result)
    again = dml('retrain', job, '--json', '--fresh')
    assert 'more.libsvm: unchanged, its pack is used again' in again.stderr, again
    assert again.json['test']['examples'] == 60, again
    third = dml('retrain', job, '--json', '--fresh')
    assert 'more.libsvm: unchanged, its pack is used again' in third.stderr, third


if __name__ == '__main__':
    sys.exit(main())
