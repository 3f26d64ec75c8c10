"""Prints what the machine and the programs do, measured side by side in this run: arithmetic per
stored value, history passes beside a plain read of memory, packing, and what an evaluation of a
real run costs beyond its bare arithmetic, on narrow data and on wide. `make bench` builds what it
needs."""

import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
from harness import BUILD, COORDINATOR, SHARED, lines_of, write_job  # noqa: E402
from wide_text import write_wide_text  # noqa: E402

PACKING_BYTES = 64 << 20


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def heading(text):
    print(f'\n== {text}', flush=True)


def kernels():
    heading('arithmetic and memory, one thread where nothing is said')
    print(run(BUILD / 'bench/bench_kernels'), end='')


def a9a_text():
    path = SHARED / 'a9a.gz'
    return '\n'.join(lines_of(path)) + '\n' if path.exists() else None


def packing(folder, text):
    heading('packing: text to packs and chunks, all processors')
    data = folder / 'large.libsvm'
    data.write_text(text * (PACKING_BYTES // len(text) + 1))
    job = write_job(folder, data=[data.name], name='packing')
    start = time.monotonic()
    run(COORDINATOR, 'pack', job)
    seconds = time.monotonic() - start
    size = data.stat().st_size
    print(f'{size / 1e6:.0f} MB of LIBSVM text in {seconds:.2f} s: {size / 1e6 / seconds:.0f} MB/s')


def milliseconds_per_evaluation(state):
    """From the first step to the last: evaluations, rounds and all that lies between them."""
    with sqlite3.connect(state / 'dml.db') as store:
        (first, last), = store.execute('SELECT min(wall_ms), max(wall_ms) FROM steps')
        evaluations, = store.execute('SELECT count(*) - 1 FROM evaluations').fetchone()
        arithmetic = [row[0] * 1e3 for row in store.execute('SELECT seconds FROM evaluations')]
    return (last - first) / evaluations, statistics.median(arithmetic), evaluations


def beside_bare(folder, name, threads, passes, **keys):
    """Trains without tolerances. Milliseconds of the median bare pass, of the median evaluation,
    and of an evaluation with both rounds; and how many there were."""
    job = write_job(folder, name=name, gradient_tolerance=0, loss_tolerance=0, **keys)
    state = folder / f'{name}.state'
    run(COORDINATOR, 'run', job, '--quiet', '--state', state)
    data, = state.glob('**/*.set')
    bare = float(run(BUILD / 'bench/bench_pass', data, 'logistic', threads, passes).split()[0])
    whole, evaluation, evaluations = milliseconds_per_evaluation(state)
    return bare, evaluation, whole, evaluations


def overhead(folder, text):
    heading('an evaluation of a9a: 2 replicas of 1 thread, 2 shards')
    (folder / 'a9a').write_text(text)
    found = []
    for repeat in range(3):
        bare, evaluation, whole, evaluations = beside_bare(
            folder, f'overhead{repeat}', 2, 300, data=['a9a'], l2=1e-6, replicas=2, shards=2,
            threads=1, max_steps=500)
        found.append(whole - bare)
        print(f'{evaluations} evaluations: bare arithmetic {bare:.3f} ms, the evaluation '
              f'{evaluation:.3f} ms, with both rounds {whole:.3f} ms: overhead {whole - bare:.3f} ms')
    print(f'overhead per evaluation, median: {statistics.median(found):.3f} ms')


def wide(folder, source):
    heading('an evaluation of wide text (bench/wide_text.py --binary): 11 pairs, the layout of auto')
    write_wide_text(source, folder / 'wide', binary=True)
    threads = len(os.sched_getaffinity(0))
    found = []
    for repeat in range(3):
        bare, evaluation, whole, evaluations = beside_bare(
            folder, f'wide{repeat}', threads, 30, data=['wide'], l2=1e-4, history=11, max_steps=40,
            checkpoint_seconds=1000)
        found.append(whole / bare)
        print(f'{evaluations} evaluations: bare arithmetic {bare:.1f} ms, the evaluation '
              f'{evaluation:.1f} ms, with both rounds {whole:.1f} ms: {whole / bare:.2f} times')
    print(f'an evaluation by its bare arithmetic, median: {statistics.median(found):.2f}')


def main():
    kernels()
    text = a9a_text()
    if text is None:
        print('\npacking and overhead: skipped, a9a is not here')
        return
    with tempfile.TemporaryDirectory(prefix='dml-bench-') as name:
        packing(pathlib.Path(name), text)
        overhead(pathlib.Path(name), text)
        if (SHARED / 'news20.libsvm.gz').exists():
            wide(pathlib.Path(name), SHARED / 'news20.libsvm.gz')
        else:
            print('\nwide text: skipped, news20 is not here')


main()
