#include "tests/unit/suites.h"
#include "data/text/date.h"
#include "data/text/zone.h"

#include <string.h>

#include "base/random.h"
#include "tests/unit/data_fixture.h"

/* What each text is, and the days since 1970; of texts that are no date a year of 0. */
struct known {
    const char *format, *text;
    int32_t year;
    uint32_t month, day, hour;
    uint32_t weekday;
    double days;
};

static const struct known dates[] = {
    {"iso", "1970-01-01", 1970, 1, 1, 0, 3, 0},
    {"iso", "0001-01-01", 1, 1, 1, 0, 0, -719162},
    {"iso", "9999-12-31T23:59:59", 9999, 12, 31, 23, 4, 2932896 + 86399 / 86400.0},
    {"iso", "2000-02-29", 2000, 2, 29, 0, 1, 11016},
    {"iso", "2024-05-06 07:08", 2024, 5, 6, 7, 0, 19849 + 428 / 1440.0},
    {"iso", "2024-05-06T07:08:09Z", 2024, 5, 6, 7, 0, 19849 + 25689 / 86400.0},
    {"iso", "2024-05-06 07:08:09 UTC", 2024, 5, 6, 7, 0, 19849 + 25689 / 86400.0},
    {"iso", "2024-05-06T07:08:09.5+02:00", 2024, 5, 6, 7, 0, 19849 + 18489.5 / 86400.0},
    {"iso", "2024-05-06 01:00-0330", 2024, 5, 6, 1, 0, 19849 + 16200 / 86400.0},
    {"iso", "2016-12-31 23:59:60", 2016, 12, 31, 23, 5, 17167},
    {"epoch", "0", 1970, 1, 1, 0, 3, 0},
    {"epoch", "-1", 1969, 12, 31, 23, 2, -1 / 86400.0},
    {"epoch", "1714979289.5", 2024, 5, 6, 7, 0, 19849 + 25689.5 / 86400.0},
    {"%d.%m.%Y %H:%M", "6.5.2024 7:08", 2024, 5, 6, 7, 0, 19849 + 428 / 1440.0},
    {"%m/%d/%Y %I:%M %p", "5/6/2024 12:30 am", 2024, 5, 6, 0, 0, 19849 + 30 / 1440.0},
    {"%y%m%d%H", "14102103", 2014, 10, 21, 3, 1, 16364.125},
    {"%b %d, %Y", "february 3, 1969", 1969, 2, 3, 0, 0, -332},
    {"%Y-%m-%dT%H:%M:%S%z", "2024-05-06T07:08:09-01", 2024, 5, 6, 7, 0, 19849 + 29289 / 86400.0},
    {"%d%%%m%%%Y", "06%05%2024", 2024, 5, 6, 0, 0, 19849},
};

static const struct known others[] = {
    {.format = "iso", .text = ""},
    {.format = "iso", .text = "2023-02-29"},
    {.format = "iso", .text = "1900-02-29"},
    {.format = "iso", .text = "2024-04-31"},
    {.format = "iso", .text = "2024-13-01"},
    {.format = "iso", .text = "2024-00-01"},
    {.format = "iso", .text = "0000-01-01"},
    {.format = "iso", .text = "2024-5-6"},
    {.format = "iso", .text = "2024-05-06x"},
    {.format = "iso", .text = "2024-05-06 "},
    {.format = "iso", .text = "2024-05-06 24:00"},
    {.format = "iso", .text = "2024-05-06 07:60"},
    {.format = "iso", .text = "2024-05-06 07:08:60"},
    {.format = "iso", .text = "2024-05-06 07:59:61"},
    {.format = "iso", .text = "2024-05-06 07:08+24"},
    {.format = "iso", .text = "2024-05-06 07:08 UTCx"},
    {.format = "iso", .text = "2024-05-06 07:08 EST"},
    {.format = "iso", .text = "12024-05-06"},
    {.format = "iso", .text = "2024--05-06"},
    {.format = "epoch", .text = "253402300800"},
    {.format = "epoch", .text = "-62135596801"},
    {.format = "epoch", .text = "1e400"},
    {.format = "epoch", .text = "nan"},
    {.format = "epoch", .text = "12:00"},
    {.format = "%m/%d/%Y %I:%M %p", .text = "5/6/2024 13:30 pm"},
    {.format = "%d%%%m%%%Y", .text = "06%%05%2024"},
    {.format = "%d.%m.%Y", .text = "32.1.2024"},
};

static void dates_are_read_as_their_format_says(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        const struct known *known = &dates[i];
        struct date date;
        if (!date_parse(known->text, known->format, &date))
            fail_msg("%s is no date", known->text);
        assert_int_equal(date.year, known->year);
        assert_int_equal(date.month, known->month);
        assert_int_equal(date.day, known->day);
        assert_int_equal(date.hour, known->hour);
        assert_int_equal(date_weekday(&date), known->weekday);
        if (fabs(date_days(&date) - known->days) > 1e-9)
            fail_msg("%s is day %.12g", known->text, date_days(&date));
        assert_true(date_format_is_valid(known->format));
    }
}

static void what_is_no_date_is_refused(void **state) {
    (void)state;
    struct date date;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (date_parse(others[i].text, others[i].format, &date))
            fail_msg("%s is a date", others[i].text);
}

static void a_format_needs_year_and_month(void **state) {
    (void)state;
    static const char *const no[] = {"", "x", "%Y", "%d.%m.", "%Y-%m-%d %", "%Y%m%d%q", "%H:%M"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(date_format_is_valid(no[i]));
}

static void a_date_without_a_day_is_the_first_of_its_month(void **state) {
    (void)state;
    struct date date;
    assert_true(date_format_is_valid("%Y-%m") && date_parse("2024-05", "%Y-%m", &date));
    assert_int_equal(date.day, 1);
    assert_true(date_parse("1714953600500", DATE_FORMAT_EPOCH_MS, &date));
    assert_true(date.year == 2024 && date.month == 5 && date.day == 6 && date.second == 0.5);
}

static void day_and_month_may_be_told_apart_by_one_text(void **state) {
    (void)state;
    uint32_t formats = DATE_FORMATS_ALL;
    date_formats_narrow("03/04/2024", &formats);
    assert_true(date_formats_are_ambiguous(formats));
    date_formats_narrow("13/04/2024", &formats);
    assert_false(date_formats_are_ambiguous(formats));
    formats = DATE_FORMATS_ALL;
    date_formats_narrow("03.04.2024", &formats);
    assert_false(date_formats_are_ambiguous(formats));
}

enum { YEARS = SANITIZED ? 2000 : 9999 };

static void days_follow_one_another(void **state) {
    (void)state;
    struct date date;
    char text[32];
    int64_t days = -719162;
    for (int year = 1; year <= YEARS; year++)
        for (int month = 1; month <= 12; month++)
            for (int day = 1; day <= 31; day++) {
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                if (!date_parse(text, NULL, &date))
                    continue;
                assert_true(date_days(&date) == (double)days);
                assert_int_equal(date_weekday(&date), (days + 719162) % 7);
                snprintf(text, sizeof text, "%lld", (long long)days * 86400);
                assert_true(date_parse(text, DATE_FORMAT_EPOCH, &date));
                assert_true(date.year == year && date.month == (uint32_t)month &&
                            date.day == (uint32_t)day && date.hour == 0);
                days++;
            }
    assert_int_equal(days, YEARS == 9999 ? 2932897 : 11323);
}

static void damaged_texts_are_dates_or_none(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (uint32_t i = 0; i < (SANITIZED ? 20000 : 200000); i++) {
        const struct known *known = &dates[random_below(&random, sizeof dates / sizeof *dates)];
        char text[64];
        struct date date;
        snprintf(text, sizeof text, "%s", known->text);
        size_t length = strlen(text);
        for (uint32_t k = 0; k < 3; k++)
            text[random_below(&random, length)] =
                "0123456789-:T +Z.%/apm,"[random_below(&random, 23)];
        if (random_below(&random, 4) == 0)
            text[random_below(&random, length)] = '\0';
        if (date_parse(text, known->format, &date))
            assert_true(date.year >= 1 && date.year <= 9999 && date_weekday(&date) < 7 &&
                        date.hour < 24 && fabs(date_days(&date)) < 3e6);
    }
}

static void formats_are_guessed_from_texts(void **state) {
    (void)state;
    uint32_t formats = DATE_FORMATS_ALL;
    date_formats_narrow("05/06/2024", &formats);
    assert_string_equal(date_formats_first(formats), "%m/%d/%Y");
    date_formats_narrow("25/06/2024", &formats);
    assert_string_equal(date_formats_first(formats), "%d/%m/%Y");
    uint32_t half = DATE_FORMATS_ALL;
    date_formats_narrow("5/6/2024 1:02:03 PM", &half);
    assert_string_equal(date_formats_first(half), "%m/%d/%Y %I:%M:%S %p");
    date_formats_narrow("never", &formats);
    assert_null(date_formats_first(formats));
}

static void clocks_of_a_zone_change_as_its_law_says(void **state) {
    static const struct {
        const char *name;
        int64_t seconds;
        int32_t minutes;
    } cases[] = {
        {"America/New_York", 1717246800, -240},
        {"America/New_York", 1704067200, -300},
        {"America/New_York", 1710053999, -300},
        {"America/New_York", 1710054000, -240},
        {"America/New_York", 4102444800, -300},
        {"America/New_York", 4118169600, -240},
        {"Europe/Berlin", 4118169600, 120},
        {"Australia/Sydney", 4102444800, 660},
        {"Australia/Sydney", 4118169600, 600},
        {"Asia/Kolkata", 4118169600, 330},
        {"UTC", 4118169600, 0},
        {"+05:45", 0, 345},
        {"-03:30", 0, -210},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zone *zone = zone_open(cases[i].name);
        if (!zone && strchr(cases[i].name, '/'))
            continue; /* this machine has no database of zones */
        assert_non_null(zone);
        if (zone_minutes(zone, cases[i].seconds) != cases[i].minutes)
            fail_msg("%s %lld: %d", cases[i].name, (long long)cases[i].seconds,
                     zone_minutes(zone, cases[i].seconds));
        zone_free(zone);
    }
    static const char *const none[] = {"",   "Mars/Base", "../../etc/passwd", "/etc/passwd",
                                       "+2", "tzdata.zi"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(zone_open(none[i]));
}

SUITE(test_date) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_read_as_their_format_says),
        cmocka_unit_test(what_is_no_date_is_refused),
        cmocka_unit_test(a_format_needs_year_and_month),
        cmocka_unit_test(a_date_without_a_day_is_the_first_of_its_month),
        cmocka_unit_test(day_and_month_may_be_told_apart_by_one_text),
        cmocka_unit_test(days_follow_one_another),
        cmocka_unit_test(damaged_texts_are_dates_or_none),
        cmocka_unit_test(formats_are_guessed_from_texts),
        cmocka_unit_test(clocks_of_a_zone_change_as_its_law_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
