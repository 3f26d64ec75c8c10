/* What the first line of a CSV file says about all the others. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/format.h"
#include "data/number.h"

/* The cells of a line; they point into a copy of it. */
struct cells {
    const char *path;
    uint64_t number; /* of the line */
    char *copy;
    char **cell;
    uint32_t count;
};

static char find_delimiter(const char *line, size_t length) {
    static const char candidates[] = {',', ';', '\t'};
    for (size_t i = 0; i < sizeof candidates; i++)
        if (memchr(line, candidates[i], length))
            return candidates[i];
    return ',';
}

static int split(struct cells *cells, const struct text_line *line, char delimiter) {
    uint64_t most = 2;
    for (size_t i = 0; i < line->length; i++)
        most += line->text[i] == delimiter;
    if (most > CSV_COLUMNS_MAX)
        return error_set(ERROR_DATA, "%s:%llu: more than %u columns", cells->path,
                         (unsigned long long)cells->number, CSV_COLUMNS_MAX);
    cells->copy = memory_format("%.*s", (int)line->length, line->text);
    cells->cell = memory_new(most, sizeof *cells->cell);
    char *at = cells->copy, *end = at + strlen(at);
    while (at) {
        char *cell = csv_cell(&at, end, delimiter);
        if (!cell)
            return error_set(ERROR_DATA, "%s:%llu: a quote in column %u is not closed", cells->path,
                             (unsigned long long)cells->number, cells->count + 1);
        cells->cell[cells->count++] = cell;
    }
    return 0;
}

static void cells_release(struct cells *cells) {
    free(cells->cell);
    free(cells->copy);
    *cells = (struct cells){0};
}

/* A column named by its number from 1; 0 if `text` is no such number. */
static uint32_t column_number(const char *text) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 8)
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

/* The column that `text` means, from 0; `count` if there is none. */
static uint32_t find_column(const struct cells *first, bool header, const char *text) {
    for (uint32_t i = 0; header && i < first->count; i++)
        if (!strcmp(first->cell[i], text))
            return i;
    uint32_t number = column_number(text);
    return number && number <= first->count ? number - 1 : first->count;
}

static bool named_by_number(const char *text) {
    return column_number(text) != 0;
}

/* ---- is the first line a header? ----
 *
 * A row that is taken for a header is lost silently; a header that is taken for a row gives an
 * error that says what to do. So in doubt the line is a row: it is one if any cell may be a value.
 */

static bool begins_as_number(const char *cell) {
    cell += *cell == '-' || *cell == '+';
    cell += *cell == '.';
    return isdigit((unsigned char)*cell);
}

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

static bool has_letter(const char *cell) {
    for (; *cell; cell++)
        if (isalpha((unsigned char)*cell) || *cell & 0x80)
            return true;
    return false;
}

static bool is_name(const char *cell) {
    return has_letter(cell) && !begins_as_number(cell) && !stands_for_number(cell);
}

/* Whether all cells are names of columns, or empty as that of an index often is. */
static bool are_names(const struct cells *line) {
    uint32_t names = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        if (is_name(line->cell[i]))
            names++;
        else if (*line->cell[i])
            return false;
    }
    return names > 0;
}

/* Whether a line has a number under a name of the first. */
static bool has_number_below(const struct cells *line, const struct cells *first) {
    double value;
    for (uint32_t i = 0; i < line->count && i < first->count; i++)
        if (*first->cell[i] && number_of_text(line->cell[i], &value))
            return true;
    return false;
}

/* Names above texts only may be an ordinary row: a header needs a number below one of its names. */
static bool fits_below(const struct text_line *second, const struct cells *first, char delimiter) {
    struct cells cells = {.path = first->path};
    if (!second->length)
        return true; /* there is no other line in sight */
    bool fits = split(&cells, second, delimiter) || has_number_below(&cells, first);
    error_clear(); /* a line that is malformed will be reported as one */
    cells_release(&cells);
    return fits;
}

static bool asks_for_names(const struct source_options *options) {
    bool asks = options->label && !named_by_number(options->label);
    for (const char *const *name = options->skip; name && *name; name++)
        asks |= !named_by_number(*name);
    return asks;
}

static bool is_header(const struct cells *first, const struct text_line *second,
                      const struct format *format) {
    if (format->options->header != CSV_HEADER_AUTO)
        return format->options->header == CSV_HEADER_YES;
    return asks_for_names(format->options) ||
           (are_names(first) && fits_below(second, first, format->delimiter));
}

/* ---- columns ---- */

static int no_such_column(const struct cells *first, bool header, const char *what,
                          const char *column) {
    return error_set(ERROR_DATA, "%s:%llu: there is no column \"%s\" to %s: %s, of %u columns",
                     first->path, (unsigned long long)first->number, column, what,
                     header ? "give a name from this header line or a number from 1"
                            : "the file has no header line; give a number from 1",
                     first->count);
}

/* A file without labels lacks its last column; all others stand where they did in training. */
static int check_count(const struct format *format, const struct cells *first) {
    uint32_t expected = format->options->columns;
    bool unlabelled = format->label == first->count;
    if (!expected || first->count == (unlabelled ? expected - 1 : expected))
        return 0;
    return error_set(ERROR_DATA,
                     "%s:%llu: %u column%s%s, where the data that was trained on has %u, the "
                     "label's included",
                     first->path, (unsigned long long)first->number, first->count,
                     first->count == 1 ? "" : "s", unlabelled ? " and no label" : "", expected);
}

static int resolve(struct format *format, const struct cells *first) {
    const struct source_options *options = format->options;
    format->columns = first->count;
    format->label =
        options->label ? find_column(first, format->header, options->label) : first->count - 1;
    if (format->label == first->count && !options->label_optional)
        return no_such_column(first, format->header, "take the label from", options->label);
    int code = check_count(format, first);
    if (code)
        return code;
    format->skip = memory_new(first->count, sizeof *format->skip);
    for (const char *const *name = options->skip; name && *name; name++) {
        uint32_t column = find_column(first, format->header, *name);
        if (column == first->count)
            return no_such_column(first, format->header, "leave out", *name);
        format->skip[column] = true;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < first->count; i++)
        used += i != format->label && !format->skip[i];
    if (!used)
        return error_set(ERROR_DATA, "%s:%llu: no column is left beside the label", first->path,
                         (unsigned long long)first->number);
    return 0;
}

static void keep_names(struct format *format, const struct cells *first) {
    format->names = memory_new(first->count + 1, sizeof *format->names);
    for (uint32_t i = 0; i < first->count; i++)
        format->names[i] = memory_copy_string(first->cell[i]);
}

int csv_layout_find(struct format *format, const char *path, uint64_t line_number,
                    const struct text_line *line, const struct text_line *second) {
    struct cells first = {.path = path, .number = line_number};
    format->delimiter = find_delimiter(line->text, line->length);
    int code = split(&first, line, format->delimiter);
    if (!code) {
        format->header = is_header(&first, second, format);
        code = resolve(format, &first);
    }
    if (!code && format->header)
        keep_names(format, &first);
    cells_release(&first);
    return code;
}
