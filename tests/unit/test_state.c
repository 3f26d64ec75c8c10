/* What commands learn from a state folder: its lock, its coordinator, its store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "coordinator/command/ask.h"
#include "coordinator/run/state_folder.h"
#include "store/store.h"
#include "tests/unit/suites.h"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_state.XXXXXX");
    assert_non_null(mkdtemp(folder));
    error_clear();
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const names[] = {"lock", "dml.db", "dml.db-wal", "control.sock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static int listening(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", folder);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(descriptor, 4), 0);
    return descriptor;
}

/* A process that takes one question, gives the answer, and ends. */
static pid_t answering(int descriptor, const char *question, const char *answer) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char text[64] = "";
        int client = accept(descriptor, NULL, NULL);
        bool asked = read(client, text, sizeof text - 1) > 0 && strcmp(text, question) == 0;
        if (asked && write(client, answer, strlen(answer)) < 0)
            _exit(1);
        _exit(asked ? 0 : 1);
    }
    return child;
}

static void await(pid_t child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int64_t fill_store(const char *reason) {
    struct store *store;
    struct store_run run = {.uuid = "u",
                            .job = "adult",
                            .identity = "",
                            .settings = "{}",
                            .data = "",
                            .build = "",
                            .started_ms = 1000};
    struct store_step step = {
        .step = 3, .loss = 0.5, .gradient_max = 0.25, .note = "", .wall_ms = 3500};
    assert_int_equal(store_open(folder, NULL, &store), 0);
    assert_int_equal(store_run_begin(store, &run), 0);
    assert_int_equal(store_step(store, run.run, &step), 0);
    assert_int_equal(store_process(store, run.run,
                                   &(struct store_process_row){.role = "replica",
                                                               .incarnation = 1,
                                                               .pid = 42,
                                                               .host = "here",
                                                               .address = "",
                                                               .device = "cuda:0 A GPU",
                                                               .state = "running"}),
                     0);
    assert_int_equal(store_model(store, run.run, "models/1", "abc"), 0);
    if (reason)
        assert_int_equal(store_run_end(store, run.run, reason, "{}", 3, 4, 0.5, 0.25), 0);
    assert_int_equal(store_close(store), 0);
    return run.run;
}

static const char *text_of(const json_t *object, const char *member) {
    return json_string_value(json_object_get(object, member));
}

static void a_lock_is_held_by_one_and_names_its_holder(void **state) {
    (void)state;
    int first, second;
    char expected[64];
    assert_int_equal(state_lock(folder, STATE_WORKS, &first), 0);
    assert_int_equal(state_lock_holder(folder).pid, getpid());
    assert_int_equal(state_lock(folder, STATE_WORKS, &second), ERROR_AGAIN);
    snprintf(expected, sizeof expected, "already running, pid %d", (int)getpid());
    assert_non_null(strstr(error_text(), expected));
    state_unlock(first);
    error_clear();
    assert_int_equal(state_lock(folder, STATE_WORKS, &second), 0);
    state_unlock(second);
}

/* Others wait for who reads, and not for who works. */
static void a_reader_that_begins_to_work_says_so_and_keeps_the_lock(void **state) {
    (void)state;
    int lock, second;
    assert_int_equal(state_lock(folder, STATE_READS, &lock), 0);
    assert_true(state_lock_holder(folder).reads);
    assert_int_equal(state_lock_works(folder, lock), 0);
    assert_false(state_lock_holder(folder).reads);
    assert_int_equal(state_lock_holder(folder).pid, getpid());
    assert_true(guard_holds());
    assert_int_equal(state_lock(folder, STATE_WORKS, &second), ERROR_AGAIN);
    error_clear();
    state_unlock(lock);
}

static void a_lock_goes_with_the_process_that_held_it(void **state) {
    (void)state;
    int descriptor;
    pid_t child = fork();
    if (child == 0)
        _exit(state_lock(folder, STATE_WORKS, &descriptor) ? 1 : 0);
    await(child);
    assert_int_equal(state_lock_holder(folder).pid, child);
    assert_int_equal(state_lock(folder, STATE_WORKS, &descriptor), 0);
    state_unlock(descriptor);
}

/* Of a user who may not write into it, as root may anything. */
static int retire_locked(const char *path) {
    if (chmod(path, 0500) ||
        (getuid() == 0 && (chown(folder, 1, 1) || chown(path, 1, 1) || setuid(1))))
        return 2;
    return folder_retire(path);
}

static void a_folder_that_cannot_be_removed_is_not_gone(void **state) {
    (void)state;
    char model[80], file[96], tidy[192];
    snprintf(model, sizeof model, "%s/7", folder);
    snprintf(file, sizeof file, "%s/weights", model);
    assert_int_equal(mkdir(model, 0700), 0);
    fclose(fopen(file, "w"));
    pid_t child = fork();
    if (child == 0)
        _exit(retire_locked(model));
    await(child);
    assert_int_equal(access(model, F_OK), -1);
    assert_true(folder_retire(model)); /* by another before */
    snprintf(tidy, sizeof tidy, "chmod -R u+w %s && rm -r %s/7.tmp.*", folder, folder);
    assert_int_equal(system(tidy), 0);
    assert_int_equal(mkdir(model, 0700), 0);
    fclose(fopen(file, "w"));
    assert_true(folder_retire(model));
    assert_int_equal(access(model, F_OK), -1);
}

static void a_folder_without_a_coordinator_is_unavailable(void **state) {
    (void)state;
    char *answer;
    assert_int_equal(control_ask(folder, "status\n", &answer), ERROR_UNAVAILABLE);
    error_clear();
    close(listening()); /* what a coordinator that died leaves behind */
    assert_int_equal(control_ask(folder, "status\n", &answer), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "no coordinator runs there"));
}

static void of_a_coordinator_on_another_host_the_host_is_named(void **state) {
    (void)state;
    char *answer, path[300];
    snprintf(path, sizeof path, "%s/lock", folder);
    FILE *lock = fopen(path, "w");
    fputs("77 elsewhere 7\n", lock);
    fclose(lock);
    assert_int_equal(control_ask(folder, "cancel\n", &answer), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "pid 77 on host elsewhere"));
}

static void an_answer_is_read_to_its_end(void **state) {
    (void)state;
    char *answer;
    int descriptor = listening();
    pid_t child = answering(descriptor, "cancel\n", "ok\n");
    close(descriptor);
    assert_int_equal(control_ask(folder, "cancel\n", &answer), 0);
    assert_string_equal(answer, "ok\n");
    free(answer);
    await(child);
}

static void a_mute_coordinator_is_named_by_its_pid(void **state) {
    (void)state;
    char *answer, expected[32];
    int lock, descriptor = listening();
    assert_int_equal(state_lock(folder, STATE_WORKS, &lock), 0);
    assert_int_equal(control_ask(folder, "status\n", &answer), ERROR_AGAIN);
    snprintf(expected, sizeof expected, "pid %d", (int)getpid());
    assert_non_null(strstr(error_text(), expected));
    assert_non_null(strstr(error_text(), "has not answered for 2 s"));
    state_unlock(lock);
    close(descriptor);
}

static void a_live_coordinator_is_asked_before_the_store(void **state) {
    (void)state;
    json_t *status;
    fill_store("stalled");
    int descriptor = listening();
    pid_t child = answering(descriptor, "status\n", "{\"state\":\"running\"}\n");
    close(descriptor);
    assert_int_equal(ask(folder, QUESTION_STATUS, &status), 0);
    assert_string_equal(text_of(status, "state"), "running");
    json_decref(status);
    await(child);
}

static void the_last_run_is_told_from_the_store(void **state) {
    (void)state;
    json_t *status;
    fill_store("stalled");
    assert_int_equal(ask(folder, QUESTION_STATUS, &status), 0);
    assert_string_equal(text_of(status, "job"), "adult");
    assert_string_equal(text_of(status, "state"), "ended");
    assert_string_equal(text_of(status, "reason"), "stalled");
    assert_int_equal(json_integer_value(json_object_get(status, "step")), 3);
    assert_true(json_real_value(json_object_get(status, "loss")) == 0.5);
    json_t *process = json_array_get(json_object_get(status, "processes"), 0);
    assert_string_equal(text_of(process, "state"), "ended");
    assert_int_equal(json_integer_value(json_object_get(process, "pid")), 42);
    assert_string_equal(text_of(process, "device"), "cuda:0 A GPU");
    json_decref(status);
}

static void a_run_without_coordinator_or_end_is_interrupted(void **state) {
    (void)state;
    json_t *status;
    fill_store(NULL);
    assert_int_equal(ask(folder, QUESTION_STATUS, &status), 0);
    assert_string_equal(text_of(status, "state"), "interrupted");
    assert_true(json_is_null(json_object_get(status, "reason")));
    assert_true(json_real_value(json_object_get(status, "seconds")) == 2.5);
    json_t *process = json_array_get(json_object_get(status, "processes"), 0);
    assert_string_equal(text_of(process, "state"), "unknown");
    json_decref(status);
}

static void runs_are_told_with_their_models(void **state) {
    (void)state;
    json_t *runs;
    fill_store("step limit");
    assert_int_equal(ask(folder, QUESTION_RUNS, &runs), 0);
    json_t *run = json_array_get(json_object_get(runs, "runs"), 0);
    assert_string_equal(text_of(run, "reason"), "step limit");
    char where[sizeof folder + 16]; /* not where the record says that it was written */
    snprintf(where, sizeof where, "%s/models/1", folder);
    assert_string_equal(text_of(run, "model"), where);
    assert_string_equal(text_of(run, "model_sha256"), "abc");
    assert_int_equal(json_integer_value(json_object_get(run, "evaluations")), 4);
    json_decref(runs);
}

static void a_store_that_was_never_written_is_unavailable(void **state) {
    (void)state;
    json_t *status;
    assert_int_equal(ask(folder, QUESTION_STATUS, &status), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), folder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

SUITE(state) {
    const struct CMUnitTest tests[] = {
        TEST(a_lock_is_held_by_one_and_names_its_holder),
        TEST(a_reader_that_begins_to_work_says_so_and_keeps_the_lock),
        TEST(a_lock_goes_with_the_process_that_held_it),
        TEST(a_folder_that_cannot_be_removed_is_not_gone),
        TEST(a_folder_without_a_coordinator_is_unavailable),
        TEST(of_a_coordinator_on_another_host_the_host_is_named),
        TEST(an_answer_is_read_to_its_end),
        TEST(a_mute_coordinator_is_named_by_its_pid),
        TEST(a_live_coordinator_is_asked_before_the_store),
        TEST(the_last_run_is_told_from_the_store),
        TEST(a_run_without_coordinator_or_end_is_interrupted),
        TEST(runs_are_told_with_their_models),
        TEST(a_store_that_was_never_written_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
