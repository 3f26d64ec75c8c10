#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"

enum { N = BLOCK_ELEMENTS };

static _Alignas(64) double a[N], b[N], c[N], out[N], rounded[N];
static _Alignas(64) float narrow[N], narrow_too[N];
static _Alignas(64) double wide[N], wide_too[N];
static _Alignas(64) int64_t sum[N];

/* Lengths around every unrolling, and a whole block. */
static const size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1003, 2065, N};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static int fill(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (size_t i = 0; i < N; i++) {
        a[i] = random_unit(&random) - 0.5;
        b[i] = random_unit(&random) - 0.5;
        c[i] = random_unit(&random) - 0.5;
    }
    return 0;
}

static void assert_near(double value, long double expected) {
    assert_true(fabsl(value - expected) <= 1e-12L);
}

static void a_dot_is_the_sum_of_products(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        long double expected = 0;
        for (size_t i = 0; i < lengths[k]; i++)
            expected += (long double)a[i] * b[i];
        assert_near(vector_dot(lengths[k], a, b), expected);
    }
}

/* The documented order, written out with scalars: what every clone must compute. */
static double dot_in_lanes(size_t n, const double *x, const double *y) {
    double lane[4][8] = {{0}};
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t k = 0; k < 32; k++)
            lane[k / 8][k % 8] += x[i + k] * y[i + k];
    double v[8];
    for (size_t k = 0; k < 8; k++)
        v[k] = (lane[0][k] + lane[1][k]) + (lane[2][k] + lane[3][k]);
    double dot = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    for (; i < n; i++)
        dot += x[i] * y[i];
    return dot;
}

static void a_dot_has_the_same_bits_on_every_instruction_set(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++)
        assert_true(vector_dot(lengths[k], a, b) == dot_in_lanes(lengths[k], a, b));
}

static void the_largest_magnitude_is_infinite_if_any_is_not_finite(void **state) {
    (void)state;
    for (size_t k = 1; k < LENGTHS; k++) {
        size_t n = lengths[k];
        double largest = 0;
        for (size_t i = 0; i < n; i++)
            largest = fmax(largest, fabs(a[i]));
        assert_true(vector_max_abs(n, a) == largest);
        const double odd[] = {NAN, -NAN, INFINITY, -INFINITY};
        for (size_t i = 0; i < 4; i++) {
            double kept = a[n / 2];
            a[n / 2] = odd[i];
            assert_true(vector_max_abs(n, a) == INFINITY);
            a[n / 2] = kept;
        }
    }
    assert_true(vector_max_abs(0, a) == 0);
    assert_true(vector_max_abs(3, (double[]){1, -2, 0}) == 2);
}

static void adding_and_scaling_work_in_place(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        vector_add(n, out, a, 0.3, b);
        memcpy(wide, a, sizeof wide);
        vector_add(n, wide, wide, 0.3, b);
        memcpy(wide_too, b, sizeof wide_too);
        vector_add(n, wide_too, a, 0.3, wide_too);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == a[i] + 0.3 * b[i] && wide[i] == out[i] && wide_too[i] == out[i]);
        vector_scale(n, out, -0.7, a);
        memcpy(wide, a, sizeof wide);
        vector_scale(n, wide, -0.7, wide);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == -0.7 * a[i] && wide[i] == out[i]);
    }
}

static void fixed_point_comes_back_as_it_went_in(void **state) {
    (void)state;
    static int16_t exponent[N];
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < N; i++)
        fixed_add(&sum[i], (double)(int)(a[i] * 1e6));
    vector_from_fixed(N, out, sum, 20, 4);
    for (size_t i = 0; i < N; i++) {
        assert_true(out[i] == (double)(int)(a[i] * 1e6) * 0x1p-22);
        exponent[i] = (int16_t)(i % 50);
    }
    vector_from_fixed_columns(N, out, sum, exponent, -3, 8);
    for (size_t i = 0; i < N; i++)
        assert_true(out[i] == ldexp((double)(int)(a[i] * 1e6), -(int)(i % 50) - 6));
}

static void exponents_at_the_clamps_neither_overflow_nor_underflow_early(void **state) {
    (void)state;
    int64_t large[2] = {0, 0};
    fixed_add(&large[0], 0x1p61);
    fixed_add(&large[1], 1);
    vector_from_fixed(2, out, large, FIXED_EXPONENT_MAX - FIXED_DERIVATIVE_MIN, 1);
    assert_true(out[0] == 0 && out[1] == 0);
    vector_from_fixed(2, out, large, 1100, 1);
    assert_true(out[0] == 0x1p-1039 && out[1] == 0);
    vector_from_fixed(2, out, large, 1074, 1);
    assert_true(out[1] == 0x1p-1074);
    vector_from_fixed(2, out, large, FIXED_EXPONENT_MIN, 1);
    assert_true(isinf(out[0]) && out[1] == 0x1p1022);
    vector_from_fixed(2, out, large, FIXED_EXPONENT_MIN - FIXED_DERIVATIVE_MAX, 1);
    assert_true(isinf(out[0]) && isinf(out[1]));
}

static void every_sum_is_the_double_nearest_to_it(void **state) {
    (void)state;
#ifdef INEXACT_SUMS
    skip(); /* the sums are doubles */
#else
    struct random random;
    random_init(&random, 2);
    static int16_t exponent[N];
    for (size_t i = 0; i < N; i++) {
        int64_t magnitude = (int64_t)(random_next(&random) >> (2 + i % 62));
        sum[i] = i & 1 ? -magnitude : magnitude;
        exponent[i] = (int16_t)((int)random_below(&random, 4000) - 2000);
    }
    sum[0] = 0, sum[1] = -1, sum[2] = INT64_C(1) << 62, sum[3] = -sum[2];
    sum[4] = (INT64_C(1) << 54) + 2, sum[5] = -sum[4], sum[6] = sum[4] + 4, sum[7] = 1 - sum[6];
    for (size_t k = 0; k < LENGTHS; k++) {
        vector_from_fixed(lengths[k], out, sum, 3, 1);
        vector_from_fixed_columns(lengths[k], rounded, sum, exponent, -7, 3);
        for (size_t i = 0; i < lengths[k]; i++) {
            int power = -exponent[i] - 7, half = power / 2;
            assert_true(out[i] == (double)sum[i] / 8);
            assert_true(rounded[i] == (double)sum[i] * ldexp(1, half) * ldexp(1, power - half) / 3);
        }
    }
#endif
}

static void stored_pairs_are_rounded_to_the_type_of_the_history(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        history_store(HISTORY_FLOAT, n, narrow, rounded, a, b);
        for (size_t i = 0; i < n; i++)
            assert_true(narrow[i] == (float)(a[i] - b[i]) && rounded[i] == narrow[i]);
        history_store(HISTORY_DOUBLE, n, wide, rounded, a, b);
        for (size_t i = 0; i < n; i++)
            assert_true(wide[i] == a[i] - b[i] && rounded[i] == wide[i]);
    }
}

static void stored_pairs_are_scaled_by_powers_of_two_exactly(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        history_store(HISTORY_FLOAT, n, narrow, rounded, a, b);
        history_scale(HISTORY_FLOAT, n, narrow, 0x1p-7);
        for (size_t i = 0; i < n; i++)
            assert_true(narrow[i] == 0x1p-7 * rounded[i]);
        history_store(HISTORY_DOUBLE, n, wide, rounded, a, b);
        history_scale(HISTORY_DOUBLE, n, wide, 0x1p-7);
        for (size_t i = 0; i < n; i++)
            assert_true(wide[i] == 0x1p-7 * rounded[i]);
    }
}

static void history_dots_accumulate_in_double(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++)
        narrow[i] = (float)(wide[i] = c[i]);
    for (size_t k = 0; k < LENGTHS; k++) {
        long double expected[4] = {0};
        for (size_t i = 0; i < lengths[k]; i++) {
            expected[0] += (long double)narrow[i] * a[i];
            expected[1] += (long double)narrow[i] * b[i];
            expected[2] += (long double)wide[i] * a[i];
            expected[3] += (long double)wide[i] * b[i];
        }
        double dots[4];
        history_dots(HISTORY_FLOAT, lengths[k], narrow, a, b, dots);
        history_dots(HISTORY_DOUBLE, lengths[k], wide, a, b, dots + 2);
        for (int i = 0; i < 4; i++)
            assert_near(dots[i], expected[i]);
    }
}

/* The order of history_dots(), written out with scalars. */
static double history_dot_in_lanes(size_t n, const float *x, const double *y) {
    double lane[16] = {0}, v[8];
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t k = 0; k < 16; k++)
            lane[k] += x[i + k] * y[i + k];
    for (size_t k = 0; k < 8; k++)
        v[k] = lane[k] + lane[k + 8];
    double dot = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    for (; i < n; i++)
        dot += x[i] * y[i];
    return dot;
}

static void history_dots_have_the_same_bits_on_every_instruction_set(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++)
        narrow[i] = (float)(wide[i] = (float)c[i]);
    for (size_t k = 0; k < LENGTHS; k++) {
        double dots[2], of_doubles[2];
        history_dots(HISTORY_FLOAT, lengths[k], narrow, a, b, dots);
        history_dots(HISTORY_DOUBLE, lengths[k], wide, a, b, of_doubles);
        assert_true(dots[0] == history_dot_in_lanes(lengths[k], narrow, a));
        assert_true(dots[1] == history_dot_in_lanes(lengths[k], narrow, b));
        assert_memory_equal(dots, of_doubles, sizeof dots);
    }
}

/* Where nothing curves, or nothing is known of it, a step counts nothing. */
static void a_step_by_curvature_is_that_of_each_element(void **state) {
    (void)state;
    static const double odd[] = {0,        -0.0,      -1,      NAN,          -NAN,
                                 INFINITY, -INFINITY, DBL_MAX, DBL_TRUE_MIN, -DBL_TRUE_MIN};
    enum { ODD = sizeof odd / sizeof *odd };
    for (size_t k = 0; k < LENGTHS; k++)
        for (int given = 0; given < 4; given++) {
            const double *square = given & 1 ? b : NULL, *weight = given & 2 ? c : NULL;
            vector_curvature(lengths[k], out, 0.3, square, 1.7, weight);
            for (size_t i = 0; i < lengths[k]; i++) {
                assert_true(out[i] == 0.3 * (square ? b[i] : 1) + 1.7 * (weight ? c[i] : 1));
                out[i] = i % 3 ? out[i] : odd[i / 3 % ODD];
            }
            vector_divide(lengths[k], rounded, a, out);
            for (size_t i = 0; i < lengths[k]; i++) {
                double expected = out[i] > 0 ? a[i] / out[i] : 0;
                assert_memory_equal(&rounded[i], &expected, sizeof expected);
            }
        }
}

enum { MANY = 37 };

static void dots_of_many_vectors_are_those_of_each(void **state) {
    (void)state;
    const void *stored[MANY];
    for (size_t v = 0; v < MANY; v++)
        stored[v] = wide + 8 * v;
    for (int type = HISTORY_FLOAT; type <= HISTORY_DOUBLE; type++)
        for (size_t k = 0; k < LENGTHS - 1; k++) {
            double dots[MANY][2], expected[2];
            history_dots_all((enum history_type)type, MANY, lengths[k], stored, a, b, dots);
            for (size_t v = 0; v < MANY; v++) {
                history_dots((enum history_type)type, lengths[k], stored[v], a, b, expected);
                assert_memory_equal(dots[v], expected, sizeof expected);
            }
        }
}

static void dots_with_one_vector_are_those_with_two(void **state) {
    (void)state;
    const void *stored[MANY];
    memcpy(out, a, sizeof out);
    for (size_t v = 0; v < MANY; v++)
        stored[v] = wide + 8 * v;
    for (int type = HISTORY_FLOAT; type <= HISTORY_DOUBLE; type++)
        for (size_t k = 0; k < LENGTHS - 1; k++) {
            double one[MANY][2], two[MANY][2];
            history_dots_all((enum history_type)type, MANY, lengths[k], stored, a, a, one);
            history_dots_all((enum history_type)type, MANY, lengths[k], stored, a, out, two);
            assert_memory_equal(one, two, sizeof one);
        }
}

static void a_history_pass_adds_both_of_a_pair(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) {
        narrow[i] = (float)(wide[i] = b[i]);
        narrow_too[i] = (float)(wide_too[i] = c[i]);
    }
    for (size_t k = 0; k < LENGTHS; k++) {
        memcpy(out, a, sizeof out);
        memcpy(rounded, a, sizeof rounded);
        history_add(HISTORY_FLOAT, lengths[k], out, 0.3, narrow, -1.7, narrow_too);
        history_add(HISTORY_DOUBLE, lengths[k], rounded, 0.3, wide, -1.7, wide_too);
        for (size_t i = 0; i < lengths[k]; i++) {
            assert_true(out[i] == a[i] + (0.3 * narrow[i] + -1.7 * narrow_too[i]));
            assert_true(rounded[i] == a[i] + (0.3 * wide[i] + -1.7 * wide_too[i]));
        }
    }
}

SUITE(vector) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dot_is_the_sum_of_products),
        cmocka_unit_test(a_dot_has_the_same_bits_on_every_instruction_set),
        cmocka_unit_test(the_largest_magnitude_is_infinite_if_any_is_not_finite),
        cmocka_unit_test(adding_and_scaling_work_in_place),
        cmocka_unit_test(fixed_point_comes_back_as_it_went_in),
        cmocka_unit_test(exponents_at_the_clamps_neither_overflow_nor_underflow_early),
        cmocka_unit_test(every_sum_is_the_double_nearest_to_it),
        cmocka_unit_test(stored_pairs_are_rounded_to_the_type_of_the_history),
        cmocka_unit_test(stored_pairs_are_scaled_by_powers_of_two_exactly),
        cmocka_unit_test(history_dots_accumulate_in_double),
        cmocka_unit_test(history_dots_have_the_same_bits_on_every_instruction_set),
        cmocka_unit_test(a_step_by_curvature_is_that_of_each_element),
        cmocka_unit_test(dots_of_many_vectors_are_those_of_each),
        cmocka_unit_test(dots_with_one_vector_are_those_with_two),
        cmocka_unit_test(a_history_pass_adds_both_of_a_pair),
    };
    return cmocka_run_group_tests_name("vector", tests, fill, NULL);
}
