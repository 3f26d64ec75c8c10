#define _GNU_SOURCE
#include "data/source/input.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/remote/address.h"
#include "data/remote/remote.h"

/* ---- the text of a file ---- */

#define STORED_BYTES_AT_ONCE (256u << 10)

enum compression { PLAIN, GZIP, ZSTANDARD };

struct input {
    const char *path;
    int descriptor;
    struct remote *remote;    /* in place of the descriptor; or NULL */
    bool member;              /* of an archive, whose descriptor this is */
    struct input_member left; /* of it: what was not read yet */
    uint32_t crc;             /* of its text so far */
    bool stream; /* no regular file from its beginning: it cannot be compared with itself */
    struct source_stamp stamp;
    enum compression compression;
    struct hash_stream *hash;
    uint64_t stored_bytes;
    uint8_t *stored; /* what was read and not yet used: [at, end) */
    size_t at, end;
    bool ended;  /* of the file */
    bool inside; /* an archive member or frame has begun and not ended */
    z_stream gzip;
    ZSTD_DStream *zstd;
};

static int read_descriptor(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    ssize_t got;
    do {
        got = read(input->descriptor, buffer, capacity);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set_errno(ERROR_IO, "cannot read %s", input->path);
    *length = (size_t)got;
    return 0;
}

/* Reads at a place of the file, as members of one archive are read beside each other. */
static int read_member(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    struct input_member *left = &input->left;
    size_t wanted = capacity < left->stored_bytes ? capacity : (size_t)left->stored_bytes;
    ssize_t got;
    do {
        got = pread(input->descriptor, buffer, wanted, (off_t)left->place);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set_errno(ERROR_IO, "cannot read %s", input->path);
    left->place += (uint64_t)got;
    left->stored_bytes -= (uint64_t)got;
    *length = (size_t)got;
    return 0;
}

/* Reads more of the file. */
static int read_stored(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    int code = input->member   ? read_member(input, buffer, capacity, length)
               : input->remote ? remote_read(input->remote, buffer, capacity, length)
                               : read_descriptor(input, buffer, capacity, length);
    if (code)
        return code;
    if (input->hash)
        hash_stream_add(input->hash, buffer, *length);
    input->stored_bytes += *length;
    input->ended = *length == 0;
    return 0;
}

/* Fills the input anew, once everything read before was used. */
static int refill(struct input *input) {
    if (input->at < input->end || input->ended)
        return 0;
    input->at = input->end = 0;
    return read_stored(input, input->stored, STORED_BYTES_AT_ONCE, &input->end);
}

struct source_stamp input_stamp_of(const struct stat *status) {
    return (struct source_stamp){
        .bytes = (uint64_t)status->st_size,
        .inode = (uint64_t)status->st_ino,
        .modified_ns = status->st_mtim.tv_sec * NS_PER_S + status->st_mtim.tv_nsec,
        .changed_ns = status->st_ctim.tv_sec * NS_PER_S + status->st_ctim.tv_nsec,
    };
}

bool source_is_input(const char *path) {
    return strcmp(path, "-") == 0;
}

bool source_is_stream(const char *path) {
    struct stat status;
    return source_is_input(path) || (stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
}

const char *source_name(const char *path) {
    return source_is_input(path) ? "standard input" : path;
}

/* Whether the descriptor is what can be read. */
static int check_kind(const struct input *input, const struct stat *status, bool streams) {
    const char *path = input->path;
    if (S_ISDIR(status->st_mode))
        return error_set(ERROR_DATA, "%s is a folder: name the files in it, or a glob such as %s/*",
                         path, path);
    if (!S_ISREG(status->st_mode) && !streams)
        return error_set(ERROR_DATA, "%s is not a regular file", path);
    return 0;
}

/* Of standard input only the rest is read, so its stamp says nothing, even if it is a file. */
static int open_source(struct input *input, const char *path, bool streams) {
    bool standard = streams && source_is_input(path);
    input->descriptor = -1;
    if (address_is(path)) {
        input->path = path;
        return remote_open(path, &input->remote);
    }
    input->path = standard ? source_name(path) : path;
    input->descriptor =
        standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
    if (input->descriptor < 0 && errno == ENOENT && foreign_check_path(path))
        return ERROR_DATA;
    if (input->descriptor < 0 && errno == ENOENT)
        return error_set(ERROR_DATA, "cannot open %s: %s%s", path, strerror(ENOENT),
                         file_suggestion(path, NULL));
    if (input->descriptor < 0)
        return error_set_errno(ERROR_IO, "cannot open %s", input->path);
    struct stat status;
    if (fstat(input->descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", input->path);
    input->stream = standard || !S_ISREG(status.st_mode);
    input->stamp = input_stamp_of(&status);
    return check_kind(input, &status, streams);
}

struct source_stamp input_stamp(const struct input *input) {
    return input->remote ? remote_stamp(input->remote) : input->stamp;
}

int input_look(const char *path, struct source_stamp *stamp) {
    struct stat status;
    if (address_is(path))
        return remote_look(path, stamp);
    if (stat(path, &status))
        return error_set_errno(errno == ENOENT ? ERROR_DATA : ERROR_IO, "cannot open %s", path);
    *stamp = input_stamp_of(&status);
    return 0;
}

/* Asks the open descriptor and not the path: the path may lead to a new file by now, which does not
 * matter, since this one was read as it was. The number of bytes read must fit, too: a file may
 * grow between the last read and here. */
int input_check_unchanged(const struct input *input) {
    struct stat status;
    if (input->stream || input->remote) /* which tells itself */
        return 0;
    if (fstat(input->descriptor, &status))
        return error_set_errno(ERROR_IO, "cannot look at %s", input->path);
    struct source_stamp now = input_stamp_of(&status), then = input->stamp;
    if (now.bytes == then.bytes && now.modified_ns == then.modified_ns &&
        now.changed_ns == then.changed_ns && input->stored_bytes == then.bytes)
        return 0;
    return error_set(ERROR_DATA,
                     "%s was changed while it was read: start again when it is complete; whoever "
                     "replaces it should write a new file beside it and rename that",
                     input->path);
}

static int start_decompression(struct input *input) {
    static const uint8_t gzip_magic[] = {0x1f, 0x8b}, zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    size_t length = input->end - input->at;
    if (length >= sizeof gzip_magic && !memcmp(input->stored, gzip_magic, sizeof gzip_magic)) {
        input->compression = GZIP;
        if (inflateInit2(&input->gzip, 15 + 16) != Z_OK)
            return error_set(ERROR_INTERNAL, "cannot start zlib for %s", input->path);
    } else if (length >= sizeof zstd_magic &&
               !memcmp(input->stored, zstd_magic, sizeof zstd_magic)) {
        input->compression = ZSTANDARD;
        input->zstd = ZSTD_createDStream();
        if (!input->zstd)
            return error_set(ERROR_INTERNAL, "cannot start zstd for %s", input->path);
    }
    return 0;
}

int input_open_member(const char *path, int descriptor, const struct input_member *member,
                      struct input **opened) {
    struct input *input = memory_new(1, sizeof *input);
    input->path = path;
    input->descriptor = descriptor;
    input->member = true;
    input->left = *member;
    input->stored = memory_new(STORED_BYTES_AT_ONCE, 1);
    *opened = input;
    if (!member->deflated)
        return 0;
    input->compression = GZIP;
    input->inside = true;
    if (inflateInit2(&input->gzip, -15) == Z_OK)
        return 0;
    input->compression = PLAIN;
    return error_set(ERROR_INTERNAL, "cannot start zlib for %s", path);
}

int input_open(const char *path, bool streams, struct input **opened) {
    struct input *input = memory_new(1, sizeof *input);
    input->hash = hash_stream_new();
    input->stored = memory_new(STORED_BYTES_AT_ONCE, 1);
    int code = open_source(input, path, streams);
    if (!code)
        code = refill(input);
    if (!code)
        code = start_decompression(input);
    if (code) {
        input_close(input);
        return code;
    }
    *opened = input;
    return 0;
}

void input_close(struct input *input) {
    if (!input)
        return;
    if (input->compression == GZIP)
        inflateEnd(&input->gzip);
    ZSTD_freeDStream(input->zstd);
    hash_stream_free(input->hash);
    free(input->stored);
    remote_close(input->remote);
    if (input->descriptor >= 0 && !input->member)
        close(input->descriptor);
    free(input);
}

static int damaged(const struct input *input, const char *kind, const char *why) {
    return error_set(ERROR_DATA, "%s: the %s data is damaged near byte %llu: %s", input->path, kind,
                     (unsigned long long)(input->stored_bytes - (input->end - input->at)), why);
}

/* A .gz may have several members, one after the other. */
static int read_gzip(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    z_stream *gzip = &input->gzip;
    if (!input->inside && inflateReset(gzip) != Z_OK)
        return damaged(input, "gzip", "zlib cannot start anew");
    gzip->next_in = input->stored + input->at;
    gzip->avail_in = (unsigned)(input->end - input->at);
    gzip->next_out = buffer;
    gzip->avail_out = (unsigned)capacity;
    int answer = inflate(gzip, Z_NO_FLUSH);
    input->at = input->end - gzip->avail_in;
    *length = capacity - gzip->avail_out;
    if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR)
        return damaged(input, "gzip", gzip->msg ? gzip->msg : "zlib gives no reason");
    input->inside = answer != Z_STREAM_END;
    return 0;
}

static int read_zstd(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    ZSTD_inBuffer in = {input->stored, input->end, input->at};
    ZSTD_outBuffer out = {buffer, capacity, 0};
    size_t answer = ZSTD_decompressStream(input->zstd, &out, &in);
    input->at = in.pos;
    *length = out.pos;
    if (ZSTD_isError(answer))
        return damaged(input, "zstd", ZSTD_getErrorName(answer));
    input->inside = answer != 0;
    return 0;
}

static int read_some(struct input *input, uint8_t *buffer, size_t capacity, size_t *length) {
    assert(input->at <= input->end);
    size_t there = input->end - input->at;
    if (input->compression == GZIP)
        return read_gzip(input, buffer, capacity, length);
    if (input->compression == ZSTANDARD)
        return read_zstd(input, buffer, capacity, length);
    *length = there < capacity ? there : capacity;
    memcpy(buffer, input->stored + input->at, *length);
    input->at += *length;
    return 0;
}

static int read_text(struct input *input, void *buffer, size_t capacity, size_t *length) {
    if (capacity > STORED_BYTES_AT_ONCE * 1024u)
        capacity = STORED_BYTES_AT_ONCE * 1024u; /* what zlib counts in fits */
    *length = 0;
    for (;;) {
        /* A decompressor may still hold text although all stored bytes were used. */
        bool more = input->at < input->end || input->inside;
        int code = more ? read_some(input, buffer, capacity, length) : 0;
        assert(*length <= capacity);
        if (code || *length)
            return code;
        if (input->at < input->end)
            continue;
        if (input->compression == PLAIN && !input->ended) /* plain text goes where it is wanted */
            return read_stored(input, buffer, capacity, length);
        if (input->ended)
            return input->inside
                       ? error_set(ERROR_DATA, "%s is truncated: the compressed data ends early",
                                   input->path)
                       : 0;
        code = refill(input);
        if (code)
            return code;
    }
}

/* Compares the text of a member with what the archive says, as far as it was read. */
static int check_member(struct input *input, const void *text, size_t length) {
    bool fits = length ? length <= input->left.text_bytes : !input->left.text_bytes;
    if (!fits)
        return error_set(ERROR_DATA, "%s is damaged: its length is not what the archive says",
                         input->path);
    input->left.text_bytes -= length;
    input->crc = (uint32_t)crc32_z(input->crc, text, length);
    return length || input->crc == input->left.crc
               ? 0
               : error_set(ERROR_DATA, "%s is damaged: its checksum does not fit", input->path);
}

int input_read(struct input *input, void *buffer, size_t capacity, size_t *length) {
    int code = read_text(input, buffer, capacity, length);
    return code || !input->member ? code : check_member(input, buffer, *length);
}

bool input_is_waiting(const struct input *input) {
    struct pollfd more = {.fd = input->descriptor, .events = POLLIN};
    return input->stream && input->compression == PLAIN && !input->ended &&
           input->at == input->end && poll(&more, 1, 0) == 0;
}

int input_descriptor(const struct input *input) {
    return input->stream || input->compression != PLAIN ? -1 : input->descriptor;
}

uint64_t input_stored_bytes(const struct input *input) {
    return input->stored_bytes;
}

void input_hash(const struct input *input, char text[HASH128_TEXT]) {
    hash_stream_text(input->hash, text);
}

int input_hash_file(const char *path, char text[HASH128_TEXT]) {
    struct input *input;
    int code = input_open(path, false, &input);
    if (code)
        return code;
    while (!code && !input->ended) {
        input->at = input->end;
        code = refill(input);
    }
    if (!code)
        code = input_check_unchanged(input);
    if (!code)
        hash_stream_text(input->hash, text);
    input_close(input);
    return code;
}
