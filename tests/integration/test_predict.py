#!/usr/bin/env python3
"""What `predict` writes, and where."""

import os
import signal
import subprocess
import sys

from harness import (BAD_DATA, COORDINATOR, CREATE, IO, USAGE, dml, main, small_data, small_job,
                     test, train, write_job)


def predictions(folder, *options):
    finished = dml('predict', folder / 'job.state', folder / 'small.libsvm', *options)
    assert finished.status == 0, finished
    return finished.stdout


def refused(status, *words, **options):
    finished = dml('predict', *options.pop('arguments'), **options)
    assert finished.status == status, finished
    assert all(word in finished.stderr for word in words), finished
    assert not finished.stdout, finished
    return finished


@test
def labels_probabilities_and_margins_agree(folder):
    train(small_job(folder))
    chances = predictions(folder).split()
    head, *pairs = predictions(folder, '--probabilities', '--header').splitlines()
    assert head == '-1 1' and [pair.split()[1] for pair in pairs] == chances, (head, pairs)
    assert predictions(folder, '--header') == 'probability\n' + predictions(folder)
    labels = predictions(folder, '--labels').split()
    assert labels == ['1' if float(chance) > 0.5 else '-1' for chance in chances], labels
    margins = predictions(folder, '--margins').split()
    assert labels == ['1' if float(margin) > 0 else '-1' for margin in margins], margins
    assert predictions(folder, '--labels', '--json').splitlines()[0] == \
        f'{{"class":"{labels[0]}"}}'


@test
def options_that_do_not_fit_are_refused(folder):
    train(small_job(folder))
    given = folder / 'job.state', folder / 'small.libsvm'
    refused(USAGE, 'exclude each other', arguments=(*given, '--labels', '--margins'))
    refused(USAGE, '`--header` and `--json`', arguments=(*given, '--header', '--json'))
    train(write_job(folder, 'value', data=['small.libsvm'], objective='squared', l2=1))
    value = folder / 'value.state', folder / 'small.libsvm'
    refused(USAGE, 'has no labels (objective squared)', arguments=(*value, '--labels'))
    refused(USAGE, 'has no probabilities', arguments=(*value, '--probabilities', '--header'))


@test
def an_output_file_is_whole_or_untouched(folder):
    train(small_job(folder))
    data, out = folder / 'small.libsvm', folder / 'out'
    expected = predictions(folder)
    finished = dml('predict', folder / 'job.state', data, '-o', out)
    assert finished.status == 0 and not finished.stdout and out.read_text() == expected, finished
    bad = folder / 'bad'
    bad.write_text(data.read_text() + '1 3:x\n')
    refused(BAD_DATA, 'bad:61:', arguments=(folder / 'job.state', bad, '--output', out))
    assert out.read_text() == expected
    assert sorted(path.name for path in folder.glob('out*')) == ['out']


@test
def output_onto_the_data_is_refused(folder):
    train(small_job(folder))
    data = folder / 'small.libsvm'
    before = data.read_text()
    os.link(data, folder / 'other-name')
    for name in 'small.libsvm', 'other-name':
        refused(USAGE, name, 'is the data',
                arguments=(folder / 'job.state', data, '-o', folder / name))
    assert data.read_text() == before


@test
def output_that_cannot_be_written_is_an_error(folder):
    train(small_job(folder))
    given = folder / 'job.state', folder / 'small.libsvm'
    refused(CREATE, 'nowhere', arguments=(*given, '-o', folder / 'nowhere/out'))
    refused(CREATE, 'no regular file', arguments=(*given, '-o', '/dev/full'))
    with open('/dev/full', 'w') as full:
        finished = subprocess.run([COORDINATOR, 'predict', *given], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
    assert finished.returncode == IO and 'cannot write' in finished.stderr, finished


@test
def a_reader_that_closes_its_pipe_ends_it_without_a_word(folder):
    train(small_job(folder))
    small_data(folder, 'long', rows=200000)
    ignored = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [COORDINATOR, 'predict', folder / 'job.state', folder / 'long'], restore_signals=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ''
        assert process.wait() == -signal.SIGPIPE, process.returncode
    finally:
        signal.signal(signal.SIGPIPE, ignored)


if __name__ == '__main__':
    sys.exit(main())
