/* Which values of Host in a request name this server, and which name another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/status/http_message.h"
#include "tests/unit/suites.h"

static struct host_check own;

static void serve_at(const char *said, const char *bound) {
    host_check_init(&own, said, bound, "Node7");
}

/* −1 if it is malformed, else whether it is ours. */
static int accepted(const char *text) {
    char host[HOST_CHECK_BYTES];
    return host_check_parse(text, strlen(text), host) ? host_check_accepts(&own, host) : -1;
}

static void check(const char *const *texts, int expected) {
    for (; *texts; texts++)
        if (accepted(*texts) != expected)
            fail_msg("%s gives %d", *texts, accepted(*texts));
}

static void a_server_on_loopback_is_localhost_and_loopback_addresses(void **state) {
    (void)state;
    serve_at("127.0.0.1:8080", "127.0.0.1");
    check((const char *const[]){"localhost", "localhost:8080", "LocalHost:1", "localhost.",
                                "localhost.:8080", "localhost:", "127.0.0.1", "127.0.0.1:8080",
                                "127.1.2.3", "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]",
                                "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]:8080", NULL},
          1);
    check((const char *const[]){"evil.example", "evil.example:8080", "localhost.evil.example",
                                "127.0.0.1.evil.example", "node7", "192.0.2.1", "[2001:db8::1]",
                                "0.0.0.0", "127.1", "2130706433", "localhost..", NULL},
          0);
}

static void a_host_that_is_none_is_malformed(void **state) {
    (void)state;
    serve_at("127.0.0.1:8080", "127.0.0.1");
    check((const char *const[]){"", ":8080", ".", "::1", "[::1", "[::1]x", "[]", "[localhost]",
                                "localhost:80x", "localhost:123456", "me@localhost", "local host",
                                "localhost/", "localhost:1:2", "[::1%lo]", "\xc3\xb6", NULL},
          -1);
    char host[HOST_CHECK_BYTES], text[HOST_CHECK_BYTES + 1];
    memset(text, 'a', sizeof text);
    assert_false(host_check_parse(text, HOST_CHECK_BYTES, host));
    assert_true(host_check_parse(text, HOST_CHECK_BYTES - 1, host));
    assert_false(host_check_parse("localhost\0.evil", 15, host));
}

static void a_server_on_one_address_goes_by_that_and_by_the_machines_name(void **state) {
    (void)state;
    serve_at("192.0.2.1:8080", "192.0.2.1");
    check((const char *const[]){"192.0.2.1", "192.0.2.1:99", "[::ffff:192.0.2.1]", "node7",
                                "NODE7.:8080", "localhost", "127.0.0.1", NULL},
          1);
    check((const char *const[]){"192.0.2.2", "node7.evil.example", "evil.example", NULL}, 0);
}

static void a_server_on_all_addresses_takes_every_address_and_its_names_only(void **state) {
    (void)state;
    static const char *const all[] = {"0.0.0.0", "::"};
    for (int i = 0; i < 2; i++) {
        serve_at(i ? "[::]:80" : "0.0.0.0:80", all[i]);
        check((const char *const[]){"192.0.2.2", "[2001:db8::1]:80", "node7", "localhost", NULL},
              1);
        check((const char *const[]){"evil.example", "node7.evil.example", NULL}, 0);
    }
}

static void the_name_in_the_job_file_is_its_own(void **state) {
    (void)state;
    serve_at("Trainer.example:8080", "192.0.2.1");
    assert_int_equal(accepted("trainer.EXAMPLE.:8080"), 1);
    assert_int_equal(accepted("other.example:8080"), 0);
    serve_at("[fe80::1%2]:80", "fe80::1%2");
    assert_int_equal(accepted("[fe80::1]:80"), 1);
}

SUITE(host_check) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_on_loopback_is_localhost_and_loopback_addresses),
        cmocka_unit_test(a_host_that_is_none_is_malformed),
        cmocka_unit_test(a_server_on_one_address_goes_by_that_and_by_the_machines_name),
        cmocka_unit_test(a_server_on_all_addresses_takes_every_address_and_its_names_only),
        cmocka_unit_test(the_name_in_the_job_file_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
