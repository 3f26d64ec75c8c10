#include "optimizer/lbfgs.h"
#include "optimizer/lbfgs_phase.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"

/* Serial numbers of pairs that no step of this run formed. */
#define SERIAL_GIVEN (UINT64_C(1) << 63)

void lbfgs_fire(struct lbfgs *o, enum safeguard safeguard) {
    assert(safeguard < SAFEGUARDS);
    o->safeguards[safeguard]++;
    o->fired |= 1u << safeguard;
}

/* ---- the table of phases ---- */

static const struct phase *const phases[PHASES] = {
#define PHASE(NAME, name, text) &name##_phase,
#include "optimizer/phases.def"
};

/* The phase whose step is under way, the one that waits for an evaluation, and the one that waits
 * for scalars follow from what is stored: a coordinator that takes over goes on with the answer. */
const struct phase *lbfgs_stepping(const struct lbfgs *o) {
    for (unsigned i = PHASES; i-- > 0;)
        if (phases[i]->steps && phases[i]->steps(o))
            return phases[i];
    return o->plan.way->directions;
}

static const struct phase *evaluating(const struct lbfgs *o) {
    for (unsigned i = PHASES; i-- > 0;)
        if (phases[i]->evaluates && phases[i]->evaluates(o))
            return phases[i];
    return o->plan.way->trials;
}

static const struct phase *measuring(const struct lbfgs *o) {
    const struct phase *const of_run[] = {o->plan.way->trials, o->plan.way->directions};
    for (unsigned i = 0; i < 2; i++)
        if (of_run[i]->measured[o->measuring])
            return of_run[i];
    for (unsigned i = PHASES; i-- > 0;)
        if (phases[i]->measured[o->measuring])
            return phases[i];
    return phases[0];
}

void lbfgs_serialize_phases(struct codec *codec, struct lbfgs *o) {
    for (unsigned i = 0; i < PHASES; i++)
        if (phases[i]->serialize)
            phases[i]->serialize(codec, o);
}

/* ---- reports ---- */

void lbfgs_report(struct optimizer_report *report, const struct lbfgs *before, const char *outcome,
                  double loss, double slope) {
    assert(!report->evaluation.outcome);
    report->evaluation.outcome = outcome;
    report->evaluation.step = before->step + before->started;
    report->evaluation.step_length = before->search.step;
    report->evaluation.loss = loss;
    report->evaluation.slope = slope;
}

void lbfgs_report_step(struct optimizer_report *report, struct lbfgs *o) {
    assert(o->started && !report->step.made);
    report->step.made = true;
    report->step.safeguards = o->fired;
    report->step.step = o->step;
    report->step.loss = o->loss;
    report->step.gradient_max = o->gradient_max;
    report->step.step_length = o->last_step_length;
    report->step.trials = o->last_trials;
    report->step.pairs = o->history.pairs;
    report->step.holdout = o->settings.patience ? o->holdout : (struct held){NAN, NAN};
    o->fired = 0;
}

/* ---- requests ---- */

enum optimizer_want lbfgs_evaluate(struct lbfgs *o) {
    o->evaluations++;
    return OPTIMIZER_EVALUATE;
}

enum optimizer_want lbfgs_measure(struct lbfgs *o, enum lbfgs_measuring what) {
    o->measuring = what;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

static void leave_request(const struct lbfgs *o, enum optimizer_want want,
                          struct optimizer_request *request) {
    assert(want <= OPTIMIZER_FINISH);
    request->want = want;
    if (want == OPTIMIZER_EVALUATE || want == OPTIMIZER_CURVATURE)
        evaluating(o)->request(o, request);
}

enum optimizer_want lbfgs_finish(struct lbfgs *o, enum reason reason, struct bytes *program) {
    assert(reason != REASON_NONE && reason < REASONS);
    programs_acceptance(o, program);
    o->reason = reason;
    return OPTIMIZER_FINISH;
}

/* The pair is formed as the difference to d, which is zero here. */
void lbfgs_load(struct lbfgs *o, struct bytes *program) {
    assert(!o->started && o->history.pairs <= o->history.memory);
    programs_zero(program, REGISTER_D);
    programs_pair(o, program, REGISTER_D, REGISTER_D, REGISTER_D);
    programs_products(o, program);
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
    return lbfgs_try(o, program);
}

/* ---- decisions ---- */

/* The negative gradient: no curvature is known. */
enum optimizer_want lbfgs_steepest(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->gradient_square >= 0);
    pairs_reset(&o->history, false);
    o->steepest = true;
    return o->plan.way->directions->begin(o, program);
}

/* Round B: accept, form the direction, measure its slope. */
static enum optimizer_want quasi_newton(struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->refreshing);
    o->steepest = false;
    return o->plan.way->directions->begin(o, program);
}

enum optimizer_want lbfgs_end_for(struct lbfgs *o, enum reason reason, struct bytes *program) {
    for (unsigned i = 0; i < PHASES; i++)
        if (phases[i]->awaited && phases[i]->awaited(o, reason))
            return phases[i]->conclude(o, reason, program);
    return lbfgs_finish(o, reason, program);
}

/* A direction of the pairs gives way to one without them, and that to one without P. */
enum optimizer_want lbfgs_retry(struct lbfgs *o, enum safeguard safeguard, struct bytes *program) {
    assert(o->started && !o->accepted && !o->steepest);
    const struct initial *initial = programs_initial(o);
    if (initial->product && o->history.pairs) {
        lbfgs_fire(o, safeguard);
        pairs_reset(&o->history, true);
        return quasi_newton(o, program);
    }
    if (initial->product) {
        safeguard = SAFEGUARD_PRECONDITIONER_LEFT;
        preconditioner_failed(&o->preconditioner);
    }
    lbfgs_fire(o, safeguard);
    return lbfgs_steepest(o, program);
}

enum optimizer_want lbfgs_fail(struct lbfgs *o, enum safeguard safeguard, struct bytes *program) {
    assert(o->started && !o->accepted);
    return lbfgs_stepping(o)->failed(o, safeguard, program);
}

/* What follows a trial that was not accepted. */
enum optimizer_want lbfgs_rejected(struct lbfgs *o, enum linesearch_answer answer,
                                   struct bytes *program) {
    assert(o->started && answer != LINESEARCH_ACCEPT);
    if (answer == LINESEARCH_FAIL || lbfgs_stepping(o)->tries_once)
        return lbfgs_fail(o, SAFEGUARD_SEARCH_RETRIED, program);
    o->retries++;
    return lbfgs_try(o, program);
}

enum optimizer_want lbfgs_step_from(struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->refreshing);
    if (o->history.pairs == 0 && !programs_initial(o)->curves)
        return lbfgs_steepest(o, program);
    return quasi_newton(o, program);
}

enum optimizer_want lbfgs_go_on(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->reason == REASON_NONE);
    for (unsigned i = PHASES; i-- > 0;)
        if (phases[i]->due && phases[i]->due(o))
            return phases[i]->begin(o, program);
    return lbfgs_step_from(o, program);
}

/* What follows an accepted point. */
enum optimizer_want lbfgs_leave(struct lbfgs *o, struct bytes *program) {
    return lbfgs_stepping(o)->follows(o, program);
}

enum optimizer_want lbfgs_end_or_go_on(struct lbfgs *o, struct bytes *program) {
    enum reason reason = lbfgs_reason_to_end(o);
    assert(o->started && o->reason == REASON_NONE);
    return reason ? lbfgs_end_for(o, reason, program) : lbfgs_go_on(o, program);
}

/* Keeps the point that was just accepted if it is the best so far. Else the best one stays; if that
 * is the one just before, the next program, which leaves it, must put it into register best. */
static void evaluate_on_holdout(struct lbfgs *o) {
    bool first = o->step == 0;
    assert(o->settings.patience && o->best.step <= o->step);
    o->holdout = o->trial_holdout;
    if (first || o->holdout.loss < o->best.holdout.loss)
        o->best = lbfgs_point(o);
    else
        o->leaves_best = o->best.step + 1 == o->step;
    assert(o->best.step <= o->step && (o->best.step == o->step || !first));
}

static enum optimizer_want accepted(struct lbfgs *o, const struct measured *m,
                                    struct bytes *program) {
    assert(isfinite(m->loss) && !o->accepted);
    if (m->products) {
        /* t becomes x. */
        bool keep = o->started && o->plan.domain->keeps_pair(o, m);
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
        for (unsigned i = 0; i < PHASES; i++)
            if (phases[i]->accepted)
                phases[i]->accepted(o, o->loss - m->loss);
    }
    o->plan.way->directions->stepped(o);
    o->started = true;
    o->accepted = true;
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
        evaluate_on_holdout(o);
    return lbfgs_leave(o, program);
}

/* The starting point belongs to no search: it has only to be finite. */
enum optimizer_want lbfgs_tried(struct lbfgs *o, const struct measured *m, struct bytes *program) {
    assert(!o->refreshing && !o->accepted);
    bool finite = isfinite(m->loss) && isfinite(m->slope);
    o->trial_loss = m->loss;
    o->trial_slope = m->slope;
    if (!o->started)
        return finite ? accepted(o, m, program) : lbfgs_finish(o, REASON_NOT_FINITE, program);
    if (!finite)
        lbfgs_fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    enum linesearch_answer answer = lbfgs_stepping(o)->check_trial(o, m, finite);
    return answer == LINESEARCH_ACCEPT ? accepted(o, m, program)
                                       : lbfgs_rejected(o, answer, program);
}

enum optimizer_want lbfgs_not_finite(struct lbfgs *o, struct bytes *program) {
    struct measured trial = {.loss = INFINITY, .slope = NAN, .falls = NAN};
    return lbfgs_tried(o, &trial, program);
}

/* ---- the row ---- */

void lbfgs_take_held(struct lbfgs *o, struct held held) {
    o->trial_holdout = held;
    if (!isfinite(held.loss))
        o->trial_holdout.loss = INFINITY;
}

/* A restored x and g are in their registers, the pairs in their slots. Nothing else is. A limit
 * that was raised since does not end the run any more. */
static enum optimizer_want resume(struct lbfgs *o, struct bytes *program) {
    assert(o->started && o->history.pairs <= o->history.memory);
    o->accepted = o->leaves_best = false;
    for (unsigned i = 0; i < PHASES; i++)
        if (phases[i]->resume)
            phases[i]->resume(o);
    o->unconditioned = true;
    if (mutant(REFRESH_TWICE) && o->history.preconditioned)
        return lbfgs_refresh(o, program);
    o->reason = o->closes = REASON_NONE; /* it was ended from outside, and goes on now */
    return rows_begin(o, program);
}

static void lbfgs_begin(void *row, struct optimizer_request *request) {
    struct lbfgs *o = row;
    assert(o->history.memory == o->settings.memory);
    if (o->started) {
        leave_request(o, resume(o, request->program), request);
        return;
    }
    assert(!o->accepted);
    o->reason = REASON_NONE; /* one that was stopped before its first evaluation starts anew */
    o->search.step = 0;
    leave_request(o, rows_begin(o, request->program), request);
}

static void lbfgs_evaluated(void *row, const struct evaluation_found *found,
                            struct optimizer_request *request) {
    struct lbfgs *o = row;
    assert(o->reason == REASON_NONE);
    leave_request(o, evaluating(o)->evaluated(o, found, request), request);
}

static void lbfgs_measured(void *row, const double *scalars, struct optimizer_request *request) {
    struct lbfgs *o = row;
    assert(o->reason == REASON_NONE);
    leave_request(o, measuring(o)->measured[o->measuring](o, scalars, request), request);
}

static enum optimizer_end lbfgs_end(void *row, enum reason reason,
                                    struct optimizer_request *request) {
    struct lbfgs *o = row;
    if (!o->started)
        return END_TOO_EARLY;
    bool (*within_step)(const struct lbfgs *) = o->plan.way->directions->within_step;
    bool within = within_step && within_step(o) && !mutant(ENDED_WITHIN_STEP);
    if (within || lbfgs_has_tried(o)) {
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
