/* Bulk in fewer bytes. */
#include "tests/unit/suites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "wire/compact.h"

enum { WORDS = 5000 };

/* Of exactly that many bytes, so that a sanitizer sees what is read beyond them. */
static uint8_t *padded(const uint8_t *packed, size_t length) {
    uint8_t *copy = memory_new(length + COMPACT_PADDING, 1);
    memcpy(copy, packed, length);
    return copy;
}

/* How many bytes it takes: those that it had if it was not packed. */
static size_t packed_bytes(const void *data, size_t length) {
    uint8_t *room = memory_new(compact_room(length), 1), *back = memory_new(length + 1, 1);
    size_t packed = compact_pack(data, length, room);
    if (packed) {
        uint8_t *exact = padded(room, packed);
        assert_true(packed >= compact_least(length) &&
                    packed + COMPACT_PADDING <= compact_room(length));
        assert_true(compact_unpack(exact, packed, back, length));
        assert_memory_equal(back, data, length);
        free(exact);
    }
    free(room);
    free(back);
    return packed ? packed : length;
}

static uint64_t of_double(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double between_one_and_minus_one(struct random *random) {
    return 2 * random_unit(random) - 1;
}

static uint64_t *made(uint64_t (*word)(struct random *random, size_t i)) {
    struct random random;
    uint64_t *words = memory_new(WORDS, sizeof *words);
    random_init(&random, 1);
    for (size_t i = 0; i < WORDS; i++)
        words[i] = word(&random, i);
    return words;
}

static uint64_t any_word(struct random *random, size_t i) {
    (void)i;
    return random_next(random);
}

static uint64_t short_integer(struct random *random, size_t i) {
    uint64_t magnitude = random_next(random) >> 26;
    return i % 2 ? magnitude : -magnitude;
}

static uint64_t even_integer(struct random *random, size_t i) {
    return short_integer(random, i) << 20;
}

static uint64_t rounded_double(struct random *random, size_t i) {
    return i % 50 ? of_double((float)between_one_and_minus_one(random)) : 0;
}

static uint64_t often_the_same(struct random *random, size_t i) {
    return i % 4 ? UINT64_C(0x123456789abcdef) * (1 + random_below(random, 40))
                 : random_next(random);
}

static uint64_t two_offsets(struct random *random, size_t i) {
    uint64_t low = 40 * i + random_below(random, 20);
    return low | (low + 1 + random_below(random, 19)) << 32;
}

static void numbers_take_the_bits_that_they_need(void **state) {
    (void)state;
    const struct {
        uint64_t (*word)(struct random *random, size_t i);
        double most; /* of the bytes */
    } cases[] = {{any_word, 1},         {short_integer, .65},  {even_integer, .65},
                 {rounded_double, .55}, {often_the_same, .45}, {two_offsets, .25}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t *words = made(cases[i].word);
        size_t bytes = packed_bytes(words, WORDS * sizeof *words);
        assert_true((double)bytes <= cases[i].most * WORDS * sizeof *words);
        free(words);
    }
}

/* Also of a mixture, where forms change from block to block. */
static void every_length_comes_back(void **state) {
    (void)state;
    uint64_t *words = made(rounded_double), *others = made(two_offsets);
    memcpy(words + 100, others, 200 * sizeof *words);
    memset(words + 301, 0xff, 100 * sizeof *words);
    words[450] = UINT64_C(1) << 63;
    words[451] = of_double(-INFINITY);
    words[452] = 1;
    for (size_t length = 0; length < 4500; length++)
        assert_true(packed_bytes(words, length) <= length);
    free(words);
    free(others);
}

static void what_would_not_be_shorter_is_left_as_it_is(void **state) {
    (void)state;
    uint64_t *words = made(any_word);
    uint8_t *room = memory_new(compact_room(WORDS * sizeof *words), 1);
    assert_int_equal(compact_pack(words, WORDS * sizeof *words, room), 0);
    free(room);
    free(words);
}

/* A block of 64 zeros, with one byte changed. */
static bool unpacks_with(size_t place, uint8_t byte, size_t words, size_t packed_length) {
    uint8_t packed[COMPACT_HEADER_BYTES + COMPACT_WORDS + COMPACT_PADDING] = {0};
    uint64_t data[2 * COMPACT_WORDS];
    memset(packed, 0xff, words == COMPACT_WORDS ? 8 : words / 8);
    packed[place] = byte;
    return compact_unpack(packed, packed_length, data, words * sizeof *data);
}

static void what_no_sender_packs_is_refused(void **state) {
    (void)state;
    enum { ALL = COMPACT_HEADER_BYTES + COMPACT_WORDS };
    assert_true(unpacks_with(0, 0xff, 64, ALL));
    assert_true(unpacks_with(0, 0xff, 16, COMPACT_HEADER_BYTES + 16));
    assert_false(unpacks_with(0, 0xff, 64, ALL - 1));
    assert_false(unpacks_with(0, 0xff, 64, ALL + 1));
    assert_false(unpacks_with(0, 0xff, 64, COMPACT_HEADER_BYTES - 1));
    assert_false(unpacks_with(0, 0xff, 65, ALL));                    /* a block is missing */
    assert_false(unpacks_with(2, 1, 16, COMPACT_HEADER_BYTES + 17)); /* a repeat behind the last */
    assert_false(unpacks_with(8, COMPACT_FORMS, 64, ALL));
    assert_false(unpacks_with(9, 64, 64, ALL));
    assert_false(unpacks_with(10, COMPACT_BITS_MAX + 1, 64, ALL));
    assert_false(unpacks_with(10, 65, 64, ALL));
    assert_false(unpacks_with(12, 8, 64, ALL)); /* an exponent beyond those of doubles */
}

SUITE(compact) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_the_bits_that_they_need),
        cmocka_unit_test(every_length_comes_back),
        cmocka_unit_test(what_would_not_be_shorter_is_left_as_it_is),
        cmocka_unit_test(what_no_sender_packs_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
