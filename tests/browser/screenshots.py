#!/usr/bin/env python3
"""Takes a picture of the page of a real job: screenshots.py FILE [WIDTH [light|dark]]."""

import collections
import itertools
import os
import pathlib
import random
import re
import signal
import struct
import sys
import tempfile
import zlib

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
        page.run("document.getElementById('explain-row').value = '1:0.9 4:-0.3 11:0.6 27:-0.2'")
        page.until("document.getElementById('explain-form').offsetHeight > 0")
        page.run("document.getElementById('explain-ask').click()")
        page.until("document.getElementById('explain-answer').textContent")
        page.run("document.querySelector('#explain-answer .scroll').style.maxHeight = '190px'")
        page.run("for (const box of document.querySelectorAll('#runs input')) box.click()")
        page.until(HOLD, seconds=60)
        page.resize(width, page.run("document.querySelector('#processes').getBoundingClientRect()"
                                    ".bottom + scrollY + 18"))
        page.run('draw(), ' + chromium.FRAMES)
        page.screenshot(file, whole=False)
    finally:
        browser.end()


def pixels_of(png):
    """Width and height of a picture of 8 bits a channel, and its rows of bytes."""
    width, height, _, kind = struct.unpack('>IIBB', png[16:26])
    size, parts, at = {2: 3, 6: 4}[kind], b'', 8
    while at < len(png):
        length, name = struct.unpack('>I4s', png[at:at + 8])
        parts += png[at + 8:at + 8 + length] if name == b'IDAT' else b''
        at += 12 + length
    data, rows, above = zlib.decompress(parts), [], bytes(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        how, row = data[start], bytearray(data[start + 1:start + 1 + width * size])
        for i in range(len(row) if how else 0):
            a, b, c = row[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
            p = a + b - c
            row[i] = row[i] + (a, b, (a + b) // 2, min((abs(p - a), 0, a), (abs(p - b), 1, b),
                                                       (abs(p - c), 2, c))[2])[how - 1] & 255
        rows.append(above := bytes(row))
    return width, height, size, rows


def reduce_colours(file, most=32):
    """Writes the picture again with its most frequent colours alone, and each other pixel in the nearest
    of these: what is left out is the blur of letters and lines."""
    width, height, size, rows = pixels_of(pathlib.Path(file).read_bytes())
    lines = [[row[i:i + 3] for i in range(0, len(row), size)] for row in rows]
    counts = collections.Counter(itertools.chain.from_iterable(lines))
    palette = [colour for colour, _ in counts.most_common(most)]
    nearest = {colour: min(range(len(palette)), key=lambda i: sum((x - y) ** 2 for x, y in zip(colour, palette[i])))
               for colour in counts}
    data = b''.join(b'\0' + bytes(nearest[pixel] for pixel in line) for line in lines)

    def chunk(name, content):
        return struct.pack('>I', len(content)) + name + content + struct.pack('>I', zlib.crc32(name + content))
    pathlib.Path(file).write_bytes(
        b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 3, 0, 0, 0)) +
        chunk(b'PLTE', b''.join(palette)) + chunk(b'IDAT', zlib.compress(data, 9)) + chunk(b'IEND', b''))


def main(file, width=1120, scheme='light'):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(folder / 'clicks.libsvm')
        for history in (12, 6):
            train(job(folder, history=history))
        # It goes on until the picture is taken, however busy the machine is.
        process = Process(COORDINATOR, 'run',
                          job(folder, history=3, http='127.0.0.1:0', gradient_tolerance=0,
                              max_steps=20000))
        try:
            url = process.until(
                lambda: re.search(r'http://[0-9.:]+/', process.so_far(process.errors)),
                'the status server')
            picture(url[0], file, int(width), scheme)
        finally:
            process.end()
        reduce_colours(file)


if __name__ == '__main__':
    main(*sys.argv[1:])
