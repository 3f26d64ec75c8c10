/* What a shard makes of the numbers that replicas send of rows. */
#include "tests/unit/suites.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "numeric/fixed.h"
#include "shard/rows.h"
#include "tests/unit/row_cluster.h"

/* What two tiles have of margins of 3 rows and 2 outputs, at a point within 2^3. */
static void margins_in_tiles_are_sums_in_fixed_point(void **state) {
    (void)state;
    const double parts[2][6] = {{1, -2, 0x1p40, 3, 0x1p-30, 0}, {2, 2.5, -0x1p39, 0, 0x1p-31, -7}};
    const int16_t sizes[3] = {1, 40, 0};
    double margins[6], size_numbers[6] = {1, 9, 40, 9, 0, 9};
    int16_t taken[3] = {0};
    int64_t sums[6] = {0}, bits[6];
    struct row_vectors rows = {
        .total = 3, .count = 3, .outputs = 2, .slots = 1, .margins = margins, .sizes = taken};
    memcpy(bits, size_numbers, sizeof bits);
    rows_take(&rows, ROWS_SIZES, 0, 0, bits);
    assert_memory_equal(taken, sizes, sizeof sizes);
    const double odd[6] = {NAN, 9, INFINITY, 9, -1e300, 9};
    const int16_t held[3] = {0, FIXED_SIZE_MAX, 0};
    memcpy(bits, odd, sizeof bits);
    rows_take(&rows, ROWS_SIZES, 0, 0, bits);
    assert_memory_equal(taken, held, sizeof held);
    memcpy(taken, sizes, sizeof sizes);
    for (int tile = 0; tile < 2; tile++)
        for (int k = 0; k < 6; k++)
            sums[k] += (int64_t)ldexp(parts[tile][k], -fixed_tile_exponent(sizes[k / 2], 3));
    rows_take(&rows, ROWS_MARGINS, 0, 3, sums);
    for (int k = 0; k < 6; k++)
        assert_true(margins[k] == parts[0][k] + parts[1][k]);
    /* Offsets are added to the margins at x alone: those of a direction, below, have none. */
    double offsets[3], offset_numbers[6] = {0.5, 9, -4, 9, 1e3, 9};
    rows.offsets = offsets;
    memcpy(bits, offset_numbers, sizeof bits);
    rows_take(&rows, ROWS_OFFSETS, 0, 0, bits);
    rows_take(&rows, ROWS_MARGINS, 0, 3, sums);
    for (int k = 0; k < 6; k++)
        assert_true(margins[k] == parts[0][k] + parts[1][k] + offset_numbers[k / 2 * 2]);
    rows.products = margins;
    rows.stored = HISTORY_DOUBLE;
    rows_take(&rows, ROWS_PRODUCT, 0, 4, sums);
    assert_true(margins[0] == 6 && margins[5] == -14);
    float rounded[6];
    rows.products = rounded;
    rows.stored = HISTORY_FLOAT;
    rows_take(&rows, ROWS_PRODUCT, 0, 4, sums);
    for (int k = 0; k < 6; k++)
        assert_true(rounded[k] == (float)margins[k]);
}

/* A loss finds the margin of a row's class by its label. */
static void labels_that_no_class_has_become_those_of_one(void **state) {
    (void)state;
    const double sent[4] = {NAN, 1e18, -5, 1};
    const struct {
        const char *objective;
        double labels[4];
    } cases[] = {
        {"softmax", {0, 2, 0, 1}}, {"one_vs_rest", {0, 2, 0, 1}}, {"ordinal", {0, 3, 0, 1}}};
    int64_t sums[12] = {0};
    double labels[4], targets[4] = {-1e18, 7, -5, 1};
    struct row_vectors rows = {.total = 4, .count = 4, .outputs = 3, .labels = labels};
    for (size_t i = 0; i < 4; i++)
        memcpy(&sums[i * 3], &sent[i], sizeof sent[i]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rows.objective = rows_objective(cases[i].objective, 3);
        rows_take(&rows, ROWS_LABELS, 0, 0, sums);
        assert_memory_equal(labels, cases[i].labels, sizeof labels);
    }
    rows.objective = rows_objective("squared", 1);
    rows.outputs = 1;
    memcpy(sums, targets, sizeof targets);
    rows_take(&rows, ROWS_LABELS, 0, 0, sums);
    assert_memory_equal(labels, targets, sizeof targets);
}

static double loss_at(struct row_cluster *cluster, const struct operation *at) {
    const struct operation operations[] = {*at, {.code = OPERATION_ROWS_LOSS}};
    struct row_yields yields;
    run_rows(cluster, operations, 2, &yields);
    return exact_value(&yields.sums[0]);
}

static void advance_to(struct row_cluster *cluster, const struct operation *at) {
    const struct operation operations[] = {
        *at, {.code = OPERATION_ROWS_ADVANCE}, begin_rows(++cluster->evaluation, true)};
    struct row_yields yields;
    run_rows(cluster, operations, 3, &yields);
}

static void put_all(struct row_cluster *cluster, enum row_vector vector, double number) {
    double *numbers = memory_new(ROWS, sizeof *numbers);
    for (size_t i = 0; i < ROWS; i++)
        numbers[i] = number;
    put_rows(cluster, vector, 0, numbers);
    free(numbers);
}

/* The same numbers of the same slots may stand for another point, of which nothing is known yet. */
static void a_trial_is_found_anew_once_a_product_or_the_margins_have_changed(void **state) {
    (void)state;
    const struct operation at = {.code = OPERATION_ROWS_AT, .count = 1, .slots = {0}, .u = {0.5}};
    struct row_cluster cluster;
    row_cluster_init(&cluster, 1, "squared", 1, false);
    put_all(&cluster, ROWS_LABELS, 0);
    put_all(&cluster, ROWS_MARGINS, 1);
    put_all(&cluster, ROWS_PRODUCT, 2);
    double loss = loss_at(&cluster, &at);
    assert_true(loss > 0);
    assert_true(loss_at(&cluster, &at) == loss);
    put_all(&cluster, ROWS_PRODUCT, 4);
    assert_true(loss_at(&cluster, &at) == loss * 9 / 4);
    put_all(&cluster, ROWS_MARGINS, 0);
    assert_true(loss_at(&cluster, &at) == loss);
    row_cluster_release(&cluster);
}

/* From where the losses were found last, and from another point. */
static void a_trial_is_found_anew_once_the_margins_have_advanced(void **state) {
    (void)state;
    const struct operation half = {.code = OPERATION_ROWS_AT, .count = 1, .u = {0.5}};
    const struct operation back = {.code = OPERATION_ROWS_AT, .count = 1, .u = {-0.5}};
    struct row_cluster cluster;
    row_cluster_init(&cluster, 1, "squared", 1, false);
    put_all(&cluster, ROWS_LABELS, 0);
    put_all(&cluster, ROWS_MARGINS, 0);
    put_all(&cluster, ROWS_PRODUCT, 2);
    double loss = loss_at(&cluster, &half);
    advance_to(&cluster, &half);
    assert_true(loss_at(&cluster, &half) == 4 * loss);
    advance_to(&cluster, &back);
    assert_true(loss_at(&cluster, &back) == loss);
    row_cluster_release(&cluster);
}

/* Memory that was never taken must not be given back: it is others'. */
static void a_shard_that_measures_no_losses_has_no_memory_for_them(void **state) {
    (void)state;
    struct message message = row_setup("", 1, false, 0);
    struct message_shard_setup *body = &message.shard_setup;
    struct row_vectors rows = {0};
    struct layout layout;
    body->rows.directions = 0;
    body->rows.tiles = 1;
    assert_null(layout_decode(body->layout.data, body->layout.length, &layout));
    assert_int_equal(rows_set_up(&rows, body, &layout), 0);
    assert_true(rows.count == ROWS && rows.margins && rows.sizes);
    assert_true(!rows.labels && !rows.trial && !rows.trial_derivatives);
    rows_release(&rows);
}

SUITE(rows_taken) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(margins_in_tiles_are_sums_in_fixed_point),
        cmocka_unit_test(a_trial_is_found_anew_once_a_product_or_the_margins_have_changed),
        cmocka_unit_test(a_trial_is_found_anew_once_the_margins_have_advanced),
        cmocka_unit_test(labels_that_no_class_has_become_those_of_one),
        cmocka_unit_test(a_shard_that_measures_no_losses_has_no_memory_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
