#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/steps.h"

enum { N = BLOCK_ELEMENTS };

static const size_t lengths[] = {0, 1, 7, 8, 9, 63, 1000, N};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static double x[N], t[N], g[N], h[N], q[N], y[N], out[N];
static float stored[N];

/* A number that is often 0, −0 or `often`. */
static double draw(struct random *random, double often) {
    const double odd[] = {0, -0.0, often, -often};
    uint64_t kind = random_below(random, 8);
    return kind < 4 ? odd[kind] : 4 * random_unit(random) - 2;
}

static int fill(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 5);
    for (size_t i = 0; i < N; i++) {
        x[i] = draw(&random, 1);
        t[i] = draw(&random, 2);
        g[i] = draw(&random, 0.5);
        h[i] = draw(&random, 0.25);
        q[i] = draw(&random, 1e-300);
        y[i] = draw(&random, 3);
        stored[i] = (float)y[i];
    }
    return 0;
}

/* The formulae of the header, written out. */
static long double sign(long double a) {
    return a > 0 ? 1 : a < 0 ? -1 : 0;
}

static long double pseudo(long double at, long double gradient, long double l1) {
    if (at != 0)
        return gradient + l1 * sign(at);
    return sign(gradient) * fmaxl(fabsl(gradient) - l1, 0);
}

static long double side(double at, double pseudo_gradient) {
    return at != 0 ? sign(at) : -sign(pseudo_gradient);
}

static void assert_near(double value, long double expected, long double size) {
    assert_true(fabsl(value - expected) <= 1e-13L * size);
}

static bool is_plus_zero(double a) {
    return a == 0 && !signbit(a);
}

static void the_pseudo_gradient_is_the_least_subgradient(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        orthant_pseudo_gradient(lengths[k], out, x, g, 0.5);
        for (size_t i = 0; i < lengths[k]; i++) {
            assert_near(out[i], pseudo(x[i], g[i], 0.5L), 4);
            assert_true(x[i] != 0 || fabs(g[i]) > 0.5 || is_plus_zero(out[i]));
        }
    }
    memcpy(out, g, sizeof out);
    orthant_pseudo_gradient(N, out, x, out, 0.5); /* in place */
    for (size_t i = 0; i < N; i++)
        assert_near(out[i], pseudo(x[i], g[i], 0.5L), 4);
}

static void a_gradient_that_is_not_a_number_shows_in_the_pseudo_gradient(void **state) {
    (void)state;
    const double at[] = {0, -0.0, 1, 0}, odd[] = {NAN, NAN, NAN, INFINITY};
    double found[4];
    orthant_pseudo_gradient(4, found, at, odd, 1);
    assert_true(isnan(found[0]) && isnan(found[1]) && isnan(found[2]) && isinf(found[3]));
}

static void a_point_outside_of_its_orthant_goes_to_zero(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        memcpy(out, t, sizeof out);
        orthant_project(lengths[k], out, x, q);
        for (size_t i = 0; i < lengths[k]; i++) {
            bool within = sign(t[i]) * side(x[i], q[i]) > 0;
            assert_true(within ? out[i] == t[i] : is_plus_zero(out[i]));
        }
    }
}

static void a_direction_leaves_zero_only_downhill(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        memcpy(out, y, sizeof out);
        orthant_align(lengths[k], out, x, q);
        for (size_t i = 0; i < lengths[k]; i++) {
            bool kept = x[i] != 0 || sign(y[i]) * sign(q[i]) < 0;
            assert_true(kept ? out[i] == y[i] : is_plus_zero(out[i]));
        }
    }
}

static void a_pair_forgets_what_stays_at_zero(void **state) {
    (void)state;
    static double wide[N];
    static float narrow[N];
    for (size_t k = 0; k < LENGTHS; k++) {
        memcpy(out, y, sizeof out);
        memcpy(wide, y, sizeof wide);
        memcpy(narrow, stored, sizeof narrow);
        orthant_mask(HISTORY_FLOAT, lengths[k], narrow, out, x, t);
        orthant_mask(HISTORY_DOUBLE, lengths[k], wide, wide, x, t);
        for (size_t i = 0; i < N; i++) {
            bool masked = i < lengths[k] && x[i] == 0 && t[i] == 0;
            assert_true(out[i] == (masked ? 0 : y[i]) && wide[i] == out[i]);
            assert_true(narrow[i] == (masked ? 0 : stored[i]));
        }
    }
}

static void norms_and_counts_are_those_of_plain_loops(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        long double norm = 0, excess = 0;
        size_t nonzeros = 0;
        for (size_t i = 0; i < lengths[k]; i++) {
            norm += fabsl(x[i]);
            nonzeros += x[i] != 0;
            long double beyond = fmaxl(fabsl(h[i] - 0.125L * t[i]) - 0.25L, 0);
            excess += beyond * beyond;
        }
        assert_near(orthant_norm(lengths[k], x), norm, norm);
        assert_int_equal(orthant_nonzeros(lengths[k], x), nonzeros);
        assert_near(orthant_excess(lengths[k], h, 0.125, t, 0.25), excess, excess);
    }
}

static void slopes_along_a_step_are_those_of_plain_loops(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        long double sum[3] = {0, 0, 0}, size = 0;
        double found[3];
        for (size_t i = 0; i < lengths[k]; i++) {
            long double s = (long double)t[i] - x[i];
            sum[0] += q[i] * s;
            sum[1] += (h[i] + 0.5L * side(x[i], q[i])) * s;
            sum[2] += s * s;
            size += s * s + 4;
        }
        orthant_descent(lengths[k], t, x, q, h, 0.5, found);
        for (size_t i = 0; i < 3; i++)
            assert_near(found[i], sum[i], size);
    }
}

/* The documented order of sums: eight lanes, folded in halves. */
static void norms_have_the_same_bits_on_every_instruction_set(void **state) {
    (void)state;
    for (size_t k = 0; k < LENGTHS; k++) {
        double v[8] = {0};
        for (size_t i = 0; i < lengths[k]; i++)
            v[i % 8] += fabs(x[i]);
        double sum = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
        assert_true(orthant_norm(lengths[k], x) == sum);
    }
}

SUITE(orthant) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pseudo_gradient_is_the_least_subgradient),
        cmocka_unit_test(a_gradient_that_is_not_a_number_shows_in_the_pseudo_gradient),
        cmocka_unit_test(a_point_outside_of_its_orthant_goes_to_zero),
        cmocka_unit_test(a_direction_leaves_zero_only_downhill),
        cmocka_unit_test(a_pair_forgets_what_stays_at_zero),
        cmocka_unit_test(norms_and_counts_are_those_of_plain_loops),
        cmocka_unit_test(slopes_along_a_step_are_those_of_plain_loops),
        cmocka_unit_test(norms_have_the_same_bits_on_every_instruction_set),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
