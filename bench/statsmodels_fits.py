#!/usr/bin/env python3
"""Every fit of statsmodels' own tests that our objectives can express, beside ours.

    bench/statsmodels_fits.py [--only WORD] [--program FILE] [--verbose]

The tests of the installed statsmodels are run, and each model that they fit is noted with what it
found; they hold these to R and Stata. Each is then trained here from a file of its
numbers. Printed is a row for each fit: how far estimates are off, in errors, and how far errors and
deviance or log-likelihood are off, relatively; what cannot be expressed, with the reason; and a total.
Needs statsmodels and pytest. The exit status is 1 if a fit disagrees."""

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy

MODULES = ['statsmodels.genmod.tests.test_glm', 'statsmodels.genmod.tests.test_glm_weights',
           'statsmodels.discrete.tests.test_discrete', 'statsmodels.discrete.tests.test_sandwich_cov',
           'statsmodels.discrete.tests.test_constrained', 'statsmodels.regression.tests.test_regression',
           'statsmodels.regression.tests.test_robustcov', 'statsmodels.miscmodels.tests.test_ordinal_model',
           'statsmodels.base.tests.test_shrink_pickle', 'statsmodels.base.tests.test_generic_methods']
# Off by more than this is a disagreement. Their iterations end at 1e-8 of the deviance, and numerical
# derivatives are good to fewer digits.
ESTIMATE_OFF, ERROR_OFF, FIT_OFF = 1e-3, 1e-3, 1e-6
PARAMETERS_MOST = 500


class Inexpressible(Exception):
    """Why."""


# ---- what statsmodels fits ----

def numbers(value):
    return None if value is None else numpy.asarray(value, dtype=float)


class Fit:
    def __init__(self, test, model, result, options):
        self.test, self.model, self.result, self.options = test, model, result, options
        # Copies, since fit_regularized() of the same model changes its exposure in place.
        self.offsets = [numpy.array(value, dtype=float) for value in
                        (getattr(model, name, None) for name in ('offset', 'exposure')) if value is not None]

    @property
    def kind(self):
        return type(self.model).__name__

    def key(self):
        parts = [self.kind, repr(sorted((k, str(v)) for k, v in self.options.items()))]
        for name in ('endog', 'exog', 'offset', 'exposure', 'freq_weights', 'var_weights', 'weights'):
            value = getattr(self.model, name, None)
            parts.append(b'' if value is None else numpy.ascontiguousarray(value, dtype=float).tobytes())
        family = getattr(self.model, 'family', None)
        parts.append(f'{type(family).__name__} {type(getattr(family, "link", None)).__name__}')
        return hashlib.sha256(b'|'.join(p if isinstance(p, bytes) else p.encode() for p in parts)).hexdigest()


def noted(fits, test):
    """Puts a function in place of each fit() that notes what it found."""
    from statsmodels.discrete import discrete_model
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.miscmodels.ordinal_model import OrderedModel
    from statsmodels.regression import linear_model
    classes = [GLM, OrderedModel, linear_model.RegressionModel, discrete_model.DiscreteModel,
               discrete_model.Logit, discrete_model.Probit, discrete_model.Poisson,
               discrete_model.MNLogit, discrete_model.NegativeBinomial,
               discrete_model.GeneralizedPoisson, discrete_model.NegativeBinomialP]
    depth = [0]

    def wrap(cls):
        own = cls.__dict__.get('fit')
        if not own:
            return

        def fit(self, *args, **kwargs):
            depth[0] += 1
            try:
                result = own(self, *args, **kwargs)
            finally:
                depth[0] -= 1
            if not depth[0]:
                fits.append(Fit(test[0], self, result, dict(kwargs)))
            return result
        cls.fit = fit
    for cls in classes:
        wrap(cls)


def collect(only):
    """Runs their tests by pytest, and answers each fit once."""
    import pytest
    fits, test = [], ['']
    noted(fits, test)

    class Plugin:
        @staticmethod
        def pytest_runtest_setup(item):
            test[0] = item.nodeid.split('/')[-1]

    words = ['-k', only] if only else []
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(['-q', '-p', 'no:cacheprovider', *words, '--pyargs', *MODULES], plugins=[Plugin()])
    seen = {}
    for fit in fits:
        with contextlib.suppress(Exception):
            seen.setdefault(fit.key(), fit)
    return list(seen.values())


# ---- the same as a job ----

def objective_of(fit):
    """The objective and its keys."""
    model, kind = fit.model, fit.kind
    if kind in ('OLS', 'WLS'):
        return 'squared', {}
    if kind in ('Logit', 'Poisson', 'MNLogit'):
        return {'Logit': 'logistic', 'Poisson': 'poisson', 'MNLogit': 'softmax'}[kind], {}
    if kind == 'OrderedModel':
        if type(model.distr).__name__ not in ('logistic_gen',):
            raise Inexpressible(f'ordered classes by {type(model.distr).__name__}')
        return 'proportional_odds', {}
    if kind != 'GLM':
        raise Inexpressible(f'a model of the kind {kind}')
    family, link = type(model.family).__name__, type(model.family.link).__name__
    fitting = {('Gaussian', 'Identity'): 'squared', ('Binomial', 'Logit'): 'logistic',
               ('Poisson', 'Log'): 'poisson', ('Gamma', 'Log'): 'gamma', ('Tweedie', 'Log'): 'tweedie'}
    if (family, link) not in fitting:
        raise Inexpressible(f'{family} with the link {link}')
    if family == 'Tweedie':
        power = float(model.family.var_power)
        if not 1 < power < 2:
            raise Inexpressible(f'tweedie with the power {power:g}')
        return 'tweedie', {'tweedie': {'power': power}}
    return fitting[family, link], {}


def columns_of(fit):
    """The columns beside the constant, and the number of that column or None."""
    x = numbers(fit.model.exog)
    if x is None or x.ndim != 2 or not numpy.all(numpy.isfinite(x)):
        raise Inexpressible('no columns that are finite')
    constant = [j for j in range(x.shape[1]) if numpy.ptp(x[:, j]) == 0 and x[0, j] == 1]
    first = constant[0] if constant else None
    kept = [j for j in range(x.shape[1]) if j != first]
    if not kept:
        raise Inexpressible('the intercept alone')
    if len(kept) > PARAMETERS_MOST:
        raise Inexpressible('so many columns')
    return x, kept, first


def weights_of(fit):
    model, n = fit.model, len(numbers(fit.model.endog))
    weights = numpy.ones(n)
    for name in ('freq_weights', 'var_weights'):
        if getattr(model, name, None) is not None and fit.kind == 'GLM':
            weights = weights * numbers(getattr(model, name))
    if fit.kind == 'WLS':
        weights = numbers(model.weights) * numpy.ones(n)
    if not numpy.all(weights >= 0):
        raise Inexpressible('weights below 0')
    return weights


def offset_of(fit):
    offset = numpy.zeros(len(numbers(fit.model.endog)))
    for value in fit.offsets:
        offset = offset + value  # exposure is kept as its logarithm
    return offset


def check_options(fit):
    options = fit.options
    kind = options.get('cov_type', 'nonrobust')
    if getattr(fit.model, 'constraints', None) is not None or 'constraints' in options:
        raise Inexpressible('constraints')
    if any(word in str(options.get('method', '')) for word in ('l1', 'elastic')):
        raise Inexpressible('a penalty')
    if options.get('maxiter') == 0 or 'skip_hessian' in options:
        raise Inexpressible('no iteration')
    if options.get('cov_kwds'):
        return None  # a correction of theirs
    # Their HC1 of a model that is not linear has no correction for the number of parameters.
    return {'nonrobust': '', 'HC0': 'HC0', 'HC1': 'HC1' if fit.kind in ('OLS', 'WLS') else 'HC0'}.get(kind)


def table_of(fit):
    """Rows of label, weight, offset and columns."""
    x, kept, constant = columns_of(fit)
    y, weight, offset = numbers(fit.model.endog), weights_of(fit), offset_of(fit)
    if y.ndim == 2:
        if fit.kind != 'MNLogit':
            raise Inexpressible('labels of several columns')
        y = numpy.argmax(y, axis=1).astype(float)
    rows = numpy.column_stack([y, weight, offset, x[:, kept]])
    trials = getattr(fit.model, 'n_trials', 1)
    if fit.kind == 'GLM' and type(fit.model.family).__name__ == 'Binomial':
        share, total = y, numpy.ones(len(y)) * numbers(trials)
        won, lost = rows.copy(), rows.copy()
        won[:, 0], won[:, 1] = 1, weight * total * share
        lost[:, 0], lost[:, 1] = 0, weight * total * (1 - share)
        rows = numpy.vstack([won, lost])
        rows = rows[rows[:, 1] > 0]
    return rows, kept, constant


# ---- ours ----

def quoted(value):
    if isinstance(value, dict):
        return '{ ' + ' '.join(f'{k} = {quoted(v)}' for k, v in value.items()) + ' }'
    return 'true' if value is True else 'false' if value is False else str(value)


def trained(program, folder, fit, objective, settings):
    rows, kept, constant = table_of(fit)
    if objective == 'poisson' and not numpy.all(rows[:, 0] >= 0):
        raise Inexpressible('counts below 0')
    if objective == 'gamma' and not numpy.all(rows[:, 0] > 0):
        raise Inexpressible('labels of 0')
    names = ['label', 'weight', 'offset', *(f'x{j}' for j in kept)]
    lines = [','.join(names)] + [','.join(repr(float(v)) for v in row) for row in rows]
    (folder / 'rows.csv').write_text('\n'.join(lines) + '\n')
    csv = {'label': 'label', 'skip': '{ }'}
    job = {'data': '{ "rows.csv" }', 'objective': objective, 'l2': 0, 'summary': 'robust',
           'intercept': constant is not None or objective == 'proportional_odds', 'max_steps': 5000, **settings}
    skipped = []
    if numpy.ptp(rows[:, 1]) or rows[0, 1] != 1:
        csv['weight'] = 'weight'
    else:
        skipped.append('weight')
    if numpy.any(rows[:, 2]):
        job['offset'] = 'offset'
    else:
        skipped.append('offset')
    csv['skip'] = '{ ' + ', '.join(skipped) + ' }'
    csv['numbers'] = '{ ' + ', '.join(names[3:]) + ' }'
    text = ''.join(f'{k} {quoted(v)}\n' if isinstance(v, dict) else f'{k} = {quoted(v)}\n'
                   for k, v in {**job, 'csv': csv}.items())
    (folder / 'job.conf').write_text(text)
    finished = subprocess.run([program, 'run', folder / 'job.conf', '--json', '--quiet'],
                              capture_output=True, text=True)
    if finished.returncode:
        raise Inexpressible('refused: ' + finished.stderr.strip().split('\n')[-1][-110:])
    result = json.loads(finished.stdout.splitlines()[-1])
    return result, kept, constant


def shown(program, result, errors):
    option = [f'--robust={errors}'] if errors else []
    finished = subprocess.run([program, 'summary', result['model'], '--json', *option],
                              capture_output=True, text=True)
    if finished.returncode:
        raise Inexpressible('no summary: ' + finished.stderr.strip()[-110:])
    return json.loads(finished.stdout)


def estimates_of(fit, table, kept, constant):
    """Ours in the order of theirs: (estimate, error), NaN where one is aliased."""
    by_class = collections.defaultdict(dict)
    for row in table['rows']:
        alias = row.get('aliased')
        by_class[row.get('class', '')][row['name']] = (
            (numpy.nan, numpy.nan) if alias else (row['estimate'], row['error']))
    names = [f'x{j}' for j in kept]
    if constant is not None:
        names.insert(constant, '(intercept)')
    if fit.kind == 'OrderedModel':
        own = by_class['']
        return [own[name] for name in names if name != '(intercept)']
    classes = sorted(by_class, key=lambda name: float(name) if name else 0)
    if fit.kind == 'MNLogit':
        classes = classes[1:]  # the first one is the reference
    return [by_class[c][name] for c in classes for name in names]


def compare(program, fit, folder):
    """How far ours is off: estimates in errors, errors and fit relatively."""
    errors = check_options(fit)
    objective, settings = objective_of(fit)
    result, kept, constant = trained(program, folder, fit, objective, settings)
    table = shown(program, result, errors or '')
    ours = numpy.array(estimates_of(fit, table, kept, constant), dtype=float)
    theirs = numbers(fit.result.params)
    theirs = theirs.flatten(order='F') if theirs.ndim == 2 else theirs[:len(ours)]
    bse = numbers(fit.result.bse)
    bse = bse.flatten(order='F') if bse.ndim == 2 else bse[:len(ours)]
    known = numpy.isfinite(ours[:, 0]) & numpy.isfinite(ours[:, 1].astype(float))
    off = {}
    if known.all() and len(theirs) == len(ours) and numpy.linalg.matrix_rank(numbers(fit.model.exog)) == numbers(fit.model.exog).shape[1]:
        unit = numpy.where(ours[:, 1] > 0, ours[:, 1], 1)
        off['estimate'] = float(numpy.max(numpy.abs(ours[:, 0] - theirs) / unit))
        scale = float(getattr(fit.result, 'scale', 1) or 1)
        expected = objective in ('gamma', 'tweedie')
        observed = expected and fit.options.get('method', 'IRLS') != 'IRLS'  # their second derivatives
        if errors == '' and not observed:
            dispersion = table['fit']['dispersion'] or 1
            own, other = ours[:, 1] / numpy.sqrt(dispersion), bse / numpy.sqrt(scale)
            off['error'] = float(numpy.max(numpy.abs(own / other - 1)))
        elif errors and not expected and not numpy.any(getattr(fit.model, 'freq_weights', 1) != numpy.ones(1)):
            grouped = fit.kind == 'GLM' and numpy.any(numpy.ones(1) * getattr(fit.model, 'n_trials', 1) != 1)
            if not grouped and len(table_of(fit)[0]) == len(numbers(fit.model.endog)):
                off['error'] = float(numpy.max(numpy.abs(ours[:, 1] / bse - 1)))
    whole = table['fit']
    if fit.kind in ('OLS', 'WLS'):
        theirs_fit, ours_fit = float(fit.result.ssr), whole['deviance']
    elif fit.kind == 'GLM' and len(table_of(fit)[0]) != len(numbers(fit.model.endog)):
        theirs_fit = ours_fit = 0.0  # rows of trials have another saturated model
    elif fit.kind == 'GLM':
        theirs_fit, ours_fit = float(fit.result.deviance), whole['deviance']
    else:
        theirs_fit, ours_fit = float(fit.result.llf), whole['log_likelihood']
    # Ours may be nearer to the optimum than theirs, which ends sooner.
    higher = ours_fit - theirs_fit if fit.kind in ('OLS', 'WLS', 'GLM') else theirs_fit - ours_fit
    off['fit'] = higher / (abs(theirs_fit) + 1e-8)
    if getattr(fit.result, 'converged', True) is False or (
            isinstance(getattr(fit.result, 'mle_retvals', None), dict) and
            not fit.result.mle_retvals.get('converged', True)):
        off = {'fit': max(0, off['fit']), 'unconverged': True}
    return objective, off


def agrees(off):
    if off.get('estimate', 0) > ESTIMATE_OFF or off.get('error', 0) > ERROR_OFF:
        return False
    return off['fit'] <= FIT_OFF and (off['fit'] >= -1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', help='tests by an expression of pytest -k')
    parser.add_argument('--program', default=str(Path(os.environ.get('DML_BUILD', 'build')) / 'dml-coordinator'))
    parser.add_argument('--verbose', action='store_true', help='also a row for each fit that agrees')
    options = parser.parse_args()
    warnings.simplefilter('ignore')
    numpy.seterr(all='ignore')
    fits = collect(options.only)
    agreeing, reasons = collections.Counter(), collections.Counter()
    against = 0
    for fit in fits:
        name = f'{fit.test} {fit.kind}'
        with tempfile.TemporaryDirectory() as folder:
            try:
                objective, off = compare(options.program, fit, Path(folder))
            except Inexpressible as why:
                reasons[str(why)] += 1
                if options.verbose:
                    print(f'not expressed  {name}: {why}')
                continue
        figures = ', '.join(f'{key} {value:.1e}' for key, value in off.items() if key != 'unconverged')
        if agrees(off):
            agreeing[objective] += 1
        else:
            against += 1
        if options.verbose or not agrees(off):
            print(f'{"agrees" if agrees(off) else "DISAGREES"}  {name} {fit.options.get("cov_type", "")} '
                  f'{objective}: {figures}', flush=True)
    for why, count in reasons.most_common():
        print(f'{count:5} not expressed: {why}')
    for objective, count in sorted(agreeing.items()):
        print(f'{count:5} agree: {objective}')
    print(f'{len(fits)} fits, {sum(reasons.values())} not expressed, {sum(agreeing.values())} agree, '
          f'{against} disagree')
    return against > 0


if __name__ == '__main__':
    sys.exit(main())
