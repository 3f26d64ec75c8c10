/* A job file that a test writes and reads, and what must be refused in it. */
#ifndef DML_TESTS_UNIT_JOB_FIXTURE_H
#define DML_TESTS_UNIT_JOB_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "coordinator/job/job.h"

static char path[64];

static int make_file(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_job_file.XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    error_clear();
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static int read_text(const char *text, struct job **job) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "data = a\n%s\n", text);
    fclose(file);
    return job_read(path, NULL, 0, NULL, job);
}

static struct job *job_of(const char *text) {
    struct job *job = NULL;
    if (read_text(text, &job))
        fail_msg("%s", error_text());
    return job;
}

static void refused(const char *text, const char *key, const char *why) {
    struct job *job = NULL;
    char named[64];
    snprintf(named, sizeof named, "key `%s`", key);
    assert_int_equal(read_text(text, &job), ERROR_CONFIG);
    if (!strstr(error_text(), named) || !strstr(error_text(), why))
        fail_msg("%s", error_text());
    error_clear();
}

/* Each text makes another run of a job, and is told by the name of its first key. */
static void makes_other_runs(const char *job_text, const char *section, const char *const *keys,
                             int count) {
    struct job *job = job_of(job_text);
    json_t *settings = job_settings(job);
    char *identity = job_identity(job);
    for (int i = 0; i < count; i++) {
        char text[160], name[48];
        snprintf(text, sizeof text, "%s\n%s { %s }", job_text, section, keys[i]);
        snprintf(name, sizeof name, "%s.%.*s", section, (int)strcspn(keys[i], " "), keys[i]);
        struct job *other = job_of(text);
        char *differs = job_identity(other);
        assert_string_not_equal(identity, differs);
        assert_string_equal(job_first_difference(other, settings), name);
        free(differs);
        job_free(other);
    }
    assert_null(job_first_difference(job, settings));
    free(identity);
    json_decref(settings);
    job_free(job);
}

#define JOB_TEST(function) cmocka_unit_test_setup_teardown(function, make_file, remove_file)

#endif
