#include "optimizer/downpour.h"

#include <assert.h>
#include <math.h>

#include "base/limits.h"
#include "base/mutant.h"
#include "base/random.h"
#include "wire/program.h"

/* What Adagrad's sums are to H0: B = rate/(√A + this·√max A). Parameters that hardly ever had a
 * gradient would else have a curvature of nothing. */
#define DIAGONAL_SHARE 0.01

void downpour_init(struct downpour *d, const struct downpour_settings *settings,
                   const struct optimizer_settings *penalties, const struct optimizer_data *data) {
    assert(!settings->epochs || (data->chunks > 0 && data->block_rows > 0));
    *d = (struct downpour){.settings = *settings,
                           .data = *data,
                           .l1 = penalties->l1,
                           .l2 = penalties->l2,
                           .patience = penalties->patience,
                           .stage = settings->epochs ? DOWNPOUR_MINIBATCH : DOWNPOUR_OVER,
                           .holdout = {NAN, NAN},
                           .best = {INFINITY, NAN}};
    assert(downpour_runs(d) == (settings->epochs > 0));
}

bool downpour_runs(const struct downpour *d) {
    return d->stage != DOWNPOUR_OVER && !d->closing;
}

/* ---- the order ---- */

/* Item `epoch` of a list whose last item is for all later epochs. */
static uint32_t item_of(uint64_t epoch, uint32_t count) {
    assert(count > 0);
    return epoch < count ? (uint32_t)epoch : count - 1;
}

double downpour_rate(const struct downpour *d, uint64_t epoch) {
    assert(d->settings.epochs > 0);
    return d->settings.rates[item_of(epoch, d->settings.rate_count)];
}

uint32_t downpour_batch(const struct downpour *d) {
    uint32_t batch = DOWNPOUR_BATCH;
    if (d->settings.batch)
        return d->settings.batch;
    while (batch > DOWNPOUR_BATCH_MIN && d->data.rows / batch < d->settings.steps_least)
        batch /= 2;
    return batch;
}

static uint32_t chunks_of_minibatch(const struct downpour *d, uint64_t epoch) {
    const struct downpour_settings *s = &d->settings;
    uint64_t rows = (uint64_t)downpour_batch(d) * s->multiples[item_of(epoch, s->multiple_count)];
    uint64_t chunks = rows / d->data.block_rows;
    assert(d->data.chunks > 0 && rows > 0);
    return chunks < 1 ? 1 : chunks < d->data.chunks ? (uint32_t)chunks : d->data.chunks;
}

uint32_t downpour_minibatches(const struct downpour *d, uint64_t epoch) {
    uint32_t each = chunks_of_minibatch(d, epoch);
    assert(each > 0 && each <= d->data.chunks);
    return (uint32_t)(((uint64_t)d->data.chunks + each - 1) / each);
}

static void add_part(struct evaluation_parts *parts, uint32_t first, uint32_t count) {
    assert(parts->count < EVALUATION_PARTS_MAX);
    if (count)
        parts->items[parts->count++] = (struct evaluation_part){EVALUATION_GRADIENT, first, count};
}

struct evaluation_parts downpour_parts(const struct downpour *d) {
    uint64_t key = permutation_key(d->settings.seed, d->epoch + 1), chunks = d->data.chunks;
    uint64_t each = chunks_of_minibatch(d, d->epoch);
    uint64_t minibatches = downpour_minibatches(d, d->epoch);
    assert(d->minibatch < minibatches);
    uint64_t start = each * permutation_at(d->minibatch, minibatches, key);
    uint64_t count = each < chunks - start ? each : chunks - start;
    uint64_t first = (start + permutation_key(key, 1) % chunks) % chunks;
    uint64_t beyond = first + count > chunks ? first + count - chunks : 0; /* from chunk 0 on */
    struct evaluation_parts parts = {.count = 0};
    if (!mutant(MINIBATCH_CUT))
        add_part(&parts, 0, (uint32_t)beyond);
    add_part(&parts, (uint32_t)first, (uint32_t)(count - beyond));
    assert(parts.count > 0 && count <= each);
    return parts;
}

uint64_t downpour_rows(const struct downpour *d, const struct evaluation_parts *parts) {
    uint64_t rows = 0, all = d->data.rows;
    for (uint32_t i = 0; i < parts->count; i++) {
        uint64_t first = (uint64_t)parts->items[i].first * d->data.block_rows;
        uint64_t end = first + (uint64_t)parts->items[i].count * d->data.block_rows;
        rows += (end < all ? end : all) - first;
    }
    assert(rows <= all);
    return rows;
}

/* ---- steps ---- */

/* The weight that rows have on average. A minibatch of heavy rows makes a long step, as it should:
 * so the mean over all minibatches is the gradient. */
static double weight_of(const struct downpour *d, uint64_t rows) {
    assert(rows > 0 && d->data.rows > 0);
    return d->data.weight_sum * (double)rows / (double)d->data.rows;
}

double downpour_loss(const struct downpour *d) {
    return d->rows ? d->loss_sum / weight_of(d, d->rows) : NAN;
}

static double unit_or_1(double unit) {
    return unit > 0 ? unit : 1;
}

/* What is added to the roots of Adagrad's sums. A weight's first gradient is often that of a single
 * row: with nothing added a step would be as long if the row were predicted well, and rare columns
 * would be learned from rows that have nothing to teach. */
static double floor_of(const struct downpour *d) {
    double rows = (double)chunks_of_minibatch(d, d->epoch) * d->data.block_rows;
    assert(d->settings.row_floor >= 0 && rows > 0);
    return fmax(d->settings.row_floor / rows,
                unit_or_1(d->settings.gradient_unit) * DOWNPOUR_FLOOR_LEAST);
}

static enum downpour_stage after_epoch(const struct downpour *d) {
    assert(d->best_epoch <= d->epoch && d->minibatch == 0);
    bool stops = d->patience && d->best_epoch && d->epoch - d->best_epoch >= d->patience;
    return stops || d->epoch >= d->settings.epochs ? DOWNPOUR_ENDED : DOWNPOUR_MINIBATCH;
}

/* Adagrad's step, with the proximal step of l1 (Duchi, Hazan and Singer, section 5.1). */
void downpour_step(struct downpour *d, double loss_sum, struct bytes *program) {
    assert(d->stage == DOWNPOUR_MINIBATCH && !d->closing && !d->at_best);
    struct evaluation_parts parts = downpour_parts(d);
    uint64_t rows = downpour_rows(d, &parts);
    double weight = mutant(WEIGHT_OF_ALL) ? d->data.weight_sum : weight_of(d, rows);
    double unit = unit_or_1(d->settings.weight_unit);
    program_add(program,
                &(struct operation){.code = OPERATION_GRADIENT, .a = REGISTER_G, .alpha = weight});
    if (d->l2 > 0)
        program_add(program, &(struct operation){.code = OPERATION_REGULARIZE,
                                                 .a = REGISTER_G,
                                                 .b = REGISTER_X,
                                                 .alpha = d->l2});
    program_add(program, &(struct operation){.code = OPERATION_ADAGRAD,
                                             .a = REGISTER_X,
                                             .b = REGISTER_A,
                                             .c = REGISTER_G,
                                             .alpha = downpour_rate(d, d->epoch) * unit,
                                             .beta = floor_of(d),
                                             .l1 = d->l1});
    program_return(program);
    d->rows = (d->minibatch ? d->rows : 0) + rows;
    d->loss_sum = (d->minibatch ? d->loss_sum : 0) + loss_sum;
    d->done++;
    assert(d->minibatch < d->done);
    if (++d->minibatch < downpour_minibatches(d, d->epoch))
        return;
    d->minibatch = 0;
    d->epoch++;
    d->stage = d->settings.measures ? DOWNPOUR_HOLDOUT : after_epoch(d);
}

static void swap_with_best(struct bytes *program) {
    program_add(program,
                &(struct operation){.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_BEST});
}

/* x goes to register best by changing names, and comes back from t, which is the same. */
void downpour_measured(struct downpour *d, struct held held, struct bytes *program) {
    assert(d->stage == DOWNPOUR_HOLDOUT && d->minibatch == 0);
    d->holdout = held;
    if (d->patience && (!d->best_epoch || held.loss < d->best.loss)) {
        d->best = held;
        d->best_epoch = d->epoch;
        swap_with_best(program);
        program_add(program,
                    &(struct operation){
                        .code = OPERATION_ADD, .a = REGISTER_X, .b = REGISTER_T, .c = REGISTER_T});
    }
    d->stage = after_epoch(d);
    assert(d->best_epoch <= d->epoch);
}

bool downpour_stopped_early(const struct downpour *d) {
    return d->stage >= DOWNPOUR_ENDED && d->epoch < d->settings.epochs;
}

void downpour_finish(struct downpour *d, struct bytes *program) {
    assert(d->stage != DOWNPOUR_OVER && !d->closing);
    bool is_best = d->best_epoch == d->epoch && d->minibatch == 0;
    if (!d->best_epoch || is_best || d->at_best)
        return;
    swap_with_best(program);
    d->at_best = true;
    program_return(program);
    assert(d->at_best && d->best_epoch <= d->epoch);
}

void downpour_take_up(struct downpour *d, struct bytes *program) {
    assert(d->stage != DOWNPOUR_OVER && d->settings.epochs > 0);
    if (d->at_best)
        swap_with_best(program);
    d->at_best = d->closing = false;
    if (d->stage != DOWNPOUR_HOLDOUT && !d->minibatch)
        d->stage = after_epoch(d);
    /* Bugs that the simulator must find. */
    if (mutant(ADAGRAD_TWICE) && d->minibatch) {
        d->minibatch--;
        d->done--;
    }
    if (mutant(EPOCH_ANEW)) {
        d->done -= d->minibatch;
        d->minibatch = 0;
    }
    if (mutant(HOLDOUT_SKIPPED) && d->stage == DOWNPOUR_HOLDOUT)
        d->stage = after_epoch(d);
    assert(!d->at_best && !d->closing);
    program_return(program);
}

/* ---- reports ---- */

struct downpour_view downpour_view(const struct downpour *d) {
    const struct downpour_settings *s = &d->settings;
    assert(d->minibatch <= d->done && d->best_epoch <= d->epoch);
    if (!s->epochs)
        return (struct downpour_view){.alone = s->alone};
    return (struct downpour_view){.running = downpour_runs(d),
                                  .alone = s->alone,
                                  .epochs = s->epochs,
                                  .epoch = d->epoch,
                                  .minibatches = downpour_minibatches(d, d->epoch),
                                  .minibatch = d->minibatch,
                                  .done = d->done,
                                  .redone = d->redone,
                                  .rate = downpour_rate(d, d->epoch),
                                  .loss = downpour_loss(d),
                                  .measures = s->measures,
                                  .holdout = d->holdout,
                                  .best_epoch = d->best_epoch,
                                  .stopped_early = downpour_stopped_early(d)};
}

static void time_epoch(struct downpour *d, uint64_t minibatches, int64_t now_ns) {
    d->epoch_began_ns = now_ns;
    d->epoch_minibatches = minibatches;
}

/* The epoch that is through. If it was taken up in its middle, its earlier minibatches count as if
 * they had taken as long each as those since; no time at all if there is none since. */
static void report_epoch(const struct downpour *d, struct optimizer_request *request) {
    struct optimizer_report *report = &request->report;
    assert(d->epoch > 0 && d->minibatch == 0);
    uint64_t minibatches = downpour_minibatches(d, d->epoch - 1);
    uint64_t since = minibatches - d->epoch_minibatches;
    double seconds = (double)(request->now_ns - d->epoch_began_ns) / 1e9;
    report->epoch.through = true;
    report->epoch.epoch = d->epoch;
    report->epoch.minibatches = minibatches;
    report->epoch.rows = d->rows;
    report->epoch.loss = downpour_loss(d);
    report->epoch.seconds = since ? seconds * ((double)minibatches / (double)since) : 0;
    report->epoch.holdout = d->settings.measures ? d->holdout : (struct held){NAN, NAN};
}

/* ---- the row ---- */

static void hand_over(struct downpour *d, enum reason closes, struct optimizer_request *request) {
    assert(closes < REASONS && (closes || d->stage == DOWNPOUR_ENDED));
    d->closing = closes != REASON_NONE;
    if (!d->closing)
        d->stage = DOWNPOUR_OVER;
    request->want = OPTIMIZER_HAND_OVER;
    request->closes = closes;
}

/* What each stage asks for. */
static void ask_minibatch(struct downpour *d, struct optimizer_request *request) {
    if (d->minibatch == 0)
        time_epoch(d, 0, request->now_ns);
    request->want = OPTIMIZER_EVALUATE;
    request->parts = downpour_parts(d);
}

static void ask_holdout(struct downpour *d, struct optimizer_request *request) {
    request->want = OPTIMIZER_EVALUATE;
    request->parts = (struct evaluation_parts){
        .items = {{EVALUATION_LOSS, d->data.chunks, d->data.holdout_chunks}}, .count = 1};
}

static void end(struct downpour *d, struct optimizer_request *request) {
    assert(d->stage == DOWNPOUR_ENDED && !d->closing);
    bool early = downpour_stopped_early(d);
    downpour_finish(d, request->program);
    if (d->settings.alone) {
        hand_over(d, early ? REASON_EARLY_STOPPING : REASON_EPOCH_LIMIT, request);
    } else if (!d->settings.scales) {
        hand_over(d, REASON_NONE, request);
    } else {
        program_add(request->program,
                    &(struct operation){.code = OPERATION_MAX_ABS, .a = REGISTER_A});
        request->want = OPTIMIZER_MEASURE;
    }
}

static void go_on(struct downpour *d, struct optimizer_request *request);

/* If a bound was exceeded, the same minibatch is evaluated again under bounds that hold. */
static void minibatch_evaluated(struct downpour *d, const struct evaluation_found *found,
                                struct optimizer_request *request) {
    assert(d->stage == DOWNPOUR_MINIBATCH && found->parts->count > 0 && !d->closing);
    double loss = 0;
    for (uint32_t i = 0; i < found->parts->count; i++)
        loss += found_total(found, i, 0);
    if (found->exceeded && found->can_hold && isfinite(loss)) {
        d->redone++;
        request->want = OPTIMIZER_EVALUATE;
        request->parts = downpour_parts(d);
        request->again = true;
    } else if (found->exceeded || !isfinite(loss)) {
        report_event(&request->report, "downpour",
                     "epoch %llu, minibatch %llu: the loss is not finite; set downpour.rate lower "
                     "than %g",
                     (unsigned long long)d->epoch + 1, (unsigned long long)d->minibatch + 1,
                     downpour_rate(d, d->epoch));
        bytes_clear(request->program);
        request->want = OPTIMIZER_FINISH;
        request->closes = REASON_NOT_FINITE;
    } else {
        uint64_t epochs = d->epoch;
        downpour_step(d, loss, request->program);
        request->accepted = true;
        if (d->epoch > epochs && !d->settings.measures)
            report_epoch(d, request);
        go_on(d, request);
    }
}

static void holdout_evaluated(struct downpour *d, const struct evaluation_found *found,
                              struct optimizer_request *request) {
    struct held held = found_held(found, 0, &d->data);
    if (!isfinite(held.loss))
        held.loss = INFINITY;
    downpour_measured(d, held, request->program);
    report_epoch(d, request);
    go_on(d, request);
}

/* What each stage asks for, and what follows its evaluation. */
static const struct {
    void (*asks)(struct downpour *d, struct optimizer_request *request);
    void (*evaluated)(struct downpour *d, const struct evaluation_found *found,
                      struct optimizer_request *request);
} stages[DOWNPOUR_STAGES] = {
    [DOWNPOUR_MINIBATCH] = {ask_minibatch, minibatch_evaluated},
    [DOWNPOUR_HOLDOUT] = {ask_holdout, holdout_evaluated},
    [DOWNPOUR_ENDED] = {.asks = end},
};

static void go_on(struct downpour *d, struct optimizer_request *request) {
    assert(d->stage < DOWNPOUR_OVER && !d->closing);
    stages[d->stage].asks(d, request);
    assert(request->want != OPTIMIZER_EVALUATE || request->parts.count > 0);
}

static void downpour_begin(void *row, struct optimizer_request *request) {
    struct downpour *d = row;
    assert(d->stage != DOWNPOUR_OVER);
    downpour_take_up(d, request->program);
    bool measures = d->stage == DOWNPOUR_HOLDOUT;
    time_epoch(d, measures ? downpour_minibatches(d, d->epoch - 1) : d->minibatch, request->now_ns);
    go_on(d, request);
}

static void downpour_evaluated(void *row, const struct evaluation_found *found,
                               struct optimizer_request *request) {
    struct downpour *d = row;
    assert(downpour_runs(d) && stages[d->stage].evaluated);
    stages[d->stage].evaluated(d, found, request);
}

/* The largest of Adagrad's sums is there: A becomes the diagonal of H0, if it can be one. */
static void downpour_scalars(void *row, const double *scalars, struct optimizer_request *request) {
    struct downpour *d = row;
    double largest = scalars[0];
    assert(d->stage == DOWNPOUR_ENDED && d->settings.scales && d->epoch > 0);
    bool scales = largest > 0 && isfinite(largest);
    request->scaled = scales;
    if (scales)
        program_add(request->program, &(struct operation){.code = OPERATION_DIAGONAL,
                                                          .a = REGISTER_A,
                                                          .alpha = downpour_rate(d, d->epoch - 1),
                                                          .beta = DIAGONAL_SHARE * sqrt(largest)});
    hand_over(d, REASON_NONE, request);
    assert(d->stage == DOWNPOUR_OVER);
}

static enum optimizer_end downpour_end(void *row, enum reason reason,
                                       struct optimizer_request *request) {
    struct downpour *d = row;
    assert(reason != REASON_NONE && d->stage != DOWNPOUR_OVER);
    if (reason == REASON_CANCELLED) {
        request->want = OPTIMIZER_FINISH;
        request->closes = reason;
    } else if (d->closing) {
        return END_COMING; /* as soon as x is measured */
    } else {
        downpour_finish(d, request->program);
        hand_over(d, reason, request);
    }
    return END_REQUESTED;
}

static void downpour_checkpoint(const void *row, struct optimizer_checkpoint *checkpoint) {
    const struct downpour *d = row;
    assert(d->stage != DOWNPOUR_OVER && d->best_epoch <= d->epoch);
    checkpoint->best = d->best_epoch > 0;
    checkpoint->sums = true;
}

static void downpour_serialize(struct codec *codec, void *row) {
    struct downpour *d = row;
    d->stage = serialize_enum(codec, d->stage, DOWNPOUR_STAGES);
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
    serialize_fails_if(codec, d->stage != DOWNPOUR_OVER && !d->settings.epochs);
}

const struct optimizer_row downpour_row = {
    .name = "downpour",
    .brief = true,
    .begin = downpour_begin,
    .evaluated = downpour_evaluated,
    .measured = downpour_scalars,
    .end = downpour_end,
    .checkpoint = downpour_checkpoint,
    .serialize = downpour_serialize,
};
