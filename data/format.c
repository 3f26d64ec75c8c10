#include "data/format.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Of a line; with a rule, of a record. */
static size_t line_length(const struct record_rule *rule, char *line, size_t left) {
    return (size_t)(record_end(rule, line, line + left) - line);
}

static uint64_t count_line_ends(const char *at, const char *end) {
    uint64_t count = 0;
    while ((at = memchr(at, '\n', (size_t)(end - at))))
        count++, at++;
    return count;
}

/* Without the \r that some systems put before the line end. */
static size_t trimmed(const char *line, size_t length) {
    return length && line[length - 1] == '\r' ? length - 1 : length;
}

static bool is_empty(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!is_blank(line[i]) && line[i] != '\r')
            return false;
    return true;
}

/* LIBSVM if some word is INDEX:…, else CSV if there is something that separates cells. */
static enum source_format guess(const struct record_rule *rule, const char *line, size_t length) {
    const char *end = line + length;
    for (const char *p = line; p < end; p++) {
        size_t digits = 0;
        while (p + digits < end && p[digits] >= '0' && p[digits] <= '9')
            digits++;
        if (digits && p + digits < end && p[digits] == ':')
            return FORMAT_LIBSVM;
        while (p < end && !is_blank(*p))
            p++;
    }
    for (const char *delimiter = rule->delimiters; *delimiter; delimiter++)
        if (memchr(line, *delimiter, length))
            return FORMAT_CSV;
    return FORMAT_LIBSVM;
}

/* Finds the first line that is not empty (nor a comment, if `pass_comments`); its length is 0 if
 * there is none. Moves *text and *left behind it, and adds the lines passed, it included, to
 * *number. */
static struct text_line next_line(const struct record_rule *rule, char **text, size_t *left,
                                  bool pass_comments, uint64_t *number) {
    while (*left) {
        struct text_line line = {*text, line_length(rule, *text, *left)};
        size_t step = line.length + (line.length < *left);
        *text += step;
        *left -= step;
        *number += 1 + count_line_ends(line.text, line.text + line.length);
        if (!is_empty(line.text, line.length) && !(pass_comments && *line.text == '#')) {
            line.length = trimmed(line.text, line.length);
            return line;
        }
    }
    return (struct text_line){*text, 0};
}

int format_find(struct format *format, const char *path, char *text, size_t length,
                const struct source_options *options) {
    *format = (struct format){.options = options, .kind = options->format};
    const struct record_rule rule = csv_rule(options), lines = {0};
    uint64_t number = 0, ignored = 0;
    if (format->kind == FORMAT_AUTO) {
        char *at = text;
        size_t left = length;
        struct text_line telling = next_line(&rule, &at, &left, true, &ignored);
        format->kind = guess(&rule, telling.text, telling.length);
    }
    bool csv = format->kind == FORMAT_CSV;
    struct text_line first = next_line(csv ? &rule : &lines, &text, &length, false, &number);
    if (!first.length || !csv) /* a file without rows is refused at its end */
        return 0;
    struct text_line behind = {text, length};
    struct text_line second = next_line(&rule, &text, &length, false, &ignored);
    return csv_layout_find(format, path, number, &first, &second, &behind);
}

void format_release(struct format *format) {
    for (char **name = format->names; name && *name; name++)
        free(*name);
    free(format->names);
    table_free(format->table);
    free(format->column);
    free(format->number_id);
    free(format->missing);
    *format = (struct format){0};
}

void format_parse(const struct format *format, struct batch *batch, bool skip_first) {
    static const struct record_rule lines = {0};
    char *at = batch->text;
    size_t left = batch->text_length;
    uint64_t number = batch->first_line;
    batch_clear(batch);
    batch->alike = format->kind == FORMAT_CSV && !format->categories;
    batch->has_comments = memchr(at, '#', left);
    batch->has_zeros = memchr(at, '\0', left);
    bool quotes = format->kind == FORMAT_CSV && memchr(at, '"', left);
    const struct record_rule *rule = quotes ? &format->rule : &lines;
    while (left && batch->bad_count <= format->options->bad_lines_max) {
        size_t length = line_length(rule, at, left);
        size_t step = length + (length < left);
        char *end = at + trimmed(at, length);
        uint64_t last = number + (quotes ? count_line_ends(at, at + length) : 0);
        batch->row_line = number;
        if (skip_first)
            skip_first = is_empty(at, length);
        else if (format->kind == FORMAT_CSV)
            csv_parse_line(format, batch, at, end, number, last);
        else
            libsvm_parse_line(format, batch, at, end, number);
        at += step;
        left -= step;
        number = last + 1;
    }
}
