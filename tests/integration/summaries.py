"""Rows for the tests of summaries: two numbers, two categories, weights, and a label for each loss.
The rarest levels are west and b: they are the reference."""

import math
import random

LEVELS = ('north', 'south', 'west')
EFFECTS = {'north': 0, 'south': 0.5, 'west': -0.4}
CLASSES = ('red', 'green', 'blue')


def label_of(loss, margin, rng):
    chance = 1 / (1 + math.exp(-margin))
    noise = -math.log(1 - rng.random()) - math.log(1 - rng.random())
    if loss == 'squared':
        return round(margin + noise, 3)
    if loss == 'logistic':
        return int(rng.random() < chance)
    if loss == 'poisson':
        return int(math.exp(margin) * noise)
    if loss == 'softmax':
        return CLASSES[0] if rng.random() < 0.3 else CLASSES[1 + (rng.random() < chance)]
    if loss == 'tweedie' and rng.random() < 0.3:
        return 0
    return round(math.exp(margin) * noise, 4) + 0.0001


def rows_of(loss, rows=300):
    """Dicts with x, z, region, kind, w and y."""
    rng, made = random.Random(11), []
    for _ in range(rows):
        x, z = round(3 * rng.random(), 2), round(1000 + 200 * rng.random(), 1)
        at = rng.random()
        region, kind = LEVELS[(at > 0.6) + (at > 0.87)], 'ab'[rng.random() < 0.17]
        margin = 0.3 * x - 0.004 * (z - 1100) + EFFECTS[region] + 0.2 * (kind == 'b') - 0.3
        made.append({'x': x, 'z': z, 'region': region, 'kind': kind,
                     'w': rng.choice((0.5, 1, 2, 3.7)), 'y': label_of(loss, margin, rng)})
    return made


def write_csv(path, rows):
    path.write_text('\n'.join([','.join(rows[0]), *(','.join(map(str, row.values()))
                                                    for row in rows)]) + '\n')
