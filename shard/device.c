/* Registers in the memory of a device, moves to it and back, and fused passes there: one kernel a
 * pass, which takes all blocks of the range at once. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "device/device.h"
#include "shard/pass_kernel.h"
#include "shard/registers.h"

#include "shard/kernels.def"

_Static_assert(PASS_BLOCK == BLOCK_ELEMENTS, "a block of threads takes one block of the range");

/* A slice is brought to the device in parts of this many elements. */
enum { PART_ELEMENTS = 1 << 20, ALIGNMENT = 256, MERGE_BLOCKS_MAX = 4096 };

/* How many threads of a block make a sum: as many as numeric/ has lanes, for the same order of
 * additions. */
enum { ORTHANT_LANES = 8, DOT_LANES = 32 };

static size_t part_elements(const struct registers *registers) {
    return registers->sum_length < PART_ELEMENTS ? registers->sum_length : PART_ELEMENTS;
}

/* ---- memory ---- */

/* Lays arrays out one after the other: first without memory, to learn how much, then in it. */
struct arrangement {
    uint8_t *memory; /* NULL: only count */
    size_t used;
};

static void *lay_out(struct arrangement *arrangement, size_t count, size_t size) {
    void *array = arrangement->memory ? arrangement->memory + arrangement->used : NULL;
    arrangement->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return array;
}

static size_t lay_out_all(struct registers *registers, void *memory) {
    struct resident *resident = registers->resident;
    struct arrangement arrangement = {.memory = memory};
    for (uint8_t i = 0; i < REGISTERS; i++)
        if (registers_have(registers, i))
            registers->vector[i].resident = lay_out(&arrangement, registers->count, sizeof(double));
    resident->sum = lay_out(&arrangement, registers->sum_length, sizeof *resident->sum);
    size_t zeroed = arrangement.used;
    resident->history =
        lay_out(&arrangement, 2 * (size_t)registers->slots, registers->history_stride);
    resident->window = lay_out(&arrangement, registers->rows.slots, registers->history_stride);
    resident->slice =
        lay_out(&arrangement, part_elements(registers), sizeof(int64_t) + sizeof(uint32_t));
    resident->yields = lay_out(&arrangement, SCALARS_MAX, sizeof *resident->yields);
    if (registers->exponents)
        resident->exponents = lay_out(&arrangement, registers->count, sizeof *resident->exponents);
    if (registers->scaling.used) {
        size_t count = registers->count, size = sizeof(double);
        resident->mean = lay_out(&arrangement, count, size);
        resident->scale = lay_out(&arrangement, count, size);
        resident->penalty = lay_out(&arrangement, count, size);
        resident->root = lay_out(&arrangement, count, size);
        resident->bias_gradient = lay_out(&arrangement, registers->scaling.outputs, size);
    }
    if (registers->scaling.square)
        resident->square = lay_out(&arrangement, registers->count, sizeof(double));
    return memory ? zeroed : arrangement.used;
}

static void close(struct registers *registers) {
    struct resident *resident = registers->resident;
    if (!resident)
        return;
    device_delete(registers->device, resident->program);
    device_delete(registers->device, resident->memory);
    free(resident);
    registers->resident = NULL;
    for (uint8_t i = 0; i < REGISTERS; i++)
        registers->vector[i].resident = NULL;
}

static int open(struct registers *registers) {
    close(registers);
    registers->resident = memory_new(1, sizeof *registers->resident);
    struct resident *resident = registers->resident;
    int code = device_new(registers->device, lay_out_all(registers, NULL), &resident->memory);
    if (code)
        return code;
    size_t zeroed = lay_out_all(registers, resident->memory);
    return device_fill(registers->device, QUEUE_COMPUTE, resident->memory, 0, zeroed);
}

/* ---- moves ---- */

static int put(struct registers *registers, void *to, const void *from, size_t bytes) {
    return device_put(registers->device, QUEUE_COMPUTE, to, from, bytes);
}

static int get(struct registers *registers, void *to, const void *from, size_t bytes) {
    return device_get(registers->device, QUEUE_COMPUTE, to, from, bytes);
}

static int pull(struct registers *registers, uint8_t number, size_t offset, size_t count) {
    assert(registers_have(registers, number) && offset + count <= registers->count);
    const struct vector *vector = &registers->vector[number];
    return get(registers, vector->elements + offset, vector->resident + offset,
               count * sizeof(double));
}

static int push(struct registers *registers, uint8_t number, size_t offset, size_t count) {
    assert(registers_have(registers, number) && offset + count <= registers->count);
    const struct vector *vector = &registers->vector[number];
    return put(registers, vector->resident + offset, vector->elements + offset,
               count * sizeof(double));
}

static size_t stored_bytes(const struct registers *registers) {
    return registers->count * history_size(registers->history_type);
}

static int pull_pair(struct registers *registers, uint32_t slot) {
    size_t bytes = stored_bytes(registers);
    int code =
        get(registers, registers_s(registers, slot), registers_stored(registers, slot, 0), bytes);
    if (!code)
        code = get(registers, registers_q(registers, slot), registers_stored(registers, slot, 1),
                   bytes);
    return code;
}

static int push_pair(struct registers *registers, uint32_t slot) {
    size_t bytes = stored_bytes(registers);
    int code =
        put(registers, registers_stored(registers, slot, 0), registers_s(registers, slot), bytes);
    if (!code)
        code = put(registers, registers_stored(registers, slot, 1), registers_q(registers, slot),
                   bytes);
    return code;
}

static int pull_direction(struct registers *registers, uint32_t slot) {
    return get(registers, registers_direction(registers, slot),
               registers_stored_direction(registers, slot), stored_bytes(registers));
}

static int push_direction(struct registers *registers, uint32_t slot) {
    return put(registers, registers_stored_direction(registers, slot),
               registers_direction(registers, slot), stored_bytes(registers));
}

static int load(struct registers *registers) {
    const struct resident *resident = registers->resident;
    const struct scaling *scaling = &registers->scaling;
    size_t bytes = registers->count * sizeof(double);
    int code = push(registers, REGISTER_X, 0, registers->count);
    if (!code && registers->exponents)
        code = put(registers, resident->exponents, registers->exponents,
                   registers->count * sizeof *registers->exponents);
    if (!code && scaling->square)
        code = put(registers, resident->square, scaling->square, bytes);
    if (code || !scaling->used)
        return code;
    code = put(registers, resident->mean, scaling->mean, bytes);
    if (!code)
        code = put(registers, resident->scale, scaling->scale, bytes);
    if (!code)
        code = put(registers, resident->penalty, scaling->penalty, bytes);
    return code ? code : put(registers, resident->root, scaling->root, bytes);
}

/* ---- a pass ---- */

static int begin(struct registers *registers, size_t count) {
    const struct resident *resident = registers->resident;
    const struct scaling *scaling = &registers->scaling;
    assert(count <= SCALARS_MAX);
    int code = device_fill(registers->device, QUEUE_COMPUTE, resident->yields, 0,
                           count * sizeof *resident->yields);
    /* The gradient by the biases is computed on the host: scaling_read_biases(). */
    if (!code && scaling->used)
        code = put(registers, resident->bias_gradient, scaling->bias_gradient,
                   scaling->outputs * sizeof *scaling->bias_gradient);
    return code;
}

static struct pass_range range_of(const struct registers *registers) {
    const struct resident *resident = registers->resident;
    const struct scaling *scaling = &registers->scaling;
    return (struct pass_range){.count = registers->count,
                               .wide = registers->history_type == HISTORY_DOUBLE,
                               .exponent = registers->exponent,
                               .sum = resident->sum,
                               .exponents = registers->uniform ? NULL : resident->exponents,
                               .output = scaling->used ? scaling->first % scaling->outputs : 0,
                               .outputs = scaling->outputs,
                               .mean = resident->mean,
                               .scale = resident->scale,
                               .root = resident->root,
                               .bias_gradient = resident->bias_gradient};
}

static uint32_t lanes_of(uint32_t code) {
    switch (code) {
    case PASS_HISTORY:
    case PASS_WINDOW:
        return PASS_HISTORY_LANES;
    case PASS_NORM:
    case PASS_DESCENT:
    case PASS_EXCESS:
        return ORTHANT_LANES;
    default:
        return DOT_LANES;
    }
}

/* Threads of a sum begin at a multiple of their number. Sums share two phases while there are
 * threads for them; steps that make elements share one. Answers how many phases there are. */
static size_t arrange(struct pass_plan *pass, struct pass_phase *phases) {
    size_t count = 0;
    for (uint32_t i = 0; i < pass->step_count; i++) {
        struct pass_step *step = &pass->steps[i];
        bool sums = step->code >= PASS_EACH_END;
        bool goes_on = count && phases[count - 1].kind == (sums ? PASS_FOLD : PASS_EACH);
        if (sums) {
            step->lanes = lanes_of(step->code);
            uint32_t thread = goes_on ? step[-1].thread + step[-1].lanes + step->lanes - 1 : 0;
            thread -= thread % step->lanes;
            goes_on &= thread + step->lanes <= PASS_THREADS;
            step->thread = goes_on ? thread : 0;
        }
        if (!goes_on && sums)
            phases[count++] = (struct pass_phase){PASS_LANES, i, i};
        if (!goes_on)
            phases[count++] = (struct pass_phase){sums ? PASS_FOLD : PASS_EACH, i, i};
        phases[count - 1].end = i + 1;
        if (sums)
            phases[count - 2].end = i + 1;
    }
    return count;
}

/* Memory of the device for `bytes` of a pass; it grows by more than is asked for, so that few
 * passes wait for memory. */
static int make_pass_room(struct registers *registers, size_t bytes) {
    struct resident *resident = registers->resident;
    if (bytes <= resident->program_bytes)
        return 0;
    device_delete(registers->device, resident->program);
    resident->program = NULL;
    resident->program_bytes = 0;
    int code = device_new(registers->device, 2 * bytes, &resident->program);
    resident->program_bytes = code ? 0 : 2 * bytes;
    return code;
}

/* Brings the pass to the device: steps, terms, phases. */
static int put_pass(struct registers *registers, struct pass_plan *pass,
                    struct fused_pass_arguments *arguments) {
    size_t steps = pass->step_count * sizeof *pass->steps;
    size_t terms = pass->term_count * sizeof *pass->terms;
    uint8_t *bytes =
        memory_new(steps + terms + 2 * pass->step_count * sizeof(struct pass_phase), 1);
    struct pass_phase *phases = (struct pass_phase *)(void *)(bytes + steps + terms);
    arguments->phases = (uint32_t)arrange(pass, phases);
    memcpy(bytes, pass->steps, steps);
    if (terms)
        memcpy(bytes + steps, pass->terms, terms);
    assert(arguments->phases && arguments->phases <= 2 * pass->step_count);
    size_t length = steps + terms + arguments->phases * sizeof *phases;
    int code = make_pass_room(registers, length);
    uint8_t *to = registers->resident->program;
    if (!code)
        code = put(registers, to, bytes, length);
    free(bytes);
    if (code)
        return code;
    arguments->steps = (const struct pass_step *)(void *)to;
    arguments->terms = (const struct pass_term *)(void *)(to + steps);
    arguments->phase = (const struct pass_phase *)(void *)(to + steps + terms);
    return 0;
}

static int run_pass(struct registers *registers, struct pass_plan *pass, struct yield *yields) {
    struct fused_pass_arguments arguments = {.range = range_of(registers),
                                             .yields = registers->resident->yields};
    uint64_t blocks = (registers->count + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    (void)yields;
    if (!pass->step_count)
        return 0;
    int code = put_pass(registers, pass, &arguments);
    return code ? code
                : device_launch(registers->device, QUEUE_COMPUTE, &kernel_fused_pass, blocks,
                                &arguments);
}

/* A block adds at most a term a tensor to a sum, or two. */
_Static_assert(PARAMETERS_MAX / BLOCK_ELEMENTS * 2 * TENSORS_MAX < EXACT_TERMS_BETWEEN_CARRIES,
               "limbs need no carries while blocks add to them");

/* Added to what operations on rows have yielded before. */
static void take_yield(const struct pass_yield *from, struct yield *yield) {
    struct exact sum = {.special = (uint8_t)from->special,
                        .pending = EXACT_TERMS_BETWEEN_CARRIES / 2};
    double max;
    memcpy(&max, &from->max, sizeof max);
    max = isfinite(max) ? max : INFINITY;
    yield->max = max > yield->max ? max : yield->max;
    memcpy(sum.limb, from->limb, sizeof sum.limb);
    exact_merge(&yield->sum, &sum);
}

/* Waits for all passes. */
static int end(struct registers *registers, struct yield *yields, size_t count) {
    struct pass_yield *from = memory_new(count, sizeof *from);
    int code = get(registers, from, registers->resident->yields, count * sizeof *from);
    for (size_t i = 0; i < count && !code; i++)
        take_yield(&from[i], &yields[i]);
    free(from);
    return code;
}

/* ---- the sum ---- */

static int clear_sum(struct registers *registers, enum sums_layout layout) {
    int64_t *sum = registers->resident->sum;
    return device_fill(registers->device, QUEUE_COMPUTE, sum, 0,
                       registers_sums(registers, layout) * sizeof *sum);
}

static int pull_sum(struct registers *registers, size_t count) {
    assert(count <= registers->sum_length);
    return get(registers, registers->sum, registers->resident->sum, count * sizeof *registers->sum);
}

static int merge(struct registers *registers, int64_t *sum, const uint32_t *offsets,
                 uint64_t count) {
    const struct merge_slice_arguments arguments = {
        .sum = sum,
        .values = (const int64_t *)(const void *)registers->resident->slice,
        .offsets = offsets,
        .count = count};
    uint64_t blocks = (count + kernel_merge_slice.threads - 1) / kernel_merge_slice.threads;
    return device_launch(registers->device, QUEUE_COMPUTE, &kernel_merge_slice,
                         blocks < MERGE_BLOCKS_MAX ? blocks : MERGE_BLOCKS_MAX, &arguments);
}

static int fold_dense(struct registers *registers, const struct slice *slice) {
    const struct resident *resident = registers->resident;
    const int64_t *values = slice->values;
    int code = 0;
    for (size_t at = 0, part; at < slice->entries && !code; at += part) {
        part = slice->entries - at < PART_ELEMENTS ? slice->entries - at : PART_ELEMENTS;
        code = put(registers, resident->slice, values + at, part * sizeof *values);
        if (!code)
            code = merge(registers, resident->sum + slice->first + at, NULL, part);
    }
    return code;
}

/* An offset may come several times, also in several parts. */
static int fold_sparse(struct registers *registers, const struct slice *slice) {
    const struct resident *resident = registers->resident;
    const uint32_t *from = slice->offsets;
    const int64_t *values = slice->values;
    size_t most = part_elements(registers);
    uint32_t *offsets = (uint32_t *)(void *)(resident->slice + most * sizeof *values);
    int code = 0;
    for (uint64_t at = 0, part; at < slice->entries && !code; at += part) {
        part = slice->entries - at < most ? slice->entries - at : most;
        code = put(registers, resident->slice, values + at, part * sizeof *values);
        if (!code)
            code = put(registers, offsets, from + at, part * sizeof *from);
        if (!code)
            code = merge(registers, resident->sum + slice->first, offsets, part);
    }
    return code;
}

static int fold(struct registers *registers, size_t count, const struct slice *slice, bool first) {
    int64_t *sum = registers->resident->sum;
    int code = 0;
    assert(count <= registers->sum_length);
    bool dense = !slice->offsets && slice->entries;
    if (first && dense && slice->entries == count)
        return put(registers, sum, slice->values, count * sizeof *sum);
    if (first)
        code = device_fill(registers->device, QUEUE_COMPUTE, sum, 0, count * sizeof *sum);
    if (!code && dense)
        code = fold_dense(registers, slice);
    if (!code && slice->offsets)
        for (uint64_t i = 0; i < slice->entries && !code; i++)
            if (slice_offset(slice, i) >= count - slice->first)
                code = slice_has_changed();
    if (!code && slice->offsets)
        code = fold_sparse(registers, slice);
    return code;
}

const struct shard_backend shard_on_device = {
    .open = open,
    .close = close,
    .load = load,
    .begin = begin,
    .run_pass = run_pass,
    .end = end,
    .clear_sum = clear_sum,
    .pull_sum = pull_sum,
    .fold = fold,
    .pull = pull,
    .push = push,
    .pull_pair = pull_pair,
    .push_pair = push_pair,
    .pull_direction = pull_direction,
    .push_direction = push_direction,
};
