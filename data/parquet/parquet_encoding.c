/* How the values of a page are written: the encodings of apache/parquet-format. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/parquet/parquet.h"
#include "numeric/clones.h"

static const char *const names[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};

const char *parquet_encoding_name(uint32_t encoding) {
    return encoding < sizeof names / sizeof *names ? names[encoding] : NULL;
}

bool parquet_varint(struct cursor *from, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(from);
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return !from->failed;
    }
    return false;
}

static uint64_t load(const uint8_t *at, size_t length) {
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Integer `i` of those of `bits` bits, 0 to 64, that stand one after the other from `at` on,
 * lowest bits first. */
static inline uint64_t bits_at(const uint8_t *at, const uint8_t *end, unsigned bits, uint64_t i) {
    uint64_t bit = i * bits;
    const uint8_t *first = at + bit / 8;
    unsigned shift = bit % 8;
    uint64_t value;
    if (!bits)
        return 0;
    if (end - first >= 8)
        memcpy(&value, first, 8); /* this machine's order is the file's */
    else
        value = load(first, (size_t)(end - first));
    value >>= shift;
    if (bits + shift > 64)
        value |= (uint64_t)first[8] << (64 - shift);
    return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bits_at() reads words as they are");

/* ---- runs ---- */

/* Reads an integer of up to 32 bits, where eight bytes are there. */
static inline uint32_t whole_bits_at(const uint8_t *at, unsigned bits, unsigned i) {
    uint64_t value;
    memcpy(&value, at + i * bits / 8, sizeof value);
    return (uint32_t)(value >> i * bits % 8 & ((UINT64_C(1) << bits) - 1));
}

/* Eight integers at a time, while eight bytes can be loaded for each. The number of bits is a
 * constant for the compiler. */
__attribute__((always_inline)) static inline uint32_t
unpack_eights(const uint8_t *at, const uint8_t *end, unsigned bits, uint32_t count, uint32_t *to) {
    uint32_t done = 0;
    for (; count - done >= 8 && (size_t)(end - at) >= bits + 8; done += 8, at += bits)
        UNROLL for (unsigned i = 0; i < 8; i++) to[done + i] = whole_bits_at(at, bits, i);
    return done;
}

#define UNPACK(bits)                                                                               \
    case bits:                                                                                     \
        return unpack_eights(at, end, bits, count, to)

/* Returns how many of the integers were unpacked. */
static uint32_t unpack_most(const uint8_t *at, const uint8_t *end, unsigned bits, uint32_t count,
                            uint32_t *to) {
    switch (bits) {
        UNPACK(1);
        UNPACK(2);
        UNPACK(3);
        UNPACK(4);
        UNPACK(5);
        UNPACK(6);
        UNPACK(7);
        UNPACK(8);
        UNPACK(9);
        UNPACK(10);
        UNPACK(11);
        UNPACK(12);
        UNPACK(13);
        UNPACK(14);
        UNPACK(15);
        UNPACK(16);
        UNPACK(17);
        UNPACK(18);
        UNPACK(19);
        UNPACK(20);
        UNPACK(21);
        UNPACK(22);
        UNPACK(23);
        UNPACK(24);
    default:
        return unpack_eights(at, end, bits, count, to);
    }
}

/* Integers in groups of eight. The last group may be cut short by the end of the page, if that has
 * all that are wanted. */
static uint32_t take_packed(struct cursor *from, unsigned bits, uint64_t groups, uint32_t left,
                            uint32_t *to) {
    uint32_t count = groups < left / 8 + 1 ? (uint32_t)groups * 8 : left;
    count = count < left ? count : left;
    uint64_t there = cursor_left(from), bytes = !bits ? 0 : groups > there ? there : groups * bits;
    bytes = bytes < there ? bytes : there;
    if (((uint64_t)count * bits + 7) / 8 > bytes) {
        from->failed = true;
        return 0;
    }
    const uint8_t *at = cursor_take(from, bytes), *end = at + bytes;
    for (uint32_t i = unpack_most(at, end, bits, count, to); i < count; i++)
        to[i] = (uint32_t)bits_at(at, end, bits, i);
    assert(count <= left);
    return count;
}

static uint32_t take_run(struct cursor *from, unsigned bits, uint64_t length, uint32_t left,
                         uint32_t *to) {
    size_t bytes = (bits + 7) / 8;
    const uint8_t *at = cursor_take(from, bytes);
    if (from->failed)
        return 0;
    uint32_t value = (uint32_t)load(at, bytes), count = length < left ? (uint32_t)length : left;
    for (uint32_t i = 0; i < count; i++)
        to[i] = value;
    return count;
}

bool parquet_runs(struct cursor *from, unsigned bits, uint32_t count, uint32_t *to) {
    uint32_t done = 0;
    assert(bits <= 32);
    while (done < count) {
        uint64_t head;
        if (!parquet_varint(from, &head) || !(head >> 1)) /* what is empty never ends */
            return false;
        done += head & 1 ? take_packed(from, bits, head >> 1, count - done, to + done)
                         : take_run(from, bits, head >> 1, count - done, to + done);
        assert(done <= count);
        if (from->failed)
            return false;
    }
    return true;
}

/* ---- levels ---- */

/* Spreads bits over bytes, eight at a time; returns how many are set. */
static uint32_t spread_bits(const uint8_t *bits, uint32_t count, uint8_t *to) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i += 8) {
        uint64_t bytes = bits[i / 8] * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
        uint32_t here = count - i < 8 ? count - i : 8;
        bytes = (bytes + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
        bytes &= here < 8 ? (UINT64_C(1) << 8 * here) - 1 : UINT64_MAX;
        memcpy(to + i, &bytes, here);
        set += (uint32_t)__builtin_popcountll(bytes);
    }
    assert(set <= count);
    return set;
}

bool parquet_levels(struct cursor *from, uint32_t count, uint8_t *to, uint32_t *set) {
    *set = 0;
    for (uint32_t done = 0; done < count;) {
        uint64_t head;
        if (!parquet_varint(from, &head) || !(head >> 1)) /* what is empty never ends */
            return false;
        uint64_t length = head & 1 ? (head >> 1 < count ? head >> 1 : count) * 8 : head >> 1;
        uint32_t here = length < count - done ? (uint32_t)length : count - done;
        const uint8_t *at = cursor_take(from, head & 1 ? (here + 7u) / 8 : 1);
        if (from->failed || (!(head & 1) && *at > 1))
            return false;
        if (head & 1)
            *set += spread_bits(at, here, to + done);
        else
            memset(to + done, *at, here);
        *set += head & 1 || !*at ? 0 : here;
        done += here;
    }
    return true;
}

/* ---- differences ---- */

#define MINIBLOCKS_MAX 512

struct delta_block {
    uint64_t values, parts; /* of a block; and in how many parts it is */
    uint64_t part;          /* values of a part */
};

static bool read_delta_head(struct cursor *from, struct delta_block *block, uint64_t *count,
                            uint64_t *first) {
    uint64_t zigzag;
    if (!parquet_varint(from, &block->values) || !parquet_varint(from, &block->parts) ||
        !parquet_varint(from, count) || !parquet_varint(from, &zigzag))
        return false;
    *first = parquet_zigzag(zigzag);
    if (!block->parts || block->parts > MINIBLOCKS_MAX || !block->values ||
        block->values > UINT32_MAX || block->values % block->parts)
        return false;
    block->part = block->values / block->parts;
    return block->part % 8 == 0;
}

/* The values of a part: at most `left`, although a whole part is there. */
static bool take_deltas(struct cursor *from, unsigned bits, uint64_t part, uint32_t left,
                        uint64_t least, uint64_t *to) {
    uint32_t count = part < left ? (uint32_t)part : left;
    uint64_t bytes = part / 8 * bits, needed = ((uint64_t)count * bits + 7) / 8;
    if (bits > 64 || needed > cursor_left(from))
        return false;
    bytes = bytes < cursor_left(from) ? bytes : cursor_left(from); /* the last part may end early */
    const uint8_t *at = cursor_take(from, bytes), *end = at + bytes;
    uint64_t value = to[-1];
    for (uint32_t i = 0; i < count; i++)
        to[i] = value += least + bits_at(at, end, bits, i);
    return true;
}

bool parquet_deltas(struct cursor *from, uint32_t count, uint64_t *to) {
    struct delta_block block;
    uint64_t said, first, zigzag;
    if (!read_delta_head(from, &block, &said, &first) || said != count)
        return false;
    if (count)
        to[0] = first;
    for (uint32_t done = 1; done < count;) {
        if (!parquet_varint(from, &zigzag))
            return false;
        uint64_t least = parquet_zigzag(zigzag);
        const uint8_t *bits = cursor_take(from, block.parts);
        for (uint64_t i = 0; !from->failed && i < block.parts && done < count; i++) {
            if (!take_deltas(from, bits[i], block.part, count - done, least, to + done))
                return false;
            done += block.part < count - done ? (uint32_t)block.part : count - done;
        }
        assert(done <= count);
        if (from->failed)
            return false;
    }
    return true;
}

/* ---- texts ---- */

/* Texts as they are made: data grows, with a 0 after each. */
struct text_writer {
    struct parquet_values *values;
    size_t length, capacity;
};

/* Room for a text of so many bytes; NULL if they are too many. */
static uint8_t *add_text(struct text_writer *writer, uint32_t i, uint64_t length) {
    if (length >= PARQUET_PAGE_BYTES_MAX - writer->length)
        return NULL;
    size_t needed = writer->length + length + 1;
    if (needed > writer->capacity) {
        writer->capacity = 2 * needed + 4096;
        writer->values->data = memory_resize(writer->values->data, writer->capacity, 1);
    }
    uint8_t *at = writer->values->data + writer->length;
    writer->values->text[i] = (struct parquet_text){(uint32_t)writer->length, (uint32_t)length};
    at[length] = 0;
    writer->length = needed;
    return at;
}

static bool read_plain_texts(struct cursor *from, uint32_t count, struct text_writer *writer) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = cursor_u32(from);
        const uint8_t *bytes = cursor_take(from, length);
        uint8_t *at = from->failed ? NULL : add_text(writer, i, length);
        if (!at)
            return false;
        memcpy(at, bytes, length);
    }
    return true;
}

/* The texts stand one after the other, after their lengths. Each begins with `prefix` bytes of
 * the one before, unless there are none. */
static bool read_delta_texts(struct cursor *from, const uint64_t *prefix, const uint64_t *length,
                             uint32_t count, struct text_writer *writer) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kept = prefix ? prefix[i] : 0;
        uint32_t before = i ? writer->values->text[i - 1].length : 0;
        if (length[i] > cursor_left(from) || kept > before)
            return false;
        const uint8_t *bytes = cursor_take(from, length[i]);
        uint8_t *at = add_text(writer, i, kept + length[i]);
        if (!at)
            return false;
        if (kept)
            memcpy(at, writer->values->data + writer->values->text[i - 1].start, kept);
        memcpy(at + kept, bytes, length[i]);
    }
    return true;
}

bool parquet_texts(struct cursor *from, uint32_t encoding, uint32_t count,
                   struct parquet_values *values) {
    struct text_writer writer = {.values = values, .capacity = cursor_left(from) + 1};
    bool sound, delta = encoding != PARQUET_ENCODED_PLAIN;
    uint64_t *length = memory_new(delta ? count : 0, sizeof *length), *prefix = NULL;
    values->text = memory_new(count, sizeof *values->text);
    values->data = memory_new(writer.capacity, 1);
    if (encoding == PARQUET_ENCODED_DELTA_TEXT)
        prefix = memory_new(count, sizeof *prefix);
    if (!delta)
        sound = read_plain_texts(from, count, &writer);
    else
        sound = (!prefix || parquet_deltas(from, count, prefix)) &&
                parquet_deltas(from, count, length) &&
                read_delta_texts(from, prefix, length, count, &writer);
    free(prefix);
    free(length);
    return sound;
}

/* ---- bytes that stand apart ---- */

bool parquet_split(struct cursor *from, uint32_t width, uint32_t count, uint8_t *to) {
    const uint8_t *at = cursor_take(from, (size_t)width * count);
    if (from->failed)
        return false;
    for (uint32_t k = 0; k < width; k++, at += count)
        for (uint32_t i = 0; i < count; i++)
            to[(size_t)i * width + k] = at[i];
    return true;
}
