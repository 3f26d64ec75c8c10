#!/usr/bin/env python3
"""The page of real runs, in a real browser: alive, lost, ended, served and in a report."""

import csv
import random
import re
import sys

from pages import LIVE, assert_fits, assert_readable, browser, main, settle, shown_in_every_way
from harness import (BAD_DATA, COORDINATOR, Process, dml, endless_job, small_job, test, train, url_of,
                     write_job)
from sweeps import write_rows


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
    # What the page says of the model comes with the answer behind that.
    tab.until(f"document.getElementById('model').textContent.includes('{result['model_sha256']}')")
    assert tab.text('step') == f'{result["steps"]:,}', (tab.text('step'), result)
    tab.close()


@test
def a_pasted_row_is_explained_and_what_others_wrote_in_the_data_is_never_markup(folder):
    tabs, rng = browser(), random.Random(4)
    mark, class_mark = '<img src=x onerror=document.title=1>', '<b>emu</b>'
    with open(folder / 'rows.csv', 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['age', mark, 'a name so long that ' + 'it goes on and on and ' * 9 + 'ends', 'kind'])
        for _ in range(200):
            writer.writerow([rng.randint(1, 9), rng.choice(['Rome', '<i>Bern</i>']), rng.random(),
                             rng.choice(['cat', class_mark, 'dog'])])
    train(write_job(folder, data=['rows.csv'], objective='softmax', csv={'label': 'kind'}, l2=1e-3))
    process = Process(COORDINATOR, 'serve', folder / 'job.state')
    try:
        tab = tabs.open(url_of(process))
        tab.until("document.getElementById('explain-form').offsetHeight > 0")
        answer = "document.getElementById('explain-answer')"
        ask = "document.getElementById('explain-row').value = {!r}, document.getElementById('explain-ask').click()"
        tab.run(ask.format('3,<i>Bern</i>,.5'))
        tab.until(f"{answer}.textContent.startsWith('run 1 predicts ')")
        for width in 400, 1400:
            assert_fits(tab, width)
        assert_readable(tab)
        rows = tab.run(f"[...{answer}.querySelectorAll('tr')].map(row => row.cells[0].textContent)")
        assert rows[0] == 'at the training means' and rows[-1] == 'margin' and mark in rows, rows
        classes = tab.run(f"[...{answer}.querySelectorAll('option')].map(each => each.textContent)")
        assert len(classes) == 3 and any(each.startswith(class_mark) for each in classes), classes
        first = tab.run(f"{answer}.querySelector('table').textContent")
        tab.run(f"(select => {{ select.value = 1; select.dispatchEvent(new Event('change')); }})"
                f"({answer}.querySelector('select'))")
        assert tab.run(f"{answer}.querySelector('table').textContent") != first, 'another class'
        tab.run(ask.format('<img src=x onerror=document.title=1>,2'))
        tab.until(f"{answer}.textContent.startsWith('line 1: 2 columns')")
        tab.run(ask.format('<img src=x onerror=document.title=1>,Rome,1'))
        tab.until(f"{answer}.textContent.includes(' holds ')")
        assert not tab.run(f"{answer}.querySelectorAll('img, b, i').length")
        assert not tab.errors and tab.run('document.title') != '1', tab.errors
        tab.close()
    finally:
        process.end()


@test
def without_a_model_a_sentence_stands_in_place_of_the_row(folder):
    tabs = browser()
    job = endless_job(folder, http='127.0.0.1:0')
    process, url, _ = served(job)
    try:
        tab = tabs.open(url)
        tab.until(f'{LIVE} && known.runs.length > 0')
        tab.until("document.getElementById('explain-none').offsetHeight > 0")
        assert not tab.run("document.getElementById('explain-form').offsetHeight")
        assert not tab.errors, tab.errors
        tab.close()
    finally:
        process.end()


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
    tab.until("document.querySelectorAll('.weights td.weight').length === 20")
    tab.run("document.querySelector('input[name=weights][value=raw]').click()")
    assert tab.run("document.querySelectorAll('.weights td.weight').length") == 21, 'the intercept'
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
        tab.until(f"document.getElementById('model').textContent.includes('{result['model_sha256']}')")
        train(job, '--set', 'l2=0.5')  # nothing holds the folder
        tab.until("tick(), known.status.run === 3")
        tab.close()
    finally:
        process.end()


@test
def the_page_of_a_live_run_that_is_served_tells_where_its_curves_are(folder):
    tabs = browser()
    job = endless_job(folder)
    process, server = Process(COORDINATOR, 'run', job), None
    try:
        process.until((folder / 'job.state/control.sock').exists, 'the control socket is there')
        process.until(lambda: dml('status', job, '--json').json.get('step', 0) > 0, 'a step is made')
        server = Process(COORDINATOR, 'serve', folder / 'job.state')
        tab = tabs.open(url_of(server))
        tab.until(f"{LIVE} && document.getElementById('read').textContent.includes('its own page')")
        for width in (390, 1280):
            assert_fits(tab, width)
        tab.close()
    finally:
        process.end()
        if server:
            server.end()


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
    assert 'true # </script><b>' in tab.text('settings'), tab.text('settings')
    names = lambda of: tab.run(f"[...document.querySelectorAll('#{of} dt')].map(e => e.textContent)")
    assert {'data', 'on_publish'} <= set(names('settings')) and 'history_type' not in names('settings')
    assert 'history' in names('defaults') and not set(names('settings')) & set(names('defaults'))
    assert not tab.run("document.getElementById('defaults').parentNode.open"), 'they are folded'
    tab.close()


@test
def a_report_of_a_sweep_shows_what_was_chosen_and_folds_only_when_asked(folder):
    tabs = browser()
    write_rows(folder / 'rows.libsvm', 120, seed=2)
    job = small_job(folder, data=['rows.libsvm'], l2=[0.1, 0.01], folds=3)
    first = train(job, '--tag', 'first')['run']
    train(job, '--set', 'folds=off', '--set', 'l2=0.5', '--publish')
    report = folder / 'report.html'
    assert dml('report', job, '-o', report).status == 0
    tab = tabs.open(report.as_uri())
    tab.until("known.runs.length > 0 && known.weights.length > 0")
    settle(tab)
    rows = "[...document.querySelectorAll('#runs tbody tr')].map(row => " \
           "[...row.cells].slice(0, 3).map(cell => cell.textContent.trim()))"
    assert tab.run(rows) == [[f'run {first}', 'was live', 'first']], tab.run(rows)
    assert '★ live' in tab.text('run'), tab.text('run')
    tab.run("document.getElementById('folds').click()")
    assert tab.run("document.querySelectorAll('#runs tbody tr').length") == 8
    shown_in_every_way(tab)
    tab.close()


@test
def a_command_that_failed_since_is_told_above_the_run_and_in_the_list_of_folders(folder):
    tabs = browser()
    (folder / 'a_folder_with_a_long_name_without_blanks').mkdir()
    job = small_job(folder / 'a_folder_with_a_long_name_without_blanks')
    train(job)
    report, state = folder / 'report.html', job.parent / 'job.state'
    assert dml('report', job, '-o', report).status == 0
    tab = tabs.open(report.as_uri())
    tab.until("known.runs.length > 0")
    settle(tab)
    assert not tab.run("document.getElementById('invocation').offsetHeight")
    tab.close()
    (job.parent / 'small.libsvm').write_text('1 <b>:x\n')
    assert dml('retrain', job).status == dml('retrain', job).status == BAD_DATA
    assert dml('report', job, '-o', report).status == 0
    tab = tabs.open(report.as_uri())
    tab.until("document.getElementById('invocation').offsetHeight > 0")
    text = tab.text('invocation')
    assert re.match(r'✕ last command, .*, retrain: failed \(65\), 2 times since .*small.libsvm:1: .*<b>', text), text
    shown_in_every_way(tab)
    assert not tab.errors, tab.errors
    tab.close()
    server = Process(COORDINATOR, 'serve', state, state)
    try:
        tab = tabs.open(url_of(server))
        texts = tab.run("[...document.querySelectorAll('article')].map(entry => entry.innerText)")
        assert len(texts) == 2 and all('✕ last command, ' in text and '<b>' in text for text in texts), texts
        for width in 1400, 400, 320:
            tab.resize(width)
            assert tab.run('document.documentElement.scrollWidth') <= width, width
        tab.close()
    finally:
        server.end()


@test
def the_list_of_folders_shows_what_is_live_and_fits_every_width(folder):
    tabs = browser()
    for name in 'one', 'two':
        train(small_job(folder, holdout='0.3'), '--state', folder / f'{name}.state', '--tag', name)
    process = Process(COORDINATOR, 'serve', folder / 'one.state', folder / 'two.state')
    try:
        tab = tabs.open(url_of(process))
        texts = tab.run("[...document.querySelectorAll('article')].map(entry => entry.innerText)")
        assert len(texts) == 2 and all('★ run 1 is live' in text for text in texts), texts
        assert 'one, trained' in texts[0] and 'accuracy, holdout' in texts[0], texts
        for width in 1400, 400, 320:
            tab.resize(width)
            assert tab.run('document.documentElement.scrollWidth') <= width, width
        assert all('macro_' not in text for text in texts), texts
        icon = tab.run("document.querySelector('link[rel=icon]').href")
        assert icon.startswith('data:'), 'else the browser asks for /favicon.ico, which there is not'
        box = tab.run("document.querySelector('polyline').getBoundingClientRect().width")
        assert box > 200 and not tab.errors, (box, tab.errors)
        tab.close()
    finally:
        process.end()


@test
def the_loss_on_the_holdout_stands_beside_f_and_its_best_step_is_marked(folder):
    tabs = browser()
    job = small_job(folder, holdout='0.3', early_stopping=5, precondition='none')
    best = train(job)['early_stopping']['best_step']
    report = folder / 'report.html'
    assert dml('report', job, '-o', report).status == 0
    tab = tabs.open(report.as_uri())
    tab.until('known.steps.last > 0')
    settle(tab)
    assert tab.text('shown') == f'○best on the holdout: step {best}loss on the holdout', tab.text('shown')
    tab.run("document.querySelector('input[name=loss][value=above]').click()")
    settle(tab)
    assert tab.text('shown') == f'○best on the holdout: step {best}', tab.text('shown')
    shown_in_every_way(tab)
    assert not tab.errors, tab.errors
    tab.close()


# What is wider than its cell, or ends beyond its panel.
CUT = """[...document.querySelectorAll('#outcome-parts .panel')].flatMap(panel => {
    const right = panel.getBoundingClientRect().right;
    return [...panel.querySelectorAll('.weights.bars td, .weights.bars td span')]
      .filter(e => e.getBoundingClientRect().right > right + 1 ||
                   e.tagName === 'TD' && e.scrollWidth > e.clientWidth + 1)
      .map(e => e.outerHTML) })"""


@test
def bars_and_long_names_fit_their_panels_and_bins_can_be_told_apart(folder):
    name = 'RevolvingUtilizationOfUnsecuredLines'
    rng = random.Random(4)
    rows = [(rng.random(), rng.random()) for _ in range(400)]
    (folder / 'rows.csv').write_text(f'{name},NumberOfTime30-59DaysPastDueNotWorse,y\n' + ''.join(
        f'{a:.3f},{b:.3f},{int(abs(a - .5) + b / 4 > .4)}\n' for a, b in rows))
    job = write_job(folder, data=['rows.csv'], csv={'bins': 8})
    train(job)
    page = folder / 'page.html'
    assert dml('report', folder / 'job.state', '-o', page).status == 0
    tab = browser().open(page.as_uri())
    tab.until("document.querySelectorAll('.weights td.weight').length > 8")
    for width in (1400, 1280, 1000, 760, 400):
        tab.resize(width)
        settle(tab)
        assert not tab.run(CUT), (width, tab.run(CUT)[:3])
    names = tab.run("[...document.querySelectorAll('.weights.bars td.weight')]"
                    ".map(bar => bar.parentNode.cells[0].textContent)")
    assert len(set(names)) == len(names) and any(text.startswith(name + '=[') for text in names), names
    tab.close()


@test
def what_the_loss_chart_shows_is_not_written_over_its_curve(folder):
    train(small_job(folder))
    page = folder / 'page.html'
    assert dml('report', folder / 'job.state', '-o', page).status == 0
    tab = browser().open(page.as_uri())
    tab.until('known.steps.last > 0')
    above, below = tab.run("""[10, 90].map(fall => {
        known.steps = new Steps();
        for (let i = 0; i <= 100; i++)
          known.steps.add({ step: i, evaluations: i, seconds: i, loss: i < fall ? 100 : 0, gradient_max: 1 });
        known.axis = 'step';
        return lossLabelPlace(150, 400, 220, 0, value => 200 - 1.9 * value)[1]; })""")
    assert above < 30 and below > 150, 'a curve that falls late is in the way above'
    tab.close()


@test
def what_columns_bring_and_weights_of_each_class_are_shown(folder):
    tabs = browser()
    rng = random.Random(3)
    classes = [f'class {k}' for k in range(24)]
    with open(folder / 'rows.csv', 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['<b>size</b>', 'town', 'label'])
        for i in range(600):
            writer.writerow([1000 + i % 24 + rng.random(), rng.choice(['"a" & b', 'c']), classes[i % 24]])
    job = write_job(folder, data=['rows.csv'], objective='softmax', holdout='0.3', standardise=True)
    train(job)
    report = folder / 'report.html'
    assert dml('report', job, '-o', report).status == 0
    tab = tabs.open(report.as_uri())
    tab.until('known.importance !== null && known.weights.length === 24 && known.steps.last > 0')
    settle(tab)
    shown_in_every_way(tab)
    panel = ("[...[...document.querySelectorAll('#outcome-parts h3')].find(head => "
             "head.textContent.startsWith({})).closest('.panel')"
             ".querySelectorAll('tbody tr')].map(row => row.cells[0].textContent)")
    assert tab.run(panel.format("'What each column brings'")) == ['<b>size</b>', 'town']
    weights = panel.format("'Heaviest weights'")
    assert '(intercept)' not in tab.run(weights), 'it has no deviation'
    first = "document.querySelector('.bar ~ .scroll td:nth-child(2)').textContent"
    before = tab.run(first)
    tab.run("document.querySelector('input[name=weights][value=raw]').click()")
    assert '(intercept)' in tab.run(weights) and tab.run(first) != before
    tab.run("(select => { select.value = '8'; select.dispatchEvent(new Event('change')); })"
            "(document.querySelector('#outcome-parts select'))")
    assert tab.run('known.weightsShown.output') == 8 and '(intercept)' in tab.run(weights)
    # They take the width of the page, and scroll within their own box.
    tab.resize(390)
    settle(tab)
    wide = "document.querySelector('.confusion.wide')"
    assert tab.run(f'{wide}.offsetWidth > {wide}.parentNode.clientWidth')
    assert tab.run('document.documentElement.scrollWidth') <= 390
    assert tab.run('known.axis') == 'evaluations', 'a report compares runs by passes'
    assert not tab.errors, tab.errors
    tab.close()


@test
def the_list_of_folders_draws_epochs_where_there_are_no_steps(folder):
    tabs = browser()
    for name in 'one', 'two':
        train(small_job(folder, optimizer='downpour', downpour={'epochs': 4}),
              '--state', folder / f'{name}.state')
    process = Process(COORDINATOR, 'serve', folder / 'one.state', folder / 'two.state')
    try:
        tab = tabs.open(url_of(process))
        labels = tab.run("[...document.querySelectorAll('svg')].map(svg => "
                         "svg.getAttribute('aria-label'))")
        assert len(labels) == 2 and all(label.endswith(' in 4 epochs') for label in labels), labels
        tab.close()
    finally:
        process.end()


if __name__ == '__main__':
    sys.exit(main())
