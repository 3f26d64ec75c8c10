#include "data/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/number.h"
#include "numeric/special.h"

const char *const table_missing_words[] = {"?",    "NA",   "N/A",  "NaN", "nan",
                                           "null", "NULL", "none", NULL};

static const char *const kind_names[] = {
    [COLUMN_NUMBER] = "number", [COLUMN_CATEGORY] = "category", [COLUMN_LABEL] = "label",
    [COLUMN_SKIPPED] = "skip",  [COLUMN_WEIGHT] = "weight",     [COLUMN_WORDS] = "text",
    [COLUMN_OFFSET] = "offset", [COLUMN_EXPOSURE] = "exposure"};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

struct table *table_new(uint32_t columns) {
    struct table *table = memory_new(1, sizeof *table);
    table->columns = columns;
    table->ids = TABLE_IDS_JOINED;
    table->text = (struct table_text){.ngrams = 1, .lowercase = true};
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
    names_free(table->missing);
    free(table);
}

const char *table_kind_name(enum column_kind kind) {
    assert(kind < KINDS);
    return kind_names[kind];
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
    copy->ids = table->ids;
    copy->text = table->text;
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
        }
}

bool table_has_texts(const struct table *table) {
    for (uint32_t i = 0; i < table->columns; i++)
        if (table->column[i].kind == COLUMN_WORDS)
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

char *table_cross_name(const struct table *table, const struct table_cross *cross) {
    char *name = NULL;
    for (uint32_t i = 0; i < cross->columns; i++) {
        const char *own = table->column[cross->column[i]].name;
        char number[16], *before = name;
        snprintf(number, sizeof number, "%u", cross->column[i] + 1);
        name =
            memory_format("%s%s%s", before ? before : "", before ? " * " : "", own ? own : number);
        free(before);
    }
    return name;
}

/* ---- JSON ---- */

static void put_lists(json_t *object, const struct table_column *column) {
    json_t *edges = json_array(), *rare = json_array();
    for (uint32_t i = 0; i < column->edges; i++)
        json_array_append_new(edges, json_real(column->edge[i]));
    for (uint32_t i = 0; i < column->rares; i++) {
        char id[20];
        snprintf(id, sizeof id, "%016llx", (unsigned long long)column->rare[i]);
        json_array_append_new(rare, json_string(id));
    }
    if (column->edges)
        json_object_set(object, "edges", edges);
    if (column->rares)
        json_object_set(object, "rare", rare);
    json_decref(edges);
    json_decref(rare);
}

/* The place is told from 1, and only of a column that does not stand where it is numbered; 0: the
 * file lacks it. */
static json_t *column_json(const struct table_column *column, uint32_t number) {
    json_t *object = json_object();
    if (column->name)
        json_object_set_new(object, "name", json_string(column->name));
    json_object_set_new(object, "kind", json_string(kind_names[column->kind]));
    if (column->place != number)
        json_object_set_new(
            object, "place",
            json_integer(column->place == COLUMN_NOWHERE ? 0 : column->place + (json_int_t)1));
    if (column->found)
        json_object_set_new(object, "found", json_true());
    if (!isnan(column->mean))
        json_object_set_new(object, "mean", json_real(column->mean));
    put_lists(object, column);
    return object;
}

const char *const table_text_values[] = {"tfidf", "log_tfidf", "count", "binary", NULL};
_Static_assert(TEXT_TFIDF == 0 && TEXT_LOG_TFIDF == 1 && TEXT_COUNT == 2 && TEXT_BINARY == 3,
               "as above");

static json_t *text_json(const struct table_text *text) {
    json_t *object = json_pack("{s:I, s:b, s:s}", "ngrams", (json_int_t)text->ngrams, "lowercase",
                               text->lowercase, "values", table_text_values[text->values]);
    if (text->rows)
        json_object_set_new(object, "rows", json_integer((json_int_t)text->rows));
    return object;
}

/* Columns are told from 1. */
static json_t *cross_json(const struct table_cross *cross) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < cross->columns; i++)
        json_array_append_new(list, json_integer(cross->column[i] + (json_int_t)1));
    return list;
}

static json_t *crosses_json(const struct table *table) {
    json_t *crosses = json_array();
    for (uint32_t i = 0; i < table->crosses; i++)
        json_array_append_new(crosses, cross_json(&table->cross[i]));
    return crosses;
}

json_t *table_json(const struct table *table) {
    json_t *columns = json_array(), *missing = json_array();
    for (uint32_t i = 0; i < table->columns; i++)
        json_array_append_new(columns, column_json(&table->column[i], i));
    for (char **word = table->missing; *word; word++)
        json_array_append_new(missing, text_to_json(*word));
    json_t *object =
        json_pack("{s:o, s:o, s:b}", "columns", columns, "missing", missing, "trim", table->trim);
    if (table->hash)
        json_object_set_new(object, "hash", json_integer(table->hash));
    if (table->ids != TABLE_IDS_SEEDED)
        json_object_set_new(object, "ids", json_integer(table->ids));
    if (table_has_texts(table))
        json_object_set_new(object, "text", text_json(&table->text));
    if (table->crosses)
        json_object_update_new(object, json_pack("{s:o, s:f}", "crosses", crosses_json(table),
                                                 "cross_value", table->cross_value));
    return object;
}

static bool read_kind(const char *name, enum column_kind *kind) {
    for (size_t i = 0; name && i < KINDS; i++)
        if (!strcmp(name, kind_names[i])) {
            *kind = (enum column_kind)i;
            return true;
        }
    return false;
}

static bool read_edges(const json_t *list, struct table_column *column) {
    column->edges = (uint32_t)json_array_size(list);
    column->edge = memory_new(column->edges, sizeof *column->edge);
    for (uint32_t i = 0; i < column->edges; i++) {
        const json_t *edge = json_array_get(list, i);
        column->edge[i] = json_number_value(edge);
        if (!json_is_number(edge) || (i && column->edge[i] <= column->edge[i - 1]))
            return false;
    }
    return true;
}

static bool read_rare(const json_t *list, struct table_column *column) {
    column->rares = (uint32_t)json_array_size(list);
    column->rare = memory_new(column->rares, sizeof *column->rare);
    for (uint32_t i = 0; i < column->rares; i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (!id || strlen(id) != 16 || strspn(id, "0123456789abcdef") != 16)
            return false;
        column->rare[i] = strtoull(id, NULL, 16);
        if (i && column->rare[i] <= column->rare[i - 1])
            return false;
    }
    return true;
}

static bool read_place(const json_t *place, uint32_t columns, struct table_column *column) {
    json_int_t from_1 = json_integer_value(place);
    if (!place)
        return true; /* where it is numbered */
    column->place = from_1 ? (uint32_t)(from_1 - 1) : COLUMN_NOWHERE;
    return json_is_integer(place) && from_1 >= 0 && from_1 <= columns;
}

static bool read_column(const json_t *object, bool named, uint32_t columns,
                        struct table_column *column) {
    const json_t *mean = json_object_get(object, "mean");
    const char *name = json_string_value(json_object_get(object, "name"));
    if (name)
        column->name = memory_copy_string(name);
    if (json_is_number(mean))
        column->mean = json_number_value(mean);
    column->found = json_is_true(json_object_get(object, "found"));
    return named == (name != NULL) &&
           read_place(json_object_get(object, "place"), columns, column) &&
           read_edges(json_object_get(object, "edges"), column) &&
           read_rare(json_object_get(object, "rare"), column) &&
           read_kind(json_string_value(json_object_get(object, "kind")), &column->kind);
}

static bool read_cross(const json_t *list, const struct table *table, struct table_cross *cross) {
    size_t columns = json_array_size(list);
    json_int_t before = 0;
    if (columns < 2 || columns > CROSS_COLUMNS_MAX)
        return false;
    cross->columns = (uint32_t)columns;
    for (uint32_t i = 0; i < columns; i++) {
        const json_t *entry = json_array_get(list, i);
        json_int_t column = json_integer_value(entry);
        if (!json_is_integer(entry) || column <= before || column > table->columns ||
            !table_uses(&table->column[column - 1]))
            return false;
        cross->column[i] = (uint32_t)(column - 1);
        before = column;
    }
    return true;
}

static bool read_crosses(const json_t *list, struct table *table) {
    size_t crosses = json_array_size(list);
    if (crosses > CROSSES_MAX)
        return false;
    table->crosses = (uint32_t)crosses;
    table->cross = memory_new(crosses, sizeof *table->cross);
    table->cross_value = table_cross_value(table->crosses);
    for (uint32_t i = 0; i < table->crosses; i++)
        if (!read_cross(json_array_get(list, i), table, &table->cross[i]))
            return false;
    return true;
}

static bool read_missing(const json_t *list, struct table *table) {
    size_t count = json_array_size(list);
    const char **words = memory_new(count + 1, sizeof *words);
    bool sound = json_is_array(list);
    for (size_t i = 0; sound && i < count; i++)
        sound = (words[i] = json_string_value(json_array_get(list, i))) != NULL;
    if (sound)
        table_set_missing(table, words);
    free(words);
    return sound;
}

static bool read_text(const json_t *object, struct table_text *text) {
    json_int_t ngrams = json_integer_value(json_object_get(object, "ngrams"));
    json_int_t rows = json_integer_value(json_object_get(object, "rows"));
    const char *values = json_string_value(json_object_get(object, "values"));
    if (ngrams < 1 || ngrams > NGRAMS_MAX || rows < 0 || !values)
        return false;
    *text = (struct table_text){.ngrams = (uint32_t)ngrams,
                                .lowercase = json_is_true(json_object_get(object, "lowercase")),
                                .rows = (uint64_t)rows};
    for (int i = 0; table_text_values[i]; i++)
        if (!strcmp(table_text_values[i], values)) {
            text->values = (enum text_values)i;
            return true;
        }
    return false;
}

static bool read_columns(const json_t *object, struct table *table) {
    const json_t *columns = json_object_get(object, "columns");
    bool named = json_object_get(json_array_get(columns, 0), "name");
    for (uint32_t i = 0; i < table->columns; i++)
        if (!read_column(json_array_get(columns, i), named, table->columns, &table->column[i]))
            return false;
    table->trim = json_is_true(json_object_get(object, "trim"));
    json_int_t hash = json_integer_value(json_object_get(object, "hash"));
    table->hash = hash > 0 && hash <= HASH_BITS_MAX ? (uint32_t)hash : 0;
    const json_t *ids = json_object_get(object, "ids");
    table->ids = ids ? TABLE_IDS_JOINED : TABLE_IDS_SEEDED;
    if (hash != table->hash || (ids && json_integer_value(ids) != TABLE_IDS_JOINED))
        return false;
    const json_t *text = json_object_get(object, "text");
    return (text ? read_text(text, &table->text) : !table_has_texts(table)) &&
           read_missing(json_object_get(object, "missing"), table) &&
           read_crosses(json_object_get(object, "crosses"), table);
}

int table_of_json(const json_t *object, const char *where, struct table **result) {
    size_t columns = json_array_size(json_object_get(object, "columns"));
    struct table *table = table_new(columns <= UINT32_MAX ? (uint32_t)columns : 0);
    if (table->columns && read_columns(object, table)) {
        *result = table;
        return 0;
    }
    table_free(table);
    return error_set(ERROR_DATA,
                     "%s does not describe the columns of a table as this program knows them; use "
                     "the program that wrote it",
                     where);
}

char *table_text(const struct table *table) {
    json_t *object = table_json(table);
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(object);
    return text;
}

int table_of_text(const char *text, const char *where, struct table **table) {
    json_t *object = json_loads(text, 0, NULL);
    int code = table_of_json(object, where, table);
    json_decref(object);
    return code;
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

uint64_t table_feature(enum table_ids ids, uint32_t column, enum feature_role role,
                       const char *text, size_t length) {
    if (role == ROLE_NUMBER)
        return (uint64_t)column + 1;
    if (role == ROLE_MISSING || role == ROLE_RARE)
        length = 0;
    if (ids == TABLE_IDS_JOINED)
        return hash_joined(column, role, text, length) | FEATURE_HASHED;
    return hash64_seeded(text, length, (uint64_t)(column + 1) << 8 | (uint64_t)role) |
           FEATURE_HASHED;
}

uint64_t table_bin_feature(enum table_ids ids, uint32_t column, uint32_t bin) {
    char text[16];
    int length = snprintf(text, sizeof text, "%u", bin);
    return table_feature(ids, column, ROLE_BIN, text, (size_t)length);
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

uint64_t table_hashed_feature(enum table_ids ids, uint32_t column, uint32_t hash) {
    uint8_t bytes[4];
    put_u32(bytes, hash);
    return table_feature(ids, column, ROLE_HASHED, (const char *)bytes, sizeof bytes);
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

/* As "age=[25, 30)": the column and the numbers of a bin. */
static char *bin_name(const struct table_column *column, const char *name, uint32_t bin) {
    char low[NUMBER_TEXT] = "-inf", high[NUMBER_TEXT] = "inf";
    assert(bin <= column->edges);
    if (bin)
        number_format(column->edge[bin - 1], low);
    if (bin < column->edges)
        number_format(column->edge[bin], high);
    return memory_format("%s=%s%s, %s)", name, bin ? "[" : "(", low, high);
}

char *table_feature_name(const struct table *table, uint32_t column, enum feature_role role,
                         const char *text) {
    char number[16];
    assert(column < table->columns);
    const char *name = table->column[column].name;
    if (role == ROLE_NUMBER)
        return memory_copy_string(name ? name : "");
    snprintf(number, sizeof number, "%u", column + 1);
    name = name ? name : number;
    if (role == ROLE_MISSING || role == ROLE_RARE)
        return memory_format("%s=(%s)", name, role == ROLE_RARE ? "rare" : "missing");
    if (role == ROLE_HASHED)
        return memory_format("%s#%s", name, text);
    if (role == ROLE_BIN)
        return bin_name(&table->column[column], name, (uint32_t)strtoul(text, NULL, 10));
    /* A value that looks like a role's word is put in quotes. */
    const char *quote = (!strcmp(text, "(missing)") || !strcmp(text, "(rare)")) ? "\"" : "";
    return memory_format("%s=%s%s%s", name, quote, text, quote);
}
