/* Epochs of training on minibatches in answers, on terminals and in metrics. */
#include <math.h>

#include "tests/unit/suites.h"
#include "coordinator/status/api.h"
#include "coordinator/status/report.h"
#include "coordinator/status/result.h"
#include "tests/unit/store_fixture.h"

static const struct downpour_view under_way = {
    .running = true,
    .epochs = 3,
    .epoch = 1,
    .minibatches = 422,
    .minibatch = 123,
    .done = 545,
    .rate = 0.02,
    .loss = 0.3125,
    .measures = true,
    .holdout = {.loss = 0.375, .accuracy = 0.875},
};

static void assert_line(const struct downpour_view *view, double speed, const char *expected) {
    const struct live live = {.speed = speed};
    json_t *downpour =
        figures_json(IN_DOWNPOUR, &(struct figure_source){.live = &live, .view.downpour = *view});
    char *line = epochs_line(downpour);
    assert_string_equal(line, expected);
    free(line);
    json_decref(downpour);
}

static void a_line_says_how_far_an_epoch_is(void **state) {
    (void)state;
    assert_line(&under_way, 812.4,
                "epoch 2 of 3: 123 of 422 minibatches, 812.4 a second, loss 0.3125, holdout "
                "0.375, accuracy 0.875");
    struct downpour_view first = {
        .running = true, .epochs = 3, .minibatches = 422, .measures = true, .loss = NAN};
    assert_line(&first, NAN, "epoch 1 of 3: 0 of 422 minibatches");
}

static void a_line_says_what_there_was_in_all(void **state) {
    (void)state;
    struct downpour_view over = under_way;
    over.running = false;
    over.stopped_early = true;
    assert_line(&over, 812,
                "1 epoch, 545 minibatches, loss 0.3125, holdout 0.375, accuracy 0.875, stopped "
                "early");
    over.measures = over.stopped_early = false;
    over.epoch = 3;
    assert_line(&over, NAN, "3 epochs, 545 minibatches, loss 0.3125");
}

static void a_run_without_minibatches_has_none(void **state) {
    (void)state;
    struct store *store = opened();
    begun(store, "one");
    json_t *status;
    assert_int_equal(report_status(store, &status), 0);
    assert_true(json_is_null(json_object_get(status, "downpour")));
    json_decref(status);
    store_close(store);
}

static void put_epochs(struct store *store, int64_t run) {
    for (uint64_t i = 1; i <= 2; i++) {
        struct store_epoch epoch = {.epoch = i,
                                    .minibatches = 10,
                                    .rows = 640,
                                    .loss = 1.0 / (double)i,
                                    .holdout_loss = 0.5,
                                    .holdout_accuracy = NAN,
                                    .seconds = 0.25,
                                    .wall_ms = 1000 + 500 * (int64_t)i};
        assert_int_equal(store_downpour_epoch(store, run, &epoch), 0);
    }
}

static void epochs_are_given_from_a_number_on(void **state) {
    (void)state;
    struct store *store = opened();
    int64_t run = begun(store, "one");
    put_epochs(store, run);
    struct api api = {.live = {.run = run, .started_ms = 1000}, .store = store};
    struct request request = {.path = "/api/v1/epochs", .query = "since=2"};
    struct http_answer answer = {0};
    api_answer(&api, &request, &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(
        answer.body,
        "{\"run\":1,\"epochs\":[{\"epoch\":2,\"minibatches\":10,\"rows\":640,\"loss\":0.5,"
        "\"holdout_loss\":0.5,\"holdout_accuracy\":null,\"took_seconds\":0.25,\"wall_ms\":2000,"
        "\"seconds\":1.0}],\"next\":3,\"more\":false}");
    free(answer.owned);
    store_close(store);
}

static void a_run_that_was_lost_is_told_by_its_epochs(void **state) {
    (void)state;
    struct store *store = opened();
    put_epochs(store, begun(store, "one"));
    json_t *status;
    assert_int_equal(report_status(store, &status), 0);
    char *line = epochs_line(json_object_get(status, "downpour"));
    assert_string_equal(line, "2 epochs, 20 minibatches, loss 0.5, holdout 0.5");
    free(line);
    json_decref(status);
    store_close(store);
}

SUITE(epochs) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_says_how_far_an_epoch_is),
        cmocka_unit_test(a_line_says_what_there_was_in_all),
        TEST(a_run_without_minibatches_has_none),
        TEST(epochs_are_given_from_a_number_on),
        TEST(a_run_that_was_lost_is_told_by_its_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
