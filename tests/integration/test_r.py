#!/usr/bin/env python3
"""The package for R: estimates and predictions beside those of glm()."""

import os
import shutil
import subprocess
import sys

from harness import COORDINATOR, SOURCE, Skip, main, test

BEGIN = f'''
source("{SOURCE}/r/R/dml.R")
set.seed(1)
n <- 300
d <- data.frame(x = rnorm(n), z = runif(n), town = factor(sample(c("Rome", "Bonn, \\"old\\"", NA), n, TRUE)), w = 1:n / n)
d$bought <- as.integer(runif(n) < plogis(d$x - d$z))
d$visits <- rpois(n, exp(d$x / 2 + d$z))
d$price <- d$x * 3 - d$z + rnorm(n)
near <- function(a, b, most) stopifnot(max(abs(a - b)) <= most)
refused <- function(words, call) {{
    said <- tryCatch({{ call; "" }}, error = conditionMessage)
    if (!grepl(words, said, fixed = TRUE)) stop(sprintf("not refused with '%s': %s", words, said))
}}
'''


def in_r(folder, script):
    if not shutil.which('Rscript'):
        raise Skip('Rscript is not installed')
    if subprocess.run(['Rscript', '-e', 'library(jsonlite)'], capture_output=True).returncode:
        raise Skip('the package jsonlite of R is not installed')
    (folder / 'script.R').write_text(BEGIN + script)
    done = subprocess.run(['Rscript', folder / 'script.R'], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, 'DML_COORDINATOR': str(COORDINATOR)})
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@test
def estimates_errors_and_predictions_are_those_of_glm(folder):
    shown = in_r(folder, '''
for (way in list(list("logistic", binomial(), bought ~ x + z), list("poisson", poisson(), visits ~ x + z),
                 list("squared", gaussian(), price ~ x + z), list("squared", gaussian(), price ~ x + z - 1))) {
    fit <- dml_train(way[[3]], d, objective = way[[1]], l2 = 0, summary = "model")
    other <- glm(way[[3]], way[[2]], d, control = list(epsilon = 1e-14, maxit = 99))
    names <- names(coef(other))
    near(coef(fit)[names], coef(other), 1e-9)
    near(summary(fit)$coefficients[names, ], summary(other)$coefficients, 1e-6)
    near(summary(fit)$fit$deviance, deviance(other), 1e-6)
    near(predict(fit, d[1:9, ]), predict(other, d[1:9, ], type = "response"), 1e-9)
    near(predict(fit, d[1:9, ], "link"), predict(other, d[1:9, ]), 1e-9)
}
print(summary(fit))
''')
    assert 'Pr(>|t|)' in shown and 'Residual deviance' in shown and 'Dispersion parameter for gaussian' in shown, shown


@test
def weights_and_offsets_are_columns_or_numbers_as_in_glm(folder):
    in_r(folder, '''
d$shift <- d$z / 3
other <- glm(visits ~ x + offset(shift), poisson(), d, weights = w, control = list(epsilon = 1e-14, maxit = 99))
v <- d$w
fits <- list(dml_train(visits ~ x + offset(shift), d, weights = w, objective = "poisson", l2 = 0, summary = "model"),
             dml_train(visits ~ x, d, weights = v, offset = shift, objective = "poisson", l2 = 0, summary = "model"),
             dml_train(visits ~ x, d, weights = "w", offset = "shift", objective = "poisson", l2 = 0, summary = "model"),
             dml_train("visits", d[c("x", "w", "visits")], weights = w, offset = d$shift, objective = "poisson", l2 = 0,
                       summary = "model"))
for (fit in fits) near(coef(fit)[names(coef(other))], coef(other), 1e-8)
near(predict(fits[[1]], d[1:9, ]), predict(other, d[1:9, ], type = "response"), 1e-8)
fit <- dml_train(bought ~ x + z, d, l2 = 0, summary = "model")
other <- glm(bought ~ x + z, binomial(), d)
stopifnot(nobs(fit) == nobs(other), all.equal(AIC(fit), AIC(other)), all.equal(c(logLik(fit)), c(logLik(other))))
''')


@test
def a_saved_object_predicts_in_another_session(folder):
    in_r(folder, '''
fit <- dml_train(bought ~ x + town, d, l2 = 1e-3, holdout = 0.2, summary = "model")
stopifnot(fit$figures$holdout$examples > 0, any(grepl("^holdout: examples .*, loss .*, auc", capture.output(print(fit)))))
saveRDS(list(fit, predict(fit, d), summary(fit)$coefficients), "fit.rds")
''')
    in_r(folder, '''
kept <- readRDS("fit.rds")
stopifnot(!dir.exists(kept[[1]]$model), identical(predict(kept[[1]], d), kept[[2]]))
stopifnot(identical(summary(kept[[1]])$coefficients, kept[[3]]), length(coef(kept[[1]])) > 2)
kept[[1]]$files <- NULL
kept[[1]]$result$model_sha256 <- "gone"
refused("which is not there", predict(kept[[1]], d))
''')


@test
def the_estimates_of_classes_are_named(folder):
    in_r(folder, '''
d$grade <- sample(c("a", "b", "c"), n, TRUE)
fit <- dml_train(grade ~ x, d, objective = "softmax", l2 = 0, summary = "model")
stopifnot(identical(rownames(summary(fit)$coefficients), paste(rep(c("a", "b", "c"), each = 2), c("(Intercept)", "x"), sep = ":")))
''')


@test
def tables_with_texts_and_missing_cells_are_trained_on_as_they_are(folder):
    in_r(folder, '''
fit <- dml_train("bought", d[c("x", "town", "w", "bought")], weights = "w", l2 = 1e-3, state = "kept.state")
stopifnot(all(c("town=Rome", "town=Bonn, \\"old\\"") %in% names(coef(fit))), file.exists(fit$model))
stopifnot(!file.exists("kept.state/r/data.csv"), all(predict(fit, d, "class") %in% c("0", "1")))
three <- dml_train(town ~ x + z, d[!is.na(d$town), ], objective = "one_vs_rest", l2 = 1e-3)
shares <- predict(three, d[1:5, ], "probabilities")
stopifnot(nrow(shares) == 5, "Rome" %in% colnames(shares))
''')


@test
def what_is_wrong_is_an_error_that_says_what_to_do(folder):
    in_r(folder, '''
refused("no column is named `gone`", dml_train(gone ~ x, d))
refused('the key `cross`, as cross = "x*z"', dml_train(bought ~ x * z, d))
refused("make a column of it in the data", dml_train(bought ~ log(z), d))
refused("the columns are x, z, town", dml_train(bought ~ xx, d))
refused("no column is named `Bought`, the label; the columns are x", dml_train("Bought", d))
refused("`weights` must be a column", dml_train(bought ~ x, d, weights = 1:3))
refused("the formula has an offset", dml_train(bought ~ x + offset(z), d, offset = w))
refused("give newdata", predict(dml_train(bought ~ x, d)))
refused('Error: newdata.csv:1: the column "x" is missing', tryCatch(predict(dml_train(bought ~ x, d), d["z"]),
        error = function(error) stop("Error: ", conditionMessage(error))))
stopifnot(startsWith(tryCatch(dml_train(bought ~ x, d, l9 = 1), error = conditionMessage), "key `l9`: there is no such key"))
refused("status 65", dml_train(price ~ x, d, objective = "poisson"))
warned <- FALSE
withCallingHandlers(dml_train(bought ~ x + z, d, max_steps = 1), warning = function(w) { warned <<- TRUE; invokeRestart("muffleWarning") })
stopifnot(warned)
Sys.setenv(DML_COORDINATOR = "", PATH = "/nowhere")
refused("set DML_COORDINATOR", dml_train(bought ~ x, d))
''')


if __name__ == '__main__':
    sys.exit(main())
