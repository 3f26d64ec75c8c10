/* Between the optimizer and the workers: sends the programs that the optimizer asks for, begins its
 * evaluations, and gives it the results. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "coordinator/steering_parts.h"
#include "numeric/fixed.h"
#include "objective/family.h"
#include "wire/program.h"

/* A trial may exceed the maxima at x by this factor before it has to be redone. Room costs no more
 * than bits: the gradient of a network grows faster, and has bits to spare, as it is rounded once a
 * chunk and not once a row. So do minibatches, which differ, and need fewer bits. */
#define LINEAR_ROOM 8
#define NETWORK_ROOM 1024

/* ---- life ---- */

/* The parts of an evaluation for the optimizer. The holdout is one of them if it decides the end.
 */
enum { PART_TRAINING, PART_HOLDOUT };

struct evaluation_part steering_training_part(const struct coordinator_settings *settings,
                                              uint32_t kind) {
    const struct set_info *data = settings->data;
    return (struct evaluation_part){kind, 0, set_training_chunks(data)};
}

struct evaluation_part steering_holdout_part(const struct coordinator_settings *settings) {
    const struct set_info *data = settings->data;
    return (struct evaluation_part){EVALUATION_LOSS, set_training_chunks(data),
                                    data->holdout_chunks};
}

static struct evaluation_parts parts_to_evaluate(const struct coordinator_settings *settings) {
    struct evaluation_parts parts = {.count = 1};
    parts.items[PART_TRAINING] = steering_training_part(settings, EVALUATION_GRADIENT);
    if (settings->optimizer.patience && settings->data->holdout_chunks)
        parts.items[parts.count++] = steering_holdout_part(settings);
    return parts;
}

uint32_t steering_chunks(const struct coordinator_settings *settings) {
    bool holdout =
        settings->optimizer.patience || (settings->downpour.epochs && settings->downpour.measures);
    return holdout ? settings->data->chunks : set_training_chunks(settings->data);
}

struct steering *steering_new(const struct coordinator_settings *settings) {
    struct steering *s = memory_new(1, sizeof *s);
    optimizer_init(&s->optimizer, &settings->optimizer);
    downpour_init(&s->downpour, &settings->downpour);
    round_init(&s->round, settings->shards);
    return s;
}

void steering_free(struct steering *s) {
    bytes_release(&s->program);
    round_release(&s->round);
    free(s);
}

void steering_reset(struct coordinator *c) {
    optimizer_init(&c->steering->optimizer, &c->settings.optimizer);
    downpour_init(&c->steering->downpour, &c->settings.downpour);
    c->steering->maxima_at_x = (struct maxima){0};
}

void steering_forget(struct coordinator *c) {
    struct steering *s = c->steering;
    s->round.running = false;
    s->round.number = 0;
    s->finishing = s->loading = false;
    bytes_clear(&s->program);
}

/* ---- what membership and recovery ask ---- */

uint64_t steering_next_program(const struct coordinator *c) {
    return c->steering->round.number + 1;
}

uint64_t steering_step(const struct coordinator *c) {
    return c->steering->downpour.done + c->steering->optimizer.step;
}

struct steering_progress steering_progress(const struct coordinator *c) {
    return (struct steering_progress){.epochs = c->steering->downpour.epoch,
                                      .step = c->steering->optimizer.step};
}

enum reason steering_reason(const struct coordinator *c) {
    return c->steering->optimizer.reason;
}

bool steering_is_finishing(const struct coordinator *c) {
    return c->steering->finishing;
}

void steering_cancel(struct coordinator *c) {
    c->steering->optimizer.reason = REASON_CANCELLED;
}

void steering_describe_checkpoint(const struct coordinator *c, struct message_checkpoint *message,
                                  uint64_t *slots, uint64_t *serials) {
    const struct pairs *history = &c->steering->optimizer.history;
    for (uint32_t i = 0; i < history->pairs; i++) {
        slots[i] = history->slot[i];
        serials[i] = history->serial[history->slot[i]];
    }
    const struct downpour *downpour = &c->steering->downpour;
    bool runs = downpour->stage != DOWNPOUR_OVER;
    message->best = runs ? downpour->best_epoch > 0 : optimizer_keeps_best(&c->steering->optimizer);
    message->sums = runs || (c->steering->optimizer.scaled && !mutant(DIAGONAL_LEFT_OUT));
    message->factor = optimizer_keeps_factor(&c->steering->optimizer);
    message->slots = (struct u64_list){.items = slots, .length = history->pairs};
    message->serials = (struct u64_list){.items = serials, .length = history->pairs};
}

/* ---- programs and evaluations ---- */

/* The program is journalled before it is sent, if programs are journalled now. A program that loads
 * or reads pairs is not: it needs what was sent beside it. Nor are those of Downpour: their
 * evaluations are short. */
void steering_send_program(struct coordinator *c, struct output *out) {
    struct steering *s = c->steering;
    round_begin(&s->round, &s->program);
    bool whole = !s->loading && !downpour_runs(&s->downpour);
    durability_journal_program(c, whole && c->phase == PHASE_RUNNING, out);
    struct message message = {.type = MESSAGE_PROGRAM};
    message.program = (struct message_program){
        .attempt = c->roster.attempt,
        .number = s->round.number,
        .hash = s->round.hash,
        .operations = {.data = s->program.data, .length = (uint32_t)s->program.length},
    };
    roster_send_shards(&c->roster, message, out);
}

struct bounds steering_bounds_over(const struct coordinator *c, const struct maxima *maxima,
                                   double room) {
    struct bounds bounds = {.count = layout_bounds(&c->settings.layout)};
    for (uint32_t i = 0; i < bounds.count; i++)
        bounds.exponent[i] = fixed_derivative_exponent(room * maxima->value[i]);
    return bounds;
}

/* Before anything has been found. */
static struct bounds first_bounds(const struct coordinator *c) {
    const struct set_info *data = c->settings.data;
    return objective_first_bounds(&c->settings.shape, data->label_max_abs, data->weight_sum,
                                  set_training_chunks(data));
}

struct bounds steering_next_bounds(const struct coordinator *c) {
    const struct objective_shape *shape = &c->settings.shape;
    bool linear = !family_of(shape)->rounds_chunks;
    bool fixed = linear && !objective_bound_adapts(shape, c->settings.data->label_max_abs);
    if (fixed || !c->steering->maxima_at_x.count)
        return first_bounds(c);
    bool narrow = linear && c->steering->downpour.stage == DOWNPOUR_OVER;
    return steering_bounds_over(c, &c->steering->maxima_at_x, narrow ? LINEAR_ROOM : NETWORK_ROOM);
}

void steering_begin_evaluation(struct coordinator *c, enum optimizer_want want,
                               struct evaluation_request *request, int64_t now_ns,
                               struct output *out) {
    c->steering->want = want;
    request->minibatch = downpour_runs(&c->steering->downpour);
    uint32_t number = dispatch_prepare(&c->dispatch, request);
    program_add(&c->steering->program, &(struct operation){.code = OPERATION_BEGIN,
                                                           .evaluation = number,
                                                           .sums = evaluation_sums(&request->parts),
                                                           .bounds = request->bounds});
    steering_send_program(c, out);
    dispatch_begin(&c->dispatch, now_ns, out);
}

void steering_evaluate(struct coordinator *c, const struct evaluation_parts *parts,
                       const struct bounds *bounds, int64_t now_ns, struct output *out) {
    struct evaluation_request request = {
        .parts = *parts, .bounds = *bounds, .drawing = {.floor = 1}};
    steering_begin_evaluation(c, OPTIMIZER_EVALUATE, &request, now_ns, out);
}

static void evaluate(struct coordinator *c, const struct bounds *bounds, int64_t now_ns,
                     struct output *out) {
    struct evaluation_parts parts = parts_to_evaluate(&c->settings);
    steering_evaluate(c, &parts, bounds, now_ns, out);
}

static void finish(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->steering->finishing = true;
    c->steering->want = OPTIMIZER_FINISH;
    if (c->steering->program.length)
        steering_send_program(c, out);
    else
        durability_seal(c, now_ns, out);
}

void steering_follow(struct coordinator *c, enum optimizer_want want, int64_t now_ns,
                     struct output *out) {
    struct bounds bounds;
    switch (want) {
    case OPTIMIZER_EVALUATE:
        bounds = steering_next_bounds(c);
        evaluate(c, &bounds, now_ns, out);
        break;
    case OPTIMIZER_CURVATURE:
        refreshing_begin(c, now_ns, out);
        break;
    case OPTIMIZER_MEASURE:
        c->steering->want = want;
        steering_send_program(c, out);
        break;
    case OPTIMIZER_FINISH:
        finish(c, now_ns, out);
        break;
    }
}

bool steering_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    if (!s->optimizer.started && s->downpour.stage != DOWNPOUR_OVER) {
        pouring_stop(c, reason, now_ns, out);
        return true;
    }
    /* Where L-BFGS takes over x has no loss yet, but it is worth keeping. */
    bool keeps_x = s->downpour.done && reason == REASON_CANCELLED;
    if (!s->optimizer.started && !keeps_x)
        return false;
    dispatch_end(&c->dispatch);
    bytes_clear(&s->program);
    optimizer_stop(&s->optimizer, reason, &s->program);
    finish(c, now_ns, out);
    return true;
}

/* ---- answers to the optimizer ---- */

/* A bound was exceeded: evaluates the same trial again, with bounds that hold for it. */
static void evaluate_again(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct bounds bounds = steering_bounds_over(c, &c->dispatch.evaluation.maxima, 1);
    recording_evaluation(c, c->steering->optimizer.step + c->steering->optimizer.started,
                         c->steering->optimizer.search.step, "bound exceeded", now_ns, out);
    evaluate(c, &bounds, now_ns, out);
}

double steering_total(const struct coordinator *c, uint32_t part, uint32_t number) {
    const struct current_evaluation *evaluation = &c->dispatch.evaluation;
    if (part >= evaluation->request.parts.count)
        return NAN;
    uint32_t first = evaluation_first_total(&evaluation->request.parts, part);
    return exact_value(&evaluation->totals.sum[first + number]);
}

struct held steering_held(const struct coordinator *c, uint32_t part) {
    bool classes = objective_has_classes(objective_of(c->settings.shape.kind));
    double weights = c->settings.data->holdout_weight_sum;
    return (struct held){.loss = steering_total(c, part, 0) / weights,
                         .accuracy = classes ? steering_total(c, part, 1) / weights : NAN};
}

/* The bound was exceeded at a trial that is given up for its loss alone. */
static void refuse_trial(struct coordinator *c, double loss, int64_t now_ns, struct output *out) {
    uint64_t step = c->steering->optimizer.step + 1;
    double step_length = c->steering->optimizer.search.step;
    enum optimizer_want want =
        optimizer_refused(&c->steering->optimizer, loss, &c->steering->program);
    recording_evaluation(c, step, step_length, "rejected", now_ns, out);
    steering_follow(c, want, now_ns, out);
}

bool steering_can_hold(const struct coordinator *c, double loss) {
    return isfinite(loss) &&
           maxima_largest(&c->dispatch.evaluation.maxima) <= fixed_power(FIXED_DERIVATIVE_MAX);
}

static void trial_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    double loss = steering_total(c, PART_TRAINING, 0) / c->settings.data->weight_sum;
    if (c->dispatch.evaluation.exceeded && steering_can_hold(c, loss)) {
        if (optimizer_refuses(&c->steering->optimizer, loss))
            refuse_trial(c, loss, now_ns, out);
        else
            evaluate_again(c, now_ns, out);
        return;
    }
    if (c->dispatch.evaluation.exceeded)
        loss = INFINITY;
    uint64_t step = c->steering->optimizer.step + c->steering->optimizer.started;
    double step_length = c->steering->optimizer.search.step;
    enum optimizer_want want = optimizer_evaluated(
        &c->steering->optimizer, loss, steering_held(c, PART_HOLDOUT), &c->steering->program);
    if (want != OPTIMIZER_MEASURE)
        recording_evaluation(c, step, step_length, "not finite", now_ns, out);
    steering_follow(c, want, now_ns, out);
}

void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    bytes_clear(&c->steering->program);
    program_add(&c->steering->program, &(struct operation){.code = OPERATION_CHECK,
                                                           .hash = c->dispatch.decisions.fold_hash,
                                                           .folds = c->dispatch.decisions.folds});
    if (downpour_runs(&c->steering->downpour))
        pouring_evaluated(c, now_ns, out);
    else if (c->steering->want == OPTIMIZER_CURVATURE)
        refreshing_evaluated(c, now_ns, out);
    else
        trial_evaluated(c, now_ns, out);
}

static void measured(struct coordinator *c, int64_t now_ns, struct output *out) {
    static _Thread_local double scalars[SCALARS_MAX];
    struct optimizer *o = &c->steering->optimizer;
    enum optimizer_measuring was = o->measuring;
    bool was_started = o->started;
    uint64_t step_before = o->step;
    double step_length = o->search.step;

    round_scalars(&c->steering->round, scalars);
    bytes_clear(&c->steering->program);
    enum optimizer_want want = optimizer_measured(o, scalars, &c->steering->program);
    bool accepted = o->step > step_before || o->started != was_started;
    if (was == MEASURING_FACTOR)
        refreshing_factored(c, now_ns, out);
    if (was == MEASURING_TRIAL)
        recording_evaluation(c, step_before + was_started, step_length,
                             accepted ? "accepted" : "rejected", now_ns, out);
    /* If Downpour goes on later, the bounds of a minibatch must follow from the one before it. */
    if (accepted && !c->steering->downpour.closing)
        c->steering->maxima_at_x = c->dispatch.evaluation.maxima;
    if (accepted)
        recording_step(c, out);
    steering_follow(c, want, now_ns, out); /* puts the step into x and g: before CHECKPOINT */
    if (accepted && !c->steering->finishing)
        durability_checkpoint_if_due(c, now_ns, out);
}

int on_result(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct message_result *result = &message->result;
    if (result->attempt != c->roster.attempt) {
        c->stale++;
        return 0;
    }
    switch (round_take(&c->steering->round, link, result->number, &result->scalars)) {
    case ROUND_IGNORED:
        c->stale++;
        return 0;
    case ROUND_BROKEN:
        return error_set(ERROR_INTERNAL,
                         "shard %u answered program %llu with scalars that do not "
                         "fit it",
                         link, (unsigned long long)result->number);
    case ROUND_WAIT:
        return 0;
    case ROUND_DONE:
        break;
    }
    if (c->phase == PHASE_READING)
        reading_formed(c, out);
    else if (c->steering->loading)
        starting_pair_loaded(c, now_ns, out);
    else if (c->steering->finishing)
        durability_seal(c, now_ns, out);
    else if (c->steering->round.scalars && downpour_runs(&c->steering->downpour))
        pouring_measured(c, now_ns, out);
    else if (c->steering->round.scalars)
        measured(c, now_ns, out);
    return 0;
}
