#include "shard/registers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/mutant.h"
#include "shard/covariance.h"
#include "shard/factor.h"
#include "wire/bulk.h"

enum { ALIGNMENT = 64, ELEMENTS_A_BEAT = 1 << 20 };

static size_t vector_bytes(size_t count) {
    return (count ? count : 1) * sizeof(double);
}

static size_t history_bytes(const struct registers *registers) {
    size_t bytes = 2 * registers->slots * registers->history_stride;
    return bytes ? bytes : 1;
}

static size_t window_bytes(const struct registers *registers) {
    return registers->rows.slots * registers->history_stride;
}

static void make_vector(struct registers *registers, uint8_t number) {
    struct vector *vector = &registers->vector[number];
    size_t bytes = vector_bytes(registers->count);
    /* Replicas on this host read t where it lies. x and best are swapped with t, and where
     * directions are common d is, so they are shared too. */
    bool direction = number == REGISTER_D && registers->rows.slots > 0;
    bool shared =
        direction || number == REGISTER_X || number == REGISTER_T || number == REGISTER_BEST;
    assert(!vector->elements && registers_have(registers, number));
    vector->segment = shared ? segment_new(bytes) : NULL;
    vector->elements = shared ? vector->segment->start : memory_map(bytes);
}

size_t registers_sums(const struct registers *registers, enum sums_layout layout) {
    struct sums_sizes sizes = evaluation_sums_sizes(&registers->layout, registers->precondition,
                                                    registers->block_columns);
    sizes.rows = registers->rows.total;
    sizes.outputs = registers->rows.outputs;
    return (size_t)evaluation_sums_range(layout, &sizes, registers->first, registers->count).count;
}

size_t registers_factor_order(const struct registers *registers) {
    if (registers->first || !registers->count)
        return 0;
    return registers->precondition == PRECONDITION_LEADING ? registers->block_columns
                                                           : registers->count;
}

static void make_vectors(struct registers *registers, const struct message_shard_setup *setup) {
    size_t count = setup->count, bytes = count * history_size(setup->history_type);
    registers->count = count;
    registers->slots = setup->slots;
    registers->history_type = setup->history_type;
    registers->keeps_best = setup->keeps_best;
    registers->history_stride = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    registers->precondition = setup->hessian.precondition;
    registers->block_columns = setup->hessian.block_columns;
    registers->boxed = setup->box.used;
    registers->adagrad = setup->adagrad;
    registers->history = memory_map(history_bytes(registers));
    registers->window = memory_map(window_bytes(registers));
    /* The most sums of any evaluation. Without a preconditioner there is no triangle. */
    size_t most = registers->count, rows = registers_sums(registers, SUMS_ROWS);
    size_t triangle = registers->precondition ? registers_sums(registers, SUMS_TRIANGLE) : 0;
    most = triangle > most ? triangle : most;
    registers->sum_length = rows > most ? rows : most;
    registers->sum = memory_map(vector_bytes(registers->sum_length));
    registers->sum_used = 0;
    for (uint8_t i = 0; i < REGISTERS; i++) {
        if (registers_have(registers, i))
            make_vector(registers, i);
        heartbeat();
    }
    if (registers->adagrad && count < UINT32_MAX) {
        touched_init(&registers->sum_touched, count);
        touched_init(&registers->gradient_touched, count);
    }
}

int registers_clear_sum(struct registers *registers, enum sums_layout layout) {
    assert(registers_sums(registers, layout) <= registers->sum_length);
    if (registers->scaling.used)
        memset(registers->scaling.bias_sum, 0,
               registers->scaling.biases * sizeof *registers->scaling.bias_sum);
    return registers->backend->clear_sum(registers, layout);
}

/* The history needs no zeros: a slot is read only after it was written. Nor do vectors that are on
 * a device: what the host has of them is written before it is read. */
static void clear_vectors(struct registers *registers) {
    touched_all(&registers->sum_touched);
    touched_all(&registers->gradient_touched);
    registers->trial_is_x = registers->unsettled = false;
    registers_set_covariance(registers, NULL);
    if (!mutant(FACTOR_KEPT))
        registers_set_factor(registers, NULL);
    if (registers->device)
        return;
    heartbeat_clear(registers->sum,
                    registers_sums(registers, SUMS_PARAMETERS) * sizeof *registers->sum);
    for (uint8_t i = 0; i < REGISTERS; i++)
        if (registers_have(registers, i))
            heartbeat_clear(registers->vector[i].elements, vector_bytes(registers->count));
}

/* Keeps what says where vectors are to be: the backend and its device. */
static void drop_vectors(struct registers *registers) {
    const struct shard_backend *backend = registers->backend;
    struct device *device = registers->device;
    if (backend && backend->close)
        backend->close(registers);
    for (uint8_t i = 0; i < REGISTERS; i++) {
        if (registers->vector[i].segment)
            segment_free(registers->vector[i].segment);
        else if (registers->vector[i].elements)
            memory_unmap(registers->vector[i].elements, vector_bytes(registers->count));
        heartbeat();
    }
    if (registers->sum)
        memory_unmap(registers->sum, vector_bytes(registers->sum_length));
    if (registers->history)
        memory_unmap(registers->history, history_bytes(registers));
    memory_unmap(registers->window, window_bytes(registers));
    touched_release(&registers->sum_touched);
    touched_release(&registers->gradient_touched);
    rows_release(&registers->rows);
    free(registers->exponents);
    free(registers->extra_bits);
    scaling_release(&registers->scaling);
    limits_release(&registers->limits);
    factor_drop(registers->factor);
    covariance_free(registers->covariance);
    *registers = (struct registers){.backend = backend, .device = device};
}

void registers_release(struct registers *registers) {
    drop_vectors(registers);
    *registers = (struct registers){0};
}

static bool same_shape(const struct registers *registers, const struct message_shard_setup *setup,
                       const struct layout *layout) {
    return registers->sum && registers->count == setup->count && registers->slots == setup->slots &&
           registers->history_type == setup->history_type &&
           registers->keeps_best == (bool)setup->keeps_best &&
           registers->precondition == setup->hessian.precondition &&
           registers->block_columns == setup->hessian.block_columns &&
           registers->boxed == (bool)setup->box.used &&
           registers->adagrad == (bool)setup->adagrad && registers->first == setup->first &&
           registers->rows.slots == rows_slots(setup) &&
           registers->rows.total == setup->rows.total &&
           registers->rows.outputs == setup->rows.outputs &&
           layout_equal(&registers->layout, layout);
}

/* A uniform exponent is for gradients alone: sums of second derivatives need one for each column.
 */
static bool has_exponents(const struct registers *registers) {
    return !registers->uniform || registers->precondition;
}

void registers_use(struct registers *registers, const struct shard_backend *backend,
                   struct device *device) {
    assert((backend == &shard_on_host) == !device);
    if (registers->backend && registers->backend->close)
        registers->backend->close(registers);
    registers->backend = backend;
    registers->device = device;
}

int registers_set_up(struct registers *registers, const struct message_shard_setup *setup) {
    struct layout layout;
    const char *fault = layout_decode(setup->layout.data, setup->layout.length, &layout);
    if (setup->history_type > HISTORY_DOUBLE)
        fault = "a type of history that this shard does not know";
    if (fault)
        return error_set(ERROR_INTERNAL, "set-up: %s", fault);
    if (!registers->backend)
        registers_use(registers, &shard_on_host, NULL);
    bool same = same_shape(registers, setup, &layout);
    if (!same)
        drop_vectors(registers);
    int code = rows_set_up(&registers->rows, setup, &layout);
    if (code)
        return code;
    if (same) {
        clear_vectors(registers);
    } else {
        registers->first = setup->first;
        registers->layout = layout;
        make_vectors(registers, setup);
    }
    registers->weight_sum = setup->weight_sum;
    registers->tiles = setup->rows.tiles;
    registers->regularized_count =
        layout_spans(&layout, true, setup->first, setup->count, registers->regularized);
    registers->biases_count =
        layout_spans(&layout, false, setup->first, setup->count, registers->biases);
    layout_start(&layout, setup->first, setup->count, registers->vector[REGISTER_X].elements);
    registers->uniform = setup->uniform;
    registers->exponent = (int)setup->uniform_exponent;
    registers->exponents_set = 0;
    scaling_set_up(&registers->scaling, setup, &layout);
    limits_set_up(&registers->limits, setup, &layout);
    registers->starts = setup->start;
    registers->start_set = 0;
    free(registers->exponents);
    registers->exponents = has_exponents(registers)
                               ? memory_new(registers->count, sizeof *registers->exponents)
                               : NULL;
    free(registers->extra_bits);
    registers->extra_bits =
        setup->hessian.extra_bits.length ? memory_new(setup->hessian.extra_bits.length, 1) : NULL;
    if (setup->hessian.extra_bits.length)
        memcpy(registers->extra_bits, setup->hessian.extra_bits.data,
               setup->hessian.extra_bits.length);
    assert(!registers->exponents_set && !registers->start_set);
    return registers->backend->open ? registers->backend->open(registers) : 0;
}

void registers_settle(struct registers *registers) {
    if (!registers->unsettled)
        return;
    assert(registers->trial_is_x && registers->gradient_touched.some && !registers->device);
    heartbeat_copy(registers->vector[REGISTER_X].elements, registers->vector[REGISTER_T].elements,
                   registers->count * sizeof(double));
    /* The elements of the gradient that were not touched last become 0. */
    double *g = registers->vector[REGISTER_G].elements;
    const struct touched *touched = &registers->gradient_touched;
    for (size_t i = 0; i < touched->count; i++) {
        if (i % ELEMENTS_A_BEAT == 0)
            heartbeat();
        g[i] = touched_has(touched, i) ? g[i] : 0;
    }
    registers->unsettled = false;
}

int registers_pull(struct registers *registers, uint8_t number, size_t offset, size_t count) {
    assert(registers_have(registers, number) && offset + count <= registers->count);
    if (number == REGISTER_X || number == REGISTER_G)
        registers_settle(registers);
    return registers->backend->pull ? registers->backend->pull(registers, number, offset, count)
                                    : 0;
}

int registers_push(struct registers *registers, uint8_t number, size_t offset, size_t count) {
    assert(registers_have(registers, number) && offset + count <= registers->count);
    assert(!registers->unsettled);
    registers->trial_is_x &= number != REGISTER_X && number != REGISTER_T;
    if (number == REGISTER_G)
        touched_all(&registers->gradient_touched);
    return registers->backend->push ? registers->backend->push(registers, number, offset, count)
                                    : 0;
}

int registers_pull_pair(struct registers *registers, uint32_t slot) {
    assert(slot < registers->slots);
    return registers->backend->pull_pair ? registers->backend->pull_pair(registers, slot) : 0;
}

int registers_push_pair(struct registers *registers, uint32_t slot) {
    assert(slot < registers->slots);
    return registers->backend->push_pair ? registers->backend->push_pair(registers, slot) : 0;
}

int registers_pull_direction(struct registers *registers, uint32_t slot) {
    assert(slot < registers->rows.slots);
    return registers->backend->pull_direction ? registers->backend->pull_direction(registers, slot)
                                              : 0;
}

int registers_push_direction(struct registers *registers, uint32_t slot) {
    assert(slot < registers->rows.slots);
    return registers->backend->push_direction ? registers->backend->push_direction(registers, slot)
                                              : 0;
}

int registers_load(struct registers *registers) {
    assert(registers_complete(registers));
    return registers->backend->load ? registers->backend->load(registers) : 0;
}

int registers_set_exponents(struct registers *registers, uint64_t first, const int16_t *exponents,
                            uint64_t count) {
    if (!has_exponents(registers))
        return error_set(ERROR_INTERNAL, "exponents came, but all columns have one");
    /* Pieces come in order, so the elements that are lacking are the last ones. */
    while (registers->exponents_set < registers->count) {
        if (registers->exponents_set % ELEMENTS_A_BEAT == 0)
            heartbeat();
        uint64_t number =
            layout_exponent_of(&registers->layout, registers->first + registers->exponents_set);
        if (number < first)
            return error_set(ERROR_INTERNAL, "exponents from %llu on are missing",
                             (unsigned long long)number);
        if (number - first >= count)
            break;
        registers->exponents[registers->exponents_set++] = exponents[number - first];
    }
    return 0;
}

int registers_set_start(struct registers *registers, uint64_t first, const double *elements,
                        uint64_t count) {
    if (!registers->starts)
        return error_set(ERROR_INTERNAL, "a starting point came, but zero is where to start");
    /* Pieces come in order, so the elements that are lacking are the last ones. */
    uint64_t next = registers->first + registers->start_set;
    if (next < first)
        return error_set(ERROR_INTERNAL, "elements of the starting point from %llu on are missing",
                         (unsigned long long)next);
    double *x = registers->vector[REGISTER_X].elements;
    while (registers->start_set < registers->count && next - first < count) {
        double element = elements[next++ - first];
        if (!isfinite(element))
            return error_set(ERROR_INTERNAL, "element %llu of the starting point is not finite",
                             (unsigned long long)(next - 1));
        x[registers->start_set++] = element;
    }
    return 0;
}

int registers_fill(struct registers *registers, uint8_t number, uint64_t first,
                   const double *elements, uint64_t count) {
    if (!registers_hold(registers, number, first, count))
        return error_set(ERROR_INTERNAL, "elements came that this shard has no place for");
    size_t offset = (size_t)(first - registers->first);
    if (count)
        heartbeat_copy(registers->vector[number].elements + offset, elements,
                       count * sizeof *elements);
    return registers_push(registers, number, offset, (size_t)count);
}

bool registers_hold(const struct registers *registers, uint8_t number, uint64_t first,
                    uint64_t count) {
    uint64_t offset = first - registers->first; /* wraps if it is before the range */
    return registers_have(registers, number) && offset <= registers->count &&
           count <= registers->count - offset;
}

bool registers_complete(const struct registers *registers) {
    return (!has_exponents(registers) || registers->exponents_set == registers->count) &&
           scaling_is_complete(&registers->scaling) && limits_are_complete(&registers->limits) &&
           (!registers->starts || registers->start_set == registers->count);
}

void registers_set_factor(struct registers *registers, struct factor *factor) {
    assert(!factor || (registers_precondition(registers) &&
                       factor->order == registers_factor_order(registers)));
    factor_drop(registers->factor);
    registers->factor = factor;
}

void registers_set_covariance(struct registers *registers, struct covariance *covariance) {
    covariance_free(registers->covariance);
    registers->covariance = covariance;
}

uint64_t registers_factor_serial(const struct registers *registers) {
    return registers->factor ? registers->factor->serial : 0;
}

void registers_swap(struct registers *registers, uint8_t a, uint8_t b) {
    assert(registers_have(registers, a) && registers_have(registers, b));
    registers_settle(registers);
    struct vector held = registers->vector[a];
    registers->vector[a] = registers->vector[b];
    registers->vector[b] = held;
}

static size_t history_offset(const struct registers *registers, uint32_t slot, uint32_t part) {
    assert(slot < registers->slots && part < 2);
    return (2 * (size_t)slot + part) * registers->history_stride;
}

void *registers_s(const struct registers *registers, uint32_t slot) {
    return registers->history + history_offset(registers, slot, 0);
}

void *registers_q(const struct registers *registers, uint32_t slot) {
    return registers->history + history_offset(registers, slot, 1);
}

void *registers_stored(const struct registers *registers, uint32_t slot, uint32_t part) {
    uint8_t *history = registers->resident ? registers->resident->history : registers->history;
    return history + history_offset(registers, slot, part);
}

static size_t window_offset(const struct registers *registers, uint32_t slot) {
    assert(slot < registers->rows.slots);
    return slot * registers->history_stride;
}

void *registers_direction(const struct registers *registers, uint32_t slot) {
    return registers->window + window_offset(registers, slot);
}

void *registers_stored_direction(const struct registers *registers, uint32_t slot) {
    uint8_t *window = registers->resident ? registers->resident->window : registers->window;
    return window + window_offset(registers, slot);
}

int slice_has_changed(void) {
    return error_set(ERROR_DATA,
                     "a slice of sums was changed by its replica after this shard had taken it");
}
