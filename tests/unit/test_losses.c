/* Losses of one output, against their definitions in long double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "numeric/setup.h"
#include "tests/unit/canned.h"

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, true, 0),
    CANNED_SHAPE(HUBER, 1, true, 1.35),
    CANNED_SHAPE(POISSON, 1, true, 0),
    CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.01),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.5),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.99),
    CANNED_SHAPE(QUANTILE, 1, true, 0.5, 0.01),
    CANNED_SHAPE(QUANTILE, 1, true, 0.999999, 3),
    CANNED_SHAPE(SMOOTH_HINGE, 1, true, 0),
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static const double labels[] = {0, 1, 0.3, 2, 7, 1000, 1e6, 1e-6, -3.7, -1e4};
#define LABELS (sizeof labels / sizeof *labels)

static bool suits(const struct objective_shape *shape, double label) {
    const struct objective *objective = objective_of(shape->kind);
    if (objective->labels == LABEL_BINARY)
        return label == 0 || label == 1;
    return !objective->label_fits || objective->label_fits(label);
}

struct row {
    double loss, derivative, second;
};

static struct row at(const struct objective_shape *shape, double label, double margin) {
    const struct objective *objective = objective_of(shape->kind);
    struct row row = {.derivative = margin};
    double work;
    objective->losses(&shape->loss, 1, 1, &label, &row.derivative, &row.loss, &work);
    objective->second(&shape->loss, 1, 1, &label, &row.derivative, &work, &row.second);
    return row;
}

static void assert_close(double found, long double expected, long double room) {
    if (!(fabsl(found - expected) <= room))
        fail_msg("%.17g, not %.17Lg", found, expected);
}

/* A margin known to an ulp leaves the loss known to the slope times that. */
static void assert_row(const struct objective_shape *shape, double label, double margin) {
    const struct objective *objective = objective_of(shape->kind);
    struct row row = at(shape, label, margin);
    long double slope = margin, loss = canned_loss(shape, label, &slope);
    long double second = canned_second(shape, label, margin), ulp = 0x1p-50L;
    long double size = fabsl(slope) + second * (1 + fabsl(margin) + logl(1 + fabs(label)));
    assert_true(row.loss >= 0 && row.second >= 0);
    assert_close(row.loss, loss,
                 ulp * (loss + size * (1 + fabsl(margin) + fabs(label) * 0x1p-12L)));
    assert_close(row.derivative, slope, ulp * (size + fabs(label)));
    assert_close(row.second, second, ulp * (size + second));
    double bound = objective->second_most;
    if (objective->second_bound)
        bound = objective->second_bound(&shape->loss, fabs(row.derivative), fabs(label));
    assert_true(row.second <= bound * (1 + 1e-12));
    assert_close(objective_loss(objective, &shape->loss, 1, &margin, label), row.loss,
                 4 * ulp * row.loss);

    long double h = 1e-5L, below = margin - h, above = margin + h;
    long double rise = -canned_loss(shape, label, &below);
    rise += canned_loss(shape, label, &above);
    long double curve = second + fabsl(above - below) / (2 * h);
    assert_close(row.derivative, rise / (2 * h),
                 1e-9L * (fabsl(slope) + fabs(label)) + h * curve + 1e-18L * loss / h);
}

static void losses_and_derivatives_are_those_of_the_definitions(void **state) {
    (void)state;
    canned_assert_every_loss(shapes, SHAPES, CANNED_OF_ONE_OUTPUT);
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < LABELS; i++)
            for (double margin = -19.97; margin < 20; margin += 0.37)
                if (suits(&shapes[s], labels[i]))
                    assert_row(&shapes[s], labels[i], margin);
}

/* With t small, half the deviance is about t²/2 times the second derivative at the label. */
static void a_deviance_keeps_its_digits_where_it_is_tiny(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int digits = 3; digits < 12 && objective_of(shapes[s].kind)->label_fits; digits++)
            for (double label = 1e-9; label < 1e10; label *= 1000) {
                double margin = log(label) + pow(10, -digits);
                long double t = margin - logl(label);
                long double a = canned_second(&shapes[s], label, logl(label));
                struct row row = at(&shapes[s], label, margin);
                assert_close(row.loss / (double)(a * t * t / 2), 1, 2 * fabsl(t) + 1e-14L / t);
            }
}

/* Whatever margin and label are, a loss is a number from 0 on, or the trial is given up: then the
 * block says that its bound is exceeded, and adds nothing. */
static void extreme_margins_and_labels_are_finite_or_given_up(void **state) {
    (void)state;
    const double extremes[] = {0,      1,     -1,     1e-300,   1e-12,     -1e-300, 30,
                               700,    -700,  711,    -711,     1e6,       -1e6,    1e149,
                               -1e149, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    const double from[] = {0, 1, 1e-300, 5e-324, 1e-12, 700, 1e6, 1e100, 1e149, -1e149, 1e300};
    const uint32_t start[] = {0, 1}, feature[] = {0};
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t i = 0; i < sizeof from / sizeof *from; i++)
            for (size_t m = 0; m < sizeof extremes / sizeof *extremes; m++) {
                if (!suits(&shapes[s], from[i]))
                    continue;
                struct objective_shape shape = shapes[s];
                shape.features = 1;
                shape.intercept = false;
                struct objective_scale scale = {.uniform = 40, .bounds = bounds_of_one(20)};
                struct rows rows = {.count = 1,
                                    .features = 1,
                                    .values = 1,
                                    .type = VALUE_ONES,
                                    .start = start,
                                    .feature = feature,
                                    .label = &from[i]};
                struct objective_scratch *scratch = objective_scratch_new(&shape);
                struct objective_result result;
                int64_t sum = 0;
                objective_block(&shape, &scale, &rows, &extremes[m], &sum, scratch, &result);
                objective_scratch_free(scratch);
                bool finite = isfinite(result.loss) && isfinite(result.maxima.value[0]);
                assert_true(finite ? result.loss >= 0 : result.exceeded && sum == 0);
                assert_true(isfinite(extremes[m]) || !isfinite(result.loss));
                assert_true(result.maxima.value[0] <= 0x1p20 || result.exceeded);
            }
}

static void a_row_has_the_same_bits_wherever_it_is_in_a_batch(void **state) {
    (void)state;
    enum { N = 203 };
    for (size_t s = 0; s < SHAPES; s++) {
        double label[N], margin[N], loss[N], work[N], second[N];
        const struct objective *objective = objective_of(shapes[s].kind);
        for (size_t i = 0; i < N; i++) {
            label[i] = suits(&shapes[s], labels[i % LABELS]) ? labels[i % LABELS] : 1;
            margin[i] = (double)i / 11 - 8;
        }
        objective->losses(&shapes[s].loss, N, 1, label, margin, loss, work);
        objective->second(&shapes[s].loss, N, 1, label, margin, work, second);
        for (size_t i = 0; i < N; i++) {
            struct row alone = at(&shapes[s], label[i], (double)i / 11 - 8);
            struct row among = {loss[i], margin[i], second[i]};
            assert_memory_equal(&alone, &among, sizeof alone);
        }
    }
}

static void an_intercept_starts_at_the_link_of_the_mean(void **state) {
    (void)state;
    struct label_summary summary = {.mean = 20};
    for (size_t s = 0; s < SHAPES; s++) {
        const struct objective *objective = objective_of(shapes[s].kind);
        if (!objective->label_fits)
            continue;
        double start = objective->start(&shapes[s].loss, &summary);
        assert_close(exp(start), 20, 1e-14L);
        assert_true(fabs(at(&shapes[s], 20, start).derivative) < 1e-13);
        const double odd[] = {0, INFINITY, NAN};
        for (int i = 0; i < 3; i++)
            assert_true(
                objective->start(&shapes[s].loss, &(struct label_summary){.mean = odd[i]}) == 0);
        for (double label = 1e-3; label < 1e9; label *= 10) {
            const struct start_margins margins = {start, start, 0};
            double bound = objective->bound(&shapes[s].loss, &margins, label);
            double derivative = fabs(at(&shapes[s], label, start).derivative);
            double at_zero =
                objective->label_fits(0) ? fabs(at(&shapes[s], 0, start).derivative) : 1;
            assert_true(fmax(derivative, at_zero) <= bound && bound <= 2 * fmax(derivative, 20));
        }
        struct objective_shape shape = shapes[s];
        shape.start = start;
        struct layout layout = objective_layout(&shape);
        double elements[CANNED_FEATURES + 1];
        layout_start(&layout, 0, CANNED_FEATURES + 1, elements);
        assert_true(elements[0] == 0 && elements[CANNED_FEATURES] == start);
    }
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(losses) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_derivatives_are_those_of_the_definitions),
        cmocka_unit_test(a_deviance_keeps_its_digits_where_it_is_tiny),
        cmocka_unit_test(extreme_margins_and_labels_are_finite_or_given_up),
        cmocka_unit_test(a_row_has_the_same_bits_wherever_it_is_in_a_batch),
        cmocka_unit_test(an_intercept_starts_at_the_link_of_the_mean),
    };
    return cmocka_run_group_tests_name("losses", tests, set_up, NULL);
}
