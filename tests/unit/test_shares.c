/* How a short evaluation is shared out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator/dispatch/plan.h"
#include "tests/unit/suites.h"

#define US 1e3

static void equal_replicas_get_equal_shares(void **state) {
    (void)state;
    struct share shares[4] = {{1e-6, 0}, {1e-6, 0}, {1e-6, 0}, {1e-6, 0}};
    double ns = shares_divide(shares, 4, 16, 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(shares[i].chunks, 4);
    assert_true(ns >= 4e6 && ns < 4.01e6);
}

static void a_replica_that_would_end_after_the_others_have_done_all_gets_nothing(void **state) {
    (void)state;
    struct share shares[4] = {{1e-6, 0}, {1e-7, 0}, {1e-6, 0}, {1e-6, 0}};
    double ns = shares_divide(shares, 4, 16, 10 * US);
    assert_int_equal(shares[1].chunks, 0);
    assert_int_equal(shares[0].chunks + shares[2].chunks + shares[3].chunks, 16);
    assert_true(shares[0].chunks <= 6 && shares[2].chunks <= 6 && shares[3].chunks <= 6);
    assert_true(ns < 6.1e6);
}

static void a_slow_replica_that_helps_gets_its_part(void **state) {
    (void)state;
    struct share shares[2] = {{1e-6, 0}, {2.5e-7, 0}};
    shares_divide(shares, 2, 100, 0);
    assert_int_equal(shares[0].chunks, 80);
    assert_int_equal(shares[1].chunks, 20);
}

static void what_one_flush_is_enough_for_goes_to_the_first(void **state) {
    (void)state;
    struct share shares[3] = {{1e-3, 0}, {2e-3, 0}, {1e-3, 0}};
    double ns = shares_divide(shares, 3, 50, 100 * US); /* 50 µs for the first alone */
    assert_int_equal(shares[0].chunks, 50);
    assert_int_equal(shares[1].chunks + shares[2].chunks, 0);
    assert_true(ns < 151 * US);
}

static void all_chunks_are_shared_out_however_many_there_are(void **state) {
    (void)state;
    struct share shares[7] = {{3e-9, 0}, {1e-6, 0},   {2.7e-5, 0}, {1e-12, 0},
                              {1e3, 0},  {4.4e-6, 0}, {1e-6, 0}};
    for (uint32_t chunks = 1; chunks < 5000000; chunks = chunks * 2 + chunks % 3)
        for (uint32_t first = 0; first < 7; first++)
            for (uint32_t count = 1; first + count <= 7; count++) {
                uint64_t all = 0;
                shares_divide(shares + first, count, chunks, 40 * US);
                for (uint32_t i = 0; i < count; i++)
                    all += shares[first + i].chunks;
                assert_int_equal(all, chunks);
            }
}

SUITE(shares) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_replicas_get_equal_shares),
        cmocka_unit_test(a_replica_that_would_end_after_the_others_have_done_all_gets_nothing),
        cmocka_unit_test(a_slow_replica_that_helps_gets_its_part),
        cmocka_unit_test(what_one_flush_is_enough_for_goes_to_the_first),
        cmocka_unit_test(all_chunks_are_shared_out_however_many_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
