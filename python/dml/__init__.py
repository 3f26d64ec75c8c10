"""Trains models with the programs of dml, and scores rows with them in this process: what `dml-coordinator run`
and `predict` do, to the last bit.

    import dml
    run = dml.train(frame, label='bought', holdout=0.2)
    run.figures['holdout']['auc'], run.steps, run.model_sha256
    run.model.predict_proba(rows)

    model = dml.open('adult.state')
    model.describe()['columns']
    model.predict([{'age': 39, 'workclass': 'State-gov', ...}])
    model.explain([{'age': 39, 'workclass': 'State-gov', ...}])

Rows are a list of dicts, of lists or of tuples, an array of NumPy, a DataFrame of pandas, a sparse
matrix of SciPy, or what has Arrow's C stream interface, as tables of pyarrow, polars and DuckDB; none of
these packages is needed. What comes back is an array where an array, a frame, a table or a matrix was
given, else a list.

A model may be used by several threads at once. Copies of it, and what pickle makes of it in another
process, open its path again.
"""

from dml._follow import follow
from dml._live import Comparison, compare, jobs, publish, rollback
from dml._model import Error, Explanation, Model, UnseenWarning, open, version
from dml._programs import JobError, Stopped
from dml._run import Run
from dml._train import ConvergenceWarning, TrainingWarning, resume, train

ESTIMATORS = ('LogisticRegression', 'LogisticRegressionCV', 'OrdinalClassifier', 'MLPClassifier', 'MLPRegressor',
              'LinearRegression', 'Ridge', 'RidgeCV', 'Lasso', 'LassoCV', 'ElasticNet', 'PoissonRegressor',
              'GammaRegressor', 'TweedieRegressor', 'HuberRegressor', 'QuantileRegressor')

__all__ = [*ESTIMATORS, 'Comparison', 'ConvergenceWarning', 'Error', 'Explanation', 'JobError', 'Model', 'Run',
           'Stopped', 'TrainingWarning', 'UnseenWarning', 'compare', 'follow', 'jobs', 'open', 'publish', 'resume',
           'rollback', 'train', 'version']


__version__ = version


def __getattr__(name):
    """Estimators need scikit-learn, which is imported when one of them is used."""
    if name in ESTIMATORS:
        try:
            from dml import _estimators
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f'dml.{name} needs scikit-learn and NumPy: pip install scikit-learn; dml.train() '
                                      f'needs neither ({error})', name=error.name) from None
        return getattr(_estimators, name)
    raise AttributeError(f'module dml has no attribute {name!r}')
