/* Properties of rows in files beside the data. */
#include "data/source/properties.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/source/blocks.h"
#include "data/source/input.h"
#include "data/source/paths.h"
#include "data/text/number.h"

struct property_file {
    enum row_property property;
    const char *path, *data;
    struct input *input;
    struct blocks blocks;
    struct batch text; /* lines that were read; no rows */
    char *at;          /* the next of them */
    uint64_t line;     /* its number */
    uint64_t taken;
};

int property_file_open(const char *path, const char *data, enum row_property property,
                       struct property_file **opened) {
    struct property_file *file = memory_new(1, sizeof *file);
    file->property = property;
    file->path = path;
    file->data = data;
    batch_init(&file->text);
    int code = input_open(path, false, &file->input);
    if (code) {
        batch_release(&file->text);
        free(file);
        return code;
    }
    blocks_init(&file->blocks, file->input, path);
    *opened = file;
    return 0;
}

void property_file_close(struct property_file *file) {
    if (!file)
        return;
    blocks_release(&file->blocks);
    input_close(file->input);
    batch_release(&file->text);
    free(file);
}

static bool has_text(const struct property_file *file) {
    return file->at && file->at < file->text.text + file->text.text_length;
}

static bool is_line_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next line that is not blank, without blanks around it and ended with a 0; NULL after the
 * last. */
static int next_number_line(struct property_file *file, char **line) {
    for (*line = NULL; !*line;) {
        if (!has_text(file)) {
            int code = blocks_next(&file->blocks, &file->text);
            file->at = file->text.text;
            file->line = file->text.first_line;
            if (code || !has_text(file))
                return code;
        }
        char *end = file->text.text + file->text.text_length;
        char *break_ = memchr(file->at, '\n', (size_t)(end - file->at));
        char *from = file->at, *last = break_ ? break_ : end;
        file->at = break_ ? break_ + 1 : end;
        file->line++;
        while (from < last && is_line_blank(*from))
            from++;
        while (last > from && is_line_blank(last[-1]))
            last--;
        *last = '\0';
        *line = last > from ? from : NULL;
    }
    return 0;
}

static int next_number(struct property_file *file, double *number) {
    const struct property_rule *rule = &property_rules[file->property];
    char *line;
    int code = next_number_line(file, &line);
    if (code)
        return code;
    if (!line)
        return error_set(ERROR_DATA,
                         "%s has only %llu %ss, and %s has more rows: one %s a line is needed, "
                         "for the rows in their order",
                         file->path, (unsigned long long)file->taken, rule->name, file->data,
                         rule->name);
    file->taken++;
    if (number_of_text(line, number) && property_is_valid(file->property, *number))
        return 0;
    return error_set(ERROR_DATA, "%s:%llu: \"%.40s\" is no %s: allowed: %s", file->path,
                     (unsigned long long)file->line - 1, line, rule->name, rule->allowed);
}

static void give_number(const struct property_file *file, struct batch *batch, uint32_t row,
                        double number) {
    if (file->property == ROW_WEIGHT)
        batch_weigh(batch, row, number);
    else
        batch_add_offset(batch, row, property_offset(file->property, number));
}

int property_file_take(struct property_file *file, struct batch *batch) {
    double number, ignored;
    uint64_t bad = 0;
    for (uint32_t row = 0; row <= batch->row_count; row++) {
        int code = 0;
        for (; !code && bad < batch->bad_count && batch->bad[bad].row <= row; bad++)
            code = next_number(file, &ignored);
        if (!code && row < batch->row_count)
            code = next_number(file, &number);
        if (code)
            return code;
        if (row < batch->row_count)
            give_number(file, batch, row, number);
    }
    return 0;
}

static int too_many(struct property_file *file) {
    uint64_t rows = file->taken;
    char *line;
    int code;
    do
        file->taken++;
    while (!(code = next_number_line(file, &line)) && line);
    return code ? code
                : error_set(ERROR_DATA, "%s has %llu %ss, but %s has %llu rows", file->path,
                            (unsigned long long)file->taken, property_rules[file->property].name,
                            file->data, (unsigned long long)rows);
}

int property_file_end(struct property_file *file, struct source_report *report) {
    char *line;
    int code = next_number_line(file, &line);
    if (!code && line)
        code = too_many(file);
    if (!code)
        code = input_check_unchanged(file->input);
    if (code)
        return code;
    struct source_beside_report *noted = &report->property[file->property];
    noted->stamp = input_stamp(file->input);
    input_hash(file->input, noted->hash);
    return 0;
}
