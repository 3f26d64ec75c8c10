#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/special.h"

enum { N = 20003 };
static double x[N], y[N], shifted[N];

/* The distance from the true value in units of its last place. */
static long double units_off(double value, long double expected) {
    int exponent;
    frexpl(expected, &exponent);
    if (exponent < -1021)
        exponent = -1021;
    return fabsl(value - expected) / ldexpl(1, exponent - 53);
}

static void exponentials_are_right_to_the_last_place(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < N; i++)
        x[i] = (random_unit(&random) - 0.5) * (i % 3 == 0 ? 1480 : i % 3 == 1 ? 40 : 1);
    special_exp(N, y, x);
    for (int i = 0; i < N; i++) {
        if (expl(x[i]) > (long double)DBL_MAX)
            assert_true(isinf(y[i]));
        else
            assert_true(units_off(y[i], expl(x[i])) < 1.5L);
    }
}

static void exponentials_hold_at_the_ends(void **state) {
    (void)state;
    const double in[] = {0, -0.0, INFINITY, -INFINITY, NAN, 709.7, 1e300, -1e300, -745, -746};
    double out[10];
    special_exp(10, out, in);
    assert_true(out[0] == 1 && out[1] == 1 && isinf(out[2]) && out[3] == 0 && isnan(out[4]));
    assert_true(isfinite(out[5]) && isinf(out[6]) && out[7] == 0);
    assert_true(out[8] == 0x1p-1074 && out[9] == 0);
}

static void logarithms_are_right_to_the_last_place(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (int i = 0; i < N; i++)
        x[i] = ldexp(random_unit(&random),
                     (int)random_below(&random, i % 2 ? 1100 : 20) - (i % 2 ? 1073 : 10));
    special_log1p(N, y, x);
    for (int i = 0; i < N; i++)
        assert_true(units_off(y[i], log1pl(x[i])) < 2);
    const double in[] = {0, 1, NAN, INFINITY};
    special_log1p(4, y, in);
    assert_true(y[0] == 0 && y[1] == log(2) && isnan(y[2]) && !isfinite(y[3]));
}

static void the_bits_do_not_depend_on_the_place(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (int i = 0; i < 100; i++)
        x[i] = random_unit(&random) * 10;
    special_exp(100, y, x);
    special_exp(95, shifted, x + 5);
    assert_memory_equal(y + 5, shifted, 95 * sizeof *y);
    special_log1p(100, y, x);
    special_log1p(95, shifted, x + 5);
    assert_memory_equal(y + 5, shifted, 95 * sizeof *y);
    special_log(100, y, x);
    special_log(95, shifted, x + 5);
    assert_memory_equal(y + 5, shifted, 95 * sizeof *y);
    special_exp_excess(100, y, x);
    special_exp_excess(95, shifted, x + 5);
    assert_memory_equal(y + 5, shifted, 95 * sizeof *y);
}

static void logarithms_of_any_positive_number_are_right_to_the_last_place(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 4);
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? ldexp(1 + random_unit(&random), (int)random_below(&random, 2097) - 1073)
                     : 1 + (random_unit(&random) - 0.5) / 3;
    special_log(N, y, x);
    for (int i = 0; i < N; i++)
        assert_true(units_off(y[i], logl(x[i])) < 2);
    const double in[] = {1, NAN, INFINITY, 0x1p-1074};
    special_log(4, y, in);
    assert_true(y[0] == 0 && isnan(y[1]) && !isfinite(y[2]) && y[3] == log(0x1p-1074));
}

static void the_excess_of_an_exponential_keeps_its_digits(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 5);
    for (int i = 0; i < N; i++)
        x[i] = (random_unit(&random) - 0.5) *
               (i % 3 ? ldexp(2, -(int)random_below(&random, 400)) : 1400);
    special_exp_excess(N, y, x);
    for (int i = 0; i < N; i++) {
        long double t = x[i], expected = expm1l(t) - t;
        if (fabsl(t) < 1e-3L)
            expected =
                t * t * (0.5L + t * (1 / 6.0L + t * (1 / 24.0L + t * (1 / 120.0L + t / 720))));
        if (expected > (long double)DBL_MAX)
            assert_true(isinf(y[i]));
        else
            assert_true(units_off(y[i], expected) < 20);
    }
    const double in[] = {0, NAN, INFINITY, -INFINITY, -1e300};
    special_exp_excess(5, y, in);
    assert_true(y[0] == 0 && isnan(y[1]) && !isfinite(y[2]) && !isfinite(y[3]) && y[4] == 1e300);
}

SUITE(special) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_are_right_to_the_last_place),
        cmocka_unit_test(exponentials_hold_at_the_ends),
        cmocka_unit_test(logarithms_are_right_to_the_last_place),
        cmocka_unit_test(logarithms_of_any_positive_number_are_right_to_the_last_place),
        cmocka_unit_test(the_excess_of_an_exponential_keeps_its_digits),
        cmocka_unit_test(the_bits_do_not_depend_on_the_place),
    };
    return cmocka_run_group_tests_name("special", tests, NULL, NULL);
}
