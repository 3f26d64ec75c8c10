/* Addresses: what is listened on, and what is left alone. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    assert_int_equal(address_listen(address, ADDRESS_PLAIN, &listener, &bound), 0);
    assert_string_equal(bound, address);
    free(bound);
    assert_int_equal(stat(address + 5, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(address_listen(address, ADDRESS_PLAIN, &second, &bound), ERROR_UNAVAILABLE);
    assert_non_null(strstr(error_text(), "in use"));
    error_clear();
    close(listener);
    assert_int_equal(connect_now(address, 100, &other), ERROR_UNAVAILABLE);
    error_clear();
    assert_int_equal(address_listen(address, ADDRESS_PLAIN, &listener, &bound), 0);
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
    assert_int_equal(address_listen(address, ADDRESS_PLAIN, &listener, &bound), ERROR_UNAVAILABLE);
    error_clear();
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    close(file);
    free(address);
}

static void port_0_gives_an_address_to_connect_to(void **state) {
    (void)state;
    int listener;
    struct channel *other;
    char *bound;
    assert_int_equal(address_listen("127.0.0.1:0", ADDRESS_PLAIN, &listener, &bound), 0);
    assert_int_equal(connect_now(bound, 1000, &other), 0);
    free(bound);
    channel_free(other);
    close(listener);
}

static void listening_beyond_this_machine_needs_to_be_allowed(void **state) {
    (void)state;
    int listener;
    char *bound;
    assert_int_equal(address_listen("0.0.0.0:0", ADDRESS_PLAIN, &listener, &bound),
                     ERROR_PERMISSION);
    error_clear();
    assert_int_equal(address_listen("nowhere", ADDRESS_PLAIN, &listener, &bound), ERROR_USAGE);
    error_clear();
}

static void any_stands_for_all_addresses_of_this_machine(void **state) {
    (void)state;
    int listener;
    struct channel *other;
    char *bound, address[64], name[256] = "";
    assert_int_equal(address_listen("any:0", ADDRESS_PLAIN, &listener, &bound), ERROR_PERMISSION);
    error_clear();
    assert_int_equal(address_listen("any:0", ADDRESS_TLS, &listener, &bound), 0);
    gethostname(name, sizeof name - 1);
    const char *port = strrchr(bound, ':');
    assert_memory_equal(bound, "tls:", 4);
    assert_memory_equal(bound + 4, name, (size_t)(port - bound) - 4);
    snprintf(address, sizeof address, "127.0.0.1%s", port);
    assert_int_equal(connect_now(address, 1000, &other), 0);
    channel_free(other);
    close(listener);
    free(bound);
}

SUITE(address) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stale_unix_socket_is_replaced_and_a_live_one_refused),
        cmocka_unit_test(a_file_in_the_way_of_a_socket_is_left_alone),
        cmocka_unit_test(port_0_gives_an_address_to_connect_to),
        cmocka_unit_test(listening_beyond_this_machine_needs_to_be_allowed),
        cmocka_unit_test(any_stands_for_all_addresses_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
