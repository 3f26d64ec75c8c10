#include "wire/compact.h"

#include <assert.h>
#include <string.h>

#define SIGN (UINT64_C(1) << 63)

enum {
    WORD_BITS = 64,
    PLACES = 256,      /* of the table */
    EXPONENT_BIT = 52, /* of a double */
    EXPONENT_MAX = 2047,
    SAVED = 8,  /* one byte in so many, or it does not pay */
    AHEAD = 16, /* what it may be behind that on the way, one byte in so many of all */
    BLOCK_BYTES = COMPACT_WORDS * 8,
    BLOCK_ROOM = COMPACT_HEADER_BYTES + BLOCK_BYTES,
};

static_assert(PLACES == 1 << (64 - 56) && COMPACT_WORDS == 64,
              "a place is a byte, a word has a bit");

/* What both ends know of the words before. */
struct history {
    uint64_t table[PLACES];
    uint32_t offset; /* the last of the last word that was no repeat */
};

struct block {
    uint64_t repeats;
    enum compact_form form;
    unsigned shift, bits;
    uint64_t base; /* of doubles: the power of two of the least exponent, as bits */
};

static size_t numbers_bytes(size_t count, unsigned bits) {
    return (count * bits + 7) / 8;
}

/* ---- a block's header ---- */

static uint8_t *put_header(uint8_t *at, const struct block *block) {
    const uint8_t rest[] = {(uint8_t)block->form, (uint8_t)block->shift, (uint8_t)block->bits,
                            (uint8_t)(block->base >> EXPONENT_BIT),
                            (uint8_t)(block->base >> (EXPONENT_BIT + 8))};
    memcpy(at, &block->repeats, sizeof block->repeats);
    memcpy(at + sizeof block->repeats, rest, sizeof rest);
    static_assert(sizeof block->repeats + sizeof rest == COMPACT_HEADER_BYTES, "as documented");
    return at + COMPACT_HEADER_BYTES;
}

/* False if no block of `words` words has it. */
static bool take_header(const uint8_t *at, size_t words, struct block *block) {
    const uint8_t *rest = at + sizeof block->repeats;
    memcpy(&block->repeats, at, sizeof block->repeats);
    block->form = (enum compact_form)rest[0];
    block->shift = rest[1];
    block->bits = rest[2];
    unsigned exponent = rest[3] | (unsigned)rest[4] << 8;
    block->base = (uint64_t)exponent << EXPONENT_BIT;
    return rest[0] < COMPACT_FORMS && block->shift < 64 && exponent <= EXPONENT_MAX &&
           (block->bits <= COMPACT_BITS_MAX || block->bits == WORD_BITS) &&
           (words == COMPACT_WORDS || !(block->repeats >> words));
}

/* ---- numbers ---- */

/* Each function is made three times, with a loop that knows its form. */
#define PER_FORM static inline __attribute__((always_inline))

PER_FORM uint64_t number_of(const struct block *block, enum compact_form form, uint64_t word,
                            uint32_t *offset) {
    uint64_t sign = -(word >> 63);
    uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32), before = *offset;
    if (form == COMPACT_INTEGERS)
        return ((word ^ sign) >> block->shift) << 1 | word >> 63;
    if (form == COMPACT_DOUBLES)
        return (((word & ~SIGN) - block->base) >> block->shift) << 1 | word >> 63;
    *offset = high;
    return (uint32_t)(low - before) | (uint64_t)(uint32_t)(high - low) << block->bits / 2;
}

PER_FORM uint64_t word_of(const struct block *block, enum compact_form form, uint64_t number,
                          uint32_t *offset) {
    uint64_t sign = -(number & 1), half = block->bits / 2;
    if (form == COMPACT_INTEGERS)
        return ((number >> 1) ^ sign) << block->shift;
    if (form == COMPACT_DOUBLES)
        return ((number >> 1 << block->shift) + block->base) | (sign & SIGN);
    uint32_t low = *offset + (uint32_t)(number & ((UINT64_C(1) << half) - 1));
    *offset = low + (uint32_t)(number >> half);
    return low | (uint64_t)*offset << 32;
}

/* Up to 7 bits wait for a whole byte. */
PER_FORM void put_numbers(const struct block *block, enum compact_form form, const uint64_t *words,
                          size_t count, uint32_t offset, uint8_t *at) {
    uint64_t waiting = 0;
    unsigned wait = 0;
    for (size_t i = 0; i < count; i++) {
        waiting |= number_of(block, form, words[i], &offset) << wait;
        memcpy(at, &waiting, sizeof waiting);
        wait += block->bits;
        at += wait / 8;
        waiting >>= wait / 8 * 8;
        wait %= 8;
    }
}

PER_FORM void take_numbers(const struct block *block, enum compact_form form, uint64_t *words,
                           size_t count, uint32_t offset, const uint8_t *at) {
    const uint64_t mask = (UINT64_C(1) << block->bits) - 1;
    for (size_t i = 0, bit = 0; i < count; i++, bit += block->bits) {
        uint64_t bits;
        memcpy(&bits, at + bit / 8, sizeof bits);
        words[i] = word_of(block, form, bits >> bit % 8 & mask, &offset);
    }
}

static void pack_numbers(const struct block *block, const uint64_t *words, size_t count,
                         uint32_t offset, uint8_t *at) {
    if (block->bits == WORD_BITS)
        memcpy(at, words, count * sizeof *words);
    else if (block->form == COMPACT_INTEGERS)
        put_numbers(block, COMPACT_INTEGERS, words, count, offset, at);
    else if (block->form == COMPACT_DOUBLES)
        put_numbers(block, COMPACT_DOUBLES, words, count, offset, at);
    else
        put_numbers(block, COMPACT_OFFSETS, words, count, offset, at);
}

static void unpack_numbers(const struct block *block, uint64_t *words, size_t count,
                           uint32_t offset, const uint8_t *at) {
    if (block->bits == WORD_BITS)
        memcpy(words, at, count * sizeof *words);
    else if (block->form == COMPACT_INTEGERS)
        take_numbers(block, COMPACT_INTEGERS, words, count, offset, at);
    else if (block->form == COMPACT_DOUBLES)
        take_numbers(block, COMPACT_DOUBLES, words, count, offset, at);
    else
        take_numbers(block, COMPACT_OFFSETS, words, count, offset, at);
}

/* ---- the form of a block ---- */

/* The extent of the words of a block that are no repeats. */
struct extent {
    uint64_t bits;        /* that any of them has */
    uint64_t magnitude;   /* that any of them has, where the bits of negative words are turned */
    uint64_t least, most; /* without sign */
    uint32_t rise;        /* that any offset has beyond the one before */
};

static struct extent extent_of(const uint64_t *words, size_t count, uint32_t offset) {
    struct extent e = {.least = UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        uint64_t word = words[i], plain = word & ~SIGN;
        uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);
        e.bits |= word;
        e.magnitude |= word ^ -(word >> 63);
        e.least = plain < e.least ? plain : e.least;
        e.most = plain > e.most ? plain : e.most;
        e.rise |= (low - offset) | (high - low);
        offset = high;
    }
    return e;
}

static unsigned bits_of(uint64_t number) {
    return number ? WORD_BITS - (unsigned)__builtin_clzll(number) : 0;
}

static void choose_form(struct block *block, const struct extent *e) {
    unsigned shift = e->bits ? (unsigned)__builtin_ctzll(e->bits) : 0;
    uint64_t base = e->least >> EXPONENT_BIT << EXPONENT_BIT;
    unsigned integers = bits_of(e->magnitude >> shift) + 1;
    unsigned doubles = bits_of((e->most - base) >> shift) + 1, offsets = 2 * bits_of(e->rise);
    block->form = COMPACT_INTEGERS;
    block->bits = integers;
    if (doubles < block->bits) {
        block->form = COMPACT_DOUBLES;
        block->bits = doubles;
    }
    if (offsets < block->bits) {
        block->form = COMPACT_OFFSETS;
        block->bits = offsets;
    }
    block->shift = shift;
    block->base = base;
    if (block->bits > COMPACT_BITS_MAX)
        block->bits = WORD_BITS;
}

/* ---- blocks ---- */

/* What is a repeat, and what is not, without a branch: neither is rare. */
static uint64_t find_repeats(struct history *history, const uint8_t *data, size_t words,
                             uint8_t *places, uint64_t *others) {
    uint64_t repeats = 0;
    size_t found = 0, other = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, data + i * sizeof word, sizeof word);
        unsigned place = compact_place(word);
        uint64_t repeat = history->table[place] == word;
        history->table[place] = word;
        places[found] = (uint8_t)place;
        others[other] = word;
        repeats |= repeat << i;
        found += repeat;
        other += !repeat;
    }
    return repeats;
}

static uint8_t *pack_block(struct history *history, const uint8_t *data, size_t words,
                           uint8_t *at) {
    uint64_t others[COMPACT_WORDS];
    uint8_t places[COMPACT_WORDS];
    struct block block = {.repeats = find_repeats(history, data, words, places, others)};
    size_t repeats = (size_t)__builtin_popcountll(block.repeats), count = words - repeats;
    assert(words <= COMPACT_WORDS && repeats <= words);
    if (count) {
        const struct extent extent = extent_of(others, count, history->offset);
        choose_form(&block, &extent);
    }
    at = put_header(at, &block);
    memcpy(at, places, repeats);
    at += repeats;
    pack_numbers(&block, others, count, history->offset, at);
    if (count)
        history->offset = (uint32_t)(others[count - 1] >> 32);
    return at + numbers_bytes(count, block.bits);
}

static void put_words(struct history *history, const struct block *block, size_t words,
                      const uint8_t *places, const uint64_t *others, uint8_t *data) {
    for (size_t i = 0; i < words; i++) {
        uint64_t repeat = block->repeats >> i & 1;
        uint64_t word = repeat ? history->table[*places] : *others;
        history->table[compact_place(word)] = word;
        memcpy(data + i * sizeof word, &word, sizeof word);
        places += repeat;
        others += !repeat;
    }
}

/* What follows the block; NULL if there is none that ends at `end` or before. */
static const uint8_t *unpack_block(struct history *history, const uint8_t *at, const uint8_t *end,
                                   size_t words, uint8_t *data) {
    uint64_t others[COMPACT_WORDS + 1]; /* the last word may be a repeat, behind all others */
    struct block block;
    if (end - at < COMPACT_HEADER_BYTES || !take_header(at, words, &block))
        return NULL;
    size_t repeats = (size_t)__builtin_popcountll(block.repeats), count = words - repeats;
    size_t length = repeats + numbers_bytes(count, block.bits);
    at += COMPACT_HEADER_BYTES;
    if ((size_t)(end - at) < length)
        return NULL;
    unpack_numbers(&block, others, count, history->offset, at + repeats);
    others[count] = 0;
    put_words(history, &block, words, at, others, data);
    if (count)
        history->offset = (uint32_t)(others[count - 1] >> 32);
    return at + length;
}

/* ---- bulk ---- */

size_t compact_room(size_t length) {
    return length - length / SAVED + length / AHEAD + BLOCK_ROOM + COMPACT_PADDING;
}

size_t compact_least(size_t length) {
    size_t words = length / sizeof(uint64_t);
    return (words + COMPACT_WORDS - 1) / COMPACT_WORDS * COMPACT_HEADER_BYTES +
           length % sizeof(uint64_t);
}

size_t compact_pack(const void *data, size_t length, uint8_t *packed) {
    const uint8_t *from = data, *end = from + length / sizeof(uint64_t) * sizeof(uint64_t);
    struct history history = {0};
    uint8_t *at = packed;
    while (from < end) {
        size_t bytes = end - from < BLOCK_BYTES ? (size_t)(end - from) : BLOCK_BYTES;
        at = pack_block(&history, from, bytes / sizeof(uint64_t), at);
        from += bytes;
        size_t done = (size_t)(from - (const uint8_t *)data);
        if ((size_t)(at - packed) > done - done / SAVED + length / AHEAD)
            return 0;
    }
    size_t rest = length % sizeof(uint64_t);
    memcpy(at, from, rest);
    at += rest;
    return (size_t)(at - packed) <= length - length / SAVED ? (size_t)(at - packed) : 0;
}

bool compact_unpack(const uint8_t *packed, size_t packed_length, void *data, size_t length) {
    const uint8_t *at = packed, *end = packed + packed_length;
    uint8_t *into = data, *last = into + length / sizeof(uint64_t) * sizeof(uint64_t);
    struct history history = {0};
    while (into < last) {
        size_t bytes = last - into < BLOCK_BYTES ? (size_t)(last - into) : BLOCK_BYTES;
        at = unpack_block(&history, at, end, bytes / sizeof(uint64_t), into);
        if (!at)
            return false;
        into += bytes;
    }
    size_t rest = length % sizeof(uint64_t);
    if ((size_t)(end - at) != rest)
        return false;
    memcpy(into, at, rest);
    return true;
}
