#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above. */
#include <cmocka.h>

#include "base/error.h"
#include "base/log.h"

static void assert_escaped(const char *text, const char *expected) {
    char to[64];
    assert_int_equal(escape_controls(to, sizeof to, text), strlen(expected));
    assert_string_equal(to, expected);
}

static void control_characters_are_written_out(void **state) {
    (void)state;
    assert_escaped("plain \\ text", "plain \\ text");
    assert_escaped("a\nb\tc\r\x1b[2J\x7f", "a\\nb\\tc\\r\\x1b[2J\\x7f");
    assert_escaped("gr\xc3\xb6\xc3\x9f\xe2\x82\xac", "gr\xc3\xb6\xc3\x9f\xe2\x82\xac");
    assert_escaped("\xc2\x9b \x9b \xc2", "\\xc2\\x9b \\x9b \xc2"); /* CSI in both forms */
}

static void what_does_not_fit_is_cut_off_between_characters(void **state) {
    (void)state;
    char to[8];
    assert_int_equal(escape_controls(to, sizeof to, "abc\x1b\x1b"), 7);
    assert_string_equal(to, "abc\\x1b");
    assert_int_equal(escape_controls(to, 7, "abc\x1b"), 3);
    assert_int_equal(escape_controls(to, 5, "abc\xc3\xb6"), 3);
}

static void a_copy_has_room_for_every_escape(void **state) {
    (void)state;
    char *copy = escape_copy("\x1b\x01\xc2\x9b\x7f");
    assert_string_equal(copy, "\\x1b\\x01\\xc2\\x9b\\x7f");
    free(copy);
}

static void a_cell_is_cut_behind_its_escapes(void **state) {
    (void)state;
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    terminal_put(out, false, STYLE_PLAIN, "\x1b[2J");
    terminal_put_cell(out, false, STYLE_PLAIN,
                      "a\x07"
                      "b",
                      8);
    assert_int_equal(terminal_put_cut(out, false, STYLE_PLAIN, "\x1b\x1b", 5), 5);
    fclose(out);
    assert_string_equal(text, "\\x1b[2Ja\\x07b  \\x1b…");
    free(text);
}

static void errors_are_escaped(void **state) {
    (void)state;
    error_set(ERROR_DATA, "file:1: \"%s\"", "\x1b[2J");
    assert_string_equal(error_text(), "file:1: \"\\x1b[2J\"");
    error_clear();
}

static void a_word_for_a_shell_is_quoted_where_it_has_to_be(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"a/b-1.conf", "a/b-1.conf"},
                                           {"my data", "'my data'"},
                                           {"a[1]", "'a[1]'"},
                                           {"$HOME", "'$HOME'"},
                                           {"it's", "'it'\\''s'"},
                                           {"'", "''\\'''"},
                                           {"", "''"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *word = shell_word(cases[i][0]);
        assert_string_equal(word, cases[i][1]);
        free(word);
    }
}

SUITE(escape) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_written_out),
        cmocka_unit_test(what_does_not_fit_is_cut_off_between_characters),
        cmocka_unit_test(a_copy_has_room_for_every_escape),
        cmocka_unit_test(a_cell_is_cut_behind_its_escapes),
        cmocka_unit_test(errors_are_escaped),
        cmocka_unit_test(a_word_for_a_shell_is_quoted_where_it_has_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
