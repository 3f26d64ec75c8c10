#include "wire/frame.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "wire/compact.h"
#include "wire/message.h"

uint64_t frame_error_counts[FRAME_ERRORS];

const char *frame_error_text(enum frame_error error) {
    static const char *const texts[FRAME_ERRORS] = {[FRAME_FINE] = "fine",
#define X(name, text) [name] = text,
                                                    FRAME_ERROR_TABLE(X)
#undef X
    };
    return error < FRAME_ERRORS ? texts[error] : "?";
}

void frame_log_dropped(void) {
    assert(!frame_error_counts[FRAME_FINE]);
    for (enum frame_error error = FRAME_FINE + 1; error < FRAME_ERRORS; error++)
        if (frame_error_counts[error])
            log_info("dropped %llu connections: %s", (unsigned long long)frame_error_counts[error],
                     frame_error_text(error));
}

/* The header as it is sent; no field needs padding. */
struct raw_header {
    uint32_t magic;
    uint16_t version, type;
    uint32_t flags, body_length;
    uint64_t term, bulk_length, body_hash, bulk_place;
    uint64_t segment; /* or packed length */
    uint64_t hash;
};
static_assert(sizeof(struct raw_header) == FRAME_HEADER_BYTES, "as documented");
static_assert(offsetof(struct raw_header, magic) == 0 && offsetof(struct raw_header, version) == 4,
              "every version finds magic and version there");
static_assert(offsetof(struct raw_header, hash) == FRAME_HEADER_BYTES - sizeof(uint64_t),
              "the hash is over all that lies before it");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are little-endian, as memory is");
static_assert(FRAME_BODY_BYTES_MAX <= UINT32_MAX && BULK_BYTES_MAX <= SIZE_MAX,
              "lengths fit the header, and memory");
static_assert(PROTOCOL_VERSION <= UINT16_MAX, "the version has two bytes");

enum frame_error frame_header_check(const struct frame_header *header) {
    bool shared = header->flags & FRAME_SHARED, packed = header->flags & FRAME_PACKED;
    if (!strcmp(message_name(header->type), "?"))
        return FRAME_BAD_TYPE;
    if (header->flags & ~(uint32_t)FRAME_FLAGS_KNOWN || shared != (header->segment != 0) ||
        (!shared && header->flags & FRAME_DESCRIPTOR) || (shared && !header->bulk_length) ||
        (shared && packed) || packed != (header->packed_length != 0))
        return FRAME_BAD_FLAGS;
    if (header->body_length > message_body_max(header->type))
        return FRAME_BODY_TOO_LONG;
    if (header->bulk_length > (message_has_bulk(header->type) ? BULK_BYTES_MAX : 0))
        return FRAME_BULK_TOO_LONG;
    if (packed && (header->packed_length >= header->bulk_length ||
                   header->packed_length < compact_least(header->bulk_length)))
        return FRAME_BAD_PACKED;
    return FRAME_FINE;
}

static uint64_t raw_header_hash(const struct raw_header *raw) {
    return hash64(raw, offsetof(struct raw_header, hash));
}

void frame_header_encode(const struct frame_header *header, uint8_t out[FRAME_HEADER_BYTES]) {
    bool packed = header->flags & FRAME_PACKED;
    struct raw_header raw = {.magic = FRAME_MAGIC,
                             .version = PROTOCOL_VERSION,
                             .type = header->type,
                             .flags = header->flags,
                             .body_length = header->body_length,
                             .term = header->term,
                             .bulk_length = header->bulk_length,
                             .body_hash = header->body_hash,
                             .bulk_place = header->bulk_place,
                             .segment = packed ? header->packed_length : header->segment};
    raw.hash = raw_header_hash(&raw);
    memcpy(out, &raw, sizeof raw);
}

uint16_t frame_header_version(const uint8_t in[FRAME_HEADER_BYTES]) {
    struct raw_header raw;
    memcpy(&raw, in, sizeof raw);
    return raw.version;
}

enum frame_error frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES],
                                     struct frame_header *header) {
    struct raw_header raw;
    memcpy(&raw, in, sizeof raw);
    *header = (struct frame_header){.type = raw.type,
                                    .flags = raw.flags,
                                    .body_length = raw.body_length,
                                    .term = raw.term,
                                    .bulk_length = raw.bulk_length,
                                    .body_hash = raw.body_hash,
                                    .bulk_place = raw.bulk_place};
    if (raw.magic != FRAME_MAGIC)
        return FRAME_BAD_MAGIC;
    if (raw.version != PROTOCOL_VERSION)
        return FRAME_BAD_VERSION;
    if (raw.hash != raw_header_hash(&raw))
        return FRAME_BAD_HEADER;
    if (raw.flags & FRAME_PACKED)
        header->packed_length = raw.segment;
    else if (raw.segment > UINT32_MAX)
        return FRAME_BAD_FLAGS;
    else
        header->segment = (uint32_t)raw.segment;
    return frame_header_check(header);
}

uint64_t frame_stream_bulk(const struct frame_header *header) {
    assert(!(header->flags & FRAME_SHARED) == !header->segment);
    if (header->flags & FRAME_PACKED)
        return header->packed_length;
    return header->flags & FRAME_SHARED ? 0 : header->bulk_length;
}
