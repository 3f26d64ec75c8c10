#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/suites.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"

static void the_largest_sum_stays_below_two_to_62(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < 10000; i++) {
        uint64_t count = 1 + random_below(&random, UINT64_C(1) << random_below(&random, 41));
        double sum = ldexp(1 + random_unit(&random), (int)random_below(&random, 2098) - 1074);
        int e = fixed_exponent(sum, count);
        long double most = ldexpl((long double)sum, e) + (long double)count / 2;
        assert_true(most < 0x1p62L);
        if (e < FIXED_EXPONENT_MAX) /* no larger power would do, but for the room for rounding */
            assert_true(ldexpl((long double)sum, e + 1) * (1 + (long double)count * 0x1p-51L) +
                            (long double)count >=
                        0x1p62L);
    }
}

static void exponents_hold_at_the_ends_of_the_range(void **state) {
    (void)state;
    assert_int_equal(fixed_exponent(1, 1), 61);
    assert_int_equal(fixed_exponent(0, 1000), fixed_exponent(1, 1));
    assert_int_equal(fixed_exponent(0x1p-1074, 1), FIXED_EXPONENT_MAX);
    assert_true(ldexpl((long double)DBL_MAX, fixed_exponent(DBL_MAX, 1)) < 0x1p62L);
    int e = fixed_exponent(INFINITY, 1000);
    assert_true(e >= FIXED_EXPONENT_MIN && 1000 * ldexpl((long double)DBL_MAX, e) < 0x1p62L);
    for (e = FIXED_EXPONENT_MIN; e <= FIXED_EXPONENT_MAX; e++)
        assert_true(fixed_absolute_sum(e) == ldexp(0.75, 62 - e));
}

static void the_derivative_exponent_is_the_least_that_covers(void **state) {
    (void)state;
    assert_int_equal(fixed_derivative_exponent(1), 0);
    assert_int_equal(fixed_derivative_exponent(nextafter(1, 2)), 1);
    assert_int_equal(fixed_derivative_exponent(nextafter(1, 0)), 0);
    assert_int_equal(fixed_derivative_exponent(0.25), -2);
    assert_int_equal(fixed_derivative_exponent(0), FIXED_DERIVATIVE_MIN);
    assert_int_equal(fixed_derivative_exponent(DBL_MAX), FIXED_DERIVATIVE_MAX);
    assert_int_equal(fixed_derivative_exponent(INFINITY), FIXED_DERIVATIVE_MAX);
    assert_int_equal(fixed_derivative_exponent(NAN), FIXED_DERIVATIVE_MAX);
}

/* The sum of squares of a column is at most 2^123 in its finer unit, and above 2^121. */
static void finer_exponents_leave_room_for_products_of_columns(void **state) {
    (void)state;
    for (int i = 0; i < 2000; i++) {
        double value = ldexp(1 + 0.37 * (i % 3), i % 401 - 200), rows = 1 + i * i;
        int e = fixed_exponent(value * rows, (uint64_t)rows);
        int k = fixed_extra_bits(value * value * rows, e);
        double square = ldexp(value, e + k);
        assert_true(square * square * rows < 0x1p123);
        assert_true(!k || square * square * rows >= 0x1p121);
    }
    /* Half a bit for each of a million values; nothing for a single one, or for none. */
    assert_int_equal(fixed_extra_bits(0x1p20, fixed_exponent(0x1p20, 1 << 20)), 10);
    assert_int_equal(fixed_extra_bits(9, fixed_exponent(3, 1)), 0);
    assert_int_equal(fixed_extra_bits(0, 61), 0);
    assert_int_equal(fixed_extra_bits(INFINITY, 61), 0);
    assert_int_equal(fixed_extra_bits(0x1p-1070, 0), FINER_MAX);
}

static void one_exponent_serves_columns_of_like_scale_only(void **state) {
    (void)state;
    double sums[3] = {1000, 10, 0};
    uint64_t counts[3] = {1000, 20, 5};
    int16_t e[3];
    int uniform = 0;
    for (int j = 0; j < 3; j++)
        e[j] = (int16_t)fixed_exponent(sums[j], counts[j]);
    assert_int_equal(fixed_uniform(3, e, sums, counts, &uniform), 1);
    assert_int_equal(uniform, e[0]);
    sums[1] = 1e-7;
    e[1] = (int16_t)fixed_exponent(sums[1], counts[1]);
    assert_int_equal(fixed_uniform(3, e, sums, counts, &uniform), 0);
}

/* The intercept of a million rows, and words of which this is the rarest. */
static int text_is_uniform(uint32_t columns, double rarest) {
    double *sums = memory_new(columns, sizeof *sums);
    uint64_t *counts = memory_new(columns, sizeof *counts);
    int16_t *e = memory_new(columns, sizeof *e);
    int uniform = 0;
    for (uint32_t j = 0; j < columns; j++) {
        sums[j] = j == 0 ? 1e6 : j == 1 ? rarest : 10;
        counts[j] = j == 0 ? 1000000 : 2;
        e[j] = (int16_t)fixed_exponent(sums[j], counts[j]);
    }
    int answer = fixed_uniform(columns, e, sums, counts, &uniform);
    assert_true(!answer || uniform == e[0]);
    free(sums);
    free(counts);
    free(e);
    return answer;
}

static void the_columns_of_text_share_an_exponent_with_the_intercept(void **state) {
    (void)state;
    assert_int_equal(text_is_uniform(10000, 0.1), 1);
    assert_int_equal(text_is_uniform(10000, 1e-12), 0);
    assert_int_equal(text_is_uniform(PRECONDITION_BLOCK_MAX, 0.001), 0);
}

static void merging_adds_element_by_element(void **state) {
    (void)state;
    int64_t into[21], from[21], expected[21];
    for (int i = 0; i < 21; i++) {
        into[i] = from[i] = expected[i] = 0;
        fixed_add(&into[i], i);
        fixed_add(&from[i], -3 * i);
        fixed_add(&expected[i], -2 * i);
    }
    fixed_merge(21, into, from);
    assert_memory_equal(into, expected, sizeof into);
}

static void contributions_add_up_the_same_in_any_order(void **state) {
    (void)state;
    int64_t up = 0, down = 0;
    for (int i = 1; i <= 1000; i++)
        fixed_add(&up, 0x1p50 / i);
    for (int i = 1000; i >= 1; i--)
        fixed_add(&down, 0x1p50 / i);
    assert_true(up == down);
    int64_t halves = 0;
    fixed_add(&halves, 2.5); /* ties to even */
    fixed_add(&halves, -1.5);
    assert_true(halves == 0);
}

static void lanes_round_as_single_contributions_do(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (int round = 0; round < 20000; round++) {
        int64_t together[HALF] = {0}, single[HALF] = {0};
        half_lanes scaled;
        for (size_t k = 0; k < HALF; k++) {
            scaled[k] = ldexp(random_unit(&random) - 0.5, (int)random_below(&random, 63));
            if (round % 2) /* ties, above and below where the halves meet */
                scaled[k] = rint(ldexp(scaled[k], -(int)random_below(&random, 12))) + 0.5;
            fixed_add(&single[k], scaled[k]);
        }
        fixed_add_half(together, &scaled);
        assert_memory_equal(together, single, sizeof single);
    }
}

static void a_size_bounds_the_row_by_little_more_than_it_must(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 3);
    assert_int_equal(fixed_size(0, 0), 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t count = 1 + random_below(&random, 1000);
        double sum = ldexp(1 + random_unit(&random), (int)random_below(&random, 1200) - 180);
        long double most = (long double)sum * (1 + (long double)count * 0x1p-53L) + 1;
        int size = fixed_size(sum, count);
        assert_true(most <= ldexpl(1, size));
        assert_true(most * 1.0001L > ldexpl(1, size - 1));
    }
    for (int size = 0; size < FIXED_SIZE_MAX - 1; size++) /* where rounding could hide it */
        assert_int_equal(fixed_size(ldexp(1, size) - (size < 54), 2), size + 1);
    assert_int_equal(fixed_size(0x1.8p1023, 2), FIXED_SIZE_MAX);
    assert_true(fixed_size(DBL_MAX, 2) > FIXED_SIZE_MAX);
    assert_true(fixed_size(INFINITY, 2) > FIXED_SIZE_MAX);
}

SUITE(fixed) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_sum_stays_below_two_to_62),
        cmocka_unit_test(exponents_hold_at_the_ends_of_the_range),
        cmocka_unit_test(a_size_bounds_the_row_by_little_more_than_it_must),
        cmocka_unit_test(the_derivative_exponent_is_the_least_that_covers),
        cmocka_unit_test(finer_exponents_leave_room_for_products_of_columns),
        cmocka_unit_test(one_exponent_serves_columns_of_like_scale_only),
        cmocka_unit_test(the_columns_of_text_share_an_exponent_with_the_intercept),
        cmocka_unit_test(merging_adds_element_by_element),
        cmocka_unit_test(lanes_round_as_single_contributions_do),
        cmocka_unit_test(contributions_add_up_the_same_in_any_order),
    };
    return cmocka_run_group_tests_name("fixed", tests, NULL, NULL);
}
