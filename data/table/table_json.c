/* Tables as JSON, as sets, packs and models keep them: doc/FORMATS.md. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/table/table.h"
#include "data/text/date.h"

static const char *const kind_names[] = {
    [COLUMN_NUMBER] = "number",  [COLUMN_CATEGORY] = "category", [COLUMN_LABEL] = "label",
    [COLUMN_SKIPPED] = "skip",   [COLUMN_WEIGHT] = "weight",     [COLUMN_WORDS] = "text",
    [COLUMN_OFFSET] = "offset",  [COLUMN_EXPOSURE] = "exposure", [COLUMN_DATE] = "date",
    [COLUMN_CLUSTER] = "cluster"};
const char *const date_part_names[] = {[DATE_YEAR] = "year",
                                       [DATE_MONTH] = "month",
                                       [DATE_WEEKDAY] = "weekday",
                                       [DATE_HOUR] = "hour",
                                       [DATE_DAYS] = "days"};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

const char *table_kind_name(enum column_kind kind) {
    assert(kind < KINDS);
    return kind_names[kind];
}

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
    if (column->is_part)
        json_object_update_new(object, json_pack("{s:I, s:s}", "date", column->date + (json_int_t)1,
                                                 "part", date_part_names[column->part]));
    if (column->amounts)
        json_object_set_new(object, "amounts", json_true());
    if (column->unit)
        json_object_set_new(object, "unit", json_integer(column->unit));
    if (!isnan(column->mean))
        json_object_set_new(object, "mean", json_real(column->mean));
    if (column->monotone != MONOTONE_NONE)
        json_object_set_new(
            object, "monotone",
            json_string(column->monotone == MONOTONE_RISING ? "rising" : "falling"));
    put_lists(object, column);
    return object;
}

const char *const table_text_values[] = {"tfidf", "log_tfidf", "count", "binary", NULL};
_Static_assert(TEXT_TFIDF == 0 && TEXT_LOG_TFIDF == 1 && TEXT_COUNT == 2 && TEXT_BINARY == 3,
               "as above");

static json_t *text_json(const struct table_text *text) {
    json_t *object = json_pack("{s:I, s:b, s:s}", "ngrams", (json_int_t)text->ngrams, "lowercase",
                               text->lowercase, "values", table_text_values[text->values]);
    if (table_text_least(text) != WORD_LEAST)
        json_object_set_new(object, "least", json_integer(text->least));
    if (*text->letters)
        json_object_set_new(object, "letters", json_string(text->letters));
    if (text->rows)
        json_object_set_new(object, "rows", json_integer((json_int_t)text->rows));
    return object;
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
    if (table_has_texts(table))
        json_object_set_new(object, "text", text_json(&table->text));
    if (table->date_format)
        json_object_set_new(object, "date_format", json_string(table->date_format));
    if (table->crosses) {
        json_t *crosses = json_array();
        for (uint32_t k = 0; k < table->crosses; k++) {
            /* Columns are told from 1. */
            json_t *list = json_array();
            for (uint32_t j = 0; j < table->cross[k].columns; j++)
                json_array_append_new(list,
                                      json_integer(table->cross[k].column[j] + (json_int_t)1));
            json_array_append_new(crosses, list);
        }
        json_object_update_new(
            object, json_pack("{s:o, s:f}", "crosses", crosses, "cross_value", table->cross_value));
    }
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

static bool read_monotone(const json_t *word, struct table_column *column) {
    const char *text = json_string_value(word);
    if (text && !strcmp(text, "rising"))
        column->monotone = MONOTONE_RISING;
    else if (text && !strcmp(text, "falling"))
        column->monotone = MONOTONE_FALLING;
    return !word || column->monotone != MONOTONE_NONE;
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

/* A second has a power of a thousand of them, up to nanoseconds. */
static bool read_unit(const json_t *unit, struct table_column *column) {
    json_int_t number = json_integer_value(unit);
    column->unit = (uint32_t)number;
    return !unit || number == 1 || number == 1000 || number == 1000000 || number == 1000000000;
}

static bool read_part(const json_t *object, uint32_t columns, struct table_column *column) {
    const json_t *date = json_object_get(object, "date");
    const char *name = json_string_value(json_object_get(object, "part"));
    json_int_t from_1 = json_integer_value(date);
    column->is_part = date;
    if (!date)
        return true;
    column->date = (uint32_t)(from_1 - 1);
    while (column->part < DATE_PARTS && name && strcmp(name, date_part_names[column->part]))
        column->part++;
    return json_is_integer(date) && from_1 >= 1 && from_1 <= columns && name &&
           column->part < DATE_PARTS && column->place == COLUMN_NOWHERE;
}

/* Dates have their parts, each once, as numbers and categories after them; of a file that lacks a
 * date these are skipped, too. */
static bool check_parts(const struct table *table) {
    uint8_t *seen = memory_new(table->columns, 1);
    bool sound = true;
    for (uint32_t i = 0; i < table->columns && sound; i++) {
        const struct table_column *column = &table->column[i];
        if (!column->is_part)
            continue;
        enum column_kind kind = table->column[column->date].kind;
        enum column_kind own = date_part_is_number(column->part) ? COLUMN_NUMBER : COLUMN_CATEGORY;
        sound = column->date < i && !(seen[column->date] >> column->part & 1) &&
                (kind == COLUMN_DATE ? column->kind == own : column->kind == COLUMN_SKIPPED);
        seen[column->date] |= (uint8_t)(1u << column->part);
    }
    for (uint32_t i = 0; i < table->columns && sound; i++)
        sound = table->column[i].kind != COLUMN_DATE || seen[i] == (1u << DATE_PARTS) - 1;
    free(seen);
    return sound;
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
    column->amounts = json_is_true(json_object_get(object, "amounts"));
    return named == (name != NULL) &&
           read_place(json_object_get(object, "place"), columns, column) &&
           read_edges(json_object_get(object, "edges"), column) &&
           read_rare(json_object_get(object, "rare"), column) &&
           read_monotone(json_object_get(object, "monotone"), column) &&
           read_unit(json_object_get(object, "unit"), column) &&
           read_part(object, columns, column) &&
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
    const json_t *least = json_object_get(object, "least"),
                 *letters = json_object_get(object, "letters");
    json_int_t least_letters = least ? json_integer_value(least) : WORD_LEAST;
    const char *more = letters ? json_string_value(letters) : "";
    if (least_letters < 1 || least_letters > WORD_LEAST_MAX || !more ||
        !word_characters_are_valid(more))
        return false;
    *text = (struct table_text){.ngrams = (uint32_t)ngrams,
                                .lowercase = json_is_true(json_object_get(object, "lowercase")),
                                .least = (uint32_t)least_letters,
                                .rows = (uint64_t)rows};
    memcpy(text->letters, more, strlen(more));
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
    const json_t *dates = json_object_get(object, "date_format");
    if (json_is_string(dates) && date_format_is_valid(json_string_value(dates)))
        table->date_format = memory_copy_string(json_string_value(dates));
    if ((dates && !table->date_format) || !check_parts(table))
        return false;
    table->trim = json_is_true(json_object_get(object, "trim"));
    json_int_t hash = json_integer_value(json_object_get(object, "hash"));
    table->hash = hash > 0 && hash <= HASH_BITS_MAX ? (uint32_t)hash : 0;
    if (hash != table->hash)
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
