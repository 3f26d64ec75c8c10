#include <assert.h>
#include <string.h>

#include "base/codec.h"
#include "base/error.h"
#include "base/hash.h"
#include "coordinator/machine/machine.h"
#include "coordinator/driver.h"

#define STATE_MAGIC 0x53544d44u /* "DMTS", little-endian */

static void serialize_members(struct codec *codec, struct coordinator *c) {
    uint32_t links = coordinator_links(c), shards = c->settings.shards;
    assert(links <= SHARDS_MAX + REPLICAS_MAX);
    serialize_u32(codec, &shards);
    serialize_fails_if(codec, shards != c->settings.shards);
    serialize_u32(codec, &links);
    for (uint32_t i = 0; i < links && !codec->in.failed; i++) {
        bool known = i < coordinator_links(c);
        uint64_t incarnation = known ? c->roster.members[i].incarnation : 0;
        serialize_u64(codec, &incarnation);
        if (known)
            c->roster.members[i].incarnation = incarnation;
    }
    serialize_u64(codec, &c->membership.incarnations);
}

static void serialize_machine(struct codec *codec, struct coordinator *c) {
    serialize_members(codec, c);
    serialize_u32(codec, &c->roster.attempt);
    driver_serialize(codec, c);
}

void state_encode(const struct coordinator *c, struct bytes *out) {
    assert(c->roster.shards == c->settings.shards && c->roster.term == c->settings.term);
    struct codec codec = {.out = out};
    size_t start = out->length;
    bytes_put_u32(out, STATE_MAGIC);
    bytes_put_u32(out, STATE_VERSION);
    serialize_machine(&codec, (struct coordinator *)c); /* appending changes nothing */
    assert(!codec.in.failed);                           /* what does not fit is never in force */
    bytes_put_u64(out, hash64(out->data + start, out->length - start));
}

/* The version of a whole record, 0 if it is damaged; *cursor stands after its head. */
static uint32_t read_head(const void *data, size_t length, struct cursor *cursor) {
    uint64_t stored;
    if (length < 16)
        return 0;
    memcpy(&stored, (const uint8_t *)data + length - 8, sizeof stored);
    *cursor = cursor_over(data, length - 8);
    bool whole = stored == hash64(data, length - 8) && cursor_u32(cursor) == STATE_MAGIC;
    return whole ? cursor_u32(cursor) : 0;
}

/* Reads into `c`, which is left in part changed if that fails. */
static bool read_record(struct coordinator *c, struct cursor cursor) {
    struct codec codec = {.in = cursor};
    serialize_machine(&codec, c);
    return !codec.in.failed && cursor_left(&codec.in) == 0;
}

bool state_decode(struct coordinator *c, const void *data, size_t length) {
    struct cursor cursor;
    if (read_head(data, length, &cursor) != STATE_VERSION)
        return false;
    struct bytes before;
    bytes_init(&before);
    state_encode(c, &before);
    bool good = read_record(c, cursor);
    if (!good) {
        bool restored = read_head(before.data, before.length, &cursor) && read_record(c, cursor);
        assert(restored);
    }
    bytes_release(&before);
    return good;
}

bool state_fits(struct coordinator *c, const void *data, size_t length) {
    struct bytes before;
    bytes_init(&before);
    state_encode(c, &before);
    bool fits = state_decode(c, data, length);
    bool restored = !fits || state_decode(c, before.data, before.length);
    assert(restored);
    bytes_release(&before);
    return fits;
}

int state_check_version(const void *data, size_t length, int64_t run) {
    struct cursor cursor;
    uint32_t version = read_head(data, length, &cursor);
    if (!version || version == STATE_VERSION)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "run %lld cannot go on: its state is of version %u, but this program reads "
                     "version %d: end the run with the program that began it, or begin another one "
                     "with --fresh",
                     (long long)run, version, STATE_VERSION);
}
