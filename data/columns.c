/* Numbers the columns of a set: by falling log2 of the count, then by first appearance. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/merge.h"

static unsigned frequency_class(uint64_t count) {
    return 63u - (unsigned)__builtin_clzll(count | 1);
}

static bool add_feature(struct column_builder *builder, uint32_t p, uint32_t feature,
                        uint32_t *of_pack) {
    if (of_pack[feature] == DICTIONARY_NONE)
        of_pack[feature] =
            dictionary_add(&builder->dictionary, builder->split->packs[p]->id[feature]);
    return of_pack[feature] != DICTIONARY_NONE;
}

/* Shows a row to the dictionary as the text has it. */
static bool add_row(struct column_builder *builder, uint32_t p, const struct pack_rows *rows,
                    uint32_t row, uint32_t *of_pack) {
    uint64_t first, end = pack_row(rows, row, &first);
    bytes_clear(&builder->order);
    uint32_t *order = bytes_extend(&builder->order, (end - first) * sizeof *order);
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = pack_feature(rows, first, i);
        builder->trained[p][feature]++;
        order[rows->position ? rows->position[i] : i - first] = feature;
    }
    for (uint64_t i = 0; i < end - first; i++)
        if (!add_feature(builder, p, order[i], of_pack))
            return false;
    return true;
}

/* If only some rows of a pack are training rows, its counts are of no use: count row by row. */
static bool add_split_pack(struct column_builder *builder, uint32_t p, uint32_t *of_pack) {
    const struct pack *pack = builder->split->packs[p];
    builder->trained[p] = memory_new(pack->facts->features, sizeof(uint64_t));
    for (uint32_t b = 0; b < pack->facts->blocks; b++) {
        struct pack_rows rows = pack_rows(pack, b);
        for (uint32_t row = 0; row < rows.rows; row++)
            if (split_side(builder->split, p, b, row) == ROW_TRAINED &&
                !add_row(builder, p, &rows, row, of_pack))
                return false;
    }
    return true;
}

/* The features of a pack are numbered by first appearance already. */
static bool is_only_pack(const struct split *split) {
    return split->count == 1 && !split->side[0];
}

static void take_only_pack(struct columns *columns, struct column_builder *builder) {
    const struct pack *pack = builder->split->packs[0];
    columns->count = pack->facts->features;
    if (!pack->table)
        return; /* it needs no copies: find_orders() */
    columns->of_pack[0] = memory_new(columns->count, sizeof(uint32_t));
    for (uint32_t i = 0; i < columns->count; i++)
        columns->of_pack[0][i] = i;
    builder->id = memory_new(columns->count, sizeof *builder->id);
    if (columns->count)
        memcpy(builder->id, pack->id, columns->count * sizeof *builder->id);
}

static int number_packs(struct columns *columns, struct column_builder *builder) {
    const struct split *split = builder->split;
    for (uint32_t p = 0; p < columns->packs; p++) {
        uint32_t features = split->packs[p]->facts->features;
        uint32_t *of_pack = columns->of_pack[p] = memory_new(features, sizeof *of_pack);
        for (uint32_t i = 0; i < features; i++)
            of_pack[i] = DICTIONARY_NONE;
        bool fits = !split->side[p] || add_split_pack(builder, p, of_pack);
        for (uint32_t i = 0; !split->side[p] && i < features && fits; i++)
            fits = add_feature(builder, p, i, of_pack);
        if (!fits)
            return error_set(ERROR_DATA, "the data has more than %u different features",
                             FEATURES_MAX);
    }
    columns->count = builder->dictionary.count;
    builder->id = memory_new(columns->count, sizeof *builder->id);
    memcpy(builder->id, builder->dictionary.id, columns->count * sizeof *builder->id);
    /* A feature that only held-out rows of one pack have may be a column because of rows of
     * another.
     */
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < split->packs[p]->facts->features; i++)
            if (columns->of_pack[p][i] == DICTIONARY_NONE)
                columns->of_pack[p][i] =
                    dictionary_find(&builder->dictionary, split->packs[p]->id[i]);
    return 0;
}

/* Numbers all features by first appearance. */
static int collect(struct columns *columns, struct column_builder *builder) {
    const struct split *split = builder->split;
    int code = 0;
    if (is_only_pack(split))
        take_only_pack(columns, builder);
    else
        code = number_packs(columns, builder);
    if (!code && !columns->count)
        code =
            error_set(ERROR_DATA, "%s: no row has a single feature", pack_source(split->packs[0]));
    return code;
}

/* The column of each number by first appearance: a counting sort over the frequency classes. */
static uint32_t *sort_by_frequency(const uint64_t *values, uint32_t count) {
    uint64_t next[65] = {0};
    for (uint32_t i = 0; i < count; i++)
        next[63 - frequency_class(values[i]) + 1]++;
    for (unsigned c = 1; c < 65; c++)
        next[c] += next[c - 1];
    assert(next[64] == count);
    uint32_t *column = memory_new(count, sizeof *column);
    for (uint32_t i = 0; i < count; i++)
        column[i] = (uint32_t)next[63 - frequency_class(values[i])]++;
    return column;
}

/* Sums of the counts over all packs, by first appearance. */
static uint64_t *sum_counts(const struct columns *columns, const struct column_builder *builder) {
    uint64_t *values = memory_new(columns->count, sizeof *values);
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = builder->split->packs[p];
        const uint64_t *count = builder->trained[p] ? builder->trained[p] : pack->count;
        for (uint32_t i = 0; i < pack->facts->features; i++)
            if (columns->of_pack[p][i] != DICTIONARY_NONE)
                values[columns->of_pack[p][i]] += count[i];
    }
    return values;
}

static int reject_name(const struct pack *pack, uint32_t feature, const char *before) {
    if (pack->id[feature] < FEATURE_HASHED)
        return error_set(
            ERROR_DATA, "%s:1: column %llu is named \"%s\", but \"%s\" in a file before",
            pack_source(pack), (unsigned long long)pack->id[feature], pack->name[feature], before);
    return error_set(ERROR_DATA,
                     "%s: \"%s\" has the same hash as \"%s\" in a file before; leave the column of "
                     "one of them out with csv.skip",
                     pack_source(pack), pack->name[feature], before);
}

/* Takes the names from the packs, which must agree. */
static int take_names(struct columns *columns, const struct split *split) {
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        if (!pack->name)
            continue;
        if (!columns->name)
            columns->name = memory_new(columns->count, sizeof *columns->name);
        for (uint32_t i = 0; i < pack->facts->features; i++) {
            uint32_t column = columns->of_pack[p][i];
            if (column == DICTIONARY_NONE || columns->id[column] != pack->id[i])
                continue; /* or it is among the rare ones */
            const char **name = &columns->name[column];
            if (*name && strcmp(*name, pack->name[i]))
                return reject_name(pack, i, *name);
            *name = pack->name[i];
        }
    }
    columns_make_names(columns);
    for (uint32_t i = 0; columns->name && i < columns->count; i++)
        if (!columns->name[i])
            columns->name[i] = "";
    return 0;
}

/* Packed, as there are two for each column while they are sorted. */
struct id_and_column {
    uint64_t id;
    uint32_t column;
} __attribute__((packed));

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SHORT_BITS 32

#define WORTH_A_THREAD 65536 /* columns */

/* Where the entries of each digit begin, from how many there are. */
static void begin_digits(uint32_t next[DIGITS]) {
    uint32_t sum = 0;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint32_t here = next[digit];
        next[digit] = sum;
        sum += here;
    }
}

/* One pass of a counting sort; equal digits keep their order. */
static void sort_long_by_digit(const struct id_and_column *from, struct id_and_column *to,
                               uint32_t count, unsigned shift) {
    uint32_t next[DIGITS] = {0};
    for (uint32_t i = 0; i < count; i++)
        next[from[i].id >> shift & (DIGITS - 1)]++;
    begin_digits(next);
    for (uint32_t i = 0; i < count; i++)
        to[next[from[i].id >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_short_by_digit(const uint64_t *from, uint64_t *to, uint32_t count,
                                unsigned shift) {
    uint32_t next[DIGITS] = {0};
    for (uint32_t i = 0; i < count; i++)
        next[from[i] >> shift & (DIGITS - 1)]++;
    begin_digits(next);
    for (uint32_t i = 0; i < count; i++)
        to[next[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_long_ids(const uint64_t *id, uint32_t count, uint64_t largest, uint32_t *order) {
    size_t bytes = count * sizeof(struct id_and_column);
    struct id_and_column *entries = memory_map(bytes), *other = memory_map(bytes);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct id_and_column){id[i], i};
    for (unsigned shift = 0; shift < 64 && largest >> shift; shift += DIGIT_BITS) {
        sort_long_by_digit(entries, other, count, shift);
        struct id_and_column *sorted = other;
        other = entries;
        entries = sorted;
    }
    for (uint32_t i = 0; i < count; i++)
        order[i] = entries[i].column;
    memory_unmap(entries, bytes);
    memory_unmap(other, bytes);
}

/* An id and its column are one word. */
static void sort_short_ids(const uint64_t *id, uint32_t count, uint64_t largest, uint32_t *order) {
    size_t bytes = count * sizeof(uint64_t);
    uint64_t *entries = memory_map(bytes), *other = memory_map(bytes);
    for (uint32_t i = 0; i < count; i++)
        entries[i] = id[i] << SHORT_BITS | i;
    for (unsigned shift = 0; shift < SHORT_BITS && largest >> shift; shift += DIGIT_BITS) {
        sort_short_by_digit(entries, other, count, SHORT_BITS + shift);
        uint64_t *sorted = other;
        other = entries;
        entries = sorted;
    }
    for (uint32_t i = 0; i < count; i++)
        order[i] = (uint32_t)entries[i];
    memory_unmap(entries, bytes);
    memory_unmap(other, bytes);
}

/* Most ids are short: those of texts with numbers, but not hashes. */
static uint32_t *sort_by_id(const uint64_t *id, uint32_t count) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = id[i] > largest ? id[i] : largest;
    uint32_t *order = memory_new(count, sizeof *order);
    if (largest >> SHORT_BITS)
        sort_long_ids(id, count, largest, order);
    else
        sort_short_ids(id, count, largest, order);
    return order;
}

/* ---- both orders ---- */

/* Of many columns either takes long, and needs nothing of the other. */
struct ordering {
    struct columns *columns;
    const uint64_t *id, *values; /* by first appearance */
    uint32_t *column;            /* of each number by first appearance */
};

static void find_order(void *context, unsigned part) {
    struct ordering *ordering = context;
    struct columns *columns = ordering->columns;
    if (part) {
        columns->order = sort_by_id(ordering->id, columns->count);
        return;
    }
    uint32_t *column = ordering->column = sort_by_frequency(ordering->values, columns->count);
    columns->id = memory_new(columns->count, sizeof *columns->id);
    columns->values = memory_new((size_t)columns->count + 1, sizeof *columns->values);
    for (uint32_t i = 0; i < columns->count; i++) {
        columns->id[column[i]] = ordering->id[i];
        columns->values[column[i]] = ordering->values[i];
    }
}

static void find_orders(struct columns *columns, const struct column_builder *builder,
                        unsigned threads) {
    const struct split *split = builder->split;
    bool as_packed = !builder->id; /* the only pack has all as it is */
    struct ordering ordering = {.columns = columns,
                                .id = as_packed ? split->packs[0]->id : builder->id,
                                .values = as_packed ? split->packs[0]->count : builder->values};
    threads_share(columns->count < WORTH_A_THREAD ? 1 : threads, 2, find_order, &ordering);
    for (uint32_t i = 0; i < columns->count; i++)
        columns->order[i] = ordering.column[columns->order[i]];
    if (as_packed) {
        columns->of_pack[0] = ordering.column;
        return;
    }
    columns_renumber(columns, split, ordering.column);
    free(ordering.column);
}

/* Two columns with one id could not be told apart: sets and models know columns by their ids. */
static int check_ids(const struct columns *columns, const struct split *split) {
    for (uint32_t i = 1; i < columns->count; i++) {
        uint32_t a = columns->order[i - 1], b = columns->order[i];
        if (columns->id[a] == columns->id[b])
            return error_set(ERROR_DATA,
                             "%s: \"%s\" has the same hash as \"%s\"; leave the column of one of "
                             "them out with csv.skip",
                             pack_source(split->packs[0]), columns->name ? columns->name[b] : "",
                             columns->name ? columns->name[a] : "");
    }
    return 0;
}

static void builder_release(struct column_builder *builder) {
    for (uint32_t p = 0; p < builder->split->count; p++)
        free(builder->trained[p]);
    free(builder->trained);
    free(builder->id);
    free(builder->values);
    bytes_release(&builder->order);
    dictionary_release(&builder->dictionary);
}

int columns_find(struct columns *columns, const struct split *split,
                 const struct set_options *options) {
    *columns = (struct columns){.packs = split->count};
    columns->of_pack = memory_new(split->count, sizeof *columns->of_pack);
    columns->derivation = memory_new(split->count, sizeof *columns->derivation);
    columns->derives = memory_new(split->count, sizeof *columns->derives);
    columns->absent = memory_new(split->count, sizeof *columns->absent);
    struct column_builder builder = {.split = split};
    builder.trained = memory_new(split->count, sizeof *builder.trained);
    bytes_init(&builder.order);
    dictionary_init(&builder.dictionary);
    int code = collect(columns, &builder);
    if (!code && builder.id) {
        builder.values = sum_counts(columns, &builder);
        builder.room = columns->count;
        code = columns_prepare(columns, &builder, options);
    }
    if (!code)
        find_orders(columns, &builder, options->threads);
    builder_release(&builder); /* there can be many columns, and sorting them takes room, too */
    if (!code) {
        columns_list_absent(columns, split);
        if (columns->crosses)
            crosses_find_levels(columns->crosses, columns->count);
        columns_weigh_words(columns, split);
        code = take_names(columns, split);
        if (!code)
            code = check_ids(columns, split);
    }
    return code;
}

void columns_release(struct columns *columns) {
    for (uint32_t p = 0; p < columns->packs; p++)
        free(columns->of_pack[p]);
    for (uint32_t p = 0; columns->derivation && p < columns->packs; p++) {
        free(columns->derivation[p]);
        free(columns->derives[p]);
    }
    for (uint32_t i = 0; columns->bin_column && i < columns->table->columns; i++)
        free(columns->bin_column[i]);
    for (uint32_t i = 0; i < columns->made_names; i++)
        free(columns->made_name[i]);
    for (uint32_t p = 0; p < columns->packs; p++)
        free(columns->absent[p].values);
    free(columns->of_pack);
    free(columns->text_number);
    free(columns->has_words);
    free(columns->idf);
    free(columns->absent);
    crosses_free(columns->crosses);
    free(columns->missing_column);
    free(columns->derivation);
    free(columns->derives);
    free(columns->bin_column);
    free(columns->number_column);
    free(columns->rare_column);
    free(columns->made_name);
    table_free(columns->table);
    free(columns->id);
    free(columns->values);
    free(columns->name);
    free(columns->order);
    *columns = (struct columns){0};
}
