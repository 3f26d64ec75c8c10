#!/usr/bin/env python3
"""Passes to the optimum at the borders of what `precondition = auto` chooses between: a full block,
a heavy block, the diagonal, nothing.

    bench/borders.py [--beside FILE] [--set KEY=VALUE]... [ROW...]

Columns and options are those of passes.py. All sets are made from fixed seeds. Rows whose names
begin alike are neighbours; where one takes much longer than the other, there is a cliff. l2 is what
`auto` takes: 1 / rows. The optima are what long runs found. Run it in the build folder, like the
tests.
"""

import functools
import itertools
import random

import passes
from problems import Problem

# ---- rows: codes of columns of categories, then numbers ----


def zipf(count, power):
    return list(itertools.accumulate(1 / (k + 1) ** power for k in range(count)))


def even(codes, columns):
    """Sizes of columns that have so many codes in all."""
    return [codes // columns + (j < codes % columns) for j in range(columns)]


def growing(least, most, columns):
    return [round(least * (most / least) ** (j / (columns - 1))) for j in range(columns)]


def one_hot(rng, rows, sizes, power=1.0):
    """Of each row a code of every column, numbered through."""
    columns, first = [], 1
    for size in sizes:
        chosen = rng.choices(range(size), cum_weights=zipf(size, power), k=rows)
        columns.append([first + k for k in chosen])
        first += size
    return [list(row) for row in zip(*columns)]


def some_columns(rng, rows, sizes, least, most):
    """The same of `least` to `most` of the columns, as many rows of each number."""
    full = one_hot(rng, rows, sizes)
    return [sorted(rng.sample(row, least + i % (most - least + 1))) for i, row in enumerate(full)]


def missing(rng, rows, sizes, power, law):
    """The same without some; which share a row has of its codes is drawn from a beta law."""
    full = one_hot(rng, rows, sizes, power)
    kept = [rng.betavariate(*law) for _ in full]
    return [[k for k in row if rng.random() < share] or row[:1] for row, share in zip(full, kept)]


def texts(rng, rows, words, length):
    """Distinct words, by their Zipf numbers; length() draws how many words a row has."""
    weights = zipf(words, 1.05)
    numbers = range(1, words + 1)
    return [sorted(set(rng.choices(numbers, cum_weights=weights, k=length(rng))))
            for _ in range(rows)]


def short(rng):
    return sum(rng.random() < 0.5 for _ in range(26))


def long(rng):
    return 20 + int(rng.expovariate(1 / 80))


# ---- numbers: what a row's values are, of standard normal numbers ----

def none(_):
    return []


def scaled(*scales):
    return lambda normal: [abs(x) * scale for x, scale in zip(normal, scales)]


def collinear(normal):
    return [normal[0], normal[0] + 1e-4 * normal[1]]


def time_stamp(normal):
    """Seconds, of a third of a year."""
    return [int(1.6e9 + 1e7 * (normal[0] / 8 + 0.5))]


# ---- labels: the noisy margin is above a quantile, or between two of them ----

def labels(rng, codes, normal, shares):
    effects = [rng.gauss(0, 0.35) for _ in range(1 + max(map(max, codes)))]
    rule = [rng.gauss(0, 0.35) for _ in normal[0]]
    noisy = []
    for row, numbers in zip(codes, normal):
        p = rng.random()
        noisy.append(sum(effects[k] for k in row) + sum(a * b for a, b in zip(rule, numbers))
                     + 1.5 * (p - 0.5) / (p * (1 - p)) ** 0.5)
    ranked = sorted(noisy)
    limits = [ranked[int(len(ranked) * share)] for share in shares]
    return [sum(margin >= limit for limit in limits) for margin in noisy]


def write_set(_, target, make, numbers, count, shares, seed):
    """LIBSVM, with columns of numbers behind those of codes."""
    rng = random.Random(seed)
    codes = make(rng)
    normal = [[rng.gauss(0, 1) for _ in range(count)] for _ in codes]
    first = 1 + max(map(max, codes))
    with target.open('w') as file:
        for label, row, values in zip(labels(rng, codes, normal, shares), codes, normal):
            words = [f'{k}:1' for k in row]
            words += [f'{j}:{value:.10g}' for j, value in enumerate(numbers(values), first)]
            file.write(f'{label} {" ".join(words)}\n')


def write_weighted(source, target, **settings):
    """The same as CSV, a column for each place in a row, with a weight from 0.01 to 100."""
    rng = random.Random(7)
    write_set(source, target, **settings)
    lines = [line.split() for line in target.read_text().splitlines()]
    with target.open('w') as file:
        file.write(','.join(f'c{j}' for j in range(1, len(lines[0]))) + ',weight,label\n')
        for label, *words in lines:
            codes = ['k' + word.split(':')[0] for word in words]
            file.write(','.join(codes) + f',{10 ** rng.uniform(-2, 2):.3g},{label}\n')


# ---- the sets ----

def border(name, rows, make, optimum, numbers=none, count=0, shares=(0.5,), weighted=False,
           **options):
    codes = functools.partial(make, rows=rows, **options)
    write = functools.partial(write_weighted if weighted else write_set, make=codes,
                              numbers=numbers, count=count, shares=shares, seed=name)
    return Problem(name, '', write, 'softmax' if len(shares) > 1 else 'logistic', 1 / rows, optimum,
                   csv={'label': 'label', 'weight': 'weight'} if weighted else {})


# Optima: the least F of runs without tolerances; newton.py agrees where it was tried.
THOUSAND, MANY = growing(3, 150, 30), growing(10, 30_000, 30)
SCALES = [10 ** (0.66 * j) for j in range(10)]

BORDERS = [
    border('codes-902', 20_000, one_hot, 0.489422333935, sizes=even(902, 20)),
    border('codes-1096', 20_000, one_hot, 0.480757245696, sizes=even(1096, 20)),
    border('values-99', 4_500, some_columns, 0.36798518563, scaled(1, 30, 1e4), 3,
           sizes=even(1500, 60),
           least=5, most=55),
    border('values-101', 4_600, some_columns, 0.390484266116, scaled(1, 30, 1e4), 3,
           sizes=even(1500, 60),
           least=5, most=55),
    border('lengths-.32', 10_000, some_columns, 0.350815468102, sizes=even(3000, 60), least=14,
           most=46),
    border('lengths-.34', 10_000, some_columns, 0.35204714925, sizes=even(3000, 60), least=13,
           most=47),
    border('lengths-.51', 10_000, some_columns, 0.353903756829, sizes=even(3000, 60), least=4,
           most=56),
    border('lengths-.57', 10_000, some_columns, 0.356943958197, sizes=even(3000, 60), least=1,
           most=59),
    border('missing-.48', 20_000, missing, 0.364974356588, sizes=MANY, power=0.8, law=(2, 2)),
    border('missing-.59', 20_000, missing, 0.378978362460, sizes=MANY, power=0.8, law=(1, 1)),
    border('missing-.70', 20_000, missing, 0.392545332334, sizes=MANY, power=0.8, law=(0.5, 0.5)),
    border('thousand', 20_000, one_hot, 0.431456059099, sizes=THOUSAND),
    border('thousand-numbers', 20_000, one_hot, 0.493199239859, scaled(*SCALES), 10,
           sizes=THOUSAND),
    border('thousand-1e12', 20_000, one_hot, 0.457809445899, scaled(1e12), 1, sizes=THOUSAND),
    border('thousand-rare', 20_000, one_hot, 0.0194505455137, shares=(0.995,), sizes=THOUSAND),
    border('thousand-weights', 20_000, one_hot, 0.36954195337, weighted=True, sizes=THOUSAND),
    border('thousand-classes', 20_000, one_hot, 1.17066450456, shares=(0.2, 0.4, 0.6, 0.8),
           sizes=THOUSAND),
    border('many', 30_000, one_hot, 0.260739836291, sizes=MANY, power=0.8),
    border('many-numbers', 30_000, one_hot, 0.278406428018, scaled(*SCALES), 10, sizes=MANY,
           power=0.8),
    border('codes-2500', 20_000, one_hot, 0.522121043205, sizes=even(2500, 10)),
    border('codes-2500-time', 20_000, one_hot, 0.507054105092, time_stamp, 1, sizes=even(2500, 10)),
    border('codes-2500-collinear', 20_000, one_hot, 0.506210515731, collinear, 2, sizes=even(2500,
           10)),
    border('texts-short', 20_000, texts, 0.442690013813, words=30_000, length=short),
    border('texts-long', 8_000, texts, 0.191149678629, words=30_000, length=long),
    border('texts-long-numbers', 8_000, texts, 0.195825511372, scaled(1, 30, 1e4), 3,
           words=30_000, length=long),
]

if __name__ == '__main__':
    passes.main(BORDERS, __doc__)
