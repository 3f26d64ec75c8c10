"""Estimators with the contract of scikit-learn over the programs of dml.

Parameters have the names of the keys of dml.conf(5). Where a parameter of scikit-learn means the same in other units,
it is there too, and counts if it is given: LogisticRegression(C=1) minimises what scikit-learn's does.

A DataFrame with texts, categories, dates or missing cells is trained on as the table that it is: its columns need not
be encoded before. Other data is an array or a sparse matrix of numbers."""

import inspect
import os
import pathlib
import shutil
import tempfile
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning as NotConverged
from sklearn.metrics import d2_pinball_score, d2_tweedie_score
from sklearn.model_selection import check_cv
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dml import _description, _model, _train
from dml._rows import has_more_than_numbers, is_arrow, is_frame
from dml._tensors import read_tensors


def keep(estimator, parameters):
    """Keeps the parameters of __init__ as they were given, as scikit-learn wants it."""
    for name, value in parameters.items():
        if name != 'self':
            setattr(estimator, name, value)


def first_given(alias, value):
    return value if alias is None else alias


ROWS_OF_A_FOLD = 20  # with fewer, chance may put all rows of a class into one fold: they are dealt out by class

# By which figures splits may choose; 1: lower values are better.
BETTER = {'loss': 1, 'rmse': 1, 'mae': 1, 'deviance': 1, 'accuracy': -1, 'auc': -1, 'r2': -1}


def can_choose(estimator):
    return estimator.choose == 'best' and (estimator.choose_by or 'loss') in BETTER


def splits_of(estimator, X, labels):
    """The pairs of rows to train on and to hold out that cv names; None: the program makes the folds, by hashes."""
    folds = first_given(estimator.cv, estimator.folds)
    if isinstance(folds, (int, np.integer)):
        few = is_classifier(estimator) and len(labels) < ROWS_OF_A_FOLD * folds
        if not few or min(np.unique(labels, return_counts=True)[1]) < folds or not can_choose(estimator):
            return None
    if not can_choose(estimator):
        raise ValueError(f"with splits as cv choose is 'best', and choose_by is one of {', '.join(BETTER)}")
    return list(check_cv(folds, labels, classifier=is_classifier(estimator)).split(X, labels))


def some(rows, places):
    """These rows of an array, a matrix or a DataFrame; None: there are no numbers of that kind."""
    return None if rows is None else rows.iloc[places] if is_frame(rows) else rows[places]


def is_table(rows):
    """Whether the rows are a DataFrame that is no array of numbers: it has texts, times or missing cells."""
    if is_frame(rows):
        kinds = [getattr(kind, 'kind', 'O') for kind in rows.dtypes]
        return not set(kinds) <= set('biuf') or bool(rows.isna().to_numpy().any())
    if is_arrow(rows):
        return has_more_than_numbers(rows)
    return False


class ModelFiles:
    """The files of a model in memory, and the model, which is opened when it is first asked for, in each process."""

    def __init__(self, folder):
        self.content = {name: pathlib.Path(folder, name).read_bytes()
                        for name in sorted(os.listdir(folder)) if name.startswith('model.')}
        self.opened = None

    def __getstate__(self):
        return {'content': self.content, 'opened': None}

    def write(self, folder):
        for name, content in self.content.items():
            pathlib.Path(folder, name).write_bytes(content)

    def model(self):
        if self.opened is None:
            folder = tempfile.mkdtemp(prefix='dml-', dir=_train.memory_folder())
            try:
                self.write(folder)
                self.opened = _model.open(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return self.opened


def folds_job(estimator):
    folds = first_given(estimator.cv, estimator.folds)
    return {'folds': int(folds) if isinstance(folds, (int, np.integer)) else None, 'choose': estimator.choose,
            'choose_by': estimator.choose_by}


class Estimator(BaseEstimator):
    """What all have in common. A fit has a folder of its own, which is removed when it ends: the estimator holds the
    files of the model, so that it can be pickled and copied as others are."""

    def job(self, total):
        """The keys of the job, where the weights of the rows add up to `total`."""
        raise NotImplementedError

    def settings(self):
        return {'intercept': bool(first_given(getattr(self, 'fit_intercept', None), self.intercept)),
                'max_steps': first_given(self.max_iter, self.max_steps),
                'gradient_tolerance': first_given(self.tol, self.gradient_tolerance), 'gap_tolerance': 1e-18,
                'standardise': self.standardise}

    def fit_model(self, X, y, labels, weights, offset, exposure):
        """Trains on rows that were checked, with these numbers as labels."""
        total = float(len(labels) if weights is None else np.sum(weights))
        job = {**self.settings(), **self.job(total), **(self.keys or {})}
        splits = splits_of(self, X, labels) if hasattr(self, 'folds') else None
        if splits:
            beside = {'weights': weights, 'offsets': offset, 'exposures': exposure}
            job = self.job_of_the_best(job, splits, X, labels, beside)
        if isinstance(self, LinearModel) and not job['l2'] and not job['l1'] and not self.is_table_ and \
                X.shape[0] <= X.shape[1]:
            # Many weights fit all rows. These are those that the rows alone lead to, whatever rows of weight 0 say.
            job.setdefault('precondition', 'diagonal')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            run = _train.train(X, labels, weights=weights, offsets=offset, exposures=exposure,
                               state=_train.SHORT_LIVED, progress=False, **job)
        for warning in caught:
            kind = NotConverged if issubclass(warning.category, _train.ConvergenceWarning) else warning.category
            warnings.warn(str(warning.message), kind, 3)
        self.files_ = ModelFiles(run.path)
        self.n_iter_ = max(1, run.result['steps'])
        self.result_ = run.result
        self.take_weights(run, read_tensors(self.files_.content['model.safetensors']))
        run.folder.end()
        return self

    def job_of_the_best(self, job, splits, X, labels, beside):
        """The job with the one of several penalties that is best over the splits."""
        figure, sums = self.choose_by or 'loss', 0.0
        job = {name: value for name, value in job.items() if name not in ('folds', 'choose', 'choose_by')}
        for trained, held in splits:
            numbers = [{name: some(values, places) for name, values in beside.items()} for places in (trained, held)]
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                run = _train.train(some(X, trained), labels[trained], holdout=(some(X, held), labels[held], numbers[1]),
                                   **numbers[0], state=_train.SHORT_LIVED, progress=False, **job)
            sums += np.array([part['holdout'][figure] for part in run.result.get('path', [run.result])],
                             dtype=float)
            run.folder.end()
        return {**job, self.chosen: job[self.chosen][int(np.argmin(BETTER[figure] * sums))]}

    def take_weights(self, run, tensors):
        """Columns whose weights are not there, as they had no values, weigh 0."""
        if 'weight' not in tensors:
            return
        ids, weights = tensors['feature_id'], tensors['weight']
        if self.is_table_:
            self.coef_names_ = run.names_of_weights()
            coef = weights
        else:
            coef = np.zeros((len(weights), self.n_features_in_))
            coef[:, ids.astype('int64') - 1] = weights
        bias = tensors.get('bias', np.zeros(len(coef)))
        self.coef_, self.intercept_ = self.shaped(coef, bias)

    @property
    def model_(self):
        """The model, open: a dml.Model."""
        check_is_fitted(self)
        return self.files_.model()

    def save(self, path):
        """Writes the model to a folder that must not be there, for dml.open() and the programs. It has the names of
        the columns and the classes of fit(), so that tables are scored by name."""
        check_is_fitted(self)
        os.mkdir(path)
        self.files_.write(path)
        names = getattr(self, 'feature_names_in_', ()) if not self.is_table_ else ()
        tensors = read_tensors(self.files_.content['model.safetensors'])
        numbers = tensors['feature_id']
        means = {int(number) - 1: float(mean) for number, mean in zip(numbers, tensors.get('mean', np.zeros(len(numbers))))}
        described = pathlib.Path(path, 'model.json')
        described.write_bytes(_description.with_names(described.read_bytes(), list(names), means,
                                                      getattr(self, 'classes_', ())))

    # ---- rows ----

    def checked(self, X):
        """Rows to score as the programs take them: a table, or what scikit-learn makes of an array or a matrix."""
        if self.is_table_ and (is_frame(X) or is_arrow(X)):
            validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return validate_data(self, X, reset=False, accept_sparse='csr', dtype=np.float64)

    def checked_pair(self, X, y, numeric):
        """Rows to train on, in the same forms, and their labels."""
        self.is_table_ = is_table(X)
        if self.is_table_:
            _, y = validate_data(self, X, y, skip_check_array=True)
            return X, np.asarray(y).ravel()
        return validate_data(self, X, y, accept_sparse='csr', dtype=np.float64, y_numeric=numeric,
                             ensure_min_samples=2 if hasattr(self, 'folds') else 1)

    def beside(self, numbers, X):
        return None if numbers is None else _check_sample_weight(numbers, X, dtype=np.float64)

    def scores(self, function, X, offset=None, exposure=None):
        check_is_fitted(self)
        return getattr(self.model_, function)(self.checked(X), offsets=offset, exposures=exposure)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Classifier(ClassifierMixin, Estimator):
    def fit(self, X, y, sample_weight=None, offset=None, exposure=None):
        """Trains on the rows, whose labels are y. A class may be any value that can be sorted."""
        X, y = self.checked_pair(X, y, False)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f'y has one class, {self.classes_[0]!r}, and a classifier needs two')
        weights = self.beside(sample_weight, X)
        if getattr(self, 'class_weight', None) is not None:
            weights = np.ones(len(labels)) if weights is None else weights
            weights = weights * self.weights_of_classes(y, labels, weights)
        return self.fit_model(X, y, labels, weights, self.beside(offset, X), self.beside(exposure, X))

    def loss_of_classes(self):
        return 'logistic' if len(self.classes_) == 2 else 'softmax'

    def weights_of_classes(self, y, labels, weights):
        """For each row; balanced ones make the classes equal in weight, as `class_weight = balanced` of a job does."""
        if self.class_weight != 'balanced':
            return compute_sample_weight(self.class_weight, y)
        sums = np.bincount(labels, weights, len(self.classes_))
        return (weights.sum() / len(sums) / np.maximum(sums, np.finfo(float).tiny))[labels]

    def shaped(self, coef, bias):
        """The loss of softmax does not change if all intercepts grow by one number. The intercepts here add up to 0,
        which makes them unique."""
        self.shift_ = float(np.mean(bias)) if len(coef) > 1 else 0.0
        return coef, bias - self.shift_

    def decision_function(self, X, offset=None):
        """The margins: of two classes that of the second, else one for each class."""
        return self.scores('predict_margins', X, offset) - getattr(self, 'shift_', 0.0)

    def predict_proba(self, X, offset=None):
        """The probability of each class, in the order of classes_."""
        return self.scores('predict_proba', X, offset)

    def predict_log_proba(self, X, offset=None):
        with np.errstate(divide='ignore'):
            return np.log(self.predict_proba(X, offset))

    def predict(self, X, offset=None):
        """The class with the largest margin."""
        margins = self.decision_function(X, offset)
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]


class Regressor(RegressorMixin, Estimator):
    def fit(self, X, y, sample_weight=None, offset=None, exposure=None):
        """Trains on the rows, whose values are y."""
        X, y = self.checked_pair(X, y, True)
        y = np.asarray(y, dtype=np.float64)
        return self.fit_model(X, y, y, self.beside(sample_weight, X), self.beside(offset, X), self.beside(exposure, X))

    def shaped(self, coef, bias):
        return coef[0], float(bias[0])

    def predict(self, X, offset=None, exposure=None):
        """The predicted values."""
        return self.scores('predict_values', X, offset, exposure)


# ---- classifiers ----

class LogisticRegression(Classifier):
    """Logistic regression of two classes, and softmax regression of more.

    Examples
    --------
    >>> rows = [[i % 5, i % 3] for i in range(30)]
    >>> labels = ['high' if i % 5 > 2 else 'low' for i in range(30)]
    >>> estimator = dml.LogisticRegression().fit(rows, labels)
    >>> estimator.predict([[4, 0], [0, 2]])
    array(['high', 'low'], dtype='<U4')
    """

    def __init__(self, l2='auto', l1=0.0, *, intercept=True, standardise=False, class_weight=None, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, C=None, l1_ratio=None, fit_intercept=None, max_iter=None,
                 tol=None):
        keep(self, locals())

    def job(self, total):
        objective = self.loss_of_classes()
        if self.C is None and self.l1_ratio is None:
            return {'objective': objective, 'l2': self.l2, 'l1': self.l1}
        penalty, ratio = 1 / (first_given(self.C, 1.0) * total), first_given(self.l1_ratio, 0.0)
        return {'objective': objective, 'l2': penalty * (1 - ratio), 'l1': penalty * ratio}


class LogisticRegressionCV(LogisticRegression):
    """Logistic regression whose penalty is chosen by cross-validation over a path.

    `l2_` and `C_` are what was chosen.
    """

    chosen = 'l2'

    def __init__(self, l2=10, l1=0.0, *, folds=5, choose='best', choose_by=None, intercept=True, standardise=False,
                 class_weight=None, max_steps=1000, gradient_tolerance=1e-10, keys=None, Cs=None, cv=None,
                 fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        self.total_ = total
        if self.Cs is not None:
            Cs = np.logspace(-4, 4, self.Cs) if np.ndim(self.Cs) == 0 else np.asarray(self.Cs)
            path = (1 / (Cs * total)).tolist()
        else:
            path = (np.logspace(4, -4, self.l2) / total).tolist() if np.ndim(self.l2) == 0 else list(self.l2)
        return {'objective': self.loss_of_classes(), 'l1': self.l1,
                'l2': sorted(path, reverse=True), **folds_job(self)}

    def fit(self, X, y, sample_weight=None, offset=None, exposure=None):
        super().fit(X, y, sample_weight, offset, exposure)
        self.l2_ = self.result_['l2']
        self.C_ = 1 / (self.l2_ * self.total_) if self.l2_ else np.inf
        return self


class OrdinalClassifier(Classifier):
    """Proportional odds of ordered classes, whose order is that of their values.

    `coef_` has one row, and `intercept_` that of being in each class except the first, or a higher one.
    """

    def __init__(self, l2='auto', l1=0.0, *, standardise=False, class_weight=None, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, max_iter=None, tol=None):
        keep(self, locals())

    intercept = True

    def job(self, total):
        objective = 'proportional_odds' if len(self.classes_) > 2 else 'logistic'
        return {'objective': objective, 'l2': self.l2, 'l1': self.l1}

    def decision_function(self, X, offset=None):
        """The logarithm of the probability of each class; of two classes the margin of the second."""
        check_is_fitted(self)
        return super().decision_function(X, offset) if len(self.classes_) == 2 else self.predict_log_proba(X, offset)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of classes that have no order
        return tags


class Network:
    """What networks have in place of penalties and tolerances of their own."""

    intercept, standardise = True, False

    def settings(self):
        job = {'max_steps': first_given(self.max_iter, self.max_steps)}
        if self.tol is not None or self.gradient_tolerance is not None:
            job['gradient_tolerance'] = first_given(self.tol, self.gradient_tolerance)
        return job

    def network(self, loss, total):
        layers = first_given(self.hidden_layer_sizes, self.layers)
        seed = self.random_state if isinstance(self.random_state, (int, np.integer)) else \
            1 if self.random_state is None else self.random_state.randint(1 << 31)
        return {'objective': 'network', 'network': {'layers': [int(units) for units in np.ravel(layers)], 'loss': loss,
                                                    'activation': self.activation, 'seed': int(seed)},
                'l2': self.l2 if self.alpha is None else self.alpha / total, 'holdout': self.holdout or [],
                'early_stopping': self.early_stopping, **({'start': self.start} if self.start else {})}


class MLPClassifier(Network, Classifier):
    """A network with hidden layers, by L-BFGS on all rows or after epochs of minibatches."""

    def __init__(self, layers=(100,), *, activation='tanh', l2=1e-4, start=None, holdout=None, early_stopping='off',
                 class_weight=None, max_steps=1000, gradient_tolerance=None, random_state=None, keys=None,
                 hidden_layer_sizes=None, alpha=None, max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        return self.network(self.loss_of_classes(), total)


class MLPRegressor(Network, Regressor):
    """A network with hidden layers for values."""

    def __init__(self, layers=(100,), *, activation='tanh', loss='squared', l2=1e-4, start=None, holdout=None,
                 early_stopping='off', max_steps=1000, gradient_tolerance=None, random_state=None, keys=None,
                 hidden_layer_sizes=None, alpha=None, max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        return self.network(self.loss, total)


# ---- regressors ----

class LinearModel(Regressor):
    """The parameters of linear models of values."""

    def __init__(self, l2='auto', l1=0.0, *, intercept=True, standardise=False, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, alpha=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    objective = 'squared'

    def job(self, total):
        return {'objective': self.objective, 'l2': first_given(self.alpha, self.l2), 'l1': self.l1}


class LinearRegression(LinearModel):
    """Least squares without a penalty, or with one, as l2/2‖w‖² + l1‖w‖₁ beside half the mean square.

    Examples
    --------
    >>> rows = [[float(i), i % 3] for i in range(12)]
    >>> estimator = dml.LinearRegression().fit(rows, [2 * i - i % 3 + 1 for i in range(12)])
    >>> estimator.coef_.round(6), round(estimator.intercept_, 6)
    (array([ 2., -1.]), 1.0)
    """

    def __init__(self, l2=0.0, l1=0.0, *, intercept=True, standardise=False, max_steps=1000, gradient_tolerance=1e-10,
                 keys=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    alpha = None


class Ridge(LinearModel):
    """Least squares with the penalty l2."""

    def job(self, total):
        return {'objective': 'squared', 'l2': self.l2 if self.alpha is None else self.alpha / total, 'l1': self.l1}


class Lasso(LinearModel):
    """Least squares with the penalty l1."""

    def __init__(self, l1=1.0, *, intercept=True, standardise=False, max_steps=1000, gradient_tolerance=1e-10,
                 keys=None, alpha=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    l2 = 0.0

    def job(self, total):
        return {'objective': 'squared', 'l2': 0.0, 'l1': first_given(self.alpha, self.l1)}


class ElasticNet(LinearModel):
    """Least squares with l1 and l2."""

    def __init__(self, l2=0.5, l1=0.5, *, intercept=True, standardise=False, max_steps=1000, gradient_tolerance=1e-10,
                 keys=None, alpha=None, l1_ratio=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        if self.alpha is None and self.l1_ratio is None:
            return {'objective': 'squared', 'l2': self.l2, 'l1': self.l1}
        alpha, ratio = first_given(self.alpha, 1.0), first_given(self.l1_ratio, 0.5)
        return {'objective': 'squared', 'l2': alpha * (1 - ratio), 'l1': alpha * ratio}


class Path:
    """A penalty that is chosen by cross-validation over a path."""

    chosen = 'l2'

    def path(self, key, total, scale=1.0):
        values = first_given(self.alphas, getattr(self, key))
        if np.ndim(values) == 0:
            values = np.logspace(1, -5, int(values))
            scale = 1.0
        return sorted((float(value) / scale for value in values), reverse=True)

    def fit(self, X, y, sample_weight=None, offset=None, exposure=None):
        super().fit(X, y, sample_weight, offset, exposure)
        setattr(self, f'{self.chosen}_', self.result_[self.chosen])
        self.alpha_ = self.result_[self.chosen] * self.scale_
        return self


class RidgeCV(Path, Regressor):
    """Ridge with the l2 that is best over folds.

    `l2_` and `alpha_` are what was chosen.
    """

    def __init__(self, l2=10, *, folds=5, choose='best', choose_by=None, intercept=True, standardise=False,
                 max_steps=1000, gradient_tolerance=1e-10, keys=None, alphas=None, cv=None, fit_intercept=None,
                 max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        self.scale_ = total
        return {'objective': 'squared', 'l2': self.path('l2', total, total if self.alphas is not None else 1.0),
                **folds_job(self)}


class LassoCV(Path, Regressor):
    """Lasso with the l1 that is best over folds.

    `l1_` and `alpha_` are what was chosen.
    """

    chosen, scale_ = 'l1', 1.0

    def __init__(self, l1=10, *, folds=5, choose='best', choose_by=None, intercept=True, standardise=False,
                 max_steps=1000, gradient_tolerance=1e-10, keys=None, alphas=None, cv=None, fit_intercept=None,
                 max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        return {'objective': 'squared', 'l2': 0.0, 'l1': self.path('l1', total), **folds_job(self)}


class PoissonRegressor(LinearModel):
    """Counts with the logarithm as link. fit() takes an exposure."""

    objective = 'poisson'
    power = 1.0

    def score(self, X, y, sample_weight=None):
        """The share of the deviance that is explained, D²."""
        return d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self.power)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class GammaRegressor(PoissonRegressor):
    """Values above 0 with the logarithm as link."""

    objective = 'gamma'
    power = 2.0


class TweedieRegressor(PoissonRegressor):
    """The distributions of Tweedie with the logarithm as link; `power` 0 is least squares with the identity."""

    def __init__(self, power=1.5, l2='auto', l1=0.0, *, intercept=True, standardise=False, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, alpha=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    def job(self, total):
        named = {0: 'squared', 1: 'poisson', 2: 'gamma'}.get(self.power)
        return {**super().job(total), **({'objective': named} if named else
                                         {'objective': 'tweedie', 'tweedie': {'power': self.power}})}


class HuberRegressor(LinearModel):
    """Regression that outliers hardly move.

    scikit-learn's `epsilon` is in units of a deviation that it estimates along, and is another thing than `delta`.
    """

    def __init__(self, delta='auto', l2='auto', l1=0.0, *, intercept=True, standardise=False, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, fit_intercept=None, max_iter=None, tol=None):
        keep(self, locals())

    alpha = None

    def job(self, total):
        return {'objective': 'huber', 'l2': self.l2, 'l1': self.l1, 'huber': {'delta': self.delta}}


class QuantileRegressor(LinearModel):
    """The quantile `tau` of the values, by a pinball loss that is smoothed near 0."""

    def __init__(self, tau=0.5, l2=0.0, l1=0.0, *, epsilon='auto', intercept=True, standardise=False, max_steps=1000,
                 gradient_tolerance=1e-10, keys=None, quantile=None, alpha=None, fit_intercept=None, max_iter=None,
                 tol=None):
        keep(self, locals())

    def job(self, total):
        return {'objective': 'quantile', 'l2': self.l2, 'l1': first_given(self.alpha, self.l1),
                'quantile': {'tau': first_given(self.quantile, self.tau), 'epsilon': self.epsilon}}

    def score(self, X, y, sample_weight=None):
        """The share of the pinball loss that is explained, D²."""
        tau = first_given(self.quantile, self.tau)
        return d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=tau)


ALL = (LogisticRegression, LogisticRegressionCV, OrdinalClassifier, MLPClassifier, MLPRegressor, LinearRegression,
       Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, PoissonRegressor, GammaRegressor, TweedieRegressor, HuberRegressor,
       QuantileRegressor)

# ---- what parameters mean: each class documents those that it has ----

PARAMETERS = {
    'l2': ("float or 'auto'", 'The penalty l2/2‖w‖² beside the mean loss; `auto` is 1 over the sum of the weights of rows.'),
    'l1': ('float', 'The penalty l1‖w‖₁ beside the mean loss.'),
    'intercept': ('bool', 'Whether the model has an intercept.'),
    'standardise': ('bool', 'As in dml.conf(5).'),
    'class_weight': ("dict or 'balanced', optional", 'Weights of classes, which multiply those of rows.'),
    'max_steps': ('int', 'So many steps at the most.'),
    'gradient_tolerance': ('float', 'As in dml.conf(5).'),
    'keys': ('dict, optional', "Any other keys of dml.conf(5), such as {'csv': {'text': 'title'}, 'threads': 1}."),
    'folds': ('int', 'The number of folds.'),
    'choose': ('str', 'As in dml.conf(5).'),
    'choose_by': ('str, optional', 'As in dml.conf(5).'),
    'layers': ('int or sequence of int', 'The units of each hidden layer.'),
    'activation': ("'tanh', 'relu' or 'gelu'", 'The activation function of the hidden layers.'),
    'loss': ('str', 'squared, huber, poisson, gamma, tweedie or quantile.'),
    'start': ("'zero' or 'downpour', optional", 'With downpour, epochs of minibatches come before L-BFGS.'),
    'holdout': ('float, optional', 'The share of the rows on which the loss is watched.'),
    'early_stopping': ("int or 'off'", 'Training ends when the loss of the holdout has not improved for so many steps.'),
    'random_state': ('int or RandomState, optional', 'The seed of the random weights from which training starts.'),
    'power': ('float', 'From 1, Poisson, to 2, gamma; or 0.'),
    'delta': ("float or 'auto'", 'From this residual on the loss is linear; `auto` takes it from the values.'),
    'tau': ('float', 'The quantile.'),
    'epsilon': ("float or 'auto'", 'The loss is smoothed up to this residual.'),
    'C': ('float, optional', "scikit-learn's name of 1 over l2 times the sum of the weights of rows."),
    'alpha': ('float, optional', "scikit-learn's penalty, in its units."),
    'l1_ratio': ('float, optional', 'The share of l1 in `alpha` or 1/C, as in scikit-learn.'),
    'fit_intercept': ('bool, optional', "scikit-learn's name of `intercept`."),
    'max_iter': ('int, optional', "scikit-learn's name of `max_steps`."),
    'tol': ('float, optional', "scikit-learn's name of `gradient_tolerance`."),
    'Cs': ('int or list of float, optional', 'As in scikit-learn.'),
    'alphas': ('int or list of float, optional', 'As in scikit-learn.'),
    'cv': ('int, splitter or list of splits, optional',
           'The folds. The program draws a number of them by hashes of rows; a classifier with few rows deals them out.'),
    'hidden_layer_sizes': ('int or sequence of int, optional', "scikit-learn's name of `layers`."),
    'quantile': ('float, optional', "scikit-learn's name of `tau`."),
}
VALUES = 'int or list of float', 'The values to choose from, or how many.'
CHOSEN = {'LogisticRegressionCV': {'l2': VALUES}, 'RidgeCV': {'l2': VALUES}, 'LassoCV': {'l1': VALUES}}


def documented(kind):
    """The docstring of a class, with its parameters between what it is and its examples."""
    own = inspect.cleandoc(kind.__doc__)
    about, *examples = own.split('\nExamples\n')
    chosen = {**PARAMETERS, **CHOSEN.get(kind.__name__, {})}
    lines = [f'{name} : {chosen[name][0]}\n    {chosen[name][1]}' for name in list(inspect.signature(kind).parameters)]
    return '\n'.join([about.rstrip(), '', 'Parameters', '----------', *lines,
                      *(f'\nExamples\n{part}' for part in examples)])


for kind in ALL:
    kind.__module__, kind.__doc__ = 'dml', documented(kind)
