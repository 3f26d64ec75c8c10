#!/usr/bin/env python3
"""Summaries beside R's glm: estimates, errors, p, deviances, log-likelihood, AIC and BIC.

    bench/summary_r.py [ROW...]

Each row is a table with numbers and categories, a loss, and what rows have of their own: weights, an
offset, an exposure. R reads the same file, takes the same reference levels and iterates to
glm.control(epsilon = 1e-14), and on from there. Printed is the largest relative difference of each figure; a row fails
where one is beyond 1e-8, of p 1e-7, which in far tails is as much as 1e-8 of the statistic. Without
Rscript it says so and does nothing. Run it in the build folder, like the tests.

R's AIC is not everywhere what it says of itself: it counts the dispersion, so it is 2 more; of gamma
it takes deviance/Σw for the dispersion; and of binary labels it rounds weights to whole numbers. So of
gamma the likelihood is that of R's dgamma with Pearson's dispersion, and of weighted binary labels
half the deviance."""

import csv
import gzip
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'tests/integration'))
import summaries  # noqa: E402
from harness import SHARED, dml, heed_interrupts, train, write_job  # noqa: E402

CLOSE, CLOSE_P = 1e-8, 1e-7

# Whatever R prints is read back as the same double.
SCRIPT = r'''
given <- commandArgs(trailingOnly = TRUE)
rows <- read.csv(given[1], check.names = FALSE)
family <- switch(given[2], squared = gaussian(), logistic = binomial(), poisson = poisson(),
                 gamma = Gamma(link = "log"))
own <- function(name, otherwise) if (name %in% names(rows)) rows[[name]] else otherwise
weight <- own("w", rep(1, nrow(rows)))
shift <- own("o", 0) + log(own("e", 1)) + rep(0, nrow(rows))
features <- setdiff(names(rows), c("y", "w", "o", "e"))
for (reference in given[-(1:2)]) {
    parts <- strsplit(reference, "=")[[1]]
    rows[[parts[1]]] <- relevel(factor(rows[[parts[1]]]), ref = parts[2])
}
formula <- reformulate(paste0("`", features, "`"), "y")
fit <- suppressWarnings(glm(formula, family, rows, weights = weight, offset = shift,
                            control = glm.control(epsilon = 1e-14, maxit = 200)))
null_deviance <- fit$null.deviance
# Deviances that are equal end it with estimates that still move: Fisher scoring converges linearly
# where the link is not the canonical one, and errors are those of the step before.
for (i in 1:30)
    fit <- suppressWarnings(glm(formula, family, rows, weights = weight, offset = shift,
                                start = coef(fit), control = glm.control(epsilon = 1e-300, maxit = 2)))
table <- summary(fit)$coefficients
show <- function(name, values) cat(name, sprintf("%.17g", values), sep = "\t", fill = FALSE, "\n")
for (name in rownames(table)) show(gsub("`", "", name), table[name, ])
dispersion <- summary(fit)$dispersion
likelihood <- if (given[2] == "gamma") {
    sum(dgamma(rows$y, shape = weight / dispersion, scale = fitted(fit) * dispersion / weight,
               log = TRUE))
} else if (given[2] == "logistic") {
    -fit$deviance / 2
} else {
    as.numeric(logLik(fit))
}
show("*deviance", fit$deviance)
show("*null_deviance", null_deviance)
show("*dispersion", dispersion)
show("*log_likelihood", likelihood)
show("*aic", fit$aic)
show("*bic", BIC(fit))
show("*freedom", fit$df.residual)
'''


# ---- tables ----

def made(loss, rows=5000, **own):
    """The rows of the tests, with `o` or `e` if asked for, and without `w` if not."""
    rng, table = random.Random(3), summaries.rows_of(loss, rows)
    for row in table:
        weight = row.pop('w')
        if own.get('weight'):
            row['w'] = math.ceil(weight) if own['weight'] == 'whole' else weight
        if own.get('offset'):
            row['o'] = round(rng.gauss(0, 0.5), 3)
        if own.get('exposure'):
            row['e'] = round(rng.uniform(0.3, 4), 3)
    return table


def shared(name, label, change=float):
    def rows():
        with gzip.open(SHARED / name, 'rt') as file:
            table = list(csv.DictReader(file))
        return [{**{k: v for k, v in row.items() if k != label}, 'y': change(row[label])}
                for row in table]
    return rows


class Row:
    def __init__(self, name, loss, rows, likelihood=True):
        self.name, self.loss, self.rows, self.likelihood = name, loss, rows, likelihood


def rows_of_tests():
    for loss in 'squared', 'logistic', 'poisson', 'gamma':
        for own in ({}, {'weight': True}, {'weight': 'whole'}, {'offset': True},
                    {'weight': True, 'offset': True}):
            words = ', '.join('whole weight' if value == 'whole' else key
                              for key, value in own.items())
            yield Row(f'{loss}{", " if own else ""}{words}', loss,
                      lambda loss=loss, own=own: made(loss, **own),
                      loss != 'logistic' or own.get('weight') is not True)
    for loss in 'poisson', 'gamma':
        yield Row(f'{loss}, weight, exposure', loss,
                  lambda loss=loss: made(loss, weight=True, exposure=True))


ROWS = [*rows_of_tests(),
        Row('housing, squared', 'squared', shared('cal_housing.csv.gz', 'medianHouseValue')),
        Row('housing, logistic', 'logistic',
            shared('cal_housing.csv.gz', 'medianHouseValue', lambda y: int(float(y) > 2e5))),
        Row('housing, poisson', 'poisson',
            shared('cal_housing.csv.gz', 'medianHouseValue', lambda y: int(float(y) / 1e4)))]


# ---- both ----

def ours_of(folder, row):
    table = row.rows()
    summaries.write_csv(folder / 'rows.csv', table)
    own = {key: name for key, name in (('offset', 'o'), ('exposure', 'e')) if name in table[0]}
    sections = {'label': 'y', **({'weight': 'w'} if 'w' in table[0] else {})}
    train(write_job(folder, data=['rows.csv'], objective=row.loss, l2=0, summary='model',
                    csv=sections, **own))
    finished = dml('summary', folder / 'job.state', '--json')
    assert finished.status == 0, finished
    return json.loads(finished.stdout)


def theirs_of(folder, row, references):
    script = folder / 'glm.R'
    script.write_text(SCRIPT)
    said = subprocess.run(['Rscript', '--vanilla', script, folder / 'rows.csv', row.loss,
                           *references], check=True, capture_output=True, text=True).stdout
    return {line.split('\t')[0]: [float(value) for value in line.split('\t')[1:] if value.strip()]
            for line in said.splitlines()}


def off(ours, theirs):
    return abs(ours - theirs) / max(abs(theirs), 1e-300)


def compared(folder, row):
    """The largest difference of each figure."""
    ours = ours_of(folder, row)
    references = [r['name'] for r in ours['rows'] if r.get('reference')]
    theirs = theirs_of(folder, row, references)
    found, seen = {'estimate': 0, 'error': 0, 'statistic': 0, 'p': 0}, 0
    for own in ours['rows']:
        name = own['name'].replace('=', '') if own['name'] != '(intercept)' else '(Intercept)'
        if own.get('reference'):
            assert name not in theirs, name
            continue
        seen += 1
        for key, value in zip(found, theirs[name]):
            if key != 'p' or value > 1e-300:
                found[key] = max(found[key], off(own[key], value))
    assert seen == sum(not name.startswith('*') for name in theirs), (seen, theirs)
    for name in 'deviance', 'null_deviance', 'dispersion', 'log_likelihood', 'freedom':
        found[name] = off(ours['fit'][name], theirs['*' + name][0])
    if row.loss != 'gamma' and row.likelihood:
        counted = row.loss == 'squared'  # the dispersion, by R
        found['aic'] = off(ours['fit']['aic'] + 2 * counted, theirs['*aic'][0])
        found['bic'] = off(ours['fit']['bic'] + math.log(ours['fit']['rows']) * counted,
                           theirs['*bic'][0])
    return found


def main():
    heed_interrupts()
    if not shutil.which('Rscript'):
        print('skipped: Rscript is not there')
        return 0
    failed = False
    for row in ROWS:
        if sys.argv[1:] and not any(part in row.name for part in sys.argv[1:]):
            continue
        if row.name.startswith('housing') and not SHARED.exists():
            print(f'{row.name}: skipped: {SHARED} is not there')
            continue
        with tempfile.TemporaryDirectory() as name:
            found = compared(pathlib.Path(name), row)
        beyond = [key for key, value in found.items()
                  if not value <= (CLOSE_P if key == 'p' else CLOSE)]
        failed |= bool(beyond)
        print(f'{row.name}: ' + ', '.join(f'{key} {value:.0e}' for key, value in found.items()) +
              (f' BEYOND: {", ".join(beyond)}' if beyond else ''), flush=True)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
