#include "optimizer/lbfgs.h"

#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/linesearch.h"
#include "optimizer/programs.h"

/* A pair is kept if s·y > this · (−α g·d): under the strong Wolfe conditions it always is. */
#define CURVATURE_LEAST 1e-4

/* Serial numbers of pairs that no step of this run formed. */
#define SERIAL_GIVEN (UINT64_C(1) << 63)

/* Differences of F up to this, relative to F, count as rounding in the line search. */
#define LOSS_NOISE 1e-11
#define LOSS_NOISE_SINGLE 1e-7

const char *safeguard_text(enum safeguard safeguard) {
    static const char *const texts[] = {
#define X(name, text) text,
        SAFEGUARD_TABLE(X)
#undef X
    };
    return texts[safeguard];
}

static void fire(struct optimizer *o, enum safeguard safeguard) {
    o->safeguards[safeguard]++;
    o->fired |= 1u << safeguard;
}

void optimizer_init(struct optimizer *o, const struct optimizer_settings *settings) {
    memset(o, 0, sizeof *o);
    o->settings = *settings;
    pairs_init(&o->history, settings->memory);
}

/* ---- requests ---- */

static enum optimizer_want finish(struct optimizer *o, enum reason reason, struct bytes *program) {
    programs_acceptance(o, program);
    o->reason = reason;
    return OPTIMIZER_FINISH;
}

static enum optimizer_want evaluate(struct optimizer *o, struct bytes *program) {
    programs_trial(o, program);
    o->evaluations++;
    return OPTIMIZER_EVALUATE;
}

static enum optimizer_want search_along(struct optimizer *o, double first_step,
                                        struct bytes *program) {
    double noise = (o->settings.single ? LOSS_NOISE_SINGLE : LOSS_NOISE) * fabs(o->loss);
    linesearch_begin(&o->search, o->loss, o->slope, noise, first_step, o->steepest);
    return evaluate(o, program);
}

/* The negative gradient, with a first step of length 1 at most: no curvature is known. */
static enum optimizer_want search_steepest(struct optimizer *o, struct bytes *program) {
    pairs_reset(&o->history, false);
    o->steepest = true;
    programs_acceptance(o, program);
    programs_direction(o, program);
    o->slope = -o->gradient_square;
    return search_along(o, fmin(1, 1 / sqrt(o->gradient_square)), program);
}

/* The pair is formed as the difference to d, which is zero here. */
void optimizer_load(struct optimizer *o, struct bytes *program) {
    programs_zero(program, REGISTER_D);
    programs_pair(o, program, REGISTER_D, REGISTER_D);
}

void optimizer_loaded(struct optimizer *o, const double *scalars, uint64_t number) {
    struct pairs_products products[SLOTS_MAX];
    memcpy(products, scalars, (o->history.pairs + 1) * sizeof products[0]);
    double curvature = products[o->history.pairs].sy;
    bool keep = curvature > 0 && curvature / products[o->history.pairs].yy > 0;
    pairs_accept(&o->history, products, keep && isfinite(curvature), SERIAL_GIVEN + number);
    pairs_condition(&o->history);
}

void optimizer_close(struct optimizer *o, enum reason reason) {
    o->closes = reason;
}

enum optimizer_want optimizer_start(struct optimizer *o, struct bytes *program) {
    programs_zero(program, REGISTER_D);
    o->reason = REASON_NONE; /* one that was stopped before its first evaluation starts anew */
    o->search.step = 0;
    return evaluate(o, program);
}

/* Round A: finish the gradient at t, form the candidate pair, measure all that may be needed. */
static enum optimizer_want measure_trial(struct optimizer *o, struct bytes *program) {
    programs_measures(o, program);
    o->measuring = MEASURING_TRIAL;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

/* Round B: accept, form the direction, measure its slope. */
static enum optimizer_want measure_direction(struct optimizer *o, struct bytes *program) {
    o->steepest = false;
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
static enum optimizer_want refresh(struct optimizer *o, struct bytes *program) {
    o->refreshing = true;
    programs_acceptance(o, program);
    programs_return(program);
    return OPTIMIZER_CURVATURE;
}

enum optimizer_want optimizer_curved(struct optimizer *o, const struct drawn *drawn,
                                     struct bytes *program) {
    o->drawn = *drawn;
    program_add(program, &(struct operation){.code = OPERATION_FACTOR,
                                             .alpha = o->settings.l2,
                                             .serial = o->preconditioner.refreshes + 1});
    o->measuring = MEASURING_FACTOR;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

/* Products with the old P are of no use with the new one: the pairs go. */
static void take_factor(struct optimizer *o, double added) {
    const struct preconditioner_settings *settings = &o->settings.preconditioner;
    o->refreshing = false;
    if (added > 0)
        fire(o, isfinite(added) ? SAFEGUARD_DIAGONAL_RAISED : SAFEGUARD_PRECONDITIONER_LEFT);
    if (isfinite(added) && isfinite(o->drawn.score)) {
        preconditioner_refreshed(&o->preconditioner, settings, o->loss, &o->drawn);
        o->unconditioned = true;
    } else {
        preconditioner_unfactored(&o->preconditioner, settings, o->loss);
    }
    if (mutant(PAIRS_KEPT))
        o->history.preconditioned = o->preconditioner.in_force;
    else
        pairs_reset(&o->history, o->preconditioner.in_force);
}

/* ---- decisions ---- */

static bool loss_has_settled(const struct optimizer *o) {
    if (o->settings.loss_tolerance <= 0 || o->step < LOSSES_KEPT)
        return false;
    double before = o->losses[(o->step + 1) % (LOSSES_KEPT + 1)];
    return before - o->loss < o->settings.loss_tolerance * fabs(before);
}

static bool patience_is_over(const struct optimizer *o) {
    return o->settings.patience && o->step - o->best.step >= o->settings.patience;
}

static enum reason reason_to_end(const struct optimizer *o) {
    if (o->gradient_max <= o->settings.gradient_tolerance)
        return REASON_GRADIENT_TOLERANCE;
    if (loss_has_settled(o))
        return REASON_LOSS_TOLERANCE;
    if (patience_is_over(o))
        return REASON_EARLY_STOPPING;
    if (o->closes)
        return o->closes;
    if (o->step >= o->settings.steps_max)
        return REASON_STEP_LIMIT;
    return REASON_NONE;
}

/* Where the direction is of no use: without the pairs, and then without the preconditioner. */
static enum optimizer_want retry(struct optimizer *o, enum safeguard safeguard,
                                 struct bytes *program) {
    if (o->history.preconditioned && o->history.pairs) {
        fire(o, safeguard);
        pairs_reset(&o->history, true);
        return measure_direction(o, program);
    }
    if (o->history.preconditioned) {
        safeguard = SAFEGUARD_PRECONDITIONER_LEFT;
        preconditioner_failed(&o->preconditioner);
    }
    fire(o, safeguard);
    return search_steepest(o, program);
}

static enum optimizer_want search_failed(struct optimizer *o, struct bytes *program) {
    if (o->steepest)
        return finish(o, REASON_STALLED, program);
    return retry(o, SAFEGUARD_SEARCH_RETRIED, program);
}

/* What follows a trial that the line search did not accept. */
static enum optimizer_want rejected(struct optimizer *o, enum linesearch_answer answer,
                                    struct bytes *program) {
    if (answer == LINESEARCH_FAIL)
        return search_failed(o, program);
    o->retries++;
    return evaluate(o, program);
}

/* With l1 a step ends where F falls enough, at any slope: its pair may curve very little. */
static bool keeps_pair(const struct optimizer *o, const struct measured *m) {
    const struct pairs_products *candidate = &m->products[o->history.pairs];
    if (!o->started)
        return false;
    if (o->settings.l1 > 0)
        return orthant_keeps_pair(candidate->sy, m->step_square, candidate->yy);
    return candidate->sy > CURVATURE_LEAST * -o->search.step * o->slope;
}

/* t becomes x. */
static void accept_pair(struct optimizer *o, const struct measured *m) {
    bool keep = keeps_pair(o, m);
    if (!keep && o->started)
        fire(o, SAFEGUARD_PAIR_SKIPPED);
    pairs_accept(&o->history, m->products, keep, o->step + 1);
    if (pairs_condition(&o->history) > 0)
        fire(o, SAFEGUARD_PAIRS_DROPPED);
}

static enum optimizer_want step_from(struct optimizer *o, struct bytes *program) {
    if (o->history.pairs == 0 && !o->history.preconditioned && !o->scaled)
        return search_steepest(o, program);
    return measure_direction(o, program);
}

/* What follows an accepted point. */
static enum optimizer_want leave(struct optimizer *o, struct bytes *program) {
    enum reason reason = reason_to_end(o);
    if (reason)
        return finish(o, reason, program);
    if (preconditioner_due(&o->preconditioner, &o->settings.preconditioner, o->loss))
        return refresh(o, program);
    return step_from(o, program);
}

/* Keeps the point that was just accepted if it is the best so far. Else the best one stays; if that
 * is the one just before, the next program, which leaves it, must put it into register best. */
static void judge_on_holdout(struct optimizer *o) {
    bool first = o->step == 0;
    o->holdout = o->trial_holdout;
    if (first || o->holdout.loss < o->best.holdout.loss)
        o->best = (struct optimizer_point){.step = o->step,
                                           .loss = o->loss,
                                           .gradient_max = o->gradient_max,
                                           .holdout = o->holdout,
                                           .nonzero = o->nonzero,
                                           .gap_bound = o->gap_bound,
                                           .norms = o->norms};
    else
        o->leaves_best = o->best.step + 1 == o->step;
}

static enum optimizer_want accepted(struct optimizer *o, const struct measured *m,
                                    struct bytes *program) {
    if (m->products)
        accept_pair(o, m);
    if (o->started) {
        o->step++;
        o->last_step_length = o->search.step;
        o->last_trials = o->search.trials;
        preconditioner_stepped(&o->preconditioner, o->search.trials);
    }
    o->started = true;
    o->accepted = true;
    o->loss = m->loss;
    o->gradient_square = m->square;
    o->gradient_max = m->max;
    o->nonzero = m->nonzero;
    o->gap_bound = m->gap_bound;
    o->norms = m->norms;
    o->losses[o->step % (LOSSES_KEPT + 1)] = m->loss;
    if (o->settings.patience)
        judge_on_holdout(o);
    return leave(o, program);
}

static enum linesearch_answer search_next(struct optimizer *o, const struct measured *m) {
    if (o->settings.l1 > 0)
        return orthant_search_next(
            &o->search,
            &(struct orthant_trial){.loss = m->loss, .falls = m->falls, .ends = m->ends});
    return linesearch_next(&o->search, m->loss, m->slope);
}

/* Asks the line search. The starting point belongs to no search: it has only to be finite. */
static enum linesearch_answer judge_trial(struct optimizer *o, const struct measured *m) {
    bool finite = isfinite(m->loss) && isfinite(m->slope);
    o->trial_loss = m->loss;
    o->trial_slope = m->slope;
    if (!o->started)
        return finite ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
    if (!finite)
        fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    return search_next(o, m);
}

/* What follows a trial. */
static enum optimizer_want trial_judged(struct optimizer *o, const struct measured *m,
                                        struct bytes *program) {
    enum linesearch_answer answer = judge_trial(o, m);
    if (answer == LINESEARCH_ACCEPT)
        return accepted(o, m, program);
    return o->started ? rejected(o, answer, program) : finish(o, REASON_NOT_FINITE, program);
}

static enum optimizer_want direction_measured(struct optimizer *o, double slope,
                                              struct bytes *program) {
    if (!(slope < 0) || !isfinite(slope))
        return retry(o, SAFEGUARD_HISTORY_RESET, program);
    o->slope = slope;
    return search_along(o, 1, program);
}

enum optimizer_want optimizer_evaluated(struct optimizer *o, double mean_loss, struct held held,
                                        struct bytes *program) {
    o->mean_loss = mean_loss;
    o->trial_holdout = held;
    if (!isfinite(held.loss))
        o->trial_holdout.loss = INFINITY;
    if (isfinite(mean_loss))
        return measure_trial(o, program);
    return trial_judged(o, &(struct measured){.loss = mean_loss, .slope = NAN, .falls = NAN},
                        program);
}

bool optimizer_refuses(const struct optimizer *o, double mean_loss) {
    return o->started && linesearch_refuses(&o->search, mean_loss);
}

/* Penalties only add to the loss. */
enum optimizer_want optimizer_refused(struct optimizer *o, double mean_loss,
                                      struct bytes *program) {
    enum linesearch_answer answer = o->settings.l1 > 0
                                        ? orthant_search_refused(&o->search, mean_loss)
                                        : linesearch_refused(&o->search, mean_loss);
    return rejected(o, answer, program);
}

enum optimizer_want optimizer_measured(struct optimizer *o, const double *scalars,
                                       struct bytes *program) {
    struct measured measured;
    switch (o->measuring) {
    case MEASURING_TRIAL:
        measured = programs_measured(o, scalars);
        return trial_judged(o, &measured, program);
    case MEASURING_DIRECTION:
        return direction_measured(o, scalars[0], program);
    case MEASURING_FACTOR:
        break;
    }
    take_factor(o, scalars[0]);
    return step_from(o, program);
}

enum optimizer_want optimizer_resume(struct optimizer *o, const struct optimizer_settings *settings,
                                     struct bytes *program) {
    o->settings = *settings;
    o->accepted = o->leaves_best = false; /* x and g were restored: nothing waits in t and h */
    o->refreshing = false;
    o->unconditioned = true; /* pg was not */
    if (mutant(REFRESH_TWICE) && o->history.preconditioned)
        return refresh(o, program);
    o->reason = REASON_NONE;
    return leave(o, program);
}

enum optimizer_want optimizer_stop(struct optimizer *o, enum reason reason, struct bytes *program) {
    return finish(o, reason, program);
}

/* ---- the answer ---- */

struct optimizer_point optimizer_answer(const struct optimizer *o) {
    if (o->settings.patience && o->started)
        return o->best;
    return (struct optimizer_point){.step = o->step,
                                    .loss = o->loss,
                                    .gradient_max = o->gradient_max,
                                    .holdout = {INFINITY, NAN},
                                    .nonzero = o->nonzero,
                                    .gap_bound = o->gap_bound,
                                    .norms = o->norms};
}

double optimizer_fall(const struct optimizer *o) {
    const uint64_t kept = LOSSES_KEPT + 1;
    double least = INFINITY;
    if (o->step < LOSSES_KEPT)
        return 0;
    for (uint64_t step = o->step - LOSSES_KEPT / 2; step < o->step; step++)
        least = fmin(least, o->losses[step % kept] - o->losses[(step + 1) % kept]);
    return least;
}

bool optimizer_keeps_best(const struct optimizer *o) {
    return o->settings.patience && o->best.step != o->step;
}

uint8_t optimizer_answer_register(const struct optimizer *o) {
    return optimizer_keeps_best(o) ? REGISTER_BEST : REGISTER_X;
}

uint64_t optimizer_keeps_factor(const struct optimizer *o) {
    bool kept = o->history.preconditioned && !o->refreshing;
    return kept ? o->preconditioner.refreshes : 0;
}
