/* The lines of a CSV file. */
#include <assert.h>
#include <string.h>

#include "data/text/number.h"
#include "data/csv/table_row.h"
#include "data/source/blocks.h"

/* A quoted cell: `p` is after the opening quote. A doubled quote is one. */
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

char *csv_cell(char **at, char *end, const struct record_rule *rule) {
    const char delimiter = *rule->delimiters;
    char *p = *at, *behind, *cell;
    assert(p && p <= end);
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '"' && !rule->plain_quotes) {
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
    return batch_reject(
        line->row.batch, line->last,
        "%s: a quote is not closed: a quoted text of several lines has %u bytes at "
        "most, and behind it the next column or line begins; csv.quote = none takes "
        "quotes for characters like others",
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
    const struct record_rule *rule = &line->row.format->rule;
    char *cell = line->at;
    if (cell[strspn(cell, " ")] == '"' && !rule->plain_quotes)
        return csv_cell(&line->at, line->end, rule);
    char *behind = memchr(cell, *rule->delimiters, (size_t)(line->end - cell));
    line->at = behind ? behind + 1 : NULL;
    *(behind ? behind : line->end) = '\0';
    return cell;
}

static bool take_cell(struct csv_line *line, uint32_t column) {
    const struct format *format = line->row.format;
    enum column_kind kind = format->column[column].kind;
    bool whole = (kind == COLUMN_CATEGORY && !format->table->trim) ||
                 (kind == COLUMN_CLUSTER && !format->options->table.trim);
    char *cell = whole ? whole_cell(line) : csv_cell(&line->at, line->end, &format->rule);
    return cell ? row_take(&line->row, column, cell) : reject_quote(line, column);
}

/* ---- a quote that is not meant ---- */

/* Whether a line of a record could be a row of its own: it has as many columns, and numbers where
 * they belong. The quotes around the text that it would be part of do not count. */
static bool is_like_row(const struct format *format, const char *line, const char *end,
                        bool *numbers) {
    const char *at = line;
    uint32_t i = 0;
    for (; at && i < format->own; i++) {
        const char *behind = memchr(at, format->delimiter, (size_t)(end - at));
        const char *last = behind ? behind : end;
        while (at < last && (*at == '"' || *at == ' '))
            at++;
        while (at < last && (last[-1] == '"' || last[-1] == ' ' || last[-1] == '\r'))
            last--;
        if (format->column[i].kind == COLUMN_NUMBER) {
            char cell[NUMBER_TEXT + 1] = "";
            double value;
            const size_t length = (size_t)(last - at);
            if (length > NUMBER_TEXT)
                return false;
            memcpy(cell, at, length);
            if (!csv_is_missing(format, cell, length) &&
                !csv_number(format, format->column[i].amounts, cell, &value))
                return false;
            *numbers = true;
        }
        at = behind ? behind + 1 : NULL;
    }
    return !at && i == format->own;
}

/* Whether a record of several lines is rather as many rows, which a stray quote put into one: each
 * line looks like a row. Where a row has no numbers to tell it by, and sentences of several lines
 * may have a comma each, more lines must do so. */
static bool swallows_rows(const struct format *format, const char *text, const char *end) {
    assert(text <= end);
    uint32_t lines = 0;
    bool numbers = false;
    for (const char *line = text; line; lines++) {
        const char *behind = memchr(line, '\n', (size_t)(end - line));
        if (!is_like_row(format, line, behind ? behind : end, &numbers))
            return false;
        line = behind ? behind + 1 : NULL;
    }
    return format->own > 1 && lines > (numbers ? 1 : format->own > 2 ? 2 : 4);
}

/* ---- rows ---- */

static bool reject_count(const struct csv_line *line, uint32_t seen, bool more) {
    return batch_reject(line->row.batch, line->row.number,
                        "%s: %s%u columns where the first line has %u",
                        more ? "an extra column" : "a missing column", more ? "more than " : "",
                        seen, line->row.format->own);
}

bool csv_parse_line(const struct format *format, struct batch *batch, char *text, char *end,
                    uint64_t number, uint64_t last) {
    assert(text <= end && number <= last);
    *end = '\0';
    if ((unsigned char)*text <= ' ' && text + strspn(text, " \t\r") == end)
        return false;
    if (record_is_comment(&format->rule, text))
        return false;
    const size_t length = (size_t)(end - text);
    if (format->head && length == format->head_length && !memcmp(text, format->head, length))
        return batch_reject(batch, number,
                            "the header line is repeated here, as in concatenated files; "
                            "remove it");
    if (last > number && format->options->syntax.quote == CSV_QUOTE_AUTO &&
        swallows_rows(format, text, end))
        return batch_reject(
            batch, number,
            "a quoted text takes in the lines up to %llu, each of which has the columns "
            "of a row: take its quotes out if they are stray ones, or set csv.quote = "
            "none if quotes are characters like others, or csv.quote = double if the "
            "text is as it should be",
            (unsigned long long)last);
    if (batch->has_zeros && memchr(text, '\0', (size_t)(end - text)))
        return batch_reject(batch, number, "a zero byte: is this a text file?");
    if (line_has_mark(text))
        return batch_reject(batch, number, MARK_WITHIN);
    struct csv_line line = {row_begin(format, batch, number), text, end, last};
    if (format->carried_count)
        csv_carry(format, batch, text, end);
    double *value = row_numbers(&line.row);
    for (uint32_t i = 0; i < format->own; i++) {
        const struct csv_column *column = &format->column[i];
        if (!line.at)
            return reject_count(&line, i, false);
        bool usual = column->kind == COLUMN_NUMBER && !format->decimal_comma &&
                     usual_cell(&line.at, end, format->delimiter, value + column->place);
        if (!usual && !take_cell(&line, i))
            return false;
    }
    if (line.at)
        return reject_count(&line, format->own, true);
    return row_take_folders(&line.row) && row_end(&line.row);
}
