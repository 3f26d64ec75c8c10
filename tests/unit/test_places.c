#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/places.h"

static void a_place_is_the_number_of_lesser_keys(void **state) {
    struct random random;
    (void)state;
    random_init(&random, 5);
    for (uint32_t count = 0; count <= PLACES_MOST; count++) {
        uint32_t key[PLACES_MOST], place[PLACES_MOST];
        for (uint32_t i = 0; i < PLACES_MOST; i++)
            key[i] = (uint32_t)(random_next(&random) & INT32_MAX);
        key[count / 2] = INT32_MAX;
        key[count / 3] = 0;
        assert_true(places_find(key, count, place) || count < 2);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t less = 0;
            for (uint32_t k = 0; k < count; k++)
                less += key[k] < key[i];
            assert_int_equal(place[i], less);
        }
    }
}

static void keys_that_are_the_same_are_told(void **state) {
    uint32_t key[PLACES_MOST] = {7, 3, 9, 4, 3}, place[PLACES_MOST];
    (void)state;
    assert_true(places_find(key, 4, place));
    assert_false(places_find(key, 5, place));
    key[4] = 1;
    assert_true(places_find(key, 5, place));
    assert_true(places_find(key, 1, place));
    assert_true(places_find(key, 0, place));
}

SUITE(places) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_the_number_of_lesser_keys),
        cmocka_unit_test(keys_that_are_the_same_are_told),
    };
    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
