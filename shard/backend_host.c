/* Registers in the memory of the host: nothing has to be moved. */
#include "base/clock.h"
#include "numeric/fixed.h"
#include "shard/backend.h"
#include "shard/interpreter.h"
#include "wire/bulk.h"

static int nothing(struct registers *registers) {
    (void)registers;
    return 0;
}

static void close(struct registers *registers) {
    (void)registers;
}

static int run(const struct operation_list *list, struct registers *registers,
               const struct bounds *bounds, struct bytes *scalars) {
    interpreter_run(list, registers, bounds, scalars);
    return 0;
}

static int clear_sum(struct registers *registers, enum sums_layout layout) {
    heartbeat_clear(registers->sum, registers_sums(registers, layout) * sizeof *registers->sum);
    return 0;
}

/* The entries may come in any order: integer sums do not depend on it. */
static void add_sparse(const struct slice *slice, int64_t *sum) {
    const uint32_t *offsets = slice->data;
    const int64_t *values = slice_values(slice);
    for (uint64_t i = 0; i < slice->entries; i++)
        fixed_merge(1, sum + offsets[i], values + i);
}

static int fold(struct registers *registers, size_t count, const struct slice *slice, bool first) {
    int64_t *sum = registers->sum;
    bool dense = slice->encoding == STAGE_DENSE && count;
    if (first && dense)
        heartbeat_copy(sum, slice->data, count * sizeof *sum);
    else if (first)
        heartbeat_clear(sum, count * sizeof *sum);
    else if (dense)
        fixed_merge(count, sum, slice->data);
    if (slice->encoding == STAGE_SPARSE && slice->entries)
        add_sparse(slice, sum);
    return 0;
}

static int no_move(struct registers *registers, uint8_t number, size_t offset, size_t count) {
    (void)registers, (void)number, (void)offset, (void)count;
    return 0;
}

static int no_pair(struct registers *registers, uint32_t slot) {
    (void)registers, (void)slot;
    return 0;
}

const struct shard_backend shard_on_host = {
    .open = nothing,
    .close = close,
    .load = nothing,
    .run = run,
    .clear_sum = clear_sum,
    .fold = fold,
    .pull = no_move,
    .push = no_move,
    .pull_pair = no_pair,
    .push_pair = no_pair,
};
