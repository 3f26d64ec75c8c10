/* A rare text of a category follows from the intercept and the other texts, although the sums of
 * these are rounded more coarsely than its own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "numeric/dense.h"
#include "shard/covariance_rank.h"

#define SHARE 1e-4 /* of the rows that have the rare text */

/* Correlations about 0 of a 1, of rows with the frequent text, and of those with the rare one,
 * which overlap by `overlap` of the rare ones; the first sum is off by `off`. */
static double *factor_of(double overlap, double off) {
    double *c = memory_new(triangle_row(3), sizeof *c);
    c[triangle_row(0)] = 1 + off;
    c[triangle_row(1)] = sqrt(1 - SHARE);
    c[triangle_row(1) + 1] = 1;
    c[triangle_row(2)] = sqrt(SHARE);
    c[triangle_row(2) + 1] = overlap * sqrt(SHARE / (1 - SHARE));
    c[triangle_row(2) + 2] = 1;
    double least[3] = {1e-11, 1e-11, 1e-11};
    assert_true(cholesky_ranked(3, c, least));
    return c;
}

static size_t next_of(double overlap, double off, double rounding) {
    const double each[3] = {rounding, rounding, rounding * SHARE};
    double *c = factor_of(overlap, off);
    size_t next = covariance_next_aliased(3, c, each);
    free(c);
    return next;
}

static void a_rare_text_follows_from_frequent_ones(void **state) {
    (void)state;
    assert_int_equal(next_of(0, 1e-12, 0), 3); /* what is left looks like a pivot */
    assert_int_equal(next_of(0, 1e-12, 1e-12), 2);
}

static void a_rare_column_that_follows_from_nothing_stays(void **state) {
    (void)state;
    assert_int_equal(next_of(0.5, 0, 1e-12), 3);
    assert_int_equal(next_of(0.5, 1e-8, 1e-8), 3);
}

static void rows_that_are_left_out_are_passed_over(void **state) {
    (void)state;
    assert_int_equal(next_of(0, 0, 1e-12), 3);
}

SUITE(covariance_rank) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rare_text_follows_from_frequent_ones),
        cmocka_unit_test(a_rare_column_that_follows_from_nothing_stays),
        cmocka_unit_test(rows_that_are_left_out_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
