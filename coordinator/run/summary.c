#include "coordinator/run/summary.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/run/refine.h"
#include "coordinator/run/summary_parts.h"
#include "model/clusters.h"
#include "model/single_errors.h"
#include "model/summary.h"

static bool has_aliased(const struct training *run) {
    bool any = false;
    for (uint64_t i = 0; i < model_parameters(&run->layout); i++)
        any |= isnan(run->recorder.variance[i]);
    return any;
}

int summary_parameters(const struct training *run, double **parameters) {
    struct model view;
    int code = model_writer_view(run->recorder.writer, &view);
    *parameters = NULL;
    if (code)
        return code;
    *parameters = memory_new(model_parameters(&run->layout), sizeof **parameters);
    model_spread(&view, &run->layout, *parameters);
    summary_to_set(set_info(run->set), &run->layout, *parameters);
    return 0;
}

int summary_write(struct training *run, const struct summary_covariance *covariance,
                  const double *shown, const char *why) {
    const struct set_info *info = set_info(run->set);
    struct fit_statistics statistics;
    double *own = NULL, parameters = NAN; /* how many the fit has; NAN: not known */
    assert(covariance || why);
    /* With a penalty these are the effective ones, but where nobody knows the inverse that they
     * follow from. */
    if (covariance && covariance->variance)
        parameters = run->session->job->l2.value > 0 && !covariance->elements
                         ? covariance->trace
                         : (double)summary_estimated(covariance);
    int code = shown ? 0 : summary_parameters(run, &own);
    if (!code)
        code = summary_fit(run->set, &run->layout, shown ? shown : own, parameters, &statistics);
    free(own);
    if (code)
        return code;
    json_t *fit = fit_json(&statistics);
    json_t *summary = summary_json(fit, covariance, why);
    /* Without its scale a small column's estimate and error look as huge as those of one that
     * separates the classes. In tiles moments would take more memory than all else here. */
    if (!info->strip_columns) {
        code = training_find_moments(run);
        if (!code)
            summary_add_scales(&run->moments, info->features, run->recorder.writer, summary);
    }
    if (!code)
        code = model_writer_summary(run->recorder.writer, summary);
    json_decref(fit);
    json_decref(summary);
    return code;
}

/* ---- errors of the estimates ---- */

double *summary_numbers_in_order(const struct training *run, const double *errors) {
    const struct model_writer *writer = run->recorder.writer;
    uint64_t parameters = model_writer_parameters(writer);
    assert(parameters >= layout_parameters(&run->parameters));
    double *ordered = errors ? memory_new(parameters, sizeof *ordered) : NULL;
    for (uint64_t i = 0; ordered && i < parameters; i++)
        ordered[i] = NAN;
    for (uint64_t i = 0; ordered && i < layout_parameters(&run->parameters); i++)
        ordered[model_writer_number(writer, i)] = errors[i];
    return ordered;
}

double *summary_estimates_in_order(const struct training *run, const double *shown) {
    uint64_t count = model_parameters(&run->layout);
    if (!shown)
        return NULL;
    double *of_data = memory_new(count, sizeof *of_data);
    memcpy(of_data, shown, count * sizeof *of_data);
    summary_from_set(set_info(run->set), &run->layout, of_data);
    double *ordered = summary_numbers_in_order(run, of_data);
    free(of_data);
    return ordered;
}

/* Chunks have the weights of rows times a power of 2. Robust errors have it on both sides. NULL
 * stays NULL. */
static double *in_units_of_weights(const struct training *run, double *variance) {
    int exponent = set_info(run->set)->weight_exponent;
    for (uint64_t i = 0; variance && i < model_writer_parameters(run->recorder.writer); i++)
        variance[i] = ldexp(variance[i], exponent);
    return variance;
}

/* Those of the run that have no error of their own: the others are of features that are kept. */
static bool *find_aliased(const struct training *run) {
    const struct model_writer *writer = run->recorder.writer;
    bool *aliased = memory_new(model_writer_parameters(writer), sizeof *aliased);
    for (uint64_t i = 0; i < layout_parameters(&run->parameters); i++)
        aliased[model_writer_number(writer, i)] = isnan(run->recorder.variance[i]);
    return aliased;
}

double *summary_ridge(const struct training *run) {
    const struct set_info *info = set_info(run->set);
    const struct column_scaling *scaling = run->scaling.columns;
    double weight = ldexp(info->weight_sum, -info->weight_exponent);
    double l2 = objective_loss_unit(&run->shape) * run->session->job->l2.value * weight;
    uint32_t outputs = model_rows(&run->layout);
    if (!(l2 > 0))
        return NULL;
    double *ridge = memory_new(layout_parameters(&run->parameters), sizeof *ridge);
    for (size_t j = 0; j < info->features; j++) {
        double penalty = scaling ? scaling[j].penalty / scaling[j].scale / scaling[j].scale : 1;
        for (uint32_t k = 0; k < outputs; k++)
            ridge[j * outputs + k] = l2 * penalty;
    }
    return ridge;
}

static int find_clusters(const struct training *run, struct cluster_errors *errors) {
    if (!run->session->job->source.property.column[ROW_CLUSTER])
        return 0;
    double *parameters, *ridge = summary_ridge(run);
    int code = summary_parameters(run, &parameters);
    const struct cluster_point point = {parameters, run->recorder.variance, ridge};
    if (!code)
        code = clusters_find(run->set, &run->layout, &point, errors);
    free(parameters);
    free(ridge);
    return code;
}

int summary_runaways(const struct training *run, const double *ridge, bool *aliased, uint32_t steps,
                     bool *runs_away) {
    struct single_totals totals;
    double *parameters;
    int code = summary_parameters(run, &parameters);
    const struct single_point point = {parameters,     ridge,         aliased, NULL,
                                       run->collinear, cpus_usable(), steps};
    if (!code)
        code =
            single_errors_find(run->set, &run->layout, &point, NULL, 0, NULL, runs_away, &totals);
    free(parameters);
    return code;
}

/* No parameter is looked for that follows from others: these are known. */
static int find_runaways(const struct training *run, bool *runs_away) {
    uint64_t count = model_parameters(&run->layout);
    double *ridge = summary_ridge(run);
    bool *aliased = memory_new(count, sizeof *aliased);
    for (uint64_t i = 0; i < count; i++)
        aliased[i] = isnan(run->recorder.variance[i]);
    int code = summary_runaways(run, ridge, aliased, 0, runs_away);
    free(ridge);
    free(aliased);
    return code;
}

bool *summary_in_order(const struct training *run, const bool *marked) {
    const struct model_writer *writer = run->recorder.writer;
    bool *ordered = memory_new(model_writer_parameters(writer), sizeof *ordered);
    assert(model_writer_parameters(writer) >= layout_parameters(&run->parameters));
    for (uint64_t i = 0; i < layout_parameters(&run->parameters); i++)
        ordered[model_writer_number(writer, i)] = marked[i];
    return ordered;
}

/* What the sums of shards lose where columns nearly follow from others is found by their factor in
 * twice the precision, in place of what came from the shards. */
static void take_errors(struct training *run, const struct single_error *found, double *clustered) {
    struct recorder *recorder = &run->recorder;
    const int exponent = set_info(run->set)->weight_exponent;
    assert(recorder->variance && run->collinear);
    for (uint64_t i = 0; i < model_parameters(&run->layout); i++) {
        recorder->variance[i] = ldexp(found[i].variance, -exponent);
        if (recorder->sampling)
            recorder->sampling[i] = ldexp(found[i].sampling, -exponent);
        if (recorder->robust)
            recorder->robust[i] = found[i].robust;
        if (clustered)
            clustered[i] = found[i].clustered;
    }
}

static int refine_errors(struct training *run, double *clustered, double *trace) {
    uint64_t count = model_parameters(&run->layout), *element = memory_new(count, sizeof *element);
    struct single_error *found = memory_new(count, sizeof *found);
    bool *aliased = memory_new(count, sizeof *aliased), *away = memory_new(count, sizeof *away);
    struct single_totals totals;
    double *parameters;
    if (!run->recorder.estimate)
        run->recorder.estimate = memory_new(count, sizeof(double));
    for (uint64_t i = 0; i < count; i++)
        element[i] = i;
    int code = summary_parameters(run, &parameters);
    const struct single_point point = {
        parameters, run->ridge, aliased, run->recorder.estimate, run->collinear, cpus_usable(), 0};
    if (!code)
        code = single_errors_find(run->set, &run->layout, &point, element, count, found, away,
                                  &totals);
    if (!code)
        take_errors(run, found, clustered);
    *trace = (double)(count - totals.dependent);
    for (uint64_t i = 0; i < count && run->ridge; i++)
        *trace -= found[i].variance > 0 ? run->ridge[i] * found[i].variance : 0;
    free(parameters);
    free(element);
    free(found);
    free(aliased);
    free(away);
    return code;
}

static int summarise_all(struct training *run) {
    const struct recorder *recorder = &run->recorder;
    struct coordinator_view view = coordinator_view(run->coordinator);
    if (!recorder->variance)
        return summary_write(run, NULL, NULL,
                             "the run was ended before its second derivatives were summed up, or "
                             "they are not finite");
    struct cluster_errors errors = {0};
    double trace = view.summary.trace;
    int code = find_clusters(run, &errors);
    if (!code)
        code = refine_prepare_errors(run);
    if (!code && run->collinear)
        code = refine_errors(run, errors.variance, &trace);
    bool *running = memory_new(model_parameters(&run->layout), sizeof *running);
    if (!code)
        code = find_runaways(run, running);
    if (code) {
        free(errors.variance);
        free(running);
        return code;
    }
    double *clustered = summary_numbers_in_order(run, errors.variance);
    double *variance = in_units_of_weights(run, summary_numbers_in_order(run, recorder->variance));
    double *sampling = in_units_of_weights(run, summary_numbers_in_order(run, recorder->sampling));
    double *robust = summary_numbers_in_order(run, recorder->robust);
    double *estimate = summary_estimates_in_order(run, recorder->estimate);
    bool *aliased = find_aliased(run), *runs_away = summary_in_order(run, running);
    const struct summary_covariance covariance = {
        .parameters = model_writer_parameters(recorder->writer),
        .variance = variance,
        .sampling = sampling,
        .robust = robust,
        .clustered = clustered,
        .cluster = run->session->job->source.property.column[ROW_CLUSTER],
        .clusters = errors.clusters,
        .single_rows = errors.single_rows,
        .aliased = aliased,
        .estimate = estimate,
        .runs_away = runs_away,
        .trace = trace,
        .expected = objective_of(run->shape.kind)->expected != NULL};
    code = summary_write(run, &covariance, has_aliased(run) ? recorder->estimate : NULL, NULL);
    free(clustered);
    free(errors.variance);
    free(variance);
    free(sampling);
    free(robust);
    free(estimate);
    free(aliased);
    free(runs_away);
    free(running);
    return code;
}

int training_summarise(struct training *run) {
    return job_inverts(run->session->job) ? summarise_all(run) : summarise_columns(run);
}
