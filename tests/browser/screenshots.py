#!/usr/bin/env python3
"""Takes a picture of the page of a real job: screenshots.py FILE [WIDTH [light|dark]]."""

import os
import pathlib
import random
import re
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

import chromium  # noqa: E402
from harness import COORDINATOR, Process, train, write_job  # noqa: E402

ROWS, FEATURES = 150000, 60

# Asks until there is something to see in the running evaluation, then holds the page still.
HOLD = '''(() => {
    if (link.busy) return false;
    const { counted, chunks, map } = known.status.evaluation;
    if (known.steps.last < 250 || known.overlays.size < 2 || map.length < 5 ||
        counted < .3 * chunks || counted > .8 * chunks) { tick(); return false; }
    clearTimeout(link.timer);
    return link.busy = true; })()'''


def make_data(path):
    """Examples with features of ever smaller scale, so that there is something to optimize."""
    rng = random.Random(7)
    weights = [rng.gauss(0, 1) for _ in range(FEATURES + 1)]
    with open(path, 'w') as file:
        for _ in range(ROWS):
            values = {j: rng.gauss(0, 1) * 10 ** (-2.2 * j / FEATURES)
                      for j in sorted(rng.sample(range(1, FEATURES + 1), 12))}
            margin = sum(3 * weights[j] * x for j, x in values.items()) + rng.gauss(0, 1)
            file.write(f'{1 if margin > 0 else -1} ' +
                       ' '.join(f'{j}:{x:.4g}' for j, x in values.items()) + '\n')


def job(folder, **settings):
    return write_job(folder, 'clicks', **{
        'data': ['clicks.libsvm'], 'l2': 1e-7, 'replicas': 4, 'shards': 1, 'threads': 1,
        'flush_ms': 20, 'portion_chunks': 8, 'loss_tolerance': 0, 'gradient_tolerance': 1e-7,
        'precondition': 'none', 'directions': 0,  # many steps, as there are in harder jobs
        **settings})


def lose_a_replica(page):
    """Something for the list of events."""
    pids = page.run("known.status.processes.filter(p => p.role === 'replica').map(p => p.pid)")
    os.kill(pids[2], signal.SIGKILL)
    page.until("known.eventsSeen > 0 && known.status.processes.every(p => p.state === 'running')")


def picture(url, file, width, scheme):
    browser = chromium.Browser()
    try:
        page = browser.open(url, width=width, scheme=scheme)
        page.until('known.steps.last > 100', seconds=60)
        lose_a_replica(page)
        page.run("for (const box of document.querySelectorAll('#runs input')) box.click()")
        page.until(HOLD, seconds=60)
        page.resize(width, page.run("document.querySelector('#processes').getBoundingClientRect()"
                                    ".bottom + scrollY + 18"))
        page.run('draw(), ' + chromium.FRAMES)
        page.screenshot(file, whole=False)
    finally:
        browser.end()


def main(file, width=1120, scheme='light'):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(folder / 'clicks.libsvm')
        for history in (12, 6):
            train(job(folder, history=history))
        # It goes on until the picture is taken, however busy the machine is.
        process = Process(COORDINATOR, 'run',
                          job(folder, history=3, http='127.0.0.1:0', gradient_tolerance=0))
        try:
            url = process.until(
                lambda: re.search(r'http://[0-9.:]+/', process.so_far(process.errors)),
                'the status server')
            picture(url[0], file, int(width), scheme)
        finally:
            process.end()


if __name__ == '__main__':
    main(*sys.argv[1:])
