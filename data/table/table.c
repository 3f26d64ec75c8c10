#include "data/table/table.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/text/number.h"
#include "numeric/special.h"

const char *const table_missing_words[] = {"?",    "NA",   "N/A",  "NaN", "nan",
                                           "null", "NULL", "none", NULL};

struct table *table_new(uint32_t columns) {
    struct table *table = memory_new(1, sizeof *table);
    table->columns = columns;
    table->text = (struct table_text){.ngrams = 1, .least = WORD_LEAST, .lowercase = true};
    table->column = memory_new(columns, sizeof *table->column);
    for (uint32_t i = 0; i < columns; i++)
        table->column[i] = (struct table_column){.place = i, .mean = NAN};
    table->missing = memory_new(1, sizeof *table->missing);
    return table;
}

void table_free(struct table *table) {
    if (!table)
        return;
    for (uint32_t i = 0; i < table->columns; i++) {
        free(table->column[i].name);
        free(table->column[i].edge);
        free(table->column[i].in_bin);
        free(table->column[i].rare);
    }
    free(table->column);
    free(table->cross);
    free(table->date_format);
    names_free(table->missing);
    free(table);
}

uint32_t table_find_kind(const struct table *table, enum column_kind kind) {
    uint32_t i = 0;
    while (i < table->columns && table->column[i].kind != kind)
        i++;
    return i;
}

void table_set_missing(struct table *table, const char *const *words) {
    size_t count = 0;
    while (words[count])
        count++;
    names_free(table->missing);
    table->missing = memory_new(count + 1, sizeof *table->missing);
    for (size_t i = 0; i < count; i++)
        table->missing[i] = memory_copy_string(words[i]);
}

void table_set_name(struct table_column *column, const char *name) {
    json_t *text = text_to_json(name);
    free(column->name);
    column->name = memory_copy_string(json_string_value(text));
    json_decref(text);
}

bool table_has_name(const struct table *table, const char *name) {
    struct table_column wanted = {0};
    bool found = false;
    table_set_name(&wanted, name);
    for (uint32_t i = 0; i < table->columns && !found; i++)
        found = table->column[i].kind != COLUMN_SKIPPED && table->column[i].name &&
                !strcmp(table->column[i].name, wanted.name);
    free(wanted.name);
    return found;
}

static void *copy_array(const void *array, size_t count, size_t size) {
    if (!array || !count)
        return NULL;
    void *copy = memory_new(count, size);
    memcpy(copy, array, count * size);
    return copy;
}

static void copy_column(struct table_column *column, const struct table_column *from) {
    *column = *from;
    column->name = from->name ? memory_copy_string(from->name) : NULL;
    column->edge = copy_array(from->edge, from->edges, sizeof *from->edge);
    column->rare = copy_array(from->rare, from->rares, sizeof *from->rare);
    column->in_bin = NULL;
}

struct table *table_copy_first(const struct table *table, uint32_t columns) {
    assert(columns <= table->columns);
    struct table *copy = table_new(columns);
    copy->trim = table->trim;
    copy->hash = table->hash;
    copy->text = table->text;
    copy->date_format = table->date_format ? memory_copy_string(table->date_format) : NULL;
    table_set_missing(copy, (const char *const *)table->missing);
    for (uint32_t i = 0; i < columns; i++)
        copy_column(&copy->column[i], &table->column[i]);
    return copy;
}

struct table *table_copy(const struct table *table) {
    struct table *copy = table_copy_first(table, table->columns);
    copy->crosses = table->crosses;
    copy->cross_value = table->cross_value;
    copy->cross = copy_array(table->cross, table->crosses, sizeof *table->cross);
    return copy;
}

void table_add_columns(struct table *table, const struct table *other) {
    uint32_t columns = table->columns;
    if (!table_has_texts(table))
        table->text = other->text;
    if (other->columns > columns) {
        table->column = memory_resize(table->column, other->columns, sizeof *table->column);
        table->columns = other->columns;
    }
    for (uint32_t i = 0; i < other->columns; i++)
        if (i >= columns) {
            copy_column(&table->column[i], &other->column[i]);
        } else if (table_lacks(table, i)) {
            table->column[i].kind = other->column[i].kind;
            table->column[i].found = other->column[i].found;
            table->column[i].is_part = other->column[i].is_part;
            table->column[i].date = other->column[i].date;
            table->column[i].part = other->column[i].part;
            table->column[i].unit = other->column[i].unit;
        }
}

bool table_has_texts(const struct table *table) {
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].kind == COLUMN_WORDS)
            return true;
    return false;
}

bool table_has_dates(const struct table *table) {
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].kind == COLUMN_DATE)
            return true;
    return false;
}

bool table_is_named(const struct table *table) {
    return table->columns && table->column[0].name;
}

bool table_names_equal(const struct table *a, const struct table *b) {
    if (!table_is_named(a) || !table_is_named(b) || a->columns != b->columns)
        return false;
    for (uint32_t i = 0; i < a->columns; i++)
        if (strcmp(a->column[i].name, b->column[i].name))
            return false;
    return true;
}

const char *table_describe(const struct table *table, uint32_t column, char text[COLUMN_TEXT]) {
    assert(column < table->columns);
    const char *name = table->column[column].name;
    if (name)
        snprintf(text, COLUMN_TEXT, "column %u (%.100s)", column + 1, name);
    else
        snprintf(text, COLUMN_TEXT, "column %u", column + 1);
    return text;
}

double table_cross_value(uint32_t crosses) {
    unsigned bits = crosses ? 31u - (unsigned)__builtin_clz(crosses) : 0;
    return 1.0 / (1u << bits / 2);
}

const char *table_label(const struct table *table, uint32_t column, char text[COLUMN_LABEL_TEXT]) {
    assert(column < table->columns);
    const struct table_column *here = &table->column[column];
    if (here->name)
        return here->name;
    if (here->is_part)
        snprintf(text, COLUMN_LABEL_TEXT, "%u.%s", here->date + 1, date_part_names[here->part]);
    else
        snprintf(text, COLUMN_LABEL_TEXT, "%u", column + 1);
    return text;
}

char *table_cross_name(const struct table *table, const struct table_cross *cross) {
    assert(cross->columns > 0 && cross->columns <= CROSS_COLUMNS_MAX);
    char *name = NULL;
    for (uint32_t i = 0; i < cross->columns; i++) {
        char text[COLUMN_LABEL_TEXT], *before = name;
        name = memory_format("%s%s%s", before ? before : "", before ? " * " : "",
                             table_label(table, cross->column[i], text));
        free(before);
    }
    return name;
}

/* ---- features ---- */

static void put_number(uint8_t *bytes, unsigned count, uint64_t number) {
    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
}

static void put_u32(uint8_t bytes[4], uint32_t number) {
    put_number(bytes, 4, number);
}

/* XXH3 adds the seed to a short text, where a small one meets the length: so what tells columns
 * and roles apart is no seed, but stands before the text. */
static uint64_t hash_joined(uint32_t column, enum feature_role role, const char *text,
                            size_t length) {
    uint8_t usual[TABLE_PREFIX_BYTES + CATEGORY_BYTES_MAX];
    uint8_t *joined = length <= CATEGORY_BYTES_MAX ? usual : memory_new(sizeof usual + length, 1);
    put_u32(joined, column + 1);
    joined[4] = (uint8_t)role;
    if (length)
        memcpy(joined + TABLE_PREFIX_BYTES, text, length);
    uint64_t hash = hash64(joined, TABLE_PREFIX_BYTES + length);
    if (joined != usual)
        free(joined);
    return hash;
}

uint64_t table_word_feature(uint32_t column, char *joined, size_t length) {
    put_u32((uint8_t *)joined, column + 1);
    joined[4] = ROLE_WORD;
    return hash64(joined, TABLE_PREFIX_BYTES + length) | FEATURE_HASHED;
}

uint64_t table_feature(uint32_t column, enum feature_role role, const char *text, size_t length) {
    if (role == ROLE_NUMBER)
        return (uint64_t)column + 1;
    if (role == ROLE_MISSING || role == ROLE_RARE)
        length = 0;
    return hash_joined(column, role, text, length) | FEATURE_HASHED;
}

uint64_t table_bin_feature(uint32_t column, uint32_t bin) {
    char text[16];
    int length = snprintf(text, sizeof text, "%u", bin);
    return table_feature(column, ROLE_BIN, text, (size_t)length);
}

/* As of column 0, which none is. */
uint64_t table_cross_feature(const uint64_t *id, uint32_t columns) {
    uint8_t joined[5 + 8 * CROSS_COLUMNS_MAX];
    assert(columns <= CROSS_COLUMNS_MAX);
    put_u32(joined, 0);
    joined[4] = ROLE_CROSS;
    for (uint32_t i = 0; i < columns; i++)
        put_number(joined + 5 + 8 * i, 8, id[i]);
    return hash64(joined, 5 + 8 * (size_t)columns) | FEATURE_HASHED;
}

uint32_t table_hash(const struct table *table, uint32_t column, const char *text, size_t length) {
    assert(table->hash > 0 && table->hash <= HASH_BITS_MAX);
    return (uint32_t)(hash64_seeded(text, length, (uint64_t)column + 1) >> (64 - table->hash));
}

uint64_t table_hashed_feature(uint32_t column, uint32_t hash) {
    uint8_t bytes[4];
    put_u32(bytes, hash);
    return table_feature(column, ROLE_HASHED, (const char *)bytes, sizeof bytes);
}

static double logarithm(double x) {
    special_log(1, &x, &x);
    return x;
}

double table_word_idf(const struct table *table, uint64_t rows) {
    return logarithm((1 + (double)table->text.rows) / (1 + (double)rows)) + 1;
}

double table_word_value(const struct table *table, double count, double idf) {
    switch (table->text.values) {
    case TEXT_TFIDF:
        return count * idf;
    case TEXT_LOG_TFIDF:
        return (count == 1 ? 1 : 1 + logarithm(count)) * idf;
    case TEXT_BINARY:
        return 1;
    case TEXT_COUNT:
        break;
    }
    return count;
}

char *table_feature_name(const struct table *table, uint32_t column, enum feature_role role,
                         const char *text) {
    char label[COLUMN_LABEL_TEXT];
    assert(column < table->columns);
    const struct table_column *here = &table->column[column];
    const char *name = table_label(table, column, label);
    if (role == ROLE_NUMBER)
        return memory_copy_string(here->name || here->is_part ? name : "");
    if (role == ROLE_MISSING || role == ROLE_RARE)
        return memory_format("%s=(%s)", name, role == ROLE_RARE ? "rare" : "missing");
    if (role == ROLE_HASHED)
        return memory_format("%s#%s", name, text);
    if (role == ROLE_BIN) {
        /* As "age=[25, 30)": the column and the numbers of a bin. */
        const uint32_t bin = (uint32_t)strtoul(text, NULL, 10);
        char low[NUMBER_TEXT] = "-inf", high[NUMBER_TEXT] = "inf";
        assert(bin <= table->column[column].edges);
        if (bin)
            number_format(table->column[column].edge[bin - 1], low);
        if (table->column[column].monotone != MONOTONE_NONE && bin)
            return memory_format("%s>=%s", name, low);
        if (bin < table->column[column].edges)
            number_format(table->column[column].edge[bin], high);
        return memory_format("%s=%s%s, %s)", name, bin ? "[" : "(", low, high);
    }
    /* A value that looks like a role's word is put in quotes. */
    const char *quote = (!strcmp(text, "(missing)") || !strcmp(text, "(rare)")) ? "\"" : "";
    return memory_format("%s=%s%s%s", name, quote, text, quote);
}

/* ---- words ---- */

uint32_t table_text_least(const struct table_text *text) {
    return text->least ? text->least : WORD_LEAST;
}

bool word_characters_are_valid(const char *text) {
    for (const char *at = text; *at; at++)
        if (!isgraph((unsigned char)*at) || isalnum((unsigned char)*at) || *at == '_')
            return false;
    return strlen(text) <= WORD_CHARACTERS_MAX;
}
