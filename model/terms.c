#include "model/terms.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/table/spelling.h"
#include "model/crosses.h"

#define ROOM_FIRST 256

static void terms_add(struct terms *terms, uint64_t feature, double value) {
    if (terms->count == terms->room) {
        terms->room = terms->room ? 2 * terms->room : ROOM_FIRST;
        terms->feature = memory_resize(terms->feature, terms->room, sizeof *terms->feature);
        terms->value = memory_resize(terms->value, terms->room, sizeof *terms->value);
    }
    terms->feature[terms->count] = feature;
    terms->value[terms->count++] = value;
}

void terms_append(struct terms *terms, const struct terms *others) {
    for (size_t i = 0; i < others->count; i++)
        terms_add(terms, others->feature[i], others->value[i]);
}

void terms_release(struct terms *terms) {
    free(terms->feature);
    free(terms->value);
    *terms = (struct terms){0};
}

struct missing {
    uint64_t id;   /* of the feature that says that the number is missing */
    uint64_t rank; /* of the number among the model's features; NO_FEATURE: training had none */
    double mean;
};
#define NO_FEATURE UINT64_MAX

/* The rank of a feature in the model, or NO_FEATURE. */
static uint64_t find_rank(const struct model_layout *layout, uint64_t id) {
    uint64_t rank = rank_from(layout, 0, id);
    return has_rank(layout, rank, id) ? rank : NO_FEATURE;
}

static uint32_t table_columns(const struct model *model) {
    return model->layout.table ? model->layout.table->columns : 0;
}

/* The id of a column's feature in a role that needs no text. */
static uint64_t feature_of(uint32_t column, enum feature_role role) {
    return table_feature(column, role, NULL, 0);
}

/* One of 64 by the upper bits of an id, which is a hash: most ids have none of those that say that
 * a number is missing. */
static uint64_t missing_bit(uint64_t id) {
    return UINT64_C(1) << (id >> 57 & 63);
}

static int compare_missing(const void *a, const void *b) {
    const struct missing *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* ---- ranks ---- */

#define INDEXED_LEAST 8     /* fewer are found by searching */
#define NUMBERS_A_FEATURE 4 /* else they take more memory than the model */

/* The upper bits of an id that is a hash, without the one that all have. */
static uint64_t upper_bits(const struct rank_index *index, uint64_t id) {
    return (id & ~FEATURE_HASHED) >> index->shift;
}

/* Indexes ids that are numbers, where most numbers up to the last one are ids. */
static void rank_index_number(struct rank_index *index, const struct model_layout *layout) {
    uint64_t count = rank_from(layout, 0, FEATURE_HASHED), next = 0;
    uint64_t end = count ? layout->feature_id[count - 1] + 1 : 0;
    if (count < INDEXED_LEAST || end / NUMBERS_A_FEATURE > count || count > FEATURES_MAX)
        return;
    index->numbers = end;
    index->rank = memory_new(end, sizeof *index->rank);
    for (uint64_t rank = 0; rank < count; rank++)
        for (; next <= layout->feature_id[rank]; next++)
            index->rank[next] = (uint32_t)rank;
}

static void rank_index_hashes(struct rank_index *index, const struct model_layout *layout) {
    assert(!index->first);
    uint64_t hashed = rank_from(layout, 0, FEATURE_HASHED), count = layout->features - hashed;
    unsigned bits = 1;
    if (count < INDEXED_LEAST || layout->features > FEATURES_MAX)
        return;
    while (count >> bits > 1)
        bits++;
    index->shift = 63 - bits;
    index->first = memory_new((UINT64_C(1) << bits) + 1, sizeof *index->first);
    uint64_t next = 0;
    for (uint64_t rank = hashed; rank < layout->features; rank++)
        for (; next <= upper_bits(index, layout->feature_id[rank]); next++)
            index->first[next] = (uint32_t)rank;
    for (; next <= UINT64_C(1) << bits; next++)
        index->first[next] = (uint32_t)layout->features;
}

/* As rank_from(), which is slow where ids are far apart. */
static uint64_t rank_of(const struct term_mapper *mapper, uint64_t from, uint64_t id) {
    const struct model_layout *layout = &mapper->model->layout;
    if (id < mapper->index.numbers)
        return mapper->index.rank[id];
    if (id < FEATURE_HASHED || !mapper->index.first)
        return rank_from(layout, from, id);
    uint64_t bits = upper_bits(&mapper->index, id);
    uint64_t rank = mapper->index.first[bits], end = mapper->index.first[bits + 1];
    if (end - rank > 8)
        return rank_from(layout, rank, id);
    while (rank < end && layout->feature_id[rank] < id)
        rank++;
    return rank;
}

void term_mapper_init(struct term_mapper *mapper, const struct model *model) {
    uint32_t columns = table_columns(model);
    *mapper = (struct term_mapper){.model = model};
    mapper->has_texts = columns && table_has_texts(model->layout.table);
    rank_index_number(&mapper->index, &model->layout);
    if (columns)
        rank_index_hashes(&mapper->index, &model->layout);
    mapper->squares = memory_new(columns, sizeof *mapper->squares);
    mapper->told = memory_new(columns, sizeof *mapper->told);
    mapper->counts = memory_new(columns, sizeof *mapper->counts);
    mapper->missing = memory_new(columns, sizeof *mapper->missing);
    mapper->bins = memory_new(columns, sizeof *mapper->bins);
    for (uint32_t i = 0; i < columns; i++) {
        const struct table *table = model->layout.table;
        const struct table_column *column = &table->column[i];
        mapper->counts[i].missing = feature_of(i, ROLE_MISSING);
        if (column->kind == COLUMN_NUMBER) {
            double mean = model->layout.table->column[i].mean;
            uint64_t rank = find_rank(&model->layout, feature_of(i, ROLE_NUMBER));
            mapper->missing[mapper->missing_count] =
                (struct missing){.id = feature_of(i, ROLE_MISSING),
                                 .rank = isnan(mean) ? NO_FEATURE : rank,
                                 .mean = mean};
            mapper->missing_bits |= missing_bit(mapper->missing[mapper->missing_count++].id);
        }
        if (!column->edges)
            continue;
        mapper->bins[i] = memory_new(column->edges + (size_t)1, sizeof(uint64_t));
        for (uint32_t bin = 0; bin <= column->edges; bin++)
            mapper->bins[i][bin] = find_rank(&model->layout, table_bin_feature(i, bin));
    }
    qsort(mapper->missing, mapper->missing_count, sizeof *mapper->missing, compare_missing);
    mapper->crosses = cross_mapper_new(model);
}

void term_mapper_release(struct term_mapper *mapper) {
    for (uint32_t i = 0; i < table_columns(mapper->model); i++) {
        free(mapper->bins[i]);
        free(mapper->counts[i].text);
    }
    free(mapper->counts);
    free(mapper->bins);
    free(mapper->missing);
    free(mapper->index.first);
    free(mapper->index.rank);
    free(mapper->squares);
    free(mapper->words);
    free(mapper->values);
    free(mapper->told);
    cross_mapper_free(mapper->crosses);
    terms_release(&mapper->absent);
}

/* ---- what a value brings with it ---- */

static void add_known_term(uint64_t rank, double value, struct terms *terms) {
    if (rank != NO_FEATURE)
        terms_add(terms, rank, value);
}

/* If the feature says that a number is missing: adds the mean of that number, and returns true. */
static bool add_mean(const struct term_mapper *mapper, uint64_t id, struct terms *terms) {
    struct missing key = {.id = id};
    if (!(mapper->missing_bits & missing_bit(id)))
        return false;
    const struct missing *missing =
        bsearch(&key, mapper->missing, mapper->missing_count, sizeof key, compare_missing);
    if (missing)
        add_known_term(missing->rank, missing->mean, terms);
    return missing;
}

/* Adds the bin of a number, if its column has bins; of a monotone one those below it, too. */
static void add_bin(const struct term_mapper *mapper, uint64_t id, double value,
                    struct terms *terms) {
    const struct model *model = mapper->model;
    if (!id || id > table_columns(model) || !mapper->bins[id - 1])
        return;
    uint32_t bin = table_bin(&model->layout.table->column[id - 1], value);
    bool steps = model->layout.table->column[id - 1].monotone != MONOTONE_NONE;
    for (uint32_t i = steps ? 1 : bin; i <= bin; i++)
        add_known_term(mapper->bins[id - 1][i], 1, terms);
}

static int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The column of which the feature is a text that was too rare in training; COLUMN_NOWHERE: it is
 * none. */
static uint32_t find_rare(const struct model *model, uint64_t id) {
    for (uint32_t i = 0; i < table_columns(model); i++) {
        const struct table_column *column = &model->layout.table->column[i];
        if (column->rares && bsearch(&id, column->rare, column->rares, sizeof id, compare_ids))
            return i;
    }
    return COLUMN_NOWHERE;
}

/* If the feature is a text that was too rare in training: adds what stands for all such texts of
 * its column, and returns its id; else 0. */
static uint64_t add_rare(const struct term_mapper *mapper, uint64_t id, struct terms *terms) {
    uint32_t column = find_rare(mapper->model, id);
    if (column == COLUMN_NOWHERE)
        return 0;
    uint64_t rare = feature_of(column, ROLE_RARE);
    add_known_term(find_rank(&mapper->model->layout, rare), 1, terms);
    return rare;
}

/* Whether training had the text of this id, be it too rare for a feature of its own. */
static bool had_text(const void *of, uint64_t id) {
    const struct model *model = of;
    return find_rank(&model->layout, id) != NO_FEATURE || find_rare(model, id) != COLUMN_NOWHERE;
}

/* ---- what columns say ---- */

/* So few rows may lack anything. */
#define MUTE_ROWS_LEAST 10

/* Counts a value, but not that a cell is missing. */
static void count_value(struct term_mapper *mapper, uint32_t column, uint64_t id, bool found,
                        const struct source_origin *origin) {
    const struct table *table = mapper->model->layout.table;
    bool text = origin && (origin->role == ROLE_VALUE || origin->role == ROLE_WORD ||
                           origin->role == ROLE_HASHED);
    if (column >= table->columns || (!found && !text) || id == mapper->counts[column].missing)
        return;
    bool is_part = table->column[column].is_part;
    struct term_counts *counts = &mapper->counts[is_part ? table->column[column].date : column];
    counts->known += found;
    counts->unseen += !found && !is_part;
    if (found || counts->text || origin->role != ROLE_VALUE || is_part)
        return;
    counts->text = memory_copy_string(origin->text);
    if (!mapper->counts[mapper->unseen_column].text)
        mapper->unseen_column = column;
}

void term_mapper_forget(struct term_mapper *mapper) {
    mapper->rows = mapper->unseen = 0;
    for (uint32_t i = 0; i < table_columns(mapper->model); i++) {
        free(mapper->counts[i].text);
        mapper->counts[i] = (struct term_counts){.missing = mapper->counts[i].missing};
    }
}

bool term_mapper_column_is_mute(const struct term_mapper *mapper, uint32_t column) {
    assert(column < table_columns(mapper->model));
    const struct table_column *of = &mapper->model->layout.table->column[column];
    if (mapper->rows < MUTE_ROWS_LEAST || mapper->counts[column].known || mapper->told[column])
        return false;
    if (of->kind == COLUMN_NUMBER)
        return !of->is_part &&
               (of->edges ||
                find_rank(&mapper->model->layout, feature_of(column, ROLE_NUMBER)) != NO_FEATURE);
    return mapper->counts[column].unseen || of->kind == COLUMN_DATE ||
           (of->kind == COLUMN_CATEGORY && !of->is_part &&
            find_rank(&mapper->model->layout, mapper->counts[column].missing) == NO_FEATURE);
}

/* ---- columns that the data lacks ---- */

int term_mapper_check_table(struct term_mapper *mapper, const char *path, const struct table *table,
                            bool warns) {
    assert(mapper->model->layout.table && table);
    const struct table *own = mapper->model->layout.table;
    char name[COLUMN_TEXT];
    mapper->absent.count = 0;
    if (mapper->crosses)
        cross_mapper_forget_missed(mapper->crosses);
    for (uint32_t i = 0; i < own->columns; i++) {
        const struct table_column *column = &own->column[i];
        const struct table_column *here = i < table->columns ? &table->column[i] : NULL;
        bool same_name =
            column->name && (!here || (here->name && !strcmp(column->name, here->name)));
        if (!table_uses(column) ||
            (here && here->kind == column->kind && (!column->name || !here->name || same_name)))
            continue;
        table_describe(own, i, name);
        if (!same_name)
            return error_set(ERROR_DATA,
                             "%s: %s is not what it was in the data that the model was trained on, "
                             "which had its columns in another order, or others",
                             path, name);
        if (warns && !mapper->told[i])
            log_warning("%s: %s is not there as it was in the data that the model was trained on: "
                        "it counts as missing",
                        path, name);
        mapper->told[i] = true;
        uint64_t missing = feature_of(i, ROLE_MISSING);
        add_mean(mapper, missing, &mapper->absent);
        add_known_term(find_rank(&mapper->model->layout, missing), 1, &mapper->absent);
        if (mapper->crosses)
            cross_mapper_miss(mapper->crosses, i);
    }
    return 0;
}

/* ---- rows ---- */

/* Adds the terms of a value. Returns whether it belongs to a feature that the model has. The id of
 * a text that is rare becomes that of what stands for it. */
static bool map_value(struct term_mapper *mapper, uint64_t *of, double value, uint64_t rank,
                      struct terms *terms) {
    const struct model_layout *layout = &mapper->model->layout;
    const uint64_t id = *of;
    bool missing = id >= FEATURE_HASHED && add_mean(mapper, id, terms);
    if (layout->table)
        add_bin(mapper, id, value, terms);
    if (!has_rank(layout, rank, id)) {
        uint64_t rare = missing || id < FEATURE_HASHED ? 0 : add_rare(mapper, id, terms);
        mapper->unseen += !missing && !rare;
        *of = rare ? rare : id;
        return false;
    }
    terms_add(terms, rank, value);
    return true;
}

/* A value of the row: its id and place, and the rank that the id has in the model, if it is there.
 */
struct row_value {
    uint64_t id; /* first, for compare_ids() */
    uint64_t at, rank;
};

/* Finds the ranks. A text that training had in another spelling takes the id of that, and with it
 * its place among the others: terms are added in the order of ids, so that the sums have the same
 * bits. */
static void rank_values(struct term_mapper *mapper, const struct source_rows *rows, uint32_t row) {
    const struct model_layout *layout = &mapper->model->layout;
    const uint64_t *id = source_row_ids(rows, row);
    uint64_t rank = 0, first = rows->start[row], count = rows->start[row + 1] - first;
    bool respelled = false;
    if (mapper->values_room < count)
        mapper->values =
            memory_resize(mapper->values, mapper->values_room = 2 * count, sizeof *mapper->values);
    for (uint64_t i = 0; i < count; i++) {
        struct row_value *value = &mapper->values[i];
        const struct source_origin *origin = rows->origin ? &rows->origin[first + i] : NULL;
        rank = rank_of(mapper, rank, id[i]);
        *value = (struct row_value){id[i], first + i, rank};
        if (!origin || origin->role != ROLE_VALUE || has_rank(layout, rank, id[i]) ||
            find_rare(mapper->model, id[i]) != COLUMN_NOWHERE)
            continue;
        uint64_t spelled =
            spelling_find_known(origin->column, origin->text, had_text, mapper->model);
        if (spelled)
            *value = (struct row_value){spelled, first + i, rank_from(layout, 0, spelled)};
        respelled |= spelled != 0;
    }
    if (respelled)
        qsort(mapper->values, count, sizeof *mapper->values, compare_ids);
}

/* ---- words ---- */

/* The last term is that of a value of the column: if it is a word, gives it its value, but for the
 * norm of its text. */
static void weigh_word(struct term_mapper *mapper, uint32_t column, struct terms *terms) {
    const struct model_layout *layout = &mapper->model->layout;
    if (column >= layout->table->columns || layout->table->column[column].kind != COLUMN_WORDS)
        return;
    assert(terms->count > 0);
    size_t last = terms->count - 1;
    double *value = &terms->value[last], idf = layout->idf ? layout->idf[terms->feature[last]] : 0;
    *value = table_word_value(layout->table, *value, idf);
    if (!layout->idf)
        return;
    mapper->squares[column] += *value * *value;
    MEMORY_ROOM(mapper->words, mapper->words_count, mapper->words_room);
    mapper->words[mapper->words_count++] = (struct word_term){last, column};
}

/* A file is read by the model's own table, a pack by that of its run. */
uint64_t term_mapper_row(struct term_mapper *mapper, const struct source_rows *rows, uint32_t row,
                         struct terms *terms) {
    assert(row < rows->count);
    const struct table *table = mapper->model->layout.table;
    uint64_t known = 0, first = rows->start[row], count = rows->start[row + 1] - first;
    rank_values(mapper, rows, row);
    mapper->rows++;
    if (mapper->crosses)
        cross_mapper_begin(mapper->crosses);
    for (uint64_t i = 0; i < count; i++) {
        const struct row_value *value = &mapper->values[i];
        const struct source_origin *origin = rows->origin ? &rows->origin[value->at] : NULL;
        const double number = rows->value[value->at];
        uint64_t of = value->id;
        bool found = map_value(mapper, &of, number, value->rank, terms);
        known += found;
        if (!table)
            continue;
        uint32_t column = source_row_column(rows, row, value->at - first);
        count_value(mapper, column, of, found || of != value->id, origin);
        if (mapper->has_texts && found && of >= FEATURE_HASHED)
            weigh_word(mapper, column, terms);
        if (mapper->crosses && of < FEATURE_HASHED)
            cross_mapper_see_number(mapper->crosses, column, number);
        else if (mapper->crosses)
            cross_mapper_see(mapper->crosses, column, of);
    }
    for (size_t i = 0; i < mapper->words_count; i++) {
        double squares = mapper->squares[mapper->words[i].column];
        if (squares > 0)
            terms->value[mapper->words[i].term] /= sqrt(squares);
    }
    for (size_t i = 0; i < mapper->words_count; i++)
        mapper->squares[mapper->words[i].column] = 0;
    mapper->words_count = 0;
    terms_append(terms, &mapper->absent);
    uint32_t crosses = 0;
    const uint64_t *cross = mapper->crosses ? cross_mapper_end(mapper->crosses, &crosses) : NULL;
    for (uint32_t i = 0; i < crosses; i++)
        terms_add(terms, cross[i], table->cross_value);
    return known;
}
