#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/random.h"
#include "objective/loss_row.h"
#include "objective/objective.h"

/* What a device computes row by row is what the table's functions compute of arrays, to the bit. */

enum { ROWS = 130, OUTPUTS_MAX = 100, NUMBERS_MAX = ROWS * OUTPUTS_MAX };
static double label[NUMBERS_MAX], margins[NUMBERS_MAX], loss[ROWS], work[NUMBERS_MAX];
static double derivatives[NUMBERS_MAX], second[NUMBERS_MAX];

static bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void assert_same(size_t n, const double *a, const double *b) {
    for (size_t i = 0; i < n; i++)
        assert_true(same(a[i], b[i]));
}

/* Of every size, now and then at an end. Rows of many outputs are finite as a rule. */
static double any_margin(struct random *random, size_t outputs) {
    static const double edges[] = {0,      -0.0,      INFINITY,   -INFINITY, NAN,  1e300,
                                   -1e300, 0x1p-1074, -0x1p-1022, 709.8,     -746, 1};
    double unit = 2 * random_unit(random) - 1;
    switch (random_below(random, 4)) {
    case 0:
        return 4 * unit;
    case 1:
        return 800 * unit;
    case 2:
        return unit * pow(10, (double)random_below(random, 601) - 300);
    default:
        return random_below(random, outputs) ? unit : edges[random_below(random, 12)];
    }
}

static double any_target(struct random *random, const struct objective *objective, double margin) {
    static const double edges[] = {0, 1, 1e-300, 1e150, 0x1p-1074, 5};
    double unit = random_unit(random), target;
    switch (random_below(random, 4)) {
    case 0:
        target = edges[random_below(random, 6)];
        break;
    case 1:
        target = margin; /* a residual of 0 */
        break;
    case 2:
        target = exp(margin) * (1 + 1e-9 * unit);
        break;
    default:
        target = 10 * unit - (objective->label_fits ? 0 : 5);
    }
    return isfinite(target) && (!objective->label_fits || objective->label_fits(target)) ? target
                                                                                         : 2.5;
}

static void draw(struct random *random, const struct objective *objective, size_t outputs) {
    for (size_t i = 0; i < ROWS * outputs; i++)
        margins[i] = any_margin(random, outputs);
    for (size_t i = 0; i < ROWS; i++)
        if (objective->labels == LABEL_TARGET)
            label[i] = any_target(random, objective, margins[i]);
        else if (objective->labels == LABEL_LISTS)
            for (size_t k = 0; k < outputs; k++)
                label[i * outputs + k] = (double)random_below(random, 2);
        else
            label[i] =
                (double)random_below(random, objective->output_a_class ? outputs : outputs + 1);
}

static bool has_many_outputs(const struct objective *objective) {
    return objective->output_a_class || objective->shares_weights;
}

static void check_second(enum objective_kind kind, const struct loss_parameters *parameters,
                         size_t outputs, size_t i, const double *own, const double *row_work) {
    const struct objective *objective = objective_of(kind);
    const double *row_label = label + i * (objective->labels == LABEL_LISTS ? outputs : 1);
    const double *at = derivatives + i * outputs;
    double diagonal[OUTPUTS_MAX], expected[OUTPUTS_MAX], row[OUTPUTS_MAX];
    loss_second(kind, parameters, outputs, row_label, own, row_work, diagonal);
    assert_same(outputs, diagonal, second + i * outputs);
    assert_true(has_many_outputs(objective) == (objective->second_row != NULL));
    for (size_t k = 0; k < outputs && objective->second_row; k += 1 + outputs / 7) {
        objective->second_row(outputs, *row_label, at, k, expected);
        loss_second_row(kind, outputs, *row_label, own, k, row);
        assert_same(outputs, row, expected);
    }
}

static void check(enum objective_kind kind, const struct loss_parameters *parameters,
                  size_t outputs) {
    const struct objective *objective = objective_of(kind);
    const size_t labels = objective->labels == LABEL_LISTS ? outputs : 1;
    const enum prediction_check check = prediction_check_of(objective, outputs);
    memcpy(derivatives, margins, ROWS * outputs * sizeof *margins);
    objective->losses(parameters, ROWS, outputs, label, derivatives, loss, work);
    objective->second(parameters, ROWS, outputs, label, derivatives, work, second);
    for (size_t i = 0; i < ROWS; i++) {
        double row[OUTPUTS_MAX], row_work[OUTPUTS_MAX], row_loss = 7;
        memcpy(row, margins + i * outputs, outputs * sizeof *row);
        if (isfinite(loss[i])) /* else nobody asks */
            assert_int_equal(check_row(check, outputs, row, label + i * labels),
                             objective_is_correct(objective, outputs, row, label + i * labels));
        loss_row(kind, parameters, outputs, label + i * labels, row, &row_loss, row_work);
        assert_true(same(row_loss, loss[i]));
        assert_same(outputs, row, derivatives + i * outputs);
        check_second(kind, parameters, outputs, i, row, row_work);
    }
}

static void losses_of_a_row_are_those_of_the_table(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int number = 0; number < OBJECTIVES; number++) {
        const enum objective_kind kind = (enum objective_kind)number;
        const struct loss_parameters parameters = objective_defaults(kind);
        const size_t most = has_many_outputs(objective_of(kind)) ? OUTPUTS_MAX : 1;
        for (size_t outputs = 1; outputs <= most; outputs += SANITIZED ? 3 : 1)
            for (int repeat = 0; repeat < (most == 1 ? 100 : 2); repeat++) {
                draw(&random, objective_of(kind), outputs);
                check(kind, &parameters, outputs);
            }
    }
}

static void parameters_of_losses_are_those_of_the_table(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (int number = 0; number < OBJECTIVES; number++)
        for (uint32_t which = 0; which < LOSS_PARAMETERS_MAX; which++) {
            const enum objective_kind kind = (enum objective_kind)number;
            const struct loss_parameter *parameter = objective_parameter(kind, which);
            struct loss_parameters parameters = objective_defaults(kind);
            for (int end = 0; parameter && end < 2; end++) {
                parameters.value[which] = end ? parameter->most : parameter->least;
                draw(&random, objective_of(kind), 1);
                check(kind, &parameters, 1);
            }
        }
}

/* The table calls them by their numbers in the list. */
static void parameters_are_numbered_as_in_the_list(void **state) {
    (void)state;
    assert_string_equal(objective_parameter(OBJECTIVE_HUBER, HUBER_DELTA)->name, "delta");
    assert_string_equal(objective_parameter(OBJECTIVE_TWEEDIE, TWEEDIE_POWER)->name, "power");
    assert_string_equal(objective_parameter(OBJECTIVE_QUANTILE, QUANTILE_TAU)->name, "tau");
    assert_string_equal(objective_parameter(OBJECTIVE_QUANTILE, QUANTILE_EPSILON)->name, "epsilon");
}

SUITE(loss_row) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_of_a_row_are_those_of_the_table),
        cmocka_unit_test(parameters_of_losses_are_those_of_the_table),
        cmocka_unit_test(parameters_are_numbered_as_in_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
