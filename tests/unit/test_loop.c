/* Work beside the loop: the loop turns meanwhile, and what the work says is its caller's. Under the
 * thread sanitizer, no two of them touch the same. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/loop.h"

/* Work that waits for a byte, and a loop whose handler sends it. */
struct beside {
    struct loop loop;
    struct event *timer;
    int ends[2];
    enum stage seen;    /* by the handler */
    int turns, stopped; /* of the handler; of `stop` */
    int done;           /* written by the work alone, read when it has ended */
};

static void send_byte(struct beside *beside) {
    assert_int_equal(write(beside->ends[1], "", 1), 1);
}

/* The third turn lets the work go on. */
static void on_turn(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct beside *beside = context;
    beside->seen = beside->loop.stage;
    log_info("turn %d", beside->turns);
    error_set(ERROR_IO, "what a handler leaves");
    if (++beside->turns == 3)
        send_byte(beside);
}

static int set_up(void **state) {
    struct beside *beside = memory_new(1, sizeof *beside);
    assert_int_equal(loop_open(&beside->loop), 0);
    assert_int_equal(pipe2(beside->ends, O_CLOEXEC), 0);
    beside->timer = event_new(beside->loop.base, -1, EV_PERSIST, on_turn, beside);
    event_add(beside->timer, &(struct timeval){.tv_usec = 1000});
    *state = beside;
    return 0;
}

static int tear_down(void **state) {
    struct beside *beside = *state;
    event_free(beside->timer);
    loop_close(&beside->loop);
    close(beside->ends[0]);
    close(beside->ends[1]);
    free(beside);
    error_clear();
    return 0;
}

static int wait_for_byte(void *context) {
    struct beside *beside = context;
    char byte;
    log_info("the work waits");
    ssize_t got = read(beside->ends[0], &byte, 1);
    beside->done++;
    return got == 1 ? 0 : error_set(ERROR_IO, "no byte");
}

static int fail_after_byte(void *context) {
    int code = wait_for_byte(context);
    return code ? code : error_set(ERROR_DATA, "what the work says");
}

static void the_loop_turns_while_work_is_beside_it(void **state) {
    struct beside *beside = *state;
    assert_int_equal(loop_beside(&beside->loop, STAGE_PACKING, wait_for_byte, beside), 0);
    assert_true(beside->turns >= 3 && beside->done == 1);
    assert_string_equal(error_text(), "");
}

static void the_stage_is_that_of_the_work_until_it_ends(void **state) {
    struct beside *beside = *state;
    enum stage before = beside->loop.stage;
    assert_int_equal(loop_beside(&beside->loop, STAGE_PACKING, wait_for_byte, beside), 0);
    assert_int_equal(beside->seen, STAGE_PACKING);
    assert_int_equal(beside->loop.stage, before);
}

static void the_error_of_the_work_becomes_the_callers(void **state) {
    struct beside *beside = *state;
    int code = loop_beside(&beside->loop, STAGE_PACKING, fail_after_byte, beside);
    assert_int_equal(code, ERROR_DATA);
    assert_string_equal(error_text(), "what the work says");
}

static int send_byte_to(void *context) {
    send_byte(context);
    return 0;
}

static void what_was_begun_goes_on_beside_other_work(void **state) {
    struct beside *beside = *state;
    struct loop_work *begun;
    event_del(beside->timer); /* only the other work sends a byte */
    assert_int_equal(loop_begin(wait_for_byte, beside, &begun), 0);
    assert_int_equal(loop_beside(&beside->loop, STAGE_PACKING, send_byte_to, beside), 0);
    assert_int_equal(loop_finish(&beside->loop, begun), 0);
    assert_int_equal(beside->done, 1);
}

static void on_stop(void *context) {
    struct beside *beside = context;
    beside->stopped++;
    send_byte(beside);
}

static int ask_to_stop(void *context) {
    kill(getpid(), SIGTERM);
    return wait_for_byte(context);
}

static void a_signal_is_handled_while_work_is_beside_the_loop(void **state) {
    struct beside *beside = *state;
    event_del(beside->timer); /* only `stop` sends a byte */
    beside->loop.stop = on_stop;
    beside->loop.context = beside;
    assert_int_equal(loop_beside(&beside->loop, STAGE_PACKING, ask_to_stop, beside), 0);
    assert_int_equal(beside->stopped, 1);
}

extern char **environ;

/* The child lives until the loop has turned three times. */
static pid_t start_child(const struct beside *beside) {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    pid_t child;
    char *words[] = {"sh", "-c", "head -c 1 >/dev/null; exit 3", NULL};
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, beside->ends[0], STDIN_FILENO);
    loop_child_attributes(&attributes, 0);
    assert_int_equal(posix_spawnp(&child, "sh", &files, &attributes, words, environ), 0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return child;
}

static void the_loop_turns_while_a_child_runs(void **state) {
    struct beside *beside = *state;
    int status;
    pid_t child = start_child(beside);
    assert_int_equal(loop_wait(&beside->loop, STAGE_ANNOUNCING, child, &status), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_true(beside->turns >= 3 && beside->seen == STAGE_ANNOUNCING);
    assert_int_equal(beside->loop.child, 0);
}

static int log_for_ever(void *context) {
    struct beside *beside = context;
    log_info("at work");
    send_byte(beside);
    while (!beside->done)
        log_info("still at work");
    return 0;
}

/* Is told to stop amid work that logs. */
static _Noreturn void be_stopped(struct beside *beside, int said) {
    struct loop_work *work;
    char byte;
    dup2(said, STDERR_FILENO);
    loop_begin(log_for_ever, beside, &work);
    assert_int_equal(read(beside->ends[0], &byte, 1), 1);
    loop_stop(&beside->loop, SIGTERM, "terminated");
    abort();
}

static void what_a_stop_says_is_the_last_line_whatever_work_logs(void **state) {
    static const char last[] =
        "\ndml-coordinator: terminated; the same command goes on from here\n";
    char path[] = "/tmp/dml-test-XXXXXX", text[sizeof last];
    int said = mkstemp(path), status;
    unlink(path);
    for (int turn = 0; turn < 20; turn++) {
        assert_int_equal(ftruncate(said, 0), 0);
        assert_int_equal(lseek(said, 0, SEEK_SET), 0);
        pid_t child = fork();
        if (!child)
            be_stopped(*state, said);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == -ERROR_AGAIN);
        off_t start = lseek(said, 0, SEEK_END) - (off_t)strlen(last);
        assert_int_equal(pread(said, text, sizeof text, start), strlen(last));
        assert_memory_equal(text, last, strlen(last));
    }
    close(said);
}

static bool has_turned(const void *context) {
    return ((const struct beside *)context)->turns >= 2;
}

static void what_turns_the_loop_until_something_holds_keeps_an_error(void **state) {
    struct beside *beside = *state;
    error_set(ERROR_DATA, "before");
    loop_until(beside->loop.base, 60000, has_turned, beside);
    assert_true(has_turned(beside));
    assert_string_equal(error_text(), "before");
}

SUITE(loop) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_loop_turns_while_work_is_beside_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_stage_is_that_of_the_work_until_it_ends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_error_of_the_work_becomes_the_callers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_was_begun_goes_on_beside_other_work, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_signal_is_handled_while_work_is_beside_the_loop, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_loop_turns_while_a_child_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_stop_says_is_the_last_line_whatever_work_logs,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_turns_the_loop_until_something_holds_keeps_an_error,
                                        set_up, tear_down),
    };
    log_open("loop", LOG_INFO); /* the log is used by both */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
