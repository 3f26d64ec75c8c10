"""One fit of scikit-learn, from a LIBSVM text file to coefficients.

    fit_sklearn.py FILE L2 SOLVER TOLERANCE OUTPUT

Writes the coefficients to OUTPUT, (features + intercept) × outputs, and prints the seconds that
reading and fitting took, without imports. Rows that are more than 30 % full are fitted as a dense
array, which is faster for scikit-learn; making it counts.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

STEPS_MAX = 20000


def main():
    path, l2, solver, tolerance, output = sys.argv[1:]
    warnings.simplefilter('ignore')
    start = time.monotonic()
    x, y = load_svmlight_file(path)
    read = time.monotonic()
    if x.nnz > 0.3 * x.shape[0] * x.shape[1]:
        x = x.toarray()
    model = LogisticRegression(C=1 / (float(l2) * x.shape[0]), solver=solver, tol=float(tolerance),
                               max_iter=STEPS_MAX).fit(x, y)
    end = time.monotonic()
    np.save(output, np.vstack([model.coef_.T, model.intercept_]))
    print(end - start, read - start)


main()
