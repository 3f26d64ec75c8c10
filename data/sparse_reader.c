#include "data/sparse_reader.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/array_reader.h"
#include "data/source/spool.h"
#include "data/source/zip.h"

/* About so many values a block, and so many rows at the most. Nothing else decides how rows are
 * split, so packs do not depend on the number of threads. */
#define BLOCK_VALUES (64u << 10)
#define BLOCK_ROWS_MAX 4096u

#define KIND "a .npz file"
#define FORMAT_TEXT_MAX 1024 /* bytes of the array `format` */
#define BEGINNING_BYTES 256  /* that tell what a file is */

enum part { ENDS, INDICES, VALUES, SHAPE, PARTS };
static const char *const part_names[PARTS] = {"indptr.npy", "indices.npy", "data.npy", "shape.npy"};

struct sparse_reader {
    const struct source_options *options;
    struct blocks *blocks; /* the caller's */
    struct spool spool;
    struct zip zip;
    char *path[PARTS];
    struct array_column part[PARTS], label;
    double rows, columns; /* whole numbers below 2^53 */
    double end;           /* where the last row that was read ends among the values */
};

/* ---- opening ---- */

static int not_a_matrix(const struct sparse_reader *reader, const char *why) {
    return error_set(
        ERROR_DATA,
        "%s %s: give a sparse matrix in CSR format, as scipy.sparse.save_npz(\"FILE\", "
        "x.tocsr()) writes it, or a dense one as .npy, as by numpy.save(\"FILE\", x)",
        reader->blocks->path, why);
}

/* The array `format` is a text of three letters, after a header that ends with a line end. */
static int check_format(struct sparse_reader *reader, const struct input_member *member) {
    char text[FORMAT_TEXT_MAX + 1] = "", format[4] = "";
    struct input *input;
    size_t length = 0, got = 1, letters = 0;
    int code = input_open_member(reader->blocks->path, reader->spool.descriptor, member, &input);
    while (!code && got && length < FORMAT_TEXT_MAX) {
        code = input_read(input, text + length, FORMAT_TEXT_MAX - length, &got);
        length += got;
    }
    input_close(input);
    if (code)
        return code;
    size_t first = length;
    while (first && text[first - 1] != '\n')
        first--;
    for (size_t i = first; i < length && letters < 3; i++)
        if (text[i]) /* letters have four bytes in an array of str */
            format[letters++] = text[i];
    char why[64];
    snprintf(why, sizeof why, "has a matrix in the format %s", format);
    return strcmp(format, "csr") ? not_a_matrix(reader, why) : 0;
}

static int open_part(struct sparse_reader *reader, enum part part) {
    const struct input_member *member = zip_find(&reader->zip, part_names[part]);
    struct input *input;
    if (!member)
        return not_a_matrix(reader, "is an archive of arrays, and not of a sparse matrix");
    reader->path[part] = memory_format("%s/%s", reader->blocks->path, part_names[part]);
    int code = input_open_member(reader->path[part], reader->spool.descriptor, member, &input);
    if (!code)
        return array_column_open(&reader->part[part], input, reader->path[part], "it");
    input_close(input);
    return code;
}

/* Reads the next `count` numbers of a part, at most BLOCK_ROWS_MAX. */
static int take_numbers(struct sparse_reader *reader, enum part part, uint64_t count, double *to) {
    struct batch batch;
    batch_init(&batch);
    int code = array_column_take(&reader->part[part], count, &batch);
    if (!code)
        array_decode(&reader->part[part].array, batch.text, count, to);
    batch_release(&batch);
    return code;
}

static int read_shape(struct sparse_reader *reader) {
    const struct array_column *part = reader->part;
    double shape[2] = {-1, -1}, first;
    int code = part[SHAPE].array.rows == 2 ? take_numbers(reader, SHAPE, 2, shape) : 0;
    if (!code && !(shape[0] >= 0 && shape[0] < 0x1p53 && shape[1] >= 0 &&
                   floor(shape[0]) == shape[0] && floor(shape[1]) == shape[1]))
        code = not_a_matrix(reader, "has a `shape` of other than two numbers");
    if (!code && shape[1] > (double)FEATURE_ID_MAX)
        code = error_set(ERROR_DATA, "%s has %.0f columns; allowed: %llu at most",
                         reader->blocks->path, shape[1], (unsigned long long)FEATURE_ID_MAX);
    if (!code && (double)part[ENDS].array.rows != shape[0] + 1)
        code = error_set(ERROR_DATA, "%s has %llu numbers for %.0f rows: it must have one more",
                         reader->path[ENDS], (unsigned long long)part[ENDS].array.rows, shape[0]);
    if (!code && part[INDICES].array.rows != part[VALUES].array.rows)
        code =
            error_set(ERROR_DATA, "%s has %llu numbers, and %s has %llu: each value has an index",
                      reader->path[INDICES], (unsigned long long)part[INDICES].array.rows,
                      reader->path[VALUES], (unsigned long long)part[VALUES].array.rows);
    if (!code)
        code = take_numbers(reader, ENDS, 1, &first);
    if (!code && first != 0)
        code =
            error_set(ERROR_DATA, "%s begins with %g, and not with 0", reader->path[ENDS], first);
    reader->rows = shape[0];
    reader->columns = shape[1];
    return code;
}

static int open_file(struct sparse_reader *reader) {
    int code = spool_open(&reader->spool, reader->blocks);
    if (!code)
        code = zip_read(&reader->zip, reader->blocks->path, reader->spool.descriptor);
    if (code)
        return code;
    const struct input_member *format = zip_find(&reader->zip, "format.npy");
    code = format ? check_format(reader, format)
                  : not_a_matrix(reader, "is an archive of arrays, and not of a sparse matrix");
    for (enum part part = 0; part < PARTS && !code; part++)
        code = open_part(reader, part);
    if (!code)
        code = read_shape(reader);
    return code ? code
                : array_labels_open(&reader->label, reader->options, reader->blocks->path, KIND,
                                    (uint64_t)reader->rows);
}

int sparse_reader_open(struct blocks *data, const struct source_options *options,
                       struct sparse_reader **opened) {
    const uint8_t *bytes;
    size_t length;
    *opened = NULL;
    int code = blocks_peek(data, BEGINNING_BYTES, &bytes, &length);
    if (code)
        return code;
    enum source_format wanted = options->format;
    if (!zip_begins_with_array(bytes, length))
        return wanted != FORMAT_NPZ
                   ? 0
                   : error_set(ERROR_DATA, "%s is not " KIND ", as `format` says", data->path);
    if (wanted != FORMAT_AUTO && wanted != FORMAT_NPZ && wanted != FORMAT_LIBSVM)
        return error_set(ERROR_DATA,
                         "%s is " KIND ", and not %s, as `format` says or the data is that was "
                         "trained on",
                         data->path, source_format_names[wanted]);
    struct sparse_reader *reader = memory_new(1, sizeof *reader);
    reader->options = options;
    reader->blocks = data;
    reader->spool = (struct spool)SPOOL_NONE;
    code = open_file(reader);
    if (code)
        sparse_reader_close(reader);
    else
        *opened = reader;
    return code;
}

void sparse_reader_close(struct sparse_reader *reader) {
    if (!reader)
        return;
    for (enum part part = 0; part < PARTS; part++) {
        array_column_close(&reader->part[part]);
        free(reader->path[part]);
    }
    array_column_close(&reader->label);
    zip_release(&reader->zip);
    spool_close(&reader->spool);
    free(reader);
}

/* ---- reading ---- */

/* How many of the next rows, up to `most`, are a block, and how many values they have. */
static int measure_block(struct sparse_reader *reader, uint32_t most, uint32_t *rows,
                         uint64_t *values) {
    struct array_column *ends = &reader->part[ENDS];
    const size_t bytes = array_row_bytes(&ends->array);
    const double all = (double)reader->part[VALUES].array.rows, first = reader->end;
    const uint8_t *text;
    size_t length;
    int code = blocks_peek(&ends->blocks, most * bytes, &text, &length);
    if (code)
        return code;
    uint32_t there = (uint32_t)(length / bytes < most ? length / bytes : most);
    for (*rows = 0; *rows < there && reader->end - first < BLOCK_VALUES; ++*rows) {
        double end;
        array_decode(&ends->array, (const char *)text + *rows * bytes, 1, &end);
        if (!(end >= reader->end && end <= all && floor(end) == end))
            return error_set(ERROR_DATA,
                             "%s: row %llu ends at value %.17g, and begins at %.0f of %.0f values",
                             reader->path[ENDS], (unsigned long long)(ends->taken + *rows), end,
                             reader->end, all);
        if (end - reader->end > ARRAY_WIDTH_MAX)
            return error_set(ERROR_DATA, "%s: row %llu has %.0f values; allowed: %u at most",
                             reader->path[ENDS], (unsigned long long)(ends->taken + *rows),
                             end - reader->end, ARRAY_WIDTH_MAX);
        reader->end = end;
    }
    *values = (uint64_t)(reader->end - first);
    return 0;
}

/* After the last row: all values are rows', and nothing follows in an array. */
static int check_end(struct sparse_reader *reader) {
    if (reader->end != (double)reader->part[VALUES].array.rows)
        return error_set(ERROR_DATA, "%s has %llu values, and its rows have %.0f",
                         reader->blocks->path, (unsigned long long)reader->part[VALUES].array.rows,
                         reader->end);
    int code = 0;
    for (enum part part = 0; part < PARTS && !code; part++)
        code = array_column_end(&reader->part[part]);
    return code || !reader->label.input ? code : array_column_end(&reader->label);
}

/* The text has the ends of the rows, their indices, values and labels. */
int sparse_reader_next(struct sparse_reader *reader, struct batch *batch) {
    struct array_column *ends = &reader->part[ENDS];
    assert(ends->taken >= 1); /* the 0 before the first row */
    uint64_t left = (uint64_t)reader->rows + 1 - ends->taken, values = 0;
    batch->text_length = 0;
    batch->first_line = ends->taken;
    if (!left)
        return check_end(reader);
    uint32_t most = left < BLOCK_ROWS_MAX ? (uint32_t)left : BLOCK_ROWS_MAX, rows = 0;
    int code = measure_block(reader, most, &rows, &values);
    if (!code)
        code = array_column_take(ends, rows ? rows : 1, batch); /* none: the array is truncated */
    if (!code)
        code = array_column_take(&reader->part[INDICES], values, batch);
    if (!code)
        code = array_column_take(&reader->part[VALUES], values, batch);
    if (!code && reader->label.input)
        code = array_column_take(&reader->label, rows, batch);
    batch->text_rows = rows;
    batch->text_values = values;
    return code;
}

int sparse_reader_end(const struct sparse_reader *reader, struct source_report *report) {
    int code = spool_rest(reader->blocks);
    return code ? code : array_labels_end(&reader->label, report);
}

/* ---- parsing ---- */

struct entry {
    uint64_t id; /* first, for compare_ids() */
    uint64_t position;
    double value;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *left = a, *right = b;
    int order = compare_ids(a, b);
    return order ? order : (left->position > right->position) - (left->position < right->position);
}

/* Adds up values of one id, in the order in which they stand. Returns how many ids are left; false
 * in *sorted: all differ, and stay in their order. */
static uint32_t merge_entries(uint64_t *id, double *value, uint32_t count, bool *sorted) {
    struct entry *entries = memory_new(count, sizeof *entries);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (struct entry){id[i], i, value[i]};
    qsort(entries, count, sizeof *entries, compare_entries);
    bool differ = true;
    for (uint32_t i = 1; i < count && differ; i++)
        differ = entries[i].id != entries[i - 1].id;
    *sorted = !differ;
    for (uint32_t i = 0; i < count && !differ; i++) {
        if (i && entries[i].id == entries[i - 1].id) {
            value[kept - 1] += entries[i].value;
            continue;
        }
        id[kept] = entries[i].id;
        value[kept++] = entries[i].value;
    }
    free(entries);
    return differ ? count : kept;
}

/* A row's bytes. */
struct row_text {
    const char *indices, *values, *label;
    uint32_t count;
};

static void parse_row(const struct sparse_reader *reader, struct batch *batch, uint64_t line,
                      const struct row_text *row) {
    double label = NAN;
    uint64_t repeated;
    bool sorted = true;
    batch_reserve(batch,
                  row->count + UINT64_C(1)); /* of rows without values there are arrays, too */
    batch->row_line = line;
    uint64_t *id = batch->id + batch->value_count;
    double *value = batch->value + batch->value_count;
    uint32_t count = row->count;
    array_decode(&reader->part[INDICES].array, row->indices, count, value);
    for (uint32_t i = 0; i < count; i++) {
        if (!(value[i] >= 0 && value[i] < reader->columns && floor(value[i]) == value[i])) {
            batch_reject(batch, line, "index %.17g of its value %u is not one of the %.0f columns",
                         value[i], i + 1, reader->columns);
            return;
        }
        id[i] = (uint64_t)value[i] + 1;
        sorted &= !i || id[i] > id[i - 1];
    }
    array_decode(&reader->part[VALUES].array, row->values, count, value);
    if (!sorted)
        count = merge_entries(id, value, count, &sorted);
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(value[i])) {
            batch_reject(batch, line,
                         "the value of column %llu of this row is %g, which is not finite",
                         (unsigned long long)id[i], value[i]);
            return;
        }
    if (row->label)
        array_decode(&reader->label.array, row->label, 1, &label);
    if (row->label && !isfinite(label)) {
        batch_reject(batch, line, "its label in %s is %g, which is not finite",
                     reader->options->label.file, label);
        return;
    }
    batch->value_count += count;
    batch_row(batch, label + 0.0, NULL, sorted, &repeated);
}

void sparse_reader_parse(const struct sparse_reader *reader, struct batch *batch) {
    const struct array_column *part = reader->part;
    const size_t end_bytes = array_row_bytes(&part[ENDS].array);
    const size_t index_bytes = array_row_bytes(&part[INDICES].array);
    const size_t value_bytes = array_row_bytes(&part[VALUES].array);
    const size_t label_bytes = reader->label.input ? array_row_bytes(&reader->label.array) : 0;
    const uint32_t rows = batch->text_rows;
    const char *ends = batch->text, *indices = ends + rows * end_bytes;
    const char *values = indices + batch->text_values * index_bytes;
    const char *labels = values + batch->text_values * value_bytes;
    double last, begin, end;
    assert(rows);
    assert(labels + rows * label_bytes == batch->text + batch->text_length);
    array_decode(&part[ENDS].array, ends + (rows - 1) * end_bytes, 1, &last);
    begin = last - (double)batch->text_values;
    batch_clear(batch);
    batch->has_hashes = reader->options->hashes_rows;
    for (uint32_t i = 0; i < rows && batch->bad_count <= reader->options->bad_lines_max; i++) {
        array_decode(&part[ENDS].array, ends + i * end_bytes, 1, &end);
        const struct row_text row = {.indices = indices,
                                     .values = values,
                                     .label = label_bytes ? labels + i * label_bytes : NULL,
                                     .count = (uint32_t)(end - begin)};
        indices += row.count * index_bytes;
        values += row.count * value_bytes;
        begin = end;
        if (batch->has_hashes)
            batch->row_hash =
                hash64_seeded(row.values, row.count * value_bytes,
                              hash64_seeded(row.indices, row.count * index_bytes,
                                            hash64(labels + i * label_bytes, label_bytes)));
        parse_row(reader, batch, batch->first_line + i, &row);
    }
}
