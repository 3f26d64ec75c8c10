/* Records of several lines: where they end, in a text and in its blocks. */
#include "tests/unit/suites.h"
#include "data/source/blocks.h"
#include "data/csv/format.h"

#include <malloc.h>
#include <stdlib.h>

#include "tests/unit/data_fixture.h"

static const struct record_rule rule = {.delimiters = ","};

static size_t first_record(const char *text) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    return (size_t)(record_end(&rule, copy, copy + strlen(copy)) - copy);
}

static void a_line_end_in_a_quoted_cell_ends_no_record(void **state) {
    (void)state;
    assert_int_equal(first_record("a,b\nc"), 3);
    assert_int_equal(first_record("a,\"b\nc\"\nd"), 7);
    assert_int_equal(first_record("\"a\n\n\", \"b\nc\" ,d\ne"), 15);
    assert_int_equal(first_record("\"a \"\"b\n\"\"\"\nc"), 10);
    assert_int_equal(first_record("a,\"b\nc\"\r\nd"), 8);
}

static void a_quote_inside_of_a_cell_opens_nothing(void **state) {
    (void)state;
    assert_int_equal(first_record("5\",b\nc\"\nd"), 4);
    assert_int_equal(first_record("a b \"c\nd\"\ne"), 6);
}

static void a_quote_that_is_not_closed_spoils_its_line_alone(void **state) {
    (void)state;
    assert_int_equal(first_record("a,\"b\nc,d\n"), 4);
    assert_int_equal(first_record("a,\"b\n\"c\",d\n"), 4);
    assert_int_equal(first_record("\"a\n\",\"b\nc"), 7);
    size_t length = QUOTED_BYTES_MAX + 100;
    char *text = memory_new(length + 1, 1);
    memset(text, 'x', length);
    memcpy(text, "\"a\n", 3);
    text[QUOTED_BYTES_MAX - 1] = '"';
    text[QUOTED_BYTES_MAX] = '\n';
    assert_int_equal(record_end(&rule, text, text + length) - text, QUOTED_BYTES_MAX);
    text[QUOTED_BYTES_MAX - 1] = 'x';
    text[QUOTED_BYTES_MAX] = '"';
    text[QUOTED_BYTES_MAX + 1] = '\n';
    assert_int_equal(record_end(&rule, text, text + length) - text, 2);
    free(text);
}

static void a_delimiter_in_quotes_parts_nothing(void **state) {
    (void)state;
    const struct record_rule all = {.delimiters = ",;\t"};
    assert_false(record_has(&all, "\"a,b\";c", 7, ','));
    assert_true(record_has(&all, "\"a,b\";c", 7, ';'));
    assert_true(record_has(&all, "\"a;b\",c", 7, ','));
    assert_false(record_has(&all, "\"a;b\",c", 7, ';'));
    assert_true(record_has(&all, "5\",c", 4, ','));
}

#define TEXT 24

/* Wherever a text is cut, what is before the cut are records of the whole. */
static void a_cut_is_where_a_record_ends(void **state) {
    (void)state;
    static const char letters[] = "a\",\n \n\"";
    srand(1);
    for (int round = 0; round < (SANITIZED ? 20000 : 200000); round++) {
        char text[TEXT + 1] = {0};
        bool ends[TEXT + 2] = {[0] = true};
        for (int i = 0; i < TEXT; i++)
            text[i] = letters[(size_t)rand() % (sizeof letters - 1)];
        for (char *at = text; at < text + TEXT;) {
            char *end = record_end(&rule, at, text + TEXT);
            at = end < text + TEXT ? end + 1 : end;
            ends[at - text] = true;
        }
        for (size_t length = 0; length <= TEXT; length++) {
            size_t whole = records_whole(&rule, text, length, false);
            if (whole > length || !ends[whole])
                fail_msg("%zu of %zu bytes of <%s>", whole, length, text);
            char *at = text;
            while (at < text + whole) {
                at = record_end(&rule, at, text + whole) + 1;
                if (!ends[at - text])
                    fail_msg("a record ends at %zu of <%.*s>", (size_t)(at - text), (int)whole,
                             text);
            }
        }
    }
}

/* ---- files ---- */

struct sum {
    uint64_t rows;
    uint64_t hash;
};

static int take(void *context, const struct source_rows *rows) {
    struct sum *sum = context;
    sum->rows += rows->count;
    for (uint64_t i = 0; i < rows->start[rows->count]; i++)
        sum->hash = sum->hash * 31 + (uint64_t)rows->value[i];
    return 0;
}

/* Rows whose texts have lines of all lengths, so that blocks end anywhere in them; or the same with
 * a blank for each line end. */
static const char *write_lines(const char *name, char line_end, unsigned stray) {
    struct bytes text;
    bytes_init(&text);
    bytes_append(&text, "n,t,y\n", 6);
    for (unsigned i = 0; i < 40000; i++) {
        char row[200];
        int length = snprintf(row, sizeof row, "%u,\"%.*s%c\"\"%u\"\"%c,x\",%u\n", i, (int)(i % 61),
                              "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
                              line_end, i % 7, line_end, i % 2);
        if (stray == i)
            length = snprintf(row, sizeof row, "1,\"stray,0\n");
        bytes_append(&text, row, (size_t)length);
    }
    const char *path = fixture_bytes(name, text.data, text.length);
    bytes_release(&text);
    return path;
}

static struct sum read_lines(const char *path, unsigned threads, uint64_t bad, uint64_t *rejected) {
    static const char *const skip[] = {"t", NULL};
    struct source_options options = {
        .format = FORMAT_CSV, .table.skip = skip, .bad_lines_max = bad};
    struct source_report report;
    struct sum sum = {0};
    if (source_read(path, &options, threads, take, &sum, &report))
        fail_msg("%s", error_text());
    *rejected = report.rejected;
    source_report_release(&report);
    return sum;
}

static void blocks_end_with_records(void **state) {
    (void)state;
    uint64_t rejected;
    struct sum plain = read_lines(write_lines("plain", ' ', UINT32_MAX), 1, 0, &rejected);
    const char *path = write_lines("broken", '\n', UINT32_MAX);
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct sum broken = read_lines(path, threads, 0, &rejected);
        assert_int_equal(broken.rows, plain.rows);
        assert_true(broken.hash == plain.hash);
    }
    assert_int_equal(plain.rows, 40000);
}

static void a_stray_quote_costs_its_row_and_is_named(void **state) {
    (void)state;
    uint64_t rejected;
    const char *path = write_lines("stray", '\n', 20000);
    struct sum sum = read_lines(path, 3, 1, &rejected);
    assert_int_equal(sum.rows, 39999);
    assert_int_equal(rejected, 1);
    struct source_options options = {.format = FORMAT_CSV};
    struct source_report report;
    assert_int_equal(source_read(path, &options, 2, take, &sum, &report), ERROR_DATA);
    assert_non_null(strstr(error_text(), "stray:60002: column 2 (t): a quote is not closed"));
    error_clear();
}

/* Numbers are read many bytes at a time, so some behind a record are read as well. New memory is
 * filled, so that bytes that nobody writes are no zeros by chance. */
static void behind_a_line_of_json_only_zeros_are_read(void **state) {
    (void)state;
    static const char zeros[TEXT_END_BYTES], text[] = "{\"a\":1,\"y\":0}\n{\"a\":25,\"y\":1}\n";
    struct source_options options = {.format = FORMAT_JSONL};
    struct format format;
    struct batch batch;
    mallopt(M_PERTURB, 0x37);
    batch_init(&batch);
    batch.first_line = 1;
    batch.text = memory_new(sizeof text + TEXT_END_BYTES, 1);
    batch.text_length = sizeof text - 1;
    memcpy(batch.text, text, sizeof text);
    assert_int_equal(format_find(&format, "rows", batch.text, batch.text_length, &options), 0);
    format_parse(&format, &batch, format.header);
    assert_int_equal(batch.row_count, 2);
    assert_memory_equal(batch.records + batch.records_length - 1, zeros, sizeof zeros);
    format_release(&format);
    batch_release(&batch);
    mallopt(M_PERTURB, 0);
}

SUITE(records) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_end_in_a_quoted_cell_ends_no_record),
        cmocka_unit_test(a_quote_inside_of_a_cell_opens_nothing),
        cmocka_unit_test(a_quote_that_is_not_closed_spoils_its_line_alone),
        cmocka_unit_test(a_delimiter_in_quotes_parts_nothing),
        cmocka_unit_test(a_cut_is_where_a_record_ends),
        cmocka_unit_test(blocks_end_with_records),
        cmocka_unit_test(a_stray_quote_costs_its_row_and_is_named),
        cmocka_unit_test(behind_a_line_of_json_only_zeros_are_read),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
