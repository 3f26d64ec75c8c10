#!/usr/bin/env python3
"""What the commands draw on a terminal, and that they draw nothing elsewhere."""

import contextlib
import fcntl
import json
import os
import random
import re
import signal
import sys
import time

from harness import (AGAIN, COORDINATOR, Process, dml, endless_job, main, small_data,
                     small_job, test, train, write_job)
from terminal import ESCAPE, OnTerminal

LOG_LINE = r'\d{4}-\d\d-\d\dT\S+Z [\w ]+ (info|warning): .*'
TABLE_LINE = r'(?:[a-z0-9]+ +| {13})\S.*'  # a line that is continued begins under its figures


@contextlib.contextmanager
def on_terminal(*command, **options):
    terminal = OnTerminal(COORDINATOR, *command, **options)
    try:
        yield terminal
    finally:
        terminal.end()


@contextlib.contextmanager
def live_run(job, *arguments):
    """A run that has made a step."""
    process = Process(COORDINATOR, 'run', job, *arguments)
    state = job.with_suffix('.state')
    try:
        process.until((state / 'control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        yield process
    finally:
        process.end()


def drawn(terminal):
    """The progress lines as they were drawn, with the terminal's columns at that moment."""
    return [(columns, ESCAPE.sub('', line)) for columns, text in terminal.written
            for line in text.split('\r') if line.startswith(('step ', 'first evaluation'))
            and '\n' not in line]


# ---- the progress line ----

@test
def a_progress_line_is_drawn_in_place_and_leaves_nothing_behind(folder):
    job = endless_job(folder, max_seconds=1)
    with on_terminal('run', job, columns=80) as terminal:
        assert terminal.wait() == 0, terminal.text
    assert drawn(terminal), terminal.text
    for line in terminal.screen.text().splitlines():
        assert re.fullmatch(f'{LOG_LINE}|{TABLE_LINE}', line), line


@test
def the_line_tells_how_far_the_run_is_within_the_width_that_the_terminal_has_now(folder):
    full = r'step \d+  loss \S+  gradient \S+  evaluation +\d+%, [\d.e+]+/s  \d+ s left'
    job = endless_job(folder, max_seconds=60)
    with on_terminal('run', job, columns=80) as terminal:
        def lines_at(width):
            return [line for columns, line in drawn(terminal) if columns == width]
        terminal.until(lambda: any(re.fullmatch(full, line) for line in lines_at(80)), 'all is told')
        terminal.resize(24, 30)
        terminal.until(lambda: len(lines_at(30)) > 5, 'some lines are narrow')
        assert all(len(line) <= 79 for line in lines_at(80)), max(lines_at(80), key=len)
        # The first may have been on its way.
        assert all(len(line) <= 29 for line in lines_at(30)[1:]), max(lines_at(30)[1:], key=len)
        os.kill(terminal.popen.pid, signal.SIGTERM)
        assert terminal.wait() == AGAIN, terminal.text


@test
def a_run_that_is_interrupted_leaves_whole_lines(folder):
    job = endless_job(folder)
    for number in signal.SIGINT, signal.SIGTERM:
        with on_terminal('run', job) as terminal:
            terminal.until(lambda: len(drawn(terminal)) > 3, 'some lines are drawn')
            os.kill(terminal.popen.pid, number)
            assert terminal.wait() == AGAIN, terminal.text
        message = (r'dml-coordinator: stopped after step \d+, which is kept: the same command goes '
                   r'on; no model was written')
        for line in terminal.screen.text().splitlines():
            assert re.fullmatch(f'{LOG_LINE}|{TABLE_LINE}|{message}', line), line


@test
def a_stage_that_is_interrupted_is_taken_away(folder):
    with open(small_data(folder), 'w') as file:
        for k in range(400000):
            file.write(f'{k % 2} 1:{k % 7} 2:{k % 11} 3:{k % 13} 4:{k % 17}\n')
    with on_terminal('run', write_job(folder, data=['small.libsvm'])) as terminal:
        terminal.until(lambda: 'packing' in terminal.text, 'the stage is shown')
        os.kill(terminal.popen.pid, signal.SIGINT)
        assert terminal.wait() == AGAIN, terminal.text
    *before, last = terminal.screen.text().splitlines()  # on a busy machine the stage may have ended before
    assert last == 'dml-coordinator: interrupted; the same command goes on from here', terminal.screen.text()
    assert all(re.fullmatch(LOG_LINE, line) for line in before), before


@test
def retrain_shows_every_stage_and_leaves_nothing_behind(folder):
    job = small_job(folder, holdout=0.2)
    with on_terminal('retrain', job, columns=80) as terminal:
        assert terminal.wait() == 0, terminal.text
    for stage in 'packing', 'starting shards and replicas', 'checking the gate':
        assert stage in terminal.text, (stage, terminal.text)
    for line in terminal.screen.text().splitlines():
        assert re.fullmatch(f'{LOG_LINE}|{TABLE_LINE}', line), line


@test
def nothing_is_drawn_where_nothing_can_be_erased_or_it_is_not_wanted(folder):
    job = small_job(folder)
    for words, environment in ([], {'TERM': 'dumb'}), ([], {'TERM': None}), (['--quiet'], {}):
        with on_terminal('run', job, '--fresh', '--publish', *words, **environment) as terminal:
            assert terminal.wait() == 0, terminal.text
        assert '\x1b' not in terminal.text and 'evaluation 1' not in terminal.text, terminal.text
    finished = dml('run', job, '--fresh')
    assert '\x1b' not in finished.stdout + finished.stderr, finished
    assert '\r' not in finished.stdout + finished.stderr, finished


# ---- the log ----

@test
def the_log_has_the_first_step_the_last_and_few_between(folder):
    exact = {'gradient_tolerance': 1e-9, 'loss_tolerance': 0}
    finished = dml('run', small_job(folder, **exact), '--json')
    steps = [int(n) for n in re.findall(r'info: step (\d+): loss', finished.stderr)]
    last = finished.json['steps']
    assert last > 5 and steps[0] == 0 and steps[-1] == last and len(steps) <= 4, steps
    verbose = dml('run', small_job(folder, **exact), '--fresh', '--verbose')
    steps = [int(n) for n in re.findall(r'info: step (\d+): loss', verbose.stderr)]
    assert steps == list(range(last + 1)), steps


# ---- colours ----

@test
def colours_are_for_terminals_and_only_where_they_are_wanted(folder):
    job = small_job(folder)
    train(job)
    for command in 'jobs', 'status':
        with on_terminal(command, job) as terminal:
            assert terminal.wait() == 0, terminal.text
        assert '\x1b[1m' in terminal.text and '\x1b[0m' in terminal.text, terminal.text
        plain = dml(command, job).stdout
        assert '\x1b' not in plain
        assert ESCAPE.sub('', terminal.text).replace('\r', '') == plain, terminal.text
        for environment in {'NO_COLOR': '1'}, {'TERM': 'dumb'}, {'TERM': None}:
            with on_terminal(command, job, **environment) as terminal:
                assert terminal.wait() == 0, terminal.text
            assert '\x1b' not in terminal.text, (environment, terminal.text)


@test
def a_running_process_is_green_and_a_lost_coordinator_red(folder):
    job = endless_job(folder)
    with live_run(job) as process:
        with on_terminal('status', job) as terminal:
            terminal.wait()
        assert '\x1b[32mrunning\x1b[0m' in terminal.text.replace('running     ', 'running'), \
            terminal.text
        process.signal(signal.SIGKILL)
        process.popen.wait()
        with on_terminal('status', job) as terminal:
            terminal.wait()
        assert '\x1b[31minterrupted\x1b[0m' in terminal.text, terminal.text
        assert 'was lost' in terminal.text, terminal.text


# ---- tables ----

@test
def tables_fit_the_columns_of_a_terminal_and_elsewhere_names_are_whole(folder):
    name = 'größe-' * 20
    small_data(folder)
    job = write_job(folder, data=['small.libsvm'], name=name, replicas=2, shards=2)
    train(job)
    assert name in dml('status', job).stdout
    status = dml('status', job, COLUMNS='80').stdout
    jobs = dml('jobs', job, COLUMNS='80').stdout
    assert '…' in status and 'größe-größe' in status, status
    for line in status.splitlines() + jobs.splitlines()[1:]:  # the first is the folder
        assert len(line) <= 80, line
    wide = dml('status', job, COLUMNS='100').stdout.splitlines()[0]
    assert wide.index('…') == status.index('…') + 20, wide
    with on_terminal('status', job) as terminal:
        terminal.wait()
    assert '…' in terminal.text and name not in terminal.text, terminal.text


@test
def names_of_columns_and_classes_are_whole_except_where_a_line_has_no_room(folder):
    column, classes = 'a column of a long name, ' * 4, [f'{animal} of a kind rarely seen' for animal in
                                                        ('cat', 'dog', 'größter emu')]
    rng = random.Random(1)
    rows = [f'"{column}",short,kind'] + [f'{rng.random():.3f},{rng.random():.3f},{rng.choice(classes)}'
                                         for _ in range(200)]
    (folder / 'rows.csv').write_text('\n'.join(rows) + '\n')
    train(write_job(folder, data=['rows.csv'], objective='softmax', csv={'label': 'kind'}, summary='model'))
    for command in ['summary', folder / 'job.state'], ['evaluate', folder / 'job.state', folder / 'rows.csv']:
        whole = dml(*command).stdout
        assert '…' not in whole and all(name in whole for name in classes), whole
        assert column.strip() in whole or command[0] == 'evaluate', whole
        for width in 80, 110, 300:
            lines = dml(*command, COLUMNS=str(width)).stdout.splitlines()
            assert max(map(len, lines)) <= width + 2, (width, lines)
            assert any('…' in line for line in lines) == (width < 120), (width, lines)
        with on_terminal(*command) as terminal:
            terminal.wait()
        assert '…' in terminal.text, terminal.text


# ---- status --watch ----

@test
def watch_draws_in_place_until_the_run_ends(folder):
    job = endless_job(folder)
    with live_run(job, '--quiet') as process:
        with on_terminal('status', '--watch', job, rows=12, columns=60) as terminal:
            terminal.until(lambda: terminal.text.count('\x1b[H') > 2, 'it is drawn twice')
            process.signal(signal.SIGTERM)
            assert terminal.wait() == 0, terminal.text
        assert process.wait().status == AGAIN
    lines = terminal.screen.text().splitlines()
    assert lines[0].startswith('job run 1: ended, cancelled'), lines
    assert [line.split(':')[0].split()[0] for line in lines] == [
        'job', 'started', 'step', 'evaluation', 'process'] + [
        line.split()[0] for line in lines[5:]], lines
    assert all(len(line) <= 60 for line in lines) and len(lines) <= 11, lines
    # Only the first drawing clears the screen before it draws; the others would flicker.
    assert len(re.findall('\x1b\\[H\x1b\\[J', terminal.text)) == 1, terminal.text


@test
def watch_cuts_what_is_higher_than_the_terminal(folder):
    job = endless_job(folder, replicas=4, shards=4)
    with live_run(job):
        with on_terminal('status', '--watch', job, rows=8) as terminal:
            terminal.until(lambda: terminal.text.count('\x1b[H') > 2, 'it is drawn twice')
            lines = terminal.screen.text().splitlines()
            assert len(lines) == 7 and lines[-1] == '…', lines
            os.kill(terminal.popen.pid, signal.SIGINT)
            assert terminal.wait() == -signal.SIGINT
        assert terminal.text.endswith('\x1b[?7h'), terminal.text[-40:]


@test
def watch_without_a_terminal_prints_blocks_and_json_lines_once_a_second(folder):
    job = endless_job(folder)
    with live_run(job, '--quiet') as process:
        started = time.monotonic()
        plain = Process(COORDINATOR, 'status', '--watch', job)
        lines = Process(COORDINATOR, 'status', '--watch', '--json', job)
        try:
            plain.until(lambda: plain.so_far(plain.output).count('evaluation') > 1, 'two blocks')
            assert time.monotonic() - started > 0.9
            process.signal(signal.SIGINT)
            plain, lines = plain.wait(), lines.wait()
        finally:
            if isinstance(plain, Process):
                plain.end(), lines.end()
    assert plain.status == 0 and lines.status == 0, (plain, lines)
    assert '\x1b' not in plain.stdout, plain
    blocks = plain.stdout.split('\n\n')
    assert len(blocks) >= 2 and blocks[0].startswith('job run 1: running'), blocks
    assert blocks[-1].startswith('job run 1: ended, cancelled'), blocks
    answers = [json.loads(line) for line in lines.stdout.splitlines()]
    assert len(answers) >= 2 and answers[-1]['state'] == 'ended', answers


@test
def watch_says_all_of_a_long_text(folder):
    state = folder.joinpath(*['x' * 200] * 6)
    state.mkdir(parents=True)
    (state / 'dml.db').touch()
    with open(state / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        plain = Process(COORDINATOR, 'status', '--watch', state)
        try:
            plain.until(lambda: 'ask again\n' in plain.so_far(plain.output), 'the end of the text')
        finally:
            plain.end()
        with on_terminal('status', '--watch', state, rows=8, columns=3000) as terminal:
            terminal.until(lambda: terminal.screen.text().rstrip().endswith('ask again'),
                           'the end of the text')


@test
def watch_says_when_the_coordinator_is_mute_or_lost(folder):
    job = endless_job(folder)
    with live_run(job) as process:
        watch = Process(COORDINATOR, 'status', '--watch', job)
        try:
            process.signal(signal.SIGSTOP)
            watch.until(lambda: 'has not answered' in watch.so_far(watch.output), 'it is mute')
            process.signal(signal.SIGCONT)
            assert process.popen.poll() is None, process.finished(process.popen.poll())
            seen = len(watch.so_far(watch.output))
            watch.until(lambda: 'running' in watch.so_far(watch.output)[seen:], 'it is back')
            process.signal(signal.SIGKILL)
            process.popen.wait()
            finished = watch.wait()
        finally:
            watch.end()
    assert finished.status == 0 and 'interrupted' in finished.stdout, finished
    assert 'coordinator of this run was lost' in finished.stdout, finished


sys.exit(main())
