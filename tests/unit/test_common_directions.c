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

static void a_run_from_zero_needs_no_product_for_its_margins_there(void **state) {
    (void)state;
    struct minimization with, without;
    make(ROWS_LOGISTIC, true);
    struct optimizer_settings settings = settings_of(20);
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &without);
    settings.from_zero = true;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &with);
    assert_int_equal(with.optimizer.evaluations + 1, without.optimizer.evaluations);
    assert_memory_equal(with.x, without.x, problem.columns * sizeof *with.x);
    free(with.x);
    free(without.x);
}

/* Columns of one sign go with the bias: one direction of both is a poor first step. */
static void biases_have_a_direction_of_their_own_where_columns_go_with_them(void **state) {
    (void)state;
    struct minimization apart, along;
    make(ROWS_LOGISTIC, true);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        value[i] = fabs(value[i]);
    struct optimizer_settings settings = settings_of(20);
    settings.steps_max = 1;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &along);
    settings.bias_scale = 0.5;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &apart);
    assert_int_equal(along.optimizer.common.window.entered, 1);
    assert_int_equal(apart.optimizer.common.window.entered, 2);
    print_message("%g, %g along one\n", apart.optimizer.loss, along.optimizer.loss);
    assert_true(apart.optimizer.loss < along.optimizer.loss);
    assert_false(apart.optimizer.common.biases_due);
    struct lbfgs stopping;
    settings.patience = 3;
    lbfgs_init(&stopping, &settings, &(struct optimizer_data){0});
    assert_false(stopping.common.biases_due);
    free(apart.x);
    free(along.x);
    some_rows(NULL);
}

/* Squares of columns are 1 here. */
static void what_l2_says_of_the_gap_ends_a_run_sooner_and_is_no_less_than_the_gap(void **state) {
    (void)state;
    struct minimization least, early, late;
    make(ROWS_LOGISTIC, false);
    struct optimizer_settings settings = settings_of(20);
    settings.l2 = 1;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &least);
    settings.gradient_tolerance = 1;
    settings.gap = (struct gap_settings){.known = true,
                                         .second = 0.25,
                                         .bias_share = 1,
                                         .least = 1e-3,
                                         .tolerance = 1e-6,
                                         .waited_for = true};
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &late);
    settings.gap.mean_square = 1;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &early);
    assert_true(early.optimizer.step < late.optimizer.step);
    double gap = lbfgs_answer(&early.optimizer).loss - lbfgs_answer(&least.optimizer).loss;
    double estimate = lbfgs_answer(&early.optimizer).gap_estimate;
    assert_true(gap <= estimate && estimate <= 1e-6 * early.optimizer.loss);
    free(least.x);
    free(early.x);
    free(late.x);
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

/* Few directions, so that some are dropped and Z is made anew. */
static struct optimizer_settings settings_of_few(test_hessian *hessian, uint32_t patience) {
    struct optimizer_settings settings = settings_of(3);
    settings.patience = patience;
    if (hessian)
        settings.preconditioner = (struct preconditioner_settings){.form = PRECONDITION_FULL,
                                                                   .rows = ROWS,
                                                                   .sample = 60,
                                                                   .columns = COLUMNS,
                                                                   .block_columns = COLUMNS,
                                                                   .parts = 1,
                                                                   .trace_first = .25,
                                                                   .cost_term = 1e-5};
    return settings;
}

static void assert_same_end(const struct minimization *a, const struct minimization *b) {
    struct optimizer_point one = lbfgs_answer(&a->optimizer), other = lbfgs_answer(&b->optimizer);
    assert_memory_equal(a->x, b->x, problem.columns * problem.outputs * sizeof(double));
    assert_true(one.loss == other.loss && one.gradient_max == other.gradient_max);
    assert_int_equal(one.step, other.step);
    assert_int_equal(a->optimizer.step, b->optimizer.step);
    assert_int_equal(a->optimizer.reason, b->optimizer.reason);
}

enum { APART = SANITIZED ? 47 : 1 }; /* disturbed places */

/* At each request, or after each step. */
static void assert_same_bits(test_hessian *hessian, uint32_t patience,
                             enum disturbance disturbance) {
    struct optimizer_settings settings = settings_of_few(hessian, patience);
    settings.bias_scale = 0.5; /* so biases have a direction of their own */
    struct minimization undisturbed, disturbed;
    minimize_rows(&problem, hessian, UNDISTURBED, 0, start, &settings, &undisturbed);
    uint32_t times = disturbance == SERIALIZED ? 1
                     : disturbance == LIMITED  ? (uint32_t)undisturbed.optimizer.step
                                               : undisturbed.requests;
    assert_true(undisturbed.optimizer.step > 5);
    for (uint32_t at = 0; at < times; at += APART) {
        minimize_rows(&problem, hessian, disturbance, at, start, &settings, &disturbed);
        assert_same_end(&disturbed, &undisturbed);
        free(disturbed.x);
    }
    free(undisturbed.x);
}

/* Other rows than those that are trained on: the loss on them falls, and rises again. */
static void hold_out_half(void) {
    static struct rows_problem half;
    half = problem;
    half.start += ROWS / 2;
    half.labels += ROWS / 2;
    half.rows = ROWS / 2;
    problem.rows = ROWS / 2;
    problem.holdout = &half;
}

/* With weights, with P, and with a holdout. */
static void assert_same_bits_of_all(enum disturbance disturbance) {
    make(ROWS_LOGISTIC, true);
    problem.weights = weights;
    assert_same_bits(NULL, 0, disturbance);
    make(ROWS_LOGISTIC, false);
    assert_same_bits(logistic_hessian, 0, disturbance);
    make(ROWS_LOGISTIC, true);
    hold_out_half();
    assert_same_bits(NULL, 5, disturbance);
}

static void a_run_goes_on_from_what_it_wrote_at_any_request(void **state) {
    (void)state;
    assert_same_bits_of_all(SERIALIZED);
}

static void a_run_that_is_rolled_back_anywhere_comes_to_the_same_bits(void **state) {
    (void)state;
    assert_same_bits_of_all(ROLLED_BACK);
}

static void a_run_that_is_cancelled_anywhere_comes_to_the_same_bits(void **state) {
    (void)state;
    assert_same_bits_of_all(CANCELLED);
}

/* What the check at the limit found is told, and leaves no trace. */
static void a_limit_that_is_raised_leaves_no_trace(void **state) {
    (void)state;
    assert_same_bits_of_all(LIMITED);
}

/* ---- tiles ---- */

static void make_tiled(enum rows_loss loss) {
    make(loss, true);
    problem.tiles = 4;
}

static void assert_optimum_of_whole_rows(uint32_t directions) {
    for (enum rows_loss loss = ROWS_LOGISTIC; loss <= ROWS_SOFTMAX; loss++) {
        struct minimization tiled, whole;
        make_tiled(loss);
        minimize_undisturbed(directions, &tiled);
        make(loss, true);
        minimize_undisturbed(directions, &whole);
        assert_int_equal(tiled.optimizer.reason, REASON_GRADIENT_TOLERANCE);
        for (uint32_t i = 0; i < problem.columns * problem.outputs; i++)
            assert_true(fabs(tiled.x[i] - whole.x[i]) < 1e-7);
        free(tiled.x);
        free(whole.x);
    }
}

static void tiles_have_the_optimum_of_whole_rows(void **state) {
    (void)state;
    assert_optimum_of_whole_rows(10);
}

/* Labels, weights and sizes of rows are fetched anew, and bounds of points are measured anew. */
static void whatever_happens_to_a_run_in_tiles_it_has_the_same_bits(void **state) {
    (void)state;
    for (enum disturbance disturbance = SERIALIZED; disturbance <= LIMITED; disturbance++) {
        make_tiled(ROWS_LOGISTIC);
        problem.weights = weights;
        assert_same_bits(NULL, 0, disturbance);
    }
}

/* No replica can compute a loss: what is told comes from margins that were made anew. */
static void a_run_in_tiles_is_checked_by_margins_made_anew(void **state) {
    (void)state;
    make_tiled(ROWS_LOGISTIC);
    struct optimizer_settings settings = settings_of(3);
    settings.gradient_tolerance = 1e-8;
    struct minimization result;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_GRADIENT_TOLERANCE);
    long double square = 0;
    for (uint32_t j = 0; j + 1 < COLUMNS; j++)
        square += (long double)result.x[j] * result.x[j];
    double mean = rows_loss_at(&problem, result.x) / rows_weight_sum(&problem);
    double loss = lbfgs_answer(&result.optimizer).loss;
    assert_true(fabs(loss - mean - settings.l2 / 2 * (double)square) < 1e-15);
    assert_int_equal(result.optimizer.common.age, 0);
    free(result.x);
}

/* ---- tiles without directions: evaluations by products ---- */

static void a_line_search_in_tiles_has_the_optimum_of_whole_rows(void **state) {
    (void)state;
    assert_optimum_of_whole_rows(0);
}

static void whatever_happens_to_a_line_search_in_tiles_it_has_the_same_bits(void **state) {
    (void)state;
    for (enum disturbance disturbance = SERIALIZED; disturbance <= LIMITED; disturbance++) {
        struct minimization undisturbed, disturbed;
        make_tiled(ROWS_LOGISTIC);
        problem.weights = weights;
        struct optimizer_settings settings = settings_of(0);
        minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &undisturbed);
        for (uint32_t at = 0; at < 40; at++) {
            minimize_rows(&problem, NULL, disturbance, at, start, &settings, &disturbed);
            assert_same_end(&disturbed, &undisturbed);
            free(disturbed.x);
        }
        free(undisturbed.x);
    }
}

/* Of a trial that is much too far the loss is measured, and no derivative is fetched. */
static void a_trial_that_is_too_far_costs_a_product_alone(void **state) {
    (void)state;
    struct optimizer_settings settings = settings_of(0);
    struct minimization result;
    double far[N];
    for (uint32_t j = 0; j < N; j++)
        far[j] = j % 2 ? 20 : -20;
    make_tiled(ROWS_LOGISTIC);
    minimize_rows(&problem, NULL, UNDISTURBED, 0, far, &settings, &result);
    uint64_t products = 1 + result.optimizer.step + result.optimizer.retries;
    uint64_t fetched = 2; /* labels and sizes */
    assert_true(result.optimizer.retries > 0);
    assert_true(result.optimizer.evaluations < fetched + 2 * products);
    free(result.x);
}

/* ---- ends ---- */

static void a_run_with_a_holdout_ends_at_its_best_point(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, true);
    hold_out_half();
    struct optimizer_settings settings = settings_of_few(NULL, 5);
    struct minimization result;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_EARLY_STOPPING);
    struct optimizer_point best = lbfgs_answer(&result.optimizer);
    assert_int_equal(result.optimizer.step, best.step + 5);
    double loss = rows_loss_at(problem.holdout, result.x) / rows_weight_sum(problem.holdout);
    assert_true(best.holdout.loss == loss);
    free(result.x);
}

/* Not by margins that were kept for 31 steps. */
static void what_is_told_of_the_end_comes_from_an_ordinary_evaluation(void **state) {
    (void)state;
    make(ROWS_LOGISTIC, false);
    struct optimizer_settings settings = settings_of(3);
    settings.steps_max = 31;
    struct minimization result;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_STEP_LIMIT);
    long double square = 0;
    for (uint32_t j = 0; j < COLUMNS; j++)
        square += (long double)result.x[j] * result.x[j];
    double mean = rows_loss_at(&problem, result.x) / rows_weight_sum(&problem);
    assert_true(lbfgs_answer(&result.optimizer).loss == mean + settings.l2 / 2 * (double)square);
    assert_true(lbfgs_answer(&result.optimizer).loss != result.optimizer.loss);
    free(result.x);
}

/* No product is finite in the end: the run stops with the last good point. */
static void margins_that_overflow_end_a_run_with_a_reason(void **state) {
    (void)state;
    make(ROWS_SQUARED, false);
    static double huge[ROWS * COLUMNS];
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        huge[i] = 1e120 * value[i];
    problem.value = huge;
    struct minimization result;
    minimize_undisturbed(5, &result);
    assert_int_equal(result.optimizer.reason, REASON_STALLED);
    for (uint32_t j = 0; j < COLUMNS; j++)
        assert_true(result.x[j] == 0);
    free(result.x);
}

static void a_start_that_is_not_finite_is_no_start(void **state) {
    (void)state;
    make(ROWS_SQUARED, false);
    double far[COLUMNS];
    for (uint32_t j = 0; j < COLUMNS; j++)
        far[j] = 1e300;
    struct optimizer_settings settings = settings_of(5);
    struct minimization result;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, far, &settings, &result);
    assert_int_equal(result.optimizer.reason, REASON_NOT_FINITE);
    free(result.x);
}

static void a_loss_that_curves_nowhere_still_falls(void **state) {
    (void)state;
    make(ROWS_CORNER, true);
    struct optimizer_settings settings = settings_of(10);
    settings.steps_max = 200;
    struct minimization result;
    minimize_rows(&problem, NULL, UNDISTURBED, 0, start, &settings, &result);
    double zero[COLUMNS] = {0};
    assert_true(rows_loss_at(&problem, result.x) < 0.7 * rows_loss_at(&problem, zero));
    free(result.x);
}

SUITE(common_directions) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_regression_takes_fewer_passes),
        cmocka_unit_test(so_do_squared_and_softmax_losses_with_weights),
        cmocka_unit_test(a_run_from_zero_needs_no_product_for_its_margins_there),
        cmocka_unit_test(biases_have_a_direction_of_their_own_where_columns_go_with_them),
        cmocka_unit_test(what_l2_says_of_the_gap_ends_a_run_sooner_and_is_no_less_than_the_gap),
        cmocka_unit_test(a_run_goes_on_from_what_it_wrote_at_any_request),
        cmocka_unit_test(a_run_that_is_rolled_back_anywhere_comes_to_the_same_bits),
        cmocka_unit_test(a_run_that_is_cancelled_anywhere_comes_to_the_same_bits),
        cmocka_unit_test(a_limit_that_is_raised_leaves_no_trace),
        cmocka_unit_test(tiles_have_the_optimum_of_whole_rows),
        cmocka_unit_test(whatever_happens_to_a_run_in_tiles_it_has_the_same_bits),
        cmocka_unit_test(a_run_in_tiles_is_checked_by_margins_made_anew),
        cmocka_unit_test(a_line_search_in_tiles_has_the_optimum_of_whole_rows),
        cmocka_unit_test(whatever_happens_to_a_line_search_in_tiles_it_has_the_same_bits),
        cmocka_unit_test(a_trial_that_is_too_far_costs_a_product_alone),
        cmocka_unit_test(a_run_with_a_holdout_ends_at_its_best_point),
        cmocka_unit_test(what_is_told_of_the_end_comes_from_an_ordinary_evaluation),
        cmocka_unit_test(margins_that_overflow_end_a_run_with_a_reason),
        cmocka_unit_test(a_start_that_is_not_finite_is_no_start),
        cmocka_unit_test(a_loss_that_curves_nowhere_still_falls),
    };
    return cmocka_run_group_tests(tests, some_rows, NULL);
}
