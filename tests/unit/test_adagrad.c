#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/steps.h"
#include "numeric/step_element.h"
#include "numeric/vector.h"

enum { N = BLOCK_ELEMENTS };
#define LEAST 1e-10

static const size_t lengths[] = {0, 1, 3, 4, 5, 63, 1000, N};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static double x[N], sums[N], g[N], l1[N];
static double to[N], of[N]; /* copies of x and sums, to be changed */

static void copy(void) {
    memcpy(to, x, sizeof x);
    memcpy(of, sums, sizeof sums);
}

static int fill(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 5);
    for (size_t i = 0; i < N; i++) {
        x[i] = 4 * random_unit(&random) - 2;
        sums[i] = random_below(&random, 8) ? random_unit(&random) : 0;
        g[i] = random_below(&random, 8) ? ldexp(random_unit(&random) - 0.5, (int)(i % 40) - 20) : 0;
        l1[i] = random_below(&random, 4) ? 8 * random_unit(&random) : 0;
    }
    copy();
    return 0;
}

/* The formulae of the header are written out with more digits. */
static bool is_near(double value, long double expected, long double size) {
    return fabsl(value - expected) <= 1e-15L * size;
}

static bool is_plus_zero(double a) {
    return a == 0 && !signbit(a);
}

static void a_step_goes_against_the_gradient_by_the_root_of_all_squares(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        copy();
        adagrad_step(n, to, of, g, 0.3, LEAST);
        for (size_t i = 0; i < n; i++) {
            long double sum = sums[i] + (long double)g[i] * g[i];
            long double step = 0.3L * g[i] / (sqrtl(sum) + 1e-10L);
            assert_true(is_near(of[i], sum, sum));
            assert_true(is_near(to[i], x[i] - step, fabs(x[i]) + fabsl(step)));
        }
        for (size_t i = n; i < N; i++)
            assert_true(to[i] == x[i] && of[i] == sums[i]);
    }
}

static void a_proximal_step_ends_at_zero_or_nearer_to_it(void **state) {
    (void)state;
    size_t zeros = 0;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        copy();
        adagrad_shrink(n, to, sums, l1, 0.1, LEAST);
        for (size_t i = 0; i < n; i++) {
            long double less = 0.1L * l1[i] / (sqrtl(sums[i]) + 1e-10L);
            long double size = fmaxl(fabsl(x[i]) - less, 0);
            assert_true(size == 0 ? is_plus_zero(to[i])
                                  : is_near(to[i], copysignl(size, x[i]), fabs(x[i])));
            zeros += size == 0;
        }
        for (size_t i = n; i < N; i++)
            assert_true(to[i] == x[i]);
    }
    assert_true(zeros > 100 && zeros < N);
}

static void a_diagonal_falls_with_the_sum(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        size_t n = lengths[k];
        copy();
        adagrad_diagonal(n, of, 0.02, 0.5);
        for (size_t i = 0; i < n; i++) {
            long double expected = 0.02L / (sqrtl(sums[i]) + 0.5L);
            assert_true(is_near(of[i], expected, expected));
        }
        for (size_t i = n; i < N; i++)
            assert_true(of[i] == sums[i]);
    }
}

static void an_element_has_the_same_bits_wherever_it_lies(void **state) {
    (void)state;
    adagrad_step(N, to, of, g, 0.3, LEAST);
    adagrad_shrink(N, to, of, l1, 0.1, LEAST);
    adagrad_diagonal(N, of, 0.02, 0.5);
    for (size_t i = 0; i < N; i++) {
        double one = x[i], sum = sums[i];
        element_adagrad_step(&one, &sum, &g[i], 0.3, LEAST);
        element_adagrad_shrink(&one, &sum, &l1[i], 0.1, LEAST);
        element_adagrad_diagonal(&sum, 0.02, 0.5);
        assert_memory_equal(&one, &to[i], sizeof one);
        assert_memory_equal(&sum, &of[i], sizeof sum);
    }
}

/* One element, in lanes and alone. */
static double stepped(double from, double sum, double gradient, double *sum_after) {
    double at[5], sums_at[5], gradients[5];
    for (int i = 0; i < 5; i++) {
        at[i] = from;
        sums_at[i] = sum;
        gradients[i] = gradient;
    }
    adagrad_step(5, at, sums_at, gradients, 0.5, LEAST);
    assert_memory_equal(&at[0], &at[4], sizeof at[0]);
    *sum_after = sums_at[0];
    return at[0];
}

static void a_gradient_of_zero_moves_nothing(void **state) {
    (void)state;
    double sum;
    assert_true(stepped(3, 0, 0, &sum) == 3 && sum == 0);
    assert_true(stepped(3, 2, -0.0, &sum) == 3 && sum == 2);
}

static void a_square_too_small_to_be_counted_makes_a_small_step(void **state) {
    (void)state;
    double sum;
    assert_true(stepped(0, 0, 1e-170, &sum) == -0.5 * 1e-170 / 1e-10 && sum == 0);
    double step = stepped(0, 0, 1e-160, &sum); /* its square is denormal */
    assert_true(sum > 0 && sum < 0x1p-1022 && step < 0 && step >= -0.5 * 1e-160 / 1e-10);
}

static void what_has_no_finite_sum_stays_where_it_is(void **state) {
    (void)state;
    const double gradients[] = {1e200, -1e200, INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < sizeof gradients / sizeof *gradients; k++) {
        double sum, of_one[1] = {2}, much[1] = {1e300};
        assert_true(stepped(3, 1, gradients[k], &sum) == 3);
        assert_true(!isfinite(sum));
        assert_true(stepped(3, sum, 1, &sum) == 3); /* for good */
        assert_true(vector_max_abs(1, &sum) == INFINITY);
        adagrad_shrink(1, of_one, &sum, much, 0.5, LEAST);
        assert_true(of_one[0] == 2);
        adagrad_diagonal(1, &sum, 0.02, 0.5);
        assert_true(is_plus_zero(sum));
    }
}

static void the_largest_gradient_that_has_a_square_makes_a_step_of_the_rate(void **state) {
    (void)state;
    double sum;
    assert_true(fabs(stepped(3, 0, 1e154, &sum) - 2.5) < 1e-15);
    assert_true(isfinite(sum));
}

SUITE(adagrad) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_step_goes_against_the_gradient_by_the_root_of_all_squares, fill),
        cmocka_unit_test_setup(a_proximal_step_ends_at_zero_or_nearer_to_it, fill),
        cmocka_unit_test_setup(a_diagonal_falls_with_the_sum, fill),
        cmocka_unit_test_setup(an_element_has_the_same_bits_wherever_it_lies, fill),
        cmocka_unit_test(a_gradient_of_zero_moves_nothing),
        cmocka_unit_test(a_square_too_small_to_be_counted_makes_a_small_step),
        cmocka_unit_test(what_has_no_finite_sum_stays_where_it_is),
        cmocka_unit_test(the_largest_gradient_that_has_a_square_makes_a_step_of_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
