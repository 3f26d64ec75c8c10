"""The hash of a row and its fold, as doc/FORMATS.md defines them, of rows whose label is a number."""

import struct

MASK = (1 << 64) - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb & MASK
    return z ^ (z >> 31)


def bits(number):
    return struct.unpack('<Q', struct.pack('<d', number + 0.0))[0]


def row_hash(label, values):
    """`values` are pairs of id and value."""
    total = mix(bits(label) + 0xd1b54a32d192ed03 & MASK)
    for number, value in values:
        if value != 0:
            total += mix(mix(number + 0x9e3779b97f4a7c15 & MASK) ^ bits(value))
    return mix(total & MASK)


def libsvm_hash(line):
    label, *pairs = line.split()
    return row_hash(float(label), [(int(i), float(v)) for i, v in
                                   (pair.split(':') for pair in pairs)])


def csv_hash(line):
    *values, label = map(float, line.split(','))
    return row_hash(label, list(enumerate(values, 1)))


def fold_of(number, seed, folds):
    """The fold, from 1, of a row with this hash."""
    place = mix(number ^ mix(seed + 0xe7037ed1a0b428db & MASK))
    return 1 + ((place >> 32) * folds >> 32)
