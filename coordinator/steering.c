/* Between the optimizer and the shards: sends the programs it asks for, hands it the scalars, and
 * records what it decided. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coordinator/parts.h"
#include "numeric/fixed.h"
#include "wire/program.h"

/* A trial may exceed the largest derivative at x by this factor before it has to be redone. */
#define DERIVATIVE_ROOM 8

/* Journalled before it is sent, if programs are journalled now. */
void steering_send_program(struct coordinator *c, struct output *out) {
    round_begin(&c->round, &c->program);
    durability_journal_program(c, out);
    struct message message = {.type = MESSAGE_PROGRAM};
    message.program = (struct message_program){
        .attempt = c->attempt,
        .number = c->round.number,
        .hash = c->round.hash,
        .operations = {.data = c->program.data, .length = (uint32_t)c->program.length},
    };
    send_to_shards(c, message, out);
}

/* The bound of an evaluation is a function of completed evaluations and the data alone. */
static int next_derivative_exponent(const struct coordinator *c) {
    if (objective_is_bounded(c->settings.shape.kind))
        return 0;
    if (!c->optimizer.started)
        return fixed_derivative_exponent(c->settings.data->label_max_abs);
    return fixed_derivative_exponent(DERIVATIVE_ROOM * c->derivative_max_at_x);
}

/* Sends the program, which forms t if it must, and begins an evaluation at t. */
static void evaluate(struct coordinator *c, int derivative_exponent, int64_t now_ns,
                     struct output *out) {
    c->want = OPTIMIZER_EVALUATE;
    c->evaluation.number++;
    c->evaluations++;
    c->evaluation.derivative_exponent = derivative_exponent;
    program_add(&c->program, &(struct operation){.code = OPERATION_BEGIN,
                                                 .evaluation = c->evaluation.number,
                                                 .derivative_exponent = derivative_exponent});
    steering_send_program(c, out);
    evaluating_begin(c, now_ns, out);
}

void steering_finish(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->finishing = true;
    c->want = OPTIMIZER_FINISH;
    if (c->program.length)
        steering_send_program(c, out);
    else
        durability_seal(c, now_ns, out);
}

static void follow(struct coordinator *c, enum optimizer_want want, int64_t now_ns,
                   struct output *out) {
    switch (want) {
    case OPTIMIZER_EVALUATE:
        evaluate(c, next_derivative_exponent(c), now_ns, out);
        break;
    case OPTIMIZER_MEASURE:
        c->want = want;
        steering_send_program(c, out);
        break;
    case OPTIMIZER_FINISH:
        steering_finish(c, now_ns, out);
        break;
    }
}

static void start_optimizer(struct coordinator *c, int64_t now_ns, struct output *out) {
    bytes_clear(&c->program);
    enum optimizer_want want =
        c->restoring ? optimizer_resume(&c->optimizer, &c->settings.optimizer, &c->program)
                     : optimizer_start(&c->optimizer, &c->program);
    follow(c, want, now_ns, out);
}

/* One curvature pair after the other, and then the optimizer. */
static void load_next_pair(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->loading = c->loaded < c->settings.start_pair_count;
    if (!c->loading) {
        start_optimizer(c, now_ns, out);
        return;
    }
    setup_send_pair(c, out);
    bytes_clear(&c->program);
    optimizer_load(&c->optimizer, &c->program);
    steering_send_program(c, out);
}

static void pair_loaded(struct coordinator *c, int64_t now_ns, struct output *out) {
    static _Thread_local double scalars[SCALARS_MAX];
    round_scalars(&c->round, scalars);
    optimizer_loaded(&c->optimizer, scalars, c->loaded++);
    load_next_pair(c, now_ns, out);
}

void steering_start(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->loaded = c->restoring ? c->settings.start_pair_count : 0;
    load_next_pair(c, now_ns, out);
}

/* The program that was out when the last coordinator went away is sent again, under its number: a
 * shard that has run it answers from memory. */
void steering_rejoin(struct coordinator *c, int64_t now_ns, struct output *out) {
    c->round.number--;
    c->journalling = true;
    steering_send_program(c, out);
    if (c->want == OPTIMIZER_EVALUATE)
        evaluating_rejoin(c, now_ns, out);
}

/* ---- records ---- */

static void record_evaluation(const struct coordinator *c, uint64_t step, double step_length,
                              const char *outcome, int64_t now_ns, struct output *out) {
    struct record *record = output_add(out, RECORD_EVALUATION);
    bool exceeded = c->evaluation.exceeded;
    record->evaluation = (struct store_evaluation){
        .evaluation = c->evaluations,
        .attempt = c->attempt,
        .step = step,
        .step_length = step_length,
        .loss = exceeded ? NAN : c->optimizer.trial_loss,
        .slope = exceeded ? NAN : c->optimizer.trial_slope,
        .examples = c->settings.data->rows,
        .seconds = (double)(now_ns - c->evaluation.started_ns) / 1e9,
        .outcome = outcome,
    };
}

/* Names the safeguards that fired since the last step, and writes an event for each. */
static void describe_safeguards(struct coordinator *c, char *text, size_t size,
                                struct output *out) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < SAFEGUARDS; i++) {
        if (!(c->optimizer.fired >> i & 1))
            continue;
        output_event(out, "safeguard", "step %llu: %s", (unsigned long long)c->optimizer.step,
                     safeguard_text(i));
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? "; " : "",
                                       safeguard_text(i));
    }
    c->optimizer.fired = 0;
}

static void record_step(struct coordinator *c, struct output *out) {
    const struct optimizer *o = &c->optimizer;
    char note[sizeof((struct record *)0)->note];
    describe_safeguards(c, note, sizeof note, out);
    struct record *record = output_add(out, RECORD_STEP);
    memcpy(record->note, note, sizeof note);
    record->step = (struct store_step){
        .step = o->step,
        .loss = o->loss,
        .gradient_max = o->gradient_max,
        .step_length = o->last_step_length,
        .trials = o->last_trials,
        .history = o->history.pairs,
        .holdout_loss = o->settings.patience ? o->holdout_loss : NAN,
    };
}

/* ---- answers to the optimizer ---- */

/* The bound was exceeded: the same trial again, with a bound that holds for it. */
static void evaluate_again(struct coordinator *c, int64_t now_ns, struct output *out) {
    double largest = c->evaluation.derivative_max;
    record_evaluation(c, c->optimizer.step + c->optimizer.started, c->optimizer.search.step,
                      "bound exceeded", now_ns, out);
    evaluate(c, fixed_derivative_exponent(largest), now_ns, out);
}

void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    bytes_clear(&c->program);
    program_add(&c->program, &(struct operation){.code = OPERATION_CHECK,
                                                 .hash = c->verdicts.fold_hash,
                                                 .folds = c->verdicts.folds});
    double loss = exact_value(&c->evaluation.loss) / (double)c->settings.data->rows;
    if (c->evaluation.exceeded && isfinite(loss) && isfinite(c->evaluation.derivative_max)) {
        evaluate_again(c, now_ns, out);
        return;
    }
    if (c->evaluation.exceeded)
        loss = INFINITY;
    uint64_t step = c->optimizer.step + c->optimizer.started;
    double step_length = c->optimizer.search.step;
    double holdout_loss = exact_value(&c->evaluation.holdout_loss) /
                          (double)c->settings.data->holdout_rows; /* NaN if there is none */
    enum optimizer_want want = optimizer_evaluated(&c->optimizer, loss, holdout_loss, &c->program);
    if (want != OPTIMIZER_MEASURE)
        record_evaluation(c, step, step_length, "not finite", now_ns, out);
    follow(c, want, now_ns, out);
}

static void measured(struct coordinator *c, int64_t now_ns, struct output *out) {
    static _Thread_local double scalars[SCALARS_MAX];
    struct optimizer *o = &c->optimizer;
    bool was_trial = o->measuring_trial, was_started = o->started;
    uint64_t step_before = o->step;
    double step_length = o->search.step;

    round_scalars(&c->round, scalars);
    bytes_clear(&c->program);
    enum optimizer_want want = optimizer_measured(o, scalars, &c->program);
    bool accepted = o->step > step_before || o->started != was_started;
    if (was_trial)
        record_evaluation(c, step_before + was_started, step_length,
                          accepted ? "accepted" : "rejected", now_ns, out);
    if (accepted) {
        c->derivative_max_at_x = c->evaluation.derivative_max;
        record_step(c, out);
    }
    follow(c, want, now_ns, out);
    if (accepted)
        durability_checkpoint_if_due(c, now_ns, out);
}

int on_result(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
              struct output *out) {
    const struct message_result *result = &message->result;
    if (result->attempt != c->attempt) {
        c->stale++;
        return 0;
    }
    switch (round_take(&c->round, link, result->number, &result->scalars)) {
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
    else if (c->loading)
        pair_loaded(c, now_ns, out);
    else if (c->finishing)
        durability_seal(c, now_ns, out);
    else if (c->round.scalars)
        measured(c, now_ns, out);
    return 0;
}
