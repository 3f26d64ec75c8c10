#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <lapacke.h>
#include <math.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "numeric/dense.h"
#include "numeric/setup.h"

enum { N = 7, LD = 9 };

/* Well conditioned, and with entries below the diagonal that must not be read. */
static void fill(double *r) {
    struct random random;
    random_init(&random, 1);
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < LD; i++)
            r[j * LD + i] = i > j ? NAN : i == j ? 2 : random_unit(&random) - 0.5;
}

static double entry(const double *r, size_t i, size_t j) {
    return i > j ? 0 : r[j * LD + i];
}

static void solving_undoes_the_product(void **state) {
    (void)state;
    double r[N * LD];
    fill(r);
    for (int transposed = 0; transposed < 2; transposed++) {
        double b[N];
        for (size_t i = 0; i < N; i++) {
            b[i] = 0;
            for (size_t j = 0; j < N; j++)
                b[i] += (transposed ? entry(r, j, i) : entry(r, i, j)) * (double)(j + 1);
        }
        dense_upper_solve(N, r, LD, transposed, b);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs(b[i] - (double)(i + 1)) < 1e-12);
    }
    dense_upper_solve(0, NULL, 1, false, NULL);
}

static void the_condition_of_a_diagonal_is_the_ratio_of_its_ends(void **state) {
    (void)state;
    double r[4] = {1, NAN, 0, 1e-8};
    assert_int_equal(dense_upper_corner(2, r, 2, 0.9e-8), 2);
    assert_int_equal(dense_upper_corner(2, r, 2, 1.1e-8), 1);
    assert_int_equal(dense_upper_corner(2, r, 2, 1.1), 0);
    r[3] = 0;
    assert_int_equal(dense_upper_corner(2, r, 2, 1e-300), 0);
    assert_int_equal(dense_upper_corner(0, NULL, 1, 1), 0);
}

static void nan_is_passed_on(void **state) {
    (void)state;
    double r[4] = {1, 0, NAN, 2};
    double b[2] = {1, 1};
    dense_upper_solve(2, r, 2, false, b);
    assert_true(isnan(b[0]) && b[1] == 0.5);
    assert_int_equal(dense_upper_corner(2, r, 2, 1e-8), 1);
    r[2] = INFINITY;
    assert_int_equal(dense_upper_corner(2, r, 2, 1e-8), 1);
}

/* Upper triangular, badly scaled, and NaN below the diagonal. */
static void fill_graded(struct random *random, size_t n, size_t ld, double *r) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < ld; i++)
            r[i + j * ld] = i > j    ? NAN
                            : i == j ? exp2((double)random_below(random, 12))
                                     : random_unit(random) - 0.5;
}

static void random_triangles_are_solved_as_lapack_does(void **state) {
    (void)state;
    enum { MOST = 40, FIRST_DIMENSION = 43 };
    double r[MOST * FIRST_DIMENSION], b[MOST], expected[MOST];
    struct random random;
    random_init(&random, 2);
    for (size_t n = 1; n <= MOST; n++)
        for (int transposed = 0; transposed < 2; transposed++) {
            fill_graded(&random, n, FIRST_DIMENSION, r);
            for (size_t i = 0; i < n; i++)
                expected[i] = b[i] = random_unit(&random) - 0.5;
            dense_upper_solve(n, r, FIRST_DIMENSION, transposed, b);
            LAPACKE_dtrtrs_work(LAPACK_COL_MAJOR, 'U', transposed ? 'T' : 'N', 'N', (lapack_int)n,
                                1, r, FIRST_DIMENSION, expected, (lapack_int)n);
            for (size_t i = 0; i < n; i++)
                assert_true(fabs(b[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i])));
        }
}

/* 1 / (‖R‖₁ ‖R⁻¹‖₁) of the lower right corner of that order. */
static double rcond_by_lapack(size_t n, const double *r, size_t order) {
    double corner[30 * 30];
    lapack_int m = (lapack_int)order;
    for (size_t j = 0; j < order; j++)
        for (size_t i = 0; i < order; i++)
            corner[i + j * order] = i > j ? 0 : r[n - order + i + (n - order + j) * n];
    double norm = LAPACKE_dlantr(LAPACK_COL_MAJOR, '1', 'U', 'N', m, m, corner, m);
    assert_int_equal(LAPACKE_dtrtri(LAPACK_COL_MAJOR, 'U', 'N', m, corner, m), 0);
    return 1 / norm / LAPACKE_dlantr(LAPACK_COL_MAJOR, '1', 'U', 'N', m, m, corner, m);
}

static void the_largest_corner_of_a_condition_is_that_of_lapack(void **state) {
    (void)state;
    enum { ORDER = 30 };
    double r[ORDER * ORDER];
    struct random random;
    random_init(&random, 3);
    for (int repetition = 0; repetition < 20; repetition++) {
        fill_graded(&random, ORDER, ORDER, r);
        for (size_t order = 1; order <= ORDER; order++) {
            double rcond = rcond_by_lapack(ORDER, r, order);
            assert_true(dense_upper_corner(ORDER, r, ORDER, rcond * (1 - 1e-10)) >= order);
            assert_true(dense_upper_corner(ORDER, r, ORDER, rcond * (1 + 1e-10)) < order);
        }
    }
}

static void the_proof_repeats(void **state) {
    (void)state;
    numeric_setup();
    assert_true(numeric_proof_vectors() == numeric_proof_vectors());
    assert_true(numeric_description()[0] != 0);
}

SUITE(dense) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solving_undoes_the_product),
        cmocka_unit_test(random_triangles_are_solved_as_lapack_does),
        cmocka_unit_test(the_condition_of_a_diagonal_is_the_ratio_of_its_ends),
        cmocka_unit_test(the_largest_corner_of_a_condition_is_that_of_lapack),
        cmocka_unit_test(nan_is_passed_on),
        cmocka_unit_test(the_proof_repeats),
    };
    return cmocka_run_group_tests_name("dense", tests, NULL, NULL);
}
