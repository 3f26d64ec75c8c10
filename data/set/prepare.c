/* Prepares the columns of a table: bins, missing numbers, rare values of categories, columns that
 * files lack. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/set/column_builder.h"
#include "data/text/number.h"

/* Fewer rows than this say nothing about how many values a category has. */
#define ROWS_TELLING 100
#define DIFFERING_SHARE 0.9

void column_builder_reserve(const struct columns *columns, struct column_builder *builder,
                            uint64_t more) {
    uint64_t room = columns->count + more;
    if (room <= builder->room)
        return;
    builder->room = room;
    builder->id = memory_resize(builder->id, room, sizeof *builder->id);
    builder->values = memory_resize(builder->values, room, sizeof *builder->values);
}

void column_builder_add(struct columns *columns, struct column_builder *builder, uint64_t id,
                        uint64_t values) {
    if (columns->count == builder->room)
        column_builder_reserve(columns, builder, 1 + columns->count / 8);
    builder->id[columns->count] = id;
    builder->values[columns->count++] = values;
}

/* Adds the columns of the bins after those that the text has. */
static void add_bins(struct columns *columns, struct column_builder *builder) {
    struct table *table = columns->table;
    columns->bin_column = memory_new(table->columns, sizeof *columns->bin_column);
    for (uint32_t i = 0; i < table->columns; i++) {
        const struct table_column *column = &table->column[i];
        if (!column->edges)
            continue;
        columns->bin_column[i] = memory_new(column->edges + (size_t)1, sizeof(uint32_t));
        bool steps = column->monotone != MONOTONE_NONE;
        uint64_t above = 0;
        columns->bin_column[i][0] = DICTIONARY_NONE;
        columns->steps_most += steps ? column->edges : 0;
        for (uint32_t bin = 1; bin <= column->edges; bin++)
            above += column->in_bin[bin];
        for (uint32_t bin = steps; bin <= column->edges; bin++) {
            columns->bin_column[i][bin] = columns_of_table(columns);
            column_builder_add(columns, builder, table_bin_feature(i, bin),
                               steps ? above : column->in_bin[bin]);
            above -= bin ? column->in_bin[bin] : 0;
        }
    }
}

static uint32_t *no_columns(uint64_t count) {
    uint32_t *column = memory_new(count, sizeof *column);
    for (uint64_t i = 0; i < count; i++)
        column[i] = DICTIONARY_NONE;
    return column;
}

static uint64_t missing_feature(uint32_t column) {
    return table_feature(column, ROLE_MISSING, NULL, 0);
}

/* What a feature of a pack brings with it. */
static struct derivation derive(const struct columns *columns, const struct pack *pack,
                                uint32_t feature) {
    uint32_t column = pack->column[feature];
    const struct table_column *here = &columns->table->column[column];
    struct derivation derivation = {.column = here,
                                    .number_column = &columns->number_column[column]};
    if (pack->id[feature] == (uint64_t)column + 1)
        derivation.bin_column = columns->bin_column[column];
    bool missing = here->kind == COLUMN_NUMBER && pack->id[feature] == missing_feature(column) &&
                   *derivation.number_column != DICTIONARY_NONE;
    return derivation.bin_column || missing ? derivation : (struct derivation){0};
}

static void find_deriving(struct columns *columns, const struct split *split) {
    assert(columns->packs == split->count);
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        uint32_t features = pack->facts->features, some = 0;
        if (!pack->table)
            continue;
        struct derivation *derivation = memory_new(features, sizeof *derivation);
        bool *derives = memory_new(features, sizeof *derives);
        for (uint32_t i = 0; i < features; i++) {
            derivation[i] = derive(columns, pack, i);
            derives[i] = derivation[i].column != NULL;
            some += derives[i];
        }
        columns->derivation[p] = some ? derivation : NULL;
        columns->derives[p] = some ? derives : NULL;
        if (some)
            continue;
        free(derivation);
        free(derives);
    }
}

/* ---- categories ---- */

/* Whether a feature is a text of a category that is not hashed, or a word. */
static bool is_text(const struct columns *columns, const struct pack *pack, uint32_t feature) {
    uint32_t column = pack->column[feature];
    enum column_kind kind = columns->table->column[column].kind;
    return kind == COLUMN_WORDS ||
           (kind == COLUMN_CATEGORY && !columns->table->hash &&
            pack->id[feature] >= FEATURE_HASHED && pack->id[feature] != missing_feature(column));
}

/* Refuses a column that was found to be a category and is none, such as names: nearly every row has
 * another text. */
static int check_category_texts(const struct columns *columns, const struct column_builder *builder,
                                const uint32_t *of) {
    uint32_t width = columns->table->columns;
    uint64_t *texts = memory_new(width, sizeof *texts), *values = memory_new(width, sizeof *values);
    char name[COLUMN_TEXT];
    int code = 0;
    for (uint32_t i = 0; i < columns->count; i++)
        if (of[i] != DICTIONARY_NONE) {
            texts[of[i]]++;
            values[of[i]] += builder->values[i];
        }
    for (uint32_t c = 0; c < width && !code; c++)
        if (columns->table->column[c].found && values[c] >= ROWS_TELLING &&
            (double)texts[c] > DIFFERING_SHARE * (double)values[c])
            code = error_set(ERROR_DATA,
                             "%s: %s holds %llu different texts in %llu rows, which is no category "
                             "to learn from; leave it out with csv.skip, hash all categories with "
                             "csv.hash, list it in csv.text if it holds sentences, in csv.dates if "
                             "it holds dates, or in "
                             "csv.categories if it is meant",
                             pack_source(builder->split->packs[0]),
                             table_describe(columns->table, c, name), (unsigned long long)texts[c],
                             (unsigned long long)values[c]);
    free(texts);
    free(values);
    return code;
}

/* Puts the rare texts of a column together: the first to appear stands for all. Rare words are left
 * out. */
static void merge_rare(struct columns *columns, struct column_builder *builder, const uint32_t *of,
                       uint32_t least) {
    struct table *table = columns->table;
    uint32_t *to = memory_new(columns->count, sizeof *to), next = 0;
    for (uint32_t i = 0; i < columns->count; i++) {
        uint32_t column = of[i];
        struct table_column *here = column == DICTIONARY_NONE ? NULL : &table->column[column];
        uint64_t id = builder->id[i], values = builder->values[i];
        bool rare = here && values < least;
        if (rare && here->kind == COLUMN_WORDS) {
            to[i] = DICTIONARY_NONE;
            continue;
        }
        if (rare) {
            here->rare = memory_resize(here->rare, here->rares + (size_t)1, sizeof *here->rare);
            here->rare[here->rares++] = id;
        }
        if (rare && columns->rare_column[column] != DICTIONARY_NONE) {
            to[i] = columns->rare_column[column];
            builder->values[to[i]] += values;
            continue;
        }
        if (rare)
            columns->rare_column[column] = next;
        builder->id[next] = rare ? table_feature(column, ROLE_RARE, NULL, 0) : id;
        builder->values[next] = values;
        to[i] = next++;
    }
    for (uint32_t c = 0; c < table->columns; c++)
        if (table->column[c].rares)
            qsort(table->column[c].rare, table->column[c].rares, sizeof(uint64_t), compare_ids);
    uint32_t *rare_column = columns->rare_column;
    columns->rare_column = no_columns(table->columns); /* it has new numbers already */
    columns_renumber(columns, builder->split, &(struct column_numbers){.narrow = to});
    free(columns->rare_column);
    columns->rare_column = rare_column;
    columns->count = next;
    free(to);
}

/* Whether a feature says that its column is missing. */
static bool says_missing(const struct columns *columns, const struct pack *pack, uint32_t feature) {
    const struct table_column *column = &columns->table->column[pack->column[feature]];
    return (column->kind == COLUMN_NUMBER || column->kind == COLUMN_CATEGORY) && !column->is_part &&
           pack->id[feature] == missing_feature(pack->column[feature]);
}

/* A column that lost its cells on the way here teaches nothing, and later rows that have some are
 * scored without them. */
static void warn_of_empty(const struct columns *columns, const struct column_builder *builder) {
    const struct split *split = builder->split;
    uint64_t rows = 0;
    for (uint32_t p = 0; p < split->trained; p++)
        rows += split_count_trained(split, p);
    bool *seen = memory_new(columns->table->columns, sizeof *seen);
    uint32_t empty = 0;
    char name[COLUMN_TEXT], first[COLUMN_TEXT] = "";
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        for (uint32_t i = 0; pack->table && i < pack->facts->features; i++) {
            if (!columns_has(columns, p, i) || !says_missing(columns, pack, i) ||
                seen[pack->column[i]] || builder->values[columns->of_pack[p].narrow[i]] < rows)
                continue;
            seen[pack->column[i]] = true;
            if (!empty++)
                snprintf(first, sizeof first, "%s",
                         table_describe(columns->table, pack->column[i], name));
        }
    }
    free(seen);
    if (empty == 1)
        log_warning("%s: %s is empty in all rows that are trained on; csv.skip leaves it out",
                    pack_source(split->packs[0]), first);
    else if (empty)
        log_warning("%s: %u columns are empty in all rows that are trained on, such as %s; "
                    "csv.skip leaves them out",
                    pack_source(split->packs[0]), empty, first);
}

int columns_prepare(struct columns *columns, struct column_builder *builder,
                    const struct set_options *options) {
    const struct split *split = builder->split;
    /* The table has the columns of all files that are trained on. */
    for (uint32_t p = 0; p < split->trained; p++) {
        const struct table *table = split->packs[p]->table;
        if (table && columns->table)
            table_add_columns(columns->table, table);
        else if (table)
            columns->table = table_copy(table);
    }
    if (!columns->table)
        return 0;
    columns->table->text.values = options->text_values;
    columns_find_texts(columns, split);
    /* The column of the table whose text or word a number of the columns is, or DICTIONARY_NONE. */
    uint32_t *of = no_columns(columns->count);
    for (uint32_t p = 0; p < columns->packs; p++) {
        const struct pack *pack = split->packs[p];
        for (uint32_t i = 0; pack->table && i < pack->facts->features; i++)
            if (columns_has(columns, p, i) && is_text(columns, pack, i))
                of[columns->of_pack[p].narrow[i]] = pack->column[i];
    }
    int code = check_category_texts(columns, builder, of);
    columns->rare_column = no_columns(columns->table->columns);
    columns->missing_column = no_columns(columns->table->columns);
    if (!code && options->category_least > 1)
        merge_rare(columns, builder, of, options->category_least);
    free(of);
    if (!code)
        code = table_find_monotone(columns->table, options->monotone, options->bins > 0);
    if (code)
        return code;
    column_stats_find(columns->table, split, options->bins, options->threads);
    add_bins(columns, builder);
    uint32_t width = columns->table->columns;
    assert(!columns->number_column);
    columns->number_column = no_columns(width);
    for (uint32_t i = 0; i < columns->count; i++)
        if (builder->id[i] && builder->id[i] <= width)
            columns->number_column[builder->id[i] - 1] = i;
    find_deriving(columns, split);
    /* A missing number is replaced by the mean, which counts as a value of the number's column. */
    bool *counted = memory_new(columns->count, sizeof *counted);
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < builder->split->packs[p]->facts->features; i++) {
            uint32_t number = columns->of_pack[p].narrow[i];
            if (number == DICTIONARY_NONE || counted[number] || !columns_derive(columns, p, i) ||
                columns->derivation[p][i].bin_column)
                continue;
            counted[number] = true;
            builder->values[*columns->derivation[p][i].number_column] += builder->values[number];
        }
    free(counted);
    columns_find_absent(columns, builder);
    warn_of_empty(columns, builder);
    return columns_cross(columns, builder, options);
}

/* ---- columns that some files lack ----
 *
 * Each row of these files has what a row with an empty field has. Packs do not hold it, so they
 * stay as they are when another file brings a column. */

static bool pack_lacks(const struct columns *columns, const struct pack *pack, uint32_t column) {
    const struct table_column *here = &columns->table->column[column];
    return pack->table && table_uses(here) && here->kind != COLUMN_WORDS &&
           table_lacks(pack->table, column);
}

/* Finds the features that say of the columns that they are missing, or adds them. */
static void find_features(struct columns *columns, struct column_builder *builder,
                          const uint64_t *rows) {
    uint32_t width = columns->table->columns, count = columns_of_table(columns);
    for (uint32_t c = 0; c < width; c++) {
        uint64_t id = table_feature(c, ROLE_MISSING, NULL, 0);
        uint32_t *number = &columns->missing_column[c];
        for (uint32_t i = 0; i < count && rows[c] && *number == DICTIONARY_NONE; i++)
            if (builder->id[i] == id)
                *number = i;
        if (rows[c] && *number == DICTIONARY_NONE) {
            *number = columns_of_table(columns);
            column_builder_add(columns, builder, id, 0);
        }
    }
}

void columns_find_absent(struct columns *columns, struct column_builder *builder) {
    assert(columns->table && columns->missing_column);
    /* How many training rows each column of the table is missing in because their files lack it. */
    uint64_t *rows = memory_new(columns->table->columns, sizeof *rows);
    for (uint32_t p = 0; p < builder->split->trained; p++) {
        uint64_t trained = split_count_trained(builder->split, p);
        for (uint32_t c = 0; c < columns->table->columns; c++)
            rows[c] += pack_lacks(columns, builder->split->packs[p], c) ? trained : 0;
    }
    find_features(columns, builder, rows);
    for (uint32_t c = 0; c < columns->table->columns; c++) {
        if (columns->missing_column[c] != DICTIONARY_NONE)
            builder->values[columns->missing_column[c]] += rows[c];
        if (columns->number_column[c] != DICTIONARY_NONE)
            builder->values[columns->number_column[c]] += rows[c];
    }
    free(rows);
}

static void add_absent(struct absent *absent, uint32_t column, double value) {
    if (column == DICTIONARY_NONE)
        return;
    absent->values =
        memory_resize(absent->values, absent->count + (size_t)1, sizeof(struct derived));
    absent->values[absent->count++] = (struct derived){column, value};
}

void columns_list_absent(struct columns *columns, const struct split *split) {
    assert(columns->packs == split->count);
    for (uint32_t p = 0; p < columns->packs; p++)
        columns->absent[p].count = 0;
    for (uint32_t p = 0; columns->table && p < columns->packs; p++)
        for (uint32_t c = 0; c < columns->table->columns; c++) {
            if (!pack_lacks(columns, split->packs[p], c))
                continue;
            add_absent(&columns->absent[p], columns->missing_column[c], 1);
            if (columns->table->column[c].kind == COLUMN_NUMBER)
                add_absent(&columns->absent[p], columns->number_column[c],
                           columns->table->column[c].mean);
        }
}

/* ---- numbers and names ---- */

static void renumber(uint32_t *number, uint32_t count, const uint32_t *to) {
    for (uint32_t i = 0; number && i < count; i++)
        if (number[i] != DICTIONARY_NONE)
            number[i] = to[number[i]];
}

void columns_renumber(struct columns *columns, const struct split *split,
                      const struct column_numbers *numbers) {
    assert(columns->packs == split->count);
    const uint32_t *to = numbers->narrow;
    for (uint32_t p = 0; p < columns->packs; p++) {
        uint32_t features = split->packs[p]->facts->features;
        renumber(columns->of_pack[p].narrow, features, to);
        for (uint32_t i = 0; columns->of_pack[p].wide && i < features; i++)
            if (columns->of_pack[p].wide[i] != COLUMN_NONE)
                columns->of_pack[p].wide[i] = numbers->wide[columns->of_pack[p].wide[i]];
    }
    uint32_t width = columns->table ? columns->table->columns : 0;
    renumber(columns->number_column, width, to);
    renumber(columns->rare_column, width, to);
    renumber(columns->missing_column, width, to);
    for (uint32_t c = 0; columns->bin_column && c < width; c++)
        renumber(columns->bin_column[c], columns->table->column[c].edges + 1, to);
    if (columns->crosses)
        crosses_renumber(columns->crosses, to);
}

/* The name becomes the columns'. */
static void put_name(struct columns *columns, uint32_t number, char *name) {
    if (!columns->name)
        columns->name = memory_new(columns->count, sizeof *columns->name);
    MEMORY_ROOM(columns->made_name, columns->made_names, columns->made_capacity);
    columns->name[number] = columns->made_name[columns->made_names++] = name;
}

static void make_name(struct columns *columns, uint32_t number, uint32_t column,
                      enum feature_role role, uint32_t bin) {
    char text[16];
    snprintf(text, sizeof text, "%u", bin);
    put_name(columns, number, table_feature_name(columns->table, column, role, text));
}

void columns_make_names(struct columns *columns) {
    for (uint32_t c = 0; columns->table && c < columns->table->columns; c++) {
        if (columns->rare_column[c] != DICTIONARY_NONE)
            make_name(columns, columns->rare_column[c], c, ROLE_RARE, 0);
        if (columns->missing_column[c] != DICTIONARY_NONE)
            make_name(columns, columns->missing_column[c], c, ROLE_MISSING, 0);
        for (uint32_t bin = 0; columns->bin_column[c] && bin <= columns->table->column[c].edges;
             bin++)
            if (columns->bin_column[c][bin] != DICTIONARY_NONE)
                make_name(columns, columns->bin_column[c][bin], c, ROLE_BIN, bin);
    }
    for (uint32_t k = 0; columns->crosses && k < columns->crosses->count; k++) {
        const struct cross *cross = &columns->crosses->cross[k];
        for (uint32_t i = 0; i < cross->cells.count; i++)
            put_name(columns, cross->number[i], crosses_name(columns, k, i));
    }
}
