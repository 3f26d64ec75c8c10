/* Numbers that are put to far places of an array come there, in whatever order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "model/scatter.h"

enum { MOST = 1000, STEP = 379 }; /* which has no factor in common with any count below */

static void every_number_comes_to_its_place(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 2, 63, 64, 65, 127, 1000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (uint32_t waiting = 1; waiting <= 20; waiting += 6) {
            double into[MOST] = {0};
            struct scatter *scatter = scatter_new(into, counts[c], waiting);
            for (uint64_t i = 0; i < counts[c]; i++)
                scatter_put(scatter, i * STEP % counts[c], (double)(i * STEP % counts[c]) + 1);
            scatter_settle(scatter);
            scatter_free(scatter);
            for (uint64_t i = 0; i < MOST; i++)
                assert_true(into[i] == (i < counts[c] ? (double)i + 1 : 0));
        }
}

static void of_two_numbers_for_a_place_the_later_one_stays(void **state) {
    (void)state;
    double into[MOST] = {0};
    struct scatter *scatter = scatter_new(into, MOST, 3);
    scatter_put(scatter, 500, 1);
    scatter_put(scatter, 500, 2);
    assert_true(into[500] == 0); /* it waits */
    scatter_settle(scatter);
    assert_true(into[500] == 2);
    scatter_put(scatter, 500, 3);
    scatter_free(scatter);
    assert_true(into[500] == 2);
}

SUITE(scatter) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_comes_to_its_place),
        cmocka_unit_test(of_two_numbers_for_a_place_the_later_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
