/* The two halves of a pass: a product and a transpose in place of one fused pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suites.h"
#include "base/memory.h"
#include "numeric/setup.h"
#include "objective/block.h"
#include "objective/halves.h"
#include "objective/objective.h"
#include "objective/shape.h"
#include "tests/unit/canned.h"

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0), CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SOFTMAX, 2, true, 0),  CANNED_SHAPE(SOFTMAX, 11, false, 0),
    CANNED_SHAPE(ORDINAL, 5, true, 0),  CANNED_SHAPE(SQUARED, 1, true, 0),
};
enum { SHAPES = sizeof shapes / sizeof *shapes, MARGINS = CANNED_ROWS * CANNED_OUTPUTS_MAX };

/* Enough for derivatives of the squared loss at canned points. */
enum { EXPONENT = 8 };

static size_t margins_of(const struct canned *canned) {
    return (size_t)canned->rows.count * canned->shape.outputs;
}

static struct objective_scale scale_of_canned(const struct canned *canned, int exponent) {
    return (struct objective_scale){.exponent = canned->exponent,
                                    .bounds = bounds_of_one(exponent)};
}

static void product(const struct canned *canned, double *margins) {
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    memset(margins, 0, margins_of(canned) * sizeof *margins);
    struct objective_result result;
    objective_product(&canned->shape, NULL, &canned->rows, canned->parameters,
                      (int64_t *)(void *)margins, scratch, &result);
    objective_scratch_free(scratch);
}

static void derivatives(const struct canned *canned, double *margins) {
    static double loss[CANNED_ROWS], work[MARGINS];
    objective_of(canned->shape.kind)
        ->losses(&canned->shape.loss, CANNED_ROWS, canned->shape.outputs, canned->label, margins,
                 loss, work);
}

/* Each in a scratch of its own, as if other threads had computed other things before. */
static void transpose(const struct canned *canned, int exponent, const double *derivative,
                      int64_t *sum, struct objective_result *result) {
    struct objective_scale scale = scale_of_canned(canned, exponent);
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    objective_transpose(&canned->shape, &scale, &canned->rows, derivative, sum, scratch, result);
    objective_scratch_free(scratch);
}

static void fused(const struct canned *canned, int exponent, int64_t *sum,
                  struct objective_result *result) {
    struct objective_scale scale = scale_of_canned(canned, exponent);
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    objective_block(&canned->shape, &scale, &canned->rows, canned->parameters, sum, scratch,
                    result);
    objective_scratch_free(scratch);
}

/* Of all shapes, layouts of rows and types, with weights and without. */
static void for_all(void (*check)(struct canned *canned)) {
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = VALUE_ONES; type <= VALUE_DOUBLE; type++)
                for (int weighted = 0; weighted < 2; weighted++) {
                    struct canned *canned =
                        canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
                    if (weighted)
                        canned_weigh(canned, 1, s + 1);
                    check(canned);
                    free(canned);
                }
}

static void check_margins(struct canned *canned) {
    static double margins[MARGINS], expected[MARGINS];
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    product(canned, margins);
    objective_margins(&canned->shape, &canned->rows, canned->parameters, scratch, expected);
    assert_memory_equal(margins, expected, margins_of(canned) * sizeof *margins);
    objective_scratch_free(scratch);
}

static void a_product_adds_the_bits_of_margins_to_what_is_zero(void **state) {
    (void)state;
    for_all(check_margins);
}

static void check_gradient(struct canned *canned) {
    static double margins[MARGINS];
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS], expected[CANNED_PARAMETERS];
    struct objective_result result, of_pass;
    memset(sum, 0, sizeof sum);
    memset(expected, 0, sizeof expected);
    product(canned, margins);
    derivatives(canned, margins);
    transpose(canned, EXPONENT, margins, sum, &result);
    fused(canned, EXPONENT, expected, &of_pass);
    assert_false(of_pass.exceeded || result.exceeded);
    assert_true(result.maxima.value[0] == of_pass.maxima.value[0]);
    assert_true(result.maxima.value[0] > 0 && result.loss == 0);
    assert_memory_equal(sum, expected, sizeof sum);
}

static void a_transpose_of_the_derivatives_at_a_point_has_the_bits_of_the_pass_there(void **state) {
    (void)state;
    for_all(check_gradient);
}

static void check_bound(struct canned *canned) {
    static double margins[MARGINS];
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS];
    struct objective_result result;
    product(canned, margins);
    derivatives(canned, margins);
    transpose(canned, -40, margins, sum, &result);
    assert_true(result.exceeded && result.maxima.value[0] > 0);
    double largest = result.maxima.value[0];
    transpose(canned, EXPONENT, margins, NULL, &result);
    assert_true(!result.exceeded && result.maxima.value[0] == largest);
}

static void derivatives_beyond_the_bound_are_told_and_without_a_sum_only_the_largest(void **state) {
    (void)state;
    for_all(check_bound);
}

static void derivatives_of_rows_of_weight_0_count_for_nothing(void **state) {
    (void)state;
    static double margins[MARGINS];
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS], expected[CANNED_PARAMETERS];
    struct objective_result result;
    struct canned *canned = canned_new(shapes[2], true, VALUE_FLOAT, NULL, 3);
    canned_weigh(canned, 1, 3);
    memset(sum, 0, sizeof sum);
    memset(expected, 0, sizeof expected);
    product(canned, margins);
    derivatives(canned, margins);
    transpose(canned, EXPONENT, margins, expected, &result);
    for (size_t i = 0; i < margins_of(canned); i++)
        if (canned->weight[i / canned->shape.outputs] == 0)
            margins[i] = INFINITY;
    transpose(canned, EXPONENT, margins, sum, &result);
    assert_false(result.exceeded);
    assert_memory_equal(sum, expected, sizeof sum);
    free(canned);
}

static void a_derivative_that_is_no_number_exceeds_every_bound(void **state) {
    (void)state;
    static double margins[MARGINS];
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS];
    struct objective_result result;
    struct canned *canned = canned_new(shapes[0], false, VALUE_FLOAT, NULL, 3);
    margins[7] = NAN;
    transpose(canned, EXPONENT, margins, sum, &result);
    assert_true(result.exceeded && result.maxima.value[0] == INFINITY);
    free(canned);
}

static void check_labels_and_weights(struct canned *canned) {
    static double numbers[MARGINS];
    const uint32_t outputs = canned->shape.outputs;
    memset(numbers, 0, sizeof numbers);
    objective_add_labels(&canned->shape, &canned->rows, (int64_t *)(void *)numbers);
    for (size_t i = 0; i < margins_of(canned); i++)
        assert_true(numbers[i] == (i % outputs ? 0 : canned->label[i / outputs]));
    static double offset[MARGINS];
    struct rows shifted = canned->rows;
    shifted.offset = offset;
    for (size_t i = 0; i < shifted.count; i++)
        offset[i] = (double)i - 3.5;
    memset(numbers, 0, sizeof numbers);
    objective_add_offsets(&canned->shape, &shifted, (int64_t *)(void *)numbers);
    for (size_t i = 0; i < margins_of(canned); i++)
        assert_true(numbers[i] == (i % outputs ? 0 : offset[i / outputs]));
    memset(numbers, 0, sizeof numbers);
    objective_add_weights(&canned->shape, &canned->rows, (int64_t *)(void *)numbers);
    for (size_t i = 0; i < margins_of(canned); i++)
        assert_true(numbers[i] == (i % outputs           ? 0
                                   : canned->rows.weight ? canned->weight[i / outputs]
                                                         : 1));
}

static void labels_and_weights_are_the_first_number_of_each_row(void **state) {
    (void)state;
    for_all(check_labels_and_weights);
}

static void only_linear_models_of_one_label_a_row_have_products(void **state) {
    (void)state;
    struct objective_shape network = shapes[0], lists = CANNED_SHAPE(MULTILABEL, 3, true, 0);
    network.network = (struct network){.layers = 1, .units = {3}};
    for (size_t s = 0; s < SHAPES; s++)
        assert_true(objective_has_products(&shapes[s]));
    assert_false(objective_has_products(&network));
    assert_false(objective_has_products(&lists));
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(products) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_adds_the_bits_of_margins_to_what_is_zero),
        cmocka_unit_test(a_transpose_of_the_derivatives_at_a_point_has_the_bits_of_the_pass_there),
        cmocka_unit_test(derivatives_beyond_the_bound_are_told_and_without_a_sum_only_the_largest),
        cmocka_unit_test(derivatives_of_rows_of_weight_0_count_for_nothing),
        cmocka_unit_test(a_derivative_that_is_no_number_exceeds_every_bound),
        cmocka_unit_test(labels_and_weights_are_the_first_number_of_each_row),
        cmocka_unit_test(only_linear_models_of_one_label_a_row_have_products),
    };
    return cmocka_run_group_tests_name("products", tests, set_up, NULL);
}
