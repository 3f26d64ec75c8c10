/* Reads arbitrary bytes as a sparse matrix: an archive as it stands, or arrays in a sound one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "data/source/input.h"
#include "data/sparse_reader.h"
#include "tests/unit/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static const char start[] = "\x93NUMPY\1\0\x60\0"; /* a header of 96 bytes follows */

/* Adds an array of .npy: its type by one byte, how many numbers by the next, and then these. */
static void add_array(struct npz *npz, const char *name, const uint8_t **data, size_t *length) {
    static const char *const types[] = {"|u1", "<i4", "<i8", "<f4", "<f8", ">u2", "|b1", "|S3"};
    static const uint8_t bytes[] = {1, 4, 8, 4, 8, 2, 1, 3};
    uint8_t array[sizeof start - 1 + 96 + 255 * 8] = {0};
    unsigned type = *length ? **data % 8 : 0, count = *length > 1 ? (*data)[1] : 0;
    size_t taken = *length < 2 ? *length : 2, size = (size_t)count * bytes[type];
    *data += taken;
    *length -= taken;
    size_t there = size < *length ? size : *length;
    memcpy(array, start, sizeof start - 1);
    memset(array + sizeof start - 1, ' ', 96);
    int text =
        snprintf((char *)array + sizeof start - 1, 96,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%u,), }", types[type], count);
    array[sizeof start - 1 + (size_t)text] = ' ';
    array[sizeof start - 1 + 95] = '\n';
    memcpy(array + sizeof start - 1 + 96, *data, there);
    *data += there;
    *length -= there;
    npz_add(npz, name, array, sizeof start - 1 + 96 + there);
}

static struct npz archive_of(const uint8_t *data, size_t length) {
    struct npz npz = {.deflates = data[0] & 2, .wide = data[0] & 4};
    bytes_init(&npz.file);
    bytes_init(&npz.directory);
    if (!(data[0] & 1)) {
        bytes_append(&npz.file, data + 1, length - 1);
        return npz;
    }
    data++;
    length--;
    npz_add(&npz, "format.npy", "\ncsr", 4);
    add_array(&npz, "shape.npy", &data, &length);
    add_array(&npz, "indptr.npy", &data, &length);
    add_array(&npz, "indices.npy", &data, &length);
    add_array(&npz, "data.npy", &data, &length);
    npz_end(&npz);
    return npz;
}

static void read_matrix(const char *path, const struct source_options *options) {
    struct input *input;
    struct blocks blocks;
    struct sparse_reader *reader = NULL;
    struct batch batch;
    if (input_open(path, false, &input))
        return;
    batch_init(&batch);
    blocks_init(&blocks, input, path);
    int code = sparse_reader_open(&blocks, options, &reader);
    while (reader && !code && !(code = sparse_reader_next(reader, &batch)) && batch.text_length) {
        sparse_reader_parse(reader, &batch);
        for (uint32_t row = 0; row < batch.row_count; row++)
            for (uint64_t i = batch.start[row] + 1; i < batch.start[row + 1]; i++)
                if (batch.id[i] <= batch.id[i - 1])
                    abort();
    }
    sparse_reader_close(reader);
    blocks_release(&blocks);
    batch_release(&batch);
    input_close(input);
}

/* The first byte says what the others are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    char path[32];
    if (!length)
        return 0;
    struct npz npz = archive_of(data, length);
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, npz.file.data, npz.file.length) != (ssize_t)npz.file.length)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const struct source_options options = {.label.optional = true,
                                           .format = data[0] & 8 ? FORMAT_NPZ : FORMAT_AUTO,
                                           .hashes_rows = data[0] & 32,
                                           .bad_lines_max = data[0] & 16 ? UINT64_MAX : 0};
    read_matrix(path, &options);
    close(file);
    npz_release(&npz);
    error_clear();
    return 0;
}
