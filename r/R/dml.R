# Trains with the programs of dml, and scores with them: dml_train(), and the methods of what it returns.

# ---- programs ----

coordinator <- function() {
    named <- Sys.getenv("DML_COORDINATOR")
    if (nzchar(named)) return(named)
    found <- Sys.which("dml-coordinator")
    if (!nzchar(found))
        stop("dml-coordinator was not found: install the programs of dml, or set DML_COORDINATOR to its path", call. = FALSE)
    unname(found)
}

# Runs the program to its end, and returns its standard output. Its warnings are R's, and its last sentence is the error,
# without the folder of the files that were made for it.
run_program <- function(arguments, folder = tempdir()) {
    errors <- tempfile()
    on.exit(unlink(errors))
    output <- suppressWarnings(system2(coordinator(), shQuote(arguments), stdout = TRUE, stderr = errors))
    status <- attr(output, "status")
    said <- gsub(paste0(folder, "/"), "", readLines(errors, warn = FALSE), fixed = TRUE)
    if (!is.null(status)) {
        lines <- said[grepl("^dml-coordinator: ", said)]
        text <- if (length(lines)) sub("^dml-coordinator: ", "", lines[length(lines)]) else paste(said, collapse = "\n")
        stop(sprintf("%s (status %d)", sub("^job\\.conf:[0-9]+: ", "", text), status), call. = FALSE)
    }
    for (line in said[grepl(" coordinator warning: ", said)]) warning(sub(".* coordinator warning: ", "", line), call. = FALSE)
    output
}

# ---- job files ----

job_value <- function(value) {
    if (is.list(value) || length(value) > 1) return(sprintf("{ %s }", paste(vapply(value, job_value, ""), collapse = ", ")))
    if (is.logical(value)) return(if (value) "true" else "false")
    if (is.numeric(value)) return(sub("+", "", sprintf("%.17g", value), fixed = TRUE))
    sprintf('"%s"', gsub('(["\\\\$])', "\\\\\\1", as.character(value)))
}

# Keys have the names of dml.conf(5), as csv.text or l2.
write_job <- function(path, keys) {
    parts <- strsplit(names(keys), ".", fixed = TRUE)
    sections <- vapply(parts, function(part) if (length(part) > 1) part[1] else "", "")
    lines <- character()
    for (i in which(sections == "")) lines <- c(lines, sprintf("%s = %s", names(keys)[i], job_value(keys[[i]])))
    for (section in setdiff(unique(sections), "")) {
        inner <- which(sections == section)
        names_within <- substring(names(keys)[inner], nchar(section) + 2)
        lines <- c(lines, sprintf("%s {", section),
                   sprintf("    %s = %s", names_within, vapply(keys[inner], job_value, "")), "}")
    }
    writeLines(lines, path)
}

# ---- data ----

# The cells of a column as CSV: numbers with all their digits, times as ISO 8601.
cells_of <- function(column) {
    if (is.factor(column)) column <- as.character(column)
    if (inherits(column, "Date")) text <- format(column, "%Y-%m-%d")
    else if (inherits(column, "POSIXt")) text <- format(column, "%Y-%m-%d %H:%M:%OS6", tz = "UTC")
    else if (is.logical(column)) text <- ifelse(column, "true", "false")
    else if (is.numeric(column)) text <- sprintf("%.17g", as.double(column))
    else text <- sprintf('"%s"', gsub('"', '""', enc2utf8(as.character(column)), fixed = TRUE))
    text[is.na(column)] <- ""
    text
}

write_table <- function(data, path) {
    header <- paste(sprintf('"%s"', gsub('"', '""', names(data), fixed = TRUE)), collapse = ",")
    writeLines(c(header, do.call(paste, c(unname(lapply(data, cells_of)), sep = ","))), path, useBytes = TRUE)
}

# The label, the offset and the columns that a formula names: terms that are columns, or a dot for all others.
columns_of <- function(formula, data, beside) {
    if (length(formula) != 3 || !is.name(formula[[2]]))
        stop("the left side of the formula must be a column, the label; make a column of what is computed", call. = FALSE)
    label <- as.character(formula[[2]])
    terms <- stats::terms(formula, data = data[setdiff(names(data), beside)])
    columns <- gsub("^`|`$", "", attr(terms, "term.labels"))
    offset <- vapply(attr(terms, "offset"), function(i) deparse(attr(terms, "variables")[[i + 1]][[2]]), "")
    if (length(offset) > 1) stop("the formula has two offsets: make a column of their sum", call. = FALSE)
    for (term in setdiff(c(columns, offset), names(data))) {
        what <- if (grepl(":", term, fixed = TRUE))
            sprintf("products of columns are the key `cross`, as cross = \"%s\"", gsub(":", "*", term, fixed = TRUE))
        else if (grepl("(", term, fixed = TRUE)) "make a column of it in the data, and in the rows to predict"
        else sprintf("the columns are %s", paste(names(data), collapse = ", "))
        stop(sprintf("`%s` is no column of the data; %s", term, what), call. = FALSE)
    }
    list(label = label, columns = setdiff(columns, offset), intercept = attr(terms, "intercept") == 1,
         offset = if (length(offset)) offset)
}

# What stands beside rows, as in glm(): a column by its name, in quotes or not, or a number for each row. Answers a list of
# the column's name and the data, which has the numbers as a column then. NULL: nothing.
beside_rows <- function(expression, data, frame, what) {
    value <- eval(expression, data, frame)
    if (is.null(value)) return(NULL)
    if (is.character(value) && length(value) == 1 && value %in% names(data)) return(list(name = value, data = data))
    if (is.name(expression) && as.character(expression) %in% names(data))
        return(list(name = as.character(expression), data = data))
    if (!is.numeric(value) || length(value) != nrow(data))
        stop(sprintf("`%s` must be a column of the data or a number for each of its %d rows", what, nrow(data)), call. = FALSE)
    name <- utils::tail(make.unique(c(names(data), what)), 1)
    data[[name]] <- value
    list(name = name, data = data)
}

# ---- training ----

# dml_train(bought ~ ., frame, l2 = 0, summary = "model"): `formula` names the label and the columns, or is the name of
# the label, with all other columns. Further arguments are keys of dml.conf(5). `weights` and `offset` are columns, or have
# a number for each row. Without `state` the state folder is temporary, as the session is, and the object holds the model.
dml_train <- function(formula, data, ..., weights = NULL, offset = NULL, state = NULL) {
    data <- as.data.frame(data)
    weighed <- beside_rows(substitute(weights), data, parent.frame(), "weights")
    if (!is.null(weighed)) data <- weighed$data
    shifted <- beside_rows(substitute(offset), data, parent.frame(), "offset")
    if (!is.null(shifted)) data <- shifted$data
    weights <- weighed$name
    offset <- shifted$name
    chosen <- if (inherits(formula, "formula")) columns_of(formula, data, c(weights, offset))
              else list(label = formula, columns = setdiff(names(data), c(formula, weights, offset)), intercept = TRUE)
    if (!chosen$label %in% names(data))
        stop(sprintf("no column is named `%s`, the label; the columns are %s", chosen$label,
                     paste(names(data), collapse = ", ")), call. = FALSE)
    if (!is.null(chosen$offset) && !is.null(offset)) stop("the formula has an offset, and `offset` another", call. = FALSE)
    offset <- c(offset, chosen$offset)
    private <- is.null(state)
    if (private) state <- tempfile("dml-")
    folder <- file.path(state, "r")
    dir.create(folder, recursive = TRUE, showWarnings = FALSE, mode = "0700")
    folder <- normalizePath(folder)
    table <- file.path(folder, "data.csv")
    write_table(data[c(chosen$columns, weights, offset, chosen$label)], table)
    on.exit(unlink(table))
    keys <- list(...)
    texts <- chosen$columns[vapply(data[chosen$columns], function(column) is.factor(column) || is.character(column), NA)]
    texts <- setdiff(texts, c(keys$csv.text, keys$csv.dates))
    keys <- utils::modifyList(list(name = "job", intercept = chosen$intercept), keys)
    keys <- c(list(data = table, csv.label = chosen$label, csv.header = "yes"),
              if (!is.null(weights)) list(csv.weight = weights), if (!is.null(offset)) list(offset = offset),
              if (length(texts) && is.null(keys$csv.categories)) list(csv.categories = as.list(texts)), keys)
    job <- file.path(folder, "job.conf")
    write_job(job, keys)
    output <- run_program(c("run", "--json", "--quiet", "--state", normalizePath(state), if (private) "--publish", job), folder)
    result <- jsonlite::fromJSON(output, simplifyVector = TRUE)
    model <- file.path(normalizePath(state), "models", result$run)
    structure(list(result = result, figures = result[intersect(c("holdout", "test"), names(result))], label = chosen$label,
                   call = match.call(), state = normalizePath(state), model = model,
                   files = if (private) files_of(model)), class = "dml")
}

# The files of a model in memory, by name, so that saveRDS() keeps what a session's temporary folder loses.
files_of <- function(folder) {
    names <- list.files(folder)
    stats::setNames(lapply(file.path(folder, names), function(path) readBin(path, "raw", file.size(path))), names)
}

# The folder of the model. If it was that of another session, its files are written to one of this session.
folder_of <- function(object) {
    if (dir.exists(object$model)) return(object$model)
    if (is.null(object$files)) stop(sprintf("the model was in %s, which is not there", object$model), call. = FALSE)
    folder <- file.path(tempdir(), paste0("dml-", object$result$model_sha256))
    if (!dir.exists(folder)) {
        dir.create(folder, mode = "0700")
        for (name in names(object$files)) writeBin(object$files[[name]], file.path(folder, name))
    }
    folder
}

print.dml <- function(x, ...) {
    result <- x$result
    cat(sprintf("%s, %s examples, %s features: %s%s\nloss %.10g, %d steps, model %s\n", result$objective,
                format(result$examples, big.mark = ","), format(result$features, big.mark = ","), result$reason,
                if (result$converged) "" else " (not converged)", result$loss, result$steps,
                substr(result$model_sha256, 1, 16)))
    for (name in names(x$figures)) {
        told <- Filter(function(value) is.numeric(value) && length(value) == 1, x$figures[[name]])
        told <- told[intersect(c("examples", "loss", "accuracy", "auc", "f1", "rmse", "mae", "r2"), names(told))]
        cat(sprintf("%s: %s\n", name, paste(names(told), vapply(told, format, "", digits = 6), collapse = ", ")))
    }
    invisible(x)
}

# ---- what a model says ----

# type: response, the prediction of the objective; link, the margin; class, the label; probabilities, a column a class.
predict.dml <- function(object, newdata, type = c("response", "link", "class", "probabilities"), ...) {
    option <- switch(match.arg(type), response = character(), link = "--margins", class = "--labels",
                     probabilities = "--probabilities")
    if (missing(newdata)) stop("give newdata, the rows to predict: a model does not keep those it was trained on", call. = FALSE)
    table <- file.path(tempdir(), "newdata.csv")
    on.exit(unlink(table))
    write_table(newdata, table)
    output <- run_program(c("predict", "--quiet", "--header", option, folder_of(object), table))
    names <- scan(text = output[1], what = "", sep = " ", quiet = TRUE)
    output <- output[-1]
    if (identical(option, "--labels")) return(output)
    numbers <- lapply(strsplit(output, " ", fixed = TRUE), as.numeric)
    if (length(names) == 1) unlist(numbers) else structure(do.call(rbind, numbers), dimnames = list(NULL, names))
}

estimates_of <- function(object) {
    features <- jsonlite::fromJSON(run_program(c("export", "--format", "json", folder_of(object))), simplifyVector = FALSE)
    names <- vapply(features$features, function(feature) if (is.null(feature$name)) as.character(feature$id) else feature$name, "")
    weights <- vapply(features$features, function(feature) unlist(feature$weights), numeric(length(features$features[[1]]$weights)))
    list(names = names, weights = weights, intercepts = unlist(features$intercepts))
}

coef.dml <- function(object, ...) {
    told <- estimates_of(object)
    if (is.matrix(told$weights)) return(cbind("(Intercept)" = told$intercepts, structure(told$weights, dimnames = list(NULL, told$names))))
    c(if (length(told$intercepts)) c("(Intercept)" = told$intercepts), stats::setNames(told$weights, told$names))
}

# Estimates with errors and tests, of a model that was trained with summary = "model" or "robust".
summary.dml <- function(object, ...) {
    told <- jsonlite::fromJSON(run_program(c("summary", "--json", folder_of(object))))
    rows <- told$rows
    names <- sub("^\\(intercept\\)$", "(Intercept)", rows$name)
    table <- cbind(Estimate = rows$estimate, `Std. Error` = rows$error, rows$statistic, rows$p)
    colnames(table)[3:4] <- if (told$test == "t") c("t value", "Pr(>|t|)") else c("z value", "Pr(>|z|)")
    rownames(table) <- if (is.null(rows$class)) names else paste(rows$class, names, sep = ":")
    structure(list(call = object$call, coefficients = table, fit = told$fit, notes = told$notes), class = "summary.dml")
}

print.summary.dml <- function(x, ...) {
    cat("\nCall:\n", paste(deparse(x$call), collapse = "\n"), "\n\nCoefficients:\n", sep = "")
    stats::printCoefmat(x$coefficients, ...)
    cat(sprintf("\n(Dispersion parameter for %s family taken to be %.6g)\n\n", x$fit$distribution, x$fit$dispersion))
    cat(sprintf("    Null deviance: %.6g  on %g  degrees of freedom\n", x$fit$null_deviance, x$fit$null_freedom))
    cat(sprintf("Residual deviance: %.6g  on %g  degrees of freedom\n", x$fit$deviance, x$fit$freedom))
    if (!is.null(x$fit$aic)) cat(sprintf("AIC: %.6g\n", x$fit$aic))
    for (note in x$notes) cat("\n", strwrap(note, 100), sep = "\n")
    invisible(x)
}

logLik.dml <- function(object, ...) {
    fit <- summary(object)$fit
    structure(fit$log_likelihood, df = fit$parameters, nobs = fit$rows, class = "logLik")
}

nobs.dml <- function(object, ...) object$result$examples
