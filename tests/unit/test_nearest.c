/* Which word a misspelt one is taken for, and when none is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "base/text.h"

static const char *asked(const char *text) {
    static const char *const words[] = {"l2",     "data", "state", "status",        "objective",
                                        "shards", "gate", "name",  "early_stopping"};
    struct nearest nearest = {.text = text};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        nearest_offer(&nearest, words[i]);
    return nearest_suggestion(&nearest, "");
}

static void a_misspelt_word_is_taken_for_the_nearest(void **state) {
    (void)state;
    assert_string_equal(asked("objektive"), "; did you mean `objective`?");
    assert_string_equal(asked("statsu"), "; did you mean `status`?");
    assert_string_equal(asked("dta"), "; did you mean `data`?");
    assert_string_equal(asked("l1"), "; did you mean `l2`?");
    assert_string_equal(asked("shard"), "; did you mean `shards`?");
    assert_string_equal(asked("early-stoping"), "; did you mean `early_stopping`?");
    assert_string_equal(asked("Early_Stopping"), "; did you mean `early_stopping`?");
    assert_string_equal(asked("DATA"), "; did you mean `data`?");
}

static void a_long_path_is_asked_for_as_a_whole(void **state) {
    (void)state;
    struct nearest nearest = {.text = "jop.conf"};
    nearest_offer(&nearest, "job.conf");
    assert_string_equal(nearest_suggestion(&nearest,
                                           "/data/people/who/have/bought/something/in/the/"
                                           "last/twelve/months/and/longer/"),
                        "; did you mean `/data/people/who/have/bought/something/in/the/last/twelve/"
                        "months/and/longer/job.conf`?");
}

static void what_is_near_to_none_is_taken_for_none(void **state) {
    (void)state;
    assert_string_equal(asked("lambda"), "");
    assert_string_equal(asked(""), "");
    assert_string_equal(asked("x"), "");
    assert_string_equal(asked("a_word_that_is_much_longer_than_any_word_of_the_table"), "");
}

SUITE(nearest) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_misspelt_word_is_taken_for_the_nearest),
        cmocka_unit_test(a_long_path_is_asked_for_as_a_whole),
        cmocka_unit_test(what_is_near_to_none_is_taken_for_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
