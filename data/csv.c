/* Dense CSV: every cell a number, but for the label's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/digits.h"
#include "data/format.h"
#include "data/number.h"

/* A quoted cell: `p` is behind the opening quote. A doubled quote is one. */
static char *unquote(char *p, char *end, char **behind) {
    char *to = p, *from = p;
    for (; from < end; from++) {
        if (*from == '"') {
            if (from[1] != '"')
                break;
            from++;
        }
        *to++ = *from;
    }
    if (from >= end)
        return NULL;
    *to = '\0';
    for (from++; from < end && *from == ' ';)
        from++;
    *behind = from;
    return p;
}

char *csv_cell(char **at, char *end, char delimiter) {
    char *p = *at, *behind, *cell;
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '"') {
        cell = unquote(p + 1, end, &behind);
        if (!cell || (behind < end && *behind != delimiter))
            return NULL;
    } else {
        cell = p;
        behind = memchr(p, delimiter, (size_t)(end - p));
        if (!behind)
            behind = end;
        char *last = behind;
        while (last > p && last[-1] == ' ')
            last--;
        *last = '\0';
    }
    *at = behind < end ? behind + 1 : NULL;
    *behind = '\0';
    return cell;
}

/* "column 3 (radius)": by number from 1, and by name if there is one. */
#define COLUMN_TEXT 160

static const char *describe_column(const struct format *format, uint32_t column,
                                   char text[COLUMN_TEXT]) {
    if (format->names)
        snprintf(text, COLUMN_TEXT, "column %u (%.100s)", column + 1, format->names[column]);
    else
        snprintf(text, COLUMN_TEXT, "column %u", column + 1);
    return text;
}

static bool reject_cell(const struct format *format, struct batch *batch, uint64_t number,
                        uint32_t column, const char *cell) {
    char name[COLUMN_TEXT];
    const char *more = number > 1 || format->header
                           ? ""
                           : "; if this line names the columns, set csv.header = yes";
    describe_column(format, column, name);
    if (*cell == '\0')
        return batch_reject(batch, number, "%s is empty: every cell must be a number%s", name,
                            more);
    return batch_reject(batch, number,
                        "%s holds \"%.40s\", which is not a finite number; name the column of the "
                        "labels with \"label\", leave out text with \"skip\"%s",
                        name, cell, more);
}

static bool reject_quote(const struct format *format, struct batch *batch, uint64_t number,
                         uint32_t column) {
    char name[COLUMN_TEXT];
    return batch_reject(batch, number, "%s: a quote is not closed",
                        describe_column(format, column, name));
}

static bool reject_label(const struct format *format, struct batch *batch, uint64_t number) {
    char name[COLUMN_TEXT];
    return batch_reject(batch, number, "%s: the label is empty",
                        describe_column(format, format->label, name));
}

/* Takes the label's cell: a number, a text, or nothing if labels are optional. */
static bool take_label(const struct format *format, const char *cell, double *label,
                       const char **text) {
    if (number_of_text(cell, label)) {
        *label += 0.0; /* −0 is 0 */
        return true;
    }
    *label = NAN;
    if (*cell)
        *text = cell;
    return *cell || format->options->label_optional;
}

/* Reads a cell that is a number and nothing else, as most are. */
static inline bool usual_cell(char **at, const char *end, char delimiter, double *value) {
    char *p = *at;
    const char *behind = p + 1;
    if (digits_is(*p) && *behind == delimiter) { /* short, as counts and codes are */
        *value = *p - '0';
        *at = p + 2;
        return true;
    }
    behind = digits_number(p, delimiter, value);
    if (!behind && !(behind = number_parse(p, value)))
        return false;
    if (behind > end || (behind < end && *behind != delimiter))
        return false;
    *at = behind < end ? p + (behind - p) + 1 : NULL;
    return true;
}

static inline bool parse_cell(const struct format *format, struct batch *batch, char **at,
                              char *end, uint64_t number, uint32_t column, double *value) {
    if (usual_cell(at, end, format->delimiter, value))
        return true;
    char *cell = csv_cell(at, end, format->delimiter);
    if (!cell)
        return reject_quote(format, batch, number, column);
    return number_of_text(cell, value) || reject_cell(format, batch, number, column, cell);
}

static bool reject_count(const struct format *format, struct batch *batch, uint64_t number,
                         uint32_t seen, bool more) {
    return batch_reject(batch, number, "%s: %s%u columns where the first line has %u",
                        more ? "an extra column" : "a missing column", more ? "more than " : "",
                        seen, format->columns);
}

static bool is_feature(const struct format *format, uint32_t column) {
    return column != format->label && !format->skip[column];
}

/* Ends a row of `values` values. They are alike: only the first has its ids. */
static bool end_row(const struct format *format, struct batch *batch, double label,
                    const char *label_text, const double *values_end) {
    uint64_t repeated, *id = batch->id;
    for (uint32_t column = 0; !batch->row_count && column < format->columns; column++)
        if (is_feature(format, column))
            *id++ = (uint64_t)column + 1;
    batch->value_count = (uint64_t)(values_end - batch->value);
    return batch_row(batch, label, label_text, true, &repeated);
}

bool csv_parse_line(const struct format *format, struct batch *batch, char *line, char *end,
                    uint64_t number) {
    *end = '\0';
    if ((unsigned char)*line <= ' ' && line + strspn(line, " \t\r") == end)
        return false;
    if (batch->has_zeros && memchr(line, '\0', (size_t)(end - line)))
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    batch_reserve(batch, format->columns);
    char *at = line;
    double label = NAN, *value = batch->value + batch->value_count;
    const char *label_text = NULL;
    for (uint32_t column = 0; column < format->columns; column++) {
        if (!at)
            return reject_count(format, batch, number, column, false);
        if (is_feature(format, column)) {
            if (!parse_cell(format, batch, &at, end, number, column, value++))
                return false;
            continue;
        }
        char *cell = csv_cell(&at, end, format->delimiter);
        if (!cell)
            return reject_quote(format, batch, number, column);
        if (column == format->label && !take_label(format, cell, &label, &label_text))
            return reject_label(format, batch, number);
    }
    if (at)
        return reject_count(format, batch, number, format->columns, true);
    return end_row(format, batch, label, label_text, value);
}
