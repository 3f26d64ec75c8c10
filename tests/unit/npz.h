/* Archives of arrays, as scipy.sparse.save_npz() writes them. */
#ifndef DML_TESTS_NPZ_H
#define DML_TESTS_NPZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"

struct npz {
    struct bytes file, directory;
    unsigned members;
    bool deflates, wide; /* wide: sizes are in extra fields of 64 bits, and there is an end of 64 */
};

static inline void npz_put(struct bytes *to, unsigned bytes, uint64_t value) {
    for (unsigned i = 0; i < bytes; i++)
        bytes_put_u8(to, (uint8_t)(value >> 8 * i));
}

/* What a member's entry and local header have in common, up to the length of its name. */
static inline void npz_put_sizes(struct bytes *to, const struct npz *npz, uint32_t crc,
                                 uint64_t stored, uint64_t length, size_t name) {
    npz_put(to, 2, 45);
    npz_put(to, 2, 0);
    npz_put(to, 2, npz->deflates ? 8 : 0);
    npz_put(to, 4, 0);
    npz_put(to, 4, crc);
    npz_put(to, 4, npz->wide ? UINT32_MAX : stored);
    npz_put(to, 4, npz->wide ? UINT32_MAX : length);
    npz_put(to, 2, name);
}

static inline void npz_add(struct npz *npz, const char *name, const void *data, size_t length) {
    struct bytes *file = &npz->file, *directory = &npz->directory;
    const uint64_t place = file->length;
    const uint32_t crc = (uint32_t)crc32_z(0, data, length);
    uint8_t *deflated = NULL;
    size_t stored = length;
    if (npz->deflates) {
        z_stream stream = {.next_in = (unsigned char *)(uintptr_t)data,
                           .avail_in = (unsigned)length};
        deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        stream.avail_out = (unsigned)deflateBound(&stream, length);
        stream.next_out = deflated = malloc(stream.avail_out);
        deflate(&stream, Z_FINISH);
        stored = stream.total_out;
        deflateEnd(&stream);
    }
    bytes_append(file, "PK\3\4", 4);
    npz_put_sizes(file, npz, crc, stored, length, strlen(name));
    npz_put(file, 2, 0);
    bytes_append(file, name, strlen(name));
    bytes_append(file, deflated ? deflated : data, stored);
    free(deflated);
    bytes_append(directory, "PK\1\2", 4);
    npz_put(directory, 2, 45);
    npz_put_sizes(directory, npz, crc, stored, length, strlen(name));
    npz_put(directory, 2, npz->wide ? 28 + 6 : 0);
    npz_put(directory, 2, 0); /* of the comment */
    npz_put(directory, 2, 0); /* the disk */
    npz_put(directory, 6, 0); /* attributes */
    npz_put(directory, 4, npz->wide ? UINT32_MAX : place);
    bytes_append(directory, name, strlen(name));
    if (npz->wide) {
        bytes_append(directory, "xx\2\0yy", 6); /* a field of another kind before it */
        npz_put(directory, 2, 1);
        npz_put(directory, 2, 24);
        npz_put(directory, 8, length);
        npz_put(directory, 8, stored);
        npz_put(directory, 8, place);
    }
    npz->members++;
}

/* Adds the directory; the file is then in npz->file. */
static inline void npz_end(struct npz *npz) {
    struct bytes *file = &npz->file;
    const uint64_t place = file->length, bytes = npz->directory.length;
    bytes_append(file, npz->directory.data, npz->directory.length);
    if (npz->wide) {
        const uint64_t end = file->length;
        bytes_append(file, "PK\6\6", 4);
        npz_put(file, 8, 44);
        npz_put(file, 4, 0);
        npz_put(file, 8, 0);
        npz_put(file, 8, npz->members);
        npz_put(file, 8, npz->members);
        npz_put(file, 8, bytes);
        npz_put(file, 8, place);
        bytes_append(file, "PK\6\7", 4);
        npz_put(file, 4, 0);
        npz_put(file, 8, end);
        npz_put(file, 4, 1);
    }
    bytes_append(file, "PK\5\6", 4);
    npz_put(file, 4, 0);
    npz_put(file, 2, npz->members);
    npz_put(file, 2, npz->wide ? UINT16_MAX : npz->members);
    npz_put(file, 4, npz->wide ? UINT32_MAX : bytes);
    npz_put(file, 4, npz->wide ? UINT32_MAX : place);
    npz_put(file, 2, 0);
}

static inline void npz_release(struct npz *npz) {
    bytes_release(&npz->file);
    bytes_release(&npz->directory);
}

#endif
