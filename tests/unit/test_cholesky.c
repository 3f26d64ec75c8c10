/* Factors and solutions, beside LAPACK's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "numeric/dense.h"

enum { SEEDS = 4 };

/* Orders on both sides of whole lanes and of the rows that are found together. */
static const size_t orders[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 100, 129};
enum { ORDERS = sizeof orders / sizeof *orders };

static double *new_triangle(size_t n) {
    return memory_new(triangle_row(n) + 1, sizeof(double));
}

static double *at(double *triangle, size_t r, size_t k) {
    return &triangle[triangle_row(r) + k];
}

/* Correlations of `n` columns of `rows` random numbers, each column `mix` times the first plus the
 * rest: the closer to 1 `mix` is, the closer the matrix is to a singular one. */
static void fill_correlations(double *triangle, size_t n, size_t rows, double mix, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    double *x = memory_new(n * rows, sizeof *x), *norm = memory_new(n, sizeof *norm);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < rows; i++) {
            double own = random_unit(&random) - 0.5;
            x[j * rows + i] = mix * x[i] + (j ? 1 - mix : 1) * own;
            norm[j] += x[j * rows + i] * x[j * rows + i];
        }
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k <= r; k++) {
            double sum = 0;
            for (size_t i = 0; i < rows; i++)
                sum += x[r * rows + i] * x[k * rows + i];
            *at(triangle, r, k) = r == k ? 1 : sum / sqrt(norm[r] * norm[k]);
        }
    free(x);
    free(norm);
}

/* LAPACK's factor, row by row with leading dimension n; false if it finds none. */
static bool reference_factor(size_t n, double *triangle, double *full) {
    for (size_t r = 0; r < n; r++)
        memcpy(full + r * n, at(triangle, r, 0), (r + 1) * sizeof *full);
    return LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (lapack_int)n, full, (lapack_int)n) == 0;
}

/* Largest |found − expected| relative to the largest |expected|. */
static double distance(size_t n, const double *found, const double *expected) {
    double most = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, isfinite(found[i]) ? fabs(found[i] - expected[i]) : INFINITY);
        size = fmax(size, fabs(expected[i]));
    }
    return size > 0 ? most / size : most;
}

/* `tolerance` is of the solution, whose error grows with the condition of the matrix. */
static void assert_as_lapack(size_t n, double *triangle, double tolerance) {
    double *full = memory_new(n * n, sizeof *full);
    double *found = memory_new(n, sizeof *found), *expected = memory_new(n, sizeof *expected);
    assert_true(reference_factor(n, triangle, full));
    assert_true(cholesky_factor(n, triangle));
    for (size_t r = 0; r < n; r++)
        assert_true(distance(r + 1, at(triangle, r, 0), full + r * n) < 1e-10);
    for (size_t i = 0; i < n; i++)
        found[i] = expected[i] = cos((double)i);
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (lapack_int)n, 1, full, (lapack_int)n, expected, 1);
    cholesky_solve(n, triangle, found);
    assert_true(distance(n, found, expected) < tolerance);
    free(full);
    free(found);
    free(expected);
}

static void rows_follow_each_other_in_whole_lanes(void **state) {
    (void)state;
    size_t expected = 0;
    for (size_t r = 0; r < 100; r++) {
        assert_int_equal(triangle_row(r), expected);
        expected += (r + 8) / 8 * 8;
    }
}

static void random_matrices_are_factored_and_solved_as_lapack_does(void **state) {
    (void)state;
    for (size_t i = 0; i < ORDERS; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            double *triangle = new_triangle(orders[i]);
            fill_correlations(triangle, orders[i], 2 * orders[i] + 20, 0.3, seed);
            assert_as_lapack(orders[i], triangle, 1e-10);
            free(triangle);
        }
}

/* The diagonal falls from 1 to 1e-12. */
static void graded_matrices_are_factored_and_solved_as_lapack_does(void **state) {
    (void)state;
    const size_t n = 60;
    double *triangle = new_triangle(n);
    fill_correlations(triangle, n, 200, 0.1, 5);
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k <= r; k++)
            *at(triangle, r, k) *= pow(1e-6, (double)(r + k) / (double)(2 * n - 2));
    assert_as_lapack(n, triangle, 1e-10);
    free(triangle);
}

static void nearly_singular_matrices_are_factored_as_lapack_does(void **state) {
    (void)state;
    const size_t n = 50;
    double *triangle = new_triangle(n);
    fill_correlations(triangle, n, 150, 0.999, 6); /* a condition of about 1e8 */
    assert_as_lapack(n, triangle, 1e-6);
    free(triangle);
}

static void singular_and_indefinite_matrices_have_no_factor(void **state) {
    (void)state;
    double *triangle = new_triangle(40);
    fill_correlations(triangle, 40, 20, 0, 7); /* of 40 columns with 20 rows */
    assert_false(cholesky_factor(40, triangle));
    const double twins[] = {1, 1, -1}, beyond[] = {1.5, -1.5, 2};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            memset(triangle, 0, triangle_row(2) * sizeof *triangle);
            *at(triangle, 0, 0) = *at(triangle, 1, 1) = 1;
            *at(triangle, 1, 0) = k ? beyond[i] : twins[i];
            assert_false(cholesky_factor(2, triangle));
        }
    *at(triangle, 0, 0) = 0;
    assert_false(cholesky_factor(1, triangle));
    *at(triangle, 0, 0) = -1;
    assert_false(cholesky_factor(1, triangle));
    free(triangle);
}

static void what_is_not_finite_has_no_factor_and_is_passed_on(void **state) {
    (void)state;
    const double odd[] = {NAN, INFINITY, -INFINITY};
    const size_t n = 20;
    double *triangle = new_triangle(n), b[20] = {1};
    for (size_t i = 0; i < 3; i++)
        for (size_t r = 0; r < n; r++) {
            fill_correlations(triangle, n, 50, 0.3, 8);
            *at(triangle, r, r / 2) = odd[i];
            assert_false(cholesky_factor(n, triangle));
        }
    fill_correlations(triangle, n, 50, 0.3, 8);
    assert_true(cholesky_factor(n, triangle));
    b[3] = NAN;
    cholesky_solve(n, triangle, b);
    assert_true(isnan(b[0]) && isnan(b[19]));
    free(triangle);
}

static void what_lies_in_the_padding_is_not_read(void **state) {
    (void)state;
    const size_t n = 13;
    double *one = new_triangle(n), *other = new_triangle(n);
    fill_correlations(one, n, 40, 0.3, 9);
    for (size_t i = 0; i < triangle_row(n); i++)
        other[i] = NAN;
    for (size_t r = 0; r < n; r++)
        memcpy(at(other, r, 0), at(one, r, 0), (r + 1) * sizeof *other);
    assert_true(cholesky_factor(n, one) && cholesky_factor(n, other));
    assert_memory_equal(one, other, triangle_row(n) * sizeof *one);
    free(one);
    free(other);
}

static void rows_that_are_factored_already_are_gone_on_from(void **state) {
    (void)state;
    const size_t n = 61;
    double *whole = new_triangle(n), *part = new_triangle(n);
    double least[61] = {0};
    for (size_t begin = 0; begin <= n; begin += begin < 20 ? 1 : 13) {
        fill_correlations(whole, n, 90, 0.3, 11);
        fill_correlations(part, n, 90, 0.3, 11);
        assert_true(cholesky_ranked(n, whole, least));
        memcpy(part, whole, triangle_row(begin) * sizeof *part);
        assert_true(cholesky_ranked_from(begin, n, part, least));
        assert_memory_equal(part, whole, triangle_row(n) * sizeof *part);
    }
    free(whole);
    free(part);
}

static void nothing_is_factored_and_solved(void **state) {
    (void)state;
    double none = 0;
    assert_true(cholesky_factor(0, &none));
    cholesky_solve(0, &none, &none);
}

SUITE(cholesky) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_each_other_in_whole_lanes),
        cmocka_unit_test(random_matrices_are_factored_and_solved_as_lapack_does),
        cmocka_unit_test(graded_matrices_are_factored_and_solved_as_lapack_does),
        cmocka_unit_test(nearly_singular_matrices_are_factored_as_lapack_does),
        cmocka_unit_test(singular_and_indefinite_matrices_have_no_factor),
        cmocka_unit_test(rows_that_are_factored_already_are_gone_on_from),
        cmocka_unit_test(what_is_not_finite_has_no_factor_and_is_passed_on),
        cmocka_unit_test(what_lies_in_the_padding_is_not_read),
        cmocka_unit_test(nothing_is_factored_and_solved),
    };
    return cmocka_run_group_tests_name("cholesky", tests, NULL, NULL);
}
