/* Permutations as functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"

#define KEYS 20

static void goes_everywhere_once(uint64_t count, uint64_t key) {
    uint8_t *hit = memory_new(count, 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t to = permutation_at(i, count, key);
        assert_true(to < count);
        assert_true(permutation_inverse(to, count, key) == i);
        assert_int_equal(hit[to]++, 0);
    }
    free(hit);
}

static void every_number_is_reached_once_and_found_again(void **state) {
    (void)state;
    for (uint64_t count = 1; count < 300; count++)
        for (uint64_t number = 0; number < KEYS; number++)
            goes_everywhere_once(count, permutation_key(count, number));
    goes_everywhere_once(65536, 1);
    goes_everywhere_once(65537, 2);
    goes_everywhere_once(1000003, 3);
}

static void the_order_is_the_one_that_is_documented(void **state) {
    (void)state;
    static const uint64_t expected[10] = {8, 5, 4, 6, 7, 2, 1, 0, 3, 9};
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(permutation_at(i, 10, permutation_key(1, 0)), expected[i]);
    assert_true(permutation_at(UINT64_MAX - 1, UINT64_MAX, 7) == UINT64_C(0xaac6ac8a6eeffce1));
}

static void each_place_is_taken_about_equally_often(void **state) {
    (void)state;
    enum { COUNT = 10, TRIES = 20000 };
    static uint32_t times[COUNT][COUNT];
    memset(times, 0, sizeof times);
    for (uint64_t seed = 0; seed < TRIES; seed++)
        for (uint64_t i = 0; i < COUNT; i++)
            times[i][permutation_at(i, COUNT, permutation_key(seed, 1))]++;
    double chi_square = 0, mean = (double)TRIES / COUNT;
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned j = 0; j < COUNT; j++)
            chi_square += (times[i][j] - mean) * (times[i][j] - mean) / mean;
    assert_true(chi_square < 140); /* 81 degrees of freedom: exceeded once in 20,000 cases */
}

static void neighbours_are_torn_apart(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    uint32_t followed = 0;
    for (uint64_t i = 0; i + 1 < COUNT; i++)
        followed += permutation_at(i, COUNT, 5) + 1 == permutation_at(i + 1, COUNT, 5);
    assert_true(followed < 10); /* 1 is to be expected */
}

SUITE(permutation) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_reached_once_and_found_again),
        cmocka_unit_test(the_order_is_the_one_that_is_documented),
        cmocka_unit_test(each_place_is_taken_about_equally_often),
        cmocka_unit_test(neighbours_are_torn_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
