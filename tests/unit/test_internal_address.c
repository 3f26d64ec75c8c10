#define _GNU_SOURCE
#include "data/remote/request.h"
#include "tests/unit/suites.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above. */
#include <cmocka.h>

static bool is_internal(const char *text) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address = {.any = {.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET}};
    void *into = address.any.sa_family == AF_INET ? (void *)&address.four.sin_addr
                                                  : (void *)&address.six.sin6_addr;
    assert_int_equal(inet_pton(address.any.sa_family, text, into), 1);
    return address_is_internal(&address.any);
}

static void addresses_of_a_host_a_site_or_a_link_are_internal(void **state) {
    static const char *const inside[] = {"127.0.0.1",
                                         "127.255.255.255",
                                         "0.0.0.0",
                                         "10.0.0.0",
                                         "10.255.255.255",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.168.0.1",
                                         "169.254.169.254",
                                         "100.64.0.1",
                                         "100.127.255.255",
                                         "::",
                                         "::1",
                                         "fc00::1",
                                         "fdff::1",
                                         "fe80::1",
                                         "febf::1",
                                         "fec0::1",
                                         "::ffff:10.0.0.1",
                                         "::ffff:127.0.0.1",
                                         "64:ff9b::192.168.1.1"};
    static const char *const outside[] = {"9.255.255.255",
                                          "11.0.0.0",
                                          "126.255.255.255",
                                          "128.0.0.1",
                                          "172.15.255.255",
                                          "172.32.0.0",
                                          "192.167.255.255",
                                          "192.169.0.0",
                                          "169.253.255.255",
                                          "100.63.255.255",
                                          "100.128.0.0",
                                          "8.8.8.8",
                                          "::2",
                                          "2001:db8::1",
                                          "fbff::1",
                                          "fe00::1",
                                          "ff02::1",
                                          "::ffff:8.8.8.8",
                                          "64:ff9b::8.8.8.8"};
    (void)state;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (!is_internal(inside[i]))
            fail_msg("%s", inside[i]);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (is_internal(outside[i]))
            fail_msg("%s", outside[i]);
}

SUITE(internal_address) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_a_host_a_site_or_a_link_are_internal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
