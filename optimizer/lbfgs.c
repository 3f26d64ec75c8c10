#include "optimizer/lbfgs.h"
#include "optimizer/lbfgs_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/linesearch.h"

/* A pair is kept if s·y > this · (−α g·d): under the strong Wolfe conditions it always is. */
#define CURVATURE_LEAST 1e-4

/* Serial numbers of pairs that no step of this run formed. */
#define SERIAL_GIVEN (UINT64_C(1) << 63)

/* Differences of F up to this, relative to F, count as rounding in the line search. */
#define LOSS_NOISE 1e-11
#define LOSS_NOISE_SINGLE 1e-7

void lbfgs_fire(struct lbfgs *o, enum safeguard safeguard) {
    assert(safeguard < SAFEGUARDS);
    o->safeguards[safeguard]++;
    o->fired |= 1u << safeguard;
}

/* ---- requests ---- */

enum optimizer_want lbfgs_finish(struct lbfgs *o, enum reason reason, struct bytes *program) {
    assert(reason != REASON_NONE && reason < REASONS);
    programs_acceptance(o, program);
    o->reason = reason;
    return OPTIMIZER_FINISH;
}

static enum optimizer_want evaluate(struct lbfgs *o, struct bytes *program) {
    assert(o->search.step >= 0);
    programs_trial(o, program);
    if (products_run(o))
        return products_trial(o, program);
    o->evaluations++;
    return OPTIMIZER_EVALUATE;
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
    return evaluate(o, program);
}

/* The negative gradient: no curvature is known. */
static enum optimizer_want search_steepest(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->gradient_square >= 0);
    pairs_reset(&o->history, false);
    o->steepest = true;
    if (common_runs(o))
        return common_direction(o, program);
    programs_acceptance(o, program);
    programs_direction(o, program);
    o->slope = -o->gradient_square;
    return lbfgs_search_along(o, lbfgs_steepest_step(o), program);
}

/* The pair is formed as the difference to d, which is zero here. */
void lbfgs_load(struct lbfgs *o, struct bytes *program) {
    assert(!o->started && o->history.pairs <= o->history.memory);
    programs_zero(program, REGISTER_D);
    programs_pair(o, program, REGISTER_D, REGISTER_D);
}

void lbfgs_loaded(struct lbfgs *o, const double *scalars, uint64_t number) {
    struct pairs_products products[SLOTS_MAX];
    assert(!o->started && number < SERIAL_GIVEN);
    memcpy(products, scalars, (o->history.pairs + 1) * sizeof products[0]);
    double curvature = products[o->history.pairs].sy;
    bool keep = curvature > 0 && curvature / products[o->history.pairs].yy > 0;
    pairs_accept(&o->history, products, keep && isfinite(curvature), SERIAL_GIVEN + number);
    pairs_condition(&o->history);
    assert(o->history.pairs <= o->history.memory);
}

enum optimizer_want lbfgs_start_trial(struct lbfgs *o, struct bytes *program) {
    assert(!o->started && o->search.step == 0);
    programs_zero(program, REGISTER_D);
    return evaluate(o, program);
}

static enum optimizer_want start(struct lbfgs *o, struct bytes *program) {
    assert(!o->started && !o->accepted);
    o->reason = REASON_NONE; /* one that was stopped before its first evaluation starts anew */
    o->search.step = 0;
    return lbfgs_by_rows(o) ? common_begin(o, program) : lbfgs_start_trial(o, program);
}

/* Round A: finish the gradient at t, form the candidate pair, measure all that may be needed. */
enum optimizer_want lbfgs_measure_trial(struct lbfgs *o, struct bytes *program) {
    assert(!o->refreshing && isfinite(o->mean_loss));
    programs_measures(o, program);
    o->measuring = MEASURING_TRIAL;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

/* Round B: accept, form the direction, measure its slope. */
static enum optimizer_want measure_direction(struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->refreshing);
    o->steepest = false;
    if (common_runs(o))
        return common_direction(o, program);
    programs_acceptance(o, program);
    programs_direction(o, program);
    programs_slope(o, program);
    o->measuring = MEASURING_DIRECTION;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

/* ---- refreshes of the preconditioner ---- */

/* The evaluation finds its point in t. Nothing is counted before the factor is there: a checkpoint
 * that is taken meanwhile begins the same refresh again. */
enum optimizer_want lbfgs_refresh(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->settings.preconditioner.form != PRECONDITION_NONE);
    o->refreshing = true;
    programs_acceptance(o, program);
    program_return(program);
    return OPTIMIZER_CURVATURE;
}

/* Beyond a heavy block the curvature of a weight is its variance, which was scaled to 1 −
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
    o->measuring = MEASURING_FACTOR;
    o->rounds++;
    return OPTIMIZER_MEASURE;
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

/* ---- decisions ---- */

static enum optimizer_want end(struct lbfgs *o, enum reason reason, struct bytes *program) {
    if (common_must_check(o, reason))
        return common_check(o, reason, program);
    if (summary_runs(o, reason))
        return summary_begin(o, reason, program);
    return lbfgs_finish(o, reason, program);
}

/* Steepest descent failed, too: only the margins may be to blame. */
static enum optimizer_want retry_steepest(struct lbfgs *o, struct bytes *program) {
    assert(o->steepest);
    if (!common_runs(o))
        lbfgs_take_last_gap(o);
    if (!common_runs(o) || o->common.age == 0)
        return end(o, REASON_STALLED, program);
    o->common.margins = false;
    return search_steepest(o, program);
}

/* Without the pairs, and then without the preconditioner. An end that was put off comes first. */
enum optimizer_want lbfgs_retry(struct lbfgs *o, enum safeguard safeguard, struct bytes *program) {
    assert(o->started && !o->accepted);
    if (o->working.stage == WORKING_STEP)
        return working_rejected(o, program);
    if (o->steepest)
        return retry_steepest(o, program);
    if (o->history.preconditioned && o->history.pairs) {
        lbfgs_fire(o, safeguard);
        pairs_reset(&o->history, true);
        return measure_direction(o, program);
    }
    if (o->history.preconditioned) {
        safeguard = SAFEGUARD_PRECONDITIONER_LEFT;
        preconditioner_failed(&o->preconditioner);
    }
    lbfgs_fire(o, safeguard);
    return search_steepest(o, program);
}

/* What follows a trial that the line search did not accept. */
static enum optimizer_want rejected(struct lbfgs *o, enum linesearch_answer answer,
                                    struct bytes *program) {
    assert(o->started && answer != LINESEARCH_ACCEPT);
    if (o->summary.polishing)
        return summary_ends(o, program);
    if (answer == LINESEARCH_FAIL)
        return lbfgs_retry(o, SAFEGUARD_SEARCH_RETRIED, program);
    o->retries++;
    return evaluate(o, program);
}

/* With l1 a step ends where F falls enough, at any slope: its pair may curve very little. */
static bool keeps_pair(const struct lbfgs *o, const struct measured *m) {
    assert(m->products && o->history.pairs <= o->history.memory);
    const struct pairs_products *candidate = &m->products[o->history.pairs];
    if (!o->started)
        return false;
    if (lbfgs_has_orthants(o))
        return orthant_keeps_pair(candidate->sy, m->step_square, candidate->yy);
    double fall = common_runs(o) ? span_fall(&o->common.span) : o->search.step * o->slope;
    return candidate->sy > CURVATURE_LEAST * -fall;
}

enum optimizer_want lbfgs_step_from(struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->refreshing);
    if (o->history.pairs == 0 && !o->history.preconditioned && !o->scaled)
        return search_steepest(o, program);
    return measure_direction(o, program);
}

enum optimizer_want lbfgs_go_on(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->reason == REASON_NONE);
    if (working_runs(o))
        return working_begin(o, program);
    if (preconditioner_due(&o->preconditioner, &o->settings.preconditioner, o->loss) ||
        lbfgs_ends_outdated(o))
        return lbfgs_refresh(o, program);
    return lbfgs_step_from(o, program);
}

/* What follows an accepted point. */
enum optimizer_want lbfgs_leave(struct lbfgs *o, struct bytes *program) {
    if (o->summary.polishing)
        return summary_stepped(o, program);
    enum reason reason = lbfgs_reason_to_end(o);
    assert(o->started && o->reason == REASON_NONE);
    return reason ? end(o, reason, program) : lbfgs_go_on(o, program);
}

/* Keeps the point that was just accepted if it is the best so far. Else the best one stays; if that
 * is the one just before, the next program, which leaves it, must put it into register best. */
static void judge_on_holdout(struct lbfgs *o) {
    bool first = o->step == 0;
    assert(o->settings.patience && o->best.step <= o->step);
    o->holdout = o->trial_holdout;
    if (first || o->holdout.loss < o->best.holdout.loss)
        o->best = (struct optimizer_point){.step = o->step,
                                           .loss = o->loss,
                                           .gradient_max = o->gradient_max,
                                           .holdout = o->holdout,
                                           .nonzero = o->nonzero,
                                           .at_bound = o->at_bound,
                                           .gap_bound = o->gap_bound,
                                           .gap_estimate = o->gap_estimate,
                                           .norms = o->norms};
    else
        o->leaves_best = o->best.step + 1 == o->step;
    assert(o->best.step <= o->step && (o->best.step == o->step || !first));
}

static enum optimizer_want accepted(struct lbfgs *o, const struct measured *m,
                                    struct bytes *program) {
    assert(isfinite(m->loss) && !o->accepted);
    if (m->products) {
        /* t becomes x. */
        bool keep = keeps_pair(o, m);
        if (!keep && o->started)
            lbfgs_fire(o, SAFEGUARD_PAIR_SKIPPED);
        pairs_accept(&o->history, m->products, keep, o->step + 1);
        if (pairs_condition(&o->history) > 0)
            lbfgs_fire(o, SAFEGUARD_PAIRS_DROPPED);
    }
    if (o->started) {
        o->step++;
        o->last_step_length = o->search.step;
        o->last_trials = o->search.trials;
        uint64_t passes = common_runs(o) ? 1 : o->search.trials;
        preconditioner_stepped(&o->preconditioner, fabs(o->search.step), passes);
        working_accepted(o, o->loss - m->loss);
    }
    o->started = true;
    o->accepted = true;
    if (common_runs(o))
        common_stepped(o);
    assert(o->search.trials <= LINESEARCH_TRIALS_MAX + 1);
    o->loss = m->loss;
    o->gradient_square = m->square;
    o->gradient_max = m->max;
    o->nonzero = m->nonzero;
    o->moving = m->moving;
    o->at_bound = m->at_bound;
    o->gap_bound = m->gap_bound;
    lbfgs_note_gap(o, m);
    o->gap_estimate = lbfgs_gap_estimate(o, m);
    o->norms = m->norms;
    lbfgs_note_loss(o);
    if (o->settings.patience)
        judge_on_holdout(o);
    return lbfgs_leave(o, program);
}

/* Asks the line search. The starting point belongs to no search: it has only to be finite. */
static enum linesearch_answer judge_trial(struct lbfgs *o, const struct measured *m) {
    assert(!o->refreshing && !o->accepted);
    bool finite = isfinite(m->loss) && isfinite(m->slope);
    o->trial_loss = m->loss;
    o->trial_slope = m->slope;
    if (!o->started)
        return finite ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
    if (!finite)
        lbfgs_fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    if (common_runs(o))
        return finite ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
    if (o->summary.polishing) {
        o->search.trials++;
        return summary_falls(o, m) ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
    }
    if (o->working.stage == WORKING_STEP)
        return convex_search_next(&o->search, finite ? m->loss : NAN);
    if (lbfgs_has_orthants(o))
        return orthant_search_next(
            &o->search,
            &(struct orthant_trial){.loss = m->loss, .falls = m->falls, .ends = m->ends});
    return linesearch_next(&o->search, m->loss, m->slope);
}

/* What follows a trial. */
static enum optimizer_want trial_measured(struct lbfgs *o, const struct measured *m,
                                          struct bytes *program) {
    if (o->common.stage == COMMON_CHECK)
        return common_checked(o, m, program);
    enum linesearch_answer answer = judge_trial(o, m);
    assert(o->started || answer != LINESEARCH_TRY);
    if (answer == LINESEARCH_ACCEPT)
        return accepted(o, m, program);
    return o->started ? rejected(o, answer, program) : lbfgs_finish(o, REASON_NOT_FINITE, program);
}

static enum optimizer_want direction_measured(struct lbfgs *o, double slope,
                                              struct bytes *program) {
    assert(o->started && !o->accepted && !o->steepest);
    if (o->summary.polishing && !(slope < 0 && isfinite(slope)))
        return summary_ends(o, program);
    if (!(slope < 0) || !isfinite(slope))
        return lbfgs_retry(o, SAFEGUARD_HISTORY_RESET, program);
    o->slope = slope;
    return lbfgs_search_along(o, 1, program);
}

enum optimizer_want lbfgs_not_finite(struct lbfgs *o, struct bytes *program) {
    struct measured trial = {.loss = INFINITY, .slope = NAN, .falls = NAN};
    return trial_measured(o, &trial, program);
}

/* ---- the row ---- */

void lbfgs_take_held(struct lbfgs *o, struct held held) {
    o->trial_holdout = held;
    if (!isfinite(held.loss))
        o->trial_holdout.loss = INFINITY;
}

/* The parts of an evaluation. The holdout is one of them if it decides the end. */
enum { PART_TRAINING, PART_HOLDOUT };

static struct evaluation_parts parts_of(const struct lbfgs *o, uint32_t kind) {
    const struct optimizer_data *data = &o->data;
    assert(kind == EVALUATION_GRADIENT || kind == EVALUATION_CURVATURE);
    struct evaluation_parts parts = {.items = {{kind, 0, data->chunks}}, .count = 1};
    if (kind == EVALUATION_GRADIENT && o->settings.patience && data->holdout_chunks)
        parts.items[parts.count++] =
            (struct evaluation_part){EVALUATION_LOSS, data->chunks, data->holdout_chunks};
    return parts;
}

static void leave_request(const struct lbfgs *o, enum optimizer_want want,
                          struct optimizer_request *request) {
    assert(want <= OPTIMIZER_FINISH);
    request->want = want;
    if (want == OPTIMIZER_EVALUATE && lbfgs_by_rows(o))
        common_request(o, request);
    else if (want == OPTIMIZER_EVALUATE)
        request->parts = parts_of(o, EVALUATION_GRADIENT);
    if (want != OPTIMIZER_CURVATURE)
        return;
    if (o->working.stage == WORKING_CURVATURE) {
        working_request(o, request);
        return;
    }
    if (summary_evaluates(o)) {
        summary_request(o, request);
        return;
    }
    assert(o->refreshing);
    request->parts = parts_of(o, EVALUATION_CURVATURE);
    request->sampling = preconditioner_sampling(&o->preconditioner, &o->settings.preconditioner);
}

/* A restored x and g are in their registers, the pairs in their slots. Nothing else is. A limit
 * that was raised since does not end the run any more. */
static enum optimizer_want resume(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->history.pairs <= o->history.memory);
    o->accepted = o->leaves_best = false;
    o->refreshing = false;
    o->working.stage = WORKING_NONE;
    summary_resume(o);
    o->unconditioned = true;
    if (mutant(REFRESH_TWICE) && o->history.preconditioned)
        return lbfgs_refresh(o, program);
    o->reason = o->closes = REASON_NONE; /* it was ended from outside, and goes on now */
    return lbfgs_by_rows(o) ? common_resume(o, program) : lbfgs_leave(o, program);
}

static void lbfgs_begin(void *row, struct optimizer_request *request) {
    struct lbfgs *o = row;
    enum optimizer_want want =
        o->started ? resume(o, request->program) : start(o, request->program);
    assert(o->history.memory == o->settings.memory);
    leave_request(o, want, request);
}

/* The totals of an evaluation of the curvature. */
enum { TOTAL_SCORE, TOTAL_SAMPLED, TOTAL_TERMS, TOTAL_TRACE };

/* If a second derivative was not a number there are no sums. */
static void curvature_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                struct optimizer_request *request) {
    double score = found_total(found, PART_TRAINING, TOTAL_SCORE);
    assert(o->started &&
           (o->refreshing || o->working.stage == WORKING_CURVATURE || summary_evaluates(o)));
    o->found = (struct curvature_found){.rows = found_total(found, PART_TRAINING, TOTAL_SAMPLED),
                                        .terms = found_total(found, PART_TRAINING, TOTAL_TERMS),
                                        .score = found->exceeded ? NAN : score,
                                        .trace = found_total(found, PART_TRAINING, TOTAL_TRACE)};
    request->report.evaluation.outcome = "curvature";
    request->report.evaluation.step = o->step;
    request->report.evaluation.loss = request->report.evaluation.slope = NAN;
    enum optimizer_want want = o->refreshing ? factor(o, request->program)
                               : summary_evaluates(o)
                                   ? summary_evaluated(o, found->exceeded, request->program)
                                   : working_evaluated(o, request->program);
    leave_request(o, want, request);
    request->again = want == OPTIMIZER_CURVATURE;
}

/* Penalties only add to it. */
bool lbfgs_refuses(const struct lbfgs *o, double mean_loss) {
    assert(!o->refreshing && isfinite(mean_loss));
    return o->started && linesearch_refuses(&o->search, mean_loss);
}

enum optimizer_want lbfgs_refused(struct lbfgs *o, double mean_loss, struct bytes *program) {
    enum linesearch_answer answer = lbfgs_has_orthants(o)
                                        ? orthant_search_refused(&o->search, mean_loss)
                                        : linesearch_refused(&o->search, mean_loss);
    return rejected(o, answer, program);
}

/* Of an evaluation without sums the loss alone may show that the trial is not the step. Else the
 * evaluation is made again. */
static void exceeded_trial(struct lbfgs *o, double mean_loss, struct optimizer_request *request) {
    if (lbfgs_refuses(o, mean_loss)) {
        lbfgs_report(&request->report, o, "rejected", NAN, NAN);
        leave_request(o, lbfgs_refused(o, mean_loss, request->program), request);
    } else {
        lbfgs_report(&request->report, o, "bound exceeded", NAN, NAN);
        leave_request(o, OPTIMIZER_EVALUATE, request);
        request->again = true;
    }
}

static void lbfgs_evaluated(void *row, const struct evaluation_found *found,
                            struct optimizer_request *request) {
    struct lbfgs *o = row;
    assert(o->reason == REASON_NONE);
    if (o->refreshing || o->working.stage == WORKING_CURVATURE || summary_evaluates(o)) {
        curvature_evaluated(o, found, request);
        return;
    }
    if (lbfgs_by_rows(o)) {
        leave_request(o, common_evaluated(o, found, request), request);
        return;
    }
    double loss = found_total(found, PART_TRAINING, 0) / o->data.weight_sum;
    assert(o->data.weight_sum > 0);
    if (found->exceeded && found->can_hold && isfinite(loss)) {
        exceeded_trial(o, loss, request);
        return;
    }
    o->mean_loss = found->exceeded ? INFINITY : loss;
    lbfgs_take_held(o, found_held(found, PART_HOLDOUT, &o->data));
    if (isfinite(o->mean_loss)) {
        leave_request(o, lbfgs_measure_trial(o, request->program), request);
        return;
    }
    lbfgs_report(&request->report, o, "not finite", found->exceeded ? NAN : loss, NAN);
    leave_request(o, lbfgs_not_finite(o, request->program), request);
}

/* Round A. */
static void measured_trial(struct lbfgs *o, const double *scalars,
                           struct optimizer_request *request) {
    uint64_t steps = o->step + o->started;
    struct measured trial = programs_measured(o, scalars);
    bool checks = o->common.stage == COMMON_CHECK;
    lbfgs_report(&request->report, o, checks ? "checked" : "rejected", trial.loss, trial.slope);
    leave_request(o, trial_measured(o, &trial, request->program), request);
    request->accepted = o->step + o->started > steps;
    if (!request->accepted)
        return;
    request->report.evaluation.outcome = "accepted";
    lbfgs_report_step(&request->report, o);
}

static void lbfgs_measured(void *row, const double *scalars, struct optimizer_request *request) {
    struct lbfgs *o = row;
    struct bytes *program = request->program;
    assert(o->reason == REASON_NONE);
    if (o->measuring == MEASURING_TRIAL) {
        measured_trial(o, scalars, request);
    } else if (o->measuring == MEASURING_FACTOR) {
        take_factor(o, scalars[0]);
        bool closing = o->summary.stage == SUMMARY_REFRESH;
        enum optimizer_want want =
            closing ? summary_refreshed(o, program) : lbfgs_step_from(o, program);
        lbfgs_report_factor(request, o);
        leave_request(o, want, request);
    } else if (o->measuring == MEASURING_SUMMARY) {
        lbfgs_report_summary(request, o, scalars);
        leave_request(o, summary_measured(o, scalars, program), request);
    } else if (o->measuring == MEASURING_LIST) {
        leave_request(o, working_listed(o, request->listed, request->listed_count, program),
                      request);
    } else if (o->measuring == MEASURING_SOLVE) {
        enum optimizer_want want = working_solved(o, scalars, program);
        lbfgs_report_working(request, o);
        leave_request(o, want, request);
    } else if (o->measuring == MEASURING_SPAN) {
        leave_request(o,
                      products_run(o) ? products_measured(o, scalars, program)
                                      : common_searched(o, scalars, program),
                      request);
    } else if (o->measuring == MEASURING_POINT) {
        leave_request(o,
                      products_run(o) ? products_point_measured(o, scalars[0], program)
                                      : common_point_measured(o, scalars[0], program),
                      request);
    } else if (common_runs(o)) {
        leave_request(o, common_direction_measured(o, scalars, program), request);
    } else {
        leave_request(o, direction_measured(o, scalars[0], program), request);
    }
}

static enum optimizer_end lbfgs_end(void *row, enum reason reason,
                                    struct optimizer_request *request) {
    struct lbfgs *o = row;
    if (!o->started)
        return END_TOO_EARLY;
    if ((common_is_within_step(o) && !mutant(ENDED_WITHIN_STEP)) || lbfgs_has_tried(o)) {
        o->closes = reason;
        return END_COMING;
    }
    leave_request(o, lbfgs_finish(o, reason, request->program), request);
    assert(request->want == OPTIMIZER_FINISH && o->reason == reason);
    return END_REQUESTED;
}

const struct optimizer_row lbfgs_row = {
    .name = "lbfgs",
    .begin = lbfgs_begin,
    .evaluated = lbfgs_evaluated,
    .measured = lbfgs_measured,
    .end = lbfgs_end,
    .checkpoint = lbfgs_checkpoint,
    .serialize = lbfgs_serialize,
};
