#!/usr/bin/env python3
"""Synchronous, stale and asynchronous minibatches, simulated: what each gains and what it costs.

    bench/synchrony.py [throughput | staleness | order | bits]...

    throughput  minibatches a unit of time at four workers, as they are and with one ten times as
                slow, by events; a minibatch takes one unit of time on one worker.
    staleness   Adagrad on Fashion-MNIST 784-100-10 with gradients of a point some minibatches back:
                the loss after each of three epochs, by seeds.
    order       the same without delay, by the order of rows: anew in each epoch; shuffled once,
                then neighbouring chunks together; the same of rows that are sorted by class.
    bits        the same, by four threads that race for one x as Hogwild's do: hashes of x of runs
                that are told the same.

All but the first need numpy and the shared data sets. doc/SYNCHRONY.md says what follows from it.
"""

import hashlib
import heapq
import random
import statistics
import sys
import threading

WORKERS, SLOWDOWN = 4, 10
PORTIONS = 16
LATENCY = 0.02   # of a minibatch's time: to fetch x and to hand in what came out
HANDING = 0.002  # to be given another portion of the same minibatch
SPREAD = 0.1     # standard deviation of the logarithm of a time
HICCUP, LONGER = 0.01, 3  # one time in a hundred is that much longer
MINIBATCHES = 4000


# ---- throughput ----

class Workers:
    """Times of work, by seed. `share` is that of a minibatch."""

    def __init__(self, slow):
        self.random = random.Random(1)
        self.factor = [1] * WORKERS
        if slow:
            self.factor[-1] = SLOWDOWN

    def takes(self, worker, share):
        longer = LONGER if self.random.random() < HICCUP else 1
        return self.factor[worker] * share * longer * self.random.lognormvariate(0, SPREAD)


def equal_parts(workers, needed=WORKERS):
    """A part for each worker, and the next minibatch when `needed` parts are there: the others are
    lost. A worker that is behind ends its part before it begins another."""
    free, now = [0] * WORKERS, 0
    for _ in range(MINIBATCHES):
        begins = [max(now, time) for time in free]
        ends = [begins[w] + LATENCY + workers.takes(w, 1 / needed) for w in range(WORKERS)]
        now = sorted(ends)[needed - 1]
        free = [ends[w] if begins[w] < now else free[w] for w in range(WORKERS)]
    return MINIBATCHES / now


def next_portion(left, done, now):
    """One that nobody has; else a copy of that which would be done last; else None."""
    if left:
        return left.pop()
    late = [portion for portion, end in done.items() if end > now]
    return max(late, key=done.get) if late else None


def one_in_portions(workers, free, begin):
    """When the minibatch is done. `free` is when each worker is, and is changed: a copy that comes
    late is dropped, but its worker ends it."""
    left, done = list(range(PORTIONS)), {}
    events = [(max(begin, free[w]) + LATENCY, w) for w in range(WORKERS)]
    heapq.heapify(events)
    while events:
        now, worker = heapq.heappop(events)
        portion = next_portion(left, done, now)
        if portion is None:
            continue
        end = now + HANDING + workers.takes(worker, 1 / PORTIONS)
        done[portion] = min(end, done.get(portion, end))
        free[worker] = end
        heapq.heappush(events, (end, worker))
    return max(done.values())


def portions(workers):
    free, now = [0] * WORKERS, 0
    for _ in range(MINIBATCHES):
        now = one_in_portions(workers, free, now)
    return MINIBATCHES / now


def own_minibatches(workers, bound):
    """Each worker has minibatches of its own, and is at most `bound` of them ahead of the last;
    with None it never waits."""
    count, waiting, now = [0] * WORKERS, set(range(WORKERS)), 0
    events = []
    while sum(count) < MINIBATCHES:
        for worker in sorted(waiting):
            if bound is None or count[worker] - min(count) <= bound:
                waiting.remove(worker)
                heapq.heappush(events, (now + LATENCY + workers.takes(worker, 1), worker))
        now, worker = heapq.heappop(events)
        count[worker] += 1
        waiting.add(worker)
    return MINIBATCHES / now


SCHEMES = (
    ('bulk, a part for each worker (BSP)', lambda w: equal_parts(w)),
    ('bulk, of 3 parts the first 3 of 4 (backup workers)', lambda w: equal_parts(w, WORKERS - 1)),
    (f'bulk, {PORTIONS} portions and backup copies', portions),
    ('stale by 1 at most (SSP)', lambda w: own_minibatches(w, 1)),
    ('stale by 4 at most (SSP)', lambda w: own_minibatches(w, 4)),
    ('asynchronous (ASP)', lambda w: own_minibatches(w, None)),
)


def show_throughput():
    print(f'| {WORKERS} workers: minibatches a unit of time | all alike '
          f'| one {SLOWDOWN} times as slow |')
    print('|---|---|---|')
    for name, scheme in SCHEMES:
        print(f'| {name} | {scheme(Workers(False)):.2f} | {scheme(Workers(True)):.2f} |',
              flush=True)


# ---- staleness ----

HIDDEN, CLASSES, L2, EPOCHS = 100, 10, 1e-4, 3
BATCH, CHUNK = 128, 64
RATE, LOWER_RATE = 0.05, 0.02
DELAYS = 0, 4, 8, 32
SEEDS = 1, 2, 3


class Network:
    """784-100-10 tanh on centred pixels from 0 to 1; x is one vector of W1, b1, W2, b2."""

    def __init__(self):
        import numpy as np
        from networks import files_of, numbers
        self.np = np
        pixels, labels = (numbers(path) for path in files_of('train'))
        self.rows = pixels.astype(np.float32) / 255
        self.rows -= self.rows.mean(axis=0)
        self.classes = np.eye(CLASSES, dtype=np.float32)[labels.ravel()]
        inputs = self.rows.shape[1]
        self.shapes = (inputs, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)
        self.ends = np.cumsum([np.prod(shape) for shape in self.shapes])

    def tensors(self, x):
        return [part.reshape(shape)
                for part, shape in zip(self.np.split(x, self.ends[:-1]), self.shapes)]

    def start(self, seed):
        x = self.np.zeros(self.ends[-1])
        throws = self.np.random.default_rng(seed)
        for part in self.tensors(x)[::2]:
            bound = (6 / sum(part.shape)) ** 0.5
            part[:] = throws.uniform(-bound, bound, part.shape)
        return x

    def forward(self, x, rows):
        w1, b1, w2, b2 = self.tensors(x.astype(self.np.float32))
        units = self.np.tanh(self.rows[rows] @ w1 + b1)
        margins = units @ w2 + b2
        margins -= margins.max(axis=1, keepdims=True)
        shares = self.np.exp(margins)
        totals = shares.sum(axis=1, keepdims=True)
        loss = self.np.log(totals).sum() - (margins * self.classes[rows]).sum()
        return loss, units, shares / totals

    def gradient(self, x, rows):
        _, units, shares = self.forward(x, rows)
        w1, _, w2, _ = self.tensors(x)
        errors = (shares - self.classes[rows]) / len(rows)
        hidden = errors @ w2.T.astype(self.np.float32) * (1 - units * units)
        parts = (self.rows[rows].T @ hidden + L2 * w1, hidden.sum(axis=0),
                 units.T @ errors + L2 * w2, errors.sum(axis=0))
        return self.np.concatenate([part.ravel() for part in parts])

    def mean_loss(self, x):
        w1, _, w2, _ = self.tensors(x)
        every = range(0, len(self.rows), 1000)
        loss = sum(self.forward(x, slice(first, first + 1000))[0] for first in every)
        return loss / len(self.rows) + L2 / 2 * ((w1 * w1).sum() + (w2 * w2).sum())

    def fresh(self, throws):
        """Minibatches of an epoch, of rows in an order of its own."""
        order = throws.permutation(len(self.rows))
        return [order[first:first + BATCH] for first in range(0, len(order), BATCH)]

    def runs(self, throws, order):
        """Minibatches of an epoch, of neighbouring chunks of rows in this order."""
        np = self.np
        chunks = np.roll(np.arange(-(-len(order) // CHUNK)), -throws.integers(len(order) // CHUNK))
        firsts = BATCH // CHUNK * throws.permutation(-(-len(chunks) * CHUNK // BATCH))
        return [np.concatenate([order[chunk * CHUNK:chunk * CHUNK + CHUNK]
                                for chunk in chunks[first:first + BATCH // CHUNK]])
                for first in firsts]

    def step(self, x, sums, gradient, rate=RATE):
        """Adagrad, in place."""
        sums += gradient * gradient
        x -= rate * gradient / (self.np.sqrt(sums) + 1e-10)


def losses_of(network, seed, delays, minibatches, rate):
    """After each epoch; `delays` has each epoch's: a step is made with the gradient of x as it was
    so many minibatches ago. `minibatches` makes those of an epoch."""
    x = network.start(seed)
    sums, throws = network.np.zeros_like(x), network.np.random.default_rng(seed)
    losses, under_way = [], []
    for delay in delays:
        for rows in minibatches(throws):
            under_way.append(network.gradient(x, rows))
            while len(under_way) > delay:
                network.step(x, sums, under_way.pop(0), rate)
        losses.append(network.mean_loss(x))
    return losses


def print_losses(network, name, delays, minibatches, rate=RATE):
    """`minibatches` makes what makes those of an epoch, for a seed."""
    losses = [losses_of(network, seed, delays, minibatches(seed), rate) for seed in SEEDS]
    means = ' | '.join(f'{statistics.mean(column):.3f}' for column in zip(*losses))
    print(f'| {name} | {means} |', flush=True)


def print_head():
    print(f'| F after epoch, mean of {len(SEEDS)} seeds | 1 | 2 | 3 |')
    print('|---|---|---|---|')


def show_staleness():
    network = Network()
    cases = [(f'delay {delay}', [delay] * EPOCHS) for delay in DELAYS]
    cases.append((f'delay 0, then {DELAYS[-1]}', [0] + [DELAYS[-1]] * (EPOCHS - 1)))
    print_head()
    for rate in RATE, LOWER_RATE:
        for name, delays in cases:
            print_losses(network, f'rate {rate}, {name}', delays, lambda seed: network.fresh, rate)


# ---- order ----

def show_order():
    network = Network()
    rows = network.np.arange(len(network.rows))
    by_class = network.np.argsort(network.classes.argmax(axis=1), kind='stable')

    def runs_of(order_of):
        return lambda seed: lambda throws: network.runs(throws, order_of(seed))

    shuffled = {seed: network.np.random.default_rng(seed + 100).permutation(rows)
                for seed in SEEDS}
    print_head()
    for name, minibatches in (
            ('all rows anew', lambda seed: network.fresh),
            ('shuffled once, runs of chunks', runs_of(shuffled.get)),
            ('sorted by class, runs of chunks', runs_of(lambda seed: by_class))):
        print_losses(network, name, [0] * EPOCHS, minibatches)


# ---- bits ----

def race(network, threads):
    """The hash of x after half an epoch of which each thread takes minibatches as it is free."""
    x, throws = network.start(1), network.np.random.default_rng(1)
    sums, left = network.np.zeros_like(x), network.fresh(throws)[::2]

    def work():
        while left:
            try:
                rows = left.pop()
            except IndexError:
                return
            network.step(x, sums, network.gradient(x, rows))

    crew = [threading.Thread(target=work) for _ in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return hashlib.sha256(x.tobytes()).hexdigest()[:12], network.mean_loss(x)


def show_bits():
    network = Network()
    for threads in 1, WORKERS:
        runs = [race(network, threads) for _ in range(4)]
        print(f'{threads} threads, four runs: {len({hash for hash, _ in runs})} different x: '
              + ', '.join(f'{hash} (F {loss:.4f})' for hash, loss in runs), flush=True)


def main():
    shows = {'throughput': show_throughput, 'staleness': show_staleness,
             'order': show_order, 'bits': show_bits}
    for word in sys.argv[1:] or shows:
        shows[word]()


if __name__ == '__main__':
    main()
