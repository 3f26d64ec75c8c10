#include "data/format.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t line_length(const char *line, size_t left) {
    const char *end = memchr(line, '\n', left);
    return end ? (size_t)(end - line) : left;
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
static enum source_format guess(const char *line, size_t length) {
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
    bool separated =
        memchr(line, ',', length) || memchr(line, ';', length) || memchr(line, '\t', length);
    return separated ? FORMAT_CSV : FORMAT_LIBSVM;
}

/* Finds the first line that is not empty (nor a comment, if `pass_comments`); its length is 0 if
 * there is none. Moves *text and *left behind it, and adds the lines passed, it included, to
 * *number. */
static struct text_line next_line(const char **text, size_t *left, bool pass_comments,
                                  uint64_t *number) {
    while (*left) {
        struct text_line line = {*text, line_length(*text, *left)};
        size_t step = line.length + (line.length < *left);
        *text += step;
        *left -= step;
        ++*number;
        if (!is_empty(line.text, line.length) && !(pass_comments && *line.text == '#')) {
            line.length = trimmed(line.text, line.length);
            return line;
        }
    }
    return (struct text_line){*text, 0};
}

int format_find(struct format *format, const char *path, const char *text, size_t length,
                const struct source_options *options) {
    *format = (struct format){.options = options, .kind = options->format};
    uint64_t number = 0, ignored = 0;
    if (format->kind == FORMAT_AUTO) {
        const char *at = text;
        size_t left = length;
        struct text_line telling = next_line(&at, &left, true, &ignored);
        format->kind = guess(telling.text, telling.length);
    }
    struct text_line first = next_line(&text, &length, false, &number);
    if (!first.length ||
        format->kind == FORMAT_LIBSVM) /* a file without rows is refused at its end */
        return 0;
    struct text_line behind = {text, length};
    struct text_line second = next_line(&text, &length, false, &ignored);
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
    char *at = batch->text;
    size_t left = batch->text_length;
    uint64_t number = batch->first_line;
    batch_clear(batch);
    batch->alike = format->kind == FORMAT_CSV && !format->categories;
    batch->has_comments = memchr(at, '#', left);
    batch->has_zeros = memchr(at, '\0', left);
    while (left && batch->bad_count <= format->options->bad_lines_max) {
        size_t length = line_length(at, left);
        size_t step = length + (length < left);
        char *end = at + trimmed(at, length);
        if (skip_first)
            skip_first = is_empty(at, length);
        else if (format->kind == FORMAT_CSV)
            csv_parse_line(format, batch, at, end, number);
        else
            libsvm_parse_line(format, batch, at, end, number);
        at += step;
        left -= step;
        number++;
    }
}
