#include "replica/sum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"

/* What is merged and zeroed is still in the first cache. */
#define GATHER_BLOCK 1024

/* Columns that are looked for at a time. */
#define LIST_BLOCK 1024

static void make_room(struct sum_list *list, uint64_t count) {
    if (count <= list->capacity)
        return;
    list->capacity = count;
    list->element = memory_resize(list->element, count, sizeof *list->element);
    list->value = memory_resize(list->value, count, sizeof *list->value);
}

void sum_init(struct sum *sum, uint64_t most) {
    *sum = (struct sum){.element = memory_map(most * sizeof *sum->element), .most = most};
}

/* Where a list is made, fewer than one of SUM_FEW columns have values; one element more is written
 * over. Few lists are as long: the system gives only the pages that are written. */
void sum_look(struct sum *sum, uint64_t columns, uint64_t weights, uint64_t end) {
    assert(columns * weights <= end && end <= sum->most && end <= UINT32_MAX);
    touched_init(&sum->columns, columns);
    sum->weights = weights;
    sum->end = end;
    make_room(&sum->list, columns / SUM_FEW * weights + (end - columns * weights) + 1);
}

void sum_release(struct sum *sum) {
    touched_release(&sum->columns);
    sum_list_release(&sum->list);
    memory_unmap(sum->element, sum->most * sizeof *sum->element);
}

void sum_void(struct sum *sum) {
    if (sum->state == SUM_HELD)
        sum->state = sum->listed ? SUM_ZERO : SUM_VOID;
    sum->listed = false;
}

/* A void sum may be of another layout, so all of it is zeroed. */
void sum_hold(struct sum *sum) {
    if (sum->state == SUM_VOID)
        memset(sum->element, 0, sum->most * sizeof *sum->element);
    if (sum->state != SUM_HELD) {
        touched_none(&sum->columns);
        sum->noted = 0;
    }
    sum_unlist(sum);
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

/* ---- lists ---- */

void sum_list_release(struct sum_list *list) {
    free(list->element);
    free(list->value);
    *list = (struct sum_list){0};
}

/* What came to nothing is written, too, and then written over: no branch has to be foretold. */
static void move_to_list(struct sum *sum, uint64_t first, uint64_t count) {
    struct sum_list *list = &sum->list;
    uint64_t at = list->count;
    assert(list->capacity - list->count >= count);
    for (uint64_t i = first; i < first + count; i++) {
        list->element[at] = (uint32_t)i;
        list->value[at] = sum->element[i];
        at += sum->element[i] != 0;
        sum->element[i] = 0;
    }
    list->count = at;
}

void sum_list(struct sum *sum) {
    uint32_t found[LIST_BLOCK];
    size_t at = 0, here;
    const uint64_t weights = sum->weights, of_columns = sum->columns.count * weights;
    if (sum->state != SUM_HELD || sum->listed || !sum->columns.some)
        return;
    assert(of_columns <= sum->end && sum->end <= sum->most);
    sum->list.count = 0;
    while ((here = touched_next(&sum->columns, &at, sum->columns.count, found, LIST_BLOCK)))
        for (size_t i = 0; i < here; i++)
            move_to_list(sum, found[i] * weights, weights);
    move_to_list(sum, of_columns, sum->end - of_columns);
    sum->listed = true;
}

void sum_unlist(struct sum *sum) {
    const struct sum_list *list = &sum->list;
    for (uint64_t i = 0; sum->listed && i < list->count; i++)
        sum->element[list->element[i]] = list->value[i];
    sum->listed = false;
}

struct sum_list sum_list_part(const struct sum_list *list, uint64_t first, uint64_t count) {
    const size_t begin = elements_before(list->element, list->count, first);
    const size_t end = elements_before(list->element, list->count, first + count);
    if (begin == end)
        return (struct sum_list){0};
    return (struct sum_list){
        .count = end - begin, .element = list->element + begin, .value = list->value + begin};
}

static int64_t value_if(const struct sum_list *list, uint64_t at, bool wanted) {
    return list->value[at] & -(int64_t)wanted;
}

static void append(struct sum_list *into, const struct sum_list *from, uint64_t first) {
    const uint64_t count = from->count - first;
    if (!count)
        return;
    memcpy(into->element + into->count, from->element + first, count * sizeof *into->element);
    memcpy(into->value + into->count, from->value + first, count * sizeof *into->value);
    into->count += count;
}

/* Without branches but those of the loop: nobody could foretell which of both comes next. */
static void merge(const struct sum_list *a, const struct sum_list *b, struct sum_list *into) {
    uint64_t i = 0, j = 0, count = 0;
    assert(into != a && into != b);
    make_room(into, a->count + b->count);
    for (; i < a->count && j < b->count; count++) {
        const uint32_t of_a = a->element[i], of_b = b->element[j];
        const bool takes_a = of_a <= of_b, takes_b = of_b <= of_a;
        int64_t value = value_if(a, i, takes_a);
        fixed_merge_one(&value, value_if(b, j, takes_b));
        into->element[count] = of_a < of_b ? of_a : of_b;
        into->value[count] = value;
        i += takes_a;
        j += takes_b;
    }
    into->count = count;
    append(into, a, i);
    append(into, b, j);
}

void sum_lists_add(const struct sum_lists *lists, struct sum_list *all) {
    struct sum_list other = {0};
    assert(!all->count);
    for (unsigned i = 0; i < lists->count; i++) {
        const struct sum_list before = *all;
        merge(&before, lists->items[i], &other);
        *all = other;
        other = before;
    }
    sum_list_release(&other);
}

/* ---- gathering ---- */

/* `state` must not change here: other threads still read it for their elements. */
static void gather_block(struct sum *const *sums, unsigned sum_count, uint64_t first,
                         uint64_t count, int64_t *into) {
    bool empty = true;
    for (unsigned i = 0; i < sum_count; i++) {
        if (sums[i]->state != SUM_HELD)
            continue;
        assert(first + count <= sums[i]->most && !sums[i]->listed);
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

void sums_gathered(struct sum *const *sums, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (sums[i]->state == SUM_HELD)
            sums[i]->state = SUM_ZERO;
        sums[i]->listed = false;
    }
}
