/* The state of L-BFGS: its beginning, what it answers, and what of it outlives the process. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/lbfgs.h"
#include "optimizer/lbfgs_phase.h"

const char *safeguard_text(enum safeguard safeguard) {
    static const char *const texts[] = {
#define X(name, text) text,
        SAFEGUARD_TABLE(X)
#undef X
    };
    assert((unsigned)safeguard < SAFEGUARDS);
    return texts[safeguard];
}

static struct lbfgs_plan plan_of(const struct optimizer_settings *settings,
                                 const struct optimizer_data *data) {
    const enum precondition form = settings->preconditioner.form;
    const bool boxed = settings_boxed(settings);
    assert(!settings->directions || !boxed);
    struct lbfgs_plan plan = {
        .domain = domain_of(settings),
        .newton_tells = settings->gap.newton && form != PRECONDITION_LEADING && !boxed,
        /* Masked pairs see the flat directions of an orthant alone, and each step may change it. */
        .gaps_kept = boxed && form == PRECONDITION_NONE ? GAPS_KEPT_BARE : GAPS_KEPT};
    lbfgs_plan_evaluations(&plan, settings, data);
    return plan;
}

void lbfgs_init(struct lbfgs *o, const struct optimizer_settings *settings,
                const struct optimizer_data *data) {
    assert(settings->memory >= 1 && settings->memory <= HISTORY_MAX);
    memset(o, 0, sizeof *o);
    o->settings = *settings;
    o->data = *data;
    o->plan = plan_of(settings, data);
    working_init(&o->working, &settings->preconditioner);
    window_init(&o->common.window, settings->directions);
    o->common.biases_due = settings->directions && settings->bias_scale < 1 &&
                           !settings->patience &&
                           settings->preconditioner.form == PRECONDITION_NONE;
    for (unsigned i = 0; i < STEEPS_KEPT; i++)
        o->steepness[i] = 1;
    o->holdout = (struct held){INFINITY, NAN};
    pairs_init(&o->history, settings->memory,
               settings->preconditioner.form == PRECONDITION_LEADING);
    assert(!o->started && o->reason == REASON_NONE);
}

/* ---- the answer ---- */

struct optimizer_point lbfgs_point(const struct lbfgs *o) {
    return (struct optimizer_point){.step = o->step,
                                    .loss = o->loss,
                                    .gradient_max = o->gradient_max,
                                    .holdout = o->holdout,
                                    .nonzero = o->nonzero,
                                    .at_bound = o->at_bound,
                                    .gap_bound = o->gap_bound,
                                    .gap_estimate = o->gap_estimate,
                                    .norms = o->norms};
}

/* The figures of the check are what is reported and decides; the run goes on from the others. */
static struct optimizer_point figures_of_x(const struct lbfgs *o) {
    return o->common.checked ? o->common.figures : lbfgs_point(o);
}

/* Whether the answer is another point than x. */
static bool keeps_best(const struct lbfgs *o) {
    assert(o->best.step <= o->step);
    return o->settings.patience && o->best.step != o->step;
}

struct optimizer_point lbfgs_answer(const struct lbfgs *o) {
    return keeps_best(o) ? o->best : figures_of_x(o);
}

double lbfgs_fall(const struct lbfgs *o) {
    const uint64_t kept = LOSSES_KEPT + 1;
    double least = INFINITY;
    assert(o->started || o->step == 0);
    if (o->step < LOSSES_KEPT)
        return 0;
    for (uint64_t step = o->step - LOSSES_KEPT / 2; step < o->step; step++)
        least = fmin(least, o->losses[step % kept] - o->losses[(step + 1) % kept]);
    return least;
}

uint8_t lbfgs_answer_register(const struct lbfgs *o) {
    return keeps_best(o) ? REGISTER_BEST : REGISTER_X;
}

/* ---- whether the run ends ---- */

bool lbfgs_gap_is_small(const struct lbfgs *o) {
    const struct gap_settings *gap = &o->settings.gap;
    const struct optimizer_point x = figures_of_x(o);
    return !gap->known || isnan(x.gap_estimate) || x.gap_estimate <= gap_allowed(gap, x.loss);
}

static bool loss_has_settled(const struct lbfgs *o, double tolerance) {
    assert(o->started);
    if (tolerance <= 0 || o->step < LOSSES_KEPT)
        return false;
    double before = o->losses[(o->step + 1) % (LOSSES_KEPT + 1)];
    return before - figures_of_x(o).loss < tolerance * fabs(before);
}

/* A run that waits until it has converged does not wait for ever: F may be as low as rounding
 * allows, while the estimate is too high. Where that is far above what rounding makes of it, F may
 * also lie on one of the steps that it goes down by where columns differ much in scale: whoever
 * asks for a gap has these waited out. */
#define SETTLED_FOR_GOOD 1e-3 /* of the tolerance */
#define SETTLED_STEPS 100     /* of which the longest was 50 with columns 1e12 apart */

void lbfgs_note_loss(struct lbfgs *o) {
    o->losses[o->step % (LOSSES_KEPT + 1)] = o->loss;
    bool settled = loss_has_settled(o, o->settings.loss_tolerance * SETTLED_FOR_GOOD);
    o->settled = settled ? o->settled + 1 : 0;
}

static enum reason tolerance_reached(const struct lbfgs *o, bool ends) {
    const struct optimizer_point x = figures_of_x(o);
    if (ends && x.gradient_max <= o->settings.gradient_tolerance)
        return REASON_GRADIENT_TOLERANCE;
    bool rounded = x.gap_estimate <= GAP_ROUNDED * fmax(x.loss, o->settings.gap.least);
    bool at_once = rounded || !o->settings.gap.asked_for;
    bool for_good = o->settled >= (at_once ? 1 : SETTLED_STEPS);
    bool settled = ends ? loss_has_settled(o, o->settings.loss_tolerance) : for_good;
    return settled ? REASON_LOSS_TOLERANCE : REASON_NONE;
}

bool lbfgs_ends_outdated(const struct lbfgs *o) {
    return gap_is_outdated(o, o->loss) && tolerance_reached(o, true);
}

static enum reason tolerance_that_ends(const struct lbfgs *o) {
    bool ends = !o->settings.gap.waited_for || lbfgs_gap_is_small(o);
    return lbfgs_ends_outdated(o) ? REASON_NONE : tolerance_reached(o, ends);
}

enum reason lbfgs_reason_to_end(const struct lbfgs *o) {
    assert(o->started && o->best.step <= o->step);
    enum reason tolerance = tolerance_that_ends(o);
    if (tolerance)
        return tolerance;
    if (o->settings.patience && o->step - o->best.step >= o->settings.patience)
        return REASON_EARLY_STOPPING;
    if (o->closes)
        return o->closes;
    if (o->step >= o->settings.steps_max)
        return REASON_STEP_LIMIT;
    return REASON_NONE;
}

/* A step that was given up, from whose end the run did not go on. */
#define GIVEN_UP                                                                                   \
    (1u << SAFEGUARD_HISTORY_RESET | 1u << SAFEGUARD_SEARCH_RETRIED |                              \
     1u << SAFEGUARD_PRECONDITIONER_LEFT | 1u << SAFEGUARD_WORKING_SET_LEFT)

bool lbfgs_has_tried(const struct lbfgs *o) {
    bool ending = o->common.ends || o->summary.stage || o->summary.polishing;
    assert(o->started);
    bool counted = o->working.stage == WORKING_STEP;
    return counted || (!ending && (o->fired & GIVEN_UP || tolerance_that_ends(o)));
}

/* ---- what outlives the process ---- */

/* A refresh under way is done again after a checkpoint, so the factor from before is of no use. */
void lbfgs_checkpoint(const void *row, struct optimizer_checkpoint *checkpoint) {
    const struct lbfgs *o = row;
    const struct pairs *history = &o->history;
    const struct window *window = &o->common.window;
    bool factor = history->preconditioned && !o->refreshing;
    assert(history->pairs <= history->memory);
    checkpoint->best = keeps_best(o);
    checkpoint->sums = o->scaled && !mutant(DIAGONAL_LEFT_OUT);
    checkpoint->factor = factor ? o->preconditioner.refreshes : 0;
    checkpoint->margins = o->common.margins;
    checkpoint->window = window->count - (window->count && mutant(NEWEST_LEFT_OUT));
    for (uint32_t i = 0; i < window->count; i++) {
        checkpoint->window_slots[i] = window->slot[i];
        checkpoint->window_serials[i] = window->serial[window->slot[i]];
    }
    checkpoint->pairs = history->pairs;
    for (uint32_t i = 0; i < history->pairs; i++) {
        checkpoint->slots[i] = history->slot[i];
        checkpoint->serials[i] = history->serial[history->slot[i]];
    }
}

/* They are of all tensors, or of none. */
static void serialize_norms(struct codec *codec, struct tensor_norms *norms, uint32_t tensors) {
    assert(tensors <= TENSORS_MAX);
    serialize_u64(codec, &norms->count);
    serialize_fails_if(codec, norms->count && norms->count != tensors);
    for (uint64_t i = 0; i < norms->count && !codec->in.failed; i++) {
        serialize_f64(codec, &norms->point[i]);
        serialize_f64(codec, &norms->gradient[i]);
    }
}

void lbfgs_serialize_point(struct codec *codec, struct optimizer_point *point, uint32_t tensors) {
    serialize_u64(codec, &point->step);
    serialize_f64(codec, &point->loss);
    serialize_f64(codec, &point->gradient_max);
    serialize_held(codec, &point->holdout);
    serialize_u64(codec, &point->nonzero);
    serialize_u64(codec, &point->at_bound);
    serialize_f64(codec, &point->gap_bound);
    serialize_f64(codec, &point->gap_estimate);
    serialize_norms(codec, &point->norms, tensors);
}

static void serialize_last_steps(struct codec *codec, struct lbfgs *o) {
    for (unsigned i = 0; i <= LOSSES_KEPT; i++)
        serialize_f64(codec, &o->losses[i]);
    serialize_u64(codec, &o->settled);
    for (unsigned i = 0; i < STEEPS_KEPT; i++)
        serialize_f64(codec, &o->steepness[i]);
    for (unsigned i = 0; i < GAPS_KEPT_BARE; i++)
        serialize_f64(codec, &o->gaps[i]);
}

void lbfgs_serialize(struct codec *codec, void *row) {
    struct lbfgs *o = row;
    assert(!codec->out || o->history.memory == o->settings.memory);
    pairs_serialize(codec, &o->history);
    linesearch_serialize(codec, &o->search);
    o->reason = serialize_enum(codec, o->reason, REASONS);
    o->measuring = serialize_enum(codec, o->measuring, MEASURINGS);
    o->closes = serialize_enum(codec, o->closes, REASONS);
    serialize_bool(codec, &o->started);
    serialize_bool(codec, &o->accepted);
    serialize_bool(codec, &o->steepest);
    serialize_bool(codec, &o->refreshing);
    serialize_bool(codec, &o->unconditioned);
    serialize_bool(codec, &o->leaves_best);
    if (!mutant(DIAGONAL_FORGOTTEN))
        serialize_bool(codec, &o->scaled);
    serialize_u64(codec, &o->step);
    serialize_u64(codec, &o->evaluations);
    serialize_u64(codec, &o->rounds);
    serialize_u64(codec, &o->retries);
    if (o->plan.way->trials != &products_phase || !mutant(TRIAL_LOSS_FORGOTTEN))
        serialize_f64(codec, &o->mean_loss);
    serialize_held(codec, &o->trial_holdout);
    serialize_f64(codec, &o->loss);
    serialize_f64(codec, &o->gradient_max);
    serialize_f64(codec, &o->gradient_square);
    serialize_f64(codec, &o->slope);
    serialize_u64(codec, &o->nonzero);
    serialize_u64(codec, &o->moving);
    serialize_u64(codec, &o->at_bound);
    serialize_f64(codec, &o->gap_bound);
    serialize_f64(codec, &o->gap_estimate);
    serialize_f64(codec, &o->last_step_length);
    serialize_u32(codec, &o->last_trials);
    serialize_f64(codec, &o->trial_loss);
    serialize_f64(codec, &o->trial_slope);
    serialize_last_steps(codec, o);
    serialize_held(codec, &o->holdout);
    serialize_norms(codec, &o->norms, o->settings.tensors);
    lbfgs_serialize_point(codec, &o->best, o->settings.tensors);
    lbfgs_serialize_phases(codec, o);
    serialize_curvature_found(codec, &o->found);
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        serialize_u64(codec, &o->safeguards[i]);
    serialize_u32(codec, &o->fired);
    serialize_fails_if(codec, o->history.memory != o->settings.memory);
}
