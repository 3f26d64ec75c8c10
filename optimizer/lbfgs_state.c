/* The state of L-BFGS: its beginning, what it answers, and what of it outlives the process. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/lbfgs.h"

const char *safeguard_text(enum safeguard safeguard) {
    static const char *const texts[] = {
#define X(name, text) text,
        SAFEGUARD_TABLE(X)
#undef X
    };
    assert((unsigned)safeguard < SAFEGUARDS);
    return texts[safeguard];
}

void lbfgs_init(struct lbfgs *o, const struct optimizer_settings *settings,
                const struct optimizer_data *data) {
    assert(settings->memory >= 1 && settings->memory <= HISTORY_MAX);
    memset(o, 0, sizeof *o);
    o->settings = *settings;
    o->data = *data;
    for (unsigned i = 0; i < STEEPS_KEPT; i++)
        o->steepness[i] = 1;
    pairs_init(&o->history, settings->memory, settings->preconditioner.form == PRECONDITION_HEAVY);
    assert(!o->started && o->reason == REASON_NONE);
}

/* ---- the answer ---- */

struct optimizer_point lbfgs_answer(const struct lbfgs *o) {
    assert(o->best.step <= o->step);
    if (o->settings.patience && o->started)
        return o->best;
    return (struct optimizer_point){.step = o->step,
                                    .loss = o->loss,
                                    .gradient_max = o->gradient_max,
                                    .holdout = {INFINITY, NAN},
                                    .nonzero = o->nonzero,
                                    .gap_bound = o->gap_bound,
                                    .gap_estimate = o->gap_estimate,
                                    .norms = o->norms};
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

/* Whether the answer is another point than x. */
static bool keeps_best(const struct lbfgs *o) {
    assert(o->best.step <= o->step);
    return o->settings.patience && o->best.step != o->step;
}

uint8_t lbfgs_answer_register(const struct lbfgs *o) {
    return keeps_best(o) ? REGISTER_BEST : REGISTER_X;
}

/* ---- what outlives the process ---- */

/* A refresh under way is done again after a checkpoint, so the factor from before is of no use. */
void lbfgs_checkpoint(const void *row, struct optimizer_checkpoint *checkpoint) {
    const struct lbfgs *o = row;
    const struct pairs *history = &o->history;
    bool factor = history->preconditioned && !o->refreshing;
    assert(history->pairs <= history->memory);
    checkpoint->best = keeps_best(o);
    checkpoint->sums = o->scaled && !mutant(DIAGONAL_LEFT_OUT);
    checkpoint->factor = factor ? o->preconditioner.refreshes : 0;
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

static void serialize_last_steps(struct codec *codec, struct lbfgs *o) {
    for (unsigned i = 0; i <= LOSSES_KEPT; i++)
        serialize_f64(codec, &o->losses[i]);
    for (unsigned i = 0; i < STEEPS_KEPT; i++)
        serialize_f64(codec, &o->steepness[i]);
    for (unsigned i = 0; i < GAPS_KEPT; i++)
        serialize_f64(codec, &o->gaps[i]);
}

void lbfgs_serialize(struct codec *codec, void *row) {
    struct lbfgs *o = row;
    uint32_t reason = o->reason, measuring = o->measuring;
    assert(!codec->out || o->history.memory == o->settings.memory);
    pairs_serialize(codec, &o->history);
    linesearch_serialize(codec, &o->search);
    serialize_u32(codec, &reason);
    serialize_fails_if(codec, reason >= REASONS);
    o->reason = reason;
    serialize_u32(codec, &measuring);
    serialize_fails_if(codec, measuring > MEASURING_FACTOR);
    o->measuring = measuring;
    uint32_t closes = o->closes;
    serialize_u32(codec, &closes);
    serialize_fails_if(codec, closes >= REASONS);
    o->closes = closes;
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
    serialize_f64(codec, &o->mean_loss);
    serialize_held(codec, &o->trial_holdout);
    serialize_f64(codec, &o->loss);
    serialize_f64(codec, &o->gradient_max);
    serialize_f64(codec, &o->gradient_square);
    serialize_f64(codec, &o->slope);
    serialize_u64(codec, &o->nonzero);
    serialize_f64(codec, &o->gap_bound);
    serialize_f64(codec, &o->gap_estimate);
    serialize_f64(codec, &o->last_step_length);
    serialize_u32(codec, &o->last_trials);
    serialize_f64(codec, &o->trial_loss);
    serialize_f64(codec, &o->trial_slope);
    serialize_last_steps(codec, o);
    serialize_held(codec, &o->holdout);
    serialize_norms(codec, &o->norms, o->settings.tensors);
    serialize_u64(codec, &o->best.step);
    serialize_f64(codec, &o->best.loss);
    serialize_f64(codec, &o->best.gradient_max);
    serialize_held(codec, &o->best.holdout);
    serialize_u64(codec, &o->best.nonzero);
    serialize_f64(codec, &o->best.gap_bound);
    serialize_f64(codec, &o->best.gap_estimate);
    serialize_norms(codec, &o->best.norms, o->settings.tensors);
    preconditioner_serialize(codec, &o->preconditioner);
    serialize_curvature_found(codec, &o->found);
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        serialize_u64(codec, &o->safeguards[i]);
    serialize_u32(codec, &o->fired);
    serialize_fails_if(codec, o->history.memory != o->settings.memory);
}
