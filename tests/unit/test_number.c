#include "data/number.h"

#include "base/random.h"
#include "tests/unit/data_fixture.h"

static void assert_reads(const char *text) {
    double value, expected = strtod(text, NULL);
    if (!number_of_text(text, &value))
        fail_msg("%s is not read", text);
    if (memcmp(&value, &expected, sizeof value))
        fail_msg("%s is read as %.17g, not %.17g", text, value, expected);
}

static void numbers_are_read_correctly_rounded(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+1",
                                        "1",
                                        "-1.0",
                                        ".5",
                                        "5.",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "9007199254740992.5",
                                        "0.1",
                                        "1e-5",
                                        "4.9e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "0.000000000000000000000000000001",
                                        "3.14159265358979323846264338327950288",
                                        "100000000000000000000000000000000",
                                        "1e-400"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_reads(texts[i]);
}

static void random_numbers_of_every_length_are_read_correctly_rounded(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        double scale = pow(10, (double)random_below(&random, 50) - 25);
        snprintf(text, sizeof text, "%.*g", (int)random_below(&random, 20) + 1,
                 (random_unit(&random) - 0.5) * scale);
        assert_reads(text);
    }
}

static void what_is_no_finite_number_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",   "-",   "+",        ".",     "e5",
                                        "1e", "1e+", "nan",      "inf",   "0x1",
                                        "1x", "1 2", "Infinity", "1e999", "--1"};
    double value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (number_of_text(texts[i], &value))
            fail_msg("\"%s\" is taken for %g", texts[i], value);
}

static void a_number_is_written_as_short_as_it_can_be(void **state) {
    (void)state;
    char text[NUMBER_TEXT];
    number_format(-1, text);
    assert_string_equal(text, "-1");
    number_format(0.1, text);
    assert_string_equal(text, "0.1");
    number_format(0.1 + 0.2, text);
    assert_string_equal(text, "0.30000000000000004");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_correctly_rounded),
        cmocka_unit_test(random_numbers_of_every_length_are_read_correctly_rounded),
        cmocka_unit_test(what_is_no_finite_number_is_refused),
        cmocka_unit_test(a_number_is_written_as_short_as_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
