/* A folder of its own for each test of the store, and a run in it. */
#ifndef DML_TESTS_STORE_FIXTURE_H
#define DML_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "store/internal.h"

static char folder[64];
static char path[96];
static char wal[104];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_store.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/dml.db", folder);
    snprintf(wal, sizeof wal, "%s-wal", path);
    error_clear();
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(wal);
    return rmdir(folder);
}

static struct store *opened(void) {
    struct store *store = NULL;
    assert_int_equal(store_open(folder, NULL, &store), 0);
    return store;
}

static inline int64_t begun(struct store *store, const char *uuid) {
    struct store_run run = {.uuid = uuid,
                            .job = "adult",
                            .identity = "abc",
                            .settings = "{}",
                            .data = "fingerprint",
                            .build = "build",
                            .started_ms = 1000};
    assert_int_equal(store_run_begin(store, &run), 0);
    return run.run;
}

/* A durable step of two shards whose state is `length` bytes that tell the step. */
static inline int durable(struct store *store, int64_t run, uint32_t attempt, uint64_t step,
                          size_t length) {
    uint64_t digests[] = {step * 10, step * 10 + 1};
    char *data = malloc(length);
    memset(data, (int)('a' + step % 26), length);
    int code = store_durable_step(store, run, attempt, step, data, length, digests, 2);
    free(data);
    return code;
}

/* Does `work` in a process of its own that dies without closing anything. */
static inline void in_a_process_that_dies(void (*work)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

#endif
