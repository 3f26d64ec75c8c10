#!/usr/bin/env python3
"""Writes tests/unit/network_oracle.def: losses and gradients of small networks as others compute them.

JAX differentiates them in double; scikit-learn's backpropagation, where it has the activation, must
say the same. Run it by hand where both are installed: network_oracle.py > network_oracle.def
"""

import warnings

import numpy

ROWS, FEATURES, UNITS = 9, 5, (4, 3)
CASES = [('softmax', 'tanh'), ('softmax', 'gelu'), ('softmax', 'relu'),
         ('squared', 'relu'), ('squared', 'gelu'), ('logistic', 'tanh'), ('logistic', 'gelu')]


def data(loss):
    """The rows and labels that tests/unit/test_network_oracle.c makes, too."""
    x = [[((7 * i + 13 * j + 3) % 17 - 8) / 8 if (i + j) % 3 else 0 for j in range(FEATURES)] for i in range(ROWS)]
    labels = {'softmax': [(5 * i + i // 3) % 3 for i in range(ROWS)],
              'logistic': [(5 * i + i // 3) % 2 for i in range(ROWS)],
              'squared': [3 * i % 7 / 4 for i in range(ROWS)]}
    return numpy.array(x), numpy.array(labels[loss])


def tensors(loss):
    """Weights, then biases, from one run of parameters."""
    widths = [FEATURES, *UNITS, 3 if loss == 'softmax' else 1]
    shapes = list(zip(widths, widths[1:])) + [(width,) for width in widths[1:]]
    first, made = 0, []
    for shape in shapes:
        count = int(numpy.prod(shape))
        made.append(numpy.array([((29 * k + 11) % 31 - 15) / 32 for k in range(first, first + count)]).reshape(shape))
        first += count
    return made


def by_jax(loss, activation, parameters):
    import jax
    jax.config.update('jax_enable_x64', True)
    import jax.numpy as jnp
    act = {'tanh': jnp.tanh, 'relu': jax.nn.relu, 'gelu': lambda x: jax.nn.gelu(x, approximate=True)}[activation]
    x, y = data(loss)
    layers = len(parameters) // 2

    def total(parameters):
        units = x
        for k in range(layers):
            units = units @ parameters[k] + parameters[layers + k]
            if k + 1 < layers:
                units = act(units)
        if loss == 'softmax':
            return -jnp.sum(jax.nn.log_softmax(units)[jnp.arange(ROWS), y])
        if loss == 'logistic':
            return jnp.sum(jnp.logaddexp(0, jnp.where(y > 0, -1, 1) * units[:, 0]))
        return jnp.sum((units[:, 0] - y) ** 2) / 2

    value, gradient = jax.value_and_grad(total)(parameters)
    return float(value), [numpy.asarray(g) for g in gradient]


def by_sklearn(loss, activation, parameters):
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    x, y = data(loss)
    kind = MLPRegressor if loss == 'squared' else MLPClassifier
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = kind(hidden_layer_sizes=UNITS, activation=activation, alpha=0, max_iter=1, solver='lbfgs').fit(x, y)
    layers = len(parameters) // 2
    model.coefs_, model.intercepts_ = parameters[:layers], parameters[layers:]
    targets = model._label_binarizer.transform(y) if loss != 'squared' else y.reshape(-1, 1)
    units = [x] + [None] * layers
    deltas, weights, biases = [None] * layers, [None] * layers, [None] * layers
    units = model._forward_pass(units)
    value, weights, biases = model._backprop(x, targets, None, units, deltas, weights, biases)
    return ROWS * value, [ROWS * g for g in weights + biases]


def worst(gradient, other):
    return max(float(numpy.max(numpy.abs(a - b) / (1 + numpy.abs(b)))) for a, b in zip(gradient, other))


def c_case(loss, activation):
    parameters = tensors(loss)
    value, gradient = by_jax(loss, activation, parameters)
    if activation != 'gelu':
        other, again = by_sklearn(loss, activation, parameters)
        assert abs(value - other) < 1e-13 * value and worst(gradient, again) < 1e-13, (loss, activation)
    numbers = [f'{g:.17g}' for g in numpy.concatenate([g.ravel() for g in gradient])]
    lines = [', '.join(numbers[k:k + 4]) for k in range(0, len(numbers), 4)]
    body = ',\n      '.join(lines)
    return (f'    {{OBJECTIVE_{loss.upper()}, ACTIVATION_{activation.upper()}, {value:.17g},\n'
            f'     {{{body}}}}},')


print('/* Written by tests/unit/network_oracle.py: losses and gradients by JAX and scikit-learn. */')
for case in CASES:
    print(c_case(*case))
