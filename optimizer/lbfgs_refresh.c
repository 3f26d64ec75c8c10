/* The phase that makes the preconditioner anew: second derivatives of a sample of the rows at x
 * (preconditioner.h says when), and a program that factors them.
 *
 * Second derivatives for a working set and for a summary are found likewise. */
#include <assert.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

static bool refresh_due(const struct lbfgs *o) {
    return preconditioner_due(&o->preconditioner, &o->settings.preconditioner, o->loss) ||
           lbfgs_ends_outdated(o);
}

/* The evaluation finds its point in t. Nothing is counted before the factor is there: a checkpoint
 * that is taken meanwhile begins the same refresh again. */
enum optimizer_want lbfgs_refresh(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->settings.preconditioner.form != PRECONDITION_NONE);
    o->refreshing = true;
    programs_acceptance(o, program);
    program_return(program);
    return OPTIMIZER_CURVATURE;
}

/* Beyond a leading block the curvature of a weight is its variance, which was scaled to 1 −
 * ridge·penalty, times the mean second derivative of a margin, and l2. */
static enum optimizer_want factor(struct lbfgs *o, struct bytes *program) {
    const struct preconditioner_settings *settings = &o->settings.preconditioner;
    double beta = o->found.trace / (o->data.weight_sum * settings->parts);
    assert(o->refreshing && !o->accepted && settings->parts > 0);
    program_add(program, &(struct operation){.code = OPERATION_FACTOR,
                                             .alpha = o->settings.l2,
                                             .beta = beta,
                                             .gamma = o->settings.l2 - beta * settings->ridge,
                                             .serial = o->preconditioner.refreshes + 1});
    return lbfgs_measure(o, MEASURING_FACTOR);
}

/* Products with the old P are of no use with the new one: the pairs go. */
static void take_factor(struct lbfgs *o, double added) {
    const struct preconditioner_settings *settings = &o->settings.preconditioner;
    assert(o->refreshing && !(added < 0));
    o->refreshing = false;
    if (added > 0)
        lbfgs_fire(o, isfinite(added) ? SAFEGUARD_DIAGONAL_RAISED : SAFEGUARD_PRECONDITIONER_LEFT);
    if (isfinite(added) && isfinite(o->found.score)) {
        preconditioner_refreshed(&o->preconditioner, settings, o->loss, &o->found);
        o->unconditioned = true;
    } else {
        preconditioner_unfactored(&o->preconditioner, settings, o->loss);
    }
    if (mutant(PAIRS_KEPT))
        o->history.preconditioned = o->preconditioner.in_force;
    else
        pairs_reset(&o->history, o->preconditioner.in_force);
    assert(!o->refreshing && o->preconditioner.refreshes <= o->preconditioner.evaluations);
}

static bool refresh_evaluates(const struct lbfgs *o) {
    return o->refreshing;
}

static void refresh_request(const struct lbfgs *o, struct optimizer_request *request) {
    assert(o->refreshing);
    lbfgs_request_hessian(o, HESSIAN_SAMPLED, request);
    request->sampling = preconditioner_sampling(&o->preconditioner, &o->settings.preconditioner);
}

/* The totals of an evaluation of the curvature. */
enum { TOTAL_SCORE, TOTAL_SAMPLED, TOTAL_TERMS, TOTAL_TRACE };

void lbfgs_take_curvature(struct lbfgs *o, const struct evaluation_found *found,
                          struct optimizer_request *request) {
    double score = found_total(found, 0, TOTAL_SCORE);
    assert(o->started);
    o->found = (struct curvature_found){.rows = found_total(found, 0, TOTAL_SAMPLED),
                                        .terms = found_total(found, 0, TOTAL_TERMS),
                                        .score = found->exceeded ? NAN : score,
                                        .trace = found_total(found, 0, TOTAL_TRACE)};
    request->report.evaluation.outcome = "curvature";
    request->report.evaluation.step = o->step;
    request->report.evaluation.loss = request->report.evaluation.slope = NAN;
}

static enum optimizer_want refresh_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    lbfgs_take_curvature(o, found, request);
    return factor(o, request->program);
}

static void report_factor(struct optimizer_request *request, const struct lbfgs *o) {
    const struct preconditioner *p = &o->preconditioner;
    assert(!o->refreshing && p->evaluations > 0);
    if (!p->in_force)
        report_event(&request->report, "preconditioner",
                     "step %llu: the curvature could not be factored; going on without it",
                     (unsigned long long)o->step);
    else
        report_event(&request->report, "preconditioner",
                     "step %llu: refresh %llu, curvature of %.0f of %llu rows in %.3f s, about "
                     "%.3g passes",
                     (unsigned long long)o->step, (unsigned long long)p->refreshes, p->found.rows,
                     (unsigned long long)o->data.rows, request->evaluation_seconds,
                     preconditioner_cost(p, &o->settings.preconditioner));
}

static enum optimizer_want refresh_measured(struct lbfgs *o, const double *scalars,
                                            struct optimizer_request *request) {
    take_factor(o, scalars[0]);
    enum optimizer_want want = o->summary.stage == SUMMARY_REFRESH
                                   ? summary_refreshed(o, request->program)
                                   : lbfgs_step_from(o, request->program);
    report_factor(request, o);
    return want;
}

static void refresh_resume(struct lbfgs *o) {
    o->refreshing = false;
}

static void refresh_serialize(struct codec *codec, struct lbfgs *o) {
    preconditioner_serialize(codec, &o->preconditioner);
}

const struct phase refresh_phase = {
    .due = refresh_due,
    .begin = lbfgs_refresh,
    .evaluates = refresh_evaluates,
    .request = refresh_request,
    .evaluated = refresh_evaluated,
    .measured = {[MEASURING_FACTOR] = refresh_measured},
    .resume = refresh_resume,
    .serialize = refresh_serialize,
};
