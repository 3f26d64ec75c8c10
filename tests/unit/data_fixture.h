/* Files for the tests of data/: a scratch folder, texts put into it, compressed or not. */
#ifndef DML_TESTS_DATA_FIXTURE_H
#define DML_TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the above. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/pack/pack.h"
#include "data/source/source.h"

static char fixture_folder[] = "/tmp/dml-data-XXXXXX";

__attribute__((unused)) static int fixture_set_up(void **state) {
    (void)state;
    return mkdtemp(fixture_folder) ? 0 : -1;
}

__attribute__((unused)) static int fixture_tear_down(void **state) {
    (void)state;
    char *command = memory_format("rm -rf '%s'", fixture_folder);
    int status = system(command);
    free(command);
    return status;
}

/* A path in the scratch folder; it lives until the sixteenth call after. */
__attribute__((unused)) static const char *fixture_path(const char *name) {
    static char path[16][128];
    static unsigned next;
    char *slot = path[next++ % 16];
    snprintf(slot, sizeof path[0], "%s/%s", fixture_folder, name);
    return slot;
}

__attribute__((unused)) static const char *fixture_bytes(const char *name, const void *data,
                                                         size_t length) {
    const char *path = fixture_path(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

__attribute__((unused)) static const char *fixture_text(const char *name, const char *text) {
    return fixture_bytes(name, text, strlen(text));
}

/* Appends `text` as one gzip member. */
__attribute__((unused)) static void fixture_gzip(struct bytes *to, const char *text) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t length = strlen(text), bound = deflateBound(&stream, length), before = to->length;
    stream.next_out = bytes_extend(to, bound);
    stream.avail_out = (unsigned)bound;
    stream.next_in = (unsigned char *)(uintptr_t)text;
    stream.avail_in = (unsigned)length;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    to->length = before + stream.total_out;
    deflateEnd(&stream);
}

/* `rows` rows of LIBSVM text from `first` on: ids spread widely, in no order, values of many
 * digits. Free the result. */
__attribute__((unused)) static char *fixture_rows(uint64_t first, uint64_t rows) {
    struct bytes text;
    bytes_init(&text);
    for (uint64_t row = first; row < first + rows; row++) {
        char word[64];
        int length = snprintf(word, sizeof word, "%d", row % 3 ? 1 : -1);
        bytes_append(&text, word, (size_t)length);
        for (uint64_t k = 0; k < row % 17; k++) {
            uint64_t id = (row * 31 + (17 - k) * 1009) % 5003 + 1 + k * 6000;
            length = snprintf(word, sizeof word, " %llu:%.*g", (unsigned long long)id,
                              (int)(k % 5) * 4 + 1, (double)(row % 101 + 1) / (double)(k + 3));
            bytes_append(&text, word, (size_t)length);
        }
        bytes_append(&text, "\n", 1);
    }
    bytes_put_u8(&text, 0);
    return (char *)text.data;
}

/* A pack of those rows up to `end`, with a file of weights or without. `name` is of nothing else in
 * the scratch folder. */
__attribute__((unused)) static struct pack *fixture_pack(const char *name, uint64_t first,
                                                         uint64_t end, bool weighted) {
    struct pack *pack;
    bool made;
    char path[64], *text = fixture_rows(first, end - first), *lines;
    size_t length;
    FILE *file = open_memstream(&lines, &length);
    for (uint64_t row = first; row < end; row++)
        fprintf(file, "%llu\n", (unsigned long long)(row % 5 + 1));
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "weights-%s", name);
    const struct source_options reading = {.property.file[ROW_WEIGHT] =
                                               weighted ? fixture_text(path, lines) : NULL};
    snprintf(path, sizeof path, "rows-%s", name);
    if (pack_of_source(fixture_path("packs"), fixture_text(path, text), &reading, 2, &pack, &made))
        fail_msg("%s", error_text());
    free(text);
    free(lines);
    return pack;
}

#endif
