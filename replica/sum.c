#include "replica/sum.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"

/* What is merged and zeroed is still in the first cache. */
#define GATHER_BLOCK 1024

void sum_init(struct sum *sum, uint64_t most) {
    *sum = (struct sum){.element = memory_map(most * sizeof *sum->element), .most = most};
}

void sum_look(struct sum *sum, uint64_t columns) {
    touched_init(&sum->columns, columns);
}

void sum_release(struct sum *sum) {
    touched_release(&sum->columns);
    memory_unmap(sum->element, sum->most * sizeof *sum->element);
}

void sum_void(struct sum *sum) {
    if (sum->state == SUM_HELD)
        sum->state = SUM_VOID;
}

/* A void sum may be of another layout, so all of it is zeroed. */
void sum_hold(struct sum *sum) {
    if (sum->state == SUM_VOID)
        memset(sum->element, 0, sum->most * sizeof *sum->element);
    if (sum->state != SUM_HELD) {
        touched_none(&sum->columns);
        sum->noted = 0;
    }
    sum->state = SUM_HELD;
}

void sum_note(struct sum *sum, const struct rows *rows) {
    struct touched *columns = &sum->columns;
    sum->noted += rows->values;
    if (rows->dense || sum->noted >= columns->count / SUM_FEW)
        touched_all(columns);
    if (!columns->some)
        return;
    for (uint32_t i = rows->start[0]; i < rows->start[rows->count]; i++)
        touched_add(columns, rows->feature[i]);
}

void sums_columns(struct sum *const *sums, unsigned count, struct touched *columns) {
    touched_none(columns);
    for (unsigned i = 0; i < count; i++)
        if (sums[i]->state == SUM_HELD)
            touched_join(columns, &sums[i]->columns);
}

/* `state` must not change here: other threads still read it for their elements. */
static void gather_block(struct sum *const *sums, unsigned sum_count, uint64_t first,
                         uint64_t count, int64_t *into) {
    bool empty = true;
    for (unsigned i = 0; i < sum_count; i++) {
        if (sums[i]->state != SUM_HELD)
            continue;
        assert(first + count <= sums[i]->most);
        int64_t *element = sums[i]->element + first;
        if (empty)
            memcpy(into, element, count * sizeof *element);
        else
            fixed_merge(count, into, element);
        memset(element, 0, count * sizeof *element);
        empty = false;
    }
    if (empty)
        memset(into, 0, count * sizeof *into);
}

void sums_gather(struct sum *const *sums, unsigned count, uint64_t first, uint64_t end,
                 int64_t *into) {
    for (uint64_t at = first; at < end; at += GATHER_BLOCK) {
        uint64_t here = end - at < GATHER_BLOCK ? end - at : GATHER_BLOCK;
        gather_block(sums, count, at, here, into + (at - first));
    }
}

/* What a sum has of some columns, one behind the other; the first sum is copied, others are added.
 */
static void take_columns(struct sum *sum, const uint32_t *column, size_t count, uint64_t weights,
                         bool first, int64_t *into) {
    for (size_t i = 0; i < count; i++) {
        int64_t *element = sum->element + column[i] * weights;
        for (uint64_t k = 0; k < weights; k++, into++) {
            if (first)
                *into = element[k];
            else
                fixed_merge_one(into, element[k]);
            element[k] = 0;
        }
    }
}

static void gather_some(struct sum *const *sums, unsigned sum_count, const uint32_t *column,
                        size_t count, uint64_t weights, int64_t *into) {
    bool first = true;
    for (unsigned i = 0; i < sum_count; i++) {
        if (sums[i]->state != SUM_HELD)
            continue;
        take_columns(sums[i], column, count, weights, first, into);
        first = false;
    }
    assert(!first); /* whose columns these are */
}

void sums_gather_columns(struct sum *const *sums, unsigned count, const struct touched *columns,
                         uint64_t weights, uint64_t end, int64_t *into) {
    uint32_t found[GATHER_BLOCK];
    size_t at = 0, here;
    uint64_t behind = columns->count * weights;
    while ((here = touched_next(columns, &at, columns->count, found, GATHER_BLOCK))) {
        gather_some(sums, count, found, here, weights, into);
        into += here * weights;
    }
    sums_gather(sums, count, behind, end, into);
}

void sums_gathered(struct sum *const *sums, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (sums[i]->state == SUM_HELD)
            sums[i]->state = SUM_ZERO;
}
