/* Numbers as they stand in LIBSVM text and in cells, where most are not read by number_parse(). */
#include "data/source/rows.h"
#include "tests/unit/suites.h"
#include "data/source/source.h"

#include "base/random.h"
#include "tests/unit/data_fixture.h"

static const struct source_options plain_options;

static int take_nothing(void *context, const struct source_rows *rows) {
    (void)context, (void)rows;
    return 0;
}

static unsigned put_digits(struct random *random, char *to, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        to[i] = (char)('0' + random_below(random, 10));
    return count;
}

/* A number as people and programs write them: up to 17 digits on each side of a point, which may be
 * missing; now and then with an exponent or a plus. */
static void write_number(struct random *random, char text[64]) {
    static const char *const signs[] = {"", "", "-", "+"};
    unsigned whole = (unsigned)random_below(random, 10), length;
    whole = whole == 9 ? 9 + (unsigned)random_below(random, 9) : whole;
    length = (unsigned)sprintf(text, "%s", signs[random_below(random, 4)]);
    length += put_digits(random, text + length, whole);
    if (!whole || random_below(random, 2)) {
        text[length++] = '.';
        length += put_digits(random, text + length, !whole + (unsigned)random_below(random, 17));
    }
    if (random_below(random, 8) == 0)
        length += (unsigned)sprintf(text + length, "e%d", (int)random_below(random, 40) - 20);
    text[length] = '\0';
}

struct expected {
    uint64_t *id;
    double *value;
    uint64_t next;
};

static int take_expected(void *context, const struct source_rows *rows) {
    struct expected *expected = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        const uint64_t *id = source_row_ids(rows, row);
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++, expected->next++) {
            assert_int_equal(*id++, expected->id[expected->next]);
            assert_memory_equal(&rows->value[i], &expected->value[expected->next], sizeof(double));
        }
    }
    return 0;
}

static void ids_and_values_of_any_length_are_read_as_strtod_reads_them(void **state) {
    (void)state;
    enum { ROWS = 20000, WIDTH = 5 };
    struct expected expected = {.id = memory_new(ROWS * WIDTH, sizeof(uint64_t)),
                                .value = memory_new(ROWS * WIDTH, sizeof(double))};
    struct random random;
    struct bytes text;
    uint64_t count = 0;
    random_init(&random, 1);
    bytes_init(&text);
    for (unsigned row = 0; row < ROWS; row++) {
        bytes_append(&text, "1", 1);
        uint64_t id = 0;
        for (unsigned i = 0; i < WIDTH; i++) {
            char number[64], word[128];
            id += 1 + random_next(&random) % (UINT64_C(1) << random_below(&random, 40));
            write_number(&random, number);
            expected.id[count] = id;
            expected.value[count++] = strtod(number, NULL);
            int length = sprintf(word, " %llu:%s", (unsigned long long)id, number);
            bytes_append(&text, word, (size_t)length);
        }
        bytes_append(&text, "\n", 1);
    }
    struct source_report report;
    const char *path = fixture_bytes("numbers.txt", text.data, text.length - 1); /* no line end */
    assert_int_equal(source_read(path, &plain_options, 1, take_expected, &expected, &report), 0);
    assert_int_equal(expected.next, count);
    source_report_release(&report);
    bytes_release(&text);
    free(expected.id);
    free(expected.value);
}

/* Bare, between blanks or in quotes; short ones often. Returns how long it is. */
static int write_cell(struct random *random, char cell[128], double *value) {
    static const char *const around[] = {"%s", "%s", "%s", " %s", "%s  ", "\"%s\"", " \"%s\" "};
    char number[64];
    if (random_below(random, 2))
        snprintf(number, sizeof number, "%u", (unsigned)random_below(random, 12));
    else
        write_number(random, number);
    *value = strtod(number, NULL);
    const char *format = around[random_below(random, 7)], *at = strstr(format, "%s");
    return sprintf(cell, "%.*s%s%s", (int)(at - format), format, number, at + 2);
}

static void cells_of_any_length_are_read_as_strtod_reads_them(void **state) {
    (void)state;
    enum { ROWS = 7000, WIDTH = 7 };
    struct random random;
    random_init(&random, 1);
    for (const char *delimiter = ",;\t"; *delimiter; delimiter++) {
        struct expected expected = {.id = memory_new(ROWS * WIDTH, sizeof(uint64_t)),
                                    .value = memory_new(ROWS * WIDTH, sizeof(double))};
        struct bytes text;
        bytes_init(&text);
        for (uint64_t i = 0; i < ROWS * WIDTH; i++) {
            char cell[128];
            int length = write_cell(&random, cell, &expected.value[i]);
            expected.id[i] = i % WIDTH + 1;
            bytes_append(&text, cell, (size_t)length);
            bytes_append(&text, delimiter, 1);
            if (i % WIDTH == WIDTH - 1)
                bytes_append(&text, "b\r\n", random_below(&random, 2) ? 1 : 3);
            if (text.data[text.length - 1] == 'b')
                bytes_append(&text, "\n", 1);
        }
        struct source_options options = {.format = FORMAT_CSV};
        struct source_report report;
        const char *path = fixture_bytes("cells.csv", text.data, text.length - 1);
        assert_int_equal(source_read(path, &options, 1, take_expected, &expected, &report), 0);
        assert_int_equal(expected.next, ROWS * WIDTH);
        source_report_release(&report);
        bytes_release(&text);
        free(expected.id);
        free(expected.value);
    }
}

static void a_cell_is_refused_wherever_it_ends_early_or_late(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",          "-",     "+",   ".",   "-.", "1x", "1.5x",     "1e",
        "1e+",       "1.2.3", "--1", "1 2", "1;", "1:", "1234567x", "123456789012345678x",
        "\"1\"\"\"", "nan",   "0x1"};
    static const struct source_options numbers = {.table.numbers_only = true};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        struct source_report report;
        snprintf(text, sizeof text, "1,2,3,a\n4,%s,6,b\n", bad[i]);
        const char *path = fixture_text("bad.csv", text);
        if (source_read(path, &numbers, 1, take_nothing, NULL, &report) != ERROR_DATA ||
            !strstr(error_text(), *bad[i] ? ":2: column 2 holds " : ":2: column 2 is empty"))
            fail_msg("\"%s\": \"%s\"", text, error_text());
        error_clear();
    }
}

static void a_value_is_refused_wherever_it_ends_early_or_late(void **state) {
    (void)state;
    static const char *const bad[] = {"",   "-",   "+",     ".",   "-.",       "1x",         "1.5x",
                                      "1e", "1e+", "1.2.3", "--1", "1234567x", "12345678:1", ":"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[64];
        struct source_report report;
        snprintf(line, sizeof line, "1 3:1 7:%s", bad[i]);
        const char *path = fixture_text("bad.txt", line);
        if (source_read(path, &plain_options, 1, take_nothing, NULL, &report) != ERROR_DATA ||
            !strstr(error_text(), "not a finite number"))
            fail_msg("\"%s\": \"%s\"", line, error_text());
        error_clear();
    }
}

SUITE(source_numbers) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_values_of_any_length_are_read_as_strtod_reads_them),
        cmocka_unit_test(a_value_is_refused_wherever_it_ends_early_or_late),
        cmocka_unit_test(cells_of_any_length_are_read_as_strtod_reads_them),
        cmocka_unit_test(a_cell_is_refused_wherever_it_ends_early_or_late),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
