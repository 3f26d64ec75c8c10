/* What the first line of a CSV file says about all the others. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/csv/layout.h"
#include "data/text/date.h"
#include "data/text/number.h"

static bool comma_is_decimal(const struct text_syntax *syntax) {
    return syntax->decimal && !strcmp(syntax->decimal, ",");
}

struct record_rule csv_rule(const struct text_syntax *syntax) {
    struct record_rule rule = {.delimiters = ",;\t|"};
    if (syntax->delimiter) {
        bool tab = !strcmp(syntax->delimiter, "tab");
        rule = (struct record_rule){.delimiters = {tab ? '\t' : *syntax->delimiter}};
    } else if (comma_is_decimal(syntax)) {
        rule = (struct record_rule){.delimiters = ";\t|,"};
    }
    rule.comment = syntax->comment ? *syntax->comment : '\0';
    rule.plain_quotes = syntax->quote == CSV_QUOTE_NONE;
    return rule;
}

/* Whether the cells between semicolons are all as numbers with or without a decimal comma. */
static bool has_decimal_commas(const char *line, size_t length) {
    bool comma = false;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == ';')
            comma = false;
        if (line[i] != ',')
            continue;
        if (comma || !i || i + 1 == length || !isdigit((unsigned char)line[i - 1]) ||
            !isdigit((unsigned char)line[i + 1]))
            return false;
        comma = true;
    }
    return true;
}

/* Whether the name of a file says that tabs part its columns: sentences have commas, too. */
static bool is_named_for_tabs(const char *path) {
    const char *const endings[] = {".tsv", ".tab", ".tsv.gz", ".tab.gz", ".tsv.zst", ".tab.zst"};
    bool tabs = false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        tabs = tabs || name_ends(path, endings[i]);
    return tabs;
}

/* A comma between digits may be a decimal point if there are semicolons, too; but not if these
 * stand between the labels of a row. */
static char find_delimiter(const struct source_options *options, const char *path, const char *line,
                           size_t length) {
    const struct record_rule rule = csv_rule(&options->syntax);
    if (!options->syntax.delimiter && is_named_for_tabs(path) &&
        record_has(&rule, line, length, '\t'))
        return '\t';
    for (const char *delimiter = rule.delimiters; *delimiter; delimiter++) {
        bool decimal = *delimiter == ',' && !options->syntax.decimal &&
                       options->label.separator != ';' && record_has(&rule, line, length, ';') &&
                       has_decimal_commas(line, length);
        if (!decimal && record_has(&rule, line, length, *delimiter))
            return *delimiter;
    }
    return rule.delimiters[0];
}

static int split_cells(struct csv_cells *cells, const struct text_line *line,
                       const struct record_rule *rule) {
    uint64_t most = 2;
    for (size_t i = 0; i < line->length; i++)
        most += line->text[i] == *rule->delimiters;
    if (most > CSV_COLUMNS_MAX)
        return error_set(ERROR_DATA, "%s:%llu: more than %u columns", cells->path,
                         (unsigned long long)cells->number, CSV_COLUMNS_MAX);
    cells->copy = memory_new(line->length + 1, 1);
    memcpy(cells->copy, line->text, line->length);
    cells->cell = memory_new(most, sizeof *cells->cell);
    char *at = cells->copy, *end = at + line->length;
    while (at) {
        char *cell = csv_cell(&at, end, rule);
        if (!cell)
            return error_set(ERROR_DATA, "%s:%llu: a quote in column %u is not closed", cells->path,
                             (unsigned long long)cells->number, cells->count + 1);
        cells->cell[cells->count++] = cell;
    }
    return 0;
}

static void cells_release(struct csv_cells *cells) {
    free(cells->cell);
    free(cells->copy);
    *cells = (struct csv_cells){0};
}

/* A column named by its number from 1; 0 if `text` is no such number. */
static uint32_t column_number(const char *text) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 8)
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

/* Names from a job are UTF-8, as those of a table are. A cell that is not is compared in the form
 * that its name has there. */
static bool is_named(const char *cell, const char *text) {
    if (!strcmp(cell, text) || text_is_utf8(cell))
        return !strcmp(cell, text);
    struct table_column column = {0};
    table_set_name(&column, cell);
    const bool same = !strcmp(column.name, text);
    free(column.name);
    return same;
}

uint32_t csv_find_column(const struct csv_cells *first, bool header, const char *text) {
    for (uint32_t i = 0; header && i < first->count; i++)
        if (is_named(first->cell[i], text))
            return i;
    uint32_t number = column_number(text);
    return number && number <= first->count ? number - 1 : first->count;
}

bool csv_is_number(const char *text) {
    return column_number(text) != 0;
}

/* ---- is the first line a header? ----
 *
 * A row that is taken for a header is lost silently; a header that is taken for a row gives an
 * error that says what to do. So in doubt the line is a row: it is one if any cell may be a value.
 */

/* Whether a cell stands for an unknown number, or is a number for other programs: "NA", "nan",
 * "inf". */
static bool stands_for_number(const char *cell) {
    static const char *const words[] = {"na", "n/a", "n.a.", "null", "nil", "none", "missing"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcasecmp(cell, words[i]))
            return true;
    char *end;
    strtod(cell, &end);
    return *end == '\0';
}

/* A name has a letter, and neither begins as a number nor stands for one. */
static bool is_name(const char *cell) {
    const char *first = cell;
    bool letter = false;
    for (const char *p = cell; *p && !letter; p++)
        letter = isalpha((unsigned char)*p) || *p & 0x80;
    first += *first == '-' || *first == '+';
    first += *first == '.';
    return letter && !isdigit((unsigned char)*first) && !stands_for_number(cell);
}

/* Whether all cells are names of columns, or empty as that of an index often is. */
static bool are_names(const struct csv_cells *line) {
    uint32_t names = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        if (!is_name(line->cell[i]) && *line->cell[i])
            return false;
        names += *line->cell[i] != 0;
    }
    return names > 0;
}

/* Whether a cell is no name of a column: a number, however it is written, or a date. */
static bool is_value(const char *cell) {
    double value;
    uint32_t dates = DATE_FORMATS_ALL;
    date_formats_narrow(cell, &dates);
    return number_of_amount(cell, '.', &value) || number_of_amount(cell, ',', &value) ||
           date_formats_first(dates);
}

/* Names above texts only may be an ordinary row: a header needs a value below one of its names. If
 * some of its cells are no names, such as "1stFlrSF" or "Na", most must be, and more of them above
 * values than there are cells that may be numbers themselves. */
static bool fits_below(const struct text_line *second, const struct csv_cells *first,
                       const struct record_rule *rule) {
    struct csv_cells cells = {.path = first->path};
    uint32_t names = 0, filled = 0, above = 0, values = 0;
    const bool malformed = second->length && split_cells(&cells, second, rule);
    for (uint32_t i = 0; i < first->count; i++) {
        const bool name = is_name(first->cell[i]);
        filled += *first->cell[i] != 0;
        names += name;
        values += *first->cell[i] && !name && stands_for_number(first->cell[i]);
        above += name && i < cells.count && is_value(cells.cell[i]);
    }
    error_clear(); /* a line that is malformed will be reported as one */
    cells_release(&cells);
    if (names == filled) /* or there is no other line in sight */
        return names && (above || malformed || !second->length);
    return 2 * names > filled && above > values;
}

#define YEAR_LEAST 1800
#define YEAR_MOST 2100

/* A whole year; 0: it is something else. */
static int year_of(const char *cell) {
    if (strlen(cell) != 4 || strspn(cell, "0123456789") != 4)
        return 0;
    int year = (int)strtol(cell, NULL, 10);
    return year >= YEAR_LEAST && year <= YEAR_MOST ? year : 0;
}

/* Whether the line has names, and besides these years alone which rise by one step, as in
 * "country,2010,2011". */
static bool counts_years(const struct csv_cells *first) {
    uint32_t names = 0, years = 0;
    int before = 0, step = 0;
    for (uint32_t i = 0; i < first->count; i++) {
        const int year = year_of(first->cell[i]), rise = year - before;
        if (is_name(first->cell[i])) {
            names++;
        } else if (year) {
            if (years && (rise <= 0 || (step && rise != step)))
                return false;
            step = years ? rise : 0;
            before = year;
            years++;
        } else if (*first->cell[i]) {
            return false;
        }
    }
    return names && years > 1;
}

/* Whether such years name columns: the row beneath has numbers there, of which some are no years.
 */
static bool years_are_names(const struct csv_cells *first, const struct text_line *second,
                            const struct record_rule *rule) {
    struct csv_cells cells = {.path = first->path};
    uint32_t numbers = 0, others = 0;
    if (!counts_years(first))
        return false;
    bool fits = second->length && !split_cells(&cells, second, rule) && cells.count == first->count;
    for (uint32_t i = 0; fits && i < first->count; i++) {
        const char *cell = cells.cell[i];
        if (!year_of(first->cell[i]))
            continue;
        numbers += is_value(cell) && !year_of(cell);
        others += *cell && !is_value(cell) && !stands_for_number(cell);
    }
    error_clear(); /* a line that is malformed will be reported as one */
    cells_release(&cells);
    return fits && numbers && !others;
}

static bool list_has_name(const char *const *list) {
    for (; list && *list; list++)
        if (!csv_is_number(*list))
            return true;
    return false;
}

/* Whether the column of a property is told by its name. */
static bool names_property(const struct property_options *options) {
    bool named = false;
    for (enum row_property i = 0; i < ROW_PROPERTIES; i++) {
        const char *column = options->column[i];
        named |= column && !csv_is_number(column);
    }
    return named;
}

static bool asks_for_names(const struct source_options *options) {
    const struct table_options *table = &options->table;
    if (table->known)
        return false;
    return (options->label.column && !csv_is_number(options->label.column)) ||
           list_has_name(table->skip) || names_property(&options->property) ||
           list_has_name(table->numbers) || list_has_name(table->categories) ||
           list_has_name(table->text) || list_has_name(table->dates) ||
           list_has_name(table->amounts);
}

/* Whether the line stands again among rows of other texts: that of names does, where files were put
 * one after the other, and no row has a label of its own. */
static bool stands_again(const struct csv_cells *first, const struct text_line *behind,
                         const struct format *format) {
    uint64_t copies;
    return !format->options->table.known && first->count > 1 &&
           !csv_recurs(format, first, behind, &copies) && copies;
}

static bool is_header(const struct csv_cells *first, const struct text_line *second,
                      const struct text_line *behind, const struct format *format) {
    const struct source_options *options = format->options;
    if (options->syntax.header != CSV_HEADER_AUTO)
        return options->syntax.header == CSV_HEADER_YES;
    if (asks_for_names(options))
        return true;
    bool names = are_names(first);
    if (options->table.known) { /* its columns are named: all, or most where some may be missing */
        struct csv_cells all = *first;
        all.count += all.folders;
        uint32_t used, named = csv_count_named(options->table.known, &all, &used);
        bool may_lack = options->table.missing_columns == MISSING_COLUMNS_MISSING;
        if (used && (named == used || (may_lack && names && 2 * named >= used)))
            return true;
    }
    return fits_below(second, first, &format->rule) ||
           years_are_names(first, second, &format->rule) ||
           (names && stands_again(first, behind, format));
}

/* ---- columns ---- */

/* The table whose numbers the columns of this file take, or NULL. */
static const struct table *order_of(const struct format *format) {
    const struct table *order = format->options->table.order;
    return order && format->header && table_is_named(order) ? order : NULL;
}

/* The last column of the file itself that is neither a text nor an index. */
static uint32_t last_label(const struct format *format, const struct csv_cells *first) {
    uint32_t label = (format->keys ? format->keys_met : format->own) - 1;
    bool other = true;
    while (other && label) {
        other = csv_is_index(format, first, label);
        for (const char *const *name = format->options->table.text; name && *name; name++)
            other |= csv_find_column(first, format->header, *name) == label;
        label -= other;
    }
    return label;
}

static int find_label(struct format *format, const struct csv_cells *first) {
    const struct source_options *options = format->options;
    const struct table *order = order_of(format);
    const char *label = options->label.column;
    if (!label && order)
        label = csv_label_before(order, first); /* it need not be the last any more */
    format->label =
        label ? csv_find_column(first, format->header, label) : last_label(format, first);
    if (format->label == first->count && !options->label.optional)
        return csv_no_column(first, format->header, "take the label from", options->label.column);
    if (format->label < first->count)
        format->table->column[format->label].kind = COLUMN_LABEL;
    return csv_check_count(format, first, options->table.columns);
}

/* The key that lists the columns of a kind. */
static const char *key_of(enum column_kind kind) {
    switch (kind) {
    case COLUMN_LABEL:
        return "csv.label";
    case COLUMN_SKIPPED:
        return "csv.skip";
    case COLUMN_CATEGORY:
        return "csv.categories";
    case COLUMN_WORDS:
        return "csv.text";
    case COLUMN_DATE:
        return "csv.dates";
    default:
        return "csv.numbers";
    }
}

static int refuse_two_kinds(const struct format *format, const struct csv_cells *first,
                            const char *name, enum column_kind kind, enum column_kind other) {
    const char *here = key_of(kind), *there = key_of(other);
    if (other == COLUMN_LABEL && !format->options->label.column)
        return error_set(
            ERROR_DATA,
            "%s:%llu: column \"%s\" is listed in %s, and is the label, since it is the "
            "last; name that of the labels with csv.label, or take it out of %s",
            first->path, (unsigned long long)first->number, name, here, here);
    return error_set(ERROR_DATA,
                     "%s:%llu: column \"%s\" is named by %s and by %s; take it out of one of them",
                     first->path, (unsigned long long)first->number, name, there, here);
}

static int refuse_to_skip_label(const struct format *format, const struct csv_cells *first,
                                const char *name) {
    return error_set(ERROR_DATA,
                     "%s:%llu: column \"%s\" cannot be left out by csv.skip: it is the label%s",
                     first->path, (unsigned long long)first->number, name,
                     format->options->label.column
                         ? ""
                         : ", since it is the last; name that of the labels with csv.label");
}

/* Gives the columns of a list their kind; no other list may have given them another. */
static int set_kinds(struct format *format, const struct csv_cells *first, const char *const *list,
                     enum column_kind kind, const char *what, bool *known) {
    for (const char *const *name = list; name && *name; name++) {
        uint32_t column = format->options->table.known && csv_is_number(*name)
                              ? first->count
                              : csv_find_column(first, format->header, *name);
        /* It may be a column of another file. Numbers are those of the first. */
        if (column == first->count && format->options->table.adds_columns &&
            (format->options->table.known || !csv_is_number(*name)))
            continue;
        if (column == first->count)
            return csv_no_column(first, format->header, what, *name);
        struct table_column *here = &format->table->column[column];
        if (kind == COLUMN_SKIPPED && column == format->label && !format->options->label.optional)
            return refuse_to_skip_label(format, first, *name);
        if (known[column] && here->kind != kind && kind != COLUMN_SKIPPED)
            return refuse_two_kinds(format, first, *name, kind, here->kind);
        if (here->kind != COLUMN_SKIPPED)
            here->kind = kind;
        known[column] = true;
    }
    return 0;
}

/* Finds the column of a property, which no other key may name. */
static int set_property(struct format *format, const struct csv_cells *first,
                        enum row_property property, bool *known) {
    const struct property_rule *rule = &property_rules[property];
    const char *name = format->options->property.column[property];
    uint32_t column = csv_find_column(first, format->header, name);
    if (column == first->count)
        return csv_no_property(first, format->header, property, name);
    struct table_column *here = &format->table->column[column];
    enum row_property other = property_of(here->kind);
    const char *what = here->kind == COLUMN_LABEL     ? "the label"
                       : here->kind == COLUMN_SKIPPED ? "left out by csv.skip"
                       : other < ROW_PROPERTIES       ? property_rules[other].key
                                                      : "a feature";
    if (known[column])
        return error_set(ERROR_DATA, "%s:%llu: column \"%s\" cannot be %s: it is %s%s", first->path,
                         (unsigned long long)first->number, name, rule->key, what,
                         here->kind == COLUMN_LABEL && !format->options->label.column
                             ? ", since it is the last; name that of the labels with csv.label"
                             : "");
    here->kind = rule->kind;
    known[column] = true;
    return 0;
}

/* Marks the columns whose numbers, or labels, weights, offsets and exposures, are amounts. */
static int set_amounts(struct format *format, const struct csv_cells *first, bool *known) {
    const struct source_options *options = format->options;
    for (const char *const *name = options->table.amounts; name && *name; name++) {
        const bool elsewhere = options->table.known && csv_is_number(*name);
        const uint32_t column =
            elsewhere ? first->count : csv_find_column(first, format->header, *name);
        if (column == first->count && options->table.adds_columns &&
            (options->table.known || !csv_is_number(*name)))
            continue;
        if (column == first->count)
            return csv_no_column(first, format->header, "read as an amount", *name);
        struct table_column *here = &format->table->column[column];
        if (known[column] && (here->kind == COLUMN_CATEGORY || here->kind == COLUMN_WORDS ||
                              here->kind == COLUMN_DATE || here->kind == COLUMN_CLUSTER))
            return error_set(ERROR_DATA,
                             "%s:%llu: column \"%s\" cannot be read as an amount: another key has "
                             "it; take it out of one of csv.amounts, csv.categories, csv.text, "
                             "csv.dates and summary_cluster",
                             first->path, (unsigned long long)first->number, *name);
        here->amounts = true;
        known[column] = true;
    }
    return 0;
}

/* Names the columns that were found to be categories, in one line of log. */
static void report_categories(const struct format *format, const char *path) {
    char *list = NULL;
    for (uint32_t i = 0; i < format->columns; i++) {
        const struct table_column *column = &format->table->column[i];
        if (!column->found || column->kind != COLUMN_CATEGORY)
            continue;
        char number[16], *before = list;
        snprintf(number, sizeof number, "%u", i + 1);
        list = memory_format("%s%s%.100s", before ? before : "", before ? ", " : "",
                             column->name ? column->name : number);
        free(before);
    }
    if (list)
        log_info("%s: columns of texts are taken for categories: %.1000s", path, list);
    free(list);
}

int csv_find_kinds(struct format *format, const struct csv_cells *first,
                   const struct text_line *text, bool *known) {
    const struct source_options *options = format->options;
    const struct table_options *table = &options->table;
    int code = set_kinds(format, first, table->skip, COLUMN_SKIPPED, "leave out", known);
    if (!code)
        code = set_kinds(format, first, table->numbers, COLUMN_NUMBER, "read as a number", known);
    if (!code)
        code = set_kinds(format, first, table->categories, COLUMN_CATEGORY, "read as a category",
                         known);
    if (!code)
        code = set_kinds(format, first, table->text, COLUMN_WORDS, "read as a text", known);
    if (!code)
        code = set_kinds(format, first, table->dates, COLUMN_DATE, "read as a date", known);
    for (enum row_property i = 0; i < ROW_PROPERTIES && !code && !table->known; i++)
        if (options->property.column[i])
            code = set_property(format, first, i, known);
    if (!code)
        code = set_amounts(format, first, known);
    if (!code && !table->numbers_only)
        csv_leave_out_index(format, first, known);
    if (!code && !table->numbers_only)
        code = csv_kinds_find(format, first->path, text, known);
    if (!code)
        report_categories(format, first->path);
    if (!code && !table->numbers_only && !table->known)
        csv_tell_of_folders(format, first->path);
    return code;
}

static void keep_words(struct format *format) {
    const uint32_t count = names_count(format->table->missing);
    format->missing = memory_new(count, sizeof *format->missing);
    format->words = count;
    for (uint32_t i = 0; i < count; i++)
        format->missing[i] =
            (struct csv_word){format->table->missing[i], strlen(format->table->missing[i])};
}

/* Makes the table that this file is the first of. */
static int make_table(struct format *format, const struct csv_cells *first,
                      const struct text_line *text) {
    const struct source_options *options = format->options;
    const char *const *words = options->table.missing && *options->table.missing
                                   ? options->table.missing
                               : options->table.numbers_only ? NULL
                                                             : table_missing_words;
    format->table = table_new(first->count);
    format->table->trim = options->table.trim;
    format->table->hash = options->table.hash_bits;
    if (options->table.text && *options->table.text) {
        format->table->text = (struct table_text){options->words.ngrams ? options->words.ngrams : 1,
                                                  options->words.least,
                                                  options->words.lowercase,
                                                  "",
                                                  0,
                                                  0};
        snprintf(format->table->text.letters, sizeof format->table->text.letters, "%s",
                 options->words.letters ? options->words.letters : "");
    }
    if (options->table.date_format && strcmp(options->table.date_format, DATE_FORMAT_ISO) != 0)
        format->table->date_format = memory_copy_string(options->table.date_format);
    if (words)
        table_set_missing(format->table, words);
    keep_words(format);
    for (uint32_t i = 0; format->header && i < first->count; i++)
        table_set_name(&format->table->column[i], first->cell[i]);
    int code = find_label(format, first);
    if (!code) {
        bool *known = memory_new(first->count, sizeof *known);
        if (format->label < first->count)
            known[format->label] = true;
        code = csv_find_kinds(format, first, text, known);
        free(known);
    }
    if (!code && order_of(format))
        csv_number_as(format->table, order_of(format), first);
    if (!code)
        csv_add_date_parts(format->table);
    for (uint32_t i = 0; !code && i < format->table->columns; i++) {
        const struct table_column *column = &format->table->column[i];
        assert(column->place == COLUMN_NOWHERE || column->place < format->columns);
        if (column->place != COLUMN_NOWHERE)
            format->column[column->place] = (struct csv_column){.kind = column->kind, .number = i};
    }
    return code;
}

/* The table's column that a column of the file is: labels and what rows have of their own are known
 * by their kinds. */
static const struct table_column *column_in_table(const struct format *format, uint32_t i) {
    const struct csv_column *column = &format->column[i];
    const bool own = column->kind == COLUMN_LABEL || property_of(column->kind) < ROW_PROPERTIES;
    const uint32_t number = own ? table_find_kind(format->table, column->kind) : column->number;
    return number < format->table->columns ? &format->table->column[number] : NULL;
}

static void note_number(struct format *format, uint32_t number) {
    format->number_id[format->numbers++] = (uint64_t)number + 1;
}

static uint32_t place_of(const struct format *format, uint32_t number) {
    uint64_t id = (uint64_t)number + 1;
    const uint64_t *place =
        bsearch(&id, format->number_id, format->numbers, sizeof id, compare_ids);
    return place ? (uint32_t)(place - format->number_id) : 0;
}

/* Numbers the places of numbers in a row by their ids. */
static int place_numbers(struct format *format, const struct csv_cells *first) {
    csv_place_dates(format);
    format->number_id = memory_new(2 * (size_t)format->columns, sizeof *format->number_id);
    for (uint32_t i = 0; i < format->columns; i++) {
        const struct csv_column *column = &format->column[i];
        format->categories += column->kind == COLUMN_CATEGORY || column->kind == COLUMN_WORDS ||
                              column->kind == COLUMN_DATE;
        format->values += column->part ? DATE_PARTS : 1;
        if (column->kind == COLUMN_NUMBER)
            note_number(format, column->number);
        for (enum date_part part = 0; column->part && part < DATE_PARTS; part++)
            if (date_part_is_number(part))
                note_number(format, column->part[part].number);
    }
    assert(format->numbers <= 2 * (uint64_t)format->columns); /* a date has two at most */
    qsort(format->number_id, format->numbers, sizeof *format->number_id, compare_ids);
    for (uint32_t i = 0; i < format->columns; i++) {
        struct csv_column *column = &format->column[i];
        column->place = place_of(format, column->number);
        for (enum date_part part = 0; column->part && part < DATE_PARTS; part++)
            column->part[part].place = place_of(format, column->part[part].number);
    }
    if (format->numbers + format->categories)
        return 0;
    return csv_no_column_left(format, first);
}

static int lay_out_columns(struct format *format, const struct csv_cells *first,
                           const struct text_line *text) {
    format->columns = first->count;
    format->column = memory_new(first->count, sizeof *format->column);
    int code;
    if (format->options->table.known) {
        format->table = table_copy(format->options->table.known);
        keep_words(format);
        code = csv_match(format, first, text);
    } else {
        code = make_table(format, first, text);
    }
    assert(code || format->label <= format->columns);
    if (!code) {
        for (uint32_t i = 0; i < format->columns; i++) {
            const struct table_column *column = column_in_table(format, i);
            format->column[i].amounts = column && column->amounts;
        }
    }
    return code ? code : place_numbers(format, first);
}

/* Whether cells are numbers that count up, as years do, and 0, 1, 2 where columns had no names,
 * above values that are no such numbers. */
static bool count_up(const struct csv_cells *first, const struct csv_cells *second) {
    bool values = false;
    double start, value;
    if (first->count < 2 || !number_of_text(first->cell[0], &start) || start < 0)
        return false;
    for (uint32_t i = 0; i < first->count; i++)
        if (!number_of_text(first->cell[i], &value) || value != start + i)
            return false;
    for (uint32_t i = 0; i < second->count; i++)
        values |=
            *second->cell[i] && (!number_of_text(second->cell[i], &value) || value != rint(value));
    return values;
}

/* Whether names may be among numbers: one is above a number, or all are numbers. */
static bool may_be_names(const struct format *format, const struct csv_cells *first,
                         const struct text_line *second) {
    struct csv_cells cells = {.path = first->path};
    bool doubtful = false;
    double value;
    if (second->length && !split_cells(&cells, second, &format->rule) &&
        cells.count == first->count) {
        uint32_t names = 0, filled = 0, above = 0;
        for (uint32_t i = 0; i < first->count; i++) {
            const char *cell = first->cell[i];
            const bool number = number_of_text(cells.cell[i], &value);
            names += is_name(cell);
            filled += *cell != 0;
            above += number && *cell && !stands_for_number(cell) && !is_value(cell);
        }
        doubtful = count_up(first, &cells) || (above && 2 * names >= filled);
    }
    error_clear(); /* a line that is malformed will be reported as one */
    cells_release(&cells);
    return doubtful;
}

/* Warns if a line that may be a header is taken for a row, as a line of names above texts is. */
static void warn_of_names(struct format *format, const struct csv_cells *first, bool among_numbers,
                          const struct text_line *behind) {
    const struct source_options *options = format->options;
    if (options->syntax.header != CSV_HEADER_AUTO || options->table.known ||
        options->table.numbers_only || format->header)
        return;
    uint64_t copies;
    if (!among_numbers && (!are_names(first) || csv_recurs(format, first, behind, &copies)))
        return;
    format->names_doubtful = true;
    log_warning("%s:%llu: this line is taken for a row, although %s; if it names the columns, set "
                "csv.header = yes",
                first->path, (unsigned long long)first->number,
                among_numbers ? "its cells may be names" : "none of its texts occurs again");
}

static void keep_names(struct format *format, const struct csv_cells *first) {
    format->names = memory_new(first->count + 1, sizeof *format->names);
    for (uint32_t i = 0; i < first->count; i++)
        format->names[i] = memory_copy_string(first->cell[i]);
}

int format_of_names(struct format *format, const struct source_options *options,
                    const char *const *names, uint32_t count) {
    assert(options->table.known);
    struct csv_cells first = {.count = count, .cell = (char **)names};
    *format = (struct format){.options = options,
                              .kind = FORMAT_CSV,
                              .decimal_comma = comma_is_decimal(&options->syntax),
                              .header = names != NULL};
    format->own = count;
    int code = lay_out_columns(format, &first, NULL);
    if (names)
        keep_names(format, &first);
    return code;
}

/* A line that a spreadsheet reads and takes out. */
static int check_separator_line(const char *path, uint64_t number, const struct text_line *line) {
    const char *text = line->text;
    size_t length = line->length;
    if (length && *text == '"')
        text++, length--;
    if (length < 4 || length > 6 || strncasecmp(text, "sep=", 4) != 0)
        return 0;
    return error_set(
        ERROR_DATA,
        "%s:%llu: this line tells spreadsheets what parts columns, and is no row: take "
        "it out of the file",
        path, (unsigned long long)number);
}

/* A stray quote in the line of names takes rows into a name, as one in a row does (csv.c). */
static int check_first_line(const struct format *format, const struct csv_cells *first,
                            const struct text_line *line) {
    uint32_t lines = 0;
    bool alike = true;
    for (const char *at = line->text, *end = at + line->length; at && alike; lines++) {
        const char *behind = memchr(at, '\n', (size_t)(end - at)), *last = behind ? behind : end;
        uint32_t cells = 1;
        for (; at < last; at++)
            cells += *at == format->delimiter;
        alike = cells == first->count;
        at = behind ? behind + 1 : NULL;
    }
    if (!alike || lines < 2 || first->count < 2 || (lines == 2 && first->count == 2) ||
        format->options->syntax.quote != CSV_QUOTE_AUTO)
        return 0;
    return error_set(ERROR_DATA,
                     "%s:%llu: a quoted name takes in lines that have the columns of a row: take "
                     "its quotes out if they are stray ones, or set csv.quote = none if quotes are "
                     "characters like others, or csv.quote = double if the name is as it should be",
                     first->path, (unsigned long long)(first->number - (lines - 1)));
}

int csv_layout_find(struct format *format, const char *path, uint64_t line_number,
                    const struct text_line *line, const struct text_line *second,
                    const struct text_line *behind) {
    struct csv_cells first = {
        .path = path, .number = line_number, .keys = format->kind == FORMAT_JSONL};
    const bool json = format->kind == FORMAT_JSONL; /* the text was written by json_lines.c */
    format->delimiter =
        json ? ',' : find_delimiter(format->options, path, line->text, line->length);
    /* Parquet and JSON are written for this, with quotes and without comments. */
    format->rule = json ? (struct record_rule){0} : csv_rule(&format->options->syntax);
    memcpy(format->rule.delimiters, (char[]){format->delimiter, '\0'}, 2);
    format->decimal_comma = !json && comma_is_decimal(&format->options->syntax);
    int code = json ? 0 : check_separator_line(path, line_number, line);
    if (!code)
        code = split_cells(&first, line, &format->rule);
    if (!code && !json)
        code = check_first_line(format, &first, line);
    if (!code) {
        format->columns = format->own = first.count;
        csv_find_folders(format, &first);
        format->header = json || is_header(&first, second, behind, format);
        size_t length = (size_t)(behind->text + behind->length - line->text);
        struct text_line all = {line->text, length};
        const bool among_numbers = may_be_names(format, &first, second);
        code = csv_take_folders(format, &first);
        if (!code)
            code = lay_out_columns(format, &first, format->header ? behind : &all);
        if (!code)
            code = csv_check_folders(format, &first);
        warn_of_names(format, &first, among_numbers, behind);
    }
    if (!code)
        code = csv_find_carried(format, &first);
    if (!code)
        csv_warn_of_twins(format, &first);
    if (!code && format->header)
        keep_names(format, &first);
    if (!code && format->header && !json) {
        format->head_length = line->length;
        format->head = memory_new(line->length, 1);
        memcpy(format->head, line->text, line->length); /* it may have zero bytes */
    }
    assert(code || format->own <= format->columns);
    cells_release(&first);
    return code;
}
