#include "data/set/centre.h"
#include "data/set/chunk_fill.h"
#include "data/set/offsets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "numeric/places.h"

void chunk_buffer_init(struct chunk_buffer *buffer) {
    *buffer = (struct chunk_buffer){0};
    bytes_init(&buffer->sorting);
    bytes_init(&buffer->places);
    bytes_init(&buffer->tile);
    bytes_init(&buffer->made);
    bytes_init(&buffer->words);
}

void chunk_buffer_release(struct chunk_buffer *buffer) {
    memory_unmap(buffer->data, buffer->capacity);
    bytes_release(&buffer->sorting);
    bytes_release(&buffer->places);
    bytes_release(&buffer->tile);
    bytes_release(&buffer->made);
    bytes_release(&buffer->words);
}

/* What rows are made from, and the type of their values. */
struct row_filler {
    const struct columns *columns;
    const struct labels *labels;
    const struct row_weights *row_weights;
    enum value_type type;
    struct bytes *workspace, *words;
};

/* The values of a row, if they are not those of the pack; else NULL. */
static inline const double *own_values(const struct row_filler *filler,
                                       const struct row_walk *walk) {
    if (!columns_has_words(filler->columns, walk->pack))
        return NULL;
    return columns_row_values(filler->columns, walk->split, walk->pack, &walk->rows, walk->row,
                              filler->words);
}

/* The arrays of a chunk. */
struct chunk_arrays {
    enum value_type type;
    uint32_t *start, *feature; /* sparse */
    uint64_t *wide;            /* in place of `feature` where columns have 64 bits; else NULL */
    void *value;
    double *label, *weight, *offset;
    uint64_t *cluster; /* no weights, offsets or clusters: NULL */
};

static struct chunk_arrays arrays_at(uint8_t *data, const struct set_chunk *chunk,
                                     const struct chunk_plan *plan) {
    struct set_chunk_layout layout = chunk_plan_layout(plan, chunk);
    return (struct chunk_arrays){
        .type = (enum value_type)chunk->type,
        .start = (void *)(data + layout.start),
        .feature = (void *)(data + layout.feature),
        .wide = plan->wide ? (void *)(data + layout.feature) : NULL,
        .value = data + layout.value,
        .label = (void *)(data + layout.label),
        .weight = chunk->weighted ? (void *)(data + layout.weight) : NULL,
        .offset = chunk->shifted ? (void *)(data + layout.offset) : NULL,
        .cluster = chunk->clustered ? (void *)(data + layout.cluster) : NULL,
    };
}

/* Where a row goes: `feature` or `wide` (sparse) and `value` to its next value. */
struct row_place {
    uint32_t *feature;
    uint64_t *wide;
    void *value;
    double *label, *weight, *offset;
    uint64_t *cluster;
};

/* The place of row `row` of a chunk, whose values begin with number `first` of the chunk's. */
static inline struct row_place row_place_of(const struct chunk_arrays *arrays, uint32_t row,
                                            uint64_t first) {
    return (struct row_place){.feature = arrays->feature + first,
                              .wide = arrays->wide ? arrays->wide + first : NULL,
                              .value = (uint8_t *)arrays->value + first * value_bytes(arrays->type),
                              .label = arrays->label + row,
                              .weight = arrays->weight ? arrays->weight + row : NULL,
                              .offset = arrays->offset ? arrays->offset + row : NULL,
                              .cluster = arrays->cluster ? arrays->cluster + row : NULL};
}

/* The value of a column as the set has it. */
static inline double less_centre(const struct row_filler *filler, uint64_t column, double value) {
    return value - columns_centre(filler->columns, column);
}

static inline void put_label(const struct row_filler *filler, const struct row_walk *walk,
                             const struct row_place *place) {
    double label = label_of_row(filler->labels, walk->pack, &walk->rows, walk->row);
    *place->label = label;
    if (place->weight)
        *place->weight = row_weight_of(filler->row_weights, &walk->rows, walk->row, label);
    if (place->offset)
        *place->offset = row_offset_of(&walk->rows, walk->row);
    if (place->cluster)
        *place->cluster = walk->rows.cluster ? walk->rows.cluster[walk->row] : 0;
}

static inline void put_value(void *values, enum value_type type, uint64_t at, double value) {
    if (type == VALUE_BYTE)
        ((uint8_t *)values)[at] = (uint8_t)value;
    else if (type == VALUE_FLOAT)
        ((float *)values)[at] = (float)value;
    else
        ((double *)values)[at] = value;
}

/* ---- sparse rows ---- */

/* Values of some rows by the order of the text, while they are sorted. */
struct gathered {
    uint64_t *key, *other; /* of key_of(); workspace */
    double *value;
    uint32_t *row; /* of each value: its row's number in `place` */
    uint32_t count;
    bool sorted; /* each row is, as it stands */
    struct row_place *place;
    uint32_t rows;
};

#define DIGIT_BITS 11

/* Rows are sorted together until they have so many values: what they take stays in the cache. */
#define SORTED_TOGETHER 8192

/* So many values ahead, the column of a feature is asked for: of wide data, most are far away. */
#define AHEAD 32

/* Column and place among the gathered, by which keys are sorted in this order. */
#define PLACE_BITS 31
_Static_assert(COLUMNS_MAX - 1 <= UINT64_MAX >> PLACE_BITS, "a key has room for a column");

static inline uint64_t key_of(uint64_t column, uint32_t place) {
    return column << PLACE_BITS | place;
}

static inline uint64_t key_column(uint64_t key) {
    return key >> PLACE_BITS;
}

static inline uint32_t key_place(uint64_t key) {
    return (uint32_t)key & ((UINT32_C(1) << PLACE_BITS) - 1);
}

/* None, with room for so many. */
static struct gathered gathered_in(struct chunk_buffer *buffer, uint64_t values, uint64_t rows) {
    assert(values <= UINT32_C(1) << PLACE_BITS);
    bytes_clear(&buffer->sorting);
    bytes_clear(&buffer->places);
    uint64_t bytes = values * (2 * sizeof(uint64_t) + sizeof(double) + sizeof(uint32_t));
    uint64_t *key = bytes_extend(&buffer->sorting, bytes);
    double *value = (double *)(key + 2 * values);
    return (struct gathered){.key = key,
                             .other = key + values,
                             .value = value,
                             .row = (uint32_t *)(value + values),
                             .sorted = true,
                             .place =
                                 bytes_extend(&buffer->places, rows * sizeof(struct row_place))};
}

static void gather_value(struct gathered *gathered, uint64_t column, double value, uint32_t row) {
    uint32_t at = gathered->count++;
    gathered->key[at] = key_of(column, at);
    gathered->value[at] = value;
    gathered->row[at] = row;
    gathered->sorted = false;
}

/* Adds a row of columns of 64 bits that goes to `place`. */
static void gather_wide_row(struct gathered *gathered, const struct row_filler *filler,
                            const struct row_walk *walk, struct row_place place) {
    const uint64_t *column_of = filler->columns->of_pack[walk->pack].wide;
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    uint32_t row = gathered->rows++;
    assert(!columns_makes(filler->columns, walk->pack) && !own_values(filler, walk));
    gathered->place[row] = place;
    for (uint64_t i = first; i < end; i++) {
        uint64_t column = column_of[pack_feature(&walk->rows, first, i)];
        if (column != COLUMN_NONE)
            gather_value(gathered, column, less_centre(filler, column, pack_value(&walk->rows, i)),
                         row);
    }
}

/* Whether a column is among those that were gathered from number `first` on. */
static bool has_gathered(const struct gathered *gathered, uint32_t first, uint64_t column) {
    for (uint32_t i = first; i < gathered->count; i++)
        if (key_column(gathered->key[i]) == column)
            return true;
    return false;
}

/* Adds values for the far columns that a row lacks, whose values were gathered from number `first`
 * on. */
static void gather_lacking(struct gathered *gathered, const struct row_filler *filler,
                           uint32_t first) {
    const struct columns *columns = filler->columns;
    uint32_t row = gathered->rows - 1;
    size_t there = 0;
    for (uint32_t i = first; i < gathered->count; i++)
        there += columns->centre[key_column(gathered->key[i])] != 0;
    for (size_t i = 0; i < columns->far_count && there < columns->far_count; i++)
        if (!has_gathered(gathered, first, columns->far[i])) {
            gather_value(gathered, columns->far[i], -columns->centre[columns->far[i]], row);
            there++;
        }
}

/* Adds the values that a row has, which goes to `place`. Those of features that are not columns are
 * dropped. */
static void gather_own(struct gathered *gathered, const struct row_filler *filler,
                       const struct row_walk *walk, struct row_place place) {
    if (filler->columns->wide) {
        gather_wide_row(gathered, filler, walk, place);
        return;
    }
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    const uint32_t *column_of = filler->columns->of_pack[walk->pack].narrow;
    const struct pack_rows rows = walk->rows;
    uint32_t count = gathered->count, row = gathered->rows++;
    gathered->place[row] = place;
    bool sorted = true, values = filler->type != VALUE_ONES;
    const double *own = values ? own_values(filler, walk) : NULL;
    int64_t before = -1;
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < rows.values && rows.feature)
            __builtin_prefetch(&column_of[rows.feature[i + AHEAD]]);
        uint32_t column = column_of[pack_feature(&rows, first, i)];
        if (column == DICTIONARY_NONE)
            continue;
        sorted &= before < column;
        before = column;
        gathered->key[count] = key_of(column, count);
        if (values)
            gathered->value[count] =
                less_centre(filler, column, own ? own[i - first] : pack_value(&rows, i));
        gathered->row[count++] = row;
    }
    gathered->count = count;
    gathered->sorted &= sorted;
    if (!columns_makes(filler->columns, walk->pack))
        return;
    const struct derived *made =
        columns_make(filler->columns, walk->pack, &rows, walk->row, filler->workspace, &count);
    for (uint32_t i = 0; i < count; i++)
        gather_value(gathered, made[i].column, less_centre(filler, made[i].column, made[i].value),
                     row);
}

/* Adds a row that goes to `place`. */
static void gather_row(struct gathered *gathered, const struct row_filler *filler,
                       const struct row_walk *walk, struct row_place place) {
    uint32_t first = gathered->count;
    gather_own(gathered, filler, walk, place);
    if (filler->columns->centre)
        gather_lacking(gathered, filler, first);
}

/* One pass of a counting sort over the digit of `bits` bits at `shift`; equal digits keep their
 * order. */
static void sort_keys_by_digit(struct gathered *gathered, unsigned shift, unsigned bits) {
    uint32_t next[1u << DIGIT_BITS] = {0}, sum = 0;
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t *key = gathered->key, *other = gathered->other;
    const uint32_t count = gathered->count;
    for (uint32_t i = 0; i < count; i++)
        next[key[i] >> shift & mask]++;
    for (uint64_t digit = 0; digit <= mask; digit++) {
        uint32_t here = next[digit];
        next[digit] = sum;
        sum += here;
    }
    assert(sum == count && bits <= DIGIT_BITS);
    for (uint32_t i = 0; i < count; i++)
        other[next[key[i] >> shift & mask]++] = key[i];
    gathered->key = other;
    gathered->other = key;
}

/* Hands each value to its row; so rows get their values by rising column. */
static inline void hand_over(const struct gathered *gathered, enum value_type type, bool wide) {
    const uint64_t *key = gathered->key;
    const uint32_t *row = gathered->row, count = gathered->count;
    const double *value = gathered->value;
    struct row_place *places = gathered->place;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = key_place(key[i]);
        struct row_place *place = &places[row[from]];
        if (wide)
            *place->wide++ = key_column(key[i]);
        else
            *place->feature++ = (uint32_t)key_column(key[i]);
        if (type == VALUE_ONES)
            continue;
        put_value(place->value, type, 0, value[from]);
        place->value = (uint8_t *)place->value + value_bytes(type);
    }
}

/* Sorts what was gathered and empties it. With thousands of values, a few passes of a counting sort
 * cost less than a sort of each row. */
static void put_gathered(const struct row_filler *filler, struct gathered *gathered) {
    assert(gathered->rows || !gathered->count);
    uint64_t columns = filler->columns->count;
    unsigned bits = columns > 1 ? 64 - (unsigned)__builtin_clzll(columns - 1) : 1;
    unsigned passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS, digit = (bits + passes - 1) / passes;
    for (unsigned pass = 0; pass < passes && !gathered->sorted; pass++)
        sort_keys_by_digit(gathered, PLACE_BITS + pass * digit, digit);
    if (filler->columns->wide)
        hand_over(gathered, filler->type, true);
    else if (filler->type == VALUE_DOUBLE) /* one loop for each type */
        hand_over(gathered, VALUE_DOUBLE, false);
    else if (filler->type == VALUE_FLOAT)
        hand_over(gathered, VALUE_FLOAT, false);
    else
        hand_over(gathered, filler->type, false);
    gathered->count = gathered->rows = 0;
    gathered->sorted = true;
}

/* What a row of few values has, not sorted. */
struct short_row {
    uint32_t column[PLACES_MOST], count;
    double value[PLACES_MOST];
};

/* False if the row has more values, if these are not those of the pack, or if columns have 64 bits
 * or centres. */
static bool find_short_row(const struct row_filler *filler, const struct row_walk *walk,
                           struct short_row *row) {
    const struct pack_rows *rows = &walk->rows;
    const uint32_t *column_of = filler->columns->of_pack[walk->pack].narrow;
    uint64_t first, end = pack_row(rows, walk->row, &first);
    uint32_t there = 0, count = 0;
    if (end - first > PLACES_MOST || columns_has_words(filler->columns, walk->pack) || !column_of ||
        filler->columns->centre)
        return false;
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < rows->values && rows->feature)
            __builtin_prefetch(&column_of[rows->feature[i + AHEAD]]);
        row->column[there] = column_of[pack_feature(rows, first, i)];
        row->value[there] = pack_value(rows, i);
        there += row->column[there] != DICTIONARY_NONE;
    }
    const struct derived *made = NULL;
    if (columns_makes(filler->columns, walk->pack))
        made =
            columns_make(filler->columns, walk->pack, rows, walk->row, filler->workspace, &count);
    if (there + count > PLACES_MOST)
        return false;
    for (uint32_t i = 0; i < count; i++, there++) {
        row->column[there] = made[i].column;
        row->value[there] = made[i].value;
    }
    row->count = there;
    return true;
}

/* Puts a row of few values to its place at once; false: it has more, or has to be looked at.
 * *count tells its values. */
static bool put_short_row(const struct row_filler *filler, const struct row_walk *walk,
                          const struct row_place *place, uint32_t *count) {
    struct short_row row = {0};
    uint32_t at[PLACES_MOST];
    if (!find_short_row(filler, walk, &row) || !places_find(row.column, row.count, at))
        return false;
    for (uint32_t i = 0; i < row.count; i++)
        place->feature[at[i]] = row.column[i];
    for (uint32_t i = 0; i < row.count && filler->type != VALUE_ONES; i++)
        put_value(place->value, filler->type, at[i], row.value[i]);
    *count = row.count;
    return true;
}

static void fill_sparse(struct chunk_buffer *buffer, const struct row_filler *filler,
                        const struct chunk_plan *plan, const struct set_chunk *chunk,
                        struct row_walk walk) {
    struct gathered gathered = gathered_in(buffer, chunk->values, chunk->rows);
    struct chunk_arrays arrays = arrays_at(buffer->data, chunk, plan);
    uint32_t put = 0, count = 0;
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk)) {
        struct row_place place = row_place_of(&arrays, row, arrays.start[row]);
        put_label(filler, &walk, &place);
        if (put_short_row(filler, &walk, &place, &count))
            put += count;
        else
            gather_row(&gathered, filler, &walk, place);
        arrays.start[row + 1] = put + gathered.count;
        if (gathered.count < SORTED_TOGETHER && row + 1 < chunk->rows)
            continue;
        put += gathered.count;
        put_gathered(filler, &gathered);
    }
    assert(put == chunk->values); /* what the plan counted is what came */
}

void chunk_count_strips(struct chunk_buffer *buffer, const struct chunk_source *source,
                        const struct set_chunk *chunk, const struct plan_part *part,
                        uint64_t *values) {
    assert(source->plan->strip_columns);
    struct row_filler filler = {source->columns, source->labels, source->row_weights,
                                VALUE_ONES,      &buffer->made,  &buffer->words};
    struct row_walk walk = row_walk_from(source->split, part, chunk->first_row);
    struct gathered gathered = gathered_in(buffer, chunk->values, chunk->rows);
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk))
        gather_row(&gathered, &filler, &walk, (struct row_place){0});
    assert(gathered.count == chunk->values);
    for (uint32_t i = 0; i < gathered.count; i++)
        values[key_column(gathered.key[i]) / source->plan->strip_columns]++;
}

/* ---- dense rows ---- */

struct dense_filler {
    struct row_filler filler;
    const void *value; /* of the block that was looked at last, */
    bool fit;          /* and whether its rows go as they are */
};

/* Puts a row's values to their columns; the types are constants for the compiler. */
static inline void put_dense(const struct row_filler *filler, const struct row_walk *walk,
                             void *row, enum value_type from, enum value_type to) {
    struct pack_rows rows = walk->rows;
    uint64_t first, end = pack_row(&rows, walk->row, &first);
    const uint32_t *column_of = filler->columns->of_pack[walk->pack].narrow;
    rows.type = from;
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of[pack_feature(&rows, first, i)];
        if (column != DICTIONARY_NONE)
            put_value(row, to, column, pack_value(&rows, i));
    }
}

/* Puts a dense row that has values of its own. */
static void put_dense_own(const struct row_filler *filler, const struct row_walk *walk, void *row,
                          const double *own) {
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    const uint32_t *column_of = filler->columns->of_pack[walk->pack].narrow;
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of[pack_feature(&walk->rows, first, i)];
        if (column != DICTIONARY_NONE)
            put_value(row, filler->type, column, own[i - first]);
    }
}

/* Writes a dense row of a set in which columns have centres; `own` may be NULL. */
static void put_dense_centred(const struct row_filler *filler, const struct row_walk *walk,
                              void *row, const double *own) {
    const struct columns *columns = filler->columns;
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    const uint32_t *column_of = columns->of_pack[walk->pack].narrow;
    for (size_t i = 0; i < columns->far_count; i++) /* where the row has no value */
        put_value(row, filler->type, columns->far[i], -columns->centre[columns->far[i]]);
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of[pack_feature(&walk->rows, first, i)];
        double value = own ? own[i - first] : pack_value(&walk->rows, i);
        if (column != DICTIONARY_NONE)
            put_value(row, filler->type, column, less_centre(filler, column, value));
    }
}

/* Whether the rows of a pack stand in it as they go to the set: a value for each column, in order.
 */
static bool rows_fit(const struct row_filler *filler, const struct row_walk *walk) {
    assert(walk->rows.rows);
    const struct columns *columns = filler->columns;
    const uint32_t *column_of = columns->of_pack[walk->pack].narrow;
    bool fit = !walk->rows.feature && walk->rows.values / walk->rows.rows == columns->count &&
               !columns_has_words(columns, walk->pack) && !columns_makes(columns, walk->pack) &&
               !columns->centre;
    for (uint64_t i = 0; fit && i < columns->count; i++)
        fit = column_of[i] == i;
    return fit;
}

/* Looks at a block once. */
static bool block_fits(struct dense_filler *dense, const struct row_walk *walk) {
    if (dense->value != walk->rows.value)
        dense->fit = rows_fit(&dense->filler, walk);
    dense->value = walk->rows.value;
    return dense->fit && dense->filler.type == walk->rows.type;
}

static void fill_dense_row(struct dense_filler *dense, const struct row_walk *walk,
                           const struct row_place *place) {
    const struct row_filler *filler = &dense->filler;
    enum value_type from = walk->rows.type;
    put_label(filler, walk, place);
    if (block_fits(dense, walk)) {
        size_t bytes = value_bytes(from) * filler->columns->count;
        memcpy(place->value, (const uint8_t *)walk->rows.value + walk->row * bytes, bytes);
        return;
    }
    const double *own = own_values(filler, walk);
    if (filler->columns->centre)
        put_dense_centred(filler, walk, place->value, own);
    else if (own)
        put_dense_own(filler, walk, place->value, own);
    else if (filler->type == VALUE_BYTE && from == VALUE_BYTE)
        put_dense(filler, walk, place->value, VALUE_BYTE, VALUE_BYTE);
    else if (filler->type == VALUE_FLOAT && from == VALUE_FLOAT)
        put_dense(filler, walk, place->value, VALUE_FLOAT, VALUE_FLOAT);
    else if (filler->type == VALUE_DOUBLE && from == VALUE_DOUBLE)
        put_dense(filler, walk, place->value, VALUE_DOUBLE, VALUE_DOUBLE);
    else
        put_dense(filler, walk, place->value, from, filler->type);
    if (!columns_makes(filler->columns, walk->pack))
        return;
    uint32_t count;
    const struct derived *made = columns_make(filler->columns, walk->pack, &walk->rows, walk->row,
                                              filler->workspace, &count);
    for (uint32_t i = 0; i < count; i++)
        put_value(place->value, filler->type, made[i].column,
                  less_centre(filler, made[i].column, made[i].value));
}

void chunk_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                const struct set_chunk *chunk, const struct plan_part *part) {
    bool dense = source->plan->dense;
    size_t bytes = chunk_plan_layout(source->plan, chunk).bytes;
    struct row_filler filler = {source->columns, source->labels, source->row_weights,
                                part->type,      &buffer->made,  &buffer->words};
    struct row_walk walk = row_walk_from(source->split, part, chunk->first_row);
    if (buffer->capacity < bytes) {
        memory_unmap(buffer->data, buffer->capacity);
        buffer->data = memory_map(bytes);
        buffer->capacity = bytes;
    }
    memset(buffer->data, 0, bytes);
    if (!dense) {
        fill_sparse(buffer, &filler, source->plan, chunk, walk);
        return;
    }
    struct dense_filler dense_rows = {.filler = filler};
    struct chunk_arrays arrays = arrays_at(buffer->data, chunk, source->plan);
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk)) {
        struct row_place place = row_place_of(&arrays, row, (uint64_t)row * source->columns->count);
        fill_dense_row(&dense_rows, &walk, &place);
    }
}

/* ---- windows of shuffled sets ---- */

/* The walk over a block's rows that go to a window. */
struct scatter {
    const struct chunk_source *source;
    const struct chunk_window *window;
    struct row_walk walk;
    uint64_t row, end; /* numbers of training rows */
    uint64_t place;    /* of the row in the set */
};

static struct scatter scatter_of(const struct chunk_source *source,
                                 const struct chunk_window *window, uint32_t block) {
    const struct plan_part *part = &source->plan->trained;
    assert(block < part->blocks);
    uint64_t first = part->block[block].first_row;
    return (struct scatter){.source = source,
                            .window = window,
                            .walk = row_walk_from(source->split, part, first),
                            .row = first,
                            .end = plan_part_end(part, block)};
}

/* Stands at the next row that goes to the window, from this one on; false if there is none. */
static bool find_scattered(struct scatter *at) {
    const struct chunk_window *window = at->window;
    for (; at->row < at->end; at->row++, row_walk_next(&at->walk)) {
        at->place = chunk_plan_place(at->source->plan, at->row);
        uint64_t chunk = at->place / at->source->plan->block_rows;
        if (chunk >= window->first && chunk < window->end)
            return true;
    }
    return false;
}

static void next_scattered(struct scatter *at) {
    at->row++;
    if (at->row < at->end)
        row_walk_next(&at->walk);
}

static struct chunk_arrays arrays_of_window(const struct scatter *at) {
    const struct chunk_plan *plan = at->source->plan;
    const struct set_chunk *chunk = &plan->chunk[at->place / plan->block_rows];
    return arrays_at(at->window->data + chunk->offset, chunk, plan);
}

void chunk_window_count(struct chunk_buffer *buffer, const struct chunk_source *source,
                        const struct chunk_window *window, uint32_t block) {
    for (struct scatter at = scatter_of(source, window, block); find_scattered(&at);
         next_scattered(&at))
        arrays_of_window(&at).start[at.place % source->plan->block_rows + 1] =
            (uint32_t)chunk_plan_values(source->plan, source->columns, source->split, at.walk.pack,
                                        &at.walk.rows, at.walk.row, &buffer->made);
}

void chunk_window_start(struct chunk_buffer *buffer, const struct chunk_source *source,
                        const struct chunk_window *window, uint32_t number) {
    assert(number >= window->first && number < window->end);
    const struct set_chunk *chunk = &source->plan->chunk[number];
    uint32_t *start = arrays_at(window->data + chunk->offset, chunk, source->plan).start;
    (void)buffer;
    for (uint32_t row = 0; row < chunk->rows; row++)
        start[row + 1] += start[row];
}

static void scatter_sparse(struct chunk_buffer *buffer, const struct row_filler *filler,
                           struct scatter at) {
    uint64_t rows = at.end - at.row;
    uint64_t values = SORTED_TOGETHER + /* fewer than these are there before a row is added */
                      columns_made_most(filler->columns, at.walk.pack, &at.walk.rows) +
                      filler->columns->far_count;
    struct gathered gathered = gathered_in(buffer, values, rows);
    for (; find_scattered(&at); next_scattered(&at)) {
        struct chunk_arrays arrays = arrays_of_window(&at);
        uint32_t row = (uint32_t)(at.place % at.source->plan->block_rows);
        struct row_place place = row_place_of(&arrays, row, arrays.start[row]);
        put_label(filler, &at.walk, &place);
        gather_row(&gathered, filler, &at.walk, place);
        if (gathered.count >= SORTED_TOGETHER)
            put_gathered(filler, &gathered);
    }
    put_gathered(filler, &gathered);
}

void chunk_window_fill(struct chunk_buffer *buffer, const struct chunk_source *source,
                       const struct chunk_window *window, uint32_t block) {
    struct row_filler filler = {source->columns,     source->labels,
                                source->row_weights, source->plan->trained.type,
                                &buffer->made,       &buffer->words};
    struct scatter at = scatter_of(source, window, block);
    if (!source->plan->dense) {
        scatter_sparse(buffer, &filler, at);
        return;
    }
    struct dense_filler dense_rows = {.filler = filler};
    for (; find_scattered(&at); next_scattered(&at)) {
        struct chunk_arrays arrays = arrays_of_window(&at);
        uint32_t row = (uint32_t)(at.place % source->plan->block_rows);
        struct row_place place = row_place_of(&arrays, row, (uint64_t)row * source->columns->count);
        fill_dense_row(&dense_rows, &at.walk, &place);
    }
}
