/* Addresses: what is listened on, and what is left alone. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "base/error.h"
#include "base/memory.h"
#include "tests/unit/connect_fixture.h"
#include "wire/peer.h"

static void a_stale_unix_socket_is_replaced_and_a_live_one_refused(void **state) {
    (void)state;
    char folder[] = "/tmp/dml-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char *address = memory_format("unix:%s/private/socket", folder), *bound;
    int listener, second;
    struct channel *other;
    struct stat status;
    assert_int_equal(address_listen(address, &listener, &bound), 0);
    assert_string_equal(bound, address);
    free(bound);
    assert_int_equal(stat(address + 5, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(address_listen(address, &second, &bound), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "in use"));
    error_clear();
    close(listener);
    assert_int_equal(connect_now(address, 100, &other), ERROR_UNAVAILABLE);
    error_clear();
    assert_int_equal(address_listen(address, &listener, &bound), 0);
    free(bound);
    assert_int_equal(connect_now(address, 100, &other), 0);
    channel_free(other);
    close(listener);
    unlink(address + 5);
    char *private = memory_format("%s/private", folder);
    assert_int_equal(rmdir(private), 0);
    rmdir(folder);
    free(private);
    free(address);
}

static void a_file_in_the_way_of_a_socket_is_left_alone(void **state) {
    (void)state;
    char path[] = "/tmp/dml-test-XXXXXX", *bound;
    int file = mkstemp(path), listener;
    char *address = memory_format("unix:%s", path);
    assert_int_equal(address_listen(address, &listener, &bound), ERROR_UNAVAILABLE);
    error_clear();
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    close(file);
    free(address);
}

static void port_0_gives_an_address_to_connect_to(void **state) {
    (void)state;
    int listener, other = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", &listener, &bound), 0);
    assert_memory_equal(bound, "127.0.0.1:", 10);
    in.sin_port = htons((uint16_t)atoi(bound + 10));
    assert_int_equal(connect(other, (struct sockaddr *)&in, sizeof in), 0);
    free(bound);
    close(other);
    close(listener);
}

static void loopback_is_told_from_what_other_machines_reach(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool loopback;
    } cases[] = {
        {"127.0.0.1:0", true}, {"localhost:0", true}, {"0.0.0.0:0", false}, {"any:0", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int listener;
        char *bound;
        assert_int_equal(address_listen(cases[i].address, &listener, &bound), 0);
        assert_int_equal(address_is_loopback(listener), cases[i].loopback);
        free(bound);
        close(listener);
    }
}

static void what_is_no_address_is_refused(void **state) {
    (void)state;
    int listener;
    char *bound;
    for (int i = 0; i < 2; i++) {
        const char *address = i ? "127.0.0.1:65536" : "nowhere";
        assert_int_equal(address_listen(address, &listener, &bound), ERROR_USAGE);
        error_clear();
    }
}

static void any_stands_for_all_addresses_of_this_machine(void **state) {
    (void)state;
    int listener;
    char *bound, name[256] = "";
    assert_int_equal(address_listen("any:0", &listener, &bound), 0);
    gethostname(name, sizeof name - 1);
    const char *port = strrchr(bound, ':');
    assert_memory_equal(bound, name, (size_t)(port - bound));
    close(listener);
    free(bound);
}

static void a_socket_for_others_of_the_host_has_no_file(void **state) {
    (void)state;
    char secret[LOCAL_SECRET_DIGITS + 1], other[LOCAL_SECRET_DIGITS + 1], *bound;
    struct channel *channel;
    int listener;
    local_secret_draw(secret);
    local_secret_draw(other);
    assert_true(local_secret_is_valid(secret) && strcmp(secret, other));
    char *address = local_address(secret);
    assert_null(strstr(address, secret + LOCAL_SECRET_DIGITS / 2)); /* anybody can list its name */
    assert_int_equal(address_listen(address, &listener, &bound), 0);
    assert_string_equal(bound, address);
    assert_int_equal(access(address + strlen("unix:"), F_OK), -1);
    assert_int_equal(connect_now(address, 100, &channel), 0);
    assert_true(channel_is_local(channel));
    channel_free(channel);
    close(listener);
    assert_int_equal(connect_now(address, 100, &channel), ERROR_UNAVAILABLE);
    error_clear();
    free(bound);
    free(address);
}

static void hosts_are_the_same_if_addresses_name_them_alike(void **state) {
    (void)state;
    assert_true(address_same_host("tls:node7:4000", "node7:52"));
    assert_true(address_same_host("[::1]:4000", "tls:[::1]:52"));
    assert_false(address_same_host("node7:4000", "node70:4000"));
    assert_false(address_same_host("unix:/a", "unix:/a"));
    assert_false(address_same_host("node7:4000", "no address"));
    assert_string_equal(error_text(), "");
}

/* Waits for a connection, as user `own`, and says whether it is taken. */
static void serve_as(uid_t own, int listener, int ready) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    char byte = 0;
    if (setuid(own) || write(ready, &byte, 1) != 1 || poll(&wait, 1, 10000) != 1)
        _exit(2);
    int taken = address_accept(listener);
    _exit(taken >= 0);
}

/* In a namespace of its own, where a process outside of it has no id: it is 0. */
static pid_t serve_apart(uid_t own, int listener, int ready) {
    pid_t child = fork();
    if (child)
        return child;
    if (unshare(CLONE_NEWPID))
        _exit(3);
    pid_t inner = fork();
    if (!inner)
        serve_as(own, listener, ready);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
}

/* Whether a process outside of the server's container, of user `other`, is let in. */
static int is_let_in(uid_t own, uid_t other) {
    enum { READY, TOLD, ENDS };
    char name[64], byte, *bound;
    int listener, pipes[ENDS], status = 0;
    snprintf(name, sizeof name, "unix:@dml-test-%u-%d", (unsigned)other, (int)getpid());
    assert_int_equal(address_listen(name, &listener, &bound), 0);
    assert_int_equal(pipe(pipes), 0);
    pid_t server = serve_apart(own, listener, pipes[TOLD]);
    close(pipes[TOLD]);
    if (read(pipes[READY], &byte, 1) == 1) {
        pid_t client = fork();
        if (!client) {
            struct channel *channel;
            if (setuid(other) || connect_now(bound, 5000, &channel))
                _exit(1);
            _exit(0);
        }
        waitpid(client, NULL, 0);
    }
    waitpid(server, &status, 0);
    close(pipes[READY]);
    close(listener);
    free(bound);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static void another_user_is_kept_out_though_its_process_has_no_id_here(void **state) {
    (void)state;
    if (geteuid() != 0 || is_let_in(1, 1) == 3) {
        skip(); /* only root can be two users, and may be denied namespaces */
        return;
    }
    assert_int_equal(is_let_in(1, 1), 1);
    assert_int_equal(is_let_in(1, 2), 0);
}

SUITE(address) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stale_unix_socket_is_replaced_and_a_live_one_refused),
        cmocka_unit_test(a_file_in_the_way_of_a_socket_is_left_alone),
        cmocka_unit_test(port_0_gives_an_address_to_connect_to),
        cmocka_unit_test(loopback_is_told_from_what_other_machines_reach),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_socket_for_others_of_the_host_has_no_file),
        cmocka_unit_test(another_user_is_kept_out_though_its_process_has_no_id_here),
        cmocka_unit_test(hosts_are_the_same_if_addresses_name_them_alike),
        cmocka_unit_test(any_stands_for_all_addresses_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
