#include "model/summary_table.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/summary_restate.h"
#include "numeric/tails.h"

/* ---- where a parameter stands ---- */

struct standing {
    uint64_t number; /* of the parameter, as in summary.json */
    uint64_t at;     /* of its errors in their lists */
    uint32_t output;
    uint64_t column; /* rows are sorted by it; intercepts have 0 */
    const char *name;
};

static bool is_bias(const struct model_layout *layout, uint64_t number) {
    return number >= model_rows(layout) * layout->features;
}

/* The column of a table that a feature was made of, from 1; of other data the id. */
static uint64_t column_of(const struct model_layout *layout, uint64_t feature) {
    uint64_t id = layout->feature_id[feature];
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    return layout->table ? table_column_of(layout->table, id, name) + UINT64_C(1) : id;
}

static int by_place(const void *a, const void *b) {
    const struct standing *x = a, *y = b;
    if (x->output != y->output)
        return x->output < y->output ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* `count` parameters in the order of the table: those of the list, or all. Intercepts of outputs
 * that share their weights come before these, as the first output's. Free it. */
static struct standing *places_of(const struct model_layout *layout, const json_t *elements,
                                  uint64_t count) {
    struct standing *places = memory_new(count, sizeof *places);
    for (uint64_t at = 0; at < count; at++) {
        struct standing *place = &places[at];
        uint64_t i = elements ? (uint64_t)json_integer_value(json_array_get(elements, at)) : at;
        uint64_t feature = layout->features ? i % layout->features : 0;
        bool bias = is_bias(layout, i);
        place->number = i;
        place->at = at;
        place->name = bias || !layout->feature_names ? "" : layout->feature_names[feature];
        place->column = bias ? 0 : column_of(layout, feature);
        if (!layout->shared)
            place->output =
                (uint32_t)(bias ? i - model_rows(layout) * layout->features : i / layout->features);
    }
    qsort(places, count, sizeof *places, by_place);
    return places;
}

/* ---- a row ---- */

/* What all rows share. */
struct computing {
    const struct model *model;
    const json_t *covariance; /* or NULL */
    const json_t *variance;   /* the list of the errors that are shown; NULL: none */
    const json_t *scale;      /* of features; or NULL */
    double factor;            /* of the variances */
    double freedom;           /* of Student's t; infinity: the normal distribution */
    double critical;          /* half the width of an interval, in errors */
    bool has_ratio;
    bool perfect;              /* the fit is, so that errors are rounding and test nothing */
    bool *aliased, *runs_away; /* by number; owned, as the next */
    double *estimate;          /* by number */
};

static double number_at(const json_t *list, uint64_t i) {
    const json_t *value = json_array_get(list, i);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The estimates that are shown: those of the file, restated where some are aliased. Free them. */
static double *estimates_of(const struct model *model, const json_t *covariance,
                            const bool *aliased, uint64_t count) {
    const json_t *restated = json_object_get(covariance, "estimate");
    uint64_t weights = model_rows(&model->layout) * model->layout.features;
    double *estimate = memory_new(count, sizeof *estimate);
    for (uint64_t i = 0; i < count; i++)
        estimate[i] = i < weights ? model->weight[i] : model->bias[i - weights];
    for (uint64_t i = 0; i < count && restated; i++)
        if (isfinite(number_at(restated, i)))
            estimate[i] = number_at(restated, i);
    if (!restated)
        summary_restate(&model->layout, aliased, estimate);
    return estimate;
}

static void set_number(json_t *row, const char *member, double value) {
    json_object_set_new(row, member, isfinite(value) ? json_real(value) : json_null());
}

char *summary_name(const struct model_layout *layout, uint64_t number) {
    uint64_t feature = layout->features ? number % layout->features : 0;
    const char *own = layout->feature_names ? layout->feature_names[feature] : "";
    if (is_bias(layout, number) && layout->shared)
        return memory_format(
            "(intercept >= %s)",
            layout->class_names[number - model_rows(layout) * layout->features + 1]);
    if (is_bias(layout, number))
        return memory_copy_string("(intercept)");
    if (*own)
        return memory_copy_string(own);
    return memory_format("%s%llu", layout->table ? "column " : "",
                         (unsigned long long)layout->feature_id[feature]);
}

static void set_tests(const struct computing *computing, double estimate, double error,
                      json_t *row) {
    set_number(row, "error", error);
    error = computing->perfect ? NAN : error;
    double statistic = estimate / error;
    double low = estimate - computing->critical * error;
    double high = estimate + computing->critical * error;
    set_number(row, "statistic", statistic);
    set_number(row, "p", isnan(statistic) ? NAN : tail_student(statistic, computing->freedom));
    set_number(row, "low", low);
    set_number(row, "high", high);
    if (!computing->has_ratio)
        return;
    set_number(row, "ratio", exp(estimate));
    set_number(row, "ratio_low", exp(low));
    set_number(row, "ratio_high", exp(high));
}

/* A text of a category, whose column has an intercept or other texts to be compared with. */
static bool is_level(const struct model_layout *layout, const struct standing *place) {
    if (!layout->table || is_bias(layout, place->number))
        return false;
    uint64_t column = place->column - 1;
    return column < layout->table->columns && layout->table->column[column].kind == COLUMN_CATEGORY;
}

static json_t *row_of(const struct computing *computing, const struct standing *place) {
    const struct model_layout *layout = &computing->model->layout;
    double estimate = computing->estimate[place->number];
    double variance = number_at(computing->variance, place->at);
    json_t *row = json_object();
    char *name = summary_name(layout, place->number);
    json_object_set_new(row, "name", text_to_json(name));
    free(name);
    /* The class that a row of several outputs is about. */
    if (!layout->shared && layout->outputs > 1)
        json_object_set_new(row, "class", text_to_json(layout->class_names[place->output]));
    set_number(row, "estimate", estimate);
    if (computing->scale && !is_bias(layout, place->number))
        set_number(row, "scale", number_at(computing->scale, place->number % layout->features));
    if (computing->aliased[place->number]) {
        json_object_set_new(row, "aliased", json_true());
        if (is_level(layout, place))
            json_object_set_new(row, "reference", json_true());
    } else {
        set_tests(computing, estimate, sqrt(computing->factor * variance), row);
    }
    if (computing->runs_away[place->number])
        json_object_set_new(row, "runs_away", json_true());
    return row;
}

/* ---- which errors ---- */

static double fit_number(const json_t *summary, const char *member) {
    const json_t *value = json_object_get(json_object_get(summary, "fit"), member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Far below what is left of any measured data, and above what rounding leaves of the labels'
 * spread. */
#define PERFECT_SHARE 1e-20

bool summary_is_perfect(const json_t *summary, const struct distribution *distribution) {
    return distribution && distribution->has_dispersion &&
           fit_number(summary, "deviance") <= PERFECT_SHARE * fit_number(summary, "null_deviance");
}

static const struct {
    const char *member, *name;
} errors_rows[] = {[SUMMARY_KIND_MODEL] = {"sampling", "model"},
                   [SUMMARY_KIND_BAYESIAN] = {"variance", "bayesian"},
                   [SUMMARY_KIND_HC0] = {"robust", "HC0"},
                   [SUMMARY_KIND_HC1] = {"robust", "HC1"},
                   [SUMMARY_KIND_CLUSTER] = {"clustered", "cluster"}};

static double factor_of(const json_t *summary, const json_t *covariance, enum summary_kind errors) {
    double freedom = fit_number(summary, "freedom");
    double outcomes = freedom + fit_number(summary, "parameters"); /* n, of a model a class n·K */
    const json_t *clusters = json_object_get(covariance, "clusters");
    double count = json_number_value(json_object_get(clusters, "count"));
    switch (errors) {
    case SUMMARY_KIND_MODEL:
    case SUMMARY_KIND_BAYESIAN:
        return fit_number(summary, "dispersion");
    case SUMMARY_KIND_HC1:
        return outcomes / freedom;
    case SUMMARY_KIND_CLUSTER:
        return count / (count - 1) *
               ((outcomes - outcomes / fit_number(summary, "rows")) / freedom);
    default:
        return 1;
    }
}

/* The degrees of freedom of Student's t. Sums over G clusters have at most G - 1 independent ones,
 * whatever the loss. */
static double freedom_of(const json_t *summary, const json_t *covariance, enum summary_kind errors,
                         const struct distribution *distribution) {
    const json_t *clusters = json_object_get(covariance, "clusters");
    if (errors == SUMMARY_KIND_CLUSTER)
        return json_number_value(json_object_get(clusters, "count")) - 1;
    return distribution && distribution->has_dispersion ? fit_number(summary, "freedom") : INFINITY;
}

/* The errors that a summary has for those that are asked for: without a penalty one kind is both.
 * A penalised run without errors from sample to sample has the Bayesian ones alone. */
static const json_t *list_of_errors(const json_t *covariance, bool penalised,
                                    enum summary_kind *errors) {
    const json_t *list = json_object_get(covariance, errors_rows[*errors].member);
    if (list || *errors != SUMMARY_KIND_MODEL)
        return list;
    *errors = penalised ? SUMMARY_KIND_BAYESIAN : SUMMARY_KIND_MODEL;
    return json_object_get(covariance, errors_rows[SUMMARY_KIND_BAYESIAN].member);
}

/* ---- the table ---- */

static json_t *rows_of(const struct computing *computing, uint64_t count, const char *only) {
    const json_t *elements = json_object_get(computing->covariance, "elements");
    count = elements ? json_array_size(elements) : count;
    struct standing *places = places_of(&computing->model->layout, elements, count);
    json_t *rows = json_array();
    for (uint64_t i = 0; i < count; i++) {
        json_t *row = row_of(computing, &places[i]);
        const char *name = json_string_value(json_object_get(row, "name"));
        if (!only || fnmatch(only, name, 0) == 0)
            json_array_append(rows, row);
        json_decref(row);
    }
    free(places);
    return rows;
}

/* Which parameters a list of numbers names. Free it. */
static bool *marked_by(const json_t *covariance, const char *member, uint64_t count) {
    const json_t *list = json_object_get(covariance, member);
    bool *marked = memory_new(count, sizeof *marked);
    for (size_t i = 0; i < json_array_size(list); i++)
        marked[json_integer_value(json_array_get(list, i))] = true;
    return marked;
}

static json_t *head_of(const struct model *model, const json_t *summary,
                       const struct computing *computing, enum summary_kind errors,
                       const struct summary_view *view) {
    const struct model_layout *layout = &model->layout;
    const struct objective *objective = objective_find(layout->objective);
    json_t *head = json_pack(
        "{s:s, s:s?, s:s, s:f, s:s, s:O*, s:O*}", "objective", layout->objective, "ratio",
        objective->distribution ? objective->distribution->ratio : NULL, "errors",
        computing->variance ? errors_rows[errors].name : "none", "level", view->level, "test",
        isinf(computing->freedom) ? "z" : "t", "fit", json_object_get(summary, "fit"), "clusters",
        json_object_get(computing->covariance, "clusters"));
    if (layout->classes == 2 && layout->outputs == 1)
        json_object_set_new(head, "positive", text_to_json(layout->class_names[1]));
    return head;
}

int summary_table(const struct model *model, const json_t *summary, const struct summary_view *view,
                  json_t **table) {
    const struct model_layout *layout = &model->layout;
    const struct objective *objective = objective_find(layout->objective);
    const json_t *covariance = json_object_get(summary, "covariance");
    uint64_t count =
        model_rows(layout) * layout->features + (layout->intercept ? layout->outputs : 0);
    const struct distribution *distribution = objective->distribution;
    enum summary_kind errors = view->errors;
    const json_t *result = json_object_get(model->details, "result");
    bool penalised = json_number_value(json_object_get(result, "l2")) > 0;
    const json_t *variance = list_of_errors(covariance, penalised, &errors);
    if (!variance && errors != SUMMARY_KIND_MODEL && errors != SUMMARY_KIND_BAYESIAN) {
        if (errors == SUMMARY_KIND_CLUSTER)
            return error_set(ERROR_USAGE, "this run computed no errors for clusters; train with "
                                          "`summary_cluster = COLUMN`");
        return error_set(ERROR_USAGE,
                         "this run computed no robust errors; train with `summary = robust`");
    }
    struct computing computing = {.model = model,
                                  .covariance = covariance,
                                  .variance = variance,
                                  .scale = json_object_get(summary, "scale"),
                                  .factor = factor_of(summary, covariance, errors),
                                  .freedom = freedom_of(summary, covariance, errors, distribution),
                                  .has_ratio = distribution && distribution->ratio,
                                  .perfect = summary_is_perfect(summary, distribution),
                                  .aliased = marked_by(covariance, "aliased", count),
                                  .runs_away = marked_by(covariance, "runs_away", count)};
    computing.critical = quantile_student(1 - view->level, computing.freedom);
    computing.estimate = estimates_of(model, covariance, computing.aliased, count);
    json_t *rows = rows_of(&computing, count, view->only);
    free(computing.aliased);
    free(computing.runs_away);
    free(computing.estimate);
    if (view->only && !json_array_size(rows)) {
        json_decref(rows);
        return error_set(ERROR_USAGE, "`--only %s`: no name fits; names are as in the whole table",
                         view->only);
    }
    *table = head_of(model, summary, &computing, errors, view);
    json_object_set_new(*table, "notes", summary_notes(model, summary, rows, errors));
    json_object_set_new(*table, "rows", rows);
    return 0;
}
