/* Norms of the tensors of a model with layers: measured with each trial, and where they are told.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/machine/machine.h"
#include "base/text.h"
#include "tests/unit/suites.h"
#include "coordinator/status/eta.h"
#include "coordinator/status/metrics.h"
#include "coordinator/status/figures.h"
#include "tests/unit/coordinator_bench.h"

enum { TENSORS = 4 };

static const struct layout_tensor tensors[TENSORS] = {
    {.name = "W1", .rows = 99, .columns = 100, .regularized = true},
    {.name = "W2", .rows = 91, .columns = 1, .regularized = true},
    {.name = "b1", .rows = 1, .columns = 9},
    {.name = "b2", .rows = 1, .columns = 1},
};

static int set_up(void **state) {
    bench_set_up(state);
    struct fixture *f = *state;
    f->settings.layout = (struct layout){0};
    for (size_t i = 0; i < TENSORS; i++)
        layout_add(&f->settings.layout, &tensors[i]);
    assert_int_equal(layout_parameters(&f->settings.layout), 10001);
    f->settings.optimizer.patience = 3;
    f->data.holdout_chunks = 1;
    f->data.holdout_weight_sum = 8;
    bench_begin(f, &f->settings);
    return 0;
}

/* Through the first evaluation: |x_t| is 2, 3, 4, 5 and |g_t| a tenth of that. */
static void finish_first(struct fixture *f) {
    bench_start(f);
    bench_flush(f, REPLICA_0, 0, 0, CHUNKS);
    bench_folded(f, SHARD_0, REPLICA_0, 0);
    bench_folded(f, SHARD_1, REPLICA_0, 0);
    bench_answer(f, (double[]){0, 1, 0.5, 0, 4, 9, 16, 25, 0.04, 0.09, 0.16, 0.25}, 12);
}

static void assert_norms(const struct tensor_norms *norms) {
    assert_int_equal(norms->count, TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        assert_true(norms->point[i] == (double)i + 2);
        assert_true(fabs(norms->gradient[i] - ((double)i + 2) / 10) < 1e-15);
    }
}

/* What the status has of the tensors; release it. */
static json_t *told_of(const struct fixture *f) {
    static struct job job = {.name = "job"};
    const struct live live = {.coordinator = f->coordinator, .job = &job};
    struct figure_source source = figures_of_live(&live);
    return tensors_json(&source);
}

static void a_trial_that_is_accepted_leaves_its_norms(void **state) {
    struct fixture *f = *state;
    assert_int_equal(coordinator_view(f->coordinator).norms.count, 0);
    finish_first(f);
    struct coordinator_view view = coordinator_view(f->coordinator);
    assert_norms(&view.norms);
    assert_norms(&view.answer.norms);
}

static void a_linear_model_is_not_measured(void **state) {
    struct fixture *f = *state;
    f->settings.layout = layout_linear(10000, 1, true);
    bench_begin(f, &f->settings);
    bench_finish_first(f, 1, 0.5);
    assert_true(coordinator_view(f->coordinator).started);
    assert_int_equal(coordinator_view(f->coordinator).norms.count, 0);
    json_t *none = told_of(f);
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
}

static void norms_outlive_the_coordinator(void **state) {
    struct fixture *f = *state;
    struct bytes stored;
    bytes_init(&stored);
    finish_first(f);
    state_encode(f->coordinator, &stored);
    bench_begin(f, &f->settings);
    assert_true(state_decode(f->coordinator, stored.data, stored.length));
    struct coordinator_view view = coordinator_view(f->coordinator);
    assert_norms(&view.norms);
    assert_norms(&view.answer.norms);
    f->settings.layout = layout_linear(10000, 1, true);
    bench_begin(f, &f->settings);
    assert_false(state_decode(f->coordinator, stored.data, stored.length));
    bytes_release(&stored);
}

static void tensors_are_told_with_shape_and_norms(void **state) {
    struct fixture *f = *state;
    json_t *before = told_of(f);
    assert_int_equal(json_array_size(before), TENSORS);
    assert_true(json_is_null(json_object_get(json_array_get(before, 0), "norm")));
    json_decref(before);
    finish_first(f);
    json_t *told = told_of(f);
    const json_t *second = json_array_get(told, 1);
    assert_string_equal(member_text(second, "name"), "W2");
    assert_int_equal(member_count(second, "rows"), 91);
    assert_int_equal(member_count(second, "columns"), 1);
    assert_true(member_number(second, "norm") == 3);
    assert_true(fabs(member_number(second, "gradient_norm") - 0.3) < 1e-15);
    json_decref(told);
}

static char *metrics_of(const struct fixture *f) {
    static struct job job = {.name = "job"};
    static const struct counters counters;
    static const struct http_counts counts;
    const struct live live = {
        .coordinator = f->coordinator, .job = &job, .seconds_left = NAN, .counters = &counters};
    size_t length;
    return metrics_text(&live, &counts, &length);
}

static void metrics_have_a_sample_a_tensor_once_there_is_a_point(void **state) {
    struct fixture *f = *state;
    char *text = metrics_of(f);
    assert_null(strstr(text, "dml_tensor_norm"));
    assert_null(strstr(text, "dml_holdout_accuracy"));
    free(text);
    finish_first(f);
    text = metrics_of(f);
    assert_non_null(strstr(text, "\ndml_tensor_norm{tensor=\"b1\"} 4\n"));
    assert_non_null(strstr(text, "\ndml_tensor_gradient_norm{tensor=\"b2\"} 0.5\n"));
    assert_non_null(strstr(text, "\ndml_holdout_accuracy 0.25\n"));
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, bench_tear_down)

SUITE(tensors) {
    const struct CMUnitTest tests[] = {
        TEST(a_trial_that_is_accepted_leaves_its_norms),
        TEST(a_linear_model_is_not_measured),
        TEST(norms_outlive_the_coordinator),
        TEST(tensors_are_told_with_shape_and_norms),
        TEST(metrics_have_a_sample_a_tensor_once_there_is_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
