/* Reads arbitrary bytes as a Parquet file, whose first byte is left out: it says how to read. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "data/parquet/parquet.h"
#include "data/parquet/parquet_reader.h"
#include "data/source/input.h"

/* What says more rows than this, or has larger pages, takes too long to be tried often. */
#define ROWS_MAX 20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static bool is_small(const char *path, int descriptor) {
    struct parquet_file file;
    bool small = !parquet_open(&file, path, descriptor) && file.rows <= ROWS_MAX;
    parquet_close(&file);
    return small;
}

static void read_rows(struct parquet_reader *reader, const struct format *format) {
    struct parquet_block *block = parquet_block_new();
    struct batch batch;
    bool there = true;
    int code = 0;
    batch_init(&batch);
    while (!code && there) {
        code = parquet_reader_next(reader, block, &there);
        if (!code && there)
            code = parquet_reader_parse(reader, format, block, &batch);
        if (!code && batch_view(&batch)->count > ROWS_MAX)
            abort();
    }
    batch_release(&batch);
    parquet_block_free(reader, block);
}

static void read_file(const char *path, const struct source_options *options) {
    struct input *input;
    struct blocks blocks;
    struct parquet_reader *reader;
    struct format format = {0};
    if (input_open(path, false, &input))
        return;
    blocks_init(&blocks, input, path);
    if (!parquet_reader_open(&blocks, options, &reader, &format) && reader)
        read_rows(reader, &format);
    parquet_reader_close(reader);
    format_release(&format);
    blocks_release(&blocks);
    input_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static const char *const carried[] = {"2", NULL}, *const categories[] = {"1", NULL};
    char path[32];
    if (!length)
        return 0;
    struct source_options options = {.format = FORMAT_PARQUET,
                                     .label.column = "1",
                                     .label.optional = *data & 1,
                                     .bad_lines_max = *data & 2 ? UINT64_MAX : 0,
                                     .table.trim = *data & 4,
                                     .carried = *data & 8 ? carried : NULL,
                                     .table.categories = *data & 16 ? categories : NULL,
                                     .table.hash_bits = *data & 32 ? 4 : 0};
    if (*data & 16)
        options.label.column = NULL;
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data + 1, length - 1) != (ssize_t)(length - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (is_small(path, file))
        read_file(path, &options);
    close(file);
    error_clear();
    return 0;
}
