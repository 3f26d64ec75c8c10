/* What "auto" means for the numbers of processes and threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "coordinator/job/sizing.h"
#include "numeric/fixed.h"

#define SMALL 1000
#define WIDE 1500000

static const struct set_info data = {.rows = 1000, .values = 10000, .features = SMALL};

static struct sizing sizing_on(const struct job *job, uint64_t parameters, uint32_t cpus) {
    struct sizing sizing;
    assert_int_equal(sizing_of(job, &data, parameters, cpus, &sizing), 0);
    return sizing;
}

static void one_replica_has_a_thread_for_each_cpu(void **state) {
    const struct job job = {0};
    (void)state;
    for (uint32_t cpus = 1; cpus <= THREADS_MAX; cpus++) {
        struct sizing sizing = sizing_on(&job, WIDE, cpus);
        assert_int_equal(sizing.replicas, 1);
        assert_int_equal(sizing.threads, cpus);
    }
}

/* Those that are started before the data is read. */
static void a_model_of_unknown_width_has_the_workers_that_all_have(void **state) {
    (void)state;
    const struct job jobs[] = {{0}, {.shards = 3}, {.replicas = 2}};
    const uint64_t widths[] = {1, SMALL, WIDE, PARAMETERS_MAX};
    for (size_t j = 0; j < 3; j++)
        for (size_t w = 0; w < 4; w++)
            for (uint32_t cpus = 1; cpus <= 2 * THREADS_MAX; cpus *= 2) {
                struct sizing unknown, known = sizing_on(&jobs[j], widths[w], cpus);
                assert_int_equal(sizing_workers(&jobs[j], 0, cpus, &unknown), 0);
                assert_true(unknown.shards && unknown.shards <= known.shards);
                assert_int_equal(unknown.replicas, known.replicas);
            }
}

static void there_are_no_more_threads_than_a_replica_may_have(void **state) {
    const struct job job = {0};
    (void)state;
    struct sizing sizing = sizing_on(&job, WIDE, 2 * THREADS_MAX);
    assert_int_equal(sizing.replicas, 2);
    assert_int_equal(sizing.threads, THREADS_MAX);
    assert_int_equal(sizing_on(&(struct job){.replicas = 1}, WIDE, 1000).threads, THREADS_MAX);
}

static void shards_grow_with_the_root_of_the_parameters_up_to_one_a_cpu(void **state) {
    const struct job job = {0};
    (void)state;
    assert_int_equal(sizing_on(&job, SMALL, 16).shards, 1);
    assert_int_equal(sizing_on(&job, WIDE, 1).shards, 1);
    assert_int_equal(sizing_on(&job, WIDE, 2).shards, 2);
    assert_int_equal(sizing_on(&job, 16383, 16).shards, 1);
    assert_int_equal(sizing_on(&job, 16384, 16).shards, 2);
    assert_int_equal(sizing_on(&job, 65536, 16).shards, 4);
    assert_int_equal(sizing_on(&job, WIDE, 16).shards, 16);
    assert_int_equal(sizing_on(&job, PARAMETERS_MAX, 16).shards, 16);
    assert_int_equal(sizing_on(&job, PARAMETERS_MAX, 10000).shards, SHARDS_MAX);
}

static void numbers_in_the_job_are_kept(void **state) {
    struct job job = {.replicas = 3, .shards = 7};
    (void)state;
    struct sizing sizing = sizing_on(&job, SMALL, 8);
    assert_int_equal(sizing.replicas, 3);
    assert_int_equal(sizing.shards, 7);
    assert_int_equal(sizing.threads, 2); /* each replica's part of the CPUs */
    job.threads = 5;
    assert_int_equal(sizing_on(&job, SMALL, 1).threads, 5);
    job = (struct job){.threads = 2};
    assert_int_equal(sizing_on(&job, SMALL, 8).replicas, 1);
}

static void workers_started_by_hand_are_counted_and_choose_their_threads(void **state) {
    char *replicas[] = {"unix:/a", "unix:/b", "unix:/c", NULL};
    struct job job = {.replica_addresses = replicas};
    struct sizing sizing = sizing_on(&job, SMALL, 8);
    (void)state;
    assert_int_equal(sizing.replicas, 3);
    assert_int_equal(sizing.threads, 0);
    job.replicas = 2;
    assert_int_equal(sizing_of(&job, &data, SMALL, 8, &sizing), ERROR_CONFIG);
    assert_non_null(strstr(error_text(), "key `replicas` is 2, but there are 3 addresses"));
    error_clear();
}

static struct set_info shape(uint64_t values, uint32_t features, bool dense) {
    return (struct set_info){.values = values, .features = features, .dense = dense};
}

static void on_hosts_there_are_more_shards_for_wider_models_whatever_the_hosts(void **state) {
    (void)state;
    struct job job = {0};
    struct sizing sizing = {0};
    const struct set_info dense = shape(0, 1, true);
    const struct {
        uint64_t parameters;
        uint32_t hosts, shards;
    } cases[] = {{100, 50, 1},
                 {100000, 100, 25},
                 {1000000, 1000, 149},
                 {10000000, 100, 100},
                 {10000000, 1000, SHARDS_MAX},
                 {10000000, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sizing_on_hosts(&job, &dense, cases[i].parameters, cases[i].hosts, &sizing);
        assert_int_equal(sizing.shards, cases[i].shards);
        assert_int_equal(sizing.replicas, cases[i].hosts);
    }
    job.shards = 3;
    sizing_on_hosts(&job, &dense, 10000000, 100, &sizing);
    assert_int_equal(sizing.shards, 3);
}

static void on_hosts_sparse_rows_with_few_of_the_columns_have_fewer_shards(void **state) {
    (void)state;
    const struct job job = {0};
    struct sizing sizing = {0};
    const struct {
        uint64_t values;
        uint32_t shards;
    } cases[] = {
        {UINT64_C(100000000000), SHARDS_MAX}, {1000000000, 167}, {200000000, 74}, {10000, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct set_info sparse = shape(cases[i].values, 10000000, false);
        sizing_on_hosts(&job, &sparse, 10000000, 1000, &sizing);
        assert_int_equal(sizing.shards, cases[i].shards);
    }
}

static void flushes_of_many_hosts_come_as_seldom_as_shards_can_take_them(void **state) {
    (void)state;
    struct job job = {.flush_ms = 1000};
    struct sizing few = {.replicas = 10, .shards = 10}, many = {.replicas = 1000, .shards = 10};
    assert_int_equal(sizing_flush_ms(&job, 100000, &few), 1000);
    assert_int_equal(sizing_flush_ms(&job, 100000, &many), 2240);
    job.flush_ms = 5000;
    assert_int_equal(sizing_flush_ms(&job, 100000, &many), 5000);
}

static void pairs_add_at_most_half_to_what_an_evaluation_moves(void **state) {
    struct set_info wide = shape(8760000, 1510000, false), many = shape(20000000, 1510000, false);
    uint64_t parameters = 1510001;
    (void)state;
    uint32_t pairs = sizing_history(&wide, parameters, HISTORY_FLOAT);
    assert_in_range(pairs, 15, 25);
    double per_parameter = 8760000.0 / 1510000 * (72 + 16) + 144;
    assert_true(16 * pairs <= per_parameter / 2 && per_parameter / 2 < 16 * (pairs + 1));
    assert_true(sizing_history(&wide, parameters, HISTORY_DOUBLE) <= pairs / 2 + 1);
    assert_true(sizing_history(&many, parameters, HISTORY_FLOAT) > pairs);
}

static void more_outputs_have_fewer_pairs(void **state) {
    struct set_info news = shape(1272569, 62061, false);
    (void)state;
    uint32_t two = sizing_history(&news, 62062, HISTORY_FLOAT);
    uint32_t twenty = sizing_history(&news, UINT64_C(20) * 62062, HISTORY_FLOAT);
    assert_in_range(twenty, 12, 20);
    assert_in_range(two, 2 * twenty, HISTORY_AUTO_MAX);
}

static void a_history_stays_within_its_bounds(void **state) {
    struct set_info none = shape(0, 0, false), thin = shape(3000000, 3000000, false),
                    table = shape(16000000, 40, true), broad = shape(100000000, 1000000, true);
    (void)state;
    assert_int_equal(sizing_history(&none, 1, HISTORY_FLOAT), 1);
    assert_int_equal(sizing_history(&thin, 3000001, HISTORY_DOUBLE), HISTORY_AUTO_MIN);
    assert_int_equal(sizing_history(&table, 41, HISTORY_FLOAT), 41);
    assert_int_equal(sizing_history(&table, 410, HISTORY_FLOAT), HISTORY_AUTO_MAX);
    assert_in_range(sizing_history(&broad, 1000001, HISTORY_FLOAT), HISTORY_AUTO_MIN, 40);
    assert_int_equal(sizing_history(&broad, PARAMETERS_MAX, HISTORY_FLOAT), HISTORY_AUTO_MIN);
}

/* `columns` of which each has this mean of |value|, over 1,000 rows. */
static double bias_scale_of(uint32_t columns, double mean) {
    struct set_info info = {.rows = 1000, .features = columns};
    int16_t *exponent = memory_new(columns + 1, sizeof *exponent);
    for (uint32_t j = 0; j < columns; j++)
        exponent[j] = (int16_t)fixed_exponent(mean * 1000, 1000);
    exponent[columns] = (int16_t)fixed_exponent(1000, 1000);
    info.exponent = exponent;
    double scale = sizing_bias_scale(&info);
    free(exponent);
    return scale;
}

static void the_scale_of_biases_is_the_square_of_the_mean_row(void **state) {
    (void)state;
    for (double mean = 0x1p-9; mean > 1e-4; mean *= 0.61) {
        double scale = bias_scale_of(500, mean), square = 500 * mean * mean;
        assert_true(scale > square / 3 && scale < 3 * square);
        assert_true(ilogb(scale) == log2(scale));
    }
}

static void the_scale_of_biases_stays_within_its_bounds(void **state) {
    (void)state;
    assert_true(bias_scale_of(500, 1) == 1);
    assert_true(bias_scale_of(1, 1e300) == 1);
    assert_true(bias_scale_of(2, INFINITY) == 1);
    assert_true(bias_scale_of(500, 1e-300) == 0x1p-20);
    assert_true(bias_scale_of(0, 1) == 0x1p-20);
}

/* ---- the block preconditioner ---- */

/* A model that is too wide for a block of all parameters. */
#define BROAD 50000
static const struct objective_shape broad = {
    .kind = OBJECTIVE_LOGISTIC, .features = BROAD, .outputs = 1, .intercept = true};

static struct set_info rows_of(uint64_t rows, uint64_t values_each) {
    return (struct set_info){.rows = rows, .values = rows * values_each, .features = BROAD};
}

#define LEFT_BY_HALF 0.9

/* Rows with `shorter` or `longer` values in the first columns, half of the rows each, and nine in
 * ten of them in the first half of these, and so on; and with as many values beyond. */
static struct prefix_counts counts_of(uint32_t columns, double shorter, double longer) {
    struct prefix_counts counts = {.rows = 1000};
    double part = 1;
    for (uint32_t i = 0; i < PREFIXES; i++, part *= LEFT_BY_HALF) {
        counts.columns[i] = columns >> i;
        counts.sum[i] = 500 * part * (shorter + longer);
        counts.square[i] = 500 * part * part * (shorter * shorter + longer * longer);
    }
    counts.all_sum = 1000 * (shorter + longer);
    counts.all_square = 2000 * (shorter * shorter + longer * longer);
    counts.rest_square = 500 * (shorter * shorter + longer * longer);
    return counts;
}

static struct preconditioner_settings leading_of(const struct job *job, const struct set_info *info,
                                                 double shorter, double longer) {
    struct preconditioner_settings settings;
    assert_int_equal(sizing_precondition(job, info, &broad, &settings), 0);
    assert_int_equal(settings.form, PRECONDITION_LEADING);
    struct prefix_counts counts = counts_of(settings.block_columns, shorter, longer);
    sizing_leading(job, info, &broad, &counts, &settings);
    return settings;
}

static void a_narrow_model_has_a_block_of_all_and_a_wide_one_of_what_fits(void **state) {
    (void)state;
    const struct set_info info = rows_of(100000, 20);
    struct preconditioner_settings settings;
    struct objective_shape shape = broad;
    struct job job = {.file = "a.conf", .precondition_block = 1000};
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.block_columns, 999);
    assert_int_equal(sizing_block(&shape, &settings), 1000);
    shape.kind = OBJECTIVE_SOFTMAX;
    shape.outputs = 3;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.form, PRECONDITION_LEADING);
    assert_int_equal(settings.block_columns, 999); /* three outputs share it */
    assert_true(settings.shared);
    shape.features = 332;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.form, PRECONDITION_FULL);
    assert_false(settings.shared);
    assert_int_equal(settings.block_columns, 332);
    job.precondition = PRECONDITION_OFF;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.form, PRECONDITION_NONE);
    assert_int_equal(sizing_block(&shape, &settings), 0);
}

static void with_l1_weights_of_all_outputs_may_be_listed_beside_the_biases(void **state) {
    (void)state;
    const struct set_info info = rows_of(100000, 20);
    struct preconditioner_settings settings;
    struct objective_shape shape = broad;
    struct job job = {.file = "a.conf", .precondition_block = 1000, .l1 = {.value = 1}};
    shape.kind = OBJECTIVE_SOFTMAX;
    shape.outputs = 3;
    shape.features = 332;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.form, PRECONDITION_LISTED);
    assert_int_equal(settings.block_columns, 3 * 332);
    assert_int_equal(sizing_block(&shape, &settings), 3 * 332 + 3);
    shape.features = 5000;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.block_columns, WORKING_SET_MAX - 3);
    shape.kind = OBJECTIVE_ORDINAL;
    shape.features = 332;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.block_columns, 332);
    assert_int_equal(sizing_block(&shape, &settings), 332 + 3);
}

static void refuses_block(const struct job *job, const struct objective_shape *shape,
                          const char *why) {
    const struct set_info info = rows_of(100000, 20);
    struct preconditioner_settings settings;
    error_clear();
    assert_int_equal(sizing_precondition(job, &info, shape, &settings), ERROR_CONFIG);
    assert_non_null(strstr(error_text(), why));
    error_clear();
}

static void a_block_that_is_asked_for_and_cannot_be_is_an_error(void **state) {
    (void)state;
    const struct set_info info = rows_of(100000, 20);
    struct preconditioner_settings settings;
    struct objective_shape shape = broad;
    struct job job = {.file = "a.conf", .precondition = PRECONDITION_BLOCK};
    job.precondition_block = 1; /* the bias */
    refuses_block(&job, &shape, "not one column fits");
    job.precondition_block = 2;
    assert_int_equal(sizing_precondition(&job, &info, &shape, &settings), 0);
    assert_int_equal(settings.block_columns, 1);
}

/* The passes of a refresh with a block of these columns alone, whose rows have that many values. */
static double passes_with(const struct set_info *info, uint32_t columns, double values) {
    const struct job wanted = {.precondition = PRECONDITION_BLOCK,
                               .precondition_block = columns + 1};
    struct preconditioner_settings settings = leading_of(&wanted, info, values, values);
    double terms = (values + 1) * (values + 2) / 2;
    assert_int_equal(settings.block_columns, columns);
    return settings.cost_all + (double)settings.sample * terms * settings.cost_term;
}

/* The largest of the halves whose refresh costs two passes at most: all columns where there are
 * rows for it, and none where there are next to none. */
static void a_leading_block_is_halved_until_a_refresh_is_cheap(void **state) {
    (void)state;
    const struct job job = {.precondition_block = 4096};
    uint32_t chosen = 0, sizes = 0;
    for (uint64_t rows = 100; rows <= 100000000; rows *= 10) {
        const struct set_info info = rows_of(rows, 20);
        uint32_t columns = 4095, halves = 0;
        for (double values = 20; passes_with(&info, columns, values) > 2; values *= LEFT_BY_HALF) {
            columns /= 2;
            if (++halves == PREFIXES)
                break;
        }
        struct preconditioner_settings settings = leading_of(&job, &info, 20, 20);
        assert_int_equal(settings.form,
                         halves == PREFIXES ? PRECONDITION_NONE : PRECONDITION_LEADING);
        sizes += settings.form == PRECONDITION_LEADING && chosen != columns;
        chosen = columns;
        if (settings.form == PRECONDITION_LEADING)
            assert_int_equal(settings.block_columns, columns);
        assert_true(halves == PREFIXES || rows > 100);
    }
    assert_true(chosen == 4095 && sizes >= 4);
}

/* Rows of a table have about as many values each, whatever the format says; or few. */
static void tables_have_a_leading_block_and_texts_have_none(void **state) {
    (void)state;
    const struct job job = {.precondition_block = 4096};
    struct set_info info = rows_of(1000000, 20);
    assert_int_equal(leading_of(&job, &info, 20, 20).form, PRECONDITION_LEADING);
    assert_int_equal(leading_of(&job, &info, 14, 26).form,
                     PRECONDITION_LEADING); /* 0.3 of the mean */
    assert_int_equal(leading_of(&job, &info, 130, 270).form, PRECONDITION_NONE); /* 0.35 */
    assert_int_equal(leading_of(&job, &info, 2, 38).form, PRECONDITION_NONE);
    /* Variances beyond the block of 2.45 and 3.2 times the mean. */
    assert_int_equal(leading_of(&job, &info, 13, 27).form, PRECONDITION_LEADING);
    assert_int_equal(leading_of(&job, &info, 12, 28).form, PRECONDITION_NONE);
    assert_int_equal(leading_of(&job, &info, 1, 5).form, PRECONDITION_LEADING);
    static const struct table *columns = (const struct table *)&data; /* that there is one */
    info.table = columns;
    assert_int_equal(leading_of(&job, &info, 2, 38).form, PRECONDITION_LEADING);
}

/* With columns beyond the block of which a row has this share, as images have them. */
static enum precondition form_beyond(const struct job *job, double share) {
    const struct set_info info = rows_of(10000000, 20);
    struct preconditioner_settings settings;
    assert_int_equal(sizing_precondition(job, &info, &broad, &settings), 0);
    struct prefix_counts counts = counts_of(settings.block_columns, 20, 20);
    double rows = (double)counts.rows;
    counts.all_sum += share * (BROAD - settings.block_columns) * rows;
    counts.all_square = counts.all_sum * counts.all_sum / rows;
    counts.rest_square = pow(counts.all_sum - counts.sum[0], 2) / rows;
    sizing_leading(job, &info, &broad, &counts, &settings);
    return settings.form;
}

static void columns_that_many_rows_have_are_all_in_the_block_or_there_is_none(void **state) {
    (void)state;
    struct job job = {.precondition_block = 4096};
    assert_int_equal(form_beyond(&job, 0.09), PRECONDITION_LEADING);
    assert_int_equal(form_beyond(&job, 0.11), PRECONDITION_NONE);
    assert_int_equal(form_beyond(&job, 1), PRECONDITION_NONE);
    job.precondition = PRECONDITION_BLOCK;
    assert_int_equal(form_beyond(&job, 1), PRECONDITION_LEADING);
}

static enum precondition form_shared(const struct job *job, uint32_t features) {
    struct set_info info = rows_of(10000000, 20);
    struct objective_shape shape = broad;
    struct preconditioner_settings settings;
    info.features = shape.features = features;
    shape.kind = OBJECTIVE_SOFTMAX;
    shape.outputs = 3;
    assert_int_equal(sizing_precondition(job, &info, &shape, &settings), 0);
    struct prefix_counts counts = counts_of(settings.block_columns, 20, 20);
    sizing_leading(job, &info, &shape, &counts, &settings);
    return settings.form;
}

static void outputs_share_a_block_where_it_leaves_columns_out(void **state) {
    (void)state;
    struct job job = {.precondition_block = 1024};
    assert_int_equal(form_shared(&job, BROAD), PRECONDITION_LEADING);
    assert_int_equal(form_shared(&job, 1023), PRECONDITION_NONE);
    job.precondition = PRECONDITION_BLOCK;
    assert_int_equal(form_shared(&job, 1023), PRECONDITION_LEADING);
}

/* Whatever it costs, and whatever the rows are. */
static void a_job_that_asks_for_a_block_has_the_largest(void **state) {
    (void)state;
    struct job job = {.precondition = PRECONDITION_BLOCK, .precondition_block = 4096};
    struct set_info info = rows_of(100, 20);
    job.l2.value = 0.5;
    struct preconditioner_settings settings = leading_of(&job, &info, 2, 38);
    assert_int_equal(settings.form, PRECONDITION_LEADING);
    assert_int_equal(settings.block_columns, 4095);
    assert_true(settings.cost_all > 2);
    assert_true(settings.ridge == 0.5 / 0.25); /* σ′ at 0 */
}

static struct sizing with_directions_and(enum precondition form, const struct set_info *info,
                                         const struct objective_shape *shape) {
    const struct job job = {.directions = DIRECTIONS_AUTO};
    struct sizing sizing;
    assert_int_equal(sizing_of(&job, info, shape->features * shape->outputs, 2, &sizing), 0);
    sizing_directions(&job, info, shape, form, &sizing);
    return sizing;
}

static struct sizing with_directions(const struct set_info *info,
                                     const struct objective_shape *shape) {
    return with_directions_and(PRECONDITION_NONE, info, shape);
}

/* Rows of farm_ads, and of texts of more and more words. */
static void directions_are_many_where_they_take_little_memory_and_few_beside_a_block(void **state) {
    (void)state;
    struct set_info ads = {.rows = 4143, .values = 817141, .features = 54877, .weight_sum = 4143};
    struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = 54877, .outputs = 1, .intercept = true};
    assert_int_equal(with_directions(&ads, &shape).directions, 80);
    assert_int_equal(with_directions_and(PRECONDITION_LEADING, &ads, &shape).directions, 20);
    ads.rows = 15935;
    ads.values = 8694307;
    ads.features = shape.features = 1000000;
    assert_in_range(with_directions(&ads, &shape).directions, 60, 70);
    ads.features = shape.features = 2000000;
    assert_int_equal(with_directions(&ads, &shape).directions, 40);
}

/* As wide as news in twenty groups, and as images of ten kinds of clothes. */
static void rows_of_many_classes_have_directions_in_floats(void **state) {
    (void)state;
    struct set_info news = {
        .rows = 15935, .values = 1270000, .features = 62061, .weight_sum = 15935};
    struct objective_shape shape = {
        .kind = OBJECTIVE_SOFTMAX, .features = 62061, .outputs = 20, .intercept = true};
    struct sizing sizing = with_directions(&news, &shape);
    assert_in_range(sizing.directions, 40, 50);
    assert_in_range(sizing.history, 1, 5);
    news.rows *= 1000; /* with so few values each that the search would cost more than its pass */
    assert_int_equal(with_directions(&news, &shape).directions, 0);
    struct set_info images = {.type = VALUE_DOUBLE,
                              .rows = 60000,
                              .values = 47040000,
                              .features = 784,
                              .dense = true,
                              .weight_sum = 60000};
    shape.features = 784;
    shape.outputs = 10;
    sizing = with_directions(&images, &shape);
    assert_in_range(sizing.directions, 60, 80);
    assert_int_equal(sizing.history_type,
                     HISTORY_FLOAT); /* of rows, as vectors of columns are short */
    images.values = images.rows * (images.features = shape.features = 100);
    assert_int_equal(with_directions(&images, &shape).directions,
                     0); /* their pass costs too little */
}

/* As wide as a text of as many values, and a table of as many. */
static void
beside_directions_few_pairs_are_kept_of_long_vectors_and_as_many_of_short_ones(void **state) {
    (void)state;
    struct set_info text = {
        .rows = 15935, .values = 8694307, .features = 1615250, .weight_sum = 15935};
    struct objective_shape shape = {
        .kind = OBJECTIVE_LOGISTIC, .features = 1615250, .outputs = 1, .intercept = true};
    struct sizing sizing = with_directions(&text, &shape);
    assert_in_range(sizing.directions, 40, 45);
    assert_int_equal(sizing.history, 2);
    text.features = shape.features = 20000;
    sizing = with_directions(&text, &shape);
    assert_true(sizing.directions > 0);
    assert_true(sizing.history > 5);
}

SUITE(sizing) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            beside_directions_few_pairs_are_kept_of_long_vectors_and_as_many_of_short_ones),
        cmocka_unit_test(rows_of_many_classes_have_directions_in_floats),
        cmocka_unit_test(directions_are_many_where_they_take_little_memory_and_few_beside_a_block),
        cmocka_unit_test(outputs_share_a_block_where_it_leaves_columns_out),
        cmocka_unit_test(one_replica_has_a_thread_for_each_cpu),
        cmocka_unit_test(a_model_of_unknown_width_has_the_workers_that_all_have),
        cmocka_unit_test(there_are_no_more_threads_than_a_replica_may_have),
        cmocka_unit_test(shards_grow_with_the_root_of_the_parameters_up_to_one_a_cpu),
        cmocka_unit_test(on_hosts_there_are_more_shards_for_wider_models_whatever_the_hosts),
        cmocka_unit_test(on_hosts_sparse_rows_with_few_of_the_columns_have_fewer_shards),
        cmocka_unit_test(flushes_of_many_hosts_come_as_seldom_as_shards_can_take_them),
        cmocka_unit_test(pairs_add_at_most_half_to_what_an_evaluation_moves),
        cmocka_unit_test(more_outputs_have_fewer_pairs),
        cmocka_unit_test(a_history_stays_within_its_bounds),
        cmocka_unit_test(the_scale_of_biases_is_the_square_of_the_mean_row),
        cmocka_unit_test(the_scale_of_biases_stays_within_its_bounds),
        cmocka_unit_test(a_narrow_model_has_a_block_of_all_and_a_wide_one_of_what_fits),
        cmocka_unit_test(with_l1_weights_of_all_outputs_may_be_listed_beside_the_biases),
        cmocka_unit_test(a_block_that_is_asked_for_and_cannot_be_is_an_error),
        cmocka_unit_test(a_leading_block_is_halved_until_a_refresh_is_cheap),
        cmocka_unit_test(tables_have_a_leading_block_and_texts_have_none),
        cmocka_unit_test(columns_that_many_rows_have_are_all_in_the_block_or_there_is_none),
        cmocka_unit_test(a_job_that_asks_for_a_block_has_the_largest),
        cmocka_unit_test(numbers_in_the_job_are_kept),
        cmocka_unit_test(workers_started_by_hand_are_counted_and_choose_their_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
