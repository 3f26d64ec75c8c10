#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/host.h"
#include "wire/peer.h"

/* ---- a worker that welcomes everybody and counts who went ---- */

static uint64_t gone_links;

static void role_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                         struct outbox *out) {
    (void)state, (void)now_ns;
    struct message answer = {.type = MESSAGE_WELCOME, .welcome = {.incarnation = gone_links}};
    if (message->type == MESSAGE_HELLO)
        outbox_add(out, from, &answer);
}

static void role_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)state, (void)link, (void)now_ns, (void)out;
    gone_links++;
}

static _Noreturn void serve(const struct host_options *options) {
    const struct host_role role = {.message = role_message, .gone = role_gone};
    int code;
    log_open("test worker", LOG_ERROR);
    struct host *host = host_new(options, &role, &code);
    if (host)
        code = host_run(host);
    host_free(host);
    _exit(-code);
}

/* ---- the other side ---- */

struct worker {
    char folder[32], address[64];
    pid_t pid;
};

static void worker_start(struct worker *worker, struct host_options options) {
    strcpy(worker->folder, "/tmp/dml-test-XXXXXX");
    assert_non_null(mkdtemp(worker->folder));
    snprintf(worker->address, sizeof worker->address, "unix:%s/socket", worker->folder);
    options.listen = worker->address;
    fflush(stdout);
    int told[2];
    assert_int_equal(pipe(told), 0);
    worker->pid = fork();
    if (!worker->pid) {
        dup2(told[1], STDOUT_FILENO);
        serve(&options);
    }
    close(told[1]);
    char line[128] = "", expected[128];
    assert_true(read(told[0], line, sizeof line - 1) > 0);
    snprintf(expected, sizeof expected, "listening on %s\n", worker->address);
    assert_string_equal(line, expected);
    close(told[0]);
}

static void assert_ends(struct worker *worker, int expected) {
    int status;
    assert_int_equal(waitpid(worker->pid, &status, 0), worker->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    assert_int_not_equal(access(worker->address + 5, F_OK), 0); /* cleaned up */
    rmdir(worker->folder);
}

static void note_message(void *context, struct peer *peer, const struct message *message) {
    (void)peer;
    if (message->type == MESSAGE_WELCOME)
        *(uint64_t *)context = message->welcome.incarnation;
}

static void note_closed(void *context, struct peer *peer, const char *reason) {
    (void)context, (void)peer, (void)reason;
}

/* Says HELLO, waits for WELCOME, says `last`, and closes. What WELCOME said. */
static uint64_t visit(const char *address, uint32_t reconnect_seconds, const struct message *last) {
    const struct peer_callbacks callbacks = {note_message, note_closed};
    struct message hello = {.type = MESSAGE_HELLO};
    uint64_t welcome = UINT64_MAX;
    int descriptor;
    hello.hello.reconnect_seconds = reconnect_seconds;
    assert_int_equal(address_connect(address, 1000, &descriptor), 0);
    struct event_base *base = event_base_new();
    struct peer *peer = peer_new(base, descriptor, &callbacks, &welcome);
    peer_send(peer, &hello);
    while (welcome == UINT64_MAX)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    if (last)
        peer_send(peer, last);
    peer_free(peer);
    event_base_free(base);
    return welcome;
}

static const struct message bye = {.type = MESSAGE_BYE};

static void a_worker_ends_with_0_on_bye(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){0});
    visit(worker.address, 60, &bye);
    assert_ends(&worker, 0);
}

static void a_worker_ends_with_0_on_sigterm(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){0});
    visit(worker.address, 60, NULL);
    kill(worker.pid, SIGTERM);
    assert_ends(&worker, 0);
}

static void a_worker_takes_the_next_coordinator_when_it_loses_one(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){0});
    assert_int_equal(visit(worker.address, 60, NULL), 0);
    assert_int_equal(visit(worker.address, 60, &bye), 1);
    assert_ends(&worker, 0);
}

static void a_worker_without_a_coordinator_gives_up_after_the_time_it_was_told(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){0});
    visit(worker.address, 0, NULL);
    assert_ends(&worker, 75);
}

static void a_worker_told_to_serve_once_waits_for_no_other_coordinator(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){.once = true});
    visit(worker.address, 3600, NULL);
    assert_ends(&worker, 75);
}

static void a_worker_whose_parent_went_before_any_hello_ends(void **state) {
    (void)state;
    struct worker worker;
    worker_start(&worker, (struct host_options){.parent_pid = 1 << 29});
    assert_ends(&worker, 75);
}

static void options_that_are_wrong_are_named(void **state) {
    (void)state;
    struct host_options options;
    char *good[] = {"w",  "--listen", "unix:/a", "--anywhere", "--once", "--parent-pid",
                    "12", "--quiet",  NULL};
    optind = 1;
    assert_int_equal(host_options_read(8, good, "", &options), 0);
    assert_string_equal(options.listen, "unix:/a");
    assert_true(options.anywhere && options.once && options.parent_pid == 12);
    assert_int_equal(options.log_level, LOG_WARNING);
    char *bad[][4] = {
        {"w", "--parent-pid", "x", NULL}, {"w", "--listen", "a", "b"}, {"w", NULL, NULL, NULL}};
    const int counts[] = {3, 4, 1};
    for (size_t i = 0; i < 3; i++) {
        optind = 1;
        assert_int_equal(host_options_read(counts[i], bad[i], "", &options), ERROR_USAGE);
        error_clear();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_ends_with_0_on_bye),
        cmocka_unit_test(a_worker_ends_with_0_on_sigterm),
        cmocka_unit_test(a_worker_takes_the_next_coordinator_when_it_loses_one),
        cmocka_unit_test(a_worker_without_a_coordinator_gives_up_after_the_time_it_was_told),
        cmocka_unit_test(a_worker_told_to_serve_once_waits_for_no_other_coordinator),
        cmocka_unit_test(a_worker_whose_parent_went_before_any_hello_ends),
        cmocka_unit_test(options_that_are_wrong_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
