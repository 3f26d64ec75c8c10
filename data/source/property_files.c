/* Properties of rows in files beside the data. */
#include "data/source/properties.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/source/array.h"
#include "data/source/blocks.h"
#include "data/source/input.h"
#include "data/source/paths.h"
#include "data/text/number.h"

struct property_file {
    enum row_property property;
    const char *path, *data;
    struct array_column column; /* its array is read if `is_array`, and else its lines */
    bool is_array;
    struct batch text; /* lines or cells that were read; no rows */
    char *at;          /* the next of them */
    uint64_t line;     /* its number */
    uint64_t taken;
};

#define CELLS_AT_ONCE 4096u

int property_file_open(const char *path, const char *data, enum row_property property,
                       struct property_file **opened) {
    struct property_file *file = memory_new(1, sizeof *file);
    file->property = property;
    file->path = path;
    file->data = data;
    batch_init(&file->text);
    *opened = file;
    struct input *input;
    const uint8_t *bytes;
    size_t length;
    int code = input_open(path, false, &input);
    if (code)
        return code;
    blocks_init(&file->column.blocks, file->column.input = input, path);
    code = blocks_peek(&file->column.blocks, ARRAY_MAGIC_BYTES, &bytes, &length);
    enum source_format format = code ? FORMAT_AUTO : array_format(bytes, length);
    file->is_array = format != FORMAT_AUTO;
    if (file->is_array)
        code = array_read_header(&file->column.blocks, format, &file->column.array);
    if (!code && file->is_array && file->column.array.width != 1)
        code = error_set(ERROR_DATA, "%s has %u numbers a row; allowed: one, the %s", path,
                         file->column.array.width, property_rules[property].name);
    return code;
}

void property_file_close(struct property_file *file) {
    if (!file)
        return;
    array_column_close(&file->column);
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
            int code = blocks_next(&file->column.blocks, &file->text);
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

/* The next number of an array; NULL in *at after the last. */
static int next_cell(struct property_file *file, char **at) {
    struct array_column *column = &file->column;
    const uint64_t left = column->array.rows - column->taken;
    *at = NULL;
    if (!has_text(file)) {
        file->text.text_length = 0;
        int code = left ? array_column_take(column, left < CELLS_AT_ONCE ? left : CELLS_AT_ONCE,
                                            &file->text)
                        : array_column_end(column);
        if (code || !left)
            return code;
        file->at = file->text.text;
    }
    *at = file->at;
    file->at += array_row_bytes(&column->array);
    return 0;
}

static int next_number(struct property_file *file, double *number) {
    const struct property_rule *rule = &property_rules[file->property];
    char *line;
    int code = file->is_array ? next_cell(file, &line) : next_number_line(file, &line);
    if (code)
        return code;
    if (!line)
        return error_set(ERROR_DATA,
                         "%s has only %llu %ss, and %s has more rows: one %s a %s is needed, "
                         "for the rows in their order",
                         file->path, (unsigned long long)file->taken, rule->name, file->data,
                         rule->name, file->is_array ? "row" : "line");
    file->taken++;
    if (file->is_array) {
        array_decode(&file->column.array, line, 1, number);
        return property_is_valid(file->property, *number)
                   ? 0
                   : error_set(ERROR_DATA, "%s: number %llu is %g, which is no %s: allowed: %s",
                               file->path, (unsigned long long)file->taken, *number, rule->name,
                               rule->allowed);
    }
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
    char *line = NULL;
    int code = 0;
    do
        file->taken++;
    while (!file->is_array && !(code = next_number_line(file, &line)) && line);
    if (file->is_array)
        file->taken = file->column.array.rows;
    return code ? code
                : error_set(ERROR_DATA, "%s has %llu %ss, but %s has %llu rows", file->path,
                            (unsigned long long)file->taken, property_rules[file->property].name,
                            file->data, (unsigned long long)rows);
}

int property_file_end(struct property_file *file, struct source_report *report) {
    char *line;
    int code = file->is_array ? next_cell(file, &line) : next_number_line(file, &line);
    if (!code && line)
        code = too_many(file);
    if (!code)
        code = input_check_unchanged(file->column.input);
    if (code)
        return code;
    struct source_beside_report *noted = &report->property[file->property];
    noted->stamp = input_stamp(file->column.input);
    input_hash(file->column.input, noted->hash);
    return 0;
}
