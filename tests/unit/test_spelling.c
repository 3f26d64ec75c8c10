#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/table/spelling.h"
#include "tests/unit/suites.h"

static bool is_other(const char *text, const char *other) {
    struct spellings spellings;
    spellings_find(&spellings, text);
    assert_true(spellings.count <= SPELLINGS_MAX);
    for (uint32_t i = 0; i < spellings.count; i++)
        if (!strcmp(spellings.text[i], other))
            return true;
    return false;
}

/* Each is another spelling of all others of its line, of which the first is canonical. */
static const char *const same[][6] = {
    {"true", "True", "TRUE"},
    {"false", "False", "FALSE"},
    {"3", "3.0"},
    {"-0", "-0.0"},
    {"10000000000", "1e+10", "10000000000.0"},
    {"10000000000000000", "1e+16"},
    {"1.5e-7", "1.5e-07"},
    {"0.00001", "1e-05"},
    {"12345678900", "1.23456789e+10", "12345678900.0"},
    {"09:30:00", "09:30:00.000", "09:30:00.000000", "09:30:00.000000000"},
    {"09:30:00.5", "09:30:00.500", "09:30:00.500000000"},
    {"2024-06-01", "2024-06-01 00:00:00", "2024-06-01T00:00:00.000000", "2024-06-01 00:00:00.000"},
    {"2024-06-01 09:30:00Z", "2024-06-01T09:30:00+00:00", "2024-06-01 09:30:00.000000+0000"},
    {"2024-06-01 09:30:00-0400", "2024-06-01T09:30:00-04:00", "2024-06-01 09:30:00.000000-04:00"},
};

static void truths_numbers_and_times_have_other_spellings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t a = 0; a < 6 && same[i][a]; a++)
            for (size_t b = 0; b < 6 && same[i][b]; b++)
                if (a != b && !is_other(same[i][a], same[i][b]))
                    fail_msg("%s is not found of %s", same[i][b], same[i][a]);
}

static void all_spellings_of_a_value_have_one_that_is_canonical(void **state) {
    char room[SPELLING_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (size_t k = 0; k < 6 && same[i][k]; k++)
            assert_string_equal(spelling_canonical(same[i][k], room), same[i][0]);
    assert_string_equal(spelling_canonical("09:30:00.12340", room), "09:30:00.1234");
    assert_string_equal(spelling_canonical("-2.0", room), "-2");
}

static void codes_versions_and_other_texts_are_themselves_alone(void **state) {
    static const char *const alone[] = {"",
                                        "01",
                                        "007",
                                        "1.10",
                                        "+1",
                                        "yes",
                                        "tRUE",
                                        "0x10",
                                        "1e5",
                                        "t",
                                        "nan",
                                        "09:30",
                                        "12:00:00Z",
                                        "2024-06-01 ",
                                        "2024-06",
                                        "2024-06-01 09:30:00.1234567890",
                                        "2024-06-01 09:30:00 UTC"};
    struct spellings spellings;
    char room[SPELLING_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        spellings_find(&spellings, alone[i]);
        if (spellings.count)
            fail_msg("%s is spelled %s", alone[i], spellings.text[0]);
        assert_ptr_equal(spelling_canonical(alone[i], room), alone[i]);
    }
    assert_false(is_other("1", "true") || is_other("true", "false") || is_other("-0", "0"));
}

SUITE(spelling) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truths_numbers_and_times_have_other_spellings),
        cmocka_unit_test(all_spellings_of_a_value_have_one_that_is_canonical),
        cmocka_unit_test(codes_versions_and_other_texts_are_themselves_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
