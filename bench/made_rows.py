"""Rows of LIBSVM text that are made, or made of words and of tables: lists of lines, each with its
end. The same call gives the same rows."""

import itertools
import math
import random
import statistics


def zipf(count, power):
    return list(itertools.accumulate(1 / (k + 1) ** power for k in range(count)))


def clicks():
    """125,000 rows of 30 codes, one of 10 to 50,000 in each; 3 % are clicks."""
    rng, rows = random.Random(1), 125_000
    sizes = [round(10 * 5000 ** (j / 29)) for j in range(30)]
    codes, margins, first = [[] for _ in range(rows)], [0.0] * rows, 1
    for size in sizes:
        effects = [rng.gauss(0, 0.35) for _ in range(size)]
        for i, code in enumerate(rng.choices(range(size), cum_weights=zipf(size, 1), k=rows)):
            codes[i].append(first + code)
            margins[i] += effects[code]
        first += size
    low, high = -20.0, 5.0
    while high - low > 1e-3:  # the intercept that makes 3 %
        middle = (low + high) / 2
        share = statistics.fmean(1 / (1 + math.exp(-m - middle)) for m in margins)
        low, high = (low, middle) if share > 0.03 else (middle, high)
    return [f'{1 if rng.random() < 1 / (1 + math.exp(-m - low)) else -1} '
            + ' '.join(f'{code}:1' for code in row) + '\n' for row, m in zip(codes, margins)]


def tf_idf(rows):
    """Of rows of (label, {column: count}); each has length 1, or 0."""
    found = {}
    for _, counts in rows:
        for column in counts:
            found[column] = found.get(column, 0) + 1
    lines = []
    for label, counts in rows:
        values = {j: c * math.log(len(rows) / found[j]) for j, c in sorted(counts.items())}
        length = math.hypot(*values.values()) or 1
        lines.append(f'{label} '
                     + ' '.join(f'{j}:{v / length:.6g}' for j, v in values.items() if v) + '\n')
    return lines


def one_hot(rows, positive, numbers=()):
    """Of tables: rows of (label, cells). Columns of numbers get deviation 1, and nothing is left out
    of them; of all others each text is a column of its own."""
    cells = list(zip(*(row for _, row in rows)))
    columns, last = [], 0
    for j, column in enumerate(cells):
        if j in numbers:
            last += 1
            values = [float(cell) for cell in column]
            deviation = statistics.pstdev(values) or 1.0
            columns.append([f' {last}:{value / deviation:.6g}' for value in values])
        else:
            number = {cell: last + k for k, cell in enumerate(dict.fromkeys(column), 1)}
            last += len(number)
            columns.append([f' {number[cell]}:1' for cell in column])
    return [('1' if label == positive else '-1') + ''.join(row) + '\n'
            for (label, _), row in zip(rows, zip(*columns))]
