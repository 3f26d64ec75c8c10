#include "coordinator/run/refine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/job/family.h"
#include "coordinator/run/summary_parts.h"
#include "model/collinear.h"
#include "model/summary_table.h"

/* Whether the run has come to where its job wants to stop, and that is its optimum. */
static bool is_meant(const struct training *run) {
    const struct job *job = run->session->job;
    const struct coordinator_view view = coordinator_view(run->coordinator);
    bool ended = reason_claims_optimum(view.reason) || view.reason == REASON_STALLED;
    return ended && view.answer.step == view.step && job->optimizer == JOB_LBFGS &&
           job_family(job)->family->convex && !(job->l1.value > 0) && !job_has_bounds(job) &&
           run->estimates.known && collinear_can(set_info(run->set), &run->layout);
}

static bool is_left_out(const struct training *run, uint64_t feature) {
    const uint64_t weights = model_rows(&run->layout);
    bool any = false;
    for (uint64_t k = 0; k < weights; k++)
        any |= collinear_kind_of(run->collinear, feature * weights + k) == COLLINEAR_ROUNDED;
    return any;
}

/* The model of the optimum is the run's. */
static int take_optimum(struct training *run) {
    struct recorder *recorder = &run->recorder;
    struct collinear_fit *fit = &run->fit;
    summary_from_set(set_info(run->set), &run->layout, fit->parameters);
    readback_slice(recorder->readback, 0, model_parameters(&run->layout), fit->parameters);
    log_info("columns nearly follow from others: the loss is %.12g by Newton's steps in twice the "
             "precision, and was %.12g",
             fit->loss, run->answer.loss);
    run->answer.loss = fit->loss;
    run->answer.gradient_max = fit->gradient_max;
    run->answer.gap_estimate = fit->gap;
    run->gap = (struct gap){true, fit->gap, gap_allowed(&run->estimates, fit->loss)};
    return model_writer_replace(recorder->writer, fit->parameters);
}

/* The gap is so small that rounding may account for it: what P hides counts as 1e-20 of what
 * columns curve by (shard/factor_make.c), also where nothing is hidden but that all outputs may
 * have the same. */
#define GAP_OF_ROUNDING 1e-9

static bool is_unsure(const struct training *run) {
    const double loss = fmax(run->answer.loss, run->estimates.least);
    return run->estimates.newton && !gap_is_small(&run->gap) &&
           run->gap.estimate <= GAP_OF_ROUNDING * loss;
}

/* The time at which max_seconds are over, by clock_monotonic_ns(). */
static int64_t end_of_time(const struct training *run) {
    const double left = run->session->job->max_seconds - training_seconds(run);
    const int64_t now = clock_monotonic_ns();
    return left < (double)(INT64_MAX - now) / 1e9 ? now + (int64_t)(left * 1e9) : INT64_MAX;
}

static int find_optimum(struct training *run) {
    struct collinear_fit *fit = &run->fit;
    const uint64_t features = run->layout.features;
    double *scale = run->scaling.columns ? memory_new(features, sizeof *scale) : NULL;
    for (uint64_t j = 0; j < features && scale; j++)
        scale[j] = run->scaling.columns[j].scale;
    failpoint(FAILPOINT_refine);
    int code = collinear_find(run->collinear, run->estimates.least, scale, end_of_time(run), fit);
    free(scale);
    /* The estimate of the gap is not to be trusted where columns nearly follow from others: without
     * time to look, the run does not count as converged. */
    if (fit->late) {
        run->gap.known = false;
        run->answer.gap_estimate = NAN;
    }
    /* No column is near others, and the run's point stays. Twice the gap, as of other estimates. */
    if (!code && !fit->near && is_unsure(run)) {
        run->gap.estimate = fmin(run->gap.estimate, 2 * fit->gap);
        run->answer.gap_estimate = run->gap.estimate;
    }
    if (!code && fit->found) {
        bool better =
            fit->gap <= gap_allowed(&run->estimates, fit->loss) || fit->loss < run->answer.loss;
        for (uint64_t j = 0; j < features && !better; j++)
            better = is_left_out(run, j);
        if (better)
            return take_optimum(run);
        /* The run's model stays where doubles cannot hold a better one. The minimum is known all
         * the same. */
        run->gap.estimate = fmax(run->gap.estimate, run->answer.loss - fit->loss + fit->gap);
        run->answer.gap_estimate = run->gap.estimate;
    }
    collinear_free(run->collinear);
    run->collinear = NULL;
    return code;
}

int training_refine(struct training *run) {
    const struct set_info *data = set_info(run->set);
    bool near = false;
    assert(!run->collinear && !run->ridge && !run->fit.parameters);
    if (!is_meant(run))
        return 0;
    run->ridge = summary_ridge(run);
    double second = objective_typical_second(&run->shape, data->targets);
    int code = collinear_look(run->set, &run->layout, run->ridge, second, &near);
    near |= is_unsure(run);
    if (!code && near)
        code = summary_parameters(run, &run->fit.parameters);
    if (code || !near)
        return code;
    log_info(
        "columns may nearly follow from others: looking for the optimum in twice the precision");
    run->collinear = collinear_new(run->set, &run->layout, run->fit.parameters, run->ridge);
    return find_optimum(run);
}

int refine_prepare_errors(struct training *run) {
    const struct recorder *recorder = &run->recorder;
    bool lost = false; /* a shard could not tell an error that there is */
    for (uint64_t i = 0; recorder->sampling && i < model_parameters(&run->layout); i++)
        lost |= isnan(recorder->sampling[i]) && !isnan(recorder->variance[i]);
    if (run->collinear || !lost || !collinear_can(set_info(run->set), &run->layout))
        return 0;
    free(run->ridge);
    free(run->fit.parameters);
    run->fit.parameters = NULL;
    run->ridge = summary_ridge(run);
    int code = summary_parameters(run, &run->fit.parameters);
    if (code)
        return code;
    run->collinear = collinear_new(run->set, &run->layout, run->fit.parameters, run->ridge);
    return collinear_factor(run->collinear);
}

void refine_report(const struct training *run) {
    json_t *list = json_array();
    for (uint64_t j = 0; run->collinear && j < run->layout.features; j++) {
        if (!is_left_out(run, j))
            continue;
        char *name = summary_name(&run->layout, j);
        log_warning("column `%s` follows from those before it but for the rounding of its values: "
                    "its weight is 0; csv.skip leaves it out",
                    name);
        json_array_append_new(list, text_to_json(name));
        free(name);
    }
    if (json_array_size(list))
        json_object_set(run->result, "collinear", list);
    json_decref(list);
}
