/* Finds the columns of a known table in another file. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/csv/layout.h"

#define NOWHERE UINT32_MAX
#define NO_FEATURE (UINT32_MAX - 1) /* the label, or a property of the row */

/* ---- what is wrong with the columns of a file ---- */

/* "FILE:LINE: ", or "" of names that are in no file. */
#define WHERE_TEXT 4096
static const char *where(const struct csv_cells *first, char text[WHERE_TEXT]) {
    *text = '\0';
    if (first->path)
        snprintf(text, WHERE_TEXT, "%s:%llu: ", first->path, (unsigned long long)first->number);
    return text;
}

int csv_no_column(const struct csv_cells *first, bool header, const char *what,
                  const char *column) {
    struct nearest nearest = {.text = column};
    for (uint32_t i = 0; header && i < first->count; i++)
        nearest_offer(&nearest, first->cell[i]);
    char text[WHERE_TEXT];
    return error_set(ERROR_DATA, "%sthere is no column \"%s\" to %s: %s, of %u columns%s",
                     where(first, text), column, what,
                     first->keys ? "give a key of the first lines or a number from 1"
                     : header    ? "give a name from this header line or a number from 1"
                                 : "the file has no header line; give a number from 1",
                     first->count, nearest_suggestion(&nearest, ""));
}

/* A file without labels lacks its last column; all others stand where they did in training. */
int csv_check_count(const struct format *format, const struct csv_cells *first, uint32_t expected) {
    bool unlabelled = format->label == first->count;
    if (!expected || first->count == (unlabelled ? expected - 1 : expected))
        return 0;
    char text[WHERE_TEXT];
    return error_set(ERROR_DATA,
                     "%s%u column%s%s, where the data that was trained on has %u, the label's "
                     "included",
                     where(first, text), first->count, first->count == 1 ? "" : "s",
                     unlabelled ? " and no label" : "", expected);
}

int csv_no_property(const struct csv_cells *first, bool header, enum row_property property,
                    const char *column) {
    char what[64];
    snprintf(what, sizeof what, "take the %s from", property_rules[property].name);
    return csv_no_column(first, header, what, column);
}

int csv_no_column_left(const struct format *format, const struct csv_cells *first) {
    char text[WHERE_TEXT];
    bool index = false;
    for (uint32_t i = 0; i < first->count; i++)
        index |= format->column[i].kind == COLUMN_SKIPPED && csv_is_index(format, first, i);
    return error_set(ERROR_DATA, "%sno column is left beside the label%s", where(first, text),
                     index ? ": the others are an index, which names the rows, or left out by "
                             "csv.skip; csv.numbers or csv.categories takes an index nonetheless"
                     : first->count > 1 || first->keys || format->is_index
                         ? ": csv.skip and other keys take all of them"
                         : ": the line has one column; if lines stand before the table, take them "
                           "out, and if another character parts columns, set csv.delimiter");
}

/* ---- names ---- */

/* The columns of a file while they are matched. */
struct column_match {
    const struct table *table;
    char **name;     /* of each column of the file, in the form of the table's */
    uint32_t *taken; /* for each column of the file: that of the table, or one of the above */
    uint32_t count;
    uint32_t property[ROW_PROPERTIES]; /* which columns of the file have them, or NOWHERE */
};

static void column_match_init(struct column_match *match, const struct table *table,
                              const struct csv_cells *first) {
    *match = (struct column_match){.table = table, .count = first->count};
    match->name = memory_new(first->count, sizeof *match->name);
    match->taken = memory_new(first->count, sizeof *match->taken);
    for (uint32_t i = 0; i < first->count; i++) {
        struct table_column column = {0};
        table_set_name(&column, first->cell[i]);
        match->name[i] = column.name;
        match->taken[i] = NOWHERE;
    }
}

static void column_match_release(struct column_match *match) {
    for (uint32_t i = 0; i < match->count; i++)
        free(match->name[i]);
    free(match->name);
    free(match->taken);
}

static bool fits(const struct column_match *match, uint32_t i, const char *name) {
    return match->taken[i] == NOWHERE && !strcmp(match->name[i], name);
}

/* Takes the column of the file for column `number` of the table: the first of that name that is
 * left, so that columns of one name keep their order. NOWHERE if there is none. */
static uint32_t match_column(struct column_match *match, uint32_t number) {
    assert(number < match->table->columns);
    const char *name = match->table->column[number].name;
    uint32_t i = 0;
    if (number < match->count && fits(match, number, name) &&
        (!number || strcmp(match->name[number - 1], name)))
        i = number; /* as a rule it stands where it stood */
    while (i < match->count && !fits(match, i, name))
        i++;
    if (i == match->count)
        return NOWHERE;
    assert(match->taken[i] == NOWHERE); /* no column of the file is taken twice */
    match->taken[i] = number;
    return i;
}

uint32_t csv_count_named(const struct table *table, const struct csv_cells *first, uint32_t *used) {
    struct column_match match;
    uint32_t named = 0;
    *used = 0;
    if (!table_is_named(table))
        return 0;
    column_match_init(&match, table, first);
    for (uint32_t i = 0; i < table->columns; i++) {
        if (table->column[i].is_part)
            continue;
        bool found = match_column(&match, i) != NOWHERE, counts = table_reads(&table->column[i]);
        *used += counts;
        named += counts && found;
    }
    column_match_release(&match);
    return named;
}

/* Names the columns that training did not have, in one line of log. */
static void report_others(const struct column_match *match, const struct csv_cells *first) {
    char *list = NULL;
    for (uint32_t i = 0; i < match->count; i++) {
        if (match->taken[i] != NOWHERE)
            continue;
        char *longer =
            memory_format("%s%s%.100s", list ? list : "", list ? ", " : "", match->name[i]);
        free(list);
        list = longer;
    }
    if (list)
        log_info("%s: columns that the data that was trained on does not have are ignored: %.1000s",
                 first->path, list);
    free(list);
}

/* Which of the names that are no column of the table may be meant. */
static const char *lacking_suggestion(const struct table *table, const struct csv_cells *first,
                                      const char *name) {
    struct nearest nearest = {.text = name};
    for (uint32_t i = 0; i < first->count; i++) {
        uint32_t known = 0;
        while (known < table->columns && (!table->column[known].name ||
                                          strcmp(table->column[known].name, first->cell[i]) != 0))
            known++;
        if (known == table->columns)
            nearest_offer(&nearest, first->cell[i]);
    }
    return nearest_suggestion(&nearest, "");
}

static int lacks(const struct table *table, const struct csv_cells *first, const char *name) {
    if (!first->path)
        return error_set(ERROR_DATA,
                         "the column \"%.100s\" is missing, which the data that was trained on "
                         "has%s",
                         name, lacking_suggestion(table, first, name));
    return error_set(
        ERROR_DATA,
        "%s:%llu: the column \"%.100s\" is missing, which the data that was trained on "
        "has; give it that name here (a folder %.100s=VALUE of its path does, too), or set "
        "missing_columns = missing to take its fields for missing, or, if this file has no header "
        "line, csv.header = no%s",
        first->path, (unsigned long long)first->number, name, name,
        lacking_suggestion(table, first, name));
}

/* A column that the file does not have keeps its name and its number, and nothing else. */
static int skip_column(struct format *format, const struct csv_cells *first, uint32_t number) {
    struct table_column *column = &format->table->column[number];
    assert(number < format->table->columns);
    char name[COLUMN_TEXT];
    table_describe(format->table, number, name);
    if (format->options->table.missing_columns != MISSING_COLUMNS_MISSING)
        return lacks(format->table, first, column->name ? column->name : name);
    column->kind = COLUMN_SKIPPED;
    column->place = COLUMN_NOWHERE;
    return 0;
}

/* Skips all columns that are in no place of the file. */
static int skip_absent_columns(struct format *format, const struct csv_cells *first) {
    uint32_t columns = format->table->columns;
    bool *there = memory_new(columns, sizeof *there);
    int code = 0;
    for (uint32_t i = 0; i < first->count; i++)
        if (format->column[i].kind == COLUMN_NUMBER || format->column[i].kind == COLUMN_CATEGORY ||
            format->column[i].kind == COLUMN_WORDS || format->column[i].kind == COLUMN_DATE)
            there[format->column[i].number] = true;
    for (uint32_t i = 0; i < columns && !code; i++) {
        const struct table_column *column = &format->table->column[i];
        there[i] |= column->is_part && there[column->date];
        if ((table_uses(column) || column->kind == COLUMN_DATE) && !there[i])
            code = skip_column(format, first, i);
    }
    free(there);
    return code;
}

/* Finds the label; options may name another column than the table's. Returns the name or number
 * that was looked for. */
static const char *match_label(struct format *format, struct column_match *match,
                               const struct csv_cells *first) {
    const struct table *table = format->table;
    const char *asked = format->options->label.column;
    uint32_t label = table_find_kind(table, COLUMN_LABEL), at = NOWHERE;
    if (asked)
        at = csv_find_column(first, true, asked);
    else if (label < table->columns)
        at = match_column(match, label);
    format->label = at < first->count ? at : first->count;
    if (format->label < first->count)
        match->taken[format->label] = NO_FEATURE;
    return asked ? asked : label < table->columns ? table->column[label].name : "label";
}

/* Finds the column of a property, which the options may tell anew: a number among them means the
 * column that had it where the table was made. Weights and clusters may be missing: margins
 * without their offsets are those of other rows. */
static int match_property(const struct format *format, struct column_match *match,
                          const struct csv_cells *first, enum row_property property) {
    const struct table *table = format->table;
    const char *asked = format->options->property.column[property];
    uint32_t known = table_find_kind(table, property_rules[property].kind), at = NOWHERE;
    bool there = known < table->columns;
    if (asked && (!there || !csv_is_number(asked)))
        at = csv_find_column(first, true, asked);
    else if (there)
        at = match_column(match, known);
    match->property[property] = at < first->count ? at : NOWHERE;
    if (at < first->count)
        match->taken[at] = NO_FEATURE;
    else if (asked || (there && property != ROW_WEIGHT && property != ROW_CLUSTER))
        return csv_no_property(first, true, property, asked ? asked : table->column[known].name);
    return 0;
}

static int match_properties(const struct format *format, struct column_match *match,
                            const struct csv_cells *first) {
    int code = 0;
    for (enum row_property i = 0; i < ROW_PROPERTIES && !code; i++)
        code = match_property(format, match, first, i);
    return code;
}

/* The kind of column `i` of the file. */
static enum column_kind kind_of(const struct format *format, const struct column_match *match,
                                uint32_t i) {
    if (i == format->label)
        return COLUMN_LABEL;
    for (enum row_property p = 0; p < ROW_PROPERTIES; p++)
        if (match->property[p] == i)
            return property_rules[p].kind;
    bool known = match->taken[i] < format->table->columns;
    return known ? format->table->column[match->taken[i]].kind : COLUMN_SKIPPED;
}

/* The table's column that the file's column `i` is, which becomes one if there is none. */
static struct table_column *column_for(struct format *format, struct column_match *match,
                                       uint32_t i) {
    struct table *table = format->table;
    assert(i < match->count && match->taken[i] != NO_FEATURE);
    if (match->taken[i] != NOWHERE)
        return &table->column[match->taken[i]];
    match->taken[i] = table->columns++;
    table->column = memory_resize(table->column, table->columns, sizeof *table->column);
    struct table_column *column = &table->column[match->taken[i]];
    *column = (struct table_column){
        .name = memory_copy_string(match->name[i]), .place = COLUMN_NOWHERE, .mean = NAN};
    return column;
}

/* Adds the columns of the file that the table lacks, of the kinds that they are found to have. */
static int add_columns(struct format *format, struct column_match *match,
                       const struct csv_cells *first, const struct text_line *text) {
    struct format kinds = *format;
    bool *known = memory_new(first->count, sizeof *known), *added = memory_new(first->count, 1);
    bool some = false;
    kinds.table = table_new(first->count);
    for (uint32_t i = 0; i < first->count; i++) {
        uint32_t number = match->taken[i];
        added[i] = number != NO_FEATURE && table_lacks(format->table, number);
        some |= added[i];
        known[i] = !added[i];
        kinds.table->column[i].name = memory_copy_string(match->name[i]);
        if (number < format->table->columns && known[i])
            kinds.table->column[i].kind = format->table->column[number].kind;
        if (number < format->table->columns)
            kinds.table->column[i].amounts = format->table->column[number].amounts;
    }
    int code = some ? csv_find_kinds(&kinds, first, text, known) : 0;
    for (uint32_t i = 0; i < first->count && !code; i++)
        if (added[i]) {
            struct table_column *column = column_for(format, match, i);
            column->kind = kinds.table->column[i].kind;
            column->found = kinds.table->column[i].found;
            column->amounts = kinds.table->column[i].amounts;
        }
    csv_add_date_parts(format->table);
    table_free(kinds.table);
    free(known);
    free(added);
    return code;
}

/* Finds the columns that features are made of. A line that names none of them is probably a row: to
 * say that is worth more than that it does not name the label. */
static int match_used(const struct format *format, struct column_match *match,
                      const struct csv_cells *first) {
    const struct table *table = format->table;
    const char *lacking = NULL;
    bool found = false;
    for (uint32_t i = 0; i < table->columns; i++) {
        const struct table_column *column = &table->column[i];
        if (column->kind == COLUMN_LABEL || property_of(column->kind) < ROW_PROPERTIES ||
            column->is_part)
            continue;
        bool here = match_column(match, i) != NOWHERE;
        found |= here && table_reads(column);
        if (!here && !lacking && table_reads(column))
            lacking = column->name;
    }
    bool may_lack_all = format->options->table.missing_columns == MISSING_COLUMNS_MISSING;
    return found || !lacking || may_lack_all ? 0 : lacks(table, first, lacking);
}

static int match_by_name(struct format *format, struct column_match *match,
                         const struct csv_cells *first, const struct text_line *text) {
    const struct table *table = format->table;
    const char *label = match_label(format, match, first);
    int properties = match_properties(format, match, first);
    int code = match_used(format, match, first);
    if (!code && format->label == first->count && !format->options->label.optional)
        code = csv_no_column(first, true, "take the label from", label);
    code = code ? code : properties;
    if (!code && format->options->table.adds_columns)
        code = add_columns(format, match, first, text);
    if (!code)
        report_others(match, first);
    for (uint32_t i = 0; i < first->count && !code; i++) {
        uint32_t number = match->taken[i];
        bool known = number < table->columns;
        format->column[i] =
            (struct csv_column){.kind = kind_of(format, match, i), .number = known ? number : 0};
    }
    return code ? code : skip_absent_columns(format, first);
}

/* The place of that column in the first file of training. */
static uint32_t place_of_kind(const struct table *table, enum column_kind kind) {
    uint32_t number = table_find_kind(table, kind);
    return number < table->columns ? table->column[number].place : COLUMN_NOWHERE;
}

/* Gives each column of the file the kind and number of the one that had its place in the first file
 * of training. Returns how many columns that had. */
static uint32_t match_places(struct format *format, const struct csv_cells *first) {
    const struct table *table = format->table;
    uint32_t count = 0;
    for (uint32_t i = 0; i < first->count; i++)
        format->column[i] = (struct csv_column){.kind = COLUMN_SKIPPED};
    for (uint32_t i = 0; i < table->columns; i++) {
        const struct table_column *column = &table->column[i];
        count += column->place != COLUMN_NOWHERE;
        if (column->place < first->count)
            format->column[column->place] = (struct csv_column){.kind = column->kind, .number = i};
    }
    return count;
}

static int match_by_position(struct format *format, const struct csv_cells *first) {
    const struct table *table = format->table;
    const struct source_options *options = format->options;
    uint32_t label = place_of_kind(table, COLUMN_LABEL);
    format->label = label < first->count ? label : first->count;
    int code = csv_check_count(format, first, match_places(format, first));
    if (code)
        return code;
    if (format->label == first->count && !options->label.optional)
        return csv_no_column(first, false, "take the label from", "label");
    if (options->label.column && label < first->count &&
        csv_find_column(first, format->header, options->label.column) != label)
        return error_set(ERROR_DATA,
                         "%s:%llu: without names the label must stand where it stood in the data "
                         "that was trained on, in column %u, and not in column \"%s\"",
                         first->path, (unsigned long long)first->number, label + 1,
                         options->label.column);
    for (enum row_property i = 0; i < ROW_PROPERTIES; i++) {
        const char *asked = options->property.column[i];
        if (asked && place_of_kind(table, property_rules[i].kind) >= first->count)
            return csv_no_property(first, false, i, asked);
    }
    return skip_absent_columns(format, first);
}

int csv_match(struct format *format, const struct csv_cells *first, const struct text_line *text) {
    if (!format->header || !table_is_named(format->table))
        return match_by_position(format, first);
    struct column_match match;
    column_match_init(&match, format->table, first);
    int code = match_by_name(format, &match, first, text);
    column_match_release(&match);
    return code;
}

/* ---- a new table, numbered as an earlier one ---- */

const char *csv_label_before(const struct table *order, const struct csv_cells *first) {
    uint32_t label = table_find_kind(order, COLUMN_LABEL);
    const char *known = label < order->columns ? order->column[label].name : NULL, *found = NULL;
    struct column_match match;
    if (!known)
        return NULL;
    column_match_init(&match, order, first);
    for (uint32_t i = 0; i < first->count && !found; i++)
        if (!strcmp(match.name[i], known))
            found = first->cell[i];
    column_match_release(&match);
    return found;
}

void csv_number_as(struct table *table, const struct table *order, const struct csv_cells *first) {
    struct column_match match;
    column_match_init(&match, order, first);
    uint32_t columns = order->columns;
    for (uint32_t i = 0; i < order->columns; i++)
        match_column(&match, i);
    for (uint32_t i = 0; i < first->count; i++)
        if (match.taken[i] == NOWHERE)
            match.taken[i] = columns++;
    assert(columns >= order->columns && table->columns >= first->count);
    struct table *numbered = table_new(columns);
    for (uint32_t i = 0; i < order->columns; i++) {
        struct table_column *column = &numbered->column[i];
        column->kind = COLUMN_SKIPPED; /* unless the file has it */
        column->place = COLUMN_NOWHERE;
        column->name = memory_copy_string(order->column[i].name);
    }
    for (uint32_t i = 0; i < first->count; i++) {
        struct table_column *column = &numbered->column[match.taken[i]];
        free(column->name);
        *column = table->column[i];
        table->column[i] = (struct table_column){0};
    }
    const struct table old = *table;
    table->column = numbered->column;
    table->columns = numbered->columns;
    numbered->column = old.column;
    numbered->columns = old.columns;
    table_free(numbered);
    column_match_release(&match);
}
