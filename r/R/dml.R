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

# Runs the program to its end, and returns its standard output. Its warnings are R's, and its last sentence is the error.
run_program <- function(arguments) {
    errors <- tempfile()
    on.exit(unlink(errors))
    output <- suppressWarnings(system2(coordinator(), shQuote(arguments), stdout = TRUE, stderr = errors))
    status <- attr(output, "status")
    said <- readLines(errors, warn = FALSE)
    if (!is.null(status)) {
        lines <- said[grepl("^dml-coordinator: ", said)]
        text <- if (length(lines)) sub("^dml-coordinator: ", "", lines[length(lines)]) else paste(said, collapse = "\n")
        stop(sprintf("%s (status %d)", text, status), call. = FALSE)
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

# The label and the columns that a formula names: terms that are columns, or a dot for all others.
columns_of <- function(formula, data) {
    if (length(formula) != 3 || !is.name(formula[[2]]))
        stop("the left side of the formula must be a column, the label", call. = FALSE)
    label <- as.character(formula[[2]])
    terms <- stats::terms(formula, data = data)
    columns <- attr(terms, "term.labels")
    columns <- gsub("^`|`$", "", columns)
    strange <- setdiff(columns, names(data))
    if (length(strange))
        stop(sprintf("`%s` is no column of the data; products of columns are the key `cross`, as cross = \"a*b\"",
                     strange[1]), call. = FALSE)
    if (!label %in% names(data)) stop(sprintf("no column is named `%s`, the label", label), call. = FALSE)
    list(label = label, columns = columns, intercept = attr(terms, "intercept") == 1)
}

# ---- training ----

# dml_train(bought ~ ., frame, l2 = 0, summary = "model"): `formula` names the label and the columns, or is the name of
# the label, with all other columns. Further arguments are keys of dml.conf(5). `weights` and `offset` name columns.
# Without `state` the state folder is temporary, as the session is.
dml_train <- function(formula, data, ..., weights = NULL, offset = NULL, state = NULL) {
    chosen <- if (inherits(formula, "formula")) columns_of(formula, data[setdiff(names(data), c(weights, offset))])
              else list(label = formula, columns = setdiff(names(data), c(formula, weights, offset)), intercept = TRUE)
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
    output <- run_program(c("run", "--json", "--quiet", "--state", normalizePath(state), if (private) "--publish", job))
    result <- jsonlite::fromJSON(output, simplifyVector = TRUE)
    structure(list(result = result, state = normalizePath(state), label = chosen$label, call = match.call(),
                   model = file.path(normalizePath(state), "models", result$run)), class = "dml")
}

print.dml <- function(x, ...) {
    result <- x$result
    cat(sprintf("%s, %s examples, %s features: %s%s\nloss %.10g, %d steps, model %s\n", result$objective,
                format(result$examples, big.mark = ","), format(result$features, big.mark = ","), result$reason,
                if (result$converged) "" else " (not converged)", result$loss, result$steps,
                substr(result$model_sha256, 1, 16)))
    invisible(x)
}

# ---- what a model says ----

# type: response, the prediction of the objective; link, the margin; class, the label; probabilities, a column a class.
predict.dml <- function(object, newdata, type = c("response", "link", "class", "probabilities"), ...) {
    option <- switch(match.arg(type), response = character(), link = "--margins", class = "--labels",
                     probabilities = "--probabilities")
    table <- tempfile(fileext = ".csv")
    on.exit(unlink(table))
    write_table(newdata, table)
    output <- run_program(c("predict", "--quiet", "--header", option, object$model, table))
    names <- scan(text = output[1], what = "", sep = " ", quiet = TRUE)
    output <- output[-1]
    if (identical(option, "--labels")) return(output)
    numbers <- lapply(strsplit(output, " ", fixed = TRUE), as.numeric)
    if (length(names) == 1) unlist(numbers) else structure(do.call(rbind, numbers), dimnames = list(NULL, names))
}

estimates_of <- function(object) {
    features <- jsonlite::fromJSON(run_program(c("export", "--format", "json", object$model)), simplifyVector = FALSE)
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
    told <- jsonlite::fromJSON(run_program(c("summary", "--json", object$model)))
    rows <- told$rows
    table <- cbind(Estimate = rows$estimate, `Std. Error` = rows$error, rows$statistic, rows$p)
    colnames(table)[3:4] <- if (told$test == "t") c("t value", "Pr(>|t|)") else c("z value", "Pr(>|z|)")
    rownames(table) <- sub("^\\(intercept\\)$", "(Intercept)", rows$name)
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
