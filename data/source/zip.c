#define _GNU_SOURCE
/* APPNOTE.TXT of PKWARE describes the format: local headers before the members, a directory after
 * them, and at the end a record that says where the directory is. All numbers have their lowest
 * byte first. */
#include "data/source/zip.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#define LOCAL_BYTES 30
#define ENTRY_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR64_BYTES 20
#define COMMENT_BYTES_MAX 65535
#define DIRECTORY_BYTES_MAX (64u << 10)
#define IN_EXTRA UINT32_MAX /* a size or place that an extra field has in 64 bits */

static uint16_t get16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return le16toh(value);
}

static uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

bool zip_begins_with_array(const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    if (length < LOCAL_BYTES || memcmp(at, "PK\3\4", 4) != 0)
        return false;
    size_t name = get16(at + 26);
    return name > 4 && name <= length - LOCAL_BYTES &&
           !memcmp(at + LOCAL_BYTES + name - 4, ".npy", 4);
}

static int damaged(const char *path, const char *why) {
    return error_set(ERROR_DATA, "%s: the zip archive is damaged: %s", path, why);
}

/* ---- the file ---- */

struct archive {
    const char *path;
    int descriptor;
    uint64_t bytes;
};

/* Reads `length` bytes at a place; ERROR_DATA if they are not in the file. */
static int read_at(const struct archive *archive, uint64_t place, uint8_t *to, size_t length) {
    if (place > archive->bytes || length > archive->bytes - place)
        return damaged(archive->path, "it is truncated, or says that a part is beyond its end");
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(archive->descriptor, to + done, length - done, (off_t)(place + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(ERROR_IO, "cannot read %s", archive->path);
        if (!got)
            return damaged(archive->path, "it is truncated");
        done += (size_t)got;
    }
    return 0;
}

/* ---- the directory ---- */

struct directory {
    uint64_t place, bytes, entries;
};

/* The record before the end in archives whose numbers need 64 bits. */
static int find_directory64(const struct archive *archive, uint64_t end,
                            struct directory *directory) {
    uint8_t record[END64_BYTES], locator[LOCATOR64_BYTES];
    int code = end < LOCATOR64_BYTES
                   ? damaged(archive->path, "it has no directory")
                   : read_at(archive, end - LOCATOR64_BYTES, locator, sizeof locator);
    if (!code && memcmp(locator, "PK\6\7", 4))
        code = damaged(archive->path, "it has no directory");
    if (!code)
        code = read_at(archive, get64(locator + 8), record, sizeof record);
    if (!code && memcmp(record, "PK\6\6", 4))
        code = damaged(archive->path, "it has no directory");
    if (!code)
        *directory = (struct directory){get64(record + 48), get64(record + 40), get64(record + 32)};
    return code;
}

/* The record at the end, which a comment may follow. */
static int find_directory(const struct archive *archive, struct directory *directory) {
    uint64_t most = END_BYTES + COMMENT_BYTES_MAX;
    size_t length = (size_t)(archive->bytes < most ? archive->bytes : most);
    uint8_t *tail = memory_new(length + 1, 1), *end = NULL;
    int code = read_at(archive, archive->bytes - length, tail, length);
    for (size_t at = length < END_BYTES ? 0 : length - END_BYTES + 1; at-- && !end && !code;)
        if (!memcmp(tail + at, "PK\5\6", 4) && get16(tail + at + 20) == length - at - END_BYTES)
            end = tail + at;
    if (!code && !end)
        code = damaged(archive->path, "it has no directory at its end, so it may be truncated");
    if (end) {
        *directory = (struct directory){get32(end + 16), get32(end + 12), get16(end + 10)};
        if (directory->place == IN_EXTRA || directory->bytes == IN_EXTRA ||
            directory->entries == UINT16_MAX)
            code = find_directory64(archive, archive->bytes - length + (uint64_t)(end - tail),
                                    directory);
    }
    free(tail);
    return code;
}

/* Takes sizes and the place of a member from the extra field of its entry, if they are there. */
static bool read_extra(const uint8_t *extra, size_t length, struct input_member *member) {
    uint64_t *const wide[] = {&member->text_bytes, &member->stored_bytes, &member->place};
    size_t at = 0;
    while (length - at >= 4 && get16(extra + at) != 1) {
        size_t step = 4 + (size_t)get16(extra + at + 2);
        if (step > length - at)
            return false;
        at += step;
    }
    at += 4;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (*wide[i] != IN_EXTRA)
            continue;
        if (at > length || length - at < 8)
            return false;
        *wide[i] = get64(extra + at);
        at += 8;
    }
    return true;
}

/* The bytes of a member are after its local header, whose length may differ from its entry's. */
static int find_bytes(const struct archive *archive, struct input_member *member) {
    uint8_t local[LOCAL_BYTES];
    int code = read_at(archive, member->place, local, sizeof local);
    if (code)
        return code;
    if (memcmp(local, "PK\3\4", 4))
        return damaged(archive->path, "no member is where its directory says");
    member->place += LOCAL_BYTES + (uint64_t)get16(local + 26) + get16(local + 28);
    if (member->place > archive->bytes || member->stored_bytes > archive->bytes - member->place)
        return damaged(archive->path, "it is truncated, or says that a part is beyond its end");
    return 0;
}

/* Reads the entry at *at, of which `left` bytes are there, and passes it. */
static int read_entry(const struct archive *archive, const uint8_t **at, size_t left,
                      struct zip_member *member) {
    const uint8_t *entry = *at;
    member->name = NULL;
    if (left < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4))
        return damaged(archive->path, "its directory is not as long as it says");
    size_t name = get16(entry + 28), extra = get16(entry + 30), comment = get16(entry + 32);
    if (name + extra + comment > left - ENTRY_BYTES)
        return damaged(archive->path, "its directory is not as long as it says");
    *at += ENTRY_BYTES + name + extra + comment;
    unsigned method = get16(entry + 10);
    member->name = memory_format("%.*s", (int)name, (const char *)entry + ENTRY_BYTES);
    member->at = (struct input_member){.place = get32(entry + 42),
                                       .stored_bytes = get32(entry + 20),
                                       .text_bytes = get32(entry + 24),
                                       .crc = get32(entry + 16),
                                       .deflated = method == 8};
    if (get16(entry + 8) & 1)
        return error_set(ERROR_DATA, "%s/%s is encrypted", archive->path, member->name);
    if (method != 0 && method != 8)
        return error_set(ERROR_DATA,
                         "%s/%s is compressed by method %u of zip; allowed: stored and deflated, "
                         "as NumPy and SciPy write",
                         archive->path, member->name, method);
    if (!read_extra(entry + ENTRY_BYTES + name, extra, &member->at))
        return damaged(archive->path, "a size of 64 bits is missing");
    return find_bytes(archive, &member->at);
}

int zip_read(struct zip *zip, const char *path, int descriptor) {
    struct archive archive = {.path = path, .descriptor = descriptor};
    struct directory directory = {0};
    struct stat status;
    zip->count = 0;
    if (fstat(descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", path);
    archive.bytes = (uint64_t)status.st_size;
    int code = find_directory(&archive, &directory);
    if (code)
        return code;
    if (directory.entries > ZIP_MEMBERS_MAX || directory.bytes > DIRECTORY_BYTES_MAX)
        return error_set(ERROR_DATA, "%s has more than %u members, and is no .npz file of a matrix",
                         path, ZIP_MEMBERS_MAX);
    uint8_t *text = memory_new(directory.bytes + 1, 1);
    const uint8_t *at = text, *end = text + directory.bytes;
    code = read_at(&archive, directory.place, text, directory.bytes);
    while (!code && zip->count < directory.entries)
        code = read_entry(&archive, &at, (size_t)(end - at), &zip->member[zip->count++]);
    free(text);
    return code;
}

void zip_release(struct zip *zip) {
    for (uint32_t i = 0; i < zip->count; i++)
        free(zip->member[i].name);
    zip->count = 0;
}

const struct input_member *zip_find(const struct zip *zip, const char *name) {
    for (uint32_t i = 0; i < zip->count; i++)
        if (!strcmp(zip->member[i].name, name))
            return &zip->member[i].at;
    return NULL;
}
