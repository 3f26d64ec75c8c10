/* The lines of a CSV file. */
#include <string.h>

#include "data/number.h"
#include "data/format.h"
#include "data/blocks.h"

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

/* What is known of the line being read. */
struct csv_line {
    struct table_row row;
    char *at, *end;
    uint64_t last; /* the line that the record ends on */
};

/* ---- cells ---- */

static bool reject_quote(const struct csv_line *line, uint32_t column) {
    char name[COLUMN_TEXT];
    return batch_reject(line->row.batch, line->last,
                        "%s: a quote is not closed: a quoted text of several lines has %u bytes at "
                        "most, and behind it the next column or line begins",
                        row_describe_column(line->row.format, column, name), QUOTED_BYTES_MAX);
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

/* The cell as it is where blanks count, as they do of texts alone. */
static char *whole_cell(struct csv_line *line) {
    char delimiter = line->row.format->delimiter, *cell = line->at;
    if (cell[strspn(cell, " ")] == '"')
        return csv_cell(&line->at, line->end, delimiter);
    char *behind = memchr(cell, delimiter, (size_t)(line->end - cell));
    line->at = behind ? behind + 1 : NULL;
    *(behind ? behind : line->end) = '\0';
    return cell;
}

static bool take_cell(struct csv_line *line, uint32_t column) {
    const struct format *format = line->row.format;
    enum column_kind kind = format->column[column].kind;
    bool whole = (kind == COLUMN_CATEGORY && !format->table->trim) ||
                 (kind == COLUMN_CLUSTER && !format->options->trim);
    char *cell = whole ? whole_cell(line) : csv_cell(&line->at, line->end, format->delimiter);
    return cell ? row_take(&line->row, column, cell) : reject_quote(line, column);
}

/* ---- rows ---- */

static bool reject_count(const struct csv_line *line, uint32_t seen, bool more) {
    return batch_reject(line->row.batch, line->row.number,
                        "%s: %s%u columns where the first line has %u",
                        more ? "an extra column" : "a missing column", more ? "more than " : "",
                        seen, line->row.format->columns);
}

bool csv_parse_line(const struct format *format, struct batch *batch, char *text, char *end,
                    uint64_t number, uint64_t last) {
    *end = '\0';
    if ((unsigned char)*text <= ' ' && text + strspn(text, " \t\r") == end)
        return false;
    if (batch->has_zeros && memchr(text, '\0', (size_t)(end - text)))
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    struct csv_line line = {row_begin(format, batch, number), text, end, last};
    if (format->carried_count)
        csv_carry(format, batch, text, end);
    double *value = row_numbers(&line.row);
    for (uint32_t i = 0; i < format->columns; i++) {
        const struct csv_column *column = &format->column[i];
        if (!line.at)
            return reject_count(&line, i, false);
        bool usual = column->kind == COLUMN_NUMBER && !format->decimal_comma &&
                     usual_cell(&line.at, end, format->delimiter, value + column->place);
        if (!usual && !take_cell(&line, i))
            return false;
    }
    return line.at ? reject_count(&line, format->columns, true) : row_end(&line.row);
}
