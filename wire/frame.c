#include "wire/frame.h"

#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
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
    for (enum frame_error error = FRAME_FINE + 1; error < FRAME_ERRORS; error++)
        if (frame_error_counts[error])
            log_info("dropped %llu connections: %s", (unsigned long long)frame_error_counts[error],
                     frame_error_text(error));
}

/* The header as it lies in memory; no field needs padding. */
struct layout {
    uint32_t magic;
    uint16_t version, type;
    uint32_t flags, body_length;
    uint64_t epoch, bulk_length, body_hash, bulk_place;
    uint32_t segment, zero;
    uint64_t hash;
};
_Static_assert(sizeof(struct layout) == FRAME_HEADER_BYTES, "the layout is the one documented");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are little-endian, as memory is");

static uint64_t layout_hash(const struct layout *layout) {
    return hash64(layout, offsetof(struct layout, hash));
}

void frame_header_encode(const struct frame_header *header, uint8_t out[FRAME_HEADER_BYTES]) {
    struct layout layout = {.magic = FRAME_MAGIC,
                            .version = PROTOCOL_VERSION,
                            .type = header->type,
                            .flags = header->flags,
                            .body_length = header->body_length,
                            .epoch = header->epoch,
                            .bulk_length = header->bulk_length,
                            .body_hash = header->body_hash,
                            .bulk_place = header->bulk_place,
                            .segment = header->segment};
    layout.hash = layout_hash(&layout);
    memcpy(out, &layout, sizeof layout);
}

static enum frame_error check_lengths(const struct frame_header *header) {
    if (header->body_length > message_body_max(header->type))
        return FRAME_BODY_TOO_LONG;
    if (header->bulk_length > (message_has_bulk(header->type) ? BULK_BYTES_MAX : 0))
        return FRAME_BULK_TOO_LONG;
    return FRAME_FINE;
}

static enum frame_error check_flags(const struct frame_header *header) {
    bool shared = header->flags & FRAME_SHARED;
    if (header->flags & ~(uint32_t)FRAME_FLAGS_KNOWN || shared != (header->segment != 0))
        return FRAME_BAD_FLAGS;
    if (!shared && header->flags & FRAME_DESCRIPTOR)
        return FRAME_BAD_FLAGS;
    return shared && !header->bulk_length ? FRAME_BAD_FLAGS : FRAME_FINE;
}

enum frame_error frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES],
                                     struct frame_header *header) {
    struct layout layout;
    memcpy(&layout, in, sizeof layout);
    *header = (struct frame_header){.type = layout.type,
                                    .flags = layout.flags,
                                    .body_length = layout.body_length,
                                    .epoch = layout.epoch,
                                    .bulk_length = layout.bulk_length,
                                    .body_hash = layout.body_hash,
                                    .bulk_place = layout.bulk_place,
                                    .segment = layout.segment};
    if (layout.magic != FRAME_MAGIC)
        return FRAME_BAD_MAGIC;
    if (layout.version != PROTOCOL_VERSION)
        return FRAME_BAD_VERSION;
    if (layout.hash != layout_hash(&layout) || layout.zero)
        return FRAME_BAD_HEADER;
    if (!strcmp(message_name(header->type), "?"))
        return FRAME_BAD_TYPE;
    enum frame_error error = check_flags(header);
    return error ? error : check_lengths(header);
}

uint64_t frame_stream_bulk(const struct frame_header *header) {
    return header->flags & FRAME_SHARED ? 0 : header->bulk_length;
}
