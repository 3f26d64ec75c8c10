/* Failpoints: the environment names a failure, which happens once, in the process that it names. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "wire/peer.h"

static int setup(const char *wanted) {
    error_clear();
    setenv("DML_FAILPOINT", wanted, 1);
    return failpoint_setup("shard", message_failpoints, MESSAGE_FAILPOINTS);
}

static int disarm(void **state) {
    (void)state;
    error_clear();
    unsetenv("DML_FAILPOINT");
    unsetenv("DML_FAILPOINT_LOG");
    unsetenv("DML_FAILPOINT_ONCE");
    return failpoint_setup("shard", message_failpoints, MESSAGE_FAILPOINTS);
}

static void nothing_is_armed_without_the_environment(void **state) {
    (void)state;
    assert_false(failpoint_armed);
    assert_int_equal(failpoint_write(FAILPOINT_file_write), 0);
    assert_false(failpoint_hit(FAILPOINT_lock_released));
}

static void the_visit_that_was_named_fails_and_no_other(void **state) {
    (void)state;
    assert_int_equal(setup("epoch_write:2:enospc,file_rename:1:eio"), 0);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), 0);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), ENOSPC);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), 0);
    assert_int_equal(failpoint_write(FAILPOINT_file_rename), EIO);
}

static void a_switch_is_hit_once(void **state) {
    (void)state;
    assert_int_equal(setup("lock_released:1:hit"), 0);
    assert_true(failpoint_hit(FAILPOINT_lock_released));
    assert_false(failpoint_hit(FAILPOINT_lock_released));
}

static void visits_before_another_place_need_not_count(void **state) {
    (void)state;
    assert_int_equal(setup("epoch_write@file_rename:2:eio"), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(failpoint_write(FAILPOINT_epoch_write), 0);
    assert_int_equal(failpoint_write(FAILPOINT_file_rename), 0);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), 0);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), EIO);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), 0);
    assert_int_equal(setup("epoch_write@nowhere:1:eio"), ERROR_USAGE);
    assert_non_null(strstr(error_text(), "`nowhere`"));
}

/* How a child ends that passes a failpoint, and then ends with 7. */
static int ending(const char *wanted, unsigned number) {
    pid_t child = fork();
    if (child == 0) {
        setenv("DML_FAILPOINT", wanted, 1);
        if (failpoint_setup("replica", message_failpoints, MESSAGE_FAILPOINTS))
            _exit(64);
        failpoint_identify(1);
        failpoint(number);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return status;
}

static void a_process_kills_or_stops_itself(void **state) {
    (void)state;
    int status = ending("file_written:1:kill", FAILPOINT_file_written);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = ending("send_STAGE:1:stop", FAILPOINT_send_STAGE);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

static void other_processes_take_no_notice(void **state) {
    (void)state;
    static const char *const others[] = {"shard.file_written:1:kill",
                                         "replica0.file_written:1:kill",
                                         "coordinator.file_written:1:kill"};
    static const char *const own[] = {"replica.file_written:1:kill",
                                      "replica1.file_written:1:kill"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(WEXITSTATUS(ending(others[i], FAILPOINT_file_written)), 7);
    for (size_t i = 0; i < 2; i++)
        assert_true(WIFSIGNALED(ending(own[i], FAILPOINT_file_written)));
}

static void a_delay_lasts(void **state) {
    (void)state;
    assert_int_equal(setup("restore_begin:1:delay:20"), 0);
    int64_t start_ns = clock_monotonic_ns();
    failpoint(FAILPOINT_restore_begin);
    assert_true(clock_monotonic_ns() - start_ns >= 20 * NS_PER_MS);
}

static void what_the_table_lacks_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "file_wrote:1:kill",
        "file_write",
        "file_write:0:kill",
        "file_write:one:kill",
        "file_write:1:burn",
        "file_written:1:eio",
        "file_write:1:kill:5",
        "9.file_write:1:kill",
        "shard0x.file_write:1:kill",
        "lock_released:1:kill",
        "file_write:1:hit",
        "file_write:1:delay:x",
        "file_write:1:eio,nobody:1:kill",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(setup(bad[i]), ERROR_USAGE);
        assert_non_null(strstr(error_text(), "DML_FAILPOINT"));
        assert_false(failpoint_armed);
    }
    assert_non_null(strstr(error_text(), "there is no failpoint `nobody`; there are: file_write"));
    assert_non_null(strstr(error_text(), " receive_HOLDING"));
}

static void a_file_that_cannot_be_brought_to_disk_is_not_published(void **state) {
    (void)state;
    static const char *const wanted[] = {"file_write:1:enospc", "file_fsync:1:eio",
                                         "file_rename:1:eio"};
    char folder[] = "/tmp/dml-failpoint-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *path = path_join(folder, "file");
    for (size_t i = 0; i < 3; i++) {
        struct new_file file;
        assert_int_equal(setup(wanted[i]), 0);
        assert_int_equal(new_file_open(&file, path), 0);
        int code = new_file_write(&file, "x", 1);
        if (!code)
            code = new_file_publish(&file);
        assert_int_equal(code, ERROR_IO);
        new_file_discard(&file);
    }
    assert_int_equal(rmdir(folder), 0); /* nothing was left behind */
    free(path);
}

static void first_visits_are_logged_once(void **state) {
    (void)state;
    char path[] = "/tmp/dml-failpoint-XXXXXX", *text;
    size_t length;
    close(mkstemp(path));
    setenv("DML_FAILPOINT_LOG", path, 1);
    assert_int_equal(failpoint_setup("shard", message_failpoints, MESSAGE_FAILPOINTS), 0);
    failpoint(FAILPOINT_retain_delete);
    failpoint(FAILPOINT_retain_delete);
    failpoint_identify(3);
    failpoint_receive(MESSAGE_FOLD);
    failpoint_send(MESSAGE_FOLDED);
    assert_int_equal(file_read(path, 1000, &text, &length), 0);
    assert_string_equal(text, "shard.retain_delete\nshard3.receive_FOLD\nshard3.send_FOLDED\n");
    free(text);
    unlink(path);
}

/* Each setup() is a process of its own as far as failpoints can tell: visits count from 1 again. */
static void what_is_to_happen_once_happens_in_the_first_process_that_comes_there(void **state) {
    (void)state;
    char folder[] = "/tmp/dml-failpoint-XXXXXX";
    static const char rules[] = "file_write:1:eio,epoch_write:1:enospc";
    assert_non_null(mkdtemp(folder));
    char *once = path_join(folder, "fired"), *first = path_join(folder, "fired.0"),
         *second = path_join(folder, "fired.1");
    setenv("DML_FAILPOINT_ONCE", once, 1);
    assert_int_equal(setup(rules), 0);
    assert_int_equal(failpoint_write(FAILPOINT_file_write), EIO);
    assert_int_equal(access(first, F_OK), 0);
    assert_int_equal(access(second, F_OK), -1);
    assert_int_equal(setup(rules), 0);
    assert_int_equal(failpoint_write(FAILPOINT_file_write), 0);
    assert_int_equal(failpoint_write(FAILPOINT_epoch_write), ENOSPC); /* each rule for itself */
    assert_int_equal(unlink(first) | unlink(second) | rmdir(folder), 0);
    free(once);
    free(first);
    free(second);
}

SUITE(failpoint) {
#define T(test) cmocka_unit_test_setup(test, disarm)
    const struct CMUnitTest tests[] = {
        T(nothing_is_armed_without_the_environment),
        T(the_visit_that_was_named_fails_and_no_other),
        T(a_switch_is_hit_once),
        T(visits_before_another_place_need_not_count),
        T(a_process_kills_or_stops_itself),
        T(other_processes_take_no_notice),
        T(a_delay_lasts),
        T(what_the_table_lacks_is_refused),
        T(a_file_that_cannot_be_brought_to_disk_is_not_published),
        T(first_visits_are_logged_once),
        T(what_is_to_happen_once_happens_in_the_first_process_that_comes_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
