/* The header of a frame. A frame is this, the body, and the bulk unless that lies in a segment.
 *
 *   offset  bytes
 *        0      4  magic
 *        4      2  PROTOCOL_VERSION
 *        6      2  message type
 *        8      4  flags
 *       12      4  body length
 *       16      8  term
 *       24      8  bulk length
 *       32      8  hash64 of the body
 *       40      8  hash64 of the bulk, as it was sent, or its offset in the segment
 *       48      8  id of the segment, or packed length; else 0
 *       56      8  hash64 of the 56 bytes before
 *
 * All little-endian. The magic and the version keep their places in every version. */
#ifndef DML_WIRE_FRAME_H
#define DML_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES 64
#define FRAME_MAGIC UINT32_C(0x314c4d44) /* "DML1" */

/* Why a connection ended that the other end closed between two frames. */
#define FRAME_CLOSED "closed by the other end"

enum frame_flag {
    FRAME_SHARED = 1,     /* the bulk lies in a segment; no bytes of it follow */
    FRAME_DESCRIPTOR = 2, /* the segment's descriptor came with this frame */
    FRAME_PACKED = 4,     /* the bulk comes as wire/compact.h says, in fewer bytes than it has */
};
#define FRAME_FLAGS_KNOWN (FRAME_SHARED | FRAME_DESCRIPTOR | FRAME_PACKED)

/* Why a peer is dropped. Users read the texts. */
#define FRAME_ERROR_TABLE(X)                                                                       \
    X(FRAME_BAD_MAGIC, "not a frame of this protocol")                                             \
    X(FRAME_BAD_VERSION, "another protocol version")                                               \
    X(FRAME_BAD_HEADER, "bad checksum of a frame's header")                                        \
    X(FRAME_BAD_TYPE, "unknown message type")                                                      \
    X(FRAME_BAD_FLAGS, "bad flags in a frame's header")                                            \
    X(FRAME_BODY_TOO_LONG, "message longer than its type allows")                                  \
    X(FRAME_BULK_TOO_LONG, "bulk where there may be none, or too long")                            \
    X(FRAME_BAD_BODY, "bad checksum of a message")                                                 \
    X(FRAME_BAD_BULK, "bad checksum of bulk")                                                      \
    X(FRAME_MALFORMED, "malformed message")                                                        \
    X(FRAME_BAD_PACKED, "packed bulk that is not of the length it says")                           \
    X(FRAME_BAD_SEGMENT, "bulk outside of shared memory, or in memory that can shrink")            \
    X(FRAME_BAD_DESCRIPTOR, "descriptors that no frame asks for, or a frame that lacks its own")   \
    X(FRAME_CUT_SHORT, "closed within a frame")                                                    \
    X(FRAME_SLOW, "the rest of a frame did not come")                                              \
    X(FRAME_STRANGER, "a message that strangers may not send")                                     \
    X(FRAME_SILENT, "no HELLO or GREET that was welcome, in time")                                 \
    X(FRAME_CROWDED, "too many connections")                                                       \
    X(FRAME_TLS_GARBAGE, "something that is not TLS")                                              \
    X(FRAME_TLS_VERSION, "another version of TLS than 1.3")                                        \
    X(FRAME_TLS_NO_KEY, "TLS without a key of dml")                                                \
    X(FRAME_TLS_OTHER_KEY, "another key: give both programs the same file")                        \
    X(FRAME_TLS_PROOF, "the name of our key, but not the key itself")                              \
    X(FRAME_TLS_RECORD, "what our key does not decrypt: damaged, or of another connection")        \
    X(FRAME_TLS_ALERT, "an alert of TLS")                                                          \
    X(FRAME_TLS_FLOOD, "messages of a handshake after the handshake of TLS")                       \
    X(FRAME_TLS_BROKEN, "a malformed message of TLS")

enum frame_error {
    FRAME_FINE,
#define X(name, text) name,
    FRAME_ERROR_TABLE(X)
#undef X
        FRAME_ERRORS,
};

/* How often each reason came up in this process. */
extern uint64_t frame_error_counts[FRAME_ERRORS];
const char *frame_error_text(enum frame_error error);
/* Logs why connections were dropped, and how many. */
void frame_log_dropped(void);

struct frame_header {
    uint16_t type;
    uint32_t flags;
    uint32_t body_length;
    uint64_t term;
    uint64_t bulk_length;
    uint64_t body_hash;
    uint64_t bulk_place;    /* the hash of what is sent; FRAME_SHARED: the offset in the segment */
    uint32_t segment;       /* FRAME_SHARED: its id; else 0 */
    uint64_t packed_length; /* FRAME_PACKED: bytes that are sent for the bulk; else 0 */
};

/* Whether type, flags, lengths and segment go together: what the receiver checks is what the sender
 * asserts. */
enum frame_error frame_header_check(const struct frame_header *header);

/* Writes a header that frame_header_check() accepts, in the order of bytes above. */
void frame_header_encode(const struct frame_header *header, uint8_t out[FRAME_HEADER_BYTES]);

/* The version of the protocol that a header is of. */
uint16_t frame_header_version(const uint8_t in[FRAME_HEADER_BYTES]);

/* Reads a header and checks everything that can be checked without the rest of the frame. */
enum frame_error frame_header_decode(const uint8_t in[FRAME_HEADER_BYTES],
                                     struct frame_header *header);

/* Bytes that follow the body on the connection: none for bulk that lies in a segment. */
uint64_t frame_stream_bulk(const struct frame_header *header);

#endif
