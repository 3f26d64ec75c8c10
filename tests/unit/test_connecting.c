/* Connecting: whatever the other end does or does not, the loop goes round. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "tests/unit/connect_fixture.h"
#include "wire/peer.h"

enum { HOUR_MS = 3600 * 1000, TURNS = 20, CROWD = 64 };

static void count_turn(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    ++*(unsigned *)context;
}

/* The loop goes round TURNS times; nothing that is connected or not ends that. */
static void turn(struct event_base *base) {
    unsigned turns = 0;
    struct event *ticker = event_new(base, -1, EV_PERSIST, count_turn, &turns);
    event_add(ticker, &(struct timeval){.tv_usec = 1000});
    while (turns < TURNS)
        assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
    event_free(ticker);
}

/* A listener of `family` whose queue is full, and those that fill it. */
struct full {
    struct sockaddr_storage bound;
    socklen_t length;
    int listener, crowd[CROWD];
    char folder[32], *address;
};

static void full_bind(struct full *full, int family) {
    full->length = sizeof(struct sockaddr_in);
    full->bound.ss_family = (sa_family_t)family;
    if (family == AF_UNIX) {
        strcpy(full->folder, "/tmp/dml-test-XXXXXX");
        assert_non_null(mkdtemp(full->folder));
        struct sockaddr_un *un = (struct sockaddr_un *)&full->bound;
        snprintf(un->sun_path, sizeof un->sun_path, "%s/socket", full->folder);
        full->length = sizeof *un;
        full->address = memory_format("unix:%s", un->sun_path);
    } else {
        ((struct sockaddr_in *)&full->bound)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    full->listener = socket(family, SOCK_STREAM, 0);
    assert_int_equal(bind(full->listener, (struct sockaddr *)&full->bound, full->length), 0);
    assert_int_equal(listen(full->listener, 0), 0);
    if (family == AF_UNIX)
        return;
    assert_int_equal(getsockname(full->listener, (struct sockaddr *)&full->bound, &full->length),
                     0);
    full->address =
        memory_format("127.0.0.1:%d", ntohs(((struct sockaddr_in *)&full->bound)->sin_port));
}

static void full_init(struct full *full, int family) {
    *full = (struct full){0};
    full_bind(full, family);
    for (int i = 0; i < CROWD; i++) {
        full->crowd[i] = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(full->crowd[i], (struct sockaddr *)&full->bound, full->length);
    }
}

static void full_release(struct full *full) {
    for (int i = 0; i < CROWD; i++)
        close(full->crowd[i]);
    close(full->listener);
    if (*full->folder) {
        unlink(full->address + 5);
        rmdir(full->folder);
    }
    free(full->address);
}

/* Nobody is answered within so many turns. What is awaited then is given up. */
static void assert_waits(const char *address) {
    struct connected connected = {0};
    struct event_base *base = event_base_new();
    struct tls *tls;
    const struct key key = {.name = "0123456789abcdef"};
    assert_int_equal(tls_new(&key, &tls), 0);
    struct dial *dial = dial_new(base, address, tls, HOUR_MS, note_connected, &connected);
    turn(base);
    assert_false(connected.answered);
    dial_free(dial);
    turn(base);
    assert_false(connected.answered);
    event_base_free(base);
    tls_free(tls);
}

static void the_loop_turns_while_a_full_queue_is_waited_for(void **state) {
    (void)state;
    static const int families[] = {AF_UNIX, AF_INET};
    for (int i = 0; i < 2; i++) {
        struct full full;
        full_init(&full, families[i]);
        assert_waits(full.address);
        full_release(&full);
    }
}

static void who_does_not_answer_is_given_up_at_the_deadline(void **state) {
    (void)state;
    static const int families[] = {AF_UNIX, AF_INET};
    for (int i = 0; i < 2; i++) {
        struct full full;
        struct channel *channel;
        full_init(&full, families[i]);
        assert_int_equal(connect_now(full.address, 50, &channel), ERROR_UNAVAILABLE);
        assert_non_null(strstr(error_text(), "nobody answers for 0.05 s"));
        error_clear();
        full_release(&full);
    }
}

static void room_in_a_full_queue_is_found(void **state) {
    (void)state;
    struct full full;
    struct connected connected = {0};
    full_init(&full, AF_UNIX);
    struct event_base *base = event_base_new();
    dial_new(base, full.address, NULL, HOUR_MS, note_connected, &connected);
    turn(base);
    while (!connected.answered) {
        int one = accept4(full.listener, NULL, NULL, SOCK_NONBLOCK);
        assert_true(one >= 0);
        close(one);
        turn(base);
    }
    assert_int_equal(connected.code, 0);
    channel_free(connected.channel);
    event_base_free(base);
    full_release(&full);
}

/* The threads that look the name up sleep in the failpoint until the process ends. So failpoints
 * are not set up again: later visits meet no rule. */
static void the_loop_turns_while_a_name_is_not_resolved(void **state) {
    (void)state;
    struct channel *channel;
    setenv("DML_FAILPOINT", "name_lookup:1:delay:3600000,name_lookup:2:delay:3600000", 1);
    assert_int_equal(failpoint_setup("test", NULL, 0), 0);
    unsetenv("DML_FAILPOINT");
    assert_waits("localhost:1");
    assert_int_equal(connect_now("localhost:1", 50, &channel), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "the name is not resolved"));
    error_clear();
}

/* Within it a name is looked up and a listener of this host takes the connection, however busy. */
enum { LINKED_MS = 2000 };

static void a_name_leads_to_whichever_of_its_addresses_answers(void **state) {
    (void)state;
    int listener;
    struct channel *channel;
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", &listener, &bound), 0);
    char *address = memory_format("localhost%s", strrchr(bound, ':'));
    assert_int_equal(connect_now(address, LINKED_MS, &channel), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "the handshake of TLS is not answered"));
    error_clear();
    close(listener);
    assert_int_equal(connect_now(address, HOUR_MS, &channel), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "refused"));
    error_clear();
    free(address);
    free(bound);
}

/* "tls:" and where a listener is that never answers. */
static char *mute_address(int *listener) {
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", listener, &bound), 0);
    char *address = memory_format("tls:%s", bound);
    free(bound);
    return address;
}

static void a_handshake_that_is_not_answered_ends_at_the_deadline(void **state) {
    (void)state;
    int listener;
    struct tls *tls;
    struct channel *channel;
    const struct key key = {.name = "0123456789abcdef"};
    char *address = mute_address(&listener);
    assert_int_equal(tls_new(&key, &tls), 0);
    assert_int_equal(connect_with(address, tls, LINKED_MS, &channel), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "the handshake of TLS is not answered for 2 s"));
    error_clear();
    close(listener);
    free(address);
    tls_free(tls);
}

static void who_has_no_key_gets_no_link_over_tcp(void **state) {
    (void)state;
    int listener;
    struct channel *channel;
    char *address = mute_address(&listener);
    assert_int_equal(connect_with(address, NULL, HOUR_MS, &channel), ERROR_PERMISSION);
    assert_non_null(strstr(error_text(), "--key"));
    error_clear();
    assert_int_equal(connect_with(address + 4, NULL, HOUR_MS, &channel), ERROR_PERMISSION);
    error_clear();
    close(listener);
    free(address);
}

static void what_is_no_address_is_said_to_be_none(void **state) {
    (void)state;
    static const char *const bad[] = {
        "nowhere", ":1", "here:", "unix:", "", "tls:", "tls:nowhere", "tls::1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct channel *channel;
        assert_int_equal(connect_now(bad[i], HOUR_MS, &channel), ERROR_USAGE);
        error_clear();
    }
}

SUITE(connecting) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_turns_while_a_full_queue_is_waited_for),
        cmocka_unit_test(who_does_not_answer_is_given_up_at_the_deadline),
        cmocka_unit_test(room_in_a_full_queue_is_found),
        cmocka_unit_test(the_loop_turns_while_a_name_is_not_resolved),
        cmocka_unit_test(a_name_leads_to_whichever_of_its_addresses_answers),
        cmocka_unit_test(a_handshake_that_is_not_answered_ends_at_the_deadline),
        cmocka_unit_test(who_has_no_key_gets_no_link_over_tcp),
        cmocka_unit_test(what_is_no_address_is_said_to_be_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
