#include "tests/unit/suites.h"
#include "coordinator/job/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void becomes(const char *text, const char *expected) {
    char prepared[256];
    snprintf(prepared, sizeof prepared, "%s", text);
    assert_int_equal(job_text_prepare(prepared, "a.conf"), 0);
    assert_string_equal(prepared, expected);
}

static void refused(const char *text, const char *expected) {
    char prepared[256];
    snprintf(prepared, sizeof prepared, "%s", text);
    assert_int_equal(job_text_prepare(prepared, "a.conf"), ERROR_CONFIG);
    assert_string_equal(error_text(), expected);
    error_clear();
}

static void comments_become_blanks_and_keep_their_lines(void **state) {
    (void)state;
    becomes("a = b # c", "a = b    ");
    becomes("a // b\nc", "a     \nc");
    becomes("\xef\xbb\xbf"
            "a = b",
            "   a = b"); /* a byte order mark */
    becomes("/* b\nc */ d", "    \n     d");
    becomes("a = \"b#c//d/*e\"", "a = \"b#c//d/*e\"");
}

static void what_is_not_closed_is_named_by_the_line_where_it_begins(void **state) {
    (void)state;
    refused("data = { a\n", "a.conf:1: the { that begins here is not closed");
    refused("data = a\ncsv {\nskip = { 1\n", "a.conf:3: the { that begins here is not closed");
    refused("data = a\nl2 = \"1\n\n", "a.conf:2: the quoted text that begins here is not closed");
    refused("data = a\n/* b\n\n", "a.conf:2: the comment /* that begins here is not closed");
}

static void words_that_look_like_comments_need_quotes(void **state) {
    (void)state;
    refused("data = /data/*.gz\n", "a.conf:1: a string with * or // in it needs quotes");
    refused("data = a//b\n", "a.conf:1: a string with * or // in it needs quotes");
    refused("data = {a*}\n", "a.conf:1: a string with * or // in it needs quotes");
}

static void exponents_may_have_a_plus(void **state) {
    (void)state;
    becomes("l2 = 1e+6", "l2 = 1e06");
    becomes("l2=1.5E+2\n", "l2=1.5E02\n");
    becomes("l2 = {1e-3,1e+1}", "l2 = {1e-3,1e01}");
    becomes("data = \"1e+6\"", "data = \"1e+6\"");
    becomes("data = file+6", "data = file+6");
    becomes("l2 = 1e+", "l2 = 1e+");
}

SUITE(job_text) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_become_blanks_and_keep_their_lines),
        cmocka_unit_test(what_is_not_closed_is_named_by_the_line_where_it_begins),
        cmocka_unit_test(words_that_look_like_comments_need_quotes),
        cmocka_unit_test(exponents_may_have_a_plus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
