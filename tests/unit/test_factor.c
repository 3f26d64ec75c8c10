/* The preconditioner: made of sums, applied, and what odd columns make of it. */
#include "tests/unit/suites.h"
#include "tests/unit/shard_bench.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/dense.h"
#include "numeric/fixed.h"
#include "shard/factor.h"

enum { TRIANGLE_OF_10 = 55 };

/* Rows of random data, of which the last column is the intercept: 1, and not regularised. */
struct problem {
    size_t n, rows;
    double *x;         /* [rows × n] */
    int16_t *exponent; /* of a column */
    double *h;         /* Σ x·xᵀ/rows, [n × n] */
    struct registers registers;
};

static double *of_row(const struct problem *problem, size_t i) {
    return problem->x + i * problem->n;
}

static void problem_init(struct problem *problem, size_t n, size_t rows) {
    struct random random;
    random_init(&random, 3);
    *problem = (struct problem){.n = n, .rows = rows};
    problem->x = memory_new(n * rows, sizeof *problem->x);
    problem->exponent = memory_new(n, sizeof *problem->exponent);
    problem->h = memory_new(n * n, sizeof *problem->h);
    for (size_t i = 0; i < n * rows; i++)
        problem->x[i] = i % n == n - 1 ? 1 : random_unit(&random) - 0.3;
}

static void problem_release(struct problem *problem) {
    registers_release(&problem->registers);
    free(problem->x);
    free(problem->exponent);
    free(problem->h);
}

static void scale_column(struct problem *problem, size_t column, double by) {
    for (size_t i = 0; i < problem->rows; i++)
        of_row(problem, i)[column] *= by;
}

/* Takes `problem` as data of derivative 1: exponents, sums with b = 1, and H. */
static void add_up(struct problem *problem) {
    const size_t n = problem->n;
    struct message message = setup(0, 0, n);
    message.shard_setup.layout = layout_blob(n - 1, 1, 1);
    message.shard_setup.weight_sum = (double)problem->rows;
    message.shard_setup.hessian.precondition = PRECONDITION_FULL;
    message.shard_setup.hessian.block_columns = (uint32_t)n - 1;
    assert_int_equal(registers_set_up(&problem->registers, &message.shard_setup), 0);
    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t i = 0; i < problem->rows; i++)
            sum += fabs(of_row(problem, i)[j]);
        problem->exponent[j] = (int16_t)fixed_exponent(sum, problem->rows);
    }
    assert_int_equal(registers_set_exponents(&problem->registers, 0, problem->exponent, n), 0);
    for (size_t i = 0; i < problem->rows; i++)
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c <= r; c++) {
                double own = ldexp(of_row(problem, i)[r], problem->exponent[r] - 32);
                double other = ldexp(of_row(problem, i)[c], problem->exponent[c] - 31);
                fixed_add(&problem->registers.sum[r * (r + 1) / 2 + c], own * other);
                problem->h[r * n + c] +=
                    of_row(problem, i)[r] * of_row(problem, i)[c] / (double)problem->rows;
            }
}

static struct factor *make(const struct problem *problem, double lambda, double *added) {
    const struct factor_terms terms = {.lambda = lambda, .serial = 7};
    return factor_make(&problem->registers, 1, &terms, added);
}

/* P·b as LAPACK gives it, with lambda on all but the intercept. */
static void solve_as_lapack(const struct problem *problem, double lambda, double *b) {
    lapack_int n = (lapack_int)problem->n;
    double *h = memory_new(problem->n * problem->n, sizeof *h);
    memcpy(h, problem->h, problem->n * problem->n * sizeof *h);
    for (size_t r = 0; r + 1 < problem->n; r++)
        h[r * problem->n + r] += lambda;
    assert_int_equal(LAPACKE_dposv(LAPACK_ROW_MAJOR, 'L', n, 1, h, n, b, 1), 0);
    free(h);
}

static void assert_close(size_t n, const double *found, const double *expected, double tolerance) {
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(found[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])));
}

static void the_inverse_of_the_sums_is_applied(void **state) {
    (void)state;
    const double lambdas[] = {0, 1e-3, 10};
    struct problem problem;
    problem_init(&problem, 41, 200);
    add_up(&problem);
    for (size_t i = 0; i < 3; i++) {
        double added, b[41], expected[41];
        for (size_t r = 0; r < 41; r++)
            b[r] = expected[r] = sin((double)r);
        struct factor *factor = make(&problem, lambdas[i], &added);
        assert_non_null(factor);
        assert_true(added == 0);
        assert_int_equal(factor->serial, 7);
        factor_apply(factor, b, b);
        solve_as_lapack(&problem, lambdas[i], expected);
        assert_close(41, b, expected, 1e-7); /* 1e-10 is added, and the condition is 100 */
        factor_drop(factor);
    }
    problem_release(&problem);
}

/* Scaling a column by 2^k scales nothing in the scaled matrix: P·b is scaled to the bit. */
static void columns_of_very_different_size_cost_no_precision(void **state) {
    (void)state;
    const int sizes[] = {40, -40, 498, -498};
    struct problem plain, scaled;
    double added, b[9], expected[9];
    for (size_t i = 0; i < 9; i++)
        b[i] = expected[i] = 1 + (double)i;
    problem_init(&plain, 9, 50);
    problem_init(&scaled, 9, 50);
    for (size_t j = 0; j < 4; j++) {
        scale_column(&scaled, j, ldexp(1, sizes[j]));
        b[j] = ldexp(b[j], sizes[j]);
    }
    add_up(&plain);
    add_up(&scaled);
    struct factor *factor = make(&plain, 0, &added);
    factor_apply(factor, expected, expected);
    factor_drop(factor);
    factor = make(&scaled, 0, &added);
    assert_non_null(factor);
    assert_true(added == 0);
    factor_apply(factor, b, b);
    for (size_t j = 0; j < 9; j++)
        assert_true(ldexp(b[j], j < 4 ? sizes[j] : 0) == expected[j]);
    factor_drop(factor);
    problem_release(&plain);
    problem_release(&scaled);
}

static void a_lambda_that_dominates_leaves_its_inverse(void **state) {
    (void)state;
    struct problem problem;
    problem_init(&problem, 5, 20);
    add_up(&problem);
    double added, b[5] = {1, -2, 3, -4, 0}, intercept[5] = {0, 0, 0, 0, 5};
    struct factor *factor = make(&problem, 1e200, &added);
    assert_non_null(factor);
    assert_true(added == 0);
    factor_apply(factor, b, b);
    assert_true(fabs(b[2] * 1e200 - 3) < 1e-9 && fabs(b[3] * 1e200 + 4) < 1e-9);
    factor_apply(factor, intercept, intercept);
    assert_true(fabs(intercept[4] - 5) < 1e-9); /* Σ 1/rows = 1, no lambda */
    factor_drop(factor);
    problem_release(&problem);
}

static void a_column_of_zeros_counts_as_one_of_the_unit_matrix(void **state) {
    (void)state;
    struct problem problem;
    problem_init(&problem, 6, 20);
    scale_column(&problem, 0, 0);
    scale_column(&problem, 3, 0);
    add_up(&problem);
    double added, b[6] = {2, 1, 1, -3, 1, 1};
    struct factor *factor = make(&problem, 0, &added);
    assert_non_null(factor);
    assert_true(added == 0);
    factor_apply(factor, b, b);
    assert_true(fabs(b[0] - 2) < 1e-9 && fabs(b[3] + 3) < 1e-9);
    factor_drop(factor);
    double l2[6] = {2, 0, 0, -3, 0, 0};
    factor = make(&problem, 0.5, &added);
    factor_apply(factor, l2, l2);
    assert_true(fabs(l2[0] - 4) < 1e-9 && fabs(l2[3] + 6) < 1e-9);
    factor_drop(factor);
    problem_release(&problem);
}

/* Duplicates, a constant column beside the intercept, and more columns than rows. */
static void a_singular_matrix_has_a_factor(void **state) {
    (void)state;
    for (size_t rows = 4; rows <= 60; rows += 56) {
        struct problem problem;
        problem_init(&problem, 12, rows);
        for (size_t i = 0; i < rows; i++) {
            of_row(&problem, i)[5] = -3 * of_row(&problem, i)[2];
            of_row(&problem, i)[7] = 0.25;
        }
        add_up(&problem);
        double added, b[12], length = 0;
        for (size_t r = 0; r < 12; r++)
            b[r] = problem.h[11 * 12 + r]; /* a gradient that is in the range of H */
        struct factor *factor = make(&problem, 0, &added);
        assert_non_null(factor);
        assert_true(added == 0); /* what is always added is enough */
        factor_apply(factor, b, b);
        for (size_t r = 0; r < 12; r++)
            length += problem.h[11 * 12 + r] * b[r];
        assert_true(length > 0.5 &&
                    length < 2); /* b·P·b, near e·H·e of the intercept, which is 1 */
        factor_drop(factor);
        factor = make(&problem, 1e-6, &added); /* lambda makes it regular */
        assert_true(factor && added == 0);
        factor_drop(factor);
        problem_release(&problem);
    }
}

/* bᵀ·P·b, and what P hides of bᵀ·H⁻¹·b. */
static double form_of(struct problem *problem, const double *b, double *hidden) {
    double added, applied[12], sum = 0;
    struct factor *factor = make(problem, 0, &added);
    assert_true(factor && added == 0);
    registers_set_factor(&problem->registers, factor);
    factor_apply(factor, applied, b);
    *hidden = factor_hidden_gap(&problem->registers, applied);
    for (size_t r = 0; r < 12; r++)
        sum += b[r] * applied[r];
    return sum;
}

/* Columns that differ by a hundred-thousandth: what is always added would be most of their
 * curvature.
 */
static void nearly_collinear_columns_keep_their_curvature(void **state) {
    (void)state;
    struct problem problem;
    struct random random;
    random_init(&random, 8);
    problem_init(&problem, 12, 60);
    for (size_t i = 0; i < 60; i++)
        of_row(&problem, i)[5] = of_row(&problem, i)[2] + 1e-5 * random_unit(&random);
    add_up(&problem);
    double b[12], solved[12], hidden, expected = 0;
    for (size_t r = 0; r < 12; r++)
        b[r] = solved[r] = sin((double)r);
    solve_as_lapack(&problem, 0, solved);
    for (size_t r = 0; r < 12; r++)
        expected += b[r] * solved[r];
    double found = form_of(&problem, b, &hidden);
    assert_true(fabs(found - expected) < 0.01 * expected);
    assert_true(hidden == 0);
    problem_release(&problem);
}

/* Along the direction that no row has, a gradient in the range of H has rounding alone. */
static void what_a_factor_hides_counts_unless_the_gradient_has_nothing_there(void **state) {
    (void)state;
    struct problem problem;
    problem_init(&problem, 12, 60);
    for (size_t i = 0; i < 60; i++)
        of_row(&problem, i)[5] = -3 * of_row(&problem, i)[2];
    add_up(&problem);
    double b[12], hidden;
    for (size_t r = 0; r < 12; r++)
        b[r] = problem.h[11 * 12 + r];
    double found = form_of(&problem, b, &hidden);
    assert_true(hidden < 1e-6 * found);
    b[2] += 3e-8;
    b[5] += 1e-8;
    form_of(&problem, b, &hidden);
    assert_true(hidden > found);
    problem_release(&problem);
}

/* Products larger than the squares: no data has them, but rounding leaves a little of that. */
static void an_indefinite_matrix_is_raised_by_as_little_as_helps(void **state) {
    (void)state;
    const double beyond[] = {1.001, 100};
    for (size_t i = 0; i < 2; i++) {
        struct problem problem;
        double added, b[3] = {1, 2, 3};
        problem_init(&problem, 3, 30);
        add_up(&problem);
        int64_t *sum = problem.registers.sum;
        sum[1] = (int64_t)(beyond[i] * sqrt((double)sum[0] * (double)sum[2]));
        sum[4] = -sum[1]; /* as if two columns were one, and one of them against a third */
        sum[3] = sum[1];
        struct factor *factor = make(&problem, 0, &added);
        assert_non_null(factor);
        assert_true(added > 0 && added <= 10);
        factor_apply(factor, b, b);
        assert_true(isfinite(b[0] + b[1] + b[2]));
        factor_drop(factor);
        problem_release(&problem);
    }
}

static void one_parameter_is_enough(void **state) {
    (void)state;
    struct problem problem;
    double added, b = 3;
    problem_init(&problem, 1, 10);
    add_up(&problem);
    struct factor *factor = make(&problem, 0, &added);
    assert_non_null(factor);
    factor_apply(factor, &b, &b);
    assert_true(fabs(b - 3) < 1e-9);
    factor_drop(factor);
    problem_release(&problem);
}

static void what_is_not_finite_or_below_zero_makes_none(void **state) {
    (void)state;
    const double lambdas[] = {NAN, INFINITY, -1, -INFINITY};
    struct problem problem;
    double added = 0;
    problem_init(&problem, 10, 30);
    add_up(&problem);
    for (size_t i = 0; i < 4; i++) {
        assert_null(make(&problem, lambdas[i], &added));
        assert_true(isinf(added) && added > 0);
    }
    int64_t *corner = &problem.registers.sum[TRIANGLE_OF_10 - 1];
    *corner = -*corner;
    assert_null(make(&problem, 0, &added));
    assert_true(isinf(added) && added > 0);
    problem_release(&problem);
}

static void what_is_not_finite_is_passed_on(void **state) {
    (void)state;
    struct problem problem;
    double added, b[10] = {0, INFINITY};
    problem_init(&problem, 10, 30);
    add_up(&problem);
    struct factor *factor = make(&problem, 0, &added);
    factor_apply(factor, b, b);
    for (size_t r = 0; r < 10; r++)
        assert_true(!isfinite(b[r]));
    factor_drop(factor);
    problem_release(&problem);
}

SUITE(factor) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_inverse_of_the_sums_is_applied),
        cmocka_unit_test(columns_of_very_different_size_cost_no_precision),
        cmocka_unit_test(a_lambda_that_dominates_leaves_its_inverse),
        cmocka_unit_test(a_column_of_zeros_counts_as_one_of_the_unit_matrix),
        cmocka_unit_test(a_singular_matrix_has_a_factor),
        cmocka_unit_test(nearly_collinear_columns_keep_their_curvature),
        cmocka_unit_test(what_a_factor_hides_counts_unless_the_gradient_has_nothing_there),
        cmocka_unit_test(an_indefinite_matrix_is_raised_by_as_little_as_helps),
        cmocka_unit_test(one_parameter_is_enough),
        cmocka_unit_test(what_is_not_finite_or_below_zero_makes_none),
        cmocka_unit_test(what_is_not_finite_is_passed_on),
    };
    return cmocka_run_group_tests_name("factor", tests, NULL, NULL);
}
