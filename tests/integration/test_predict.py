#!/usr/bin/env python3
"""What `predict` writes, and where."""

import os
import select
import signal
import subprocess
import sys

from harness import (BAD_DATA, COORDINATOR, CREATE, IO, USAGE, dml, main, run, small_data, small_job,
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


def piped(text, *arguments):
    """The command with this text on its standard input, which is a pipe."""
    return subprocess.run([COORDINATOR, *arguments], input=text, capture_output=True, text=True)


@test
def standard_input_and_pipes_are_data(folder):
    train(small_job(folder))
    state, data = folder / 'job.state', folder / 'small.libsvm'
    text, expected = data.read_text(), predictions(folder)
    assert piped(text, 'predict', state, '-').stdout == expected
    assert piped(text, 'predict', state, '/dev/stdin').stdout == expected
    assert piped(text, 'predict', state, data, '-').stdout == 2 * expected
    assert piped(text, 'evaluate', state, '-', '--json').stdout == \
        dml('evaluate', state, data, '--json').stdout
    os.mkfifo(folder / 'fifo')
    writer = subprocess.Popen(['cp', data, folder / 'fifo'])
    assert dml('predict', state, folder / 'fifo').stdout == expected
    assert writer.wait() == 0
    with open(data) as file:
        file.seek(text.index('\n') + 1)
        os.lseek(file.fileno(), text.index('\n') + 1, os.SEEK_SET)
        rest = subprocess.run([COORDINATOR, 'predict', state, '-'], stdin=file,
                              capture_output=True, text=True)
    assert rest.stdout == expected.split('\n', 1)[1], rest


class Asked:
    """`predict MODEL -`, asked a piece of text at a time."""

    def __init__(self, state, *options):
        self.process = subprocess.Popen([COORDINATOR, 'predict', state, '-', *options], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answers(self, text, lines):
        """What comes before anything else is written; `lines` lines of it."""
        self.process.stdin.write(text.encode())
        answer = b''
        while answer.count(b'\n') < lines:
            assert select.select([self.process.stdout], [], [], 20)[0], ('no answer', text, answer)
            answer += os.read(self.process.stdout.fileno(), 1 << 16)
        return answer.decode()

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read().decode()
        assert self.process.wait() == 0
        return rest


@test
def rows_that_are_asked_one_by_one_are_answered_one_by_one(folder):
    train(small_job(folder))
    rows = (folder / 'small.libsvm').read_text().splitlines(keepends=True)
    expected = predictions(folder).splitlines(keepends=True)
    asked = Asked(folder / 'job.state')
    for row, answer in list(zip(rows, expected))[:20]:
        assert asked.answers(row, 1) == answer
    assert asked.answers(''.join(rows[20:30]) + rows[30][:3], 10) == ''.join(expected[20:30])
    assert asked.answers(rows[30][3:], 1) == expected[30]
    assert asked.end() == ''


@test
def a_row_of_a_table_is_answered_when_its_last_line_is_there(folder):
    header, rows = 'a,text,y\n', [f'{k},"one\ntwo {k % 3}",{k % 2}\n' for k in range(40)]
    (folder / 'data.csv').write_text(header + ''.join(rows))
    train(write_job(folder, data=['data.csv'], l2=1e-2, csv={'label': 'y'}))
    state = folder / 'job.state'
    expected = dml('predict', state, folder / 'data.csv').stdout.splitlines(keepends=True)
    asked = Asked(state)
    asked.answers(header, 0)
    for row, answer in list(zip(rows, expected))[:5]:
        first, second = row.split('\n', 1)
        asked.answers(first + '\n', 0)
        assert asked.answers(second, 1) == answer
    assert asked.end() == ''


@test
def standard_input_without_rows_has_no_predictions_and_ending_within_a_line_is_an_error(folder):
    train(small_job(folder))
    state = folder / 'job.state'
    for text in '', '\n\n':
        none = piped(text, 'predict', state, '-')
        assert none.returncode == 0 and not none.stdout, none
        assert 'standard input has no rows' in none.stderr, none.stderr
        evaluated = piped(text, 'evaluate', state, '-')
        assert evaluated.returncode == BAD_DATA and 'no row with a label' in evaluated.stderr, evaluated
    closed = dml('predict', state, '-', prefix=('sh', '-c', 'exec "$@" <&-', 'sh'))
    assert closed.status == 0 and not closed.stdout, closed
    cut = piped('1 1:2\n1 3:', 'predict', state, '-')
    assert cut.returncode == BAD_DATA and 'standard input:2:' in cut.stderr, cut
    whole = piped('1 1:2\n1 3:4', 'predict', state, '-')
    assert whole.returncode == 0 and whole.stdout.count('\n') == 2, whole


@test
def memory_does_not_grow_with_the_data(folder):
    train(small_job(folder))
    feeder = subprocess.Popen(['yes', (folder / 'small.libsvm').read_text().strip()],
                              stdout=subprocess.PIPE)
    head = subprocess.Popen(['head', '-n', '600000'], stdin=feeder.stdout, stdout=subprocess.PIPE)
    feeder.stdout.close()
    with open(folder / 'out', 'w') as out:
        process = subprocess.Popen([COORDINATOR, 'predict', folder / 'job.state', '-'],
                                   stdin=head.stdout, stdout=out)
        head.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0 and head.wait() == 0, status
    feeder.wait()  # `head` has closed its pipe
    assert sum(1 for _ in open(folder / 'out')) == 600000
    assert usage.ru_maxrss < 100 << 10, usage.ru_maxrss


@test
def a_bad_row_that_is_allowed_has_an_empty_line_in_its_place(folder):
    train(small_job(folder))
    lines = (folder / 'small.libsvm').read_text().splitlines()
    expected = predictions(folder).splitlines()
    bad = [0, 3, 4, 61, 62, 63]
    for place in bad:
        lines.insert(place, f'1 x{place}:1')
        expected.insert(place, '')
    (folder / 'bad').write_text('\n'.join(lines) + '\n')
    allowed = dml('predict', folder / 'job.state', folder / 'bad', '--set', 'bad_lines=6')
    assert allowed.status == 0 and allowed.stdout.split('\n')[:-1] == expected, allowed
    assert all(f'bad:{place + 1}:' in allowed.stderr for place in bad), allowed
    json = dml('predict', folder / 'job.state', folder / 'bad', '--set', 'bad_lines=6', '--json')
    assert [line == 'null' for line in json.stdout.splitlines()] == \
        [line == '' for line in expected], json
    refused(BAD_DATA, 'more malformed line', arguments=(
        folder / 'job.state', folder / 'bad', '-o', folder / 'out', '--set', 'bad_lines=5'))
    assert not list(folder.glob('out*'))


@test
def a_block_of_bad_rows_alone_keeps_its_place(folder):
    train(small_job(folder))
    good = (folder / 'small.libsvm').read_text().splitlines()[0]
    block = [f'1 1:{"y" * 1000}'] * 1000
    (folder / 'bad').write_text('\n'.join([good, *block, good]) + '\n')
    finished = dml('predict', folder / 'job.state', folder / 'bad', '--set', 'bad_lines=1000')
    first = predictions(folder).split('\n', 1)[0]
    assert finished.stdout.split('\n') == [first, *[''] * 1000, first, ''], finished


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


@test
def predictions_that_find_no_room_are_told_with_file_and_reason(folder):
    train(small_job(folder))
    (folder / 'many').write_text('1:1 2:0.5\n' * 20000)
    finished = run('sh', '-c', 'ulimit -f 8; exec "$@"', 'sh', COORDINATOR, 'predict', folder / 'job.state',
                   folder / 'many', '-o', folder / 'out')
    assert finished.status == IO and 'File too large' in finished.stderr, finished
    assert f'cannot write {folder / "out"}' in finished.stderr and not (folder / 'out').exists(), finished
    finished = run('sh', '-c', '"$@" > /dev/full', 'sh', COORDINATOR, 'predict', folder / 'job.state', folder / 'many')
    assert finished.status == IO and 'No space left' in finished.stderr, finished


if __name__ == '__main__':
    sys.exit(main())
