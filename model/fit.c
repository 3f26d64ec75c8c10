#include "model/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/exact.h"

/* Margins of classes that no row has, or that all rows have, are not infinite. */
#define LOGIT_MOST 700.0

/* Steps to the intercept of a model with offsets, at most; it takes 5 to 10. */
#define NULL_STEPS_MAX 100
#define NULL_STEP_MOST 4.0   /* how far one goes */
#define NULL_STEP_LEAST 1e-9 /* after one below this the deviance has all its digits */

enum pass {
    PASS_ROWS, /* all but what needs the results of this */
    PASS_NULL, /* a step of Newton's method to the null model */
    PASS_LAST, /* the null deviance, and a likelihood with an estimated dispersion */
};

struct fit {
    const struct objective *objective;
    const struct distribution *distribution; /* or NULL */
    const struct loss_parameters *loss;
    uint32_t outputs;
    bool intercept;
    double parameters;
    enum pass pass;
    bool has_offsets; /* some row has one that is not 0 */

    uint64_t rows;
    struct exact weight, half_deviance, pearson, likelihood;
    struct exact null_a, null_b, null_half_deviance;
    struct exact *class; /* the weight of each; owned; NULL: targets */
    uint32_t classes;
    bool lists; /* rows have lists of classes */

    double *null_margin; /* [outputs]; owned */
    double *margin;      /* the null margins plus the offset of a row; owned */
    double dispersion;   /* in the likelihood */
    double low, high;    /* bounds of the null model's intercept */
    unsigned steps;
};

struct fit *fit_new(const struct objective *objective, const struct loss_parameters *loss,
                    uint32_t outputs, bool intercept, double parameters) {
    assert(objective && loss && outputs > 0);
    struct fit *fit = memory_new(1, sizeof *fit);
    fit->objective = objective;
    fit->distribution = objective->distribution;
    fit->loss = loss;
    fit->outputs = outputs;
    fit->intercept = intercept;
    fit->parameters = parameters;
    fit->dispersion = NAN;
    fit->low = -INFINITY;
    fit->high = INFINITY;
    fit->lists = objective->labels == LABEL_LISTS;
    fit->classes = objective->labels == LABEL_BINARY                  ? 2
                   : fit->lists || objective->labels == LABEL_CLASSES ? outputs
                   : objective->labels == LABEL_ORDERED               ? outputs + 1
                                                                      : 0;
    if (fit->classes)
        fit->class = memory_new(fit->classes, sizeof *fit->class);
    fit->null_margin = memory_new(outputs, sizeof *fit->null_margin);
    fit->margin = memory_new(outputs, sizeof *fit->margin);
    /* Without rows; what the passes before have found stays. */
    struct exact *const sums[] = {
        &fit->weight, &fit->half_deviance, &fit->pearson,           &fit->likelihood,
        &fit->null_a, &fit->null_b,        &fit->null_half_deviance};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        exact_init(sums[i]);
    for (uint32_t k = 0; k < fit->classes; k++)
        exact_init(&fit->class[k]);
    fit->rows = 0;
    return fit;
}

void fit_free(struct fit *fit) {
    if (!fit)
        return;
    free(fit->class);
    free(fit->null_margin);
    free(fit->margin);
    free(fit);
}

/* ---- the rows of a pass ---- */

/* If labels are lists, loss and deviance are sums over the classes, each with a logistic model. */
static double loss_of(const struct fit *fit, const double *margins, const struct fit_row *row) {
    double sum = 0;
    if (!fit->lists)
        return objective_loss(fit->objective, fit->loss, fit->outputs, margins, row->label);
    for (uint32_t k = 0; k < fit->outputs; k++)
        sum += objective_loss(fit->objective, fit->loss, 1, &margins[k], row->has[k]);
    return sum;
}

static double pearson_of(const struct fit *fit, const struct fit_row *row) {
    double sum = 0;
    if (!fit->lists)
        return fit->distribution->pearson(fit->loss, fit->outputs, row->margins, row->label);
    for (uint32_t k = 0; k < fit->outputs; k++)
        sum += distribution_binomial.pearson(fit->loss, 1, &row->margins[k], row->has[k]);
    return sum;
}

static void add_in_rows(struct fit *fit, const struct fit_row *row) {
    const struct distribution *distribution = fit->distribution;
    double a, b;
    fit->rows++;
    fit->has_offsets |= row->offset != 0;
    exact_add(&fit->weight, row->weight);
    exact_add(&fit->half_deviance, row->weight * loss_of(fit, row->margins, row));
    if (!distribution)
        return;
    exact_add(&fit->pearson, row->weight * pearson_of(fit, row));
    if (fit->lists)
        for (uint32_t k = 0; k < fit->classes; k++)
            exact_add(&fit->class[k], row -> weight * row -> has[k]);
    else if (fit->class)
        exact_add(&fit->class[(size_t)row->label], row -> weight);
    if (distribution->null_terms) {
        distribution->null_terms(fit->loss, row->label, row->offset, &a, &b);
        exact_add(&fit->null_a, row->weight * a);
        exact_add(&fit->null_b, row->weight * b);
    }
}

/* Slope and curvature of the null model's log-likelihood. */
static void add_in_null(struct fit *fit, const struct fit_row *row) {
    double margin = fit->null_margin[0] + row->offset, e = exp(-fabs(margin));
    double probability = (margin >= 0 ? 1 : e) / (1 + e);
    exact_add(&fit->null_a, row->weight * (row->label - probability));
    exact_add(&fit->null_b, row->weight * (e / ((1 + e) * (1 + e))));
}

static void add_in_last(struct fit *fit, const struct fit_row *row) {
    const struct distribution *distribution = fit->distribution;
    for (uint32_t k = 0; k < fit->outputs; k++)
        fit->margin[k] = fit->null_margin[k] + row->offset;
    exact_add(&fit->null_half_deviance, row->weight * loss_of(fit, fit->margin, row));
    if (distribution->log_likelihood)
        exact_add(&fit->likelihood,
                  distribution->log_likelihood(fit->loss, row->margins[0], row->label, row->weight,
                                               fit->dispersion));
}

void fit_add(struct fit *fit, const struct fit_row *row) {
    static void (*const add[])(struct fit *, const struct fit_row *) = {
        [PASS_ROWS] = add_in_rows, [PASS_NULL] = add_in_null, [PASS_LAST] = add_in_last};
    assert(row->weight >= 0 && (!fit->lists || row->has));
    assert(!fit_needs_margins(fit) || row->margins);
    if (row->weight > 0)
        add[fit->pass](fit, row);
}

bool fit_needs_margins(const struct fit *fit) {
    return fit->pass == PASS_ROWS || (fit->pass == PASS_LAST && fit->distribution->log_likelihood);
}

/* ---- between passes ---- */

static double within(double logit) {
    return fmin(fmax(logit, -LOGIT_MOST), LOGIT_MOST);
}

/* The null model of ordered labels: the logit of the share that lies above each threshold. */
static void find_null_thresholds(struct fit *fit) {
    for (uint32_t k = 0; k < fit->outputs; k++) {
        double below = 0, above = 0;
        for (uint32_t j = 0; j < fit->classes; j++)
            *(j > k ? &above : &below) += exact_value(&fit->class[j]);
        fit->null_margin[k] = within(log(above / below));
    }
}

/* The margins of a model without offsets that knows the classes' weights alone: for a softmax
 * log W_k, for other outputs the logit of each class's share. */
static void find_null_classes(struct fit *fit) {
    double all = exact_value(&fit->weight);
    bool softmax = fit->distribution == &distribution_multinomial;
    for (uint32_t k = 0; k < fit->outputs; k++) {
        double own = exact_value(&fit->class[fit->outputs == 1 ? 1 : k]);
        fit->null_margin[k] = within(softmax ? log(own / all) : log(own / (all - own)));
    }
}

static void find_null_margin(struct fit *fit) {
    double ratio = exact_value(&fit->null_a) / exact_value(&fit->null_b);
    if (!fit->intercept)
        return; /* it is 0 */
    assert(fit->distribution && fit->pass == PASS_ROWS);
    if (fit->objective->labels == LABEL_ORDERED)
        find_null_thresholds(fit);
    else if (fit->distribution->null_margin == NULL_OF_CLASSES)
        find_null_classes(fit);
    else
        fit->null_margin[0] = fit->distribution->null_margin == NULL_LOG ? log(ratio) : ratio;
}

/* A step of Newton's method, within the bounds that slopes have shown; true when it was the last.
 */
static bool step_to_null(struct fit *fit) {
    assert(fit->pass == PASS_NULL && fit->outputs == 1 && fit->low <= fit->high);
    double slope = exact_value(&fit->null_a), curvature = exact_value(&fit->null_b);
    double at = fit->null_margin[0], step = slope / curvature;
    *(slope > 0 ? &fit->low : &fit->high) = at;
    step = fmin(fmax(step, -NULL_STEP_MOST), NULL_STEP_MOST);
    double next = at + step;
    if (!(next > fit->low && next < fit->high))
        next = slope == 0 ? at : isfinite(fit->low + fit->high) ? (fit->low + fit->high) / 2 : at;
    fit->null_margin[0] = within(next);
    return fabs(next - at) < NULL_STEP_LEAST || ++fit->steps == NULL_STEPS_MAX ||
           fit->null_margin[0] != next;
}

/* A row has an outcome for each class that has a logistic model of its own. */
static double outcomes_of(const struct fit *fit) {
    bool each = fit->distribution == &distribution_binomials;
    return (double)fit->rows * (each ? fit->outputs : 1);
}

static double freedom_of(const struct fit *fit) {
    return outcomes_of(fit) - fit->parameters;
}

/* The dispersion in the likelihood; 1 where there is none. */
static double likelihood_dispersion(const struct fit *fit) {
    if (!fit->distribution->has_dispersion)
        return 1;
    return fit->distribution->profiled ? 2 * exact_value(&fit->half_deviance) / (double)fit->rows
                                       : exact_value(&fit->pearson) / freedom_of(fit);
}

bool fit_next_pass(struct fit *fit) {
    if (!fit->distribution || fit->pass == PASS_LAST)
        return false;
    if (fit->pass == PASS_ROWS) {
        find_null_margin(fit);
        fit->dispersion = likelihood_dispersion(fit);
        bool searches = fit->has_offsets && fit->intercept && fit->outputs == 1 &&
                        fit->distribution->null_margin == NULL_OF_CLASSES;
        fit->pass = searches ? PASS_NULL : PASS_LAST;
    } else if (step_to_null(fit)) {
        fit->pass = PASS_LAST;
    }
    exact_init(&fit->null_a);
    exact_init(&fit->null_b);
    return true;
}

/* ---- the end ---- */

void fit_finish(const struct fit *fit, struct fit_statistics *statistics) {
    assert(!fit->distribution || fit->pass == PASS_LAST);
    double freedom = freedom_of(fit);
    *statistics = (struct fit_statistics){.distribution = fit->distribution,
                                          .rows = fit->rows,
                                          .weight = exact_value(&fit->weight),
                                          .loss = exact_value(&fit->half_deviance),
                                          .parameters = fit->parameters,
                                          .freedom = freedom,
                                          .null_freedom = NAN,
                                          .deviance = NAN,
                                          .null_deviance = NAN,
                                          .pearson = NAN,
                                          .dispersion = NAN,
                                          .pearson_ratio = NAN,
                                          .deviance_ratio = NAN,
                                          .log_likelihood = NAN,
                                          .aic = NAN,
                                          .bic = NAN};
    if (!fit->distribution)
        return;
    /* Intercepts that can be estimated: the margins of a softmax are known except one. */
    bool softmax = fit->distribution == &distribution_multinomial;
    statistics->null_freedom =
        outcomes_of(fit) - (!fit->intercept ? 0 : (double)fit->outputs - (softmax ? 1 : 0));
    statistics->deviance = 2 * statistics->loss;
    if (!(fit->has_offsets && fit->intercept && fit->outputs > 1))
        statistics->null_deviance = 2 * exact_value(&fit->null_half_deviance);
    statistics->pearson = exact_value(&fit->pearson);
    if (freedom > 0) {
        statistics->pearson_ratio = statistics->pearson / freedom;
        statistics->deviance_ratio = statistics->deviance / freedom;
    }
    statistics->dispersion = fit->distribution->has_dispersion ? statistics->pearson_ratio : 1;
    statistics->log_likelihood = fit->distribution->log_likelihood
                                     ? exact_value(&fit->likelihood)
                                     : -exact_value(&fit->half_deviance);
    statistics->aic = -2 * statistics->log_likelihood + 2 * fit->parameters;
    statistics->bic = -2 * statistics->log_likelihood + log((double)fit->rows) * fit->parameters;
}

json_t *fit_json(const struct fit_statistics *statistics) {
    const struct {
        const char *name;
        double value;
    } members[] = {{"weight", statistics->weight},
                   {"loss", statistics->loss},
                   {"parameters", statistics->parameters},
                   {"freedom", statistics->freedom},
                   {"null_freedom", statistics->null_freedom},
                   {"deviance", statistics->deviance},
                   {"null_deviance", statistics->null_deviance},
                   {"pearson", statistics->pearson},
                   {"dispersion", statistics->dispersion},
                   {"pearson_ratio", statistics->pearson_ratio},
                   {"deviance_ratio", statistics->deviance_ratio},
                   {"log_likelihood", statistics->log_likelihood},
                   {"aic", statistics->aic},
                   {"bic", statistics->bic}};
    const struct distribution *distribution = statistics->distribution;
    json_t *object = json_pack("{s:I, s:s*, s:s*}", "rows", (json_int_t)statistics->rows,
                               "distribution", distribution ? distribution->name : NULL, "link",
                               distribution ? distribution->link : NULL);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        json_object_set_new(object, members[i].name,
                            isfinite(members[i].value) ? json_real(members[i].value) : json_null());
    return object;
}
