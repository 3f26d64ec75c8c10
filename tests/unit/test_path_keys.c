#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "coordinator/job/job.h"
#include "coordinator/job/key.h"

static char path[64];

static int make_file(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_path_keys.XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "data = a\n", 9), 9);
    close(file);
    error_clear();
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static int read_with(const char *first, const char *second, struct job **job) {
    const char *settings[] = {first, second};
    return job_read(path, settings, second ? 2 : 1, NULL, job);
}

static struct job *job_with(const char *first, const char *second) {
    struct job *job = NULL;
    if (read_with(first, second, &job))
        fail_msg("%s", error_text());
    return job;
}

static void refused(const char *setting, const char *why) {
    struct job *job = NULL;
    assert_int_not_equal(read_with(setting, NULL, &job), 0);
    if (!strstr(error_text(), why))
        fail_msg("%s", error_text());
    error_clear();
}

static void a_list_is_kept_from_strong_to_weak(void **state) {
    (void)state;
    struct job *job = job_with("l2={ 0.1, 3, 0, 1e-3 }", "holdout=0.2");
    assert_true(job_has_sweep(job));
    assert_int_equal(job->l2.count, 4);
    const double expected[] = {3, 0.1, 1e-3, 0};
    for (int i = 0; i < 4; i++)
        assert_true(job->l2.all[i] == expected[i]);
    assert_true(job->l2.value == 3);
    job_free(job);
}

static void one_value_is_no_path(void **state) {
    (void)state;
    struct job *job = job_with("l2={ 0.1 }", NULL), *plain = job_with("l2=0.1", NULL);
    char *identity = job_identity(job), *other = job_identity(plain);
    assert_false(job_has_sweep(job));
    assert_true(job->l2.value == 0.1);
    assert_string_equal(identity, other);
    free(identity);
    free(other);
    job_free(plain);
    job_free(job);
}

static void the_order_of_a_list_does_not_matter_and_its_values_do(void **state) {
    (void)state;
    struct job *job = job_with("l2={ 0.1, 3 }", "holdout=0.2");
    struct job *turned = job_with("l2={ 3, 0.1 }", "holdout=0.2");
    struct job *longer = job_with("l2={ 3, 0.1, 1 }", "holdout=0.2");
    char *identity = job_identity(job), *same = job_identity(turned), *other = job_identity(longer);
    json_t *settings = job_settings(job);
    assert_string_equal(identity, same);
    assert_string_not_equal(identity, other);
    assert_null(job_first_difference(turned, settings));
    assert_string_equal(job_first_difference(longer, settings), "l2");
    json_decref(settings);
    free(identity);
    free(same);
    free(other);
    job_free(longer);
    job_free(turned);
    job_free(job);
}

static void a_list_needs_a_holdout(void **state) {
    (void)state;
    refused("l2={ 1, 2 }", "key `l2`: a list of values needs rows to choose among their models; "
                           "also set `holdout`");
}

static void a_bad_list_is_named(void **state) {
    (void)state;
    refused("l2={ 1, 2, 1.0 }", "key `l2`: 1.0 is given twice");
    refused("l2={ 1, -2 }", "key `l2`: \"-2\" is out of range; allowed: auto, or a number from 0 "
                            "to 1e+20, or a list of them");
    refused("l2={ 1, x }", "key `l2`: \"x\" is not a number");
    refused("l2={ auto, 1 }", "key `l2`: auto is combined with other values; allowed: either "
                              "auto, or numbers");
    refused("l2={ 1, auto }", "key `l2`: auto is combined with other values");
    refused("l1=auto", "key `l1`: \"auto\" is not a number");
    refused("l2=0.1,0.01", "or a list of them in braces, like { 3, 2 }");
}

static void refused_in_file(const char *text, const char *why) {
    struct job *job = NULL;
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    assert_int_equal(job_read(path, NULL, 0, NULL, &job), ERROR_CONFIG);
    if (!strstr(error_text(), why))
        fail_msg("%s", error_text());
    error_clear();
}

static void an_empty_list_is_no_value(void **state) {
    (void)state;
    job_free(job_with("gate={ }", "test={}")); /* there are none */
    refused("l2={ }", "--set l2={ }: key `l2`: an empty list; allowed: auto, or a number from 0");
    refused("csv.hash={}", "key `csv.hash`: an empty list");
    refused_in_file("data = a\n# l1 = { }\nl1 = {\n# none\n }\n", ":3: key `l1`: an empty list");
    refused_in_file("data = a\ncsv {\n header = yes\n hash = { } }\n",
                    ":4: key `csv.hash`: an empty list");
}

/* ---- l2 = auto ---- */

static void auto_is_one_over_the_sum_of_the_weights(void **state) {
    (void)state;
    static const char *const settings[] = {"l2=auto", "objective=squared", "objective=softmax",
                                           "folds=5"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct job *job = job_with(settings[i], NULL);
        assert_true(job->l2.automatic && isnan(job->l2.value));
        job_complete_l2(job, 1000, 1);
        assert_true(job->l2.value == 1e-3);
        job_complete_l2(job, 2000, 1); /* as of another member of a sweep */
        assert_true(job->l2.value == 5e-4);
        job_complete_l2(job, 1e-30, 1);
        assert_true(job->l2.value == PENALTY_MAX);
        job_free(job);
    }
}

/* Where a job says a number, or `auto` is one whatever the data are. */
static void other_values_are_left_alone(void **state) {
    (void)state;
    static const struct {
        const char *setting;
        double l2;
    } cases[] = {{"l2=0", 0},
                 {"l2=0.5", 0.5},
                 {"l1=0.1", 0},
                 {"optimizer=downpour", 0},
                 {"objective=network", 1e-4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job *job = job_with(cases[i].setting, NULL);
        job_complete_l2(job, 1000, 1);
        assert_true(!job->l2.automatic && job->l2.value == cases[i].l2);
        job_free(job);
    }
}

static void same_job(const char *first, const char *second, const char *other, bool same) {
    struct job *one = job_with(first, second), *two = job_with(other, second);
    char *identity = job_identity(one), *of_other = job_identity(two);
    json_t *settings = job_settings(one);
    assert_int_equal(strcmp(identity, of_other) == 0, same);
    assert_int_equal(job_first_difference(two, settings) == NULL, same);
    json_decref(settings);
    free(identity);
    free(of_other);
    job_free(one);
    job_free(two);
}

/* Nights with other rows are the same job. */
static void auto_is_the_same_job_on_any_data(void **state) {
    (void)state;
    struct job *job = job_with("l2=auto", NULL), *grown = job_with("l2=auto", NULL);
    job_complete_l2(grown, 1000, 1);
    char *identity = job_identity(job), *same = job_identity(grown);
    json_t *settings = job_settings(job);
    assert_string_equal(identity, same);
    assert_null(job_first_difference(grown, settings));
    json_decref(settings);
    free(identity);
    free(same);
    job_free(grown);
    job_free(job);
    same_job("name=a", NULL, "name=b", false);
    same_job("l2=auto", "name=a", "intercept=yes", true);
    same_job("l2=auto", NULL, "l2=0", false);
    same_job("l2=auto", "l1=1", "l2=0", true);
    same_job("l2=auto", "objective=network", "l2=1e-4", true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

SUITE(path_keys) {
    const struct CMUnitTest tests[] = {
        TEST(a_list_is_kept_from_strong_to_weak),
        TEST(one_value_is_no_path),
        TEST(the_order_of_a_list_does_not_matter_and_its_values_do),
        TEST(a_list_needs_a_holdout),
        TEST(a_bad_list_is_named),
        TEST(an_empty_list_is_no_value),
        TEST(auto_is_one_over_the_sum_of_the_weights),
        TEST(other_values_are_left_alone),
        TEST(auto_is_the_same_job_on_any_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
