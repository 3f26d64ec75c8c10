"""Minibatch Adagrad in plain Python: an oracle that shares nothing with the programs. The order of
rows and minibatches is that of doc/FORMATS.md, the step that of Duchi, Hazan and Singer (2011),
Adaptive subgradient methods for online learning and stochastic optimization.

A model is a list of layers, each [in][out] and the biases of its outputs; a linear one has a single
layer. Vectors are numbered as the programs number them: all weights, layer by layer, then all
biases."""

import math

BLOCK_ROWS_MOST = 64
ROW_FLOOR = 0.2  # by the rows of a minibatch, of linear models with classes
MASK = (1 << 64) - 1
GOLDEN = 0x9e3779b97f4a7c15
ROUNDS = 6


# ---- order ----

def mix(x):
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & MASK
    return x ^ x >> 31


def key_of(seed, number):
    return mix((mix(seed) + (number + 1) * GOLDEN) & MASK)


def permuted(index, count, key):
    """Where `index` goes: a Feistel network on numbers of 2·half bits, again until below `count`."""
    half = 1
    while 4 ** half < count:
        half += 1
    while True:
        left, right = index >> half, index & ((1 << half) - 1)
        for number in range(ROUNDS):
            word = mix((key_of(key, number) + right * GOLDEN) & MASK) >> (64 - half)
            left, right = right, left ^ word
        index = left << half | right
        if index < count:
            return index


def shuffled(rows, seed):
    """The rows by their places in the set."""
    key = key_of(seed, 0)
    return [rows[permuted(place, len(rows), key)] for place in range(len(rows))]


def minibatches(rows, size, chunk_rows, seed, epoch):
    """The minibatches of an epoch, from 1, in order: the places of their rows."""
    chunks, blocks = -(-rows // chunk_rows), size // chunk_rows
    count, key = -(-chunks // blocks), key_of(seed, epoch)
    offset = key_of(key, 1) % chunks
    for number in range(count):
        first = blocks * permuted(number, count, key)
        numbers = [(place + offset) % chunks for place in range(first, min(first + blocks, chunks))]
        yield [row for n in numbers
               for row in range(n * chunk_rows, min((n + 1) * chunk_rows, rows))]


def of_epoch(values, epoch):
    return values[min(epoch, len(values)) - 1]


# ---- losses: derivatives by the margins ----

def logistic(label, margins):
    sign = 1 if label else -1
    z = sign * margins[0]
    return [-sign / (1 + math.exp(z)) if z < 0 else -sign * math.exp(-z) / (1 + math.exp(-z))]


def squared(label, margins):
    return [margins[0] - label]


def softmax(label, margins):
    most = max(margins)
    shares = [math.exp(m - most) for m in margins]
    total = math.fsum(shares)
    return [share / total - (k == label) for k, share in enumerate(shares)]


# ---- models ----

def glorot(widths, seed):
    """The weights that a network of tanh begins with."""
    layers = []
    for number, (inputs, outputs) in enumerate(zip(widths, widths[1:]), 1):
        key = mix((mix((seed + GOLDEN) & MASK) + GOLDEN * number) & MASK)
        bound = math.sqrt(6 / (inputs + outputs))
        draws = [((mix((key + GOLDEN * (i + 1)) & MASK) >> 11) - 2 ** 52) * 2.0 ** -52 * bound
                 for i in range(inputs * outputs)]
        layers.append([draws[i * outputs:(i + 1) * outputs] for i in range(inputs)])
    return layers


def zeros(widths):
    return [[[0.0] * outputs for _ in range(inputs)] for inputs, outputs in zip(widths, widths[1:])]


def flat(weights, biases):
    return [v for layer in weights for row in layer for v in row] + [v for row in biases for v in row]


def folded(vector, widths):
    """The weights and biases of a vector."""
    values, weights, biases = iter(vector), [], []
    for inputs, outputs in zip(widths, widths[1:]):
        weights.append([[next(values) for _ in range(outputs)] for _ in range(inputs)])
    for outputs in widths[1:]:
        biases.append([next(values) for _ in range(outputs)])
    return weights, biases


def gradient_of_row(x, label, loss, weights, biases):
    """(by weights, by biases), by back-propagation; hidden layers are of tanh."""
    inputs, last = [x], len(weights) - 1
    for number, (layer, bias) in enumerate(zip(weights, biases)):
        sums = [math.fsum([b, *(v * row[k] for v, row in zip(inputs[-1], layer))])
                for k, b in enumerate(bias)]
        inputs.append(sums if number == last else [math.tanh(s) for s in sums])
    slopes, by_weights, by_biases = loss(label, inputs[-1]), [], []
    for number in range(last, -1, -1):
        by_weights.append([[v * s for s in slopes] for v in inputs[number]])
        by_biases.append(slopes)
        slopes = [(1 - v * v) * math.fsum(w * s for w, s in zip(row, slopes))
                  for v, row in zip(inputs[number], weights[number])]
    return by_weights[::-1], by_biases[::-1]


def mean_gradient(rows, total, loss, x, widths, penalties):
    """Of Σ weight·loss / `total` + Σ penalty/2 w²; a row is its values, its label and its weight."""
    weights, biases = folded(x, widths)
    terms = [[] for _ in x]
    for values, label, weight in rows:
        for term, part in zip(terms, flat(*gradient_of_row(values, label, loss, weights, biases))):
            term.append(weight * part)
    return [math.fsum(term) / total + penalty * v
            for term, penalty, v in zip(terms, penalties, x)]


# ---- Adagrad ----

def step(x, sums, gradient, rate, l1, floor):
    for i, g in enumerate(gradient):
        sums[i] += g * g
        root = math.sqrt(sums[i]) + floor
        x[i] -= rate * g / root
        if l1[i]:
            x[i] = math.copysign(max(abs(x[i]) - rate * l1[i] / root, 0.0), x[i])


def descend(rows, loss, widths, x, *, batch, rates, schedule, seed, epochs, l1=0.0, l2=0.0,
            scales=None, floored=False, unit=1.0):
    """(x, sums) after so many epochs from `x`. l2 and l1 act on the weights of the first layer times
    the scales of its inputs. Floored, roots of sums have a share of what one row gives them. Labels have
    this unit, and so have weights and gradients."""
    order = shuffled(rows, seed)
    weight = math.fsum(row[2] for row in rows)
    x, sums = list(x), [0.0] * len(x)
    regularised = len(x) - sum(widths[1:])
    own = [scale for scale in scales or [1.0] * widths[0] for _ in range(widths[1])]
    own += [1.0] * (regularised - len(own)) + [0.0] * (len(x) - regularised)
    for epoch in range(1, epochs + 1):
        size = batch * of_epoch(schedule, epoch)
        for places in minibatches(len(rows), size, min(BLOCK_ROWS_MOST, batch & -batch), seed, epoch):
            total = weight * len(places) / len(rows)
            gradient = mean_gradient([order[p] for p in places], total, loss, x, widths,
                                     [l2 * scale * scale for scale in own])
            step(x, sums, gradient, unit * of_epoch(rates, epoch), [l1 * scale for scale in own],
                 ROW_FLOOR / size if floored else 1e-10 * unit)
    return x, sums
