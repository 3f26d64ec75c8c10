/* Registers in the memory of a device: takes it, and moves to it and back. */
#include <stdlib.h>

#include "base/memory.h"
#include "shard/backend.h"
#include "shard/resident.h"
#include "shard/sweep_kernel.h"

extern const struct kernel kernel_merge_slice;

/* A slice comes in parts of so many elements. */
enum { PART_ELEMENTS = 1 << 20, ALIGNMENT = 256, MERGE_BLOCKS_MAX = 4096 };

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

static void lay_out_frame(struct registers *registers, struct arrangement *arrangement) {
    struct resident *resident = registers->resident;
    size_t count = registers->count, size = sizeof(double);
    resident->mean = lay_out(arrangement, count, size);
    resident->scale = lay_out(arrangement, count, size);
    resident->penalty = lay_out(arrangement, count, size);
    resident->root = lay_out(arrangement, count, size);
    resident->bias_gradient = lay_out(arrangement, registers->frame.outputs, size);
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
    resident->slice =
        lay_out(&arrangement, part_elements(registers), sizeof(int64_t) + sizeof(uint32_t));
    resident->yields = lay_out(&arrangement, SCALARS_MAX, sizeof *resident->yields);
    if (registers->exponents)
        resident->exponents = lay_out(&arrangement, registers->count, sizeof *resident->exponents);
    if (registers->frame.used)
        lay_out_frame(registers, &arrangement);
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
    const struct vector *vector = &registers->vector[number];
    return get(registers, vector->elements + offset, vector->resident + offset,
               count * sizeof(double));
}

static int push(struct registers *registers, uint8_t number, size_t offset, size_t count) {
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
        get(registers, registers_s(registers, slot, 0), resident_pair(registers, slot, 0), bytes);
    return code ? code
                : get(registers, registers_q(registers, slot, 0), resident_pair(registers, slot, 1),
                      bytes);
}

static int push_pair(struct registers *registers, uint32_t slot) {
    size_t bytes = stored_bytes(registers);
    int code =
        put(registers, resident_pair(registers, slot, 0), registers_s(registers, slot, 0), bytes);
    return code ? code
                : put(registers, resident_pair(registers, slot, 1), registers_q(registers, slot, 0),
                      bytes);
}

static int load(struct registers *registers) {
    const struct resident *resident = registers->resident;
    const struct frame *frame = &registers->frame;
    size_t bytes = registers->count * sizeof(double);
    int code = push(registers, REGISTER_X, 0, registers->count);
    if (!code && registers->exponents)
        code = put(registers, resident->exponents, registers->exponents,
                   registers->count * sizeof *registers->exponents);
    if (code || !frame->used)
        return code;
    code = put(registers, resident->mean, frame->mean, bytes);
    if (!code)
        code = put(registers, resident->scale, frame->scale, bytes);
    if (!code)
        code = put(registers, resident->penalty, frame->penalty, bytes);
    return code ? code : put(registers, resident->root, frame->root, bytes);
}

/* ---- the sum ---- */

static int clear_sum(struct registers *registers, enum sums_layout layout) {
    int64_t *sum = registers->resident->sum;
    return device_fill(registers->device, QUEUE_COMPUTE, sum, 0,
                       registers_sums(registers, layout) * sizeof *sum);
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

static int fold_dense(struct registers *registers, size_t count, const int64_t *values,
                      bool first) {
    const struct resident *resident = registers->resident;
    if (first)
        return put(registers, resident->sum, values, count * sizeof *values);
    int code = 0;
    for (size_t at = 0, part; at < count && !code; at += part) {
        part = count - at < PART_ELEMENTS ? count - at : PART_ELEMENTS;
        code = put(registers, resident->slice, values + at, part * sizeof *values);
        if (!code)
            code = merge(registers, resident->sum + at, NULL, part);
    }
    return code;
}

/* An offset may come several times, also in several parts. */
static int fold_sparse(struct registers *registers, const struct slice *slice) {
    const struct resident *resident = registers->resident;
    const uint32_t *from = slice->data;
    const int64_t *values = slice_values(slice);
    size_t most = part_elements(registers);
    uint32_t *offsets = (uint32_t *)(void *)(resident->slice + most * sizeof *values);
    int code = 0;
    for (uint64_t at = 0, part; at < slice->entries && !code; at += part) {
        part = slice->entries - at < most ? slice->entries - at : most;
        code = put(registers, resident->slice, values + at, part * sizeof *values);
        if (!code)
            code = put(registers, offsets, from + at, part * sizeof *from);
        if (!code)
            code = merge(registers, resident->sum, offsets, part);
    }
    return code;
}

static int fold(struct registers *registers, size_t count, const struct slice *slice, bool first) {
    int64_t *sum = registers->resident->sum;
    int code = 0;
    if (slice->encoding == STAGE_DENSE && count)
        return fold_dense(registers, count, slice->data, first);
    if (first)
        code = device_fill(registers->device, QUEUE_COMPUTE, sum, 0, count * sizeof *sum);
    if (!code && slice->encoding == STAGE_SPARSE)
        code = fold_sparse(registers, slice);
    return code;
}

const struct shard_backend shard_on_device = {
    .open = open,
    .close = close,
    .load = load,
    .run = resident_run,
    .clear_sum = clear_sum,
    .fold = fold,
    .pull = pull,
    .push = push,
    .pull_pair = pull_pair,
    .push_pair = push_pair,
};
