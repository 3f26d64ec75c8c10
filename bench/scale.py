#!/usr/bin/env python3
"""What a run on many hosts costs its coordinator.

Drives the real coordinator and a real shard, over real sockets, with many replicas that speak the
protocol by the real state machine but take modelled times instead of computing
(bench/scale_replicas.c). Each is a host of its own to the coordinator. Chunks are small, so that
there are as many of them for a replica as there would be with terabytes of data
(bench/small_chunks.c).

    make bench-scale                                  some ten minutes
    bench/scale.py [--replicas N ...] [--compute MS ...] [--seconds S] [--profile FILE]

"ms/eval": of the wall clock, to be compared with what a replica computes in an evaluation, and with
what coordinator and all replicas together took of the processors, which they share here. "CPU":
milliseconds of the coordinator's processor time an evaluation. Messages are those between the
coordinator and replicas. /livez is asked for fifty times a second, `status --json` once a second.
"ping": the longest time between two PINGs at any replica; they are due each second.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'tests' / 'integration'))

import metrics_text  # noqa: E402
from harness import BUILD, COORDINATOR, ENDLESS, Process, run, url_of, write_job  # noqa: E402

CHUNKS_A_REPLICA = 16
CHUNKS_LEAST = 1024
PROCESSES = 2
SETTLING_SECONDS = 2
SPREAD = 0.1


def write_data(path, rows):
    """A row fills a chunk. Columns differ in size by four decades, so that there is always another
    step."""
    rng = random.Random(1)
    with open(path, 'w') as file:
        for _ in range(rows):
            columns = sorted(rng.sample(range(1, 201), 20))
            margin = sum(1 if j % 2 else -1 for j in columns) + rng.gauss(0, 4)
            file.write(f'{1 if margin > 0 else -1} ' + ' '.join(
                f'{j}:{rng.random() * 10 ** (-j / 50):.3g}' for j in columns) + '\n')


class Crowd:
    """The processes that hold the replicas."""

    def __init__(self, folder, replicas, chunk_ns):
        self.addresses = [f'unix:{folder}/r-{i}' for i in range(replicas)]
        self.processes = []
        for part in range(PROCESSES):
            first, end = replicas * part // PROCESSES, replicas * (part + 1) // PROCESSES
            if first < end:
                self.processes.append(subprocess.Popen(
                    [BUILD / 'bench/scale_replicas', folder, str(first), str(end - first),
                     str(chunk_ns), str(SPREAD)], stdout=subprocess.PIPE, text=True))
        for process in self.processes:
            assert process.stdout.readline() == 'ready\n'

    def cpu_seconds(self):
        return sum(cpu_seconds(process.pid) for process in self.processes)

    def end(self):
        """What they exchanged, once the coordinator has dismissed them."""
        figures = [json.loads(process.communicate(timeout=60)[0]) for process in self.processes]
        longest = max(one.pop('ping_gap_s') for one in figures)
        return {**{key: sum(one[key] for one in figures) for key in figures[0]},
                'ping_gap_s': longest}

    def kill(self):
        for process in self.processes:
            process.kill()


def cpu_seconds(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Asker(threading.Thread):
    """Asks again and again while the run goes on, and notes how long each answer took."""

    def __init__(self, pause, ask):
        super().__init__(daemon=True)
        self.pause, self.ask, self.over, self.seconds = pause, ask, threading.Event(), []
        self.start()

    def run(self):
        while not self.over.wait(self.pause):
            start = time.monotonic()
            self.ask()
            self.seconds.append(time.monotonic() - start)

    def milliseconds(self):
        """Median, 99th of a hundred, longest."""
        self.over.set()
        self.join()
        times = sorted(self.seconds)
        return [1e3 * t for t in (statistics.median(times), times[len(times) * 99 // 100], times[-1])]


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def sample(url):
    samples, wrong = metrics_text.read(get(url + '/metrics'))
    assert not wrong, wrong
    return {name: value for (name, labels), value in samples.items() if not labels}


def sample_beyond(url, before):
    """A sample in which more evaluations are made, or None: on a busy machine one may take longer than
    what is measured."""
    after = sample(url)
    return after if after['dml_evaluations_total'] > before['dml_evaluations_total'] else None


def measure(folder, shards, replicas, compute_ms, seconds, profile):
    rows = max(CHUNKS_A_REPLICA * replicas, CHUNKS_LEAST)
    write_data(folder / 'data.libsvm', rows)
    job = write_job(folder, data=['data.libsvm'], history=1, precondition='none', shards=shards,
                    http='127.0.0.1:0', **ENDLESS)
    chunks = json.loads(run(BUILD / 'bench/scale_pack', 'pack', job, '--json').stdout)['chunks']
    crowd = Crowd(folder, replicas, compute_ms * 1e6 * replicas / chunks)
    with open(job, 'a') as file:
        file.write('replica_addresses = { ' + ', '.join(f'"{a}"' for a in crowd.addresses) + ' }\n')
    process = Process(COORDINATOR, 'run', job)
    try:
        return observe(job, process, crowd, chunks, replicas, compute_ms, seconds, profile)
    finally:
        process.end()
        crowd.kill()


def observe(job, process, crowd, chunks, replicas, compute_ms, seconds, profile):
    started = time.monotonic()
    url = url_of(process).rstrip('/')
    process.until(lambda: sample(url).get('dml_evaluations_total', 0) >= 2, 'it evaluates')
    ready = time.monotonic() - started
    time.sleep(SETTLING_SECONDS)
    perf = profile and subprocess.Popen(['perf', 'record', '-q', '-g', '-p', str(process.pid), '-o',
                                         profile], stderr=subprocess.DEVNULL)
    live = Asker(0.02, lambda: get(url + '/livez'))
    status = Asker(1, lambda: run(COORDINATOR, 'status', job, '--json'))
    before, cpu, start = sample(url), crowd.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    after = process.until(lambda: sample_beyond(url, before), 'an evaluation ends')
    cpu, took = crowd.cpu_seconds() - cpu, time.monotonic() - start
    live, status = live.milliseconds(), status.milliseconds()
    if perf:
        perf.terminate()
        perf.wait()
    process.until(lambda: not run(COORDINATOR, 'cancel', job).status, 'it is cancelled')
    process.wait()
    told = crowd.end()
    evaluations = after['dml_evaluations_total'] - before['dml_evaluations_total']
    total = after['dml_evaluations_total'] + 1
    coordinator = after['process_cpu_seconds_total'] - before['process_cpu_seconds_total']
    return {
        'replicas': replicas, 'compute ms': compute_ms, 'chunks': chunks,
        'ms/eval': f'{1e3 * took / evaluations:.1f}', 'evals/s': f'{evaluations / took:.2f}',
        'messages/eval': f'{(told["received"] + told["sent"]) / total:.0f}',
        'messages/s': f'{(told["received"] + told["sent"]) / total * evaluations / took:.0f}',
        'portions/eval': f'{told["portions"] / total:.0f}',
        'flushes/eval': f'{told["flushes"] / total:.0f}',
        'CPU ms/eval': f'{1e3 * coordinator / evaluations:.2f}',
        'replicas\' CPU': f'{1e3 * cpu / evaluations:.1f}',
        'CPU %': f'{100 * coordinator / took:.0f}',
        'MB': f'{after["process_resident_memory_bytes"] / 1e6:.0f}',
        'ready s': f'{ready:.1f}', 'ping s': f'{told["ping_gap_s"]:.2f}',
        '/livez ms': ' '.join(f'{ms:.1f}' for ms in live),
        'status ms': ' '.join(f'{ms:.0f}' for ms in status),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--replicas', type=int, nargs='+', default=[10, 100, 1000])
    parser.add_argument('--compute', type=float, nargs='+', default=[0, 100, 1000, 10000])
    parser.add_argument('--shards', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--profile')
    options = parser.parse_args()
    header = False
    for compute_ms in options.compute:
        for replicas in options.replicas:
            folder = pathlib.Path(tempfile.mkdtemp(prefix='dml-scale-'))
            seconds = max(options.seconds, 3.2 * compute_ms / 1e3)
            try:
                row = measure(folder, options.shards, replicas, compute_ms, seconds, options.profile)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            if not header:
                print('| ' + ' | '.join(row) + ' |\n|' + '---|' * len(row))
                header = True
            print('| ' + ' | '.join(str(value) for value in row.values()) + ' |', flush=True)


if __name__ == '__main__':
    main()
