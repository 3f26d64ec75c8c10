#include "tests/unit/suites.h"
#include "data/text/number.h"

#include "base/random.h"
#include "tests/unit/data_fixture.h"

/* What a number is here: all of the text is one to strtod(), finite, and decimal. */
static bool is_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return *text && !*end && isfinite(*value) && text[strspn(text, "0123456789+-.eE")] == '\0';
}

static void assert_reads_as_strtod(const char *text) {
    double value, expected;
    bool is = is_number(text, &expected);
    if (number_of_text(text, &value) != is)
        fail_msg("%.80s is %s number", text, is ? "a" : "no");
    if (is && memcmp(&value, &expected, sizeof value))
        fail_msg("%.80s is read as %.17g, not %.17g", text, value, expected);
}

/* ---- random texts ---- */

struct words {
    struct random random;
    char text[1200];
    size_t length;
};

static void put(struct words *words, char c) {
    words->text[words->length++] = c;
}

static uint32_t below(struct words *words, uint32_t limit) {
    return (uint32_t)random_below(&words->random, limit);
}

/* Few digits or many; any, or mostly 0, or mostly 9. */
static void put_digits(struct words *words) {
    static const uint32_t most[] = {3, 18, 22, 45};
    uint32_t count = below(words, most[below(words, 4)]), kind = below(words, 4);
    for (uint32_t i = 0; i < count; i++) {
        bool plain = kind < 2 || below(words, 8) == 0;
        put(words, (char)('0' + (plain ? below(words, 10) : kind == 2 ? 0 : 9)));
    }
}

static void put_sign(struct words *words) {
    uint32_t kind = below(words, 4);
    if (kind < 2)
        put(words, "+-"[kind]);
}

static void put_exponent(struct words *words) {
    static const uint32_t most[] = {10, 40, 340, 100000};
    put(words, "eE"[below(words, 2)]);
    put_sign(words);
    int length = sprintf(words->text + words->length, "%u", below(words, most[below(words, 4)]));
    words->length += (size_t)length;
}

static void make_decimal(struct words *words) {
    put_sign(words);
    put_digits(words);
    if (below(words, 3))
        put(words, '.');
    put_digits(words);
    if (below(words, 2))
        put_exponent(words);
}

/* A double of random bits, or a point just between two, with as many digits as it takes, or fewer.
 */
static void make_double(struct words *words) {
    double value;
    do {
        uint64_t bits = random_next(&words->random);
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    if (below(words, 2))
        value = ldexp((double)(random_next(&words->random) >> below(words, 60)),
                      (int)below(words, 60) - 40);
    int digits = (int)below(words, below(words, 4) ? 25 : 800);
    const char *format = below(words, 2) || fabs(value) > 1e30 ? "%.*Le" : "%.*Lf";
    long double half = 0;
    if (below(words, 2) && sizeof half > sizeof value)
        half = ((long double)nextafter(value, INFINITY) - (long double)value) / 2;
    half = isfinite(half) ? half : 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    words->length += (size_t)sprintf(words->text, format, digits, (long double)value + half);
#pragma GCC diagnostic pop
}

__extension__ typedef unsigned __int128 wide;

/* An integer near a power of two, where 64 bits run over; maybe with a fraction and an exponent. */
static void make_power_of_two(struct words *words) {
    static const uint64_t near[] = {UINT64_MAX, INT64_MAX, UINT64_C(1) << 53, UINT64_C(1) << 54};
    wide value = near[below(words, 4)];
    value = (value + 1) * (1 + below(words, below(words, 2) ? 4 : 1000)) + below(words, 5) - 2;
    char digits[40];
    int count = 0;
    for (; value; value /= 10)
        digits[count++] = (char)('0' + (int)(value % 10));
    int point = (int)below(words, 30);
    while (count) {
        if (count == point)
            put(words, '.');
        put(words, digits[--count]);
    }
    if (point >= 20 || point == 0) {
        put(words, '.');
        put_digits(words);
    }
    if (below(words, 3) == 0)
        put_exponent(words);
}

/* Mostly no number. */
static void make_characters(struct words *words) {
    static const char of[] = "0123456789012345678900..eE+-xXinfa p\t,:";
    uint32_t count = below(words, 9);
    for (uint32_t i = 0; i < count; i++)
        put(words, of[below(words, sizeof of - 1)]);
}

static void make_text(struct words *words) {
    static void (*const make[])(struct words *) = {make_decimal, make_decimal, make_double,
                                                   make_power_of_two, make_characters};
    words->length = 0;
    make[below(words, 5)](words);
    put(words, '\0');
}

/* DML_NUMBERS says how many; with 100000000 it takes minutes. DML_SEED begins elsewhere. */
static void random_texts_of_every_shape_are_read_as_strtod_reads_them(void **state) {
    (void)state;
    const char *count = getenv("DML_NUMBERS"), *seed = getenv("DML_SEED");
    uint64_t left = count ? strtoull(count, NULL, 10) : SANITIZED ? 100000 : 1000000;
    struct words words;
    for (random_init(&words.random, seed ? strtoull(seed, NULL, 10) : 1); left; left--) {
        make_text(&words);
        assert_reads_as_strtod(words.text);
    }
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
                                        "1e-400",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "9223372036854775808.000000",
                                        "1.8446744073709551616e+19",
                                        "368934881474191032320000000000000000000000",
                                        "00000000000000000000000000000000000000.5",
                                        "0e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "0.0000e-5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_reads_as_strtod(texts[i]);
}

/* Where as many zeros and the exponent cancel each other. */
static void an_exponent_makes_up_for_any_number_of_zeros(void **state) {
    (void)state;
    static const int zeros[] = {20, 400, 9997, 9998, 9999, 10000, 10004, 99999, 123456};
    char *text = memory_new(200000, 1);
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        for (int around = -330; around <= 330; around += 15) {
            int length = snprintf(text, 200000, "0.%0*d7e%d", zeros[i], 0, zeros[i] + around);
            assert_true(length < 200000);
            assert_reads_as_strtod(text);
            snprintf(text, 200000, "7%0*de-%d", zeros[i], 0, zeros[i] + around);
            assert_reads_as_strtod(text);
        }
    free(text);
}

static void random_numbers_of_every_length_are_read_correctly_rounded(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < (SANITIZED ? 20000 : 200000); i++) {
        char text[64];
        double scale = pow(10, (double)random_below(&random, 50) - 25);
        snprintf(text, sizeof text, "%.*g", (int)random_below(&random, 20) + 1,
                 (random_unit(&random) - 0.5) * scale);
        assert_reads_as_strtod(text);
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

static void an_amount_says_which_of_its_signs_is_the_point(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool decimal_comma, formatted, comma;
    } amounts[] = {
        {"60,36 \u20ac", false, true, true},
        {"1.234,56", false, true, true},
        {"1.234.567,89", false, true, true},
        {"$1,200.50", false, true, false},
        {"$1,200", false, true, false},
        {"$1,200", true, true, true},
        {"12%", false, true, false},
        {"12 %", true, true, true},
        {"1,234,567", false, true, false},
        {"1.234.567", false, false, false},
        {"12.05.2024", false, false, false},
        {"a,b", false, false, true},
        {"CHF 12\u2019500", false, true, false},
        {"\u22121\u202f200 \u20b9", false, true, false},
    };
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        assert_int_equal(number_is_formatted(amounts[i].text, ""), amounts[i].formatted);
        assert_int_equal(!!strchr(number_bare_form(amounts[i].text, amounts[i].decimal_comma), ','),
                         amounts[i].comma);
    }
}

static void a_code_has_zeros_before_it_or_too_many_digits(void **state) {
    static const char *const codes[] = {
        "007", "00", "-01", "+007", "9007199254740992", "-9007199254740993", "12345678901234567"};
    static const char *const numbers[] = {"",
                                          "0",
                                          "-0",
                                          "7",
                                          "+1",
                                          "1.0",
                                          "0.5",
                                          "00.5",
                                          "01e2",
                                          "9007199254740991",
                                          "0.1234567890123456789",
                                          "1e300",
                                          "a"};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        assert_true(number_is_code(codes[i], strlen(codes[i])));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_false(number_is_code(numbers[i], strlen(numbers[i])));
}

static void amounts_are_read_with_their_point(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double points, commas; /* NAN: it is none */
    } amounts[] = {
        {"1,285", 1285, 1.285},
        {"1.285", 1.285, 1285},
        {"$1,285.50", 1285.5, NAN},
        {"1.285,50 \u20ac", NAN, 1285.5},
        {"-\u00a35", -5, -5},
        {"$-5.25", -5.25, NAN},
        {"(45)", -45, -45},
        {"($1,000)", -1000, -1},
        {"$(7)", -7, -7},
        {"$ (5.00)", -5, NAN},
        {" ($ 5)", -5, -5},
        {"(5) \u20ac", -5, -5},
        {"$ -", 0, 0},
        {" -   \u20ac ", 0, 0},
        {"+$5", 5, 5},
        {"$+5", 5, 5},
        {"$ -5", -5, -5},
        {"-", NAN, NAN},
        {"$", NAN, NAN},
        {"$(-)", NAN, NAN},
        {"$-(5)", NAN, NAN},
        {"+-5", NAN, NAN},
        {"+5-", NAN, NAN},
        {"$($5)", NAN, NAN},
        {"\u22123.5%", -3.5, NAN},
        {"12 %", 12, 12},
        {"5-", -5, -5},
        {"1 234 567", 1234567, 1234567},
        {"1\u202f234,5", NAN, 1234.5},
        {"CHF 1'000.05", 1000.05, NAN},
        {"12,34,567", 1234567, NAN},
        {"0,125", NAN, 0.125},
        {"4,5", NAN, 4.5},
        {"1,2345", NAN, 1.2345},
        {"1234,567", NAN, 1234.567},
        {"1,234 567", NAN, NAN},
        {"1,,234", NAN, NAN},
        {"--5", NAN, NAN},
        {"$5%", NAN, NAN},
        {"$ 5 $", NAN, NAN},
        {"12 kg", NAN, NAN},
        {"1.5k", NAN, NAN},
        {"%", NAN, NAN},
        {"()", NAN, NAN},
        {"(5", NAN, NAN},
        {"5)", NAN, NAN},
        {"(-5)", NAN, NAN},
        {"", NAN, NAN},
        {"1e3", 1000, NAN},
    };
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        double points = NAN, commas = NAN;
        const bool with_points = number_of_amount(amounts[i].text, '.', &points);
        const bool with_commas = number_of_amount(amounts[i].text, ',', &commas);
        if (with_points != !isnan(amounts[i].points) || with_commas != !isnan(amounts[i].commas) ||
            (with_points && points != amounts[i].points) ||
            (with_commas && commas != amounts[i].commas))
            fail_msg("\"%s\": %d %g, %d %g", amounts[i].text, with_points, points, with_commas,
                     commas);
    }
}

SUITE(number) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_has_zeros_before_it_or_too_many_digits),
        cmocka_unit_test(numbers_are_read_correctly_rounded),
        cmocka_unit_test(an_exponent_makes_up_for_any_number_of_zeros),
        cmocka_unit_test(random_texts_of_every_shape_are_read_as_strtod_reads_them),
        cmocka_unit_test(random_numbers_of_every_length_are_read_correctly_rounded),
        cmocka_unit_test(what_is_no_finite_number_is_refused),
        cmocka_unit_test(an_amount_says_which_of_its_signs_is_the_point),
        cmocka_unit_test(amounts_are_read_with_their_point),
        cmocka_unit_test(a_number_is_written_as_short_as_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
