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
#include "base/random.h"
#include "numeric/fixed.h"
#include "numeric/setup.h"
#include "tests/unit/canned.h"

static const struct objective_shape shapes[] = {
    CANNED_SHAPE(LOGISTIC, 1, true, 0),
    CANNED_SHAPE(LOGISTIC, 1, false, 0),
    CANNED_SHAPE(SQUARED, 1, true, 0),
    CANNED_SHAPE(SQUARED, 1, false, 0),
    CANNED_SHAPE(SOFTMAX, 2, true, 0),
    CANNED_SHAPE(SOFTMAX, 5, false, 0),
    CANNED_SHAPE(SOFTMAX, 11, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, true, 0),
    CANNED_SHAPE(SQUARED_HINGE, 1, false, 0),
    CANNED_SHAPE(HUBER, 1, true, 1.35),
    CANNED_SHAPE(HUBER, 1, false, 40),
    CANNED_SHAPE(QUANTILE, 1, true, 0.9, 0.5),
    CANNED_SHAPE(SMOOTH_HINGE, 1, true, 0),
    CANNED_SHAPE(ONE_VS_REST, 2, true, 0),
    CANNED_SHAPE(ONE_VS_REST, 11, false, 0),
    CANNED_SHAPE(POISSON, 1, true, 0),
    CANNED_SHAPE(GAMMA, 1, true, 0),
    CANNED_SHAPE(TWEEDIE, 1, true, 1.2),
    CANNED_SHAPE(TWEEDIE, 1, false, 1.9),
    CANNED_SHAPE(ORDINAL, 1, true, 0),
    CANNED_SHAPE(ORDINAL, 4, true, 0),
    CANNED_SHAPE(ORDINAL, 11, true, 0),
    CANNED_SHAPE(MULTILABEL, 3, true, 0),
    CANNED_SHAPE(MULTILABEL, 11, false, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 1, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 4, true, 0),
    CANNED_SHAPE(PROPORTIONAL_ODDS, 11, true, 0),
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static int derivative_exponent_of(const struct objective_shape *shape) {
    const struct objective *objective = objective_of(shape->kind);
    return objective->bound || objective->shares_weights ? 6 : 0;
}

static void assert_gradient(const struct canned *canned, bool uniform) {
    static long double expected[CANNED_PARAMETERS];
    static double gradient[CANNED_PARAMETERS];
    int b = derivative_exponent_of(&canned->shape);
    long double loss = canned_reference(canned, expected);
    struct objective_result result = canned_gradient(canned, uniform, b, gradient);
    assert_false(result.exceeded);
    assert_true(fabsl(result.loss - loss) <= 1e-13L * loss);
    for (uint64_t p = 0; p < objective_parameters(&canned->shape); p++)
        assert_true(fabsl(gradient[p] - expected[p]) <=
                    ldexpl(1e-13L * canned->absolute_sum[canned_column(&canned->shape, p)], b));
}

enum { EACH_TYPE = SANITIZED ? 3 : 1 };

static void gradients_are_those_of_the_definitions(void **state) {
    (void)state;
    canned_assert_every_loss(shapes, SHAPES, CANNED_ALL);
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = (int)(s + (size_t)dense) % EACH_TYPE; type <= VALUE_DOUBLE;
                 type += EACH_TYPE) {
                struct canned *canned =
                    canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
                assert_gradient(canned, true);
                assert_gradient(canned, false);
                free(canned);
            }
}

/* Weights from one ten-thousandth to ten thousand, and of 0. */
static void weighted_gradients_are_those_of_the_definitions(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int type = (int)(s + (size_t)dense) % EACH_TYPE; type <= VALUE_DOUBLE;
                 type += EACH_TYPE) {
                struct canned *canned =
                    canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
                canned_weigh(canned, 4, s + 1);
                assert_gradient(canned, true);
                assert_gradient(canned, false);
                free(canned);
            }
}

/* The bits of a block of weights 1 are those of one without weights. */
static void weights_of_1_change_no_bit(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            double plain[CANNED_PARAMETERS] = {0}, weighted[CANNED_PARAMETERS] = {0};
            struct canned *canned = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, s + 1);
            int b = derivative_exponent_of(&canned->shape);
            struct objective_result first = canned_gradient(canned, false, b, plain);
            canned->rows.weight = canned->weight;
            canned_measure(canned);
            struct objective_result second = canned_gradient(canned, false, b, weighted);
            assert_memory_equal(&first, &second, sizeof first);
            assert_memory_equal(plain, weighted, sizeof plain);
            free(canned);
        }
}

/* However far out they are: neither the loss nor the bound knows of them. */
static void rows_of_weight_0_count_for_nothing(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            double before[CANNED_PARAMETERS] = {0}, after[CANNED_PARAMETERS] = {0};
            struct canned *canned = canned_new(shapes[s], dense, VALUE_DOUBLE, NULL, s + 1);
            int b = derivative_exponent_of(&canned->shape);
            canned_weigh(canned, 1, s + 1);
            struct objective_result first = canned_gradient(canned, false, b, before);
            for (uint32_t i = 0; i < CANNED_ROWS; i++)
                for (uint32_t v = canned->start[i]; v < canned->start[i + 1]; v++)
                    canned->wide[v] *= canned->weight[i] == 0 ? 1e307 : 1;
            struct objective_result second = canned_gradient(canned, false, b, after);
            assert_true(isfinite(second.loss) && first.loss == second.loss);
            assert_true(first.maxima.value[0] == second.maxima.value[0] && !second.exceeded);
            assert_memory_equal(before, after, sizeof before);
            free(canned);
        }
}

/* Derivatives of 1 and values of one sign: the sums come as close to 2⁶² as they can, and each
 * column keeps its precision beside rows that weigh 10^24 times as much. */
static void sums_of_heavy_tails_fit(void **state) {
    (void)state;
    for (int dense = 0; dense < 2; dense++)
        for (int uniform = 0; uniform < 2; uniform++) {
            struct canned *canned = canned_new(shapes[2], dense, VALUE_DOUBLE, NULL, 7);
            for (uint32_t i = 0; i < CANNED_ROWS; i++)
                canned->label[i] = 1;
            memset(canned->parameters, 0, sizeof canned->parameters);
            for (uint64_t v = 0; v < canned->rows.values; v++)
                canned->wide[v] = fabs(canned->wide[v]) + 1e-3;
            canned_weigh(canned, 12, 7);
            double gradient[CANNED_PARAMETERS];
            static long double expected[CANNED_PARAMETERS];
            canned_reference(canned, expected);
            struct objective_result result = canned_gradient(canned, uniform, 0, gradient);
            assert_false(result.exceeded);
            assert_true(result.maxima.value[0] == 1);
            for (uint64_t p = 0; p < objective_parameters(&canned->shape); p++)
                assert_true(fabsl(gradient[p] / expected[p] - 1) < 1e-13L);
            free(canned);
        }
}

/* A view of some rows of a block. */
static struct rows part_of(const struct canned *canned, uint32_t first, uint32_t count) {
    struct rows rows = canned->rows;
    rows.count = count;
    rows.label += first;
    rows.weight += rows.weight ? first : 0;
    if (!rows.dense)
        rows.start += first;
    else if (rows.type == VALUE_FLOAT)
        rows.value = (const float *)rows.value + (size_t)first * rows.features;
    return rows;
}

enum { PARTS = 14, PART_ROWS = CANNED_ROWS / PARTS };

static void sum_parts(const struct canned *canned, const uint32_t *order, int64_t *sum) {
    struct objective_scale scale = {.exponent = canned->exponent,
                                    .bounds =
                                        bounds_of_one(derivative_exponent_of(&canned->shape))};
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    memset(sum, 0, CANNED_PARAMETERS * sizeof *sum);
    for (int i = 0; i < PARTS; i++) {
        struct rows rows = part_of(canned, order[i] * PART_ROWS, PART_ROWS);
        struct objective_result result;
        objective_block(&canned->shape, &scale, &rows, canned->parameters, sum, scratch, &result);
    }
    objective_scratch_free(scratch);
}

static void gradient_at(const struct canned *canned, struct objective_scratch *scratch,
                        int64_t *sum) {
    struct objective_scale scale = {.exponent = canned->exponent,
                                    .bounds =
                                        bounds_of_one(derivative_exponent_of(&canned->shape))};
    struct objective_result result;
    memset(sum, 0, CANNED_PARAMETERS * sizeof *sum);
    objective_block(&canned->shape, &scale, &canned->rows, canned->parameters, sum, scratch,
                    &result);
}

/* Also in the same memory: what was made of the last point is of no use. */
static void another_point_is_noticed_in_the_same_memory(void **state) {
    (void)state;
    static _Alignas(64) int64_t expected[CANNED_PARAMETERS], sum[CANNED_PARAMETERS];
    for (size_t s = 0; s < SHAPES; s++) {
        struct canned *canned = canned_new(shapes[s], true, VALUE_FLOAT, NULL, s + 1);
        struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
        for (uint64_t point = 0; point < 3; point++) {
            struct objective_scratch *fresh = objective_scratch_new(&canned->shape);
            objective_scratch_at(scratch, point);
            gradient_at(canned, scratch, sum);
            gradient_at(canned, scratch, sum);
            gradient_at(canned, fresh, expected);
            assert_memory_equal(sum, expected, sizeof sum);
            objective_scratch_free(fresh);
            canned->parameters[0] += 1;
        }
        objective_scratch_free(scratch);
        free(canned);
    }
}

/* Values that are no numbers would show in margins of which they are a part. */
static void
where_all_weights_are_0_values_are_not_read_for_margins_and_no_bit_changes(void **state) {
    (void)state;
    static _Alignas(64) int64_t expected[CANNED_PARAMETERS], sum[CANNED_PARAMETERS];
    static double margins[2][CANNED_ROWS * CANNED_OUTPUTS_MAX];
    for (size_t s = 0; s < 2 * SHAPES; s++) {
        struct canned *canned = canned_new(shapes[s / 2], s % 2, VALUE_DOUBLE, NULL, s + 1);
        struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
        struct objective_scratch *fresh = objective_scratch_new(&canned->shape);
        uint64_t weights = objective_layout(&canned->shape).tensor[0].columns * CANNED_FEATURES;
        memset(canned->parameters, 0, weights * sizeof *canned->parameters);
        objective_scratch_at(scratch, 1);
        gradient_at(canned, scratch, sum);
        gradient_at(canned, fresh, expected);
        assert_memory_equal(sum, expected, sizeof sum);
        objective_margins(&canned->shape, &canned->rows, canned->parameters, fresh, margins[0]);
        for (uint64_t v = 0; v < canned->rows.values; v++)
            canned->wide[v] = NAN;
        objective_margins(&canned->shape, &canned->rows, canned->parameters, scratch, margins[1]);
        assert_memory_equal(margins[0], margins[1],
                            canned->rows.count * canned->shape.outputs * sizeof **margins);
        objective_scratch_free(scratch);
        objective_scratch_free(fresh);
        free(canned);
    }
}

/* A scaled point, and what it stands for in the canned parameters. */
static void scale_point(struct canned *canned, struct column_scaling *columns, double *scaled) {
    uint64_t weights = objective_layout(&canned->shape).tensor[0].columns;
    for (uint64_t p = 0; p < objective_parameters(&canned->shape); p++) {
        uint64_t j = p / weights;
        bool weight = j < canned->shape.features;
        scaled[p] = weight ? canned->parameters[p] : NAN;
        if (!weight)
            continue;
        columns[j].scale = 0.1 * (double)(j + 1);
        canned->parameters[p] = columns[j].scale * scaled[p];
    }
}

static void a_scaled_point_gives_the_bits_of_its_weights(void **state) {
    (void)state;
    static _Alignas(64) int64_t expected[CANNED_PARAMETERS], sum[CANNED_PARAMETERS];
    static double scaled[CANNED_PARAMETERS];
    static struct column_scaling columns[CANNED_PARAMETERS];
    for (size_t s = 0; s < SHAPES; s++)
        for (int type = VALUE_ONES; type <= VALUE_DOUBLE; type++) {
            struct canned *canned =
                canned_new(shapes[s], false, (enum value_type)type, NULL, s + 1);
            struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
            struct layout layout = objective_layout(&canned->shape);
            double bias[CANNED_PARAMETERS];
            scale_point(canned, columns, scaled);
            gradient_at(canned, scratch, expected);
            if (canned->shape.intercept)
                memcpy(bias, canned->parameters + layout.tensor[1].first,
                       canned->shape.outputs * sizeof *bias);
            memcpy(canned->parameters, scaled,
                   objective_parameters(&canned->shape) * sizeof *scaled);
            objective_scratch_scaled(scratch, (struct scaled_point){columns, bias});
            gradient_at(canned, scratch, sum);
            assert_memory_equal(sum, expected, sizeof sum);
            objective_scratch_free(scratch);
            free(canned);
        }
}

/* And for smaller blocks, in any order of what is computed. */
static void a_block_needs_no_memory_but_what_was_prepared(void **state) {
    (void)state;
    static _Alignas(64) int64_t sum[CANNED_PARAMETERS];
    static double margins[CANNED_ROWS * CANNED_OUTPUTS_MAX];
    for (size_t s = 0; s < SHAPES; s++)
        for (int type = VALUE_ONES; type <= VALUE_DOUBLE; type++)
            for (int dense = 0; dense < 2; dense++) {
                struct canned *canned =
                    canned_new(shapes[s], dense, (enum value_type)type, NULL, s + 1);
                struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
                struct objective_need need = {.rows = rows_most_of(&canned->rows),
                                              .gradient = true};
                struct objective_result result;
                need.rows.count++;
                need.rows.values += need.rows.values / 2;
                assert_int_equal(objective_prepare(&canned->shape, &need, scratch), 0);
                memory_forbid();
                gradient_at(canned, scratch, sum);
                objective_block(&canned->shape, NULL, &canned->rows, canned->parameters, NULL,
                                scratch, &result);
                objective_margins(&canned->shape, &canned->rows, canned->parameters, scratch,
                                  margins);
                memory_allow();
                objective_scratch_free(scratch);
                free(canned);
            }
}

static void blocks_add_up_to_the_same_bits_in_any_order(void **state) {
    (void)state;
    static _Alignas(64) int64_t first[CANNED_PARAMETERS], second[CANNED_PARAMETERS];
    uint32_t order[PARTS];
    for (uint32_t i = 0; i < PARTS; i++)
        order[i] = i;
    struct random random;
    random_init(&random, 1);
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++) {
            struct canned *canned = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, s + 1);
            sum_parts(canned, order, first);
            for (uint32_t i = PARTS; i > 1; i--) {
                uint32_t pick = (uint32_t)random_below(&random, i);
                uint32_t kept = order[i - 1];
                order[i - 1] = order[pick];
                order[pick] = kept;
            }
            sum_parts(canned, order, second);
            assert_memory_equal(first, second, sizeof first);
            free(canned);
        }
}

static void without_a_sum_only_loss_and_largest_derivative_are_found(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct canned *canned = canned_new(shapes[s], false, VALUE_FLOAT, NULL, 3);
        double gradient[CANNED_PARAMETERS];
        int b = derivative_exponent_of(&canned->shape);
        struct objective_result with = canned_gradient(canned, true, b, gradient), without;
        struct objective_scale scale = {.uniform = canned->uniform, .bounds = bounds_of_one(b)};
        struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
        objective_block(&canned->shape, &scale, &canned->rows, canned->parameters, NULL, scratch,
                        &without);
        objective_scratch_free(scratch);
        assert_true(with.loss == without.loss && with.maxima.value[0] == without.maxima.value[0]);
        free(canned);
    }
}

/* The weight of the rows whose class, or classes, the margins say, from the definitions. */
static double correct_of(const struct canned *canned) {
    const struct objective_shape *shape = &canned->shape;
    const struct objective *objective = objective_of(shape->kind);
    double correct = 0, label[CANNED_OUTPUTS_MAX];
    for (uint32_t i = 0; i < canned->rows.count; i++) {
        long double wide[CANNED_OUTPUTS_MAX];
        double margins[CANNED_OUTPUTS_MAX];
        canned_margins(canned, i, wide);
        bool right = true;
        for (uint32_t k = 0; k < shape->outputs; k++) {
            margins[k] = (double)wide[k];
            label[k] = canned_has(canned->label[i], k);
            right &= (margins[k] > 0) == (label[k] > 0);
        }
        if (objective->labels != LABEL_LISTS)
            right = (double)objective_class(objective, shape->outputs, margins) == canned->label[i];
        correct += right && objective->labels != LABEL_TARGET ? canned->weight[i] : 0;
    }
    return correct;
}

static void without_a_sum_the_weight_of_correct_rows_is_found(void **state) {
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int dense = 0; dense < 2; dense++)
            for (int weighted = 0; weighted < 2; weighted++) {
                struct canned *canned = canned_new(shapes[s], dense, VALUE_FLOAT, NULL, s + 9);
                if (weighted)
                    canned_weigh(canned, 1, s);
                struct objective_scale scale = {.uniform = canned->uniform,
                                                .bounds = bounds_of_one(6)};
                struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
                struct objective_result result;
                objective_block(&canned->shape, &scale, &canned->rows, canned->parameters, NULL,
                                scratch, &result);
                objective_scratch_free(scratch);
                double expected = correct_of(canned);
                assert_true(fabs(result.correct - expected) <= 1e-12 * expected);
                assert_true(expected == 0 || objective_has_classes(objective_of(shapes[s].kind)));
                free(canned);
            }
}

/* The bounds on what a value is multiplied by, where several outputs add to one weight. */
static void outputs_that_share_a_weight_are_bounded_together(void **state) {
    (void)state;
    const struct objective_shape ordinal = CANNED_SHAPE(ORDINAL, 5, true, 0);
    const struct objective_shape softmax = CANNED_SHAPE(SOFTMAX, 5, true, 0);
    assert_true(objective_bound(&ordinal, 9) == 5 && objective_bound(&softmax, 9) == 1);
    assert_true(objective_bound_of(&ordinal, 0.5) == 2.5 &&
                objective_bound_of(&softmax, 0.5) == 0.5);
    assert_true(objective_second_bound(&ordinal, 1, 9) == 1.25);
    assert_true(objective_second_bound(&softmax, 1, 9) == 0.25);
    const struct objective_shape squared = CANNED_SHAPE(SQUARED, 1, true, 0);
    assert_true(objective_bound(&squared, 9) == 9);
}

static void kinds_go_by_name(void **state) {
    (void)state;
    static const char *const names[] = {
#define OBJECTIVE(NAME, name) #name,
#include "objective/objectives.def"
    };
    for (int kind = 0; kind < OBJECTIVES; kind++) {
        assert_int_equal(objective_from_name(objective_name((enum objective_kind)kind)), kind);
        assert_string_equal(objective_name((enum objective_kind)kind), names[kind]);
    }
    assert_null(objective_find("hinge"));
    assert_ptr_equal(objective_find("softmax"), objective_of(OBJECTIVE_SOFTMAX));
    assert_int_equal(objective_from_name("hinge"), -1);
    assert_int_equal(objective_parameters(&shapes[4]), (CANNED_FEATURES + 1) * 2);
}

static void the_proof_repeats(void **state) {
    (void)state;
    assert_true(objective_proof() == objective_proof());
    assert_true(objective_proof_losses() == objective_proof_losses());
    assert_true(objective_proof_losses() != 0);
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(objective) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_definitions),
        cmocka_unit_test(weighted_gradients_are_those_of_the_definitions),
        cmocka_unit_test(weights_of_1_change_no_bit),
        cmocka_unit_test(rows_of_weight_0_count_for_nothing),
        cmocka_unit_test(sums_of_heavy_tails_fit),
        cmocka_unit_test(another_point_is_noticed_in_the_same_memory),
        cmocka_unit_test(
            where_all_weights_are_0_values_are_not_read_for_margins_and_no_bit_changes),
        cmocka_unit_test(a_block_needs_no_memory_but_what_was_prepared),
        cmocka_unit_test(a_scaled_point_gives_the_bits_of_its_weights),
        cmocka_unit_test(blocks_add_up_to_the_same_bits_in_any_order),
        cmocka_unit_test(without_a_sum_only_loss_and_largest_derivative_are_found),
        cmocka_unit_test(without_a_sum_the_weight_of_correct_rows_is_found),
        cmocka_unit_test(outputs_that_share_a_weight_are_bounded_together),
        cmocka_unit_test(kinds_go_by_name),
        cmocka_unit_test(the_proof_repeats),
    };
    return cmocka_run_group_tests_name("objective", tests, set_up, NULL);
}
