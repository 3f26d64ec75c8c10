/* Numbers of feature ids: as many as columns may have, and ids of 48 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/limits.h"
#include "data/source/dictionary.h"
#include "tests/unit/suites.h"

/* Beyond 32 bits, too. */
static const uint64_t ids[] = {1, UINT64_C(1) << 32, 7, FEATURE_ID_MAX, (UINT64_C(1) << 32) + 1};
enum { IDS = sizeof ids / sizeof *ids };

static void ids_are_numbered_as_they_come(void **state) {
    (void)state;
    struct dictionary dictionary;
    dictionary_init(&dictionary);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < IDS; i++)
            assert_int_equal(dictionary_add(&dictionary, ids[i]), i);
    assert_int_equal(dictionary.count, IDS);
    dictionary_release(&dictionary);
}

/* As if all others were there. */
static void beyond_the_limit_nothing_is_added_and_all_is_found(void **state) {
    (void)state;
    struct dictionary dictionary;
    dictionary_init(&dictionary);
    for (uint32_t i = 0; i < IDS; i++)
        dictionary_add(&dictionary, ids[i]);
    dictionary.count = FEATURES_MAX;
    assert_int_equal(dictionary_add(&dictionary, 8), DICTIONARY_NONE);
    assert_int_equal(dictionary_add(&dictionary, FEATURE_ID_MAX - 1), DICTIONARY_NONE);
    for (uint32_t i = 0; i < IDS; i++)
        assert_int_equal(dictionary_add(&dictionary, ids[i]), i);
    dictionary_release(&dictionary);
}

/* As many parts as would be for eight times what one may have. */
static void parts_number_ids_as_they_come_together(void **state) {
    (void)state;
    enum { MANY = 4000, PART = 1000 };
    const uint64_t far = UINT64_C(1) << 40;
    struct wide_dictionary dictionary;
    wide_dictionary_init(&dictionary, 8 * PART, PART);
    assert_true(dictionary.part_bits > 2);
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < MANY; i++)
            assert_int_equal(wide_dictionary_add(&dictionary, far + i * i), i);
    assert_int_equal(wide_dictionary_count(&dictionary), MANY);
    for (size_t i = 0; i < (size_t)1 << dictionary.part_bits; i++)
        assert_in_range(dictionary.part[i].ids.count, 1, PART);
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(wide_dictionary_find(&dictionary, far + i * i), i);
    assert_true(wide_dictionary_find(&dictionary, far + 2) == UINT64_MAX);
    dictionary.count = COLUMNS_MAX; /* as if all others were there */
    assert_true(wide_dictionary_add(&dictionary, far + 2) == UINT64_MAX);
    assert_int_equal(wide_dictionary_add(&dictionary, far + 9), 3);
    dictionary.count = MANY;
    uint64_t *id = wide_dictionary_take_ids(&dictionary);
    for (uint64_t i = 0; i < MANY; i++)
        assert_int_equal(id[i], far + i * i);
    free(id);
    wide_dictionary_release(&dictionary);
}

SUITE(dictionary) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_numbered_as_they_come),
        cmocka_unit_test(beyond_the_limit_nothing_is_added_and_all_is_found),
        cmocka_unit_test(parts_number_ids_as_they_come_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
