/* Requests of the status server: what is read, and what is refused with which status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/status/http_message.h"
#include "tests/unit/suites.h"

#define HOST "Host: here\r\n"

static struct request request;

static int status_of(const char *text) {
    const char *why = NULL;
    assert_int_equal(request_end(text, strlen(text)), strlen(text));
    int status = request_read(text, strlen(text), &request, &why);
    assert_true(status == 200 || why);
    return status;
}

static void a_request_has_a_path_and_a_query(void **state) {
    (void)state;
    assert_int_equal(status_of("GET /api/v1/steps?since=3 HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_string_equal(request.path, "/api/v1/steps");
    assert_string_equal(request.query, "since=3");
    assert_false(request.head);
    assert_int_equal(status_of("HEAD / HTTP/1.1\r\n" HOST "\r\n"), 200);
    assert_string_equal(request.path, "/");
    assert_string_equal(request.query, "");
    assert_true(request.head);
}

static void a_connection_is_kept_as_version_and_fields_ask(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", true},
        {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" HOST "connection: x , Close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"POST / HTTP/1.1\r\n" HOST "\r\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        status_of(cases[i].text);
        assert_int_equal(request.keep_alive, cases[i].kept);
    }
}

static void a_request_says_whom_it_is_for(void **state) {
    (void)state;
    static const struct {
        const char *text, *host, *path, *query;
    } cases[] = {
        {"GET /a HTTP/1.1\r\nHost: Here.:80\r\n\r\n", "here", "/a", ""},
        {"GET /a HTTP/1.1\r\nhost:[::1]:80 \r\n\r\n", "::1", "/a", ""},
        {"GET /a HTTP/1.0\r\n\r\n", "", "/a", ""},
        {"GET HTTP://here:80/a?b HTTP/1.1\r\n" HOST "\r\n", "here", "/a", "b"},
        {"GET http://here?b HTTP/1.1\r\n" HOST "\r\n", "here", "/", "b"},
        {"GET http://here HTTP/1.0\r\n\r\n", "here", "/", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(status_of(cases[i].text), 200);
        assert_string_equal(request.host, cases[i].host);
        assert_string_equal(request.path, cases[i].path);
        assert_string_equal(request.query, cases[i].query);
    }
}

static void what_could_be_read_in_two_ways_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 200},
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\ncontent-length: 0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0, 0\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET http://here/ HTTP/1.1\r\n\r\n", 400},
        {"GET http://there/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET http://me@here/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET http:///path HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET https://here/ HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST " folded: yes\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Space : yes\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST ": no name\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Field: a\rb\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: here\n\n", 400},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET relative HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
        {"POST / HTTP/1.1\r\n" HOST "\r\n", 405},
        {"PURGE / HTTP/1.1\r\n" HOST "\r\n", 405},
        {"get / HTTP/1.1\r\n" HOST "\r\n", 405},
        {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"\r\n\r\n", 400},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (status_of(cases[i].text) != cases[i].status)
            fail_msg("case %zu gives %d", i, status_of(cases[i].text));
}

static void one_path_takes_a_post_with_a_body_of_one_length_and_type(void **state) {
    (void)state;
#define TYPE "Content-Type: Application/Octet-Stream\r\n"
#define POST "POST /2/api/v1/explain?run=3 HTTP/1.1\r\n" HOST
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {POST TYPE "Content-Length: 65537\r\n\r\n", 413},
        {POST TYPE "Content-Length: 18446744073709551617\r\n\r\n", 413},
        {POST TYPE "Content-Length: -1\r\n\r\n", 400},
        {POST TYPE "Content-Length: 1 1\r\n\r\n", 400},
        {POST TYPE "Content-Length:\r\n\r\n", 400},
        {POST TYPE "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", 400},
        {POST TYPE "\r\n", 411},
        {POST "Content-Length: 3\r\n\r\n", 415},
        {POST "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\n", 415},
        {POST TYPE TYPE "Content-Length: 3\r\n\r\n", 415},
        {POST TYPE "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET /api/v1/explain HTTP/1.1\r\n" HOST "\r\n", 405},
        {"POST /api/v1/explain/ HTTP/1.1\r\n" HOST TYPE "Content-Length: 3\r\n\r\n", 405},
        {"POST / HTTP/1.1\r\n" HOST TYPE "Content-Length: 3\r\n\r\n", 405},
    };
    assert_int_equal(status_of(POST TYPE "Content-Length: 00065536\r\n\r\n"), 200);
    assert_true(request.posts && request.keep_alive);
    assert_int_equal(request.body_length, REQUEST_BODY_MAX);
    assert_string_equal(request.path, "/2" REQUEST_POSTED);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(status_of(cases[i].text), cases[i].status);
#undef POST
#undef TYPE
}

static void a_long_target_is_refused(void **state) {
    (void)state;
    char text[2 * REQUEST_TARGET_MAX];
    snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\n" HOST "\r\n", REQUEST_TARGET_MAX, 0);
    assert_int_equal(status_of(text), 414);
    snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\n" HOST "\r\n", REQUEST_TARGET_MAX - 3, 0);
    assert_int_equal(status_of(text), 200);
    assert_int_equal(strlen(request.path), REQUEST_TARGET_MAX - 2);
}

static void a_zero_byte_is_no_end_of_anything(void **state) {
    (void)state;
    const char *why;
    static const char target[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
    static const char name[] = "GET / HTTP/1.1\r\n" HOST "a\0b: c\r\n\r\n";
    static const char value[] = "GET / HTTP/1.1\r\n" HOST "a: b\0c\r\n\r\n";
    assert_int_equal(request_read(target, sizeof target - 1, &request, &why), 400);
    assert_int_equal(request_read(name, sizeof name - 1, &request, &why), 400);
    assert_int_equal(request_read(value, sizeof value - 1, &request, &why), 400);
}

/* A head of exactly the size of its allocation, so that sanitizers see a byte read beyond. */
static void no_prefix_of_a_head_is_read_beyond_its_end(void **state) {
    (void)state;
    static const char text[] = "GET /a?b=c HTTP/1.1\r\n" HOST "Connection: keep-alive\r\n\r\n";
    for (size_t length = 0; length < sizeof text; length++) {
        const char *why;
        char *copy = malloc(length + 1);
        memcpy(copy, text, length);
        char *exact = realloc(copy, length ? length : 1);
        assert_int_equal(request_end(exact, length), length < sizeof text - 1 ? 0 : length);
        int status = request_read(exact, length, &request, &why);
        assert_int_equal(status, length < sizeof text - 1 ? 400 : 200);
        free(exact);
    }
}

static void a_query_gives_whole_numbers(void **state) {
    (void)state;
    int64_t number;
    status_of("GET /?since=17&run=2 HTTP/1.1\r\n" HOST "\r\n");
    assert_true(request_number(&request, "since", 0, &number));
    assert_int_equal(number, 17);
    assert_true(request_number(&request, "run", 0, &number));
    assert_int_equal(number, 2);
    assert_true(request_number(&request, "other", 5, &number));
    assert_int_equal(number, 5);
    assert_true(request_has_only(&request, (const char *const[]){"run", "since", NULL}));
    assert_false(request_has_only(&request, (const char *const[]){"since", NULL}));
    static const char *const bad[] = {"since=",
                                      "since",
                                      "since=-1",
                                      "since=1x",
                                      "since=+1",
                                      "since=%31",
                                      "since=9999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "GET /?%s HTTP/1.1\r\n" HOST "\r\n", bad[i]);
        assert_int_equal(status_of(text), 200);
        assert_false(request_number(&request, "since", 0, &number));
    }
}

SUITE(request) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_a_path_and_a_query),
        cmocka_unit_test(a_connection_is_kept_as_version_and_fields_ask),
        cmocka_unit_test(a_request_says_whom_it_is_for),
        cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
        cmocka_unit_test(one_path_takes_a_post_with_a_body_of_one_length_and_type),
        cmocka_unit_test(a_long_target_is_refused),
        cmocka_unit_test(a_zero_byte_is_no_end_of_anything),
        cmocka_unit_test(no_prefix_of_a_head_is_read_beyond_its_end),
        cmocka_unit_test(a_query_gives_whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
