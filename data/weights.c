#include "data/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/input.h"
#include "data/number.h"

struct weights {
    const char *path, *data;
    struct input *input;
    struct blocks blocks;
    struct batch text; /* lines that were read; no rows */
    char *at;          /* the next of them */
    uint64_t line;     /* its number */
    uint64_t taken;
};

bool weight_is_valid(double weight) {
    return weight >= 0 && weight <= WEIGHT_MAX;
}

int weights_open(const char *path, const char *data, struct weights **opened) {
    struct weights *weights = memory_new(1, sizeof *weights);
    weights->path = path;
    weights->data = data;
    batch_init(&weights->text);
    int code = input_open(path, false, &weights->input);
    if (code) {
        batch_release(&weights->text);
        free(weights);
        return code;
    }
    blocks_init(&weights->blocks, weights->input, path);
    *opened = weights;
    return 0;
}

void weights_close(struct weights *weights) {
    if (!weights)
        return;
    blocks_release(&weights->blocks);
    input_close(weights->input);
    batch_release(&weights->text);
    free(weights);
}

static bool has_text(const struct weights *weights) {
    return weights->at && weights->at < weights->text.text + weights->text.text_length;
}

static bool is_line_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next line that is not blank, without blanks around it and ended with a 0; NULL behind the
 * last. */
static int next_weight_line(struct weights *weights, char **line) {
    for (*line = NULL; !*line;) {
        if (!has_text(weights)) {
            int code = blocks_next(&weights->blocks, &weights->text);
            weights->at = weights->text.text;
            weights->line = weights->text.first_line;
            if (code || !has_text(weights))
                return code;
        }
        char *end = weights->text.text + weights->text.text_length;
        char *break_ = memchr(weights->at, '\n', (size_t)(end - weights->at));
        char *from = weights->at, *last = break_ ? break_ : end;
        weights->at = break_ ? break_ + 1 : end;
        weights->line++;
        while (from < last && is_line_blank(*from))
            from++;
        while (last > from && is_line_blank(last[-1]))
            last--;
        *last = '\0';
        *line = last > from ? from : NULL;
    }
    return 0;
}

static int next_weight(struct weights *weights, double *weight) {
    char *line;
    int code = next_weight_line(weights, &line);
    if (code)
        return code;
    if (!line)
        return error_set(
            ERROR_DATA,
            "%s has only %llu weights, and %s has more rows: one weight a line is needed, "
            "for the rows in their order",
            weights->path, (unsigned long long)weights->taken, weights->data);
    weights->taken++;
    if (number_of_text(line, weight) && weight_is_valid(*weight))
        return 0;
    return error_set(ERROR_DATA, "%s:%llu: \"%.40s\" is no weight: allowed: a number from 0 to %g",
                     weights->path, (unsigned long long)weights->line - 1, line, WEIGHT_MAX);
}

int weights_take(struct weights *weights, struct batch *batch) {
    double weight, ignored;
    uint64_t bad = 0;
    for (uint32_t row = 0; row <= batch->row_count; row++) {
        int code = 0;
        for (; !code && bad < batch->bad_count && batch->bad[bad].row <= row; bad++)
            code = next_weight(weights, &ignored);
        if (!code && row < batch->row_count)
            code = next_weight(weights, &weight);
        if (code)
            return code;
        if (row < batch->row_count)
            batch_weigh(batch, row, weight);
    }
    return 0;
}

static int too_many(struct weights *weights) {
    uint64_t rows = weights->taken;
    char *line;
    int code;
    do
        weights->taken++;
    while (!(code = next_weight_line(weights, &line)) && line);
    return code ? code
                : error_set(ERROR_DATA, "%s has %llu weights, but %s has %llu rows", weights->path,
                            (unsigned long long)weights->taken, weights->data,
                            (unsigned long long)rows);
}

int weights_end(struct weights *weights, struct source_report *report) {
    char *line;
    int code = next_weight_line(weights, &line);
    if (!code && line)
        code = too_many(weights);
    if (!code)
        code = input_check_unchanged(weights->input);
    if (code)
        return code;
    report->weights_stamp = input_stamp(weights->input);
    input_hash(weights->input, report->weights_hash);
    return 0;
}
