#!/usr/bin/env python3
"""The page of real runs, in a real browser: alive, lost, ended, served and in a report."""

import re
import sys

from pages import LIVE, browser, main, settle, shown_in_every_way
from harness import COORDINATOR, Process, dml, endless_job, small_job, test, train, url_of


def served(job):
    """A run and the address of its page."""
    process = Process(COORDINATOR, 'run', job)
    url = url_of(process)
    return process, url, url.rstrip('/').rsplit(':', 1)[1]


@test
def a_real_run_is_followed_lost_when_killed_and_found_again(folder):
    tabs = browser()
    job = endless_job(folder, http='127.0.0.1:0', replicas=2, shards=1)
    process, url, port = served(job)
    try:
        tab = tabs.open(url)
        tab.until(f'{LIVE} && known.steps.last > 50 && known.status.state === "running"')
        settle(tab)
        assert tab.text('job') == 'job' and tab.text('state') == 'running', tab.text('state')
        states = tab.run("[...document.querySelectorAll('#processes tbody tr')]"
                         ".map(row => row.cells[0].textContent + ' ' + row.cells[1].textContent)")
        assert states == [f'{who} ● running' for who in ('replica 0', 'replica 1', 'shard 0')], states
        assert tab.run('known.steps.size === known.steps.last + 1'), 'no step is missing'
        assert re.fullmatch(r'number [\d,]+: \d+ of \d+ chunks? counted.*',
                            tab.text('evaluation-text')), tab.text('evaluation-text')
        assert tab.run('grid.cells.flatMap(cell => cell.states).reduce((sum, n) => sum + n)') == \
            tab.run('known.status.evaluation.chunks')
        shown_in_every_way(tab)
        assert not tab.errors, tab.errors
        process.end()
        tab.until("document.getElementById('connection').className === 'lost'")
        before = tab.run('known.steps.last')
        job.write_text(job.read_text().replace('127.0.0.1:0', f'127.0.0.1:{port}'))
        process, _, _ = served(job)
        tab.until(f'{LIVE} && known.steps.last > {before}', seconds=40)
        assert tab.text('run').startswith('run 1,'), 'the same run goes on'
        tab.close()
    finally:
        process.end()


@test
def a_page_that_watches_is_told_how_the_run_ended(folder):
    tabs = browser()
    job = endless_job(folder, http='127.0.0.1:0', max_seconds=4)
    process = Process(COORDINATOR, 'run', job, '--json')
    tab = tabs.open(url_of(process))
    tab.until(f'{LIVE} && known.steps.last > 0')
    result = process.wait().json
    tab.until("tick(), document.getElementById('connection').className === 'ended'")
    assert 'the run has ended (time limit' in tab.text('link'), tab.text('link')
    assert result['model_sha256'] in tab.text('model'), tab.text('model')
    assert tab.text('step') == f'{result["steps"]:,}', (tab.text('step'), result)
    tab.close()


def record_shown(tab, steps):
    """What is recorded is shown whole, and as nothing that is lost or goes on."""
    tab.until("document.getElementById('connection').className === 'recorded'")
    tab.until(f'known.steps.last === {steps}')
    settle(tab)
    assert not tab.run("document.body.classList.contains('stale')")
    assert tab.text('state') == 'ended: gradient tolerance, converged', tab.text('state')
    assert tab.text('step') == str(steps), tab.text('step')
    assert not tab.run("document.getElementById('evaluation').offsetHeight")
    assert tab.run("document.querySelectorAll('#runs tbody tr').length") == 1
    tab.until("document.querySelectorAll('.weights tr').length === 21")  # with the intercept
    tab.run("document.querySelector('#runs input').click()")
    tab.until("[...known.overlays.values()].every(overlay => overlay.steps.last > 0)")
    shown_in_every_way(tab)
    assert not tab.errors, tab.errors


@test
def runs_that_have_ended_are_served(folder):
    tabs = browser()
    job = small_job(folder)
    train(job, '--set', 'l2=0.1')
    result = train(job)
    process = Process(COORDINATOR, 'serve', folder / 'job.state')
    try:
        tab = tabs.open(url_of(process))
        record_shown(tab, result['steps'])
        assert result['model_sha256'] in tab.text('model'), tab.text('model')
        train(job, '--set', 'l2=0.5')  # nothing holds the folder
        tab.until("tick(), known.status.run === 3")
        tab.close()
    finally:
        process.end()


@test
def a_report_is_a_page_that_needs_no_server(folder):
    tabs = browser()
    job = small_job(folder, on_publish='true # </script><b>')
    train(job, '--set', 'l2=0.1')
    result = train(job)
    file = folder / 'report.html'
    dml('report', job, '--output', file)
    tab = tabs.open(file.as_uri())
    record_shown(tab, result['steps'])
    assert 'true # </script><b>' in tab.text('values'), tab.text('values')
    tab.close()


if __name__ == '__main__':
    sys.exit(main())
