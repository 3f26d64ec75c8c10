/* L-BFGS in the span of common directions, on linear models in memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "tests/unit/memory_backend.h"

enum { ROWS = 120, COLUMNS = 14, OUTPUTS = 3, N = OUTPUTS * COLUMNS };

static const double start[N];
static uint32_t begin[ROWS + 1], column[ROWS * COLUMNS];
static double value[ROWS * COLUMNS], labels[ROWS], weights[ROWS];

static struct rows_problem problem;

/* In [−1, 1). */
static double drawn(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)*state * 0x1p-63;
}

/* Columns of very different sizes, the last of which is 1; labels are noisy. */
static int some_rows(void **state) {
    (void)state;
    uint64_t random = 7;
    for (uint32_t i = 0; i < ROWS; i++) {
        double sum = 0;
        begin[i] = i * COLUMNS;
        for (uint32_t j = 0; j < COLUMNS; j++) {
            double scale = pow(10, 1.5 * j / COLUMNS - 1);
            column[i * COLUMNS + j] = j;
            value[i * COLUMNS + j] = j + 1 < COLUMNS ? scale * drawn(&random) : 1;
            sum += value[i * COLUMNS + j] * (j % 2 ? -1 : 1);
        }
        labels[i] = sum + 2 * drawn(&random);
        weights[i] = 1 + fabs(drawn(&random));
    }
    begin[ROWS] = ROWS * COLUMNS;
    return 0;
}

/* The labels as the loss wants them. */
static void make(enum rows_loss loss, bool intercept) {
    static double made[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        made[i] = loss == ROWS_LOGISTIC  ? (labels[i] > 0 ? 1 : -1)
                  : loss == ROWS_SOFTMAX ? (labels[i] > 1) + (labels[i] > -1)
                                         : labels[i];
    problem = (struct rows_problem){.loss = loss,
                                    .rows = ROWS,
                                    .columns = COLUMNS,
                                    .outputs = loss == ROWS_SOFTMAX ? OUTPUTS : 1,
                                    .start = begin,
                                    .column = column,
                                    .value = value,
                                    .labels = made,
                                    .weights = NULL,
                                    .intercept = intercept};
}

static struct optimizer_settings settings_of(uint32_t directions) {
    return (struct optimizer_settings){.memory = 5,
                                       .l2 = 1e-3,
                                       .bias_scale = 1,
                                       .gradient_tolerance = 1e-9,
                                       .steps_max = 1000,
                                       .directions = directions,
                                       .outputs = problem.outputs,
                                       .weighted = problem.weights != NULL};
}

static void minimize_undisturbed(uint32_t directions, struct minimization *result) {
    struct optimizer_settings settings = settings_of(directions);
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, result);
}

/* The same optimum as without directions, in fewer passes. */
static void assert_same_optimum_sooner(void) {
    struct minimization with, without;
    minimize_undisturbed(20, &with);
    minimize_undisturbed(0, &without);
    assert_int_equal(with.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    assert_int_equal(without.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    for (uint32_t i = 0; i < problem.columns * problem.outputs; i++)
        assert_true(fabs(with.x[i] - without.x[i]) < 1e-5);
    assert_true(with.loss_largest_rise <= 1e-12);
    print_message("%g passes, %g without\n", with.passes, without.passes);
    assert_true(with.passes < without.passes);
    free(with.x);
    free(without.x);
}

static void logistic_regression_takes_fewer_passes(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, false);
    assert_same_optimum_sooner();
    make(ROWS_LOGISTIC, true);
    assert_same_optimum_sooner();
}

static void so_do_squared_and_softmax_losses_with_weights(void **state) {
    (void)state;
    make(ROWS_SQUARED, true);
    problem.weights = weights;
    assert_same_optimum_sooner();
    make(ROWS_SOFTMAX, true);
    problem.weights = weights;
    assert_same_optimum_sooner();
}

/* ---- whatever happens to a run ---- */

/* The Hessian of the logistic loss without weights, row-major. */
static void logistic_hessian(uint32_t n, const double *x, double *hessian) {
    memset(hessian, 0, (size_t)n * n * sizeof *hessian);
    for (uint32_t i = 0; i < ROWS; i++) {
        double margin = 0;
        const double *row = value + (size_t)i * COLUMNS;
        for (uint32_t j = 0; j < n; j++)
            margin += row[j] * x[j];
        double chance = 1 / (1 + exp(-margin)), second = chance * (1 - chance) / ROWS;
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < n; k++)
                hessian[(size_t)j * n + k] += second * row[j] * row[k];
    }
}

/* At each request of a run with few directions, so that some are dropped and Z is made anew. */
static void assert_same_bits(test_hessian *hessian, enum disturbance disturbance) {
    struct optimizer_settings settings = settings_of(3);
    if (hessian)
        settings.preconditioner = (struct preconditioner_settings){.form = PRECONDITION_FULL,
                                                                   .rows = ROWS,
                                                                   .sample = 60,
                                                                   .columns = COLUMNS,
                                                                   .block_columns = COLUMNS,
                                                                   .parts = 1,
                                                                   .trace_first = .25,
                                                                   .price_term = 1e-5};
    struct minimization undisturbed, disturbed;
    minimize_rows(&problem, hessian, UNDISTURBED, 0, start, &settings, &undisturbed);
    print_message("%u requests, %u steps, %g passes\n", undisturbed.requests,
                  (unsigned)undisturbed.optimizer.step, undisturbed.passes);
    uint32_t n = problem.columns * problem.outputs;
    for (uint32_t at = 0; at < undisturbed.requests; at += disturbance == SERIALIZED ? 1000 : 1) {
        minimize_rows(&problem, hessian, disturbance, at, start, &settings, &disturbed);
        assert_memory_equal(disturbed.x, undisturbed.x, n * sizeof(double));
        assert_true(disturbed.optimizer.loss == undisturbed.optimizer.loss);
        assert_int_equal(disturbed.optimizer.step, undisturbed.optimizer.step);
        assert_int_equal(disturbed.optimizer.reason, undisturbed.optimizer.reason);
        free(disturbed.x);
    }
    free(undisturbed.x);
}

static void a_run_goes_on_from_any_request(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, true);
    problem.weights = weights;
    assert_same_bits(NULL, SERIALIZED);
    make(ROWS_LOGISTIC, false);
    assert_same_bits(logistic_hessian, SERIALIZED);
}

static void a_run_that_is_rolled_back_anywhere_comes_to_the_same_bits(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, true);
    problem.weights = weights;
    assert_same_bits(NULL, ROLLED_BACK);
    make(ROWS_LOGISTIC, false);
    assert_same_bits(logistic_hessian, ROLLED_BACK);
}

static void a_run_that_is_cancelled_anywhere_comes_to_the_same_bits(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, true);
    problem.weights = weights;
    assert_same_bits(NULL, CANCELLED);
    make(ROWS_LOGISTIC, false);
    assert_same_bits(logistic_hessian, CANCELLED);
}

SUITE(common_directions) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_regression_takes_fewer_passes),
        cmocka_unit_test(so_do_squared_and_softmax_losses_with_weights),
        cmocka_unit_test(a_run_goes_on_from_any_request),
        cmocka_unit_test(a_run_that_is_rolled_back_anywhere_comes_to_the_same_bits),
        cmocka_unit_test(a_run_that_is_cancelled_anywhere_comes_to_the_same_bits),
    };
    return cmocka_run_group_tests(tests, some_rows, NULL);
}
