/* Messages: structs and codecs, all made from the one table in wire/messages.def.
 *
 * A decoded message points into the body it was decoded from. Encoding copies. */
#ifndef DML_WIRE_MESSAGE_H
#define DML_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/limits.h"

/* To be raised when a message changes its meaning. Both ends must have the same version. */
#define PROTOCOL_VERSION 1

enum role { ROLE_COORDINATOR, ROLE_SHARD, ROLE_REPLICA };
const char *role_name(enum role role);

/* Names one flush, uniquely and for ever. A flush is what a replica has added up over some portions
 * and sends as one unit. */
struct flush_id {
    uint32_t attempt;
    uint32_t evaluation;
    uint64_t incarnation; /* of the replica */
    uint32_t sequence;    /* counts the flushes of that incarnation */
};
bool flush_id_equal(const struct flush_id *a, const struct flush_id *b);

/* An id in bytes: in messages, and in lists of ids. Reading beyond the end fails the cursor. */
#define FLUSH_ID_BYTES 20
void flush_id_encode(const struct flush_id *id, struct bytes *out);
struct flush_id flush_id_decode(struct cursor *in);

/* A hash of the id. The sum (mod 2⁶⁴) over a set of flushes names the set in any order. */
uint64_t flush_id_hash(const struct flush_id *id);

/* Consecutive chunks. */
struct chunk_range {
    uint32_t first;
    uint32_t count;
};

struct blob {
    const void *data;
    uint32_t length; /* bytes */
};
struct chunk_ranges {
    const struct chunk_range *items;
    uint32_t length; /* items */
};
struct u64_list {
    const uint64_t *items;
    uint32_t length; /* items */
};

/* A part of an evaluation: what to compute (enum evaluation_kind), over which chunks. */
struct evaluation_part {
    uint32_t kind;
    uint32_t first; /* chunk */
    uint32_t count;
};
struct part_list {
    const struct evaluation_part *items;
    uint32_t length; /* items */
};

enum portion_flag {
    PORTION_SOLO = 1, /* a flush of its own: flush before it and after it */
    PORTION_LAST = 2, /* the last portion for this replica: flush when it is done */
};

/* The vector of whose elements a FETCH asks. */
enum fetch_vector {
    FETCH_GIVEN,   /* of what BEGIN says: t, or, with `rows`, D */
    FETCH_POINT,   /* of t, */
    FETCH_MARGINS, /* or of Z, whatever BEGIN says */
    FETCH_VECTORS,
};

enum stage_encoding {
    STAGE_NONE,   /* no elements: the evaluation has no sums, a bound was exceeded, or the flush
                     has nothing of this shard's */
    STAGE_DENSE,  /* sums one behind the other, int64 each, bulk */
    STAGE_SPARSE, /* `entries` offsets (u32), padded to 8 bytes, then as many int64, bulk */
    STAGE_BITMAP, /* words (u64) with a bit a sum, the lowest first, then an int64 for each of the
                     `entries` bits that are set, bulk: so its length tells how many words */
};

/* Where the values of a sparse slice begin, and where they end; at most 2³⁴ entries. */
static inline size_t stage_sparse_values_at(uint64_t entries) {
    return (size_t)(entries + 1) / 2 * 8;
}
static inline size_t stage_sparse_bytes(uint64_t entries) {
    return stage_sparse_values_at(entries) + (size_t)entries * sizeof(int64_t);
}

/* Where the values of a bitmap of so many sums begin, and where they end. */
static inline size_t stage_bitmap_values_at(uint64_t sums) {
    return (size_t)(sums + 63) / 64 * 8;
}
static inline size_t stage_bitmap_bytes(uint64_t sums, uint64_t entries) {
    return stage_bitmap_values_at(sums) + (size_t)entries * sizeof(int64_t);
}

enum message_type {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) MESSAGE_##NAME = (number),
#include "wire/messages.def"
};

#define U8(field) uint8_t field;
#define U32(field) uint32_t field;
#define U64(field) uint64_t field;
#define I64(field) int64_t field;
#define F64(field) double field;
#define TEXT(field) const char *field;
#define BLOB(field) struct blob field;
#define RUNS(field) struct chunk_ranges field;
#define U64S(field) struct u64_list field;
#define PARTS(field) struct part_list field;
#define FLUSH(field) struct flush_id field;
#define BOUNDS(field) struct bounds field;
#define MAXIMA(field) struct maxima field;
#define IN(section) struct section_##section section;
#define SECTION(name, text, fields)                                                                \
    struct section_##name {                                                                        \
        fields                                                                                     \
    };
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    struct message_##name {                                                                        \
        fields                                                                                     \
    };
#include "wire/messages.def"

/* Raw elements that travel with a message, outside its body. Where the two ends share a host,
 * memory of a segment (wire/bulk.h) is handed over in place; elsewhere bytes are copied.
 * Received: `data` is 64-byte aligned and valid in the call that brings it; bulk_keep() in
 * wire/bulk.h keeps it longer. */
struct kept_bulk;
struct bulk_holder { /* who received bulk, and can give it away */
    void (*keep)(struct bulk_holder *holder, struct kept_bulk *kept);
};
struct bulk {
    const void *data;
    size_t length;            /* bytes */
    struct segment *segment;  /* sending: the segment that holds `data`, or NULL: copy */
    struct bulk_holder *from; /* received: who has it; NULL: nobody, it is copied to be kept */
};

struct message {
    enum message_type type;
    uint64_t term;
    union {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) struct message_##name name;
#include "wire/messages.def"
    };
    struct bulk bulk;
};

/* "STAGE"; "?" for a number that is none. */
const char *message_name(unsigned type);

/* Largest body of a message; 0 for a number that is none. */
size_t message_body_max(unsigned type);
bool message_has_bulk(unsigned type);

/* The numbers of all messages, for tables and fuzzers; *count of them. */
const uint16_t *message_types(size_t *count);

/* Appends the body of `message` (not its bulk). */
void message_encode(const struct message *message, struct bytes *body);

/* Why a message is invalid for any receiver (a constant); NULL if it is valid. Checks fields and
 * bulk. Roles get valid messages only: see wire/validity.c. */
const char *message_fault(const struct message *message);

/* Decodes a body of `length` bytes, 8-byte aligned; 0, or a negative number with a reason in *why
 * (a constant). The message's type and body only: term and bulk are the frame's. */
int message_decode(unsigned type, const void *body, size_t length, struct message *message,
                   const char **why);

/* The messages that a role's state machine wants to send, with their receivers, in order.
 *
 * Adding a message encodes its body at once, so its fields need not outlive the call. Bulk is only
 * referenced. It must not change until the I/O shell has sent the messages, which it does right
 * after each step; bulk in a segment must not change for longer (wire/bulk.h). */

struct envelope {
    uint32_t to; /* a link number; each role says what its numbers mean */
    enum message_type type;
    uint64_t term;
    size_t body_offset; /* in outbox.bodies; a multiple of 8 */
    size_t body_length;
    struct bulk bulk;
    void *owned; /* holds the bulk and goes with the message; or NULL */
};

struct outbox {
    struct envelope *envelopes;
    size_t count, capacity;
    struct bytes bodies;
};

void outbox_init(struct outbox *outbox);
void outbox_release(struct outbox *outbox);
void outbox_clear(struct outbox *outbox);
void outbox_add(struct outbox *outbox, uint32_t to,
                const struct message *message); /* a valid one */

/* Adds a message; `bulk`, from malloc(), holds the bulk of the message and becomes the outbox's. */
void outbox_add_owned(struct outbox *outbox, uint32_t to, const struct message *message,
                      void *bulk);
const void *outbox_body(const struct outbox *outbox, const struct envelope *envelope);

#endif
