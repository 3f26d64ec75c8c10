"""The tensors of a model's file model.safetensors as arrays of NumPy."""

import json
import math

TYPES = {'F64': 'float64', 'U64': 'uint64'}


def read_tensors(content):
    """{name: array} of the bytes of a file."""
    import numpy
    begin = 8 + int.from_bytes(content[:8], 'little')
    header = json.loads(content[8:begin])
    return {name: numpy.frombuffer(content, TYPES[tensor['dtype']], math.prod(tensor['shape']),
                                   begin + tensor['data_offsets'][0]).reshape(tensor['shape']).copy()
            for name, tensor in header.items() if name != '__metadata__'}
