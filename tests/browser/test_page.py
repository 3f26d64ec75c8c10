#!/usr/bin/env python3
"""The page for people, in a real browser: of a coordinator made up of numbers."""

import json
import sys
import time

from pages import (EVENTS, LIVE, assert_fits, assert_readable, browser, colours_in, in_browser,
                   main, settle, shown_in_every_way)

# ---- what it shows ----

@in_browser
def a_small_job_is_shown_at_every_width_and_in_the_dark(mock, page):
    job = mock(step=10, steps_whole=10, replicas=1, chunks=1, earlier=0, run=1)
    tab = page(job)
    shown_in_every_way(tab)
    assert tab.text('job') == 'adult' and tab.text('step') == '10', tab.text('step')
    assert tab.run("document.querySelectorAll('#processes tbody tr').length") == 2
    assert tab.run("document.getElementById('no-runs').offsetHeight") > 0
    assert 'of 1 chunk' in tab.text('evaluation-text'), tab.text('evaluation-text')


@in_browser
def hosts_are_shown_with_why_they_are_of_no_use_and_those_first(mock, page):
    why = 'ssh exited with status 255: ssh: connect to host <b>b</b> port 22: No route to host'
    job = mock(hosts=[{'name': 'alpha', 'state': 'up', 'why': None, 'workers': 2, 'failures': 0,
                       'threads': None},
                      {'name': 'beta', 'state': 'set aside', 'why': why, 'workers': 0, 'failures': 3,
                       'threads': 8}])
    tab = page(job)
    shown_in_every_way(tab)
    cells = ("[...document.querySelectorAll('#hosts tbody tr')]"
             ".map(row => [...row.cells].map(cell => cell.textContent))")
    rows = tab.run(cells)
    assert rows[0][0] == 'beta' and 'set aside' in rows[0][1] and rows[0][5] == why, rows
    assert rows[1][:2] == ['alpha', '● up'] and rows[1][4] == 'all', rows
    assert tab.text('hosts-text') == '2 hosts, 1 not up', tab.text('hosts-text')
    assert tab.run("document.querySelectorAll('#hosts b').length") == 0


@in_browser
def layers_are_shown_with_their_norms_where_there_are_any(mock, page):
    job = mock(step=40)
    tab = page(job)
    assert not tab.run("document.getElementById('layers-section').offsetHeight")
    job.tensors = [{'name': f'W{i}', 'rows': 784 // i, 'columns': 100, 'norm': 2.5 * i,
                    'gradient_norm': .01 if i < 9 else None} for i in range(1, 17)]
    job.network = {'layers': [300, 100], 'activation': 'relu', 'precision': 'float'}
    tab.until("document.getElementById('layers-section').offsetHeight > 0")
    tab.until("document.getElementById('what').textContent.includes('300-100, relu, float')")
    shown_in_every_way(tab)
    rows = tab.run("[...document.querySelectorAll('#layers tbody tr')]"
                   ".map(row => [...row.cells].map(cell => cell.textContent))")
    assert len(rows) == 16 and rows[1] == ['W2', '392 × 100', '5', '0.01', '0.002'], rows
    assert rows[15][3:] == ['–', '–'], rows


@in_browser
def epochs_of_minibatches_are_shown_with_the_curve_of_the_holdout(mock, page):
    job = mock(step=0, nulls=True, earlier=0)
    tab = page(job)
    assert not tab.run("document.getElementById('epochs').offsetHeight")
    job.downpour = {'running': True, 'epochs': 12, 'epoch': 5, 'minibatches': 422, 'minibatch': 123,
                    'done': 2233, 'redone': 0, 'rate': .02, 'loss': .3, 'holdout_loss': .26,
                    'holdout_accuracy': .86, 'best_epoch': None, 'stopped_early': False,
                    'minibatches_per_second': 812.4}
    last = "document.querySelectorAll('#epoch-charts output')[{}].textContent"
    tab.until(last.format(1) + " === '0.86'")
    assert tab.text('epochs-text') == ('epoch 6 of 12: 123 of 422 minibatches, 812 a second, '
                                       'rate 0.02'), tab.text('epochs-text')
    assert tab.text('step-note') == 'epoch 6 of minibatches', tab.text('step-note')
    shown_in_every_way(tab, 'epoch-loss-chart')
    assert tab.run(last.format(0)) == '0.26833, holdout 0.26265', 'both are in one chart'
    assert tab.text('epochs-shown').endswith('best on the holdout: epoch 5'), tab.text('epochs-shown')
    assert not tab.run("document.getElementById('convergence').offsetHeight"), 'there is no step yet'
    tab.run("document.querySelector('input[name=epoch-axis][value=minibatches]').click()")
    assert tab.run("known.epochs.reach(known.epochAxis)") == 5 * 422
    job.downpour |= {'epoch': 3}  # the run went back to a checkpoint
    tab.until(last.format(1) + " === '0.83333'")
    assert tab.run("known.epochs.reach(known.epochAxis)") == 3 * 422
    press = "document.getElementById('epoch-loss-chart').dispatchEvent(new KeyboardEvent('keydown', {key: '%s'}))"
    for key, epoch in [('ArrowLeft', 2), ('Home', 1), ('ArrowLeft', 1), ('End', 3)]:
        tab.run(press % key)
        assert tab.run(last.format(1)).startswith(f'epoch {epoch}: '), (key, tab.run(last.format(1)))
    tab.run(press % 'Escape')
    assert tab.run(last.format(1)) == '0.83333', 'the last one again'
    job.downpour |= {'epoch': 7, 'running': False, 'stopped_early': True, 'done': 2954}
    tab.until("document.getElementById('epochs-text').textContent"
              ".startsWith('7 epochs, stopped early of 12, ')")


@in_browser
def accuracy_on_the_holdout_is_drawn_beside_its_loss(mock, page):
    tab = page(mock(step=40, holdout=True))
    shown_in_every_way(tab)
    assert colours_in(tab, 'accuracy-chart') > 4
    assert tab.text('holdout-note') == 'accuracy 0.85122', tab.text('holdout-note')
    assert not page(mock(step=40)).run("document.getElementById('accuracy-figure').offsetHeight")


@in_browser
def two_hundred_replicas_and_ten_thousand_steps_are_shown(mock, page):
    job = mock(step=10000, steps_whole=10000, replicas=200, shards=8, chunks=100000, lost=(17,),
               events=EVENTS * 200, holdout=True, earlier=30, run=40)
    tab = page(job)
    shown_in_every_way(tab)
    rows = ("[...document.querySelectorAll('#processes tbody tr')]"
            ".map(row => row.cells[0].textContent)")
    assert tab.run(rows)[:2] == ['replica 17', 'replica 0'], 'what is lost comes first'
    assert len(tab.run(rows)) == 208
    assert tab.run(rows.replace('cells[0]', 'cells[7]'))[:2] == ['cuda:1 NVIDIA H200', 'cuda:0 NVIDIA H200']
    assert tab.run("document.querySelectorAll('#strip button').length") == 200
    assert tab.run("document.querySelector('.scroll').clientHeight") <= 400, 'the table scrolls'
    assert tab.run("document.querySelectorAll('#events li').length") == 500
    assert tab.text('events-text') == 'the newest 500 of 600', tab.text('events-text')
    assert tab.run("document.getElementById('holdout-figure').offsetHeight") > 0
    assert colours_in(tab, 'chunks') > 100, 'the replicas have colours of their own'
    took = tab.run('''Math.min(...[1, 2, 3, 4, 5].map(() => {
        const began = performance.now(); drawAll(); return performance.now() - began; }))''')
    assert took < 1500, f'{took} ms to draw it once'


@in_browser
def on_paper_tables_are_whole_and_dark_colours_are_not_used(mock, page):
    tab = page(mock(step=40, replicas=60, events=EVENTS * 20, earlier=30, run=40))
    cut = "[...document.querySelectorAll('.scroll, .events')]" \
          ".filter(e => e.offsetHeight && e.scrollHeight > e.clientHeight + 1).length"
    assert tab.run(cut) >= 3, 'on a screen long tables scroll'
    tab.call('Emulation.setEmulatedMedia', media='print',
             features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
    settle(tab)
    assert tab.run(cut) == 0
    tab.resize(720)  # of A4 with margins
    settle(tab)
    assert tab.run('document.documentElement.scrollWidth') <= 720, 'no column is cut off'
    assert tab.run("getComputedStyle(document.body).color") == 'rgb(23, 33, 43)'


@in_browser
def the_loss_itself_is_shown_first(mock, page):
    tab = page(mock(step=40))
    assert tab.text('loss-title') == 'Loss F' and tab.run("known.lossAs") == 'itself'
    tab.run("document.querySelector('input[name=loss][value=above]').click()")
    settle(tab)
    assert tab.text('loss-title') == 'Loss above the lowest', tab.text('loss-title')


@in_browser
def what_is_not_known_is_shown_as_such(mock, page):
    tab = page(mock(step=0, nulls=True, state='setting up', loss_shift=-1))
    shown_in_every_way(tab)
    for element in ('loss', 'gradient', 'left'):
        assert tab.text(element) == '–', f'{element}: {tab.text(element)}'


@in_browser
def a_loss_that_is_not_positive_is_drawn(mock, page):
    tab = page(mock(step=30, loss_shift=-.5))
    tab.run("document.querySelector('input[value=itself]').click()")
    assert colours_in(tab, 'loss-chart') > 4
    ticks = tab.run("chartScale(charts[0], curves()).scale.ticks.map(tick => tick[0])")
    assert min(ticks) < 0 < max(ticks), ticks


@in_browser
def chunks_show_who_has_them(mock, page):
    job = mock(replicas=2, chunks=8)
    job.evaluation_map = lambda: [[2, 3, 0], [1, 1, 0], [1, 2, 1], [4, 0, -1]]
    tab = page(job)
    states = ('waiting', 'running', 'backup', 'counted')
    texts = {state: tab.text('state-' + state) for state in states}
    assert texts == {'waiting': 'waiting 4', 'running': 'running 1',
                     'backup': 'with a backup copy 1', 'counted': 'counted 2'}, texts
    tab.run("document.getElementById('chunks').focus()")
    for _ in range(4):
        tab.key('ArrowRight')
    text = tab.text('pointed')
    assert text == 'chunk 3: running with a backup copy, replica 1', text


@in_browser
def a_key_reads_a_step_off_the_charts(mock, page):
    tab = page(mock(step=40, notes={39: 'history reset: not a descent direction'}))
    tab.run("document.getElementById('loss-chart').focus()")
    tab.key('ArrowLeft')
    text = tab.text('read')
    assert text.startswith('step 39: F 0.32') and 'history reset' in text, text


@in_browser
def charts_run_along_steps_passes_or_time(mock, page):
    tab = page(mock(step=6000, steps_whole=6000))
    ticks = 'axisTicks(known.axis, reach(), 5).map(tick => tick[1])'
    drawn = {}
    for axis, last in ('step', '6,000'), ('evaluations', '6,000'), ('seconds', '5 min'):
        tab.run(f"document.querySelector('input[name=axis][value={axis}]').click()")
        assert tab.run(ticks)[-1] == last, tab.run(ticks)
        # The middle of the chart is another step on each axis.
        drawn[axis] = tab.run('known.steps.nearest(known.axis, reach() / 2)')
        shown_in_every_way(tab)
    assert drawn == {'step': 3000, 'evaluations': 2997, 'seconds': 3000}, drawn
    tab.run("document.getElementById('loss-chart').focus()")
    tab.key('Home')
    assert ', 1 pass,' in tab.text('read'), tab.text('read')


@in_browser
def a_diagonal_preconditioner_is_told(mock, page):
    tab = page(mock(step=4, preconditioner={'kind': 'diagonal', 'in_force': True, 'refreshes': 0,
                                            'passes': 0.0}))
    text = tab.text('safeguards')
    assert 'diagonal preconditioner' in text, text


@in_browser
def refreshes_of_the_preconditioner_are_told_with_what_they_cost(mock, page):
    tab = page(mock(step=4, preconditioner={'kind': 'block', 'in_force': True, 'refreshes': 2,
                                            'passes': 1.26}))
    text = tab.text('safeguards')
    assert '2 refreshes of the preconditioner, in force, 1.3 passes' in text, text


@in_browser
def earlier_runs_are_drawn_beside_this_one(mock, page):
    job = mock(step=40, earlier=8, run=9)
    tab = page(job)
    tab.until("document.querySelectorAll('#runs input').length === 8")
    for row in range(6):
        tab.run(f"document.querySelectorAll('#runs input')[{row}].click()")
    tab.until("[...known.overlays.values()].every(overlay => overlay.steps.last === 90)")
    settle(tab)
    assert tab.run("document.querySelectorAll('#shown svg').length") == 7
    assert tab.run("document.querySelectorAll('#runs input')[7].disabled"), 'there is room for six'
    assert_fits(tab, 390)
    tab.run("document.querySelectorAll('#runs input')[0].click()")
    assert tab.run('known.overlays.size') == 5


@in_browser
def processes_are_sorted_by_what_is_clicked(mock, page):
    tab = page(mock(replicas=30))
    tab.run("[...document.querySelectorAll('#processes th button')]"
            ".find(button => button.textContent === 'chunks/s').click()")
    rates = tab.run("[...document.querySelectorAll('#processes tbody tr')]"
                    ".map(row => row.cells[2].textContent)")
    figures = [float(rate.replace('–', '0')) for rate in rates]
    assert figures == sorted(figures, reverse=True), rates


@in_browser
def text_from_the_coordinator_is_never_markup(mock, page):
    evil = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>" onload="hacked=1'
    tab = page(mock(job=evil, host=evil, events=[(evil, evil)], notes={40: evil},
                    safeguards={evil: 2}, reason=evil, converged=False, shortfall=[evil],
                    settings={evil: evil, 'list': [evil], 'deep': {evil: [evil]}}))
    assert tab.text('job') == evil and evil in tab.run('document.body.innerText')
    assert evil in tab.text('shortfall'), tab.text('shortfall')
    tab.run("document.getElementById('loss-chart').focus()")
    tab.key('End')
    assert evil in tab.text('read')
    assert tab.run('typeof window.hacked') == 'undefined'
    assert tab.run("document.querySelectorAll('body img, script').length") == 1
    assert_fits(tab, 390)


@in_browser
def nothing_is_asked_of_anybody_else(mock, page):
    job = mock()
    tab = page(job)
    others = [url for url in tab.requests if not url.startswith((job.url, 'data:'))]
    assert not others and len(tab.requests) > 4, tab.requests


@in_browser
def without_scripts_it_says_where_the_figures_are(mock, page):
    job = mock()
    tab = browser().open(job.url, scripts=False)
    try:
        text = tab.run('document.body.innerText')
        assert '/api/v1/status' in text, text
    finally:
        tab.close()


# ---- how it follows a run ----

@in_browser
def it_follows_a_run_without_moving_what_is_there(mock, page):
    job = mock(step=40, events=EVENTS)
    tab = page(job)
    height = tab.run('document.documentElement.scrollHeight')
    job.asked.clear()
    job.step, job.share = 55, .9
    tab.until("known.steps.last === 55")
    settle(tab)
    assert tab.text('step') == '55'
    assert [path for path in job.asked if 'steps' in path][0] == '/api/v1/steps?since=41', job.asked
    assert tab.run('document.documentElement.scrollHeight') == height
    job.events = EVENTS + [('lost', 'shard 0 was lost: connection reset')]
    tab.until("document.getElementById('events').textContent.includes('shard 0 was lost')")
    assert 'shard 0' in tab.run("document.querySelector('#events li').textContent"), 'newest first'


@in_browser
def steps_that_are_redone_replace_those_rolled_back(mock, page):
    job = mock(step=40)
    tab = page(job)
    job.loss_shift, job.step = 1, 35
    tab.until('tick(), known.steps.last === 35')
    job.step = 38
    tab.until('tick(), known.steps.last === 38')
    losses = tab.run("[34, 35, 36].map(step => known.steps.at(step, 'loss'))")
    assert losses[0] < 1 < losses[1] and losses[2] > 1, losses


@in_browser
def another_run_begins_with_empty_charts(mock, page):
    job = mock(step=40, events=EVENTS)
    tab = page(job)
    job.run, job.pid, job.step, job.events = 4, 4712, 3, []
    tab.until('tick(), known.steps.last === 3')
    settle(tab)
    assert tab.text('run').startswith('run 4'), tab.text('run')
    assert tab.run("document.querySelectorAll('#events li').length") == 0


@in_browser
def a_lost_coordinator_is_shown_as_lost_until_it_is_back(mock, page):
    job = mock(step=40)
    tab = page(job)
    job.stop()
    tab.until("document.getElementById('connection').className === 'lost'")
    text = tab.text('link')
    assert 'no answer from the coordinator since' in text and 'lost or ended' in text, text
    assert tab.run("document.body.classList.contains('stale')")
    assert tab.text('state') == 'was running', tab.text('state')
    assert tab.text('step') == '40' and colours_in(tab, 'loss-chart') > 4, 'the last picture stays'
    assert_readable(tab)
    assert_fits(tab, 390)
    job.step = 44
    job.start()
    tab.until(LIVE)
    tab.until('known.steps.last === 44')
    assert not tab.run("document.body.classList.contains('stale')")
    refused = [error for error in tab.errors if 'ERR_' in error]
    assert refused == tab.errors, tab.errors
    tab.errors.clear()  # the browser's own words about connections refused


@in_browser
def a_run_that_was_ending_has_ended(mock, page):
    job = mock(step=90, state='reading the model', reason='gradient tolerance')
    tab = page(job)
    job.stop()
    tab.until("tick(), document.getElementById('connection').className === 'ended'")
    assert 'the run has ended (gradient tolerance)' in tab.text('link'), tab.text('link')
    job.start()
    tab.until('tick(), ' + LIVE)
    tab.errors.clear()


@in_browser
def a_run_that_has_ended_shows_whether_it_has_converged_and_why_not(mock, page):
    job = mock(step=60)
    tab = page(job)
    assert not tab.run("document.getElementById('shortfall').offsetParent")
    job.state, job.reason, job.converged = 'running on_publish', 'step limit', False
    job.shortfall = ['the gradient is still 0.03', 'raise max_steps (60)']
    tab.until("document.getElementById('shortfall').offsetParent !== null")
    assert tab.text('state') == 'running on_publish: step limit, not converged', tab.text('state')
    items = tab.run("[...document.querySelectorAll('#shortfall li')].map(item => item.textContent)")
    assert items == job.shortfall, items
    assert_fits(tab, 390)
    job.stop()
    tab.until("tick(), document.getElementById('connection').className === 'ended'")
    assert 'has ended (step limit, not converged)' in tab.text('link'), tab.text('link')
    job.reason, job.converged, job.shortfall = 'gradient tolerance', True, None
    job.start()
    tab.until("tick(), document.getElementById('state').textContent.endsWith(', converged')")
    assert not tab.run("document.getElementById('shortfall').offsetParent")
    tab.errors.clear()


@in_browser
def earlier_runs_show_whether_they_have_converged(mock, page):
    tab = page(mock())
    column = tab.run("[...document.querySelectorAll('#runs th')]"
                     ".findIndex(head => head.textContent === 'converged')")
    shown = tab.run("[...document.querySelectorAll('#runs tbody tr')]"
                    f".map(row => row.cells[{column}].textContent)")
    assert shown == ['no', 'yes'], shown


@in_browser
def a_hidden_page_asks_seldom(mock, page):
    job = mock()
    tab = page(job)
    tab.run("Object.defineProperty(document, 'visibilityState', "
            "{ value: 'hidden', configurable: true })")
    time.sleep(1.1)
    job.asked.clear()
    time.sleep(1.5)
    assert len([path for path in job.asked if 'status' in path]) <= 1, job.asked
    job.step = 50
    tab.run("delete document.visibilityState; "
            "document.dispatchEvent(new Event('visibilitychange'))")
    tab.until('document.visibilityState === "visible"')
    tab.until('known.steps.last === 50')


@in_browser
def an_endless_run_takes_no_more_room(mock, page):
    tab = page(mock())
    found = json.loads(tab.run('''(() => {
        const steps = new Steps();
        for (let i = 0; i < 300000; i++)
          steps.add({ step: i, loss: i === 1234 ? -5 : 1 / (i + 1), gradient_max: 1, note: 'n' });
        return JSON.stringify([steps.size, steps.last, steps.range('loss'), steps.notes.size]);
        })()'''))
    assert found[0] <= 20000 and found[1] == 299999 and found[2] == [-5, 1], found
    assert found[3] <= 1000, found


# ---- what has ended ----

def outcome(classes):
    """Figures of a model of so many classes, as a result has them."""
    names = [f'kind {i}' for i in range(classes)]
    counts = [[1000 // (1 + 3 * abs(i - j)) for j in range(classes)] for i in range(classes)]
    figures = {'examples': 20000, 'loss': .25, 'accuracy': .9, 'average_precision': None,
               'classes': [{'class': name, 'examples': sum(row), 'precision': .8}
                           for name, row in zip(names, counts)], 'confusion': counts}
    return {'holdout': figures, 'test': {**figures, 'accuracy': .875},
            'model': 'adult.state/models/3', 'model_sha256': 'c0ffee' * 10 + 'c0ff'}


@in_browser
def the_model_and_its_figures_are_shown_once_there_are_any(mock, page):
    job = mock(step=40)
    tab = page(job)
    assert not tab.run("document.getElementById('outcome').offsetHeight")
    job.outcome = outcome(3)
    tab.until("document.getElementById('outcome').offsetHeight > 0")
    rows = tab.run("[...document.querySelectorAll('#outcome-parts tr')].map(row => "
                   "[...row.cells].map(cell => cell.textContent))")
    at = rows.index(['accuracy', '0.9', '0.875'])
    assert rows[at + 1] == ['accuracy of the largest class', '0.075', '0.075'], 'of 1500 in 20000'
    assert ['average precision', '–', '–'] in rows, rows
    assert ['kind 1', '250', '1,000', '250'] in rows, rows
    assert 'c0ffee' in tab.text('model'), tab.text('model')
    shown_in_every_way(tab)


def sweep_row(l2, mean, chosen, **more):
    return {'l2': l2, 'l1': 0., 'run': 4, 'nonzero': None, 'chosen': chosen,
            'score': {'mean': mean, 'standard_error': .0125, 'folds': []}, **more}


@in_browser
def the_values_of_a_sweep_are_a_table(mock, page):
    sweep = {'number': 1, 'runs': 12, 'done': 9, 'folds': 3, 'choose': 'best',
             'choose_by': 'average_precision', 'path': []}
    job = mock(step=40, outcome={'sweep': sweep})
    tab = page(job)
    assert not tab.run("document.querySelectorAll('.sweep').length")
    rows = "[...document.querySelectorAll('.sweep tr')].map(row => " \
           "[...row.cells].map(cell => cell.textContent))"
    sweep['path'] = [sweep_row(.1, .75, False), sweep_row(.01, .875, True),
                     sweep_row(0, None, False, run=None)]
    tab.until("document.querySelectorAll('.sweep tr').length == 4")
    assert tab.run(rows) == [
        ['l2', 'average precision, mean of 3 folds', 'std error', 'run', ''],
        ['0.1', '0.75', '0.013', '4', ''], ['0.01', '0.875', '0.013', '4', 'chosen'],
        ['0', '–', '0.013', '–', '']], tab.run(rows)
    assert tab.run("document.querySelectorAll('.spread').length") == 2, 'standard errors of the means'
    assert tab.run('errorOf(known.status.sweep.path[0])') == .0125, 'as the table has it'
    assert tab.run("document.querySelectorAll('.curves .inforce').length") == 1, 'what was chosen'
    job.outcome = {'sweep': {**sweep, 'folds': 0, 'choose_by': 'loss', 'path': [
        sweep_row(.1, .5, False, l1=.25, nonzero=1234), sweep_row(.1, .25, True, nonzero=7)]}}
    tab.until("document.querySelectorAll('.sweep tr').length == 3")
    assert tab.run(rows) == [['l2', 'l1', 'loss on the holdout', 'nonzero', 'run', ''],
                             ['0.1', '0.25', '0.5', '1,234', '4', ''],
                             ['0.1', '0', '0.25', '7', '4', 'chosen']], tab.run(rows)
    shown_in_every_way(tab)


def curves(count):
    """Of a model whose probabilities are right, as a result has them."""
    part = [(i + 1) / count for i in range(count)]
    tenths = [{'from': k / 10, 'to': (k + 1) / 10, 'examples': 100., 'probability': k / 10 + .05,
               'frequency': k / 10 + .05} for k in range(10)]
    return {'thresholds': [], 'gains': [], 'reliability': tenths,
            'points': {'threshold': [1 - p for p in part], 'recall': [p ** .5 for p in part],
                       'precision': [1 - p / 2 for p in part], 'share': part,
                       'false_positive_rate': [p ** 2 for p in part]}}


@in_browser
def curves_of_two_classes_are_drawn_with_the_threshold(mock, page):
    job = mock(outcome=outcome(2))
    tab = page(job)
    assert not tab.run("document.querySelectorAll('.curves').length")
    for over in 'holdout', 'test':
        job.outcome[over].update(curves=curves(150), threshold=.25, auc=.875)
    tab.until("document.querySelectorAll('.curves svg').length == 8")
    labels = tab.run("[...document.querySelectorAll('.curves svg')].map(svg => "
                     "svg.getAttribute('aria-label'))")
    assert labels[0] == 'ROC curve on the holdout: area 0.875', labels
    assert tab.run("document.querySelectorAll('.curves .inforce').length") == 6
    assert 'the threshold, 0.25;' in tab.run("document.querySelector('.curves p').textContent")
    shown_in_every_way(tab)


@in_browser
def the_confusion_of_ten_digits_fits_a_narrow_page(mock, page):
    digits = outcome(10)
    for over in digits['holdout'], digits['test']:
        over['classes'] = [{**entry, 'class': str(i)} for i, entry in enumerate(over['classes'])]
        over['confusion'] = [[count // 11 for count in row] for row in over['confusion']]
    tab = page(mock(outcome=digits))
    tab.resize(400)
    settle(tab)
    box = "document.querySelector('.confusion').parentNode"
    assert tab.run(f'{box}.scrollWidth <= {box}.clientWidth'), tab.run(f'{box}.scrollWidth')
    corner = tab.run("document.querySelector('.confusion th').offsetHeight")
    assert corner < 50, f'the corner is {corner} high'


@in_browser
def the_confusion_of_many_classes_is_a_picture(mock, page):
    tab = page(mock(outcome=outcome(100)))
    assert tab.run("document.querySelectorAll('.confusion td').length") == 2 * 100 * 100
    assert tab.run("document.querySelector('.confusion td').title") == 'kind 0 taken for kind 0: 1000'
    shown_in_every_way(tab)


if __name__ == '__main__':
    sys.exit(main())
