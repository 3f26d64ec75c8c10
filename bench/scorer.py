"""What peers.py runs in a virtual environment.

    scorer.py score FILE OBJECTIVE L2 CACHE

says what F is at models: a process that holds the data. newton.py's loss is used, and nothing of the
programs. It reads lines of JSON and answers each with one: {"optimum": BIAS_REGULARISED} is answered with F*,
{"kind": "dml" | "liblinear" | "sklearn", "path": PATH} with F at that model. F* is remembered in
the file CACHE.

    scorer.py fit FILE L2 SOLVER TOLERANCE OUTPUT

fits scikit-learn's LogisticRegression once. It writes the coefficients to OUTPUT, (features +
intercept) × outputs, and prints the seconds that reading and fitting took, without imports. Rows that
are more than 30 % full are fitted as a dense array, which is faster for scikit-learn; making it counts.
"""

import json
import pathlib
import struct
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import newton

STEPS_MAX = 20000


def of_dml(folder, features):
    """Weights (features + intercept) × outputs."""
    content = (folder / 'model.safetensors').read_bytes()
    length = struct.unpack('<Q', content[:8])[0]
    arrays = {}
    for name, what in json.loads(content[8:8 + length]).items():
        if name != '__metadata__':
            first, end = what['data_offsets']
            kind = {'F64': '<f8', 'U64': '<u8'}[what['dtype']]
            arrays[name] = np.frombuffer(content[8 + length + first:8 + length + end],
                                         kind).reshape(what['shape'])
    bias = np.atleast_1d(arrays['bias'])
    weight = arrays['weight'].reshape(len(bias), -1)
    w = np.zeros((features + 1, len(bias)))
    w[arrays['feature_id'].astype(int) - 1] = weight.T
    w[-1] = bias
    return w


def of_liblinear(path, features):
    """Its weights are for the class that `label` names first; the bias is the last."""
    head, _, numbers = path.read_text().partition('\nw\n')
    settings = dict(line.split(' ', 1) for line in head.splitlines())
    found = np.array(numbers.split(), float)
    w = np.zeros((features + 1, 1))
    w[:len(found) - 1, 0], w[-1, 0] = found[:-1], found[-1]
    return w if float(settings['label'].split()[0]) > 0 else -w


def of_sklearn(path, features):
    return np.load(path)


READERS = {'dml': of_dml, 'liblinear': of_liblinear, 'sklearn': of_sklearn}


class Scorer:
    def __init__(self, path, objective, l2, cache):
        x, labels = newton.read(path, None)
        self.features, self.cache = x.shape[1], pathlib.Path(cache)
        loss = newton.Loss(objective, labels)
        self.problems = {regularised: newton.Problem(x, loss, l2, l2 if regularised else 0.0)
                         for regularised in (False, True)}
        self.key = f'{pathlib.Path(path).name} {objective} {l2:g}'

    def optimum(self, regularised):
        known = json.loads(self.cache.read_text()) if self.cache.exists() else {}
        key = f'{self.key} bias {"" if regularised else "not "}regularised'
        if key not in known:
            f, lacking, *_ = newton.minimum(self.problems[regularised])
            if not lacking <= 1e-8 * f:
                raise SystemExit(f'{key}: no optimum, {lacking} is lacking at {f}')
            known[key] = float(f)
            self.cache.write_text(json.dumps(known, indent=1))
        return known[key]

    def value(self, kind, path):
        problem = self.problems[kind == 'liblinear']
        w = READERS[kind](pathlib.Path(path), self.features)
        w[:-1] *= problem.scale[:, None]
        return float(problem.value(w, problem.margins(w)))


def score(path, objective, l2, cache):
    scorer = Scorer(path, objective, float(l2), cache)
    for line in sys.stdin:
        asked = json.loads(line)
        if 'optimum' in asked:
            print(json.dumps(scorer.optimum(asked['optimum'])), flush=True)
        else:
            print(json.dumps(scorer.value(asked['kind'], asked['path'])), flush=True)


def fit(path, l2, solver, tolerance, output):
    warnings.simplefilter('ignore')
    start = time.monotonic()
    x, y = load_svmlight_file(path)
    if x.nnz > 0.3 * x.shape[0] * x.shape[1]:
        x = x.toarray()
    model = LogisticRegression(C=1 / (float(l2) * x.shape[0]), solver=solver, tol=float(tolerance),
                               max_iter=STEPS_MAX).fit(x, y)
    end = time.monotonic()
    np.save(output, np.vstack([model.coef_.T, model.intercept_]))
    print(end - start)


{'score': score, 'fit': fit}[sys.argv[1]](*sys.argv[2:])
