/* Decides how rows are stored and where chunks begin. */
#include <stdlib.h>

#include "base/limits.h"
#include "base/memory.h"
#include "data/merge.h"

struct set_chunk_layout set_chunk_layout(const struct set_chunk *chunk, bool dense,
                                         enum value_type type) {
    struct set_chunk_layout layout = {0};
    uint64_t rows = chunk->rows, at = 0;
    layout.start = at;
    at = align_up(at + (dense ? 0 : (rows + 1) * sizeof(uint32_t)));
    layout.feature = at;
    at = align_up(at + (dense ? 0 : chunk->values * sizeof(uint32_t)));
    layout.value = at;
    at = align_up(at + chunk->values * value_bytes(type));
    layout.label = at;
    layout.bytes = align_up(at + rows * sizeof(double));
    return layout;
}

static void list_blocks(struct chunk_plan *plan, struct pack *const *packs, uint32_t count) {
    for (uint32_t p = 0; p < count; p++)
        plan->blocks += packs[p]->facts->blocks;
    plan->block = memory_new(plan->blocks, sizeof *plan->block);
    struct merge_block *next = plan->block;
    for (uint32_t p = 0; p < count; p++) {
        const struct pack_facts *facts = packs[p]->facts;
        for (uint32_t b = 0; b < facts->blocks; b++)
            *next++ = (struct merge_block){plan->rows + packs[p]->block[b].first_row, p, b};
        plan->rows += facts->rows;
        plan->text_values += facts->values;
        if (facts->type > plan->type)
            plan->type = facts->type;
    }
}

/* What a row takes, without the padding between arrays. */
static uint64_t row_bytes(const struct chunk_plan *plan, uint64_t values) {
    uint64_t index = plan->dense ? 0 : sizeof(uint32_t);
    return sizeof(double) + index + values * (index + value_bytes(plan->type));
}

static uint64_t aimed_bytes(const struct chunk_plan *plan) {
    uint64_t bytes =
        row_bytes(plan, 0) * plan->rows + plan->values * (row_bytes(plan, 1) - row_bytes(plan, 0));
    bytes /= CHUNKS_AIMED_AT;
    return bytes < CHUNK_BYTES_MIN   ? CHUNK_BYTES_MIN
           : bytes > CHUNK_BYTES_MAX ? CHUNK_BYTES_MAX
                                     : bytes;
}

static struct set_chunk *add_chunk(struct chunk_plan *plan, uint32_t *capacity,
                                   uint64_t first_row) {
    if (plan->chunks == *capacity) {
        *capacity = 2 * *capacity + CHUNKS_AIMED_AT;
        plan->chunk = memory_resize(plan->chunk, *capacity, sizeof *plan->chunk);
    }
    plan->chunk[plan->chunks] = (struct set_chunk){.first_row = first_row};
    return &plan->chunk[plan->chunks++];
}

/* Rows are taken in order; a chunk ends before the row that would make it too large. */
static void cut_chunks(struct chunk_plan *plan, struct pack *const *packs, uint32_t columns) {
    uint64_t aim = aimed_bytes(plan), filled = 0;
    uint32_t capacity = 0;
    struct set_chunk *chunk = NULL;
    for (uint32_t b = 0; b < plan->blocks; b++) {
        const struct merge_block *block = &plan->block[b];
        struct pack_rows rows = pack_rows(packs[block->pack], block->block);
        for (uint32_t row = 0; row < rows.rows; row++) {
            uint64_t values = plan->dense  ? columns
                              : rows.start ? rows.start[row + 1] - rows.start[row]
                                           : rows.values / rows.rows;
            uint64_t bytes = row_bytes(plan, values);
            if (!chunk || filled + bytes > aim) {
                chunk = add_chunk(plan, &capacity, block->first_row + row);
                filled = 0;
            }
            chunk->rows++;
            chunk->values += values;
            filled += bytes;
        }
    }
}

void chunk_plan_make(struct chunk_plan *plan, struct pack *const *packs, uint32_t count,
                     const struct columns *columns) {
    *plan = (struct chunk_plan){.type = VALUE_ONES};
    list_blocks(plan, packs, count);
    plan->dense = plan->text_values * 2 >= plan->rows * columns->count;
    if (plan->dense && plan->type == VALUE_ONES)
        plan->type = VALUE_FLOAT; /* there are zeros to tell from the ones */
    plan->values = plan->dense ? plan->rows * columns->count : plan->text_values;
    cut_chunks(plan, packs, columns->count);
}

void chunk_plan_release(struct chunk_plan *plan) {
    free(plan->block);
    free(plan->chunk);
    *plan = (struct chunk_plan){0};
}

static void enter_block(struct row_walk *walk) {
    const struct merge_block *block = &walk->plan->block[walk->block];
    walk->pack = block->pack;
    walk->rows = pack_rows(walk->packs[block->pack], block->block);
}

struct row_walk row_walk_from(struct pack *const *packs, const struct chunk_plan *plan,
                              uint64_t first) {
    uint32_t low = 0, high = plan->blocks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->block[middle].first_row <= first)
            low = middle;
        else
            high = middle;
    }
    struct row_walk walk = {.packs = packs, .plan = plan, .block = low};
    enter_block(&walk);
    walk.row = (uint32_t)(first - plan->block[low].first_row);
    return walk;
}

void row_walk_next(struct row_walk *walk) {
    walk->row++;
    while (walk->row == walk->rows.rows && walk->block + 1 < walk->plan->blocks) {
        walk->block++;
        walk->row = 0;
        enter_block(walk);
    }
}
