/* The head of a set that comes in pieces: see data/set/set.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/set/set_file.h"

struct partial_set {
    char *folder, *fingerprint; /* the folder: or NULL */
    struct container_header header;
    struct chunk_cache *file; /* NULL: the header is lacking */
    unsigned lacking; /* the section that partial_lacks() named: another process may have put it
                         there since */
};

struct partial_set *partial_new(const char *folder, const char *fingerprint) {
    struct partial_set *partial = memory_new(1, sizeof *partial);
    partial->folder = folder ? memory_copy_string(folder) : NULL;
    partial->fingerprint = memory_copy_string(fingerprint);
    return partial;
}

void partial_free(struct partial_set *partial) {
    if (!partial)
        return;
    chunk_cache_close(partial->file);
    free(partial->folder);
    free(partial->fingerprint);
    free(partial);
}

static bool has_section(const struct partial_set *partial, const struct section *section) {
    return !section->length ||
           (!chunk_cache_is_hole(partial->file, section->offset, section->length) &&
            hash64(chunk_cache_at(partial->file, section->offset), section->length) ==
                section->checksum);
}

/* The first section that is not there; CONTAINER_SECTIONS: all are. */
static unsigned section_lacking(const struct partial_set *partial) {
    unsigned i = 0;
    while (i < CONTAINER_SECTIONS && has_section(partial, &partial->header.section[i]))
        i++;
    return i;
}

uint64_t partial_lacks(struct partial_set *partial, uint64_t *offset) {
    *offset = 0;
    if (!partial->file)
        return sizeof partial->header;
    partial->lacking = section_lacking(partial);
    if (partial->lacking == CONTAINER_SECTIONS)
        return 0;
    *offset = partial->header.section[partial->lacking].offset;
    return partial->header.section[partial->lacking].length;
}

static int open_file(struct partial_set *partial, const char *folder) {
    const uint64_t bytes = partial->header.file_bytes;
    struct chunk_cache *file = NULL;
    int code = chunk_cache_open(folder, partial->fingerprint, bytes, &file);
    if (!code && !chunk_cache_put(file, 0, &partial->header, sizeof partial->header)) {
        chunk_cache_close(file);
        code = error_set(ERROR_UNAVAILABLE, "no room for a copy of the set");
    }
    if (!code)
        partial->file = file;
    return code;
}

/* What the former file had of the head goes along. */
static int move_to_memory(struct partial_set *partial) {
    struct chunk_cache *former = partial->file;
    partial->file = NULL;
    int code = open_file(partial, NULL);
    for (unsigned i = 0; i < CONTAINER_SECTIONS && !code && former; i++) {
        const struct section *section = &partial->header.section[i];
        const uint8_t *data = chunk_cache_at(former, section->offset);
        if (section->length && !chunk_cache_is_hole(former, section->offset, section->length) &&
            hash64(data, section->length) == section->checksum &&
            !chunk_cache_put(partial->file, section->offset, data, section->length))
            code = error_set(ERROR_UNAVAILABLE, "no memory for a copy of the set");
    }
    chunk_cache_close(former);
    return code;
}

static int put_header(struct partial_set *partial, const void *data) {
    memcpy(&partial->header, data, sizeof partial->header);
    if (!container_header_is_sound(&partial->header, &set_kind))
        return 0;
    if (!partial->folder || open_file(partial, partial->folder)) {
        if (partial->folder)
            log_warning("the set is kept in memory: %s", error_text());
        error_clear();
        return move_to_memory(partial);
    }
    return 0;
}

int partial_put(struct partial_set *partial, const void *data) {
    if (!partial->file)
        return put_header(partial, data);
    assert(partial->lacking < CONTAINER_SECTIONS);
    const struct section section = partial->header.section[partial->lacking];
    if (hash64(data, section.length) != section.checksum ||
        chunk_cache_put(partial->file, section.offset, data, section.length))
        return 0;
    int code = move_to_memory(partial);
    if (!code && !chunk_cache_put(partial->file, section.offset, data, section.length))
        code = error_set(ERROR_UNAVAILABLE, "no memory for a copy of the set");
    return code;
}

int partial_open(struct partial_set *partial, struct set **set) {
    struct chunk_cache *file = partial->file;
    assert(file && partial->lacking == CONTAINER_SECTIONS);
    partial->file = NULL;
    return set_open_partial(file, partial->header.file_bytes, set);
}
