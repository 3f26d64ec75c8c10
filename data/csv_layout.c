/* What the first line of a CSV file says about all the others. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/format.h"
#include "data/number.h"

/* The cells of the first line; they point into a copy of it. */
struct first_line {
    const char *path;
    uint64_t number;
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

static int split(struct first_line *first, const char *line, size_t length, char delimiter) {
    uint64_t most = 2;
    for (size_t i = 0; i < length; i++)
        most += line[i] == delimiter;
    if (most > CSV_COLUMNS_MAX)
        return error_set(ERROR_DATA, "%s:%llu: more than %u columns", first->path,
                         (unsigned long long)first->number, CSV_COLUMNS_MAX);
    first->copy = memory_format("%.*s", (int)length, line);
    first->cell = memory_new(most, sizeof *first->cell);
    char *at = first->copy, *end = at + strlen(at);
    while (at) {
        char *cell = csv_cell(&at, end, delimiter);
        if (!cell)
            return error_set(ERROR_DATA, "%s:%llu: a quote in column %u is not closed", first->path,
                             (unsigned long long)first->number, first->count + 1);
        first->cell[first->count++] = cell;
    }
    return 0;
}

/* A column named by its number from 1; 0 if `text` is no such number. */
static uint32_t column_number(const char *text) {
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 8)
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

/* The column that `text` means, from 0; `count` if there is none. */
static uint32_t find_column(const struct first_line *first, bool header, const char *text) {
    for (uint32_t i = 0; header && i < first->count; i++)
        if (!strcmp(first->cell[i], text))
            return i;
    uint32_t number = column_number(text);
    return number && number <= first->count ? number - 1 : first->count;
}

static bool named_by_number(const char *text) {
    return column_number(text) != 0;
}

/* Names of columns ask for a header; otherwise a cell that is no number makes the line one. */
static bool looks_like_header(const struct first_line *first,
                              const struct source_options *options) {
    if (options->label && !named_by_number(options->label))
        return true;
    uint32_t label = options->label ? find_column(first, false, options->label) : first->count - 1;
    bool *skip = memory_new(first->count + 1, sizeof *skip);
    bool header = false;
    for (const char *const *name = options->skip; name && *name; name++) {
        header |= !named_by_number(*name);
        skip[find_column(first, false, *name)] = true;
    }
    for (uint32_t i = 0; i < first->count && !header; i++) {
        double value;
        header = i != label && !skip[i] && !number_of_text(first->cell[i], &value);
    }
    free(skip);
    return header;
}

static int no_such_column(const struct first_line *first, bool header, const char *what,
                          const char *column) {
    return error_set(ERROR_DATA, "%s:%llu: there is no column \"%s\" to %s: %s, of %u columns",
                     first->path, (unsigned long long)first->number, column, what,
                     header ? "give a name from this header line or a number from 1"
                            : "the file has no header line; give a number from 1",
                     first->count);
}

static int resolve(struct format *format, const struct first_line *first) {
    const struct source_options *options = format->options;
    format->columns = first->count;
    format->label =
        options->label ? find_column(first, format->header, options->label) : first->count - 1;
    if (format->label == first->count && !options->label_optional)
        return no_such_column(first, format->header, "take the label from", options->label);
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

static void keep_names(struct format *format, const struct first_line *first) {
    format->names = memory_new(first->count + 1, sizeof *format->names);
    for (uint32_t i = 0; i < first->count; i++)
        format->names[i] = memory_copy_string(first->cell[i]);
}

int csv_layout_find(struct format *format, const char *path, uint64_t line_number, const char *line,
                    size_t length) {
    struct first_line first = {.path = path, .number = line_number};
    format->delimiter = find_delimiter(line, length);
    int code = split(&first, line, length, format->delimiter);
    if (!code) {
        format->header = format->options->header == CSV_HEADER_YES ||
                         (format->options->header == CSV_HEADER_AUTO &&
                          looks_like_header(&first, format->options));
        code = resolve(format, &first);
    }
    if (!code && format->header)
        keep_names(format, &first);
    free(first.cell);
    free(first.copy);
    return code;
}
