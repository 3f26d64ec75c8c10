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

static void a_list_needs_rows_that_judge(void **state) {
    (void)state;
    refused("l2={ 1, 2 }", "key `l2`: a list of values needs rows to choose among their models; "
                           "also set `holdout`");
}

static void a_bad_list_is_named(void **state) {
    (void)state;
    refused("l2={ 1, 2, 1.0 }", "key `l2`: 1.0 is given twice");
    refused("l2={ 1, -2 }", "key `l2`: \"-2\" is out of range; allowed: a number from 0 to 1e+20, "
                            "or a list of them");
    refused("l2={ 1, x }", "key `l2`: \"x\" is not a number");
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
    refused("l2={ }", "--set l2={ }: key `l2`: an empty list; allowed: a number from 0 to 1e+20");
    refused("csv.hash={}", "key `csv.hash`: an empty list");
    refused_in_file("data = a\n# l1 = { }\nl1 = {\n# none\n }\n", ":3: key `l1`: an empty list");
    refused_in_file("data = a\ncsv {\n header = yes\n hash = { } }\n",
                    ":4: key `csv.hash`: an empty list");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, remove_file)

SUITE(path_keys) {
    const struct CMUnitTest tests[] = {
        TEST(a_list_is_kept_from_strong_to_weak),
        TEST(one_value_is_no_path),
        TEST(the_order_of_a_list_does_not_matter_and_its_values_do),
        TEST(a_list_needs_rows_that_judge),
        TEST(a_bad_list_is_named),
        TEST(an_empty_list_is_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
