/* Decides how rows are stored and where chunks begin. */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/set/centre.h"
#include "data/set/plan.h"

/* The part of all cells that have a value, from which on rows are dense. They take more memory
 * then, 5/4 as floats, but passes over them are faster: about as fast a cell as sparse ones are in
 * half a value with one output, in a fifth with ten. */
#define DENSE_SHARE 0.4

static struct set_chunk_layout layout_of(const struct set_chunk *chunk, bool dense,
                                         size_t feature_bytes) {
    uint64_t rows = chunk->rows, at = 0;
    uint64_t starts = dense ? 0 : rows + 1, features = dense ? 0 : chunk->values;
    struct set_chunk_layout layout;
    layout.start = container_place(&at, starts * sizeof(uint32_t));
    layout.feature = container_place(&at, features * feature_bytes);
    layout.value = container_place(&at, chunk->values * value_bytes((enum value_type)chunk->type));
    layout.label = container_place(&at, rows * sizeof(double));
    layout.weight = container_place(&at, chunk->weighted ? rows * sizeof(double) : 0);
    layout.offset = container_place(&at, chunk->shifted ? rows * sizeof(double) : 0);
    layout.cluster = container_place(&at, chunk->clustered ? rows * sizeof(uint64_t) : 0);
    layout.bytes = at;
    return layout;
}

struct set_chunk_layout set_chunk_layout(const struct set_chunk *chunk, bool dense) {
    return layout_of(chunk, dense, sizeof(uint32_t));
}

struct set_chunk_layout chunk_plan_layout(const struct chunk_plan *plan,
                                          const struct set_chunk *chunk) {
    return layout_of(chunk, plan->dense, plan->wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

struct set_head_layout set_head_layout(const struct set_chunk *chunk) {
    uint64_t rows = chunk->rows, at = 0;
    struct set_head_layout layout;
    layout.label = container_place(&at, rows * sizeof(double));
    layout.weight = container_place(&at, chunk->weighted ? rows * sizeof(double) : 0);
    layout.size = container_place(&at, rows * sizeof(int16_t));
    layout.offset = container_place(&at, chunk->shifted ? rows * sizeof(double) : 0);
    layout.bytes = at;
    return layout;
}

struct set_tile_layout set_tile_layout(const struct set_chunk *chunk, uint64_t values) {
    uint64_t rows = chunk->rows, at = 0;
    struct set_tile_layout layout;
    layout.start = container_place(&at, (rows + 1) * sizeof(uint32_t));
    layout.feature = container_place(&at, values * sizeof(uint32_t));
    layout.value = container_place(&at, values * value_bytes((enum value_type)chunk->type));
    layout.bytes = at;
    return layout;
}

static enum value_type type_of(double value) {
    return value == 1 ? VALUE_ONES : pack_is_float(value) ? VALUE_FLOAT : VALUE_DOUBLE;
}

static void count_values(struct plan_part *part, double value, uint64_t times) {
    enum value_type type = type_of(value);
    part->values += times;
    part->type = times && type > part->type ? type : part->type;
}

/* Counts the values that a row has because it has none of a far column. */
static void count_lacking(struct plan_part *part, const struct columns *columns, uint32_t p,
                          const struct pack_rows *rows, uint32_t row, struct bytes *workspace) {
    uint32_t lacking = columns_lacking(columns, p, rows, row, workspace);
    part->values += lacking;
    part->type = lacking ? VALUE_DOUBLE : part->type; /* which has room for any centre */
}

/* Counts a row into the part, with what its values bring with them. */
static void count_row(struct plan_part *part, const struct pack *pack, const struct pack_rows *rows,
                      uint32_t row, const struct columns *columns, uint32_t p,
                      struct bytes *workspace) {
    bool words = columns_has_words(columns, p);
    uint64_t first, end = pack_row(rows, row, &first), values = 0;
    enum value_type all = part->type;
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = pack_feature(rows, first, i);
        if (!columns_has(columns, p, feature))
            continue;
        values++;
        enum value_type type = all;
        double centre = columns->centre
                            ? columns_centre(columns, column_number(&columns->of_pack[p], feature))
                            : 0;
        if (words && columns_is_word(columns, pack, feature))
            type = columns_word_type(columns, pack_value(rows, i));
        else if (centre != 0)
            type = type_of(pack_value(rows, i) - centre);
        else if (all < rows->type)
            type = rows->type == VALUE_BYTE ? VALUE_BYTE : type_of(pack_value(rows, i));
        all = type > all ? type : all;
    }
    part->rows++;
    part->values += values;
    part->type = all;
    count_lacking(part, columns, p, rows, row, workspace);
    if (!columns_makes(columns, p))
        return;
    uint32_t count;
    const struct derived *made = columns_make(columns, p, rows, row, workspace, &count);
    for (uint32_t i = 0; i < count; i++)
        count_values(part, made[i].value - columns_centre(columns, made[i].column), 1);
}

/* Whether the facts of a pack say everything: all rows are trained on, and what their values bring
 * with them does not depend on which these are. */
static bool facts_tell(const struct split *split, uint32_t p, const struct columns *columns) {
    const struct derivation *derivation = columns->derivation[p];
    bool tell =
        !split->side[p] && !columns->crosses && !columns_has_words(columns, p) && !columns->centre;
    for (uint32_t i = 0; derivation && tell && i < split->packs[p]->facts->features; i++)
        tell = !derivation[i].bin_column;
    return tell;
}

/* Counts the rows of a part from these facts. */
static void count_facts(struct plan_part *part, const struct split *split, uint32_t p,
                        const struct columns *columns) {
    const struct pack *pack = split->packs[p];
    const struct absent *absent = &columns->absent[p];
    for (uint32_t b = 0; b < pack->facts->blocks; b++) {
        const struct pack_block *block = &pack->block[b];
        part->block[part->blocks++] = (struct merge_block){part->rows, p, b};
        part->rows += block->rows;
        part->values += block->values;
        part->type = block->type > part->type ? (enum value_type)block->type : part->type;
    }
    for (uint32_t i = 0; columns->derivation[p] && i < pack->facts->features; i++)
        if (columns_derive(columns, p, i))
            count_values(part, columns->derivation[p][i].column->mean, pack->count[i]);
    for (uint32_t i = 0; i < absent->count; i++)
        count_values(part, absent->values[i].value, pack->facts->rows);
}

/* Counts row by row. */
static void count_rows(struct plan_part *part, const struct split *split, uint32_t p,
                       const struct columns *columns, struct bytes *workspace) {
    const struct pack *pack = split->packs[p];
    for (uint32_t b = 0; b < pack->facts->blocks; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        uint64_t before = part->rows;
        for (uint32_t row = 0; row < rows.rows; row++)
            if (split_side(split, p, b, row) == part->side)
                count_row(part, pack, &rows, row, columns, p, workspace);
        if (part->rows != before)
            part->block[part->blocks++] = (struct merge_block){before, p, b};
    }
}

/* Lists the blocks that have rows of the side, and counts what is in them. */
static void part_make(struct plan_part *part, enum row_side side, const struct split *split,
                      const struct columns *columns) {
    *part = (struct plan_part){.side = side, .type = VALUE_ONES};
    uint32_t blocks = 0;
    struct bytes workspace;
    bytes_init(&workspace);
    for (uint32_t p = 0; p < split->count; p++)
        blocks += split->packs[p]->facts->blocks;
    part->block = memory_new(blocks, sizeof *part->block);
    for (uint32_t p = 0; p < split->count; p++)
        if (!facts_tell(split, p, columns))
            count_rows(part, split, p, columns, &workspace);
        else if (side == ROW_TRAINED)
            count_facts(part, split, p, columns);
    assert(part->blocks <= blocks);
    bytes_release(&workspace);
}

/* The bytes of a row, without the padding between arrays. Bytes count as floats: so chunks, and
 * with them the bits of a model, are those of the same numbers as text. */
static uint64_t row_bytes(bool dense, enum value_type type, uint64_t values) {
    uint64_t index = dense ? 0 : sizeof(uint32_t);
    uint64_t value = value_bytes(type == VALUE_BYTE ? VALUE_FLOAT : type);
    return sizeof(double) + index + values * (index + value);
}

/* Cuts a part into chunks as its rows are shown in order. */
struct chunk_cutter {
    struct chunk_plan *plan;
    const struct plan_part *part;
    const struct columns *columns;
    uint64_t aim, filled, next_row;
    struct bytes workspace;
    uint32_t capacity;
    const struct chunk_extras *extras;
    bool open; /* a chunk that takes more rows */
};

uint64_t chunk_plan_values(const struct chunk_plan *plan, const struct columns *columns,
                           const struct split *split, uint32_t p, const struct pack_rows *rows,
                           uint32_t row, struct bytes *workspace) {
    if (plan->dense)
        return columns->count;
    uint64_t first, end = pack_row(rows, row, &first), values = end - first;
    bool drops = split->side[p] || columns_has_words(columns, p);
    for (uint64_t i = first; drops && i < end; i++)
        values -= !columns_has(columns, p, pack_feature(rows, first, i));
    if (columns_makes(columns, p))
        values += columns_made(columns, p, rows, row, workspace);
    return values + columns_lacking(columns, p, rows, row, workspace);
}

/* A chunk ends before the row that would make it too large. */
static void cut_row(struct chunk_cutter *cutter, uint64_t values) {
    struct chunk_plan *plan = cutter->plan;
    uint64_t bytes = row_bytes(plan->dense, cutter->part->type, values);
    if (!cutter->open || cutter->filled + bytes > cutter->aim) {
        MEMORY_ROOM(plan->chunk, plan->chunks, cutter->capacity);
        plan->chunk[plan->chunks++] = (struct set_chunk){.first_row = cutter->next_row,
                                                         .type = (uint8_t)cutter->part->type,
                                                         .weighted = cutter->extras->weighted,
                                                         .shifted = cutter->extras->shifted,
                                                         .clustered = cutter->extras->clustered};
        cutter->filled = 0;
        cutter->open = true;
    }
    assert(plan->chunks > 0);
    struct set_chunk *chunk = &plan->chunk[plan->chunks - 1];
    assert(chunk->first_row + chunk->rows == cutter->next_row); /* rows follow one another */
    chunk->rows++;
    chunk->values += values;
    cutter->filled += bytes;
    cutter->next_row++;
}

static void cut_part(struct chunk_cutter *cutter, const struct plan_part *part,
                     const struct split *split) {
    assert(part->side == ROW_TRAINED || part->side == ROW_HELD);
    cutter->part = part;
    cutter->next_row = 0;
    cutter->open = false;
    for (uint32_t i = 0; i < part->blocks; i++) {
        const struct merge_block *block = &part->block[i];
        struct pack_rows rows = pack_rows(split->packs[block->pack], block->block);
        for (uint32_t row = 0; row < rows.rows; row++)
            if (split_side(split, block->pack, block->block, row) == part->side)
                cut_row(cutter, chunk_plan_values(cutter->plan, cutter->columns, split, block->pack,
                                                  &rows, row, &cutter->workspace));
    }
}

/* ---- a shuffled set ---- */

static uint32_t block_rows_of(const struct set_options *options, uint64_t rows) {
    uint32_t each = options->block_rows ? options->block_rows : SET_BLOCK_ROWS;
    while (each > SET_BLOCK_ROWS_MIN && rows / each < options->chunks_least)
        each /= 2;
    assert(each > 0 && each <= SET_BLOCK_ROWS);
    return each;
}

static int lay_blocks(struct chunk_plan *plan, const struct columns *columns,
                      const struct split *split, const struct chunk_extras *extras) {
    uint64_t rows = plan->trained.rows, each = plan->block_rows, chunks = (rows + each - 1) / each;
    if (chunks > UINT32_MAX / 2)
        return error_set(ERROR_DATA,
                         "%llu rows are too many for a shuffled set: train without Downpour",
                         (unsigned long long)rows);
    assert(plan->shuffled && each);
    plan->chunks = (uint32_t)chunks;
    plan->chunk = memory_new(chunks, sizeof *plan->chunk);
    for (uint32_t i = 0; i < plan->chunks; i++) {
        uint64_t first = i * each, left = rows - first;
        uint32_t here = (uint32_t)(left < each ? left : each);
        plan->chunk[i] =
            (struct set_chunk){.first_row = first,
                               .rows = here,
                               .values = plan->dense ? here * (uint64_t)columns->count : 0,
                               .type = (uint8_t)plan->trained.type,
                               .weighted = extras->weighted,
                               .shifted = extras->shifted,
                               .clustered = extras->clustered};
    }
    if (plan->dense)
        return 0;
    /* The rows of each chunk are all over the packs, which are walked over in order. */
    struct bytes workspace;
    bytes_init(&workspace);
    struct row_walk walk = row_walk_from(split, &plan->trained, 0);
    for (uint64_t row = 0; row < rows; row++, row_walk_next(&walk))
        plan->chunk[chunk_plan_place(plan, row) / plan->block_rows].values +=
            chunk_plan_values(plan, columns, split, walk.pack, &walk.rows, walk.row, &workspace);
    bytes_release(&workspace);
    for (uint32_t i = 0; i < plan->chunks; i++)
        if (plan->chunk[i].values > UINT32_MAX)
            return error_set(ERROR_DATA,
                             "%u rows have more than %u values, which is too many for a chunk of a "
                             "shuffled set: train without Downpour",
                             plan->block_rows, UINT32_MAX);
    return 0;
}

/* ---- tiles ---- */

/* Whether there are any, and how many strips; tiles_place() says more. */
static int cut_strips(struct chunk_plan *plan, const struct columns *columns,
                      const struct set_options *options) {
    uint32_t wide = options->strip_columns;
    if (!set_is_cut(options, plan->dense, columns->count)) {
        /* Whole rows have columns of 32 bits. */
        if (!columns->wide)
            return 0;
        return error_set(
            ERROR_DATA,
            "the data has %llu different features, and rows that are not cut into tiles "
            "have at most %u in all; dml.conf(5) says at strip_columns which rows are cut",
            (unsigned long long)columns->count, FEATURES_MAX);
    }
    assert(!plan->shuffled);
    uint64_t strips = strips_of(columns->count, wide), tiles = strips * plan->chunks;
    if (tiles > TILES_MAX)
        return error_set(ERROR_DATA,
                         "%llu columns in strips of %u are %llu tiles, more than %u: make the "
                         "strips wider (strip_columns)",
                         (unsigned long long)columns->count, wide, (unsigned long long)tiles,
                         TILES_MAX);
    plan->strip_columns = wide;
    plan->strips = (uint32_t)strips;
    plan->tile = memory_new(tiles, sizeof *plan->tile);
    return 0;
}

/* ---- the plan ---- */

static bool is_dense(const struct chunk_plan *plan, const struct columns *columns) {
    double cells = (double)plan->trained.rows * (double)columns->count;
    return (double)plan->trained.values >= DENSE_SHARE * cells;
}

int chunk_plan_make(struct chunk_plan *plan, const struct split *split, struct columns *columns,
                    const struct chunk_extras *extras, const struct set_options *options) {
    *plan = (struct chunk_plan){.wide = columns->wide,
                                .shuffled = options->shuffled,
                                .key = permutation_key(options->shuffle_seed, 0)};
    part_make(&plan->trained, ROW_TRAINED, split, columns);
    /* Models in tiles are not scaled, so their sets have no centres. */
    if (options->centred && !set_is_cut(options, is_dense(plan, columns), columns->count))
        columns_find_centres(columns, split, &plan->trained);
    if (columns->centre) { /* differences have another type, and rows more values */
        free(plan->trained.block);
        part_make(&plan->trained, ROW_TRAINED, split, columns);
    }
    part_make(&plan->held, ROW_HELD, split, columns);
    plan->dense = is_dense(plan, columns);
    plan->values = plan->dense ? plan->trained.rows * columns->count : plan->trained.values;
    if (plan->dense) { /* cells without a value are stored as 0: VALUE_ONES cannot say that */
        plan->trained.type = plan->trained.type == VALUE_ONES ? VALUE_FLOAT : plan->trained.type;
        plan->held.type = plan->held.type == VALUE_ONES ? VALUE_FLOAT : plan->held.type;
    }
    /* The aim follows from the training rows, and holds for chunks of the holdout too. */
    uint64_t empty = row_bytes(plan->dense, plan->trained.type, 0);
    uint64_t value = row_bytes(plan->dense, plan->trained.type, 1) - empty;
    uint64_t aim = (empty * plan->trained.rows + plan->values * value) / CHUNKS_AIMED_AT;
    aim = aim < CHUNK_BYTES_MIN ? CHUNK_BYTES_MIN : aim > CHUNK_BYTES_MAX ? CHUNK_BYTES_MAX : aim;
    struct chunk_cutter cutter = {.plan = plan, .columns = columns, .aim = aim, .extras = extras};
    bytes_init(&cutter.workspace);
    int code = 0;
    plan->block_rows = plan->shuffled ? block_rows_of(options, plan->trained.rows) : 0;
    if (plan->shuffled)
        code = lay_blocks(plan, columns, split, extras);
    else
        cut_part(&cutter, &plan->trained, split);
    uint32_t trained_chunks = cutter.capacity = plan->chunks;
    if (!code)
        cut_part(&cutter, &plan->held, split);
    bytes_release(&cutter.workspace);
    plan->held_chunks = plan->chunks - trained_chunks;
    assert(code || cutter.next_row == plan->held.rows);
    return code ? code : cut_strips(plan, columns, options);
}

void chunk_plan_release(struct chunk_plan *plan) {
    free(plan->trained.block);
    free(plan->held.block);
    free(plan->chunk);
    free(plan->tile);
    *plan = (struct chunk_plan){0};
}
