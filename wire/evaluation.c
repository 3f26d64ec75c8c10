#include "wire/evaluation.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The columns of each row of HESSIAN in wire/kinds.def. */
enum {
    HESSIAN_NONE_LISTED = false,
    HESSIAN_NONE_EXTRA_BITS = false,
#define HESSIAN(NAME, form, listed, extra_bits)                                                    \
    HESSIAN_##NAME##_LISTED = (listed), HESSIAN_##NAME##_EXTRA_BITS = (extra_bits),
#include "wire/kinds.def"
};

static const struct kind_row kinds[] = {
#define KIND(NAME, name, number, totals, sums, point, strips, hessian, kernel, device, text)       \
    [number] = {                                                                                   \
        #name, totals, sums, point, strips, hessian, hessian##_LISTED, hessian##_EXTRA_BITS},
#include "wire/kinds.def"
};

static const uint32_t totals_count[KIND_TOTALS] = {
    [TOTALS_LOSS] = 1, [TOTALS_LOSS_AND_CORRECT] = 2, [TOTALS_ROWS] = 1, [TOTALS_HESSIAN] = 4};

static_assert(EVALUATION_TOTALS_MAX >= 4, "a part of any kind makes an evaluation");

#define KIND(NAME, name, number, totals, sums, point, strips, hessian, kernel, device, text)       \
    static_assert((number) > 0 && ((sums) == SUMS_TRIANGLE) == ((hessian) != HESSIAN_NONE) &&      \
                      ((sums) == SUMS_TRIANGLE) == ((totals) == TOTALS_HESSIAN),                   \
                  "second derivatives have sums and totals of their own");
#include "wire/kinds.def"

const struct kind_row *kind_row(uint32_t number) {
    return number < sizeof kinds / sizeof *kinds && kinds[number].name ? &kinds[number] : NULL;
}

uint32_t kind_of_hessian(enum kind_hessian hessian) {
    uint32_t kind = 1;
    assert(hessian != HESSIAN_NONE);
    while (kind < sizeof kinds / sizeof *kinds && kinds[kind].hessian != hessian)
        kind++;
    assert(kind_row(kind));
    return kind;
}

const char *evaluation_kind_name(uint32_t kind) {
    return kind_row(kind) ? kind_row(kind)->name : "?";
}

const char *evaluation_fault(const struct part_list *parts) {
    enum sums_layout sums = SUMS_NONE;
    uint32_t totals = 0;
    if (!parts->length || parts->length > EVALUATION_PARTS_MAX)
        return "no part, or too many";
    for (uint32_t i = 0; i < parts->length; i++) {
        const struct evaluation_part *part = &parts->items[i];
        const struct kind_row *kind = kind_row(part->kind);
        if (!kind)
            return "a part of an unknown kind";
        if (!part->count || part->count > UINT32_MAX - part->first)
            return "a part without chunks or beyond the last number";
        if (i && part->first < (uint64_t)part[-1].first + part[-1].count)
            return "parts whose chunks do not rise";
        totals += totals_count[kind->totals];
        if (kind->sums != SUMS_NONE && sums != SUMS_NONE && kind->sums != sums)
            return "parts whose sums have two layouts";
        sums = kind->sums == SUMS_NONE ? sums : kind->sums;
    }
    return totals > EVALUATION_TOTALS_MAX ? "parts of too many totals" : NULL;
}

struct evaluation_parts evaluation_parts_of(const struct part_list *list) {
    struct evaluation_parts parts = {.count = list->length};
    assert(!evaluation_fault(list));
    for (uint32_t i = 0; i < list->length; i++)
        parts.items[i] = list->items[i];
    return parts;
}

struct part_list evaluation_list(const struct evaluation_parts *parts) {
    assert(parts->count <= EVALUATION_PARTS_MAX);
    return (struct part_list){.items = parts->items, .length = parts->count};
}

uint32_t evaluation_first_total(const struct evaluation_parts *parts, uint32_t index) {
    uint32_t totals = 0;
    assert(index <= parts->count && parts->count <= EVALUATION_PARTS_MAX);
    for (uint32_t i = 0; i < index; i++)
        totals += totals_count[kind_row(parts->items[i].kind)->totals];
    assert(totals <= EVALUATION_TOTALS_MAX);
    return totals;
}

uint32_t evaluation_totals(const struct evaluation_parts *parts) {
    return evaluation_first_total(parts, parts->count);
}

enum sums_layout evaluation_sums(const struct evaluation_parts *parts) {
    assert(parts->count <= EVALUATION_PARTS_MAX);
    for (uint32_t i = 0; i < parts->count; i++)
        if (kind_row(parts->items[i].kind)->sums != SUMS_NONE)
            return kind_row(parts->items[i].kind)->sums;
    return SUMS_NONE;
}

/* The point that a part by itself needs. */
static enum kind_point point_of(const struct evaluation_parts *parts, uint32_t part) {
    assert(part < parts->count && kind_row(parts->items[part].kind));
    return kind_row(parts->items[part].kind)->point;
}

bool parts_take_rows(const struct evaluation_parts *parts) {
    return point_of(parts, 0) == POINT_ROWS;
}

bool parts_mix_points(const struct evaluation_parts *parts) {
    for (uint32_t i = 1; i < parts->count; i++)
        if (point_of(parts, i) != POINT_UPPER &&
            (point_of(parts, i) == POINT_ROWS) != parts_take_rows(parts))
            return true;
    return false;
}

bool parts_take_no_point(const struct evaluation_parts *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        if (point_of(parts, i) != POINT_NONE)
            return false;
    return true;
}

bool part_is_upper(const struct evaluation_parts *parts, uint32_t part) {
    return point_of(parts, part) == POINT_UPPER || point_of(parts, 0) == POINT_UPPER;
}

bool parts_are_upper(const struct evaluation_parts *parts) {
    for (uint32_t i = 0; i < parts->count; i++)
        if (part_is_upper(parts, i))
            return true;
    return false;
}

uint64_t evaluation_block(const struct layout *layout, enum precondition precondition,
                          uint32_t block_columns) {
    if (precondition == PRECONDITION_NONE)
        return 0;
    if (precondition == PRECONDITION_LEADING)
        return layout_leading_block(layout, block_columns);
    return precondition == PRECONDITION_LISTED ? layout_block(layout, 0) + block_columns
                                               : layout_block(layout, block_columns);
}

struct sums_sizes evaluation_sums_sizes(const struct layout *layout, enum precondition precondition,
                                        uint32_t block_columns) {
    struct sums_sizes sizes = {.parameters = layout_parameters(layout),
                               .order = evaluation_block(layout, precondition, block_columns)};
    assert(sizes.order <= PRECONDITION_PARAMETERS_MAX && sizes.order <= sizes.parameters);
    return sizes;
}

uint64_t evaluation_sums_total(enum sums_layout layout, const struct sums_sizes *sizes) {
    switch (layout) {
    case SUMS_PARAMETERS:
        return sizes->parameters;
    case SUMS_ROWS:
        return sizes->rows * sizes->outputs;
    case SUMS_TRIANGLE:
        return sizes->order * (sizes->order + 1) / 2;
    case SUMS_NONE:
    case SUMS_LAYOUTS:
        break;
    }
    return 0;
}

uint64_t evaluation_listed_sums(const struct sums_sizes *sizes, uint32_t block_columns,
                                uint32_t weights) {
    assert(weights <= block_columns && block_columns <= sizes->order);
    uint64_t order = sizes->order - block_columns + weights;
    return order * (order + 1) / 2;
}

uint64_t evaluation_sums_most(const struct sums_sizes *sizes) {
    uint64_t most = 0;
    for (int layout = SUMS_NONE; layout < SUMS_LAYOUTS; layout++) {
        uint64_t total = evaluation_sums_total((enum sums_layout)layout, sizes);
        if (layout == SUMS_PARAMETERS && sizes->strip)
            total = sizes->strip;
        most = total > most ? total : most;
    }
    return most;
}

/* The first row of the shard that begins at this parameter, or all rows. */
static uint64_t row_cut(const struct sums_sizes *sizes, uint64_t parameter) {
    uint64_t blocks = (sizes->rows + ROW_BLOCK - 1) / ROW_BLOCK;
    uint64_t n = sizes->parameters;
    assert(parameter <= n && n > 0);
    /* blocks·parameter/n, which may be beyond 64 bits, in two parts. */
    uint64_t block = blocks / n * parameter + (uint64_t)((__uint128_t)(blocks % n) * parameter / n);
    uint64_t row = parameter == n ? sizes->rows : block * ROW_BLOCK;
    return row < sizes->rows ? row : sizes->rows;
}

struct sums_range evaluation_rows(const struct sums_sizes *sizes, uint64_t first, uint64_t count) {
    uint64_t begin = row_cut(sizes, first), end = row_cut(sizes, first + count);
    assert(begin <= end && end <= sizes->rows);
    return (struct sums_range){begin, end - begin};
}

struct sums_range evaluation_sums_range(enum sums_layout layout, const struct sums_sizes *sizes,
                                        uint64_t first, uint64_t count) {
    uint64_t total = evaluation_sums_total(layout, sizes);
    assert(first <= sizes->parameters && count <= sizes->parameters - first);
    if (layout == SUMS_PARAMETERS)
        return (struct sums_range){first, count};
    if (layout == SUMS_ROWS) {
        struct sums_range rows = evaluation_rows(sizes, first, count);
        return (struct sums_range){rows.first * sizes->outputs, rows.count * sizes->outputs};
    }
    return first == 0 && count ? (struct sums_range){0, total} : (struct sums_range){total, 0};
}

uint32_t evaluation_part_at(const struct evaluation_parts *parts, uint32_t chunk) {
    assert(parts->count <= EVALUATION_PARTS_MAX);
    for (uint32_t i = 0; i < parts->count; i++)
        if (chunk >= parts->items[i].first && chunk - parts->items[i].first < parts->items[i].count)
            return i;
    return parts->count;
}

/* ---- the flushes of an evaluation by their ids ---- */

#define CAPACITY_LEAST 64u

static_assert((CAPACITY_LEAST & (CAPACITY_LEAST - 1)) == 0, "slots are found by a mask");

void flush_index_release(struct flush_index *index) {
    free(index->slots);
    *index = (struct flush_index){0};
}

void flush_index_clear(struct flush_index *index) {
    assert(index->count <= index->capacity);
    if (index->count)
        memset(index->slots, 0, index->capacity * sizeof *index->slots);
    index->count = 0;
}

/* The slot that the flush is in, or would be. At least half of the slots are empty, so the search
 * ends. */
static struct flush_slot *slot_of(const struct flush_index *index, const struct flush_id *id) {
    assert(index->capacity && 2 * index->count <= index->capacity);
    uint32_t mask = index->capacity - 1;
    uint32_t at = (uint32_t)flush_id_hash(id) & mask;
    while (index->slots[at].number && !flush_id_equal(&index->slots[at].id, id))
        at = (at + 1) & mask;
    return &index->slots[at];
}

void flush_index_add(struct flush_index *index, const struct flush_id *id, uint32_t number) {
    if (2 * (index->count + 1) > index->capacity) {
        struct flush_index old = *index;
        index->capacity = old.capacity ? 2 * old.capacity : CAPACITY_LEAST;
        index->slots = memory_new(index->capacity, sizeof *index->slots);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.slots[i].number)
                *slot_of(index, &old.slots[i].id) = old.slots[i];
        free(old.slots);
    }
    struct flush_slot *slot = slot_of(index, id);
    assert(!slot->number && number < UINT32_MAX);
    *slot = (struct flush_slot){.id = *id, .number = number + 1};
    index->count++;
}

/* Closes the gap with what comes behind it in the run of slots, so that searches, which end at an
 * empty slot, still find all (Knuth, The Art of Computer Programming, 6.4, algorithm R). */
void flush_index_remove(struct flush_index *index, const struct flush_id *id) {
    uint32_t mask = index->capacity - 1;
    uint32_t gap = (uint32_t)(slot_of(index, id) - index->slots);
    assert(index->slots[gap].number);
    for (uint32_t at = (gap + 1) & mask; index->slots[at].number; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)flush_id_hash(&index->slots[at].id) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* a search for it begins behind the gap */
        index->slots[gap] = index->slots[at];
        gap = at;
    }
    index->slots[gap] = (struct flush_slot){0};
    index->count--;
}

bool flush_index_find(const struct flush_index *index, const struct flush_id *id,
                      uint32_t *number) {
    if (!index->count)
        return false;
    const struct flush_slot *slot = slot_of(index, id);
    if (slot->number && number)
        *number = slot->number - 1;
    return slot->number != 0;
}
