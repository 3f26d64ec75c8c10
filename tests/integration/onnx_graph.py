"""Reads a file of ONNX and computes it for one row: the operators that `export --onnx` writes, from
the specification, with Python's own numbers. A vector is a list of one number, or text, a row; a
matrix has a list a row. Tensors of the file that a row is combined with are vectors or matrices."""

import math
import struct


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def message(data):
    """Field number: its values, in their order."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 in (0, 2), 'only numbers and what has a length is written'
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        fields.setdefault(key >> 3, []).append(value)
    assert at == len(data), 'a field is cut off'
    return fields


def texts(fields, number):
    return [value.decode() for value in fields.get(number, [])]


def tensor(data):
    fields = message(data)
    kind = fields[2][0]
    if kind == 8:
        values = texts(fields, 6)
    else:
        raw = fields[9][0]
        values = list(struct.unpack(f'<{len(raw) // 8}{"d" if kind == 11 else "q"}', raw))
    shape = fields[1]
    assert len(values) == math.prod(shape), (shape, len(values))
    if len(shape) == 2:
        values = [values[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
    return texts(fields, 8)[0], values


def attribute(data):
    fields = message(data)
    lists = {7: [signed(value) for value in fields.get(8, [])], 8: texts(fields, 9),
             2: signed(fields.get(3, [0])[0])}
    return texts(fields, 1)[0], lists[fields[20][0]]


class Graph:
    def __init__(self, path):
        model = message(path.read_bytes())
        graph = message(model[7][0])
        self.tensors = dict(tensor(data) for data in graph.get(5, []))
        self.nodes = [message(data) for data in graph[1]]
        self.inputs = [texts(message(data), 1)[0] for data in graph[11]]
        self.outputs = [texts(message(data), 1)[0] for data in graph[12]]
        self.about = dict((texts(message(data), 1)[0], texts(message(data), 2)[0]) for data in model[14])

    def answer(self, row):
        """What the outputs are for a row: {input: number, text or list of numbers}."""
        values = dict(self.tensors)
        values.update((name, [row[name]]) for name in self.inputs)
        for node in self.nodes:
            attributes = dict(attribute(data) for data in node.get(5, []))
            given = [values[name] for name in texts(node, 1)]
            values[texts(node, 2)[0]] = OPERATORS[texts(node, 4)[0]](*given, **attributes)
        return {name: values[name][0] for name in self.outputs}


def spread(function, *values):
    """The function of each element, where what has one row or column stands for all."""
    if not any(isinstance(value, list) for value in values):
        return function(*values)
    depth = max(depth_of(value) for value in values)
    values = [value if depth_of(value) == depth else [value] for value in values]
    size = max(len(value) for value in values)
    return [spread(function, *(value[i if len(value) > 1 else 0] for value in values))
            for i in range(size)]


def depth_of(value):
    return 1 + depth_of(value[0]) if isinstance(value, list) else 0


def element(function):
    return lambda *values: spread(function, *values)


def power(x):
    return math.exp(x) if x < 709 else math.inf


def logistic(x):
    """As onnxruntime has it: with 16 digits behind the point, and not of the number."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))


def softmax(rows, axis):
    powers = [[math.exp(x - max(row)) for x in row] for row in rows]
    return [[x / sum(row) for x in row] for row in powers]


def divide(a, b):
    return a / b if b else math.nan


def gather(table, at, axis=0):
    if axis:
        return [[row[i] for i in at] for row in table]
    return [gather(table, i) if isinstance(i, list) else table[i] for i in at]


def encode(words, keys_strings, values_int64s, default_int64):
    return [dict(zip(keys_strings, values_int64s)).get(word, default_int64) for word in words]


def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def flatten(value, shape):
    assert shape == [-1]
    return [x for part in value for x in flatten(part, shape)] if isinstance(value, list) else [value]


OPERATORS = {
    'Add': element(lambda a, b: a + b), 'Sub': element(lambda a, b: a - b),
    'Mul': element(lambda a, b: a * b), 'Div': element(divide),
    'Min': element(min), 'Max': element(max), 'Neg': element(lambda a: -a),
    'Exp': element(power), 'Reciprocal': element(lambda a: 1 / a), 'Log': element(math.log),
    'Tanh': element(math.tanh),
    'Relu': element(lambda a: max(a, 0)), 'Sigmoid': element(logistic), 'Softmax': softmax,
    'IsNaN': element(lambda a: a != a), 'Equal': element(lambda a, b: a == b),
    'Greater': element(lambda a, b: a > b), 'GreaterOrEqual': element(lambda a, b: a >= b),
    'Where': element(lambda condition, a, b: a if condition else b),
    'Cast': lambda value, to: spread(float if to == 11 else int, value),
    'ReduceSum': lambda rows, axes: [[sum(row)] for row in rows],
    'Reshape': flatten, 'Identity': lambda value: value,
    'Unsqueeze': lambda value, axes: [[x] for x in value],
    'Concat': lambda *parts, axis: [sum(rows, []) for rows in zip(*parts)],
    'MatMul': multiply, 'Gather': gather, 'LabelEncoder': encode,
    'ArgMax': lambda rows, axis: [[row.index(max(row))] for row in rows],
}
