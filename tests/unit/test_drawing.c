/* Which rows an evaluation of second derivatives draws. */
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
#include "tests/unit/curvature_fixture.h"

static void assert_near(double found, double expected) {
    assert_true(fabs(found - expected) <= 1e-11 * fabs(expected));
}

/* Row i has one value, in column i: element (i, i) tells whether it was drawn, and its weight. */
enum { LOTS = 3000 };

struct lottery {
    struct objective_shape shape;
    struct rows rows;
    uint32_t start[LOTS + 1], feature[LOTS];
    double value[LOTS], label[LOTS], parameters[LOTS];
    int16_t exponent[LOTS + 1];
    int64_t triangle[LOTS * (LOTS + 1) / 2];
    double weight[LOTS];
};

static struct lottery *lottery_new(enum objective_kind kind) {
    struct lottery *lottery = memory_new(1, sizeof *lottery);
    lottery->shape = (struct objective_shape){
        .kind = kind, .features = LOTS, .outputs = 1, .loss = objective_defaults(kind)};
    lottery->rows = (struct rows){.count = LOTS,
                                  .features = LOTS,
                                  .values = LOTS,
                                  .type = VALUE_DOUBLE,
                                  .start = lottery->start,
                                  .feature = lottery->feature,
                                  .value = lottery->value,
                                  .label = lottery->label};
    for (uint32_t i = 0; i < LOTS; i++) {
        lottery->start[i + 1] = i + 1;
        lottery->feature[i] = i;
        lottery->value[i] = 1;
        lottery->exponent[i] = 61;
    }
    return lottery;
}

static struct objective_hessian draw(struct lottery *lottery, uint32_t number,
                                     struct row_sampling sampling) {
    struct objective_sample sample = {.form = &second_sampled,
                                      .exponent = lottery->exponent,
                                      .examples = 10,
                                      .columns = objective_columns(&lottery->shape),
                                      .derivative_exponent = 20,
                                      .sampling = sampling};
    struct objective_scratch *scratch = objective_scratch_new(&lottery->shape);
    struct objective_hessian hessian;
    memset(lottery->triangle, 0, sizeof lottery->triangle);
    objective_curvature(&lottery->shape, &sample, &lottery->rows, number, lottery->parameters,
                        lottery->triangle, scratch, &hessian);
    objective_scratch_free(scratch);
    for (size_t i = 0; i < LOTS; i++)
        lottery->weight[i] = ldexp((double)lottery->triangle[i * (i + 3) / 2], 20 - 60) /
                             (lottery->value[i] * lottery->value[i]);
    return hessian;
}

static uint32_t drawn_alike(const double *a, const double *b) {
    uint32_t alike = 0;
    for (size_t i = 0; i < LOTS; i++)
        alike += (a[i] != 0) == (b[i] != 0);
    return alike;
}

static void a_draw_depends_on_dice_chunk_and_row_alone(void **state) {
    (void)state;
    struct lottery *lottery = lottery_new(OBJECTIVE_SQUARED);
    double before[LOTS];
    struct row_sampling sampling = {.floor = 0.25, .sample_seed = 9};
    struct objective_hessian hessian = draw(lottery, 5, sampling);
    memcpy(before, lottery->weight, sizeof before);
    uint32_t drawn = 0;
    for (size_t i = 0; i < LOTS; i++) {
        assert_true(before[i] == 0 || before[i] == 4);
        drawn += before[i] != 0;
    }
    assert_int_equal(hessian.sampled, drawn);
    assert_true(drawn > 0.21 * LOTS && drawn < 0.29 * LOTS);
    for (size_t i = 0; i < LOTS; i++) {
        lottery->value[i] = 1 - (double)(i % 3) / 4;
        lottery->parameters[i] = (double)i;
        lottery->label[i] = 1;
    }
    lottery->rows.count = LOTS / 2; /* the row is counted within its chunk */
    draw(lottery, 5, sampling);
    for (size_t i = 0; i < LOTS / 2; i++)
        assert_true(before[i] == lottery->weight[i]);
    lottery->rows.count = LOTS;
    draw(lottery, 6, sampling);
    assert_true(drawn_alike(before, lottery->weight) < 0.7 * LOTS); /* of other chunks: 5/8 */
    sampling.sample_seed++;
    draw(lottery, 5, sampling);
    assert_true(drawn_alike(before, lottery->weight) < 0.7 * LOTS);
    free(lottery);
}

/* Trace 1 and leverage 10·|x|·2^(61 − 62): a chance of 0.1 + 0.1·5·|x|. */
static void chances_rise_with_leverage_and_weights_undo_them(void **state) {
    (void)state;
    struct lottery *lottery = lottery_new(OBJECTIVE_SQUARED);
    uint32_t drawn[3] = {0};
    for (size_t i = 0; i < LOTS; i++)
        lottery->value[i] = i % 3 == 0 ? 0.25 : i % 3 == 1 ? 1 : 1.9375;
    struct objective_hessian hessian =
        draw(lottery, 1, (struct row_sampling){.rate = 0.1, .floor = 0.1, .sample_seed = 3});
    const double chance[] = {0.225, 0.6, 1};
    for (size_t i = 0; i < LOTS; i++) {
        drawn[i % 3] += lottery->weight[i] != 0;
        if (lottery->weight[i] != 0)
            assert_true(fabs(lottery->weight[i] - 1 / chance[i % 3]) < 1e-6);
    }
    for (int of = 0; of < 3; of++)
        assert_true(fabs(drawn[of] - chance[of] * LOTS / 3) <= 0.05 * LOTS / 3);
    assert_int_equal(drawn[2], LOTS / 3);
    assert_near(hessian.trace_leverage, 5 * (0.25 + 1 + 1.9375) * LOTS / 3);
    assert_near(hessian.trace, LOTS);
    free(lottery);
}

/* Over many dice the mean comes as close to the sum over all rows as its standard error says. */
static void assert_unbiased(struct canned *canned) {
    enum { DICE = 200 };
    struct objective_sample sample = sample_of(canned);
    size_t elements = triangle_elements(&canned->shape);
    int64_t *all = new_triangle(&canned->shape), *some = new_triangle(&canned->shape);
    double *sum = memory_new(elements, sizeof *sum), *squares = memory_new(elements, sizeof *sum);
    sample.derivative_exponent = 4;
    curve(canned, &sample, 1, all);
    sample.sampling = (struct row_sampling){.rate = 0.04, .floor = 0.05};
    for (sample.sampling.sample_seed = 0; sample.sampling.sample_seed < DICE;
         sample.sampling.sample_seed++) {
        memset(some, 0, elements * sizeof *some);
        curve(canned, &sample, 1, some);
        for (size_t at = 0; at < elements; at++) {
            double off = (double)(some[at] - all[at]);
            sum[at] += off;
            squares[at] += off * off;
        }
    }
    double chi = 0;
    for (size_t at = 0; at < elements; at++)
        chi += sum[at] * sum[at] / squares[at] / (double)elements;
    assert_true(chi > 0.3 && chi < 2); /* 1 on average; elements go together */
    free(all);
    free(some);
    free(sum);
    free(squares);
}

static void a_sample_is_on_average_the_sum_over_all_rows(void **state) {
    (void)state;
    const struct objective_shape shape = CANNED_SHAPE(LOGISTIC, 1, true, 0);
    for (int weighted = 0; weighted < 2; weighted++) {
        struct canned *canned = canned_new(shape, false, VALUE_FLOAT, NULL, 3);
        if (weighted)
            canned_weigh(canned, 1, 3);
        assert_unbiased(canned);
        free(canned);
    }
}

/* A row's share in the sums of its columns rises with its weight, and so does its chance. */
static void chances_rise_with_weights(void **state) {
    (void)state;
    struct lottery *lottery = lottery_new(OBJECTIVE_SQUARED);
    double weight[LOTS];
    uint32_t drawn[3] = {0};
    for (size_t i = 0; i < LOTS; i++)
        weight[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.25 : 1;
    lottery->rows.weight = weight;
    draw(lottery, 1, (struct row_sampling){.rate = 0.1, .floor = 0.1, .sample_seed = 3});
    const double chance[] = {0, 0.225, 0.6};
    for (size_t i = 0; i < LOTS; i++) {
        drawn[i % 3] += lottery->weight[i] != 0;
        if (lottery->weight[i] != 0)
            assert_true(fabs(lottery->weight[i] - weight[i] / chance[i % 3]) < 1e-6);
    }
    for (int of = 0; of < 3; of++)
        assert_true(fabs(drawn[of] - chance[of] * LOTS / 3) <= 0.05 * LOTS / 3);
    free(lottery);
}

static int set_up(void **state) {
    (void)state;
    numeric_setup();
    return 0;
}

SUITE(sampling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draw_depends_on_dice_chunk_and_row_alone),
        cmocka_unit_test(chances_rise_with_leverage_and_weights_undo_them),
        cmocka_unit_test(chances_rise_with_weights),
        cmocka_unit_test(a_sample_is_on_average_the_sum_over_all_rows),
    };
    return cmocka_run_group_tests_name("drawing", tests, set_up, NULL);
}
