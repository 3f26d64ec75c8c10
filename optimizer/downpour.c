#include "optimizer/downpour.h"

#include <math.h>

#include "base/mutant.h"
#include "base/random.h"
#include "optimizer/programs.h"
#include "wire/program.h"

void downpour_init(struct downpour *d, const struct downpour_settings *settings) {
    *d = (struct downpour){.stage = settings->epochs ? DOWNPOUR_MINIBATCH : DOWNPOUR_OVER,
                           .holdout = {NAN, NAN},
                           .best = {INFINITY, NAN}};
}

bool downpour_runs(const struct downpour *d) {
    return d->stage != DOWNPOUR_OVER && !d->closing;
}

/* ---- the order ---- */

/* Item `epoch` of a list whose last item is for all later epochs. */
static uint32_t item_of(uint64_t epoch, uint32_t count) {
    return epoch < count ? (uint32_t)epoch : count - 1;
}

double downpour_rate(const struct downpour_settings *s, uint64_t epoch) {
    return s->rates[item_of(epoch, s->rate_count)];
}

/* Chunks of a minibatch. */
static uint32_t chunks_each(const struct downpour_settings *s, const struct downpour_data *data,
                            uint64_t epoch) {
    uint64_t rows = (uint64_t)s->batch * s->multiples[item_of(epoch, s->multiple_count)];
    uint64_t chunks = rows / data->block_rows;
    return chunks < 1 ? 1 : chunks < data->chunks ? (uint32_t)chunks : data->chunks;
}

uint32_t downpour_minibatches(const struct downpour_settings *s, const struct downpour_data *data,
                              uint64_t epoch) {
    uint32_t each = chunks_each(s, data, epoch);
    return (uint32_t)(((uint64_t)data->chunks + each - 1) / each);
}

static void add_part(struct evaluation_parts *parts, uint32_t first, uint32_t count) {
    if (count)
        parts->items[parts->count++] = (struct evaluation_part){EVALUATION_GRADIENT, first, count};
}

struct evaluation_parts downpour_parts(const struct downpour *d, const struct downpour_settings *s,
                                       const struct downpour_data *data) {
    uint64_t key = permutation_key(s->seed, d->epoch + 1), chunks = data->chunks;
    uint64_t each = chunks_each(s, data, d->epoch);
    uint64_t minibatches = downpour_minibatches(s, data, d->epoch);
    uint64_t start = each * permutation_at(d->minibatch, minibatches, key);
    uint64_t count = each < chunks - start ? each : chunks - start;
    uint64_t first = (start + permutation_key(key, 1) % chunks) % chunks;
    uint64_t beyond = first + count > chunks ? first + count - chunks : 0; /* from chunk 0 on */
    struct evaluation_parts parts = {.count = 0};
    if (!mutant(MINIBATCH_CUT))
        add_part(&parts, 0, (uint32_t)beyond);
    add_part(&parts, (uint32_t)first, (uint32_t)(count - beyond));
    return parts;
}

uint64_t downpour_rows(const struct evaluation_parts *parts, const struct downpour_data *data) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        uint64_t first = (uint64_t)parts->items[i].first * data->block_rows;
        uint64_t end = first + (uint64_t)parts->items[i].count * data->block_rows;
        rows += (end < data->rows ? end : data->rows) - first;
    }
    return rows;
}

/* ---- steps ---- */

/* The weight that rows have on average. A minibatch of heavy rows makes a long step, as it should:
 * so the mean over all minibatches is the gradient. */
static double weight_of(uint64_t rows, const struct downpour_data *data) {
    return data->weight_sum * (double)rows / (double)data->rows;
}

double downpour_loss(const struct downpour *d, const struct downpour_data *data) {
    return d->rows ? d->loss_sum / weight_of(d->rows, data) : NAN;
}

static void add_step(const struct downpour *d, const struct downpour_settings *s,
                     const struct downpour_data *data, uint64_t rows,
                     const struct optimizer_settings *penalties, struct bytes *program) {
    program_add(program,
                &(struct operation){.code = OPERATION_GRADIENT,
                                    .a = REGISTER_G,
                                    .alpha = mutant(WEIGHT_OF_ALL) ? data->weight_sum
                                                                   : weight_of(rows, data)});
    if (penalties->l2 > 0)
        program_add(program, &(struct operation){.code = OPERATION_REGULARIZE,
                                                 .a = REGISTER_G,
                                                 .b = REGISTER_X,
                                                 .alpha = penalties->l2});
    program_add(program, &(struct operation){.code = OPERATION_ADAGRAD,
                                             .a = REGISTER_X,
                                             .b = REGISTER_A,
                                             .c = REGISTER_G,
                                             .alpha = downpour_rate(s, d->epoch),
                                             .l1 = penalties->l1});
    programs_return(program);
}

void downpour_step(struct downpour *d, const struct downpour_settings *s,
                   const struct downpour_data *data, const struct optimizer_settings *penalties,
                   double loss_sum, struct bytes *program) {
    struct evaluation_parts parts = downpour_parts(d, s, data);
    uint64_t rows = downpour_rows(&parts, data);
    add_step(d, s, data, rows, penalties, program);
    d->rows = (d->minibatch ? d->rows : 0) + rows;
    d->loss_sum = (d->minibatch ? d->loss_sum : 0) + loss_sum;
    d->done++;
    if (++d->minibatch < downpour_minibatches(s, data, d->epoch))
        return;
    d->minibatch = 0;
    d->epoch++;
    if (s->measures)
        d->stage = DOWNPOUR_HOLDOUT;
    else if (d->epoch >= s->epochs)
        d->stage = DOWNPOUR_ENDED;
}

static bool patience_is_over(const struct downpour *d, uint32_t patience) {
    return patience && d->best_epoch && d->epoch - d->best_epoch >= patience;
}

static void swap_with_best(struct bytes *program) {
    program_add(program,
                &(struct operation){.code = OPERATION_SWAP, .a = REGISTER_X, .b = REGISTER_BEST});
}

/* x goes to register best by changing names, and comes back from t, which is the same. */
void downpour_measured(struct downpour *d, const struct downpour_settings *s, uint32_t patience,
                       struct held held, struct bytes *program) {
    d->holdout = held;
    if (patience && (!d->best_epoch || held.loss < d->best.loss)) {
        d->best = held;
        d->best_epoch = d->epoch;
        swap_with_best(program);
        program_add(program,
                    &(struct operation){
                        .code = OPERATION_ADD, .a = REGISTER_X, .b = REGISTER_T, .c = REGISTER_T});
    }
    bool ended = d->epoch >= s->epochs || patience_is_over(d, patience);
    d->stage = ended ? DOWNPOUR_ENDED : DOWNPOUR_MINIBATCH;
}

bool downpour_stopped_early(const struct downpour *d, const struct downpour_settings *s) {
    return d->stage >= DOWNPOUR_ENDED && d->epoch < s->epochs;
}

void downpour_finish(struct downpour *d, struct bytes *program) {
    bool is_best = d->best_epoch == d->epoch && d->minibatch == 0;
    if (!d->best_epoch || is_best || d->at_best)
        return;
    swap_with_best(program);
    d->at_best = true;
    programs_return(program);
}

/* Bugs that the simulator must find. */
static void mutate(struct downpour *d, const struct downpour_settings *s) {
    if (mutant(ADAGRAD_TWICE) && d->minibatch) {
        d->minibatch--;
        d->done--;
    }
    if (mutant(EPOCH_ANEW)) {
        d->done -= d->minibatch;
        d->minibatch = 0;
    }
    if (mutant(HOLDOUT_SKIPPED) && d->stage == DOWNPOUR_HOLDOUT)
        d->stage = d->epoch < s->epochs ? DOWNPOUR_MINIBATCH : DOWNPOUR_ENDED;
}

void downpour_begin(struct downpour *d, const struct downpour_settings *s, uint32_t patience,
                    struct bytes *program) {
    if (d->at_best)
        swap_with_best(program);
    d->at_best = d->closing = false;
    if (d->stage == DOWNPOUR_ENDED && d->epoch < s->epochs && !patience_is_over(d, patience))
        d->stage = DOWNPOUR_MINIBATCH;
    if (d->stage == DOWNPOUR_MINIBATCH && !d->minibatch && d->epoch >= s->epochs)
        d->stage = DOWNPOUR_ENDED;
    mutate(d, s);
    programs_return(program);
}
