/* Between Downpour and the workers: begins the evaluations of its minibatches, sends its steps, and
 * hands over to the optimizer.
 *
 * A step and the minibatch that follows it are one program. Nothing is journalled: a lost
 * coordinator or shard costs the steps since the last checkpoint, which are made again. */
#include <math.h>

#include "coordinator/steering_parts.h"
#include "numeric/fixed.h"
#include "wire/program.h"

/* What Adagrad's sums are to H0: B = rate/(√A + this·√max A). Coordinates that hardly ever had a
 * gradient would else have a curvature of nothing. */
#define DIAGONAL_SHARE 0.01

struct downpour_data pouring_data(const struct coordinator_settings *settings) {
    const struct set_info *data = settings->data;
    return (struct downpour_data){.chunks = set_training_chunks(data),
                                  .block_rows = data->block_rows,
                                  .rows = data->rows,
                                  .weight_sum = data->weight_sum};
}

/* ---- evaluations ---- */

static void time_epoch(struct coordinator *c, uint64_t minibatches, int64_t now_ns) {
    c->steering->epoch_started_ns = now_ns;
    c->steering->epoch_taken_up = minibatches;
}

/* Minibatches of the epoch under way, or of the one whose holdout is to be evaluated. */
static uint64_t minibatches_of_epoch(const struct coordinator *c) {
    const struct downpour *d = &c->steering->downpour;
    struct downpour_data data = pouring_data(&c->settings);
    return d->stage == DOWNPOUR_HOLDOUT
               ? downpour_minibatches(&c->settings.downpour, &data, d->epoch - 1)
               : d->minibatch;
}

/* The bounds follow from the minibatch before this one, at the first from the data alone. */
static void evaluate(struct coordinator *c, const struct bounds *bounds, int64_t now_ns,
                     struct output *out) {
    struct downpour_data data = pouring_data(&c->settings);
    struct evaluation_parts parts =
        downpour_parts(&c->steering->downpour, &c->settings.downpour, &data);
    steering_evaluate(c, &parts, bounds, now_ns, out);
}

static void evaluate_next(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (c->steering->downpour.minibatch == 0)
        time_epoch(c, 0, now_ns);
    struct bounds bounds = steering_next_bounds(c);
    evaluate(c, &bounds, now_ns, out);
}

static void evaluate_holdout(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct evaluation_parts parts = {{steering_holdout_part(&c->settings)}, 1};
    struct bounds bounds = steering_next_bounds(c);
    steering_evaluate(c, &parts, &bounds, now_ns, out);
}

/* ---- the end ---- */

/* The optimizer takes over for good. `largest` is that of A; 0: A is of no use. */
static void hand_over(struct coordinator *c, double largest, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    double rate = downpour_rate(&c->settings.downpour, s->downpour.epoch - 1);
    s->downpour.stage = DOWNPOUR_OVER;
    if (largest > 0 && isfinite(largest)) {
        program_add(&s->program, &(struct operation){.code = OPERATION_DIAGONAL,
                                                     .a = REGISTER_A,
                                                     .alpha = rate,
                                                     .beta = DIAGONAL_SHARE * sqrt(largest)});
        s->optimizer.scaled = true;
    }
    steering_follow(c, optimizer_start(&s->optimizer, &s->program), now_ns, out);
}

/* The optimizer measures x, and the run ends with this reason. */
static void close_at_x(struct coordinator *c, enum reason reason, int64_t now_ns,
                       struct output *out) {
    struct steering *s = c->steering;
    s->downpour.closing = true;
    optimizer_close(&s->optimizer, reason);
    steering_follow(c, optimizer_start(&s->optimizer, &s->program), now_ns, out);
}

static void end(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    bool early = downpour_stopped_early(&s->downpour, &c->settings.downpour);
    downpour_finish(&s->downpour, &s->program);
    if (c->settings.downpour.alone) {
        close_at_x(c, early ? REASON_EARLY_STOPPING : REASON_EPOCH_LIMIT, now_ns, out);
        return;
    }
    if (!c->settings.downpour.scales) {
        hand_over(c, 0, now_ns, out);
        return;
    }
    program_add(&s->program, &(struct operation){.code = OPERATION_MAX_ABS, .a = REGISTER_A});
    steering_follow(c, OPTIMIZER_MEASURE, now_ns, out);
}

void pouring_measured(struct coordinator *c, int64_t now_ns, struct output *out) {
    double scalars[SCALARS_MAX];
    round_scalars(&c->steering->round, scalars);
    bytes_clear(&c->steering->program);
    hand_over(c, scalars[0], now_ns, out);
}

/* Appends to the program what comes next, and sends it. */
static void go_on(struct coordinator *c, int64_t now_ns, struct output *out) {
    switch (c->steering->downpour.stage) {
    case DOWNPOUR_MINIBATCH:
        evaluate_next(c, now_ns, out);
        break;
    case DOWNPOUR_HOLDOUT:
        evaluate_holdout(c, now_ns, out);
        break;
    default:
        end(c, now_ns, out);
        break;
    }
}

void pouring_begin(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    optimizer_init(&s->optimizer, &c->settings.optimizer); /* it may have measured or ended */
    bytes_clear(&s->program);
    downpour_begin(&s->downpour, &c->settings.downpour, c->settings.optimizer.patience,
                   &s->program);
    time_epoch(c, minibatches_of_epoch(c), now_ns);
    go_on(c, now_ns, out);
}

void pouring_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    if (s->downpour.closing && reason != REASON_CANCELLED)
        return; /* it ends as soon as x is measured */
    dispatch_end(&c->dispatch);
    bytes_clear(&s->program);
    if (reason != REASON_CANCELLED) {
        downpour_finish(&s->downpour, &s->program);
        close_at_x(c, reason, now_ns, out);
    } else {
        steering_follow(c, optimizer_stop(&s->optimizer, reason, &s->program), now_ns, out);
    }
}

/* ---- evaluations that are complete ---- */

static void holdout_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    struct held held = steering_held(c, 0);
    if (!isfinite(held.loss))
        held.loss = INFINITY;
    downpour_measured(&s->downpour, &c->settings.downpour, c->settings.optimizer.patience, held,
                      &s->program);
    recording_epoch(c, now_ns, out);
    go_on(c, now_ns, out);
}

/* A bound was exceeded: the same minibatch again, with bounds that hold for it. */
static void evaluate_again(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct bounds bounds = steering_bounds_over(c, &c->dispatch.evaluation.maxima, 1);
    c->steering->downpour.redone++;
    evaluate(c, &bounds, now_ns, out);
}

static void diverged(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    output_event(out, "downpour",
                 "epoch %llu, minibatch %llu: the loss is not finite; set downpour.rate lower "
                 "than %g",
                 (unsigned long long)s->downpour.epoch + 1,
                 (unsigned long long)s->downpour.minibatch + 1,
                 downpour_rate(&c->settings.downpour, s->downpour.epoch));
    bytes_clear(&s->program);
    steering_follow(c, optimizer_stop(&s->optimizer, REASON_NOT_FINITE, &s->program), now_ns, out);
}

static double loss_sum(const struct coordinator *c) {
    double sum = 0;
    for (uint32_t i = 0; i < c->dispatch.evaluation.request.parts.count; i++)
        sum += steering_total(c, i, 0);
    return sum;
}

static void minibatch_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    struct steering *s = c->steering;
    struct downpour_data data = pouring_data(&c->settings);
    double loss = loss_sum(c);
    if (c->dispatch.evaluation.exceeded && steering_can_hold(c, loss)) {
        evaluate_again(c, now_ns, out);
        return;
    }
    if (c->dispatch.evaluation.exceeded || !isfinite(loss)) {
        diverged(c, now_ns, out);
        return;
    }
    uint64_t epochs = s->downpour.epoch;
    downpour_step(&s->downpour, &c->settings.downpour, &data, &c->settings.optimizer, loss,
                  &s->program);
    s->maxima_at_x = c->dispatch.evaluation.maxima;
    if (s->downpour.epoch > epochs && s->downpour.stage != DOWNPOUR_HOLDOUT)
        recording_epoch(c, now_ns, out);
    go_on(c, now_ns, out);
    durability_checkpoint_if_due(c, now_ns, out);
}

void pouring_evaluated(struct coordinator *c, int64_t now_ns, struct output *out) {
    if (c->steering->downpour.stage == DOWNPOUR_HOLDOUT)
        holdout_evaluated(c, now_ns, out);
    else
        minibatch_evaluated(c, now_ns, out);
}
