/* Steering's part of the machine's record, and going on from one that was journalled. */
#include "base/codec.h"
#include "base/mutant.h"
#include "coordinator/steering_parts.h"
#include "wire/program.h"

static void serialize_history(struct codec *codec, struct pairs *history) {
    serialize_u32(codec, &history->memory);
    serialize_u32(codec, &history->pairs);
    serialize_u16(codec, &history->candidate);
    serialize_bool(codec, &history->preconditioned);
    serialize_f64(codec, &history->gamma);
    serialize_fails_if(codec, history->memory > HISTORY_MAX || history->pairs > history->memory ||
                                  history->candidate >= SLOTS_MAX);
    for (uint32_t i = 0; i < history->pairs && !codec->in.failed; i++) {
        serialize_u16(codec, &history->slot[i]);
        uint16_t slot = history->slot[i];
        serialize_fails_if(codec, slot >= SLOTS_MAX);
        if (codec->in.failed)
            return;
        serialize_u64(codec, &history->serial[slot]);
        serialize_f64(codec, &history->sg[slot]);
        serialize_f64(codec, &history->yg[slot]);
        for (uint32_t j = 0; j <= i; j++) {
            uint16_t older = history->slot[j];
            serialize_f64(codec, &history->sy[older][slot]);
            serialize_f64(codec, &history->yy[older][slot]);
            history->yy[slot][older] = history->yy[older][slot];
        }
    }
}

static void serialize_point(struct codec *codec, struct linesearch_point *point) {
    serialize_f64(codec, &point->step);
    serialize_f64(codec, &point->value);
    serialize_f64(codec, &point->slope);
    serialize_bool(codec, &point->rounded);
}

static void serialize_search(struct codec *codec, struct linesearch *search) {
    serialize_f64(codec, &search->step);
    serialize_f64(codec, &search->value0);
    serialize_f64(codec, &search->slope0);
    serialize_f64(codec, &search->noise);
    serialize_f64(codec, &search->step_max);
    serialize_point(codec, &search->best);
    serialize_point(codec, &search->other);
    serialize_f64(codec, &search->lower);
    serialize_f64(codec, &search->upper);
    serialize_f64(codec, &search->width);
    serialize_f64(codec, &search->width_before);
    serialize_bool(codec, &search->bracketed);
    serialize_bool(codec, &search->decreasing);
    serialize_bool(codec, &search->unscaled);
    serialize_bool(codec, &search->last_chance);
    serialize_u32(codec, &search->trials);
}

static void serialize_held(struct codec *codec, struct held *held) {
    serialize_f64(codec, &held->loss);
    serialize_f64(codec, &held->accuracy);
}

/* They are of all tensors, or of none. */
static void serialize_norms(struct codec *codec, struct tensor_norms *norms, uint32_t tensors) {
    serialize_u64(codec, &norms->count);
    serialize_fails_if(codec, norms->count && norms->count != tensors);
    for (uint64_t i = 0; i < norms->count && !codec->in.failed; i++) {
        serialize_f64(codec, &norms->point[i]);
        serialize_f64(codec, &norms->gradient[i]);
    }
}

static void serialize_drawn(struct codec *codec, struct drawn *drawn) {
    serialize_f64(codec, &drawn->rows);
    serialize_f64(codec, &drawn->terms);
    serialize_f64(codec, &drawn->score);
}

static void serialize_preconditioner(struct codec *codec, struct preconditioner *p) {
    serialize_bool(codec, &p->in_force);
    serialize_u64(codec, &p->refreshes);
    serialize_u64(codec, &p->evaluations);
    serialize_u64(codec, &p->sample);
    serialize_drawn(codec, &p->drawn);
    serialize_f64(codec, &p->loss);
    serialize_u64(codec, &p->steps);
    serialize_u64(codec, &p->passes);
    serialize_f64(codec, &p->price_total);
    serialize_u32(codec, &p->failures);
}

static void serialize_optimizer(struct codec *codec, struct optimizer *o) {
    uint32_t reason = o->reason, measuring = o->measuring;
    serialize_history(codec, &o->history);
    serialize_search(codec, &o->search);
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
    serialize_f64(codec, &o->last_step_length);
    serialize_u32(codec, &o->last_trials);
    serialize_f64(codec, &o->trial_loss);
    serialize_f64(codec, &o->trial_slope);
    for (unsigned i = 0; i <= LOSSES_KEPT; i++)
        serialize_f64(codec, &o->losses[i]);
    serialize_held(codec, &o->holdout);
    serialize_norms(codec, &o->norms, o->settings.tensors);
    serialize_u64(codec, &o->best.step);
    serialize_f64(codec, &o->best.loss);
    serialize_f64(codec, &o->best.gradient_max);
    serialize_held(codec, &o->best.holdout);
    serialize_u64(codec, &o->best.nonzero);
    serialize_f64(codec, &o->best.gap_bound);
    serialize_norms(codec, &o->best.norms, o->settings.tensors);
    serialize_preconditioner(codec, &o->preconditioner);
    serialize_drawn(codec, &o->drawn);
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        serialize_u64(codec, &o->safeguards[i]);
    serialize_u32(codec, &o->fired);
}

static void serialize_downpour(struct codec *codec, struct downpour *d) {
    uint32_t stage = d->stage;
    serialize_u32(codec, &stage);
    serialize_fails_if(codec, stage >= DOWNPOUR_STAGES);
    d->stage = stage;
    serialize_bool(codec, &d->closing);
    serialize_u64(codec, &d->epoch);
    serialize_u64(codec, &d->minibatch);
    serialize_u64(codec, &d->done);
    serialize_u64(codec, &d->redone);
    serialize_u64(codec, &d->rows);
    serialize_f64(codec, &d->loss_sum);
    serialize_held(codec, &d->holdout);
    if (!mutant(BEST_EPOCH_FORGOTTEN))
        serialize_u64(codec, &d->best_epoch);
    serialize_held(codec, &d->best);
    serialize_bool(codec, &d->at_best);
}

static void serialize_program(struct codec *codec, struct bytes *program) {
    uint32_t length = (uint32_t)program->length;
    serialize_u32(codec, &length);
    if (codec->out) {
        bytes_append(codec->out, program->data, length);
        return;
    }
    const void *start = cursor_take(&codec->in, length);
    bytes_clear(program);
    if (start)
        bytes_append(program, start, length);
}

void steering_code(struct codec *codec, struct coordinator *c) {
    struct steering *s = c->steering;
    uint32_t want = s->want;
    serialize_downpour(codec, &s->downpour);
    serialize_optimizer(codec, &s->optimizer);
    serialize_fails_if(codec, s->optimizer.history.memory != s->optimizer.settings.memory);
    dispatch_serialize(codec, &c->dispatch);
    if (!mutant(BOUND_FORGOTTEN))
        serialize_maxima(codec, &s->maxima_at_x);
    serialize_u64(codec, &s->round.number);
    serialize_u32(codec, &want);
    serialize_bool(codec, &s->finishing);
    serialize_program(codec, &s->program);
    serialize_fails_if(codec, want > OPTIMIZER_FINISH);
    s->want = want;
}

/* ---- going on from a journal ---- */

bool steering_has_program(const struct coordinator *c) {
    return c->steering->program.length > 0;
}

/* Whether a shard that has not run the program has folded what its CHECK asks for. The former
 * coordinator may have sent it behind a FOLD that never came there. */
static bool check_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct bytes *program = &c->steering->program;
    struct cursor operations = cursor_over(program->data, program->length);
    struct cursor ids = cursor_over(holding->folded.data, holding->folded.length);
    uint64_t folds = holding->folded.length / FLUSH_ID_BYTES, hash = 0;
    struct operation operation;
    while (cursor_left(&ids)) {
        struct flush_id id = flush_id_decode(&ids);
        hash += flush_id_hash(&id);
    }
    while (program_next(&operations, &operation))
        if (operation.code == OPERATION_CHECK &&
            (operation.folds != folds || operation.hash != hash))
            return false;
    return true;
}

/* Whether the program that was sent last began an evaluation. */
static bool begins_evaluation(const struct steering *s) {
    return s->want == OPTIMIZER_EVALUATE || s->want == OPTIMIZER_CURVATURE;
}

bool steering_fits(const struct coordinator *c, const struct message_holding *holding) {
    const struct steering *s = c->steering;
    if (holding->number + 1 == s->round.number) /* not run yet: nothing can have been folded */
        return c->recovery.rejoined.length == 0 && check_fits(c, holding);
    bool evaluating = begins_evaluation(s);
    return holding->number == s->round.number &&
           holding->hash == program_hash(s->program.data, s->program.length) &&
           (!evaluating || (holding->evaluation == c->dispatch.evaluation.number &&
                            dispatch_fits(&c->recovery.rejoined, holding)));
}

/* The journalled program is sent again under its number, as the former coordinator may have died
 * before it sent it. A shard that has run it answers from memory. */
void steering_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->steering->round.number--;
    steering_send_program(c, out);
    if (begins_evaluation(c->steering))
        dispatch_rejoin(&c->dispatch, &c->recovery.rejoined, now_ns, out);
}
