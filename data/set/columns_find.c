/* Numbers the columns of a set: by falling log2 of the count, then by first appearance. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "data/set/column_builder.h"
#include "data/set/columns.h"
#include "data/table/spelling.h"

static unsigned frequency_class(uint64_t count) {
    return 63u - (unsigned)__builtin_clzll(count | 1);
}

struct column_numbers column_numbers_new(uint64_t count, bool wide) {
    struct column_numbers numbers = {0};
    if (wide)
        numbers.wide = memory_new(count, sizeof *numbers.wide);
    else
        numbers.narrow = memory_new(count, sizeof *numbers.narrow);
    return numbers;
}

void column_numbers_free(struct column_numbers *numbers) {
    free(numbers->narrow);
    free(numbers->wide);
    *numbers = (struct column_numbers){0};
}

/* No number is one with all bits, either way. */
static void column_numbers_clear(struct column_numbers *numbers, uint64_t count) {
    if (count)
        memset(numbers->wide ? (void *)numbers->wide : numbers->narrow, 0xff,
               count * (numbers->wide ? sizeof *numbers->wide : sizeof *numbers->narrow));
}

static bool add_feature(struct column_builder *builder, uint32_t p, uint32_t feature,
                        struct column_numbers *of_pack) {
    uint64_t id = builder->split->packs[p]->id[feature];
    if (of_pack->wide) {
        uint64_t *number = &of_pack->wide[feature];
        if (*number == COLUMN_NONE)
            *number = wide_dictionary_add(&builder->dictionary, id);
        return *number != COLUMN_NONE;
    }
    uint32_t *number = &of_pack->narrow[feature];
    if (*number == DICTIONARY_NONE)
        *number = (uint32_t)wide_dictionary_add(&builder->dictionary, id);
    return *number != DICTIONARY_NONE;
}

/* Shows a row to the dictionary as the text has it. */
static bool add_row(struct column_builder *builder, uint32_t p, const struct pack_rows *rows,
                    uint32_t row, struct column_numbers *of_pack) {
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
static bool add_split_pack(struct column_builder *builder, uint32_t p,
                           struct column_numbers *of_pack) {
    assert(p < builder->split->count && builder->split->side[p]);
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

static bool is_only_pack(const struct split *split) {
    return split->count == 1 && !split->side[0];
}

/* The features of a pack are numbered by first appearance already. */
static void take_only_pack(struct columns *columns, struct column_builder *builder) {
    assert(builder->split->count == 1 && !builder->split->side[0]);
    const struct pack *pack = builder->split->packs[0];
    uint32_t count = pack->facts->features;
    columns->count = count;
    if (!pack->table)
        return; /* it needs no copies: find_orders() */
    columns->of_pack[0] = column_numbers_new(count, false);
    for (uint32_t i = 0; i < count; i++)
        columns->of_pack[0].narrow[i] = i;
    builder->id = memory_new(count, sizeof *builder->id);
    if (count)
        memcpy(builder->id, pack->id, count * sizeof *builder->id);
}

static bool number_pack(const struct columns *columns, struct column_builder *builder, uint32_t p) {
    assert(p < columns->packs);
    const struct split *split = builder->split;
    uint32_t features = split->packs[p]->facts->features;
    columns->of_pack[p] = column_numbers_new(features, columns->wide);
    struct column_numbers *of_pack = &columns->of_pack[p];
    column_numbers_clear(of_pack, features);
    bool fits = !split->side[p] || add_split_pack(builder, p, of_pack);
    for (uint32_t i = 0; !split->side[p] && i < features && fits; i++)
        fits = add_feature(builder, p, i, of_pack);
    return fits;
}

/* Packs may have much in common: then there are fewer columns than was feared. */
static void make_narrow(struct columns *columns, const struct split *split) {
    columns->wide = false;
    for (uint32_t p = 0; p < columns->packs; p++) {
        struct column_numbers wide = columns->of_pack[p];
        uint32_t features = split->packs[p]->facts->features;
        columns->of_pack[p] = column_numbers_new(features, false);
        for (uint32_t i = 0; i < features; i++)
            column_number_put(&columns->of_pack[p], i, wide.wide[i]);
        column_numbers_free(&wide);
    }
}

static bool is_trained(const void *dictionary, uint64_t id) {
    return wide_dictionary_find(dictionary, id) != COLUMN_NONE;
}

/* The number of a feature that only held-out rows of its pack have. It may be a column because of
 * rows of another pack, or a text that training rows have in another spelling, which counts as
 * theirs when the model is evaluated on other rows, too. */
static uint64_t find_trained(const struct wide_dictionary *dictionary, const struct pack *pack,
                             uint32_t feature) {
    uint64_t number = wide_dictionary_find(dictionary, pack->id[feature]), spelled = 0;
    char *text = number == COLUMN_NONE ? pack_category_text(pack, feature) : NULL;
    if (text)
        spelled = spelling_find_known(pack->column[feature], text, is_trained, dictionary);
    free(text);
    return spelled ? wide_dictionary_find(dictionary, spelled) : number;
}

static int number_packs(struct columns *columns, struct column_builder *builder, uint32_t narrow) {
    assert(columns->packs == builder->split->count);
    const struct split *split = builder->split;
    uint64_t most = 0;
    for (uint32_t p = 0; p < columns->packs; p++)
        most += split->packs[p]->facts->features;
    columns->wide = most > narrow;
    wide_dictionary_init(&builder->dictionary, most, narrow);
    for (uint32_t p = 0; p < columns->packs; p++)
        if (!number_pack(columns, builder, p))
            return error_set(ERROR_DATA, "the data has more than %llu different features",
                             (unsigned long long)COLUMNS_MAX);
    columns->count = wide_dictionary_count(&builder->dictionary);
    builder->id = wide_dictionary_take_ids(&builder->dictionary);
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < split->packs[p]->facts->features; i++)
            if (!columns_has(columns, p, i))
                column_number_put(&columns->of_pack[p], i,
                                  find_trained(&builder->dictionary, split->packs[p], i));
    if (columns->wide && columns->count <= narrow)
        make_narrow(columns, split);
    return 0;
}

/* What is made of columns of a table knows them by 32 bits. */
static int check_tables(const struct columns *columns, const struct split *split) {
    assert(columns->packs == split->count);
    for (uint32_t p = 0; columns->wide && p < columns->packs; p++)
        if (split->packs[p]->table)
            return error_set(ERROR_DATA,
                             "%s: tables with %llu different features, where they may have %u; "
                             "hash texts (csv.hash), put rare ones together (csv.category_least), "
                             "or leave columns out (csv.skip)",
                             pack_source(split->packs[p]), (unsigned long long)columns->count,
                             FEATURES_MAX);
    return 0;
}

/* Numbers all features by first appearance. */
static int collect(struct columns *columns, struct column_builder *builder,
                   const struct set_options *options) {
    uint32_t narrow = options->narrow_columns ? options->narrow_columns : FEATURES_MAX;
    const struct split *split = builder->split;
    int code = 0;
    if (is_only_pack(split))
        take_only_pack(columns, builder);
    else
        code = number_packs(columns, builder, narrow);
    if (!code && !columns->count)
        code =
            error_set(ERROR_DATA, "%s: no row has a single feature", pack_source(split->packs[0]));
    return code ? code : check_tables(columns, split);
}

/* The column of each number by first appearance: a counting sort over the frequency classes. */
static struct column_numbers sort_by_frequency(const uint64_t *values, uint64_t count, bool wide) {
    uint64_t next[65] = {0};
    for (uint64_t i = 0; i < count; i++)
        next[63 - frequency_class(values[i]) + 1]++;
    for (unsigned c = 1; c < 65; c++)
        next[c] += next[c - 1];
    assert(next[64] == count);
    struct column_numbers column = column_numbers_new(count, wide);
    for (uint64_t i = 0; i < count; i++)
        column_number_put(&column, i, next[63 - frequency_class(values[i])]++);
    return column;
}

/* Sums of the counts over all packs, by first appearance. */
static uint64_t *sum_counts(const struct columns *columns, const struct column_builder *builder) {
    uint64_t *values = memory_new(columns->count, sizeof *values);
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = builder->split->packs[p];
        const uint64_t *count = builder->trained[p] ? builder->trained[p] : pack->count;
        const struct column_numbers of_pack = columns->of_pack[p];
        for (uint32_t i = 0; i < pack->facts->features; i++) {
            uint64_t column = column_number(&of_pack, i);
            if (column != COLUMN_NONE)
                values[column] += count[i];
        }
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
    assert(columns->packs == split->count);
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        if (!pack->name)
            continue;
        if (!columns->name)
            columns->name = memory_new(columns->count, sizeof *columns->name);
        for (uint32_t i = 0; i < pack->facts->features; i++) {
            uint64_t column = column_number(&columns->of_pack[p], i);
            if (column == COLUMN_NONE || columns->id[column] != pack->id[i])
                continue; /* or it is among the rare ones */
            const char **name = &columns->name[column];
            if (*name && strcmp(*name, pack->name[i]))
                return reject_name(pack, i, *name);
            *name = pack->name[i];
        }
    }
    columns_make_names(columns);
    for (uint64_t i = 0; columns->name && i < columns->count; i++)
        if (!columns->name[i])
            columns->name[i] = "";
    return 0;
}

/* Packed, as there are two for each column while they are sorted. */
struct id_and_column {
    uint64_t id;
    uint32_t low; /* of the column, as is the next */
    uint8_t high;
} __attribute__((packed));
_Static_assert(COLUMNS_MAX <= UINT64_C(1) << 40, "a column has 40 bits while ids are sorted");

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SHORT_BITS 32

#define WORTH_A_THREAD 65536 /* columns */

/* Where the entries of each digit begin, from how many there are. */
static void begin_digits(uint64_t next[DIGITS]) {
    uint64_t sum = 0;
    for (uint32_t digit = 0; digit < DIGITS; digit++) {
        uint64_t here = next[digit];
        next[digit] = sum;
        sum += here;
    }
}

/* One pass of a counting sort; equal digits keep their order. */
static void sort_long_by_digit(const struct id_and_column *from, struct id_and_column *to,
                               uint64_t count, unsigned shift) {
    uint64_t next[DIGITS] = {0};
    for (uint64_t i = 0; i < count; i++)
        next[from[i].id >> shift & (DIGITS - 1)]++;
    begin_digits(next);
    for (uint64_t i = 0; i < count; i++)
        to[next[from[i].id >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_short_by_digit(const uint64_t *from, uint64_t *to, uint64_t count,
                                unsigned shift) {
    uint64_t next[DIGITS] = {0};
    for (uint64_t i = 0; i < count; i++)
        next[from[i] >> shift & (DIGITS - 1)]++;
    begin_digits(next);
    for (uint64_t i = 0; i < count; i++)
        to[next[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_long_ids(const uint64_t *id, uint64_t count, uint64_t largest,
                          struct column_numbers *order) {
    size_t bytes = count * sizeof(struct id_and_column);
    struct id_and_column *entries = memory_map(bytes), *other = memory_map(bytes);
    for (uint64_t i = 0; i < count; i++)
        entries[i] = (struct id_and_column){id[i], (uint32_t)i, (uint8_t)(i >> 32)};
    for (unsigned shift = 0; shift < 64 && largest >> shift; shift += DIGIT_BITS) {
        sort_long_by_digit(entries, other, count, shift);
        struct id_and_column *sorted = other;
        other = entries;
        entries = sorted;
    }
    for (uint64_t i = 0; i < count; i++)
        column_number_put(order, i, (uint64_t)entries[i].high << 32 | entries[i].low);
    memory_unmap(entries, bytes);
    memory_unmap(other, bytes);
}

/* An id and its column are one word: where all ids are short, columns are too. */
static void sort_short_ids(const uint64_t *id, uint64_t count, uint64_t largest,
                           struct column_numbers *order) {
    size_t bytes = count * sizeof(uint64_t);
    uint64_t *entries = memory_map(bytes), *other = memory_map(bytes);
    for (uint64_t i = 0; i < count; i++)
        entries[i] = id[i] << SHORT_BITS | i;
    for (unsigned shift = 0; shift < SHORT_BITS && largest >> shift; shift += DIGIT_BITS) {
        sort_short_by_digit(entries, other, count, SHORT_BITS + shift);
        uint64_t *sorted = other;
        other = entries;
        entries = sorted;
    }
    for (uint64_t i = 0; i < count; i++)
        column_number_put(order, i, (uint32_t)entries[i]);
    memory_unmap(entries, bytes);
    memory_unmap(other, bytes);
}

/* Most ids are short: those of texts with numbers, but not hashes. */
static struct column_numbers sort_by_id(const uint64_t *id, uint64_t count) {
    uint64_t largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = id[i] > largest ? id[i] : largest;
    struct column_numbers order = column_numbers_new(count, count > FEATURES_MAX);
    if (largest >> SHORT_BITS)
        sort_long_ids(id, count, largest, &order);
    else
        sort_short_ids(id, count, largest, &order);
    return order;
}

/* ---- both orders ---- */

/* If columns are many, either order takes long, and needs nothing of the other. */
struct ordering {
    struct columns *columns;
    const uint64_t *id, *values;  /* by first appearance */
    struct column_numbers column; /* of each number by first appearance */
};

static void find_order(void *context, unsigned part) {
    struct ordering *ordering = context;
    struct columns *columns = ordering->columns;
    if (part) {
        columns->order = sort_by_id(ordering->id, columns->count);
        return;
    }
    ordering->column = sort_by_frequency(ordering->values, columns->count, columns->wide);
    columns->id = memory_new(columns->count, sizeof *columns->id);
    columns->values = memory_new(columns->count + 1, sizeof *columns->values);
    for (uint64_t i = 0; i < columns->count; i++) {
        uint64_t column = column_number(&ordering->column, i);
        columns->id[column] = ordering->id[i];
        columns->values[column] = ordering->values[i];
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
    for (uint64_t i = 0; i < columns->count; i++)
        column_number_put(&columns->order, i,
                          column_number(&ordering.column, column_number(&columns->order, i)));
    if (as_packed) {
        columns->of_pack[0] = ordering.column;
        return;
    }
    columns_renumber(columns, split, &ordering.column);
    column_numbers_free(&ordering.column);
}

/* Two columns with one id could not be told apart: sets and models know columns by their ids. */
static int check_ids(const struct columns *columns, const struct split *split) {
    for (uint64_t i = 1; i < columns->count; i++) {
        uint64_t a = column_number(&columns->order, i - 1), b = column_number(&columns->order, i);
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
    wide_dictionary_release(&builder->dictionary);
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
    int code = collect(columns, &builder, options);
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
            crosses_find_levels(columns->crosses, columns_of_table(columns));
        columns_weigh_words(columns, split);
        code = take_names(columns, split);
        if (!code)
            code = check_ids(columns, split);
    }
    return code;
}

void columns_release(struct columns *columns) {
    for (uint32_t p = 0; columns->of_pack && p < columns->packs; p++)
        column_numbers_free(&columns->of_pack[p]);
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
    free(columns->centre);
    free(columns->far);
    table_free(columns->table);
    free(columns->id);
    free(columns->values);
    free(columns->name);
    column_numbers_free(&columns->order);
    *columns = (struct columns){0};
}
