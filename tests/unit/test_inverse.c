/* Diagonals of inverses, beside LAPACK's; and rows that depend on others. */
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
#include "numeric/inverse.h"

/* Orders on both sides of whole lanes and of the rows that are taken together. */
static const size_t orders[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 101};
enum { ORDERS = sizeof orders / sizeof *orders };

static double *at(double *triangle, size_t r, size_t k) {
    return &triangle[triangle_row(r) + k];
}

/* Correlations of columns of random numbers, of which each also has some of the one before. */
static double *correlations(size_t n, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    size_t rows = 3 * n;
    double *x = memory_new(n * rows, sizeof *x), *triangle = memory_new(triangle_row(n) + 1, 8);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < rows; i++)
            x[j * rows + i] = random_unit(&random) - 0.5 + (j ? 0.6 * x[(j - 1) * rows + i] : 0);
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k <= r; k++)
            for (size_t i = 0; i < rows; i++)
                *at(triangle, r, k) += x[r * rows + i] * x[k * rows + i];
    for (size_t r = n; r-- > 0;)
        for (size_t k = 0; k <= r; k++)
            *at(triangle, r, k) /= sqrt(*at(triangle, r, r)) * sqrt(*at(triangle, k, k));
    free(x);
    return triangle;
}

static void fill_square(size_t n, double *triangle, double *square) {
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k < n; k++)
            square[r * n + k] = r < k ? *at(triangle, k, r) : *at(triangle, r, k);
}

/* The inverse, all of it. */
static double *reference_inverse(size_t n, double *triangle) {
    double *square = memory_new(n * n, sizeof *square);
    lapack_int order = (lapack_int)n;
    fill_square(n, triangle, square);
    assert_int_equal(LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', order, square, order), 0);
    assert_int_equal(LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', order, square, order), 0);
    for (size_t r = 0; r < n; r++)
        for (size_t k = r + 1; k < n; k++)
            square[r * n + k] = square[k * n + r];
    return square;
}

/* (A⁻¹·M·A⁻¹)_jj with the inverse a. */
static double reference_sandwich(size_t n, const double *a, const double *m, size_t j) {
    double sum = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k < n; k++)
            sum += a[j * n + r] * m[r * n + k] * a[k * n + j];
    return sum;
}

static void check_order(size_t n) {
    double *triangle = correlations(n, n), *meat = correlations(n, n + 1000);
    double *expected = reference_inverse(n, triangle), *square = memory_new(n * n, sizeof *square);
    double *found = memory_new(n, sizeof *found), *robust = memory_new(n, sizeof *robust);
    fill_square(n, meat, square);
    assert_true(cholesky_factor(n, triangle));
    inverse_diagonal(n, triangle, found);
    inverse_sandwich(n, triangle, meat, robust);
    for (size_t j = 0; j < n; j++) {
        double sandwich = reference_sandwich(n, expected, square, j);
        assert_true(fabs(found[j] - expected[j * n + j]) < 1e-12 * expected[j * n + j]);
        assert_true(fabs(robust[j] - sandwich) < 1e-11 * sandwich);
    }
    free(triangle);
    free(meat);
    free(expected);
    free(square);
    free(found);
    free(robust);
}

static void diagonals_are_those_of_lapack(void **state) {
    (void)state;
    for (size_t i = 0; i < ORDERS; i++)
        check_order(orders[i]);
}

/* Row n − 1 of a matrix of n + 1 rows is put behind itself once more. */
static void a_row_that_follows_from_others_stays_out(void **state) {
    (void)state;
    for (size_t i = 0; i < ORDERS; i++) {
        size_t n = orders[i];
        double *one = correlations(n, n), *two = memory_new(triangle_row(n + 1) + 1, sizeof *two);
        double *least = memory_new(n + 1, sizeof *least), *expected = memory_new(n, sizeof *least);
        double *found = memory_new(n + 1, sizeof *found);
        memcpy(two, one, triangle_row(n) * sizeof *two);
        for (size_t k = 0; k < n; k++)
            *at(two, n, k) = *at(one, n - 1, k);
        *at(two, n, n) = 1;
        for (size_t r = 0; r <= n; r++)
            least[r] = 1e-11;
        assert_true(cholesky_factor(n, one));
        assert_true(cholesky_ranked(n + 1, two, least));
        assert_true(*at(two, n, n) == CHOLESKY_ALIASED);
        inverse_diagonal(n, one, expected);
        inverse_diagonal(n + 1, two, found);
        for (size_t r = 0; r < n; r++)
            assert_true(*at(two, r, r) < 2 && fabs(found[r] - expected[r]) <= 1e-14 * expected[r]);
        assert_true(found[n] == 0);
        free(one);
        free(two);
        free(least);
        free(expected);
        free(found);
    }
}

static void what_is_not_finite_has_no_factor(void **state) {
    (void)state;
    double least[2] = {0}, *triangle = correlations(2, 1);
    *at(triangle, 1, 0) = NAN;
    assert_false(cholesky_ranked(2, triangle, least));
    free(triangle);
}

SUITE(inverse) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diagonals_are_those_of_lapack),
        cmocka_unit_test(a_row_that_follows_from_others_stays_out),
        cmocka_unit_test(what_is_not_finite_has_no_factor),
    };
    return cmocka_run_group_tests_name("inverse", tests, NULL, NULL);
}
