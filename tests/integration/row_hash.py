"""The hash of a row and its fold, as doc/FORMATS.md defines them, of rows that are lines of text."""

import ctypes
import ctypes.util

MASK = (1 << 64) - 1
XXH = ctypes.CDLL(ctypes.util.find_library('xxhash') or 'libxxhash.so.0')
XXH.XXH3_64bits.restype = ctypes.c_uint64
XXH.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def mix(z):
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb & MASK
    return z ^ (z >> 31)


def row_hash(line):
    """Of a line without its end."""
    line = line.encode()
    return XXH.XXH3_64bits(line, len(line))


def fold_of(number, seed, folds):
    """The fold, from 1, of a row with this hash."""
    place = mix(number ^ mix(seed + 0xe7037ed1a0b428db & MASK))
    return 1 + ((place >> 32) * folds >> 32)
