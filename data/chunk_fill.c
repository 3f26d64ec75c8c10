#include "data/chunk_fill.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void chunk_buffer_init(struct chunk_buffer *buffer) {
    *buffer = (struct chunk_buffer){0};
    bytes_init(&buffer->sorting);
    bytes_init(&buffer->next);
}

void chunk_buffer_release(struct chunk_buffer *buffer) {
    memory_unmap(buffer->data, buffer->capacity);
    bytes_release(&buffer->sorting);
    bytes_release(&buffer->next);
}

static void reserve(struct chunk_buffer *buffer, size_t bytes) {
    if (buffer->capacity < bytes) {
        memory_unmap(buffer->data, buffer->capacity);
        buffer->data = memory_map(bytes);
        buffer->capacity = bytes;
    }
    memset(buffer->data, 0, bytes);
}

/* The arrays of a chunk being filled. */
struct filling {
    const struct columns *columns;
    const struct labels *labels;
    const struct weighing *weighing;
    enum value_type type;
    uint32_t *start, *feature;
    void *value;
    double *label, *weight; /* no weights: NULL */
};

static inline void put_label(const struct filling *filling, const struct row_walk *walk,
                             uint32_t row) {
    double label = label_of_row(filling->labels, walk->pack, &walk->rows, walk->row);
    filling->label[row] = label;
    if (filling->weight)
        filling->weight[row] = weighing_of_row(filling->weighing, &walk->rows, walk->row, label);
}

/* The column of each of the block's features. */
static const uint32_t *columns_of(const struct filling *filling, const struct row_walk *walk) {
    return filling->columns->of_pack[walk->pack];
}

static inline void put_value(const struct filling *filling, enum value_type type, uint64_t place,
                             double value) {
    if (type == VALUE_BYTE)
        ((uint8_t *)filling->value)[place] = (uint8_t)value;
    else if (type == VALUE_FLOAT)
        ((float *)filling->value)[place] = (float)value;
    else
        ((double *)filling->value)[place] = value;
}

/* ---- sparse rows ---- */

/* Values of some rows by the order of the text, while they are sorted. */
struct gathered {
    uint64_t *key, *other; /* column in the upper half, place here in the lower; scratch */
    double *value;
    uint32_t *row; /* of each value */
    uint32_t count;
    bool sorted; /* each row is, as it stands */
};

#define DIGIT_BITS 11

/* Rows are sorted together until they have so many values: what they take stays in the cache. */
#define SORTED_TOGETHER 8192

/* So many values ahead, the column of a feature is asked for: of wide data, most are far away. */
#define AHEAD 32

static struct gathered gathered_in(struct chunk_buffer *buffer, uint64_t values) {
    bytes_clear(&buffer->sorting);
    uint64_t bytes = values * (2 * sizeof(uint64_t) + sizeof(double) + sizeof(uint32_t));
    uint64_t *key = bytes_extend(&buffer->sorting, bytes);
    double *value = (double *)(key + 2 * values);
    return (struct gathered){.key = key,
                             .other = key + values,
                             .value = value,
                             .row = (uint32_t *)(value + values),
                             .sorted = true};
}

static void gather(struct gathered *gathered, uint32_t column, double value, uint32_t row) {
    uint32_t at = gathered->count++;
    gathered->key[at] = (uint64_t)column << 32 | at;
    gathered->value[at] = value;
    gathered->row[at] = row;
    gathered->sorted = false;
}

/* The next of what the values of a row bring with them; false if there is no other. *at is where
 * the search goes on: 0 at first. */
static bool next_derived(const struct filling *filling, const struct row_walk *walk, uint64_t *at,
                         struct derived *derived) {
    const struct columns *columns = filling->columns;
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    while (first + *at < end) {
        uint64_t i = first + (*at)++;
        uint32_t feature = pack_feature(&walk->rows, first, i);
        if (!columns_derive(columns, walk->pack, feature))
            continue;
        *derived = columns_derived(columns, walk->pack, feature, pack_value(&walk->rows, i));
        return true;
    }
    return false;
}

/* Adds a row. Values of features that are not columns are dropped. */
static void gather_row(struct gathered *gathered, const struct filling *filling,
                       const struct row_walk *walk, uint32_t row) {
    uint64_t first, end = pack_row(&walk->rows, walk->row, &first);
    const uint32_t *column_of = columns_of(filling, walk);
    const struct pack_rows rows = walk->rows;
    uint32_t count = gathered->count;
    bool sorted = true, values = filling->type != VALUE_ONES;
    int64_t before = -1;
    for (uint64_t i = first; i < end; i++) {
        if (i + AHEAD < rows.values && rows.feature)
            __builtin_prefetch(&column_of[rows.feature[i + AHEAD]]);
        uint32_t column = column_of[pack_feature(&rows, first, i)];
        if (column == DICTIONARY_NONE)
            continue;
        sorted &= before < column;
        before = column;
        gathered->key[count] = (uint64_t)column << 32 | count;
        if (values)
            gathered->value[count] = pack_value(&rows, i);
        gathered->row[count++] = row;
    }
    gathered->count = count;
    gathered->sorted &= sorted;
    uint64_t at = 0;
    struct derived derived;
    while (filling->columns->deriving[walk->pack] && next_derived(filling, walk, &at, &derived))
        gather(gathered, derived.column, derived.value, row);
}

/* One pass of a counting sort over the digit of `bits` bits at `shift`; equal digits keep their
 * order. */
static void sort_by_digit(struct gathered *gathered, unsigned shift, unsigned bits) {
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
    for (uint32_t i = 0; i < count; i++)
        other[next[key[i] >> shift & mask]++] = key[i];
    gathered->key = other;
    gathered->other = key;
}

/* Sorts the values of some rows by column: with thousands of them, a few passes cost less than a
 * sort of each row. */
static void sort_by_column(struct gathered *gathered, uint32_t columns) {
    unsigned bits = columns > 1 ? 32 - (unsigned)__builtin_clz(columns - 1) : 1;
    unsigned passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS, digit = (bits + passes - 1) / passes;
    for (unsigned pass = 0; pass < passes; pass++)
        sort_by_digit(gathered, 32 + pass * digit, digit);
}

/* Hands each value to its row; so rows get their values by rising column. */
static inline void hand_over(const struct filling *filling, const struct gathered *gathered,
                             uint32_t *next, enum value_type type) {
    const uint64_t *key = gathered->key;
    const uint32_t *row = gathered->row, count = gathered->count;
    const double *value = gathered->value;
    uint32_t *feature = filling->feature;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = (uint32_t)key[i];
        uint32_t at = next[row[from]]++;
        feature[at] = (uint32_t)(key[i] >> 32);
        if (type != VALUE_ONES)
            put_value(filling, type, at, value[from]);
    }
}

/* One loop for each type. */
static void put_sparse(const struct filling *filling, const struct gathered *gathered,
                       uint32_t *next) {
    if (filling->type == VALUE_DOUBLE)
        hand_over(filling, gathered, next, VALUE_DOUBLE);
    else if (filling->type == VALUE_FLOAT)
        hand_over(filling, gathered, next, VALUE_FLOAT);
    else
        hand_over(filling, gathered, next, filling->type);
}

/* Sorts what was gathered and empties it. */
static void put_gathered(const struct filling *filling, struct gathered *gathered, uint32_t *next) {
    if (!gathered->sorted)
        sort_by_column(gathered, filling->columns->count);
    put_sparse(filling, gathered, next);
    gathered->count = 0;
    gathered->sorted = true;
}

static void fill_sparse(struct chunk_buffer *buffer, struct filling *filling,
                        const struct set_chunk *chunk, struct row_walk walk) {
    struct gathered gathered = gathered_in(buffer, chunk->values);
    bytes_clear(&buffer->next);
    uint32_t *next = bytes_extend(&buffer->next, chunk->rows * sizeof *next);
    uint32_t put = 0;
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk)) {
        put_label(filling, &walk, row);
        next[row] = filling->start[row];
        gather_row(&gathered, filling, &walk, row);
        filling->start[row + 1] = put + gathered.count;
        if (gathered.count < SORTED_TOGETHER && row + 1 < chunk->rows)
            continue;
        put += gathered.count;
        put_gathered(filling, &gathered, next);
    }
}

/* ---- dense rows ---- */

/* Puts a row's values to their columns; the types are constants for the compiler. */
static inline void put_dense(const struct filling *filling, const struct row_walk *walk,
                             uint64_t at, enum value_type from, enum value_type to) {
    struct pack_rows rows = walk->rows;
    uint64_t first, end = pack_row(&rows, walk->row, &first);
    const uint32_t *column_of = columns_of(filling, walk);
    rows.type = from;
    for (uint64_t i = first; i < end; i++) {
        uint32_t column = column_of[pack_feature(&rows, first, i)];
        if (column != DICTIONARY_NONE)
            put_value(filling, to, at + column, pack_value(&rows, i));
    }
}

static void fill_dense_row(const struct filling *filling, const struct row_walk *walk,
                           uint64_t at) {
    enum value_type from = walk->rows.type;
    if (filling->type == VALUE_BYTE && from == VALUE_BYTE)
        put_dense(filling, walk, at, VALUE_BYTE, VALUE_BYTE);
    else if (filling->type == VALUE_FLOAT && from == VALUE_FLOAT)
        put_dense(filling, walk, at, VALUE_FLOAT, VALUE_FLOAT);
    else if (filling->type == VALUE_DOUBLE && from == VALUE_DOUBLE)
        put_dense(filling, walk, at, VALUE_DOUBLE, VALUE_DOUBLE);
    else
        put_dense(filling, walk, at, from, filling->type);
    uint64_t next = 0;
    struct derived derived;
    while (filling->columns->deriving[walk->pack] && next_derived(filling, walk, &next, &derived))
        put_value(filling, filling->type, at + derived.column, derived.value);
}

static void fill_dense(struct filling *filling, const struct set_chunk *chunk,
                       struct row_walk walk) {
    for (uint32_t row = 0; row < chunk->rows; row++, row_walk_next(&walk)) {
        put_label(filling, &walk, row);
        fill_dense_row(filling, &walk, (uint64_t)row * filling->columns->count);
    }
}

void chunk_fill(struct chunk_buffer *buffer, const struct set_chunk *chunk,
                const struct split *split, const struct plan_part *part, bool dense,
                const struct columns *columns, const struct labels *labels,
                const struct weighing *weighing) {
    struct set_chunk_layout layout = set_chunk_layout(chunk, dense);
    reserve(buffer, layout.bytes);
    struct filling filling = {
        .columns = columns,
        .labels = labels,
        .weighing = weighing,
        .type = (enum value_type)chunk->type,
        .start = (void *)(buffer->data + layout.start),
        .feature = (void *)(buffer->data + layout.feature),
        .value = buffer->data + layout.value,
        .label = (void *)(buffer->data + layout.label),
        .weight = chunk->weighted ? (void *)(buffer->data + layout.weight) : NULL,
    };
    struct row_walk walk = row_walk_from(split, part, chunk->first_row);
    if (dense)
        fill_dense(&filling, chunk, walk);
    else
        fill_sparse(buffer, &filling, chunk, walk);
}
