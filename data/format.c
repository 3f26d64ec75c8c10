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

/* Moves to the first line that is not empty, nor a comment if those are passed over. Answers its
 * length, with no \r; 0 if there is none. */
static size_t first_line(const char **text, size_t left, bool pass_comments, uint64_t *number) {
    *number = 1;
    while (left) {
        size_t length = line_length(*text, left);
        if (!is_empty(*text, length) && !(pass_comments && **text == '#'))
            return trimmed(*text, length);
        size_t step = length + (length < left);
        *text += step;
        left -= step;
        ++*number;
    }
    return 0;
}

int format_find(struct format *format, const char *path, const char *text, size_t length,
                const struct source_options *options) {
    *format = (struct format){.options = options, .kind = options->format};
    uint64_t number;
    if (format->kind == FORMAT_AUTO) {
        const char *telling = text;
        size_t telling_length = first_line(&telling, length, true, &number);
        format->kind = guess(telling, telling_length);
    }
    size_t line = first_line(&text, length, false, &number);
    if (!line || format->kind == FORMAT_LIBSVM) /* that there are no rows shows at the end */
        return 0;
    return csv_layout_find(format, path, number, text, line);
}

void format_release(struct format *format) {
    for (char **name = format->names; name && *name; name++)
        free(*name);
    free(format->names);
    free(format->skip);
    *format = (struct format){0};
}

void format_parse(const struct format *format, struct batch *batch, bool skip_first) {
    char *at = batch->text;
    size_t left = batch->text_length;
    uint64_t number = batch->first_line;
    batch_clear(batch);
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
