/* Steering's part of the machine's record. */
#include "base/mutant.h"
#include "coordinator/coder.h"
#include "coordinator/steering_parts.h"

static void code_history(struct coder *coder, struct lbfgs *history) {
    code_u32(coder, &history->memory);
    code_u32(coder, &history->pairs);
    code_u16(coder, &history->candidate);
    code_bool(coder, &history->preconditioned);
    code_f64(coder, &history->gamma);
    code_fails_if(coder, history->memory > HISTORY_MAX || history->pairs > history->memory ||
                             history->candidate >= SLOTS_MAX);
    for (uint32_t i = 0; i < history->pairs && !coder->in.failed; i++) {
        code_u16(coder, &history->slot[i]);
        uint16_t slot = history->slot[i];
        code_fails_if(coder, slot >= SLOTS_MAX);
        if (coder->in.failed)
            return;
        code_u64(coder, &history->serial[slot]);
        code_f64(coder, &history->sg[slot]);
        code_f64(coder, &history->yg[slot]);
        for (uint32_t j = 0; j <= i; j++) {
            uint16_t older = history->slot[j];
            code_f64(coder, &history->sy[older][slot]);
            code_f64(coder, &history->yy[older][slot]);
            history->yy[slot][older] = history->yy[older][slot];
        }
    }
}

static void code_point(struct coder *coder, struct linesearch_point *point) {
    code_f64(coder, &point->step);
    code_f64(coder, &point->value);
    code_f64(coder, &point->slope);
    code_bool(coder, &point->rounded);
}

static void code_search(struct coder *coder, struct linesearch *search) {
    code_f64(coder, &search->step);
    code_f64(coder, &search->value0);
    code_f64(coder, &search->slope0);
    code_f64(coder, &search->noise);
    code_f64(coder, &search->step_max);
    code_point(coder, &search->best);
    code_point(coder, &search->other);
    code_f64(coder, &search->lower);
    code_f64(coder, &search->upper);
    code_f64(coder, &search->width);
    code_f64(coder, &search->width_before);
    code_bool(coder, &search->bracketed);
    code_bool(coder, &search->decreasing);
    code_bool(coder, &search->unscaled);
    code_bool(coder, &search->last_chance);
    code_u32(coder, &search->trials);
}

static void code_held(struct coder *coder, struct held *held) {
    code_f64(coder, &held->loss);
    code_f64(coder, &held->accuracy);
}

/* They are of all tensors, or of none. */
static void code_norms(struct coder *coder, struct tensor_norms *norms, uint32_t tensors) {
    code_u64(coder, &norms->count);
    code_fails_if(coder, norms->count && norms->count != tensors);
    for (uint64_t i = 0; i < norms->count && !coder->in.failed; i++) {
        code_f64(coder, &norms->point[i]);
        code_f64(coder, &norms->gradient[i]);
    }
}

static void code_drawn(struct coder *coder, struct drawn *drawn) {
    code_f64(coder, &drawn->rows);
    code_f64(coder, &drawn->terms);
    code_f64(coder, &drawn->score);
}

static void code_preconditioner(struct coder *coder, struct preconditioner *p) {
    code_bool(coder, &p->in_force);
    code_u64(coder, &p->refreshes);
    code_u64(coder, &p->evaluations);
    code_u64(coder, &p->sample);
    code_drawn(coder, &p->drawn);
    code_f64(coder, &p->loss);
    code_u64(coder, &p->steps);
    code_u64(coder, &p->passes);
    code_f64(coder, &p->price_total);
    code_u32(coder, &p->failures);
}

static void code_optimizer(struct coder *coder, struct optimizer *o) {
    uint32_t reason = o->reason, measuring = o->measuring;
    code_history(coder, &o->history);
    code_search(coder, &o->search);
    code_u32(coder, &reason);
    code_fails_if(coder, reason >= REASONS);
    o->reason = reason;
    code_u32(coder, &measuring);
    code_fails_if(coder, measuring > MEASURING_FACTOR);
    o->measuring = measuring;
    uint32_t closes = o->closes;
    code_u32(coder, &closes);
    code_fails_if(coder, closes >= REASONS);
    o->closes = closes;
    code_bool(coder, &o->started);
    code_bool(coder, &o->accepted);
    code_bool(coder, &o->steepest);
    code_bool(coder, &o->refreshing);
    code_bool(coder, &o->unconditioned);
    code_bool(coder, &o->leaves_best);
    if (!mutant(DIAGONAL_FORGOTTEN))
        code_bool(coder, &o->scaled);
    code_u64(coder, &o->step);
    code_u64(coder, &o->evaluations);
    code_u64(coder, &o->rounds);
    code_u64(coder, &o->retries);
    code_f64(coder, &o->mean_loss);
    code_held(coder, &o->trial_holdout);
    code_f64(coder, &o->loss);
    code_f64(coder, &o->gradient_max);
    code_f64(coder, &o->gradient_square);
    code_f64(coder, &o->slope);
    code_u64(coder, &o->nonzero);
    code_f64(coder, &o->gap_bound);
    code_f64(coder, &o->last_step_length);
    code_u32(coder, &o->last_trials);
    code_f64(coder, &o->trial_loss);
    code_f64(coder, &o->trial_slope);
    for (unsigned i = 0; i <= LOSSES_KEPT; i++)
        code_f64(coder, &o->losses[i]);
    code_held(coder, &o->holdout);
    code_norms(coder, &o->norms, o->settings.tensors);
    code_u64(coder, &o->best.step);
    code_f64(coder, &o->best.loss);
    code_f64(coder, &o->best.gradient_max);
    code_held(coder, &o->best.holdout);
    code_u64(coder, &o->best.nonzero);
    code_f64(coder, &o->best.gap_bound);
    code_norms(coder, &o->best.norms, o->settings.tensors);
    code_preconditioner(coder, &o->preconditioner);
    code_drawn(coder, &o->drawn);
    for (unsigned i = 0; i < SAFEGUARDS; i++)
        code_u64(coder, &o->safeguards[i]);
    code_u32(coder, &o->fired);
}

static void code_downpour(struct coder *coder, struct downpour *d) {
    uint32_t stage = d->stage;
    code_u32(coder, &stage);
    code_fails_if(coder, stage >= DOWNPOUR_STAGES);
    d->stage = stage;
    code_bool(coder, &d->closing);
    code_u64(coder, &d->epoch);
    code_u64(coder, &d->minibatch);
    code_u64(coder, &d->done);
    code_u64(coder, &d->redone);
    code_u64(coder, &d->rows);
    code_f64(coder, &d->loss_sum);
    code_held(coder, &d->holdout);
    if (!mutant(BEST_EPOCH_FORGOTTEN))
        code_u64(coder, &d->best_epoch);
    code_held(coder, &d->best);
    code_bool(coder, &d->at_best);
}

static void code_program(struct coder *coder, struct bytes *program) {
    uint32_t length = (uint32_t)program->length;
    code_u32(coder, &length);
    if (coder->out) {
        bytes_append(coder->out, program->data, length);
        return;
    }
    const void *start = cursor_take(&coder->in, length);
    bytes_clear(program);
    if (start)
        bytes_append(program, start, length);
}

/* Refuses parts that are malformed, or go beyond the data. */
static void code_parts(struct coder *coder, struct evaluation_parts *parts, uint32_t chunks) {
    code_u32(coder, &parts->count);
    code_fails_if(coder, parts->count > EVALUATION_PARTS_MAX);
    for (uint32_t i = 0; i < parts->count && !coder->in.failed; i++) {
        struct evaluation_part *part = &parts->items[i];
        code_u32(coder, &part->kind);
        code_u32(coder, &part->first);
        code_u32(coder, &part->count);
        code_fails_if(coder, part->first > chunks || part->count > chunks - part->first);
    }
    if (parts->count > EVALUATION_PARTS_MAX)
        parts->count = 0;
    const struct part_list list = evaluation_list(parts);
    code_fails_if(coder, parts->count && evaluation_fault(&list));
}

/* No evaluation has been made if there are none. */
static void code_bounds(struct coder *coder, struct bounds *bounds) {
    if (coder->out)
        bounds_encode(bounds, coder->out);
    else
        *bounds = bounds_decode(&coder->in);
    code_fails_if(coder, bounds->count && bounds_fault(bounds));
}

static void code_maxima(struct coder *coder, struct maxima *maxima) {
    if (coder->out)
        maxima_encode(maxima, coder->out);
    else
        *maxima = maxima_decode(&coder->in);
    code_fails_if(coder, maxima_fault(maxima) != NULL);
}

void steering_code(struct coder *coder, struct coordinator *c) {
    struct steering *s = c->steering;
    uint32_t want = s->want;
    code_downpour(coder, &s->downpour);
    code_optimizer(coder, &s->optimizer);
    code_fails_if(coder, s->optimizer.history.memory != s->optimizer.settings.memory);
    code_u32(coder, &s->evaluation.number);
    code_parts(coder, &s->evaluation.parts, s->plan.chunks);
    code_bounds(coder, &s->evaluation.bounds);
    code_f64(coder, &s->evaluation.drawing.rate);
    code_f64(coder, &s->evaluation.drawing.floor);
    code_u64(coder, &s->evaluation.drawing.dice);
    code_bool(coder, &s->evaluation.exceeded);
    code_maxima(coder, &s->evaluation.maxima);
    code_u64(coder, &s->evaluations);
    if (!mutant(BOUND_FORGOTTEN))
        code_maxima(coder, &s->maxima_at_x);
    code_u64(coder, &s->round.number);
    code_u32(coder, &want);
    code_bool(coder, &s->finishing);
    code_program(coder, &s->program);
    code_fails_if(coder, want > OPTIMIZER_FINISH);
    s->want = want;
}
