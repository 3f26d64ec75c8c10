#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

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
    assert_true(fabs(dense_upper_rcond(2, r, 2) - 1e-8) < 1e-20);
    r[3] = 0;
    assert_true(dense_upper_rcond(2, r, 2) == 0);
    assert_true(dense_upper_rcond(0, NULL, 1) == 1);
}

static void nan_is_passed_on(void **state) {
    (void)state;
    double r[4] = {1, 0, NAN, 2};
    double b[2] = {1, 1};
    dense_upper_solve(2, r, 2, false, b);
    assert_true(isnan(b[0]) && b[1] == 0.5);
    assert_true(dense_upper_rcond(2, r, 2) == 0);
}

static void the_proof_repeats(void **state) {
    (void)state;
    numeric_setup();
    assert_true(numeric_proof_vectors() == numeric_proof_vectors());
    assert_true(numeric_description()[0] != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solving_undoes_the_product),
        cmocka_unit_test(the_condition_of_a_diagonal_is_the_ratio_of_its_ends),
        cmocka_unit_test(nan_is_passed_on),
        cmocka_unit_test(the_proof_repeats),
    };
    return cmocka_run_group_tests_name("dense", tests, NULL, NULL);
}
