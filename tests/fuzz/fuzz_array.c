/* Reads arbitrary bytes as an array with labels, which is part of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "data/array_reader.h"
#include "data/source/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* A file in memory; *path names it. With `npy` its first byte is the length of the dictionary that
 * follows, and what stands before that in a file is added: no fuzzer guesses that soon. */
static int file_of(const uint8_t *data, size_t length, bool npy, char path[32]) {
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    uint8_t start[10] = "\x93NUMPY\x01";
    bool whole = true;
    if (npy && length) {
        start[8] = *data++;
        length--;
        whole = write(file, start, sizeof start) == sizeof start;
    }
    if (file < 0 || !whole || write(file, data, length) != (ssize_t)length)
        abort();
    snprintf(path, 32, "/proc/self/fd/%d", file);
    return file;
}

static void read_array(const char *path, const struct source_options *options) {
    struct input *input;
    struct blocks blocks;
    struct array_reader *reader = NULL;
    struct batch batch;
    if (input_open(path, false, &input))
        return;
    batch_init(&batch);
    blocks_init(&blocks, input, path);
    int code = array_reader_open(&blocks, options, &reader);
    while (reader && !code && !(code = array_reader_next(reader, &batch)) && batch.text_length) {
        array_reader_parse(reader, &batch);
        if (batch.value_count != (uint64_t)batch.row_count * array_reader_data(reader)->width)
            abort();
    }
    array_reader_close(reader);
    blocks_release(&blocks);
    batch_release(&batch);
    input_close(input);
}

/* The first byte says how to read, the second how many bytes are the labels'. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    char path[32], labels[32];
    if (length < 2)
        return 0;
    size_t label_bytes = data[1] < length - 2 ? data[1] : length - 2;
    struct source_options options = {.format = data[0] & 4 ? FORMAT_NPY : FORMAT_AUTO,
                                     .label.file = data[0] & 8 ? labels : NULL,
                                     .label.optional = true,
                                     .bad_lines_max = data[0] & 16 ? UINT64_MAX : 0};
    int beside = file_of(data + 2, label_bytes, data[0] & 1, labels);
    int file = file_of(data + 2 + label_bytes, length - 2 - label_bytes, data[0] & 2, path);
    read_array(path, &options);
    close(file);
    close(beside);
    error_clear();
    return 0;
}
