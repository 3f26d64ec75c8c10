#include "tests/unit/suites.h"
#include "coordinator/job/job.h"
#include "tests/unit/job_fixture.h"

#define POURS "start = downpour\n"

static void defaults_are_three_epochs_of_small_minibatches(void **state) {
    (void)state;
    struct job *job = job_of(POURS);
    const struct job_downpour *downpour = &job->downpour;
    assert_true(job_has_minibatches(job));
    assert_int_equal(job->optimizer, JOB_LBFGS);
    assert_int_equal(downpour->epochs, 3);
    assert_int_equal(downpour->batch, 0); /* auto */
    assert_true(downpour->rate.count == 1 && downpour->rate.value[0] == 0.05);
    assert_true(downpour->schedule.count == 1 && downpour->schedule.value[0] == 1);
    assert_int_equal(downpour->seed, 1);
    job_free(job);
}

static void a_job_that_says_nothing_trains_by_lbfgs_alone(void **state) {
    (void)state;
    struct job *job = job_of("objective = network");
    json_t *settings = job_settings(job);
    assert_false(job_has_minibatches(job));
    assert_null(json_object_get(settings, "downpour.rate"));
    json_decref(settings);
    job_free(job);
}

static void lists_keep_the_order_of_epochs(void **state) {
    (void)state;
    struct job *job = job_of("optimizer = downpour\n"
                             "downpour { epochs = 4\n rate = { 0.01, 0.05, 0.01 }\n"
                             " schedule = { 4, 1, 4, 2 }\n batch = 192 }");
    const double rates[] = {0.01, 0.05, 0.01};
    const uint32_t factors[] = {4, 1, 4, 2};
    assert_true(job_has_minibatches(job));
    assert_int_equal(job->downpour.rate.count, 3);
    assert_memory_equal(job->downpour.rate.value, rates, sizeof rates);
    assert_int_equal(job->downpour.schedule.count, 4);
    assert_memory_equal(job->downpour.schedule.value, factors, sizeof factors);
    assert_int_equal(job->downpour.batch, 192);
    job_free(job);
}

static void keys_of_minibatches_need_a_job_that_trains_on_them(void **state) {
    (void)state;
    refused("downpour { batch = 64 }", "downpour.batch",
            "write start = downpour or optimizer = downpour, or remove it");
    refused("downpour { rate = { 0.1, 0.2 } }", "downpour.rate", "start = downpour");
}

static void numbers_that_cannot_be_are_refused(void **state) {
    (void)state;
    refused(POURS "downpour { batch = 100 }", "downpour.batch",
            "\"100\" is not a multiple of 8 (96 and 104 are the nearest); allowed: auto, or a "
            "multiple of "
            "8 from 8 to 1073741824");
    refused(POURS "downpour { batch = 0 }", "downpour.batch", "out of range");
    refused(POURS "downpour { batch = 64.5 }", "downpour.batch", "not a whole number");
    refused(POURS "downpour { epochs = 0 }", "downpour.epochs", "from 1 to 1000000");
    refused(POURS "downpour { rate = 0 }", "downpour.rate", "out of range");
    refused(POURS "downpour { rate = -0.1 }", "downpour.rate", "out of range");
    refused(POURS "downpour { rate = 1e9 }", "downpour.rate", "from 1e-12 to 1000000");
    refused(POURS "downpour { rate = nan }", "downpour.rate", "not a number");
    refused(POURS "downpour { rate = { 0.1, x } }", "downpour.rate", "\"x\" is not a number");
    refused(POURS "downpour { rate = { } }", "downpour.rate", "an empty list");
    refused(POURS "downpour { schedule = { 1, 0 } }", "downpour.schedule", "from 1 to 65536");
    refused(POURS "downpour { seed = 9007199254740993000 }", "downpour.seed", "out of range");
    refused("start = adagrad", "start", "zero, downpour");
    refused("optimizer = sgd", "optimizer", "lbfgs, downpour");
    refused("start = downpor", "start", "downpour");
}

static void values_behind_the_last_epoch_are_refused(void **state) {
    (void)state;
    refused(POURS "downpour { schedule = { 1, 2, 4, 8 } }", "downpour.schedule",
            "has 4 values for 3 epochs; allowed: at most as many as `downpour.epochs`, so set "
            "that to 4 or remove values");
    refused(POURS "downpour { epochs = 1\n rate = { 0.1, 0.05 } }", "downpour.rate",
            "has 2 values for 1 epoch;");
}

static void a_list_has_at_most_a_hundred_values(void **state) {
    (void)state;
    char text[512] = POURS "downpour { epochs = 200\n schedule = { 1";
    for (int i = 1; i < 101; i++)
        strcat(text, ", 1");
    strcat(text, " } }");
    refused(text, "downpour.schedule", "too many values; allowed: at most 100");
}

static void what_preconditions_by_a_matrix_is_refused(void **state) {
    (void)state;
    refused(POURS "precondition = block", "precondition", "allowed here: auto, none, diagonal");
    refused(POURS "objective = network\nprecondition = kronecker", "precondition", "minibatches");
    job_free(job_of(POURS "precondition = diagonal"));
}

static void early_stopping_needs_a_holdout_here_too(void **state) {
    (void)state;
    refused("optimizer = downpour\nearly_stopping = 2", "early_stopping", "also set `holdout`");
}

static void each_other_key_makes_another_run(void **state) {
    (void)state;
    static const char *const keys[] = {"batch = 64", "schedule = 2", "rate = { 0.02, 0.01 }",
                                       "seed = 2"};
    makes_other_runs("start = downpour", "downpour", keys, 4);
}

static void a_run_may_go_on_with_more_epochs(void **state) {
    (void)state;
    struct job *job = job_of(POURS), *longer = job_of(POURS "downpour { epochs = 9 }");
    json_t *settings = job_settings(job);
    char *identity = job_identity(job), *same = job_identity(longer);
    assert_string_equal(identity, same);
    assert_null(job_first_difference(longer, settings));
    free(identity);
    free(same);
    json_decref(settings);
    job_free(longer);
    job_free(job);
}

static void a_job_without_minibatches_keeps_its_identity(void **state) {
    (void)state;
    struct job *job = job_of(""), *same = job_of("start = zero\noptimizer = lbfgs");
    struct job *other = job_of(POURS);
    char *identity = job_identity(job), *kept = job_identity(same), *changed = job_identity(other);
    assert_string_equal(identity, kept);
    assert_string_not_equal(identity, changed);
    free(identity);
    free(kept);
    free(changed);
    job_free(other);
    job_free(same);
    job_free(job);
}

SUITE(downpour_keys) {
    const struct CMUnitTest tests[] = {
        JOB_TEST(defaults_are_three_epochs_of_small_minibatches),
        JOB_TEST(a_job_that_says_nothing_trains_by_lbfgs_alone),
        JOB_TEST(lists_keep_the_order_of_epochs),
        JOB_TEST(keys_of_minibatches_need_a_job_that_trains_on_them),
        JOB_TEST(numbers_that_cannot_be_are_refused),
        JOB_TEST(values_behind_the_last_epoch_are_refused),
        JOB_TEST(a_list_has_at_most_a_hundred_values),
        JOB_TEST(what_preconditions_by_a_matrix_is_refused),
        JOB_TEST(early_stopping_needs_a_holdout_here_too),
        JOB_TEST(each_other_key_makes_another_run),
        JOB_TEST(a_run_may_go_on_with_more_epochs),
        JOB_TEST(a_job_without_minibatches_keeps_its_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
