/* Every kind of bad input gives one message with file and line. */
#include <sys/stat.h>
#include <zstd.h>

#include "data/source/rows.h"
#include "tests/unit/suites.h"
#include "tests/unit/data_fixture.h"
#include "data/remote/request.h"

static int take_nothing(void *context, const struct source_rows *rows) {
    (void)context, (void)rows;
    return 0;
}

static void assert_error(const char *path, const struct source_options *options, int expected,
                         const char *words) {
    struct source_report report;
    int code = source_read(path, options, 2, take_nothing, NULL, &report);
    if (code != expected || !strstr(error_text(), words) || !strstr(error_text(), path))
        fail_msg("code %d, \"%s\" instead of %d, \"… %s …\"", code, error_text(), expected, words);
    error_clear();
}

static void assert_refused(const char *text, const char *words) {
    struct source_options options = {0};
    assert_error(fixture_text("bad", text), &options, ERROR_DATA, words);
}

static void malformed_libsvm_lines_are_refused(void **state) {
    (void)state;
    assert_refused("1 1:1\n1 2\n", "bad:2: expected INDEX:VALUE but found \"2\"");
    assert_refused("1 1:1\nx 2:1\n", "bad:2: the label \"x\" is not a finite number");
    assert_refused("1 1:1\n\n1 2:\n", "bad:3: the value in \"2:\" is not a finite number");
    assert_refused("1 1:1 qid:3\n", "bad:1: expected INDEX:VALUE");
    assert_refused("1 1:1x\n", "bad:1: the value in \"1:1x\"");
    assert_refused("1:1 2:1\n", "bad:1: the line begins with \"1:1\" where its label should be");
    assert_refused("1 1:1\n1 -2:1\n", "bad:2: expected INDEX:VALUE");
}

static void indices_out_of_range_are_refused(void **state) {
    (void)state;
    assert_refused("1 1:1\n1 0:1\n", "bad:2: index 0");
    assert_refused("1 281474976710656:1\n", "bad:1: the index in \"281474976710656:1\" is over");
    assert_refused("1 99999999999999999999999:1\n", "is over the limit");
}

static void a_repeated_index_is_refused(void **state) {
    (void)state;
    assert_refused("1 1:1\n1 7:1 3:2 7:1\n", "bad:2: index 7 is repeated");
    assert_refused("1 3:1 3:2\n", "bad:1: index 3 is repeated");
}

static void nan_and_infinity_are_refused(void **state) {
    (void)state;
    assert_refused("1 1:nan\n", "bad:1: the value in \"1:nan\"");
    assert_refused("1 1:-inf\n", "bad:1");
    assert_refused("1 1:1e999\n", "bad:1");
    assert_refused("NaN 1:1\n", "bad:1: the label");
    assert_refused("1,2,0\n1,inf,1\n", "bad:2: column 2 holds \"inf\"");
}

static void csv_rows_of_another_width_are_refused(void **state) {
    (void)state;
    assert_refused("1,2,0\n1,2\n", "bad:2: a missing column: 2 columns where the first line has 3");
    assert_refused("1,2,0\n1,2,3,4\n", "bad:2: an extra column");
}

static void csv_cells_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    assert_refused("a,b,y\n1,2,0\n1,red,0\n", "bad:3: column 2 (b) holds \"red\"");
    assert_refused("a,b,y\n1,2,0\n1,1e400,0\n", "bad:3: column 2 (b) holds \"1e400\"");
    static const struct source_options numbers = {.table.numbers_only = true};
    assert_error(fixture_text("bad", "a,b,y\n1,,0\n"), &numbers, ERROR_DATA,
                 "bad:2: column 2 (b) is empty");
    assert_refused("1,2,0\n1,2,\n", "bad:2: column 3: the label is empty");
    assert_refused("1,2,0\n1,\"2,0\n", "bad:2: column 2: a quote is not closed");
}

static void unknown_csv_columns_are_refused(void **state) {
    (void)state;
    const char *path = fixture_text("bad", "a,b,y\n1,2,0\n");
    const char *const skip[] = {"z", NULL};
    struct source_options options = {.label.column = "w"};
    assert_error(path, &options, ERROR_DATA, "bad:1: there is no column \"w\"");
    options = (struct source_options){.table.skip = skip};
    assert_error(path, &options, ERROR_DATA, "bad:1: there is no column \"z\"");
    options = (struct source_options){.label.column = "4"};
    assert_error(path, &options, ERROR_DATA, "bad:1: there is no column \"4\"");
}

static void files_that_cannot_be_read_are_refused(void **state) {
    (void)state;
    struct source_options options = {0};
    assert_error(fixture_text("empty", ""), &options, ERROR_DATA, "has no rows");
    assert_error(fixture_text("blank", "\n \n# nothing\n"), &options, ERROR_DATA, "has no rows");
    assert_error(fixture_path("missing"), &options, ERROR_DATA, "cannot open");
    assert_error(fixture_folder, &options, ERROR_DATA, "is a folder");
    if (geteuid() != 0) {
        const char *path = fixture_text("secret", "1 1:1\n");
        assert_int_equal(chmod(path, 0), 0);
        assert_error(path, &options, ERROR_PERMISSION, "cannot open");
    }
}

static void truncated_and_damaged_archives_are_refused(void **state) {
    (void)state;
    struct source_options options = {0};
    char *rows = fixture_rows(0, 3000);
    struct bytes gzip;
    bytes_init(&gzip);
    fixture_gzip(&gzip, rows);
    assert_error(fixture_bytes("t.gz", gzip.data, gzip.length / 2), &options, ERROR_DATA,
                 "is truncated");
    assert_error(fixture_bytes("t.gz", gzip.data, gzip.length - 3), &options, ERROR_DATA,
                 "is truncated");
    gzip.data[gzip.length / 2] ^= 0x55;
    assert_error(fixture_bytes("d.gz", gzip.data, gzip.length), &options, ERROR_DATA, "");
    size_t bound = ZSTD_compressBound(strlen(rows));
    void *zstd = memory_new(bound, 1);
    size_t length = ZSTD_compress(zstd, bound, rows, strlen(rows), 1);
    assert_error(fixture_bytes("t.zst", zstd, length / 2), &options, ERROR_DATA, "is truncated");
    free(zstd);
    free(rows);
    bytes_release(&gzip);
}

static void more_bad_lines_than_allowed_are_an_error(void **state) {
    (void)state;
    const char *path = fixture_text("some", "1 1:1\nx\n1 2:1\ny\n-1 1:1\n");
    struct source_options options = {.bad_lines_max = 1};
    assert_error(path, &options, ERROR_DATA,
                 "some:4: the label \"y\" is not a finite number; this "
                 "is one more malformed line than the 1");
    options.bad_lines_max = 2;
    struct source_report report;
    assert_int_equal(source_read(path, &options, 2, take_nothing, NULL, &report), 0);
    assert_int_equal(report.rows, 3);
    assert_int_equal(report.rejected, 2);
    source_report_release(&report);
}

static void the_first_error_of_the_file_is_reported_whatever_the_threads(void **state) {
    (void)state;
    char *rows = fixture_rows(0, 40000);
    char *text = memory_format("%sx\n%sy\n", rows, rows);
    struct source_options options = {0};
    for (int i = 0; i < 5; i++)
        assert_error(fixture_text("long", text), &options, ERROR_DATA,
                     "long:40001: the label \"x\"");
    free(text);
    free(rows);
}

static void a_link_that_always_breaks_is_given_up_without_speaking_of_time(void **state) {
    (void)state;
    struct patience patience = {.tries = REMOTE_TRIES};
    assert_int_equal(request_wait(&patience, "s3://b/k", BROKEN, "cut", 0), ERROR_UNAVAILABLE);
    assert_string_equal(error_text(),
                        "cannot read s3://b/k: cut; gave up after 9 attempts, none of "
                        "which came further; try again later");
    error_clear();
}

SUITE(bad_input) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_libsvm_lines_are_refused),
        cmocka_unit_test(indices_out_of_range_are_refused),
        cmocka_unit_test(a_repeated_index_is_refused),
        cmocka_unit_test(nan_and_infinity_are_refused),
        cmocka_unit_test(csv_rows_of_another_width_are_refused),
        cmocka_unit_test(csv_cells_that_are_no_numbers_are_refused),
        cmocka_unit_test(unknown_csv_columns_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
        cmocka_unit_test(truncated_and_damaged_archives_are_refused),
        cmocka_unit_test(more_bad_lines_than_allowed_are_an_error),
        cmocka_unit_test(the_first_error_of_the_file_is_reported_whatever_the_threads),
        cmocka_unit_test(a_link_that_always_breaks_is_given_up_without_speaking_of_time),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
