#define _GNU_SOURCE
#include "data/pack/container.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/clock.h"
#include "base/memory.h"

static uint64_t header_checksum(const struct container_header *header) {
    struct container_header copy = *header;
    copy.checksum = 0;
    return hash64(&copy, sizeof copy);
}

int container_create(struct container_writer *writer, const struct container_kind *kind,
                     const char *path) {
    *writer = (struct container_writer){.end = align_up(sizeof writer->header)};
    memcpy(writer->header.magic, kind->magic, sizeof kind->magic);
    writer->header.version = kind->version;
    writer->header.sections = CONTAINER_SECTIONS;
    return new_file_open(&writer->file, path);
}

uint64_t container_reserve(struct container_writer *writer, uint64_t length) {
    uint64_t offset = writer->end;
    assert(offset % CONTAINER_ALIGNMENT == 0 && length <= UINT64_MAX / 2 - offset);
    writer->end = align_up(offset + length);
    return offset;
}

/* A large file begins to go to disk each time that a multiple of this is passed, so that the fsync
 * at its end has little left to do. */
#define WRITE_BACK_BYTES (UINT64_C(8) << 20)

int container_write(const struct container_writer *writer, uint64_t offset, const void *data,
                    size_t length) {
    assert(data || !length);
    const char *at = data;
    const uint64_t first = offset;
    while (length) {
        ssize_t written = pwrite(writer->file.descriptor, at, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(ERROR_IO, "cannot write %s", writer->file.path);
        at += written;
        offset += (uint64_t)written;
        length -= (size_t)written;
    }
    if (offset / WRITE_BACK_BYTES != first / WRITE_BACK_BYTES)
        file_write_back(writer->file.descriptor);
    return 0;
}

int container_section(struct container_writer *writer, unsigned number, const void *data,
                      size_t length) {
    assert(number < CONTAINER_SECTIONS);
    uint64_t offset = container_reserve(writer, length);
    writer->header.section[number] = (struct section){offset, length, hash64(data, length)};
    return container_write(writer, offset, data, length);
}

int container_sections(struct container_writer *writer, const struct container_part *parts,
                       size_t count) {
    int code = 0;
    for (size_t i = 0; i < count && !code; i++)
        code = container_section(writer, parts[i].number, parts[i].data, parts[i].length);
    return code;
}

int container_put_table(struct container_writer *writer, unsigned number,
                        const struct table *table) {
    if (!table)
        return 0;
    char *text = table_text(table);
    int code = container_section(writer, number, text, strlen(text) + 1);
    free(text);
    return code;
}

int container_put_strings(struct container_writer *writer, unsigned number,
                          const char *const *strings, uint64_t count) {
    struct bytes all;
    bytes_init(&all);
    for (uint64_t i = 0; strings && i < count; i++)
        bytes_append(&all, strings[i], strlen(strings[i]) + 1);
    int code = container_section(writer, number, all.data, all.length);
    bytes_release(&all);
    return code;
}

int container_room(struct container_writer *writer, size_t length, struct container_room *room) {
    uint64_t offset = container_reserve(writer, length);
    uint64_t page = offset / (uint64_t)sysconf(_SC_PAGESIZE) * (uint64_t)sysconf(_SC_PAGESIZE);
    *room = (struct container_room){.mapping_bytes = offset - page + length + 1,
                                    .section = {offset, length, 0}};
    /* Reserve the blocks now: if the disk filled up later, a store into the mapping would be
     * SIGBUS. */
    errno = posix_fallocate(writer->file.descriptor, (off_t)offset, (off_t)length + 1);
    if (errno)
        return error_set_errno(ERROR_IO, "cannot make room for %s", writer->file.path);
    void *start = mmap(NULL, room->mapping_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       writer->file.descriptor, (off_t)page);
    if (start == MAP_FAILED)
        return error_set_errno(ERROR_IO, "cannot map %s", writer->file.path);
    room->mapping = start;
    room->data = (uint8_t *)start + (offset - page);
    return 0;
}

void container_keep(struct container_writer *writer, unsigned number, struct container_room *room) {
    assert(number < CONTAINER_SECTIONS && room->mapping);
    room->section.checksum = hash64(room->data, room->section.length);
    writer->header.section[number] = room->section;
    container_forget(room);
}

void container_forget(struct container_room *room) {
    if (room->mapping)
        munmap(room->mapping, room->mapping_bytes);
    *room = (struct container_room){0};
}

/* The header is written last, but no reader depends on that: the file has a temporary name until it
 * is complete and on disk (new_file_publish()). */
int container_publish(struct container_writer *writer, const char *path) {
    writer->header.file_bytes = writer->end;
    writer->header.checksum = header_checksum(&writer->header);
    int code = container_write(writer, 0, &writer->header, sizeof writer->header);
    if (!code && (ftruncate(writer->file.descriptor, (off_t)writer->end) ||
                  failpoint_write(FAILPOINT_pack_publish)))
        code = error_set_errno(ERROR_IO, "cannot write %s", path);
    if (code) {
        container_discard(writer);
        return code;
    }
    free(writer->file.path);
    writer->file.path = memory_copy_string(path);
    code = new_file_publish(&writer->file);
    failpoint(FAILPOINT_pack_published);
    return code;
}

void container_discard(struct container_writer *writer) {
    new_file_discard(&writer->file);
}

int container_damaged(const struct container *container, const char *what) {
    return error_set(ERROR_DATA, "%s is damaged (%s): `run` and `pack` make it again",
                     container->path, what);
}

/* Returns what is wrong with a header, or NULL. */
static const char *check_header(const struct container_header *header,
                                const struct container_kind *kind, uint64_t length) {
    if (memcmp(header->magic, kind->magic, sizeof kind->magic))
        return "it does not begin as one";
    if (header->version != kind->version)
        return "it is of another version";
    if (header->sections != CONTAINER_SECTIONS || header->checksum != header_checksum(header))
        return "its header is damaged";
    return header->file_bytes == length ? NULL : "its length is wrong";
}

static int verify_sections(const struct container *container) {
    for (unsigned i = 0; i < CONTAINER_SECTIONS; i++) {
        const struct section *section = &container->header->section[i];
        if (section->offset > container->length ||
            section->length > container->length - section->offset)
            return container_damaged(container, "a section is out of bounds");
        if (section->length &&
            hash64(container->data + section->offset, section->length) != section->checksum)
            return container_damaged(container, "the checksum of a section is wrong");
        heartbeat();
    }
    return 0;
}

static int verify_container(const struct container *container, const struct container_kind *kind) {
    const struct container_header *header = container->header;
    const char *path = container->path;
    const char *fault = container->length < sizeof *header
                            ? "it is too short"
                            : check_header(header, kind, container->length);
    if (fault && container->length >= sizeof *header && header->version != kind->version &&
        !memcmp(header->magic, kind->magic, sizeof kind->magic))
        return error_set(ERROR_UNAVAILABLE,
                         "%s is a %s of version %" PRIu32 ", but this program reads version "
                         "%" PRIu32,
                         path, kind->name, header->version, kind->version);
    if (fault)
        return error_set(ERROR_DATA, "%s is no sound %s: %s", path, kind->name, fault);
    return verify_sections(container);
}

int container_open(struct container *container, const struct container_kind *kind,
                   const char *path) {
    *container = (struct container){.path = memory_copy_string(path)};
    const void *data = NULL;
    int code = file_map(path, &data, &container->length);
    container->header = data;
    container->data = data;
    if (!code)
        code = verify_container(container, kind);
    if (code)
        container_close(container);
    return code;
}

int container_over(struct container *container, const struct container_kind *kind, const char *path,
                   const void *data, size_t length) {
    *container = (struct container){.path = memory_copy_string(path),
                                    .data = data,
                                    .length = length,
                                    .header = data,
                                    .borrowed = true};
    int code = verify_container(container, kind);
    if (code)
        container_close(container);
    return code;
}

bool container_header_is_sound(const struct container_header *header,
                               const struct container_kind *kind) {
    bool sound = !check_header(header, kind, header->file_bytes);
    for (unsigned i = 0; i < CONTAINER_SECTIONS && sound; i++)
        sound = header->section[i].offset <= header->file_bytes &&
                header->section[i].length <= header->file_bytes - header->section[i].offset;
    return sound;
}

void container_close(struct container *container) {
    if (container->data && !container->borrowed)
        memory_unmap((void *)(uintptr_t)container->data, container->length);
    free(container->path);
    *container = (struct container){0};
}

const void *container_get(const struct container *container, unsigned number, size_t *length) {
    assert(number < CONTAINER_SECTIONS);
    const struct section *section = &container->header->section[number];
    *length = section->length;
    return section->length ? container->data + section->offset : NULL;
}

int container_array(const struct container *container, unsigned number, uint64_t count, size_t size,
                    const void **array) {
    size_t length;
    *array = container_get(container, number, &length);
    if (length / size != count || length % size)
        return container_damaged(container, "a section has the wrong length");
    return 0;
}

int container_arrays(const struct container *container, const struct container_wanted *wanted,
                     size_t count) {
    int code = 0;
    for (size_t i = 0; i < count && !code; i++)
        code = container_array(container, wanted[i].number, wanted[i].count, wanted[i].size,
                               wanted[i].array);
    return code;
}

int container_table(const struct container *container, unsigned number, struct table **table) {
    size_t length;
    const char *text = container_get(container, number, &length);
    *table = NULL;
    if (!text)
        return 0;
    if (text[length - 1])
        return container_damaged(container, "the description of its columns has no end");
    return table_of_text(text, container->path, table);
}

int container_strings(const struct container *container, unsigned number, uint64_t count,
                      const char ***list) {
    size_t length;
    const char *at = container_get(container, number, &length);
    if (!at)
        at = "";
    const char *end = at + length;
    if (count > length || (length && end[-1]))
        return container_damaged(container, "its texts are incomplete");
    *list = memory_new(count + 1, sizeof **list);
    for (uint64_t i = 0; i < count; i++) {
        if (at == end) {
            free(*list);
            return container_damaged(container, "its texts are incomplete");
        }
        (*list)[i] = at;
        at += strlen(at) + 1;
    }
    return 0;
}

bool container_peek(const struct container_kind *kind, const char *path, void *data,
                    size_t length) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    struct container_header header;
    off_t bytes = lseek(descriptor, 0, SEEK_END);
    bool valid =
        pread(descriptor, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        !check_header(&header, kind, (uint64_t)bytes) && header.section[0].length <= length &&
        pread(descriptor, data, header.section[0].length, (off_t)header.section[0].offset) ==
            (ssize_t)header.section[0].length &&
        hash64(data, header.section[0].length) == header.section[0].checksum;
    if (valid)
        memset((char *)data + header.section[0].length, 0, length - header.section[0].length);
    close(descriptor);
    return valid;
}
