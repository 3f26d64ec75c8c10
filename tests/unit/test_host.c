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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "tests/unit/connect_fixture.h"
#include "wire/host.h"
#include "wire/peer.h"
#include "wire/transfer.h"

/* ---- a worker that welcomes everybody and counts who went ---- */

static uint64_t gone_links, term;

/* For two seconds, in which the loop does not turn. */
static void work_long(uint32_t from, struct outbox *out) {
    for (int portion = 0; portion < 20; portion++) {
        usleep(100000);
        heartbeat();
    }
    outbox_add(out, from,
               &(struct message){
                   .type = MESSAGE_READY, .term = term, .ready = {.attempt = 1, .device = "cpu"}});
}

static void role_message(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                         struct outbox *out) {
    (void)state, (void)now_ns;
    struct message answer = {
        .type = MESSAGE_WELCOME,
        .welcome = {.role = ROLE_SHARD, .incarnation = 1, .since = gone_links}};
    if (message->type == MESSAGE_RETAIN)
        work_long(from, out);
    if (message->type == MESSAGE_GREET)
        outbox_add(out, from, &(struct message){.type = MESSAGE_GREETED, .greeted = {0, 1}});
    if (message->type != MESSAGE_HELLO)
        return;
    if (message->term < term)
        answer = (struct message){.type = MESSAGE_REFUSED};
    else
        term = message->term;
    answer.term = term;
    outbox_add(out, from, &answer);
}

static void role_gone(void *state, uint32_t link, int64_t now_ns, struct outbox *out) {
    (void)state, (void)link, (void)now_ns, (void)out;
    gone_links++;
}

static void role_forget(void *state) {
    (void)state;
    term = 0;
    gone_links = 77;
}

static _Noreturn void serve(const struct host_options *options) {
    const struct host_role role = {
        .message = role_message, .gone = role_gone, .forget = role_forget};
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
    snprintf(expected, sizeof expected, "listening %s\n", worker->address);
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
        *(uint64_t *)context = message->welcome.since;
}

static void note_closed(void *context, struct peer *peer, const char *reason) {
    (void)context, (void)peer, (void)reason;
}

static struct message hello_of(uint64_t of_term) {
    return (struct message){
        .type = MESSAGE_HELLO,
        .term = of_term,
        .hello = {.run = "run", .role = ROLE_SHARD, .incarnation = 1, .reconnect_seconds = 60}};
}

/* Says HELLO, waits for WELCOME, says `last`, and closes. What WELCOME said. */
static uint64_t visit(const char *address, uint32_t reconnect_seconds, const struct message *last) {
    const struct peer_callbacks callbacks = {note_message, note_closed};
    struct message hello = hello_of(0);
    uint64_t welcome = UINT64_MAX;
    struct channel *channel;
    hello.hello.reconnect_seconds = reconnect_seconds;
    assert_int_equal(connect_now(address, 1000, &channel), 0);
    struct event_base *base = event_base_new();
    struct peer *peer = peer_new(base, channel, &callbacks, &welcome);
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

/* ---- several at once ---- */

/* A connection on its own loop, and the last that came over it. */
struct visitor {
    struct event_base *base;
    struct peer *peer; /* NULL once it is closed */
    enum message_type last;
    uint64_t number; /* of a PONG */
    bool busy;       /* as REFUSED said */
};

static void visitor_message(void *context, struct peer *peer, const struct message *message) {
    struct visitor *visitor = context;
    (void)peer;
    visitor->last = message->type;
    if (message->type == MESSAGE_PONG)
        visitor->number = message->pong.number;
    if (message->type == MESSAGE_REFUSED)
        visitor->busy = message->refused.busy;
}

static void visitor_closed(void *context, struct peer *peer, const char *reason) {
    struct visitor *visitor = context;
    (void)peer, (void)reason;
    visitor->peer = NULL;
}

static void visitor_connect(struct visitor *visitor, const struct worker *worker) {
    static const struct peer_callbacks callbacks = {visitor_message, visitor_closed};
    struct channel *channel;
    assert_int_equal(connect_now(worker->address, 5000, &channel), 0);
    *visitor = (struct visitor){.base = event_base_new()};
    visitor->peer = peer_new(visitor->base, channel, &callbacks, visitor);
}

static void visitor_leave(struct visitor *visitor) {
    peer_free(visitor->peer);
    event_base_free(visitor->base);
}

/* The type of the next message; 0 if the connection is closed. */
static unsigned say(struct visitor *visitor, const struct message *message) {
    visitor->last = 0;
    if (message)
        peer_send(visitor->peer, message);
    while (visitor->peer && !visitor->last)
        assert_int_equal(event_base_loop(visitor->base, EVLOOP_ONCE), 0);
    return visitor->last;
}

/* A worker, and a visitor that is its coordinator. */
static void worker_greeted(struct worker *worker, struct visitor *visitor) {
    struct message hello = hello_of(1);
    worker_start(worker, (struct host_options){0});
    visitor_connect(visitor, worker);
    assert_int_equal(say(visitor, &hello), MESSAGE_WELCOME);
}

static void a_ping_is_answered_by_the_host(void **state) {
    (void)state;
    struct worker worker;
    struct visitor visitor;
    worker_greeted(&worker, &visitor);
    assert_int_equal(say(&visitor, &(struct message){.type = MESSAGE_PING, .ping = {77}}),
                     MESSAGE_PONG);
    assert_int_equal(visitor.number, 77);
    peer_send(visitor.peer, &bye);
    visitor_leave(&visitor);
    assert_ends(&worker, 0);
}

static void a_worker_at_long_work_gives_signs_of_life_to_its_coordinator(void **state) {
    (void)state;
    struct worker worker;
    struct visitor visitor;
    worker_greeted(&worker, &visitor);
    unsigned said = say(&visitor, &(struct message){.type = MESSAGE_RETAIN});
    assert_int_equal(said, MESSAGE_PONG);
    while (said == MESSAGE_PONG) /* one after the other, if the work takes longer than it should */
        said = say(&visitor, NULL);
    assert_int_equal(said, MESSAGE_READY);
    peer_send(visitor.peer, &bye);
    visitor_leave(&visitor);
    assert_ends(&worker, 0);
}

/* As a coordinator of another run would. */
static unsigned greet_for_another(struct visitor *visitor, const struct worker *worker) {
    struct message hello = hello_of(1);
    hello.hello.run = "another";
    visitor_connect(visitor, worker);
    return say(visitor, &hello);
}

static void a_worker_that_stays_forgets_a_run_on_bye_and_serves_another(void **state) {
    (void)state;
    struct worker worker;
    struct visitor first, second;
    struct message hello = hello_of(9);
    worker_start(&worker, (struct host_options){.stay = true});
    visitor_connect(&first, &worker);
    assert_int_equal(say(&first, &hello), MESSAGE_WELCOME);
    assert_int_equal(greet_for_another(&second, &worker), MESSAGE_REFUSED);
    assert_true(second.busy);
    peer_send(first.peer, &bye);
    assert_int_equal(say(&first, NULL), 0); /* it closes the connection */
    hello = hello_of(1);                    /* a term of another state folder */
    hello.hello.run = "another";
    assert_int_equal(say(&second, &hello), MESSAGE_WELCOME);
    visitor_leave(&first);
    visitor_leave(&second);
    kill(worker.pid, SIGTERM);
    assert_ends(&worker, 0);
}

static const struct message bye_again = {.type = MESSAGE_BYE, .bye = {.again = 1}};

static void a_worker_serves_another_run_after_a_bye_that_says_so(void **state) {
    (void)state;
    struct worker worker;
    struct visitor next;
    worker_start(&worker, (struct host_options){.parent_pid = getpid()});
    assert_int_equal(visit(worker.address, 60, &bye_again), 0);
    assert_int_equal(greet_for_another(&next, &worker), MESSAGE_WELCOME);
    peer_send(next.peer, &bye);
    visitor_leave(&next);
    assert_ends(&worker, 0);
}

static void a_worker_ends_if_no_other_run_begins_with_it(void **state) {
    (void)state;
    static const struct {
        struct host_options options;
        uint32_t reconnect_seconds;
    } cases[] = {{{.hello_seconds = 1}, 60}, {{.parent_pid = 1}, 60}, {{0}, 1}};
    struct worker worker;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        worker_start(&worker, cases[i].options);
        assert_int_equal(visit(worker.address, cases[i].reconnect_seconds, &bye_again), 0);
        assert_ends(&worker, 75);
    }
    worker_start(&worker, (struct host_options){.once = true});
    assert_int_equal(visit(worker.address, 60, &bye_again), 0);
    assert_ends(&worker, 0);
}

static void a_worker_that_stays_is_free_when_a_lost_coordinator_does_not_come_back(void **state) {
    (void)state;
    struct worker worker;
    struct visitor visitor;
    worker_start(&worker, (struct host_options){.stay = true});
    assert_int_equal(visit(worker.address, 1, NULL), 0);
    for (unsigned answer = 0; answer != MESSAGE_WELCOME; visitor_leave(&visitor)) {
        answer = greet_for_another(&visitor, &worker);
        assert_true(answer == MESSAGE_WELCOME || visitor.busy);
    }
    kill(worker.pid, SIGTERM);
    assert_ends(&worker, 0);
}

static void a_later_coordinator_takes_over_at_once_and_the_former_is_told(void **state) {
    (void)state;
    struct worker worker;
    struct visitor former, later, former_again;
    struct message first = hello_of(1), second = hello_of(2);
    worker_start(&worker, (struct host_options){.once = true});
    visitor_connect(&former, &worker);
    assert_int_equal(say(&former, &first), MESSAGE_WELCOME);
    visitor_connect(&later, &worker);
    assert_int_equal(say(&later, &second), MESSAGE_WELCOME);
    assert_int_equal(say(&former, NULL), MESSAGE_REFUSED);
    peer_send(former.peer, &bye); /* it has no say any more, */
    visitor_leave(&former);       /* nor does its going matter */
    visitor_connect(&former_again, &worker);
    assert_int_equal(say(&former_again, &first), MESSAGE_REFUSED);
    visitor_leave(&former_again);
    assert_int_equal(say(&later, &(struct message){.type = MESSAGE_PING}), MESSAGE_PONG);
    visitor_leave(&later);
    assert_ends(&worker, 75);
}

static void strangers_are_dropped_in_time_and_the_coordinator_is_not(void **state) {
    (void)state;
    struct worker worker;
    struct visitor silent, coordinator;
    struct message hello = hello_of(1);
    worker_start(&worker, (struct host_options){.greet_ms = 20});
    visitor_connect(&coordinator, &worker);
    assert_int_equal(say(&coordinator, &hello), MESSAGE_WELCOME);
    for (int i = 0; i < 2; i++) { /* also when there was none for a while */
        visitor_connect(&silent, &worker);
        assert_int_equal(say(&silent, NULL), 0);
        visitor_leave(&silent);
    }
    visitor_connect(&silent, &worker);
    assert_int_equal(say(&silent, &(struct message){.type = MESSAGE_FETCH}), 0);
    visitor_leave(&silent);
    peer_send(coordinator.peer, &bye);
    visitor_leave(&coordinator);
    assert_ends(&worker, 0);
}

static void who_comes_from_the_host_must_know_the_secret(void **state) {
    (void)state;
    const char *secret = "0123456789abcdef0123456789abcdef",
               *wrong = "0123456789abcdef0000000000000000";
    struct worker worker, nearby;
    struct visitor coordinator, visitor;
    struct message hello = hello_of(1),
                   greet = {.type = MESSAGE_GREET, .greet = {.run = "run", .incarnation = 2}};
    worker_start(&worker, (struct host_options){.local = secret});
    char *address = local_address(secret);
    nearby = worker;
    snprintf(nearby.address, sizeof nearby.address, "%s", address);
    visitor_connect(&visitor, &nearby);
    assert_int_equal(say(&visitor, &hello), 0); /* coordinators come by the address */
    visitor_leave(&visitor);
    greet.greet.local = wrong;
    visitor_connect(&visitor, &nearby);
    assert_int_equal(say(&visitor, &greet), 0);
    visitor_leave(&visitor);
    greet.greet.local = secret;
    visitor_connect(&visitor, &nearby);
    assert_int_equal(say(&visitor, &greet), MESSAGE_GREETED);
    visitor_connect(&coordinator, &worker);
    assert_int_equal(say(&coordinator, &hello), MESSAGE_WELCOME);
    peer_send(coordinator.peer, &bye);
    visitor_leave(&coordinator);
    visitor_leave(&visitor);
    assert_ends(&worker, 0);
    free(address);
}

static size_t resident_bytes(pid_t pid) {
    char path[64];
    size_t total, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Of a stranger; a sanitizer keeps what is freed. */
#if SANITIZED
#define STRANGER_BYTES (32u << 10)
#else
#define STRANGER_BYTES (6u << 10)
#endif

static void a_crowd_that_talks_costs_little_and_makes_room_for_the_coordinator(void **state) {
    (void)state;
    enum { CROWD = CONNECTIONS_MAX + 30 };
    static struct channel *crowd[CROWD];
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < CROWD + 100)
        skip();
    struct worker worker;
    struct visitor coordinator, last;
    struct message hello = hello_of(1);
    worker_start(&worker, (struct host_options){0});
    visitor_connect(&coordinator, &worker);
    assert_int_equal(say(&coordinator, &hello), MESSAGE_WELCOME);
    struct bytes ping;
    bytes_init(&ping);
    message_encode(&(struct message){.type = MESSAGE_PING}, &ping);
    size_t before = resident_bytes(worker.pid);
    for (size_t i = 0; i < CROWD; i++) {
        struct outlet outlet;
        assert_int_equal(connect_now(worker.address, 5000, &crowd[i]), 0);
        outlet_init(&outlet, crowd[i]);
        outlet_send(&outlet, MESSAGE_PING, 1, ping.data, ping.length, &(struct bulk){0});
        outlet_release(&outlet);
    }
    bytes_release(&ping);
    hello.term = 2;
    visitor_connect(&last, &worker);
    assert_int_equal(say(&last, &hello), MESSAGE_WELCOME);
    assert_true(resident_bytes(worker.pid) < before + CROWD * STRANGER_BYTES);
    for (size_t i = 0; i < CROWD; i++)
        channel_free(crowd[i]);
    visitor_leave(&coordinator);
    peer_send(last.peer, &bye);
    visitor_leave(&last);
    assert_ends(&worker, 0);
}

static void options_that_are_wrong_are_named(void **state) {
    (void)state;
    struct host_options options;
    char *good[] = {"w",      "--listen",     "unix:/a", "--key",   "k",
                    "--once", "--parent-pid", "12",      "--quiet", NULL};
    optind = 1;
    assert_int_equal(host_options_read(9, good, "", &options), 0);
    assert_string_equal(options.listen, "unix:/a");
    assert_string_equal(options.key, "k");
    assert_true(options.once && options.parent_pid == 12);
    assert_int_equal(options.log_level, LOG_WARNING);
    char *bad[][5] = {{"w", "--parent-pid", "x"},
                      {"w", "--listen", "a", "b"},
                      {"w"},
                      {"w", "--listen", "unix:/a", "--once", "--stay"}};
    const int counts[] = {3, 4, 1, 5};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        optind = 1;
        assert_int_equal(host_options_read(counts[i], bad[i], "", &options), ERROR_USAGE);
        error_clear();
    }
}

SUITE(host) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_ends_with_0_on_bye),
        cmocka_unit_test(a_worker_ends_with_0_on_sigterm),
        cmocka_unit_test(a_worker_takes_the_next_coordinator_when_it_loses_one),
        cmocka_unit_test(a_worker_without_a_coordinator_gives_up_after_the_time_it_was_told),
        cmocka_unit_test(a_worker_told_to_serve_once_waits_for_no_other_coordinator),
        cmocka_unit_test(a_worker_whose_parent_went_before_any_hello_ends),
        cmocka_unit_test(a_ping_is_answered_by_the_host),
        cmocka_unit_test(a_worker_at_long_work_gives_signs_of_life_to_its_coordinator),
        cmocka_unit_test(a_worker_that_stays_forgets_a_run_on_bye_and_serves_another),
        cmocka_unit_test(a_worker_serves_another_run_after_a_bye_that_says_so),
        cmocka_unit_test(a_worker_ends_if_no_other_run_begins_with_it),
        cmocka_unit_test(a_worker_that_stays_is_free_when_a_lost_coordinator_does_not_come_back),
        cmocka_unit_test(a_later_coordinator_takes_over_at_once_and_the_former_is_told),
        cmocka_unit_test(strangers_are_dropped_in_time_and_the_coordinator_is_not),
        cmocka_unit_test(who_comes_from_the_host_must_know_the_secret),
        cmocka_unit_test(a_crowd_that_talks_costs_little_and_makes_room_for_the_coordinator),
        cmocka_unit_test(options_that_are_wrong_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
