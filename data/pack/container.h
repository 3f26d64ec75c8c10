/* The common format of packs and sets: a header, bulk data, and sections with a checksum each. See
 * doc/FORMATS.md. */
#ifndef DML_DATA_PACK_CONTAINER_H
#define DML_DATA_PACK_CONTAINER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "data/table/table.h"

#define CONTAINER_ALIGNMENT 64
#define CONTAINER_SECTIONS 16

static inline uint64_t align_up(uint64_t offset) {
    return (offset + CONTAINER_ALIGNMENT - 1) / CONTAINER_ALIGNMENT * CONTAINER_ALIGNMENT;
}

/* The place of `bytes` bytes after those that were laid out before, up to *at, which is aligned.
 */
static inline uint64_t container_place(uint64_t *at, uint64_t bytes) {
    uint64_t here = *at;
    assert(here % CONTAINER_ALIGNMENT == 0);
    *at = align_up(here + bytes);
    return here;
}

struct container_kind {
    char magic[8];
    uint32_t version;
    const char *name; /* for messages: "pack" */
};

struct section {
    uint64_t offset, length, checksum; /* length 0: not there */
};

/* Little-endian, at the start of the file. */
struct container_header {
    char magic[8];
    uint32_t version;
    uint32_t sections; /* CONTAINER_SECTIONS */
    uint64_t file_bytes;
    uint64_t checksum; /* of the header with 0 here */
    struct section section[CONTAINER_SECTIONS];
};
_Static_assert(sizeof(struct container_header) == 32 + 24 * CONTAINER_SECTIONS, "no padding");

/* ---- writing ---- */

struct container_writer {
    struct new_file file;
    struct container_header header;
    uint64_t end; /* where the next bulk or section goes; aligned */
};

int container_create(struct container_writer *writer, const struct container_kind *kind,
                     const char *path);

/* Sets aside room for `length` bytes of bulk; returns where. */
uint64_t container_reserve(struct container_writer *writer, uint64_t length);

/* Writes into reserved room. Safe from many threads. */
int container_write(const struct container_writer *writer, uint64_t offset, const void *data,
                    size_t length);

/* Writes a section after what is there. */
int container_section(struct container_writer *writer, unsigned number, const void *data,
                      size_t length);

/* Writes several sections. */
struct container_part {
    unsigned number;
    const void *data;
    size_t length;
};
int container_sections(struct container_writer *writer, const struct container_part *parts,
                       size_t count);

/* A section of a table's text, unless it is NULL. */
int container_put_table(struct container_writer *writer, unsigned number,
                        const struct table *table);

/* A section of `count` strings, each with a 0 after it, as container_strings() reads them; an
 * empty one if `strings` is NULL. */
int container_put_strings(struct container_writer *writer, unsigned number,
                          const char *const *strings, uint64_t count);

/* A section that is filled in place through a mapping of the file: the system decides how much of
 * it stays in memory. */
struct container_room {
    void *data; /* zeroed; aligned */
    void *mapping;
    size_t mapping_bytes;
    struct section section;
};

/* Makes the room and reserves it on the disk. Call container_keep() or container_forget() next. */
int container_room(struct container_writer *writer, size_t length, struct container_room *room);
/* Releases the room without a section; harmless on a zeroed or kept room. */
void container_forget(struct container_room *room);
/* Makes the room's contents the section, and releases the room. */
void container_keep(struct container_writer *writer, unsigned number, struct container_room *room);

/* Completes the file and puts it at `path`, which may differ from that of container_create() in
 * the same folder. Discards it on failure. */
int container_publish(struct container_writer *writer, const char *path);
void container_discard(struct container_writer *writer);

/* ---- reading ---- */

struct container {
    char *path;
    const uint8_t *data; /* mapped */
    size_t length;
    const struct container_header *header;
    bool borrowed; /* the mapping is another's */
};

/* Maps a file and verifies header and sections. ERROR_DATA, or ERROR_UNAVAILABLE if it is of
 * another version, names the file. */
int container_open(struct container *container, const struct container_kind *kind,
                   const char *path);
void container_close(struct container *container);

/* As container_open(), over a file that is mapped already and outlives the container. */
int container_over(struct container *container, const struct container_kind *kind, const char *path,
                   const void *data, size_t length);

/* Whether a header is one of this kind, whose sections are within the file. */
bool container_header_is_sound(const struct container_header *header,
                               const struct container_kind *kind);

/* A section, or NULL if it is not there. */
const void *container_get(const struct container *container, unsigned number, size_t *length);

/* A section that is checked to be `count` elements of `size` bytes (or absent, if there are
 * none). */
int container_array(const struct container *container, unsigned number, uint64_t count, size_t size,
                    const void **array);

/* Finds several arrays. */
struct container_wanted {
    unsigned number;
    uint64_t count;
    size_t size;
    const void **array;
};
int container_arrays(const struct container *container, const struct container_wanted *wanted,
                     size_t count);

/* A table of container_put_table(), or NULL if it is not there. */
int container_table(const struct container *container, unsigned number, struct table **table);

int container_damaged(const struct container *container, const char *what);

/* Reads section 0 alone, which must be `length` bytes; false if the file or the section is not
 * valid. */
bool container_peek(const struct container_kind *kind, const char *path, void *data, size_t length);

/* `count` strings with a 0 after each in a section, as pointers into it. Free *list. */
int container_strings(const struct container *container, unsigned number, uint64_t count,
                      const char ***list);

#endif
