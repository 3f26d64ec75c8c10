/* The phase of the line search: trials along a direction, each of them one evaluation and round A.
 *
 * Trials of other phases whose steps are along a direction are made here, too; in tiles an
 * evaluation is a product and its transpose (lbfgs_products.c). */
#include <assert.h>
#include <math.h>

#include "optimizer/lbfgs_phase.h"

/* Differences of F up to this, relative to F, count as rounding in the line search. */
#define LOSS_NOISE 1e-11
#define LOSS_NOISE_SINGLE 1e-7

/* The starting point has no orthant: the first trial is that point, within the bounds. */
enum optimizer_want lbfgs_try(struct lbfgs *o, struct bytes *program) {
    const struct domain *domain = o->plan.domain;
    bool leaves = !o->started || lbfgs_stepping(o)->leaves_orthant;
    programs_trial(o, program, leaves ? domain->clip : domain->project);
    return o->plan.way->trials->try(o, program);
}

static enum optimizer_want search_try(struct lbfgs *o, struct bytes *program) {
    (void)program; /* all of it is of one evaluation */
    return lbfgs_evaluate(o);
}

double lbfgs_noise(const struct lbfgs *o) {
    return (o->settings.single ? LOSS_NOISE_SINGLE : LOSS_NOISE) * fabs(o->loss);
}

double lbfgs_steepest_step(const struct lbfgs *o) {
    return fmin(1 / optimizer_loss_unit(&o->settings), 1 / sqrt(o->gradient_square));
}

enum optimizer_want lbfgs_search_along(struct lbfgs *o, double first_step, struct bytes *program) {
    assert(o->started && first_step > 0 && !(o->slope > 0));
    linesearch_begin(&o->search, o->loss, o->slope, lbfgs_noise(o), first_step, o->steepest);
    return lbfgs_try(o, program);
}

/* Round A: finish the gradient at t, form the candidate pair, measure all that may be needed. */
enum optimizer_want lbfgs_measure_trial(struct lbfgs *o, struct bytes *program) {
    assert(!o->refreshing && isfinite(o->mean_loss));
    programs_measures(o, program);
    return lbfgs_measure(o, MEASURING_TRIAL);
}

/* Round B: accept, form the direction, measure its slope. That of steepest descent is known. */
static enum optimizer_want search_begin(struct lbfgs *o, struct bytes *program) {
    programs_acceptance(o, program);
    programs_direction(o, program);
    if (o->steepest) {
        o->slope = -o->gradient_square;
        return lbfgs_search_along(o, lbfgs_steepest_step(o), program);
    }
    programs_slope(o, program);
    return lbfgs_measure(o, MEASURING_DIRECTION);
}

/* The parts of an evaluation of whole rows. */
enum { PART_TRAINING, PART_HOLDOUT };

/* Penalties only add to it. */
bool lbfgs_refuses(const struct lbfgs *o, double mean_loss) {
    assert(!o->refreshing && isfinite(mean_loss));
    return o->started && linesearch_refuses(&o->search, mean_loss);
}

enum optimizer_want lbfgs_refused(struct lbfgs *o, double mean_loss, struct bytes *program) {
    return lbfgs_rejected(o, o->plan.domain->refused(&o->search, mean_loss), program);
}

/* The loss of an evaluation without sums may show alone that the trial is not the step. Else the
 * evaluation is made again. */
static enum optimizer_want exceeded(struct lbfgs *o, double mean_loss,
                                    struct optimizer_request *request) {
    if (lbfgs_refuses(o, mean_loss)) {
        lbfgs_report(&request->report, o, "rejected", NAN, NAN);
        return lbfgs_refused(o, mean_loss, request->program);
    }
    lbfgs_report(&request->report, o, "bound exceeded", NAN, NAN);
    request->again = true;
    return OPTIMIZER_EVALUATE;
}

static enum optimizer_want search_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request) {
    double loss = found_total(found, PART_TRAINING, 0) / o->data.weight_sum;
    assert(o->data.weight_sum > 0);
    if (found->exceeded && found->can_hold && isfinite(loss))
        return exceeded(o, loss, request);
    o->mean_loss = found->exceeded ? INFINITY : loss;
    lbfgs_take_held(o, found_held(found, PART_HOLDOUT, &o->data));
    if (isfinite(o->mean_loss))
        return lbfgs_measure_trial(o, request->program);
    lbfgs_report(&request->report, o, "not finite", found->exceeded ? NAN : loss, NAN);
    return lbfgs_not_finite(o, request->program);
}

/* Round A. */
enum optimizer_want lbfgs_trial_measured(struct lbfgs *o, const double *scalars,
                                         struct optimizer_request *request) {
    uint64_t steps = o->step + o->started;
    struct measured trial = programs_measured(o, scalars);
    lbfgs_report(&request->report, o, "rejected", trial.loss, trial.slope);
    enum optimizer_want want = lbfgs_tried(o, &trial, request->program);
    request->accepted = o->step + o->started > steps;
    if (request->accepted) {
        request->report.evaluation.outcome = "accepted";
        lbfgs_report_step(&request->report, o);
    }
    return want;
}

static enum optimizer_want direction_measured(struct lbfgs *o, const double *scalars,
                                              struct optimizer_request *request) {
    const double slope = scalars[0];
    assert(o->started && !o->accepted && !o->steepest);
    if (!(slope < 0) || !isfinite(slope))
        return lbfgs_fail(o, SAFEGUARD_HISTORY_RESET, request->program);
    o->slope = slope;
    return lbfgs_search_along(o, 1, request->program);
}

/* The search looks itself for what is not finite. */
static enum linesearch_answer search_check_trial(struct lbfgs *o, const struct measured *m,
                                                 bool finite) {
    (void)finite;
    return o->plan.domain->search(&o->search, m);
}

/* Where steepest descent fails, too, no step is left. */
static enum optimizer_want search_failed(struct lbfgs *o, enum safeguard safeguard,
                                         struct bytes *program) {
    if (!o->steepest)
        return lbfgs_retry(o, safeguard, program);
    lbfgs_take_last_gap(o);
    return lbfgs_end_for(o, REASON_STALLED, program);
}

static double search_fall(const struct lbfgs *o) {
    return o->search.step * o->slope;
}

static void search_stepped(struct lbfgs *o) {
    if (o->started)
        preconditioner_stepped(&o->preconditioner, fabs(o->search.step), o->search.trials);
}

const struct phase search_phase = {
    .begin = search_begin,
    .request = lbfgs_request,
    .evaluated = search_evaluated,
    .measured =
        {[MEASURING_TRIAL] = lbfgs_trial_measured, [MEASURING_DIRECTION] = direction_measured},
    .check_trial = search_check_trial,
    .failed = search_failed,
    .follows = lbfgs_end_or_go_on,
    .try = search_try,
    .along_line = true,
    .start = lbfgs_start_trial,
    .fall = search_fall,
    .stepped = search_stepped,
};
