#include "shard/limits.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum { ELEMENTS_A_BEAT = 1 << 20 };

void limits_release(struct limits *limits) {
    free(limits->lasso);
    free(limits->low);
    free(limits->high);
    *limits = (struct limits){0};
}

static void set_element(struct limits *limits, const struct column_limit *limit) {
    assert(limits->set < limits->count);
    limits->lasso[limits->set] = limit->lasso;
    limits->low[limits->set] = limit->low;
    limits->high[limits->set] = limit->high;
    if (limits->set++ % ELEMENTS_A_BEAT == 0)
        heartbeat();
}

/* What is no weight of a column is free: nobody sends limits for it. */
static void set_others(struct limits *limits) {
    static const struct column_limit none = {0, -INFINITY, INFINITY};
    while (limits->set < limits->count && limits->first + limits->set >= limits->weights)
        set_element(limits, &none);
}

void limits_set_up(struct limits *limits, const struct message_shard_setup *setup,
                   const struct layout *layout) {
    limits_release(limits);
    if (!setup->box.limited)
        return;
    const struct layout_tensor *weights = &layout->tensor[0];
    *limits = (struct limits){.used = true,
                              .first = setup->first,
                              .count = setup->count,
                              .weights = weights->rows * weights->columns,
                              .outputs = weights->columns,
                              .lasso = memory_new(setup->count, sizeof *limits->lasso),
                              .low = memory_new(setup->count, sizeof *limits->low),
                              .high = memory_new(setup->count, sizeof *limits->high)};
    set_others(limits);
}

/* Pieces come in order, so the elements that are lacking are the last ones. */
int limits_set_columns(struct limits *limits, uint64_t first, const struct column_limit *columns,
                       uint64_t count) {
    if (!limits->used)
        return error_set(ERROR_INTERNAL, "limits came, but columns have none");
    while (limits->set < limits->count && limits->first + limits->set < limits->weights) {
        uint64_t column = (limits->first + limits->set) / limits->outputs;
        if (column < first)
            return error_set(ERROR_INTERNAL, "limits from column %llu on are missing",
                             (unsigned long long)column);
        if (column - first >= count)
            break;
        set_element(limits, &columns[column - first]);
    }
    set_others(limits);
    return 0;
}

bool limits_are_complete(const struct limits *limits) {
    return limits->set == limits->count;
}

struct box limits_box(const struct limits *limits, size_t first, double l1) {
    assert(limits->used && first <= limits->count);
    return (struct box){l1, limits->lasso + first, limits->low + first, limits->high + first};
}
