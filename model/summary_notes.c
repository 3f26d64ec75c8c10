#define _GNU_SOURCE
/* In words: what a reader of a summary should know before the figures are used. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/summary_table.h"

#define NAMES_MOST 5 /* that a note lists */

struct notes {
    const struct model *model;
    const json_t *summary, *covariance, *rows, *result;
    enum summary_kind errors;
    const struct distribution *distribution;
    json_t *list;
};

__attribute__((format(printf, 2, 3))) static void add(struct notes *notes, const char *format,
                                                      ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    json_array_append_new(notes->list, json_string(text));
    free(text);
}

static double number_of(const json_t *object, const char *member) {
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Names of rows for a note. */
struct names {
    size_t count;
    char *text; /* owned; NULL: none */
};

static void name_row(struct names *names, const json_t *row) {
    const char *name = json_string_value(json_object_get(row, "name"));
    if (names->count++ >= NAMES_MOST)
        return;
    char *more =
        memory_format("%s%s%s", names->text ? names->text : "", names->text ? ", " : "", name);
    free(names->text);
    names->text = more;
}

static bool is_of_class(const json_t *row, const char *class) {
    const char *own = json_string_value(json_object_get(row, "class"));
    return class && own && strcmp(own, class) == 0;
}

/* The class that the others are compared with: all of its parameters are aliased. NULL: none is. */
static const char *reference_class(const json_t *rows) {
    size_t i, k;
    json_t *row, *other;
    json_array_foreach(rows, i, row) {
        const char *class = json_string_value(json_object_get(row, "class"));
        bool whole = class && json_object_get(row, "aliased");
        json_array_foreach(rows, k, other) if (whole && is_of_class(other, class)) whole =
            json_object_get(other, "aliased") != NULL;
        if (whole)
            return class;
    }
    return NULL;
}

/* A level that is the reference in each class is named once. */
static void name_reference(struct names *names, const json_t *row, const json_t *rows, size_t end,
                           const char *class) {
    const char *name = json_string_value(json_object_get(row, "name"));
    for (size_t i = 0; i < end; i++) {
        const json_t *other = json_array_get(rows, i);
        if (json_is_true(json_object_get(other, "reference")) && !is_of_class(other, class) &&
            !strcmp(json_string_value(json_object_get(other, "name")), name))
            return;
    }
    name_row(names, row);
}

static const char *and_more(const struct names *names) {
    return names->count > NAMES_MOST ? ", ..." : "";
}

/* ---- the notes, in their order ---- */

static void note_no_errors(struct notes *notes) {
    const char *why = json_string_value(json_object_get(notes->summary, "why"));
    if (why)
        add(notes, "There are no errors: %s.", why);
}

static void note_end(struct notes *notes) {
    const json_t *converged = json_object_get(notes->result, "converged");
    if (json_is_false(converged))
        add(notes,
            "The run has not converged (%s): estimates, errors and tests are those of the point "
            "where it ended, and not of the optimum.",
            json_string_value(json_object_get(notes->result, "reason")));
}

static void note_penalty(struct notes *notes) {
    double l2 = number_of(notes->result, "l2"), l1 = number_of(notes->result, "l1");
    if (l1 > 0)
        add(notes, "l1 = %g chose the columns: errors that ignore this choice would be too small.",
            l1);
    if (l2 > 0)
        add(notes, "l2 = %.6g draws the estimates towards 0. %s Parameters are counted %s.", l2,
            notes->errors == SUMMARY_KIND_BAYESIAN
                ? "Errors and tests take the penalty for a normal prior of mean 0: they are those "
                  "of "
                  "the parameters given the data, as far as that prior holds."
                : "Errors and tests are conditional on that penalty: they measure how far the "
                  "penalised estimates vary from sample to sample, and leave out that they are "
                  "biased; --bayesian takes the penalty for a prior.",
            json_object_get(notes->covariance, "elements")
                ? "as if there were no penalty"
                : "as effective ones, the trace of (H+L)^-1 H");
}

static void note_aliased(struct notes *notes) {
    struct names references = {0}, others = {0};
    size_t i;
    json_t *row;
    const char *class = reference_class(notes->rows);
    if (class)
        add(notes,
            "The reference class is %s. Its estimates are 0; those of the other classes are "
            "differences from it.",
            class);
    json_array_foreach(notes->rows, i, row) {
        if (is_of_class(row, class))
            continue;
        if (json_is_true(json_object_get(row, "reference")))
            name_reference(&references, row, notes->rows, i, class);
        else if (json_is_true(json_object_get(row, "aliased")))
            name_row(&others, row);
    }
    if (references.count)
        add(notes,
            "Reference %s: %s%s. %s estimate is 0; those of the other levels are differences from "
            "it.",
            references.count > 1 ? "levels" : "level", references.text, and_more(&references),
            references.count > 1 ? "Their" : "Its");
    if (others.count)
        add(notes,
            "%zu aliased: %s%s. %s from others, so there is no error of %s own. Where an estimate "
            "is "
            "shown for one, it is a part of what the model predicts, and the estimates of the "
            "others "
            "leave it out.",
            others.count, others.text, and_more(&others),
            others.count > 1 ? "These columns follow" : "This column follows",
            others.count > 1 ? "their" : "its");
    free(references.text);
    free(others.text);
}

#define FAR_FROM_OPTIMUM 0.01 /* errors */

/* Errors of a few columns are found otherwise, and the run did not go on to the very optimum. */
static void note_single(struct notes *notes) {
    double dispersion = number_of(json_object_get(notes->summary, "fit"), "dispersion");
    double distance = number_of(notes->covariance, "distance") / sqrt(dispersion);
    const bool known = !json_object_get(notes->summary, "why");
    const bool single = json_object_get(notes->covariance, "elements") != NULL;
    struct names names = {0};
    size_t i;
    json_t *row;
    if (single)
        add(notes, "Shown are the columns that summary_columns names; `export` has all estimates.");
    json_array_foreach(notes->rows, i, row) {
        if (known && !json_object_get(row, "aliased") && isnan(number_of(row, "error")))
            name_row(&names, row);
    }
    if (names.count)
        add(notes,
            "No error was found for %s%s: what these columns say follows from others, or nearly.",
            names.text, and_more(&names));
    free(names.text);
    if (!single)
        return;
    if (json_object_get(notes->covariance, "uncounted"))
        add(notes, "So many columns follow from others that not all were found: there are fewer "
                   "parameters than are counted, and more degrees of freedom.");
    if (isnan(distance))
        add(notes, "How far from the optimum the run ended is not known.");
    else if (distance > FAR_FROM_OPTIMUM)
        add(notes,
            "The run ended before the optimum: estimates may be off by %.2g of their errors. Train "
            "on with a smaller gap_tolerance.",
            distance);
}

/* The deviance of a fit in which the columns predict every label, as a share of that without them.
 */
#define COMPLETE_SHARE 1e-3

static void note_separation(struct notes *notes) {
    struct names names = {0};
    size_t i;
    json_t *row;
    bool of_classes = notes->distribution && notes->distribution->null_margin == NULL_OF_CLASSES;
    const json_t *fit = json_object_get(notes->summary, "fit");
    bool complete =
        of_classes && number_of(fit, "deviance") < COMPLETE_SHARE * number_of(fit, "null_deviance");
    json_array_foreach(notes->rows, i, row) if (json_object_get(row, "runs_away"))
        name_row(&names, row);
    if (names.count && complete)
        add(notes, "The columns separate the classes completely: no finite estimate is the best "
                   "one, and errors and tests of any kind mean nothing. Use l2 > 0.");
    else if (names.count)
        add(notes,
            "No finite estimate is the best one for %s%s: %s, and the likelihood rises as long as "
            "the estimate grows. What is shown is where the run ended; error and test, of any "
            "kind, mean nothing. Use l2 > 0, or leave the column out.",
            names.text, and_more(&names),
            of_classes ? "rows in which such a column has a value have the same class without "
                         "exception"
                       : "rows in which such a column has a value have the label 0 without "
                         "exception");
    free(names.text);
}

static void note_errors(struct notes *notes) {
    const json_t *clusters = json_object_get(notes->covariance, "clusters");
    double single = number_of(clusters, "of_one_row"), count = number_of(clusters, "count");
    bool of_model = notes->errors == SUMMARY_KIND_MODEL || notes->errors == SUMMARY_KIND_BAYESIAN;
    if (of_model && notes->distribution &&
        json_is_true(json_object_get(notes->covariance, "expected")))
        add(notes, "Errors are from expected second derivatives, as those of R and statsmodels.");
    if (notes->errors != SUMMARY_KIND_CLUSTER)
        return;
    if (single == count)
        add(notes, "Every cluster has one row: these are robust errors (HC1 but for a factor).");
    else if (single > 0)
        add(notes, "%.0f of the %.0f clusters have one row.", single, count);
    if (count < 30)
        add(notes,
            "There are only %.0f clusters: with fewer than some 30 such errors are too small.",
            count);
}

static void note_perfect(struct notes *notes) {
    if (summary_is_perfect(notes->summary, notes->distribution))
        add(notes,
            "The fit is perfect but for rounding: errors are rounding too, so there are no tests "
            "and no intervals. A column may hold the label itself.");
}

/* Pearson's chi2 over its degrees of freedom is 1 of counts that are poisson; so many of its
 * deviations, √(2/freedom), above are no accident. */
#define OVERDISPERSED_RATIO 1.2
#define OVERDISPERSED_DEVIATIONS 4

static void note_dispersion(struct notes *notes) {
    const json_t *fit = json_object_get(notes->summary, "fit");
    double ratio = number_of(fit, "pearson_ratio"), freedom = number_of(fit, "freedom");
    bool of_model = notes->errors == SUMMARY_KIND_MODEL || notes->errors == SUMMARY_KIND_BAYESIAN;
    if (notes->distribution == &distribution_poisson && of_model && ratio > OVERDISPERSED_RATIO &&
        ratio - 1 > OVERDISPERSED_DEVIATIONS * sqrt(2 / freedom))
        add(notes,
            "Pearson chi2 is %.3g times its degrees of freedom: labels vary more than counts of "
            "that mean, and errors are too small by about %.2g times. Robust errors hold: "
            "summary = robust, and `summary --robust`.",
            ratio, sqrt(ratio));
}

static void note_weights(struct notes *notes) {
    const json_t *settings = json_object_get(notes->model->details, "settings");
    if (json_array_size(json_object_get(settings, "class_weight")))
        add(notes, "class_weight multiplies rows: errors and likelihood are of the weighted rows, "
                   "and the intercept is of their shares of classes.");
}

json_t *summary_notes(const struct model *model, const json_t *summary, const json_t *rows,
                      enum summary_kind errors) {
    static void (*const tell[])(struct notes *) = {
        note_no_errors,  note_end,    note_penalty, note_aliased,    note_single,
        note_separation, note_errors, note_perfect, note_dispersion, note_weights};
    struct notes notes = {.model = model,
                          .summary = summary,
                          .covariance = json_object_get(summary, "covariance"),
                          .rows = rows,
                          .result = json_object_get(model->details, "result"),
                          .errors = errors,
                          .distribution = objective_find(model->layout.objective)->distribution,
                          .list = json_array()};
    for (size_t i = 0; i < sizeof tell / sizeof tell[0]; i++)
        tell[i](&notes);
    return notes.list;
}
