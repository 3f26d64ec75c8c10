#include "data/array_reader.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/csv/format.h"
#include "data/source/input.h"

/* About so many cells a block, so that they stay in the cache as doubles. Nothing else decides how
 * rows are split, so packs do not depend on the number of threads. */
#define BLOCK_CELLS (64u << 10)

struct array_reader {
    const struct source_options *options;
    struct blocks *blocks; /* the caller's */
    struct array data;
    uint64_t rows_read;
    struct array_column label;
};

/* ---- opening ---- */

/* Finds out whether the file is an array: else FORMAT_AUTO. */
static int find_format(struct blocks *blocks, enum source_format wanted,
                       enum source_format *format) {
    const uint8_t *bytes;
    size_t length;
    int code = blocks_peek(blocks, ARRAY_MAGIC_BYTES, &bytes, &length);
    if (!code)
        code = foreign_check(blocks->path, NULL, bytes, length);
    if (code)
        return code;
    *format = array_format(bytes, length);
    bool array = wanted == FORMAT_IDX || wanted == FORMAT_NPY;
    if (wanted == FORMAT_AUTO || *format == wanted)
        return 0;
    if (!array && *format != FORMAT_AUTO)
        return error_set(
            ERROR_DATA, "%s is %s, and not %s, as `format` says or the data is that was trained on",
            blocks->path, array_format_name(*format), source_format_names[wanted]);
    if (!array)
        return 0; /* the parser of that text says what is wrong */
    char magic[3 * ARRAY_MAGIC_BYTES + 1] = "";
    for (size_t i = 0; i < length && i < ARRAY_MAGIC_BYTES; i++)
        snprintf(magic + 3 * i, 4, " %02x", bytes[i]);
    return error_set(ERROR_DATA,
                     "%s is not %s, as `format` says or the data is that was trained on: it begins "
                     "with%s%s%s",
                     blocks->path, array_format_name(wanted), magic,
                     *format == FORMAT_AUTO ? "" : ", as ",
                     *format == FORMAT_AUTO ? "" : array_format_name(*format));
}

/* Only labels, and what is told by their rows, can go with an array. */
static int check_labels(const struct source_options *options, const char *path, const char *kind) {
    if (options->carried)
        return format_carries_none(path);
    if (options->label.separator)
        return error_set(ERROR_DATA,
                         "%s is %s, and its labels are single numbers: for lists of labels give "
                         "LIBSVM text or CSV",
                         path, kind);
    if (options->table.known)
        return error_set(
            ERROR_DATA,
            "%s is %s, which has no columns with names and kinds as the CSV files that "
            "the others are like; give CSV here",
            path, kind);
    if (options->label.file || options->label.optional)
        return 0;
    return error_set(
        ERROR_DATA,
        "%s is %s, which has no labels in its rows: name a file of labels for it in "
        "the key `labels` (or `test_labels`, `holdout_labels`; `evaluate` takes it by --set "
        "labels=FILE)",
        path, kind);
}

int array_labels_open(struct array_column *labels, const struct source_options *options,
                      const char *data, const char *kind, uint64_t rows) {
    const char *path = options->label.file;
    struct input *input;
    *labels = (struct array_column){0};
    int code = check_labels(options, data, kind);
    if (code || !path)
        return code;
    code = input_open(path, false, &input);
    if (!code)
        code = array_column_open(labels, input, path, "a label");
    if (!code && labels->array.rows != rows)
        code = error_set(ERROR_DATA, "%s has %llu labels, but %s has %llu rows", path,
                         (unsigned long long)labels->array.rows, data, (unsigned long long)rows);
    return code;
}

int array_labels_end(const struct array_column *labels, struct source_report *report) {
    if (!labels->input)
        return 0;
    report->labels_stamp = input_stamp(labels->input);
    input_hash(labels->input, report->labels_hash);
    return input_check_unchanged(labels->input);
}

int array_reader_open(struct blocks *data, const struct source_options *options,
                      struct array_reader **opened) {
    enum source_format format;
    *opened = NULL;
    int code = find_format(data, options->format, &format);
    if (!code && format == FORMAT_AUTO && options->label.file)
        return error_set(ERROR_DATA,
                         "%s is text, which has its labels in its rows: it goes without the file "
                         "of labels, %s",
                         data->path, options->label.file);
    if (code || format == FORMAT_AUTO)
        return code;
    struct array_reader *reader = memory_new(1, sizeof *reader);
    reader->options = options;
    reader->blocks = data;
    code = array_read_header(data, format, &reader->data);
    if (!code && options->table.columns && options->table.columns != reader->data.width + 1)
        code = error_set(ERROR_DATA, "%s: a row has %u numbers, and %u are trained on", data->path,
                         reader->data.width, options->table.columns - 1);
    if (!code)
        code = array_labels_open(&reader->label, options, data->path, array_format_name(format),
                                 reader->data.rows);
    if (code)
        array_reader_close(reader);
    else
        *opened = reader;
    return code;
}

void array_reader_close(struct array_reader *reader) {
    if (!reader)
        return;
    array_column_close(&reader->label);
    free(reader);
}

const struct array *array_reader_data(const struct array_reader *reader) {
    return &reader->data;
}

/* ---- reading ---- */

int array_reader_next(struct array_reader *reader, struct batch *batch) {
    uint64_t left = reader->data.rows - reader->rows_read, rows = BLOCK_CELLS / reader->data.width;
    assert(reader->rows_read <= reader->data.rows);
    rows = rows ? rows : 1;
    rows = rows < left ? rows : left;
    batch->text_length = 0;
    batch->first_line = reader->rows_read + 1;
    if (!rows) {
        int end = array_check_end(reader->blocks, &reader->data);
        return end || !reader->label.input ? end : array_column_end(&reader->label);
    }
    int code = array_take(reader->blocks, &reader->data, &reader->rows_read, rows, batch);
    if (!code && reader->label.input)
        code = array_column_take(&reader->label, rows, batch);
    return code;
}

int array_reader_end(const struct array_reader *reader, struct source_report *report) {
    return array_labels_end(&reader->label, report);
}

/* ---- parsing ---- */

static void parse_row(const struct array_reader *reader, struct batch *batch, uint64_t line,
                      const char *row, double label) {
    uint32_t width = reader->data.width, finite = 0;
    uint64_t repeated;
    batch_reserve(batch, width);
    batch->row_line = line;
    double *value = batch->value + batch->value_count;
    array_decode(&reader->data, row, width, value);
    if (reader->data.cell != CELL_F32 && reader->data.cell != CELL_F64)
        finite = width;
    while (finite < width && isfinite(value[finite]))
        finite++;
    if (finite < width) {
        batch_reject(batch, line, "number %u of this row is %g, which is not finite", finite + 1,
                     value[finite]);
        return;
    }
    if (reader->label.input && !isfinite(label)) {
        batch_reject(batch, line, "its label in %s is %g, which is not finite",
                     reader->options->label.file, label);
        return;
    }
    assert(batch->value_count + width <= batch->value_capacity);
    for (uint32_t j = 0; j < width && !batch->row_count; j++)
        batch->id[j] = j + UINT64_C(1);
    batch->value_count += width;
    batch_row(batch, label, NULL, true, &repeated);
}

void array_reader_parse(const struct array_reader *reader, struct batch *batch) {
    const struct array *label = &reader->label.array;
    size_t row_bytes = array_row_bytes(&reader->data);
    size_t label_bytes = reader->label.input ? array_row_bytes(label) : 0;
    uint64_t rows = batch->text_length / (row_bytes + label_bytes);
    assert(rows * (row_bytes + label_bytes) == batch->text_length);
    const char *labels = batch->text + rows * row_bytes;
    batch_clear(batch);
    batch->has_hashes = reader->options->hashes_rows;
    batch->alike = true;
    batch->bytes = reader->data.cell == CELL_U8;
    for (uint64_t i = 0; i < rows && batch->bad_count <= reader->options->bad_lines_max; i++) {
        double value = NAN;
        if (reader->label.input)
            array_decode(label, labels + i * label_bytes, 1, &value);
        if (batch->has_hashes)
            batch->row_hash = hash64_seeded(batch->text + i * row_bytes, row_bytes,
                                            hash64(labels + i * label_bytes, label_bytes));
        parse_row(reader, batch, batch->first_line + i, batch->text + i * row_bytes, value + 0.0);
    }
}
