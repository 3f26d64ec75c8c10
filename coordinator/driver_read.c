/* Reading the model: the optimizer's answer, slice by slice, one at a time, so that memory stays
 * bounded; then the errors of its estimates, if the run has them, and the curvature pairs that are
 * kept, each vector formed in t first. All of it is of L-BFGS, in which every run ends: an
 * optimizer that came last would have to say what is read of it. */
#include <assert.h>

#include "base/error.h"
#include "coordinator/driver.h"
#include "wire/program.h"

#define SLICE_ELEMENTS (1u << 18)

uint32_t coordinator_pairs_kept(const struct coordinator *c) {
    uint32_t pairs = c->driver->optimizer.lbfgs.history.pairs, most = c->settings.pairs_kept;
    assert(pairs <= HISTORY_MAX);
    return pairs < most ? pairs : most;
}

/* After the model. They are in registers that what forms pairs overwrites, so they come first. */
static uint32_t error_vectors(const struct coordinator *c, enum slice_vector *vector) {
    const struct summary_found *found = &c->driver->optimizer.lbfgs.summary.found;
    uint32_t count = 0;
    if (!found->made)
        return 0;
    vector[count++] = SLICE_VARIANCE;
    if (c->settings.optimizer.l2 > 0)
        vector[count++] = SLICE_SAMPLING;
    if (found->robust)
        vector[count++] = SLICE_ROBUST;
    if (found->aliased)
        vector[count++] = SLICE_ESTIMATE;
    return count;
}

static uint32_t error_vector_count(const struct coordinator *c) {
    enum slice_vector vector[SLICE_VECTORS];
    return error_vectors(c, vector);
}

static uint32_t pair_vectors(const struct coordinator *c) {
    return 2 * coordinator_pairs_kept(c);
}

static enum slice_vector vector_read(const struct coordinator *c) {
    enum slice_vector of_errors[SLICE_VECTORS];
    uint32_t vector = c->driver->read_vector, errors = error_vectors(c, of_errors);
    assert(c->phase == PHASE_READING && vector <= errors + pair_vectors(c));
    if (vector > errors)
        return SLICE_PAIR;
    return vector ? of_errors[vector - 1] : SLICE_MODEL;
}

static uint8_t register_read(const struct coordinator *c) {
    if (c->driver->read_gradient)
        return REGISTER_G;
    switch (vector_read(c)) {
    case SLICE_MODEL:
        return lbfgs_answer_register(&c->driver->optimizer.lbfgs);
    case SLICE_VARIANCE:
        return REGISTER_D;
    case SLICE_SAMPLING:
        return REGISTER_PG;
    case SLICE_ROBUST:
        return REGISTER_PH;
    case SLICE_ESTIMATE:
        return REGISTER_H;
    case SLICE_PAIR:
    case SLICE_GRADIENT:
    case SLICE_VECTORS:
        break;
    }
    return REGISTER_T;
}

/* G is the gradient at x. No register has the gradient at an earlier best point. */
static bool wants_gradient(const struct coordinator *c) {
    return c->settings.optimizer.limited && !c->driver->read_vector && !c->driver->read_gradient &&
           register_read(c) == REGISTER_X;
}

/* The shard that has the next element is asked for as much as one slice may hold. */
void driver_ask_slice(struct coordinator *c, struct output *out) {
    assert(c->phase == PHASE_READING && c->driver->read < c->parameters);
    for (uint32_t i = 0; i < c->settings.shards; i++) {
        uint64_t first, count;
        coordinator_range(c, i, &first, &count);
        if (c->driver->read < first || c->driver->read >= first + count)
            continue;
        uint64_t left = first + count - c->driver->read;
        struct message message = {.type = MESSAGE_READ};
        message.read = (struct message_read){
            .register_ = register_read(c),
            .first = c->driver->read,
            .count = left < SLICE_ELEMENTS ? left : SLICE_ELEMENTS,
        };
        roster_send(&c->roster, i, message, out);
    }
}

void driver_read(struct coordinator *c, struct output *out) {
    assert(reason_has_model(optimizer_reason(&c->driver->optimizer)));
    c->phase = PHASE_READING;
    c->driver->read_vector = 0;
    c->driver->read_gradient = false;
    c->driver->read = 0;
    driver_ask_slice(c, out);
}

/* t = 1·s + 0·y or 0·s + 1·y, as a direction from a gradient of zero. */
static void form_pair(struct coordinator *c, struct output *out) {
    const struct pairs *history = &c->driver->optimizer.lbfgs.history;
    uint32_t oldest = history->pairs - coordinator_pairs_kept(c);
    uint32_t vector = c->driver->read_vector - error_vector_count(c); /* from 1 */
    assert(vector && vector <= pair_vectors(c));
    bool is_s = vector % 2;
    struct operation operation = {.code = OPERATION_DIRECTION,
                                  .a = REGISTER_T,
                                  .b = REGISTER_D,
                                  .alpha = 1,
                                  .count = 1,
                                  .slots = {history->slot[oldest + (vector - 1) / 2]},
                                  .u = {is_s ? -1 : 0},
                                  .w = {is_s ? 0 : 1}};
    bytes_clear(&c->driver->program);
    program_add(&c->driver->program, &(struct operation){.code = OPERATION_ZERO, .a = REGISTER_D});
    program_add(&c->driver->program, &operation);
    driver_send_program(c, out);
}

/* A vector is through. */
static void read_next(struct coordinator *c, struct output *out) {
    c->driver->read = 0;
    c->driver->read_gradient = wants_gradient(c);
    if (c->driver->read_gradient) {
        driver_ask_slice(c, out);
        return;
    }
    uint32_t next = ++c->driver->read_vector, errors = error_vector_count(c);
    if (next <= errors)
        driver_ask_slice(c, out);
    else if (next <= errors + pair_vectors(c))
        form_pair(c, out);
    else
        c->phase = PHASE_READ;
}

int on_slice(struct coordinator *c, uint32_t link, const struct message *message, int64_t now_ns,
             struct output *out) {
    (void)now_ns;
    assert(link < c->settings.shards);
    const struct message_slice *slice = &message->slice;
    if (c->phase != PHASE_READING || slice->first != c->driver->read ||
        slice->register_ != register_read(c)) {
        c->stale++;
        return 0;
    }
    if (slice->count == 0 || slice->count > c->parameters - slice->first)
        return error_set(ERROR_INTERNAL, "shard %u sent a slice of another length than was asked",
                         link);
    struct record *record = output_add(out, RECORD_SLICE);
    record->slice.of = c->driver->read_gradient ? SLICE_GRADIENT : vector_read(c);
    record->slice.pair_vector =
        record->slice.of == SLICE_PAIR ? c->driver->read_vector - error_vector_count(c) : 0;
    record->slice.first = slice->first;
    record->slice.count = slice->count;
    record->slice.values = message->bulk.data;
    c->driver->read += slice->count;
    assert(c->driver->read <= c->parameters);
    if (c->driver->read < c->parameters)
        driver_ask_slice(c, out);
    else
        read_next(c, out);
    return 0;
}
