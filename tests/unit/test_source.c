#include "data/source/paths.h"
#include "tests/unit/suites.h"
#include "base/file.h"
#include "data/csv/format.h"
#include "data/source/source.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/unit/data_fixture.h"

/* Everything that was handed out, as text. */
struct taken {
    struct bytes text;
};

static void add(struct taken *taken, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct taken *taken, const char *format, ...) {
    char word[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(word, sizeof word, format, arguments);
    va_end(arguments);
    bytes_append(&taken->text, word, (size_t)length);
}

static int take(void *context, const struct source_rows *rows) {
    struct taken *taken = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        if (rows->label_text && rows->label_text[row])
            add(taken, "%s", rows->label_text[row]);
        else
            add(taken, "%.17g", rows->label[row]);
        const uint64_t *id = source_row_ids(rows, row);
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++) {
            add(taken, " %llu:%.17g", (unsigned long long)*id++, rows->value[i]);
            if (rows->position && rows->position[i] != i - rows->start[row])
                add(taken, "@%u", rows->position[i]);
        }
        add(taken, "\n");
    }
    return 0;
}

static char *read_with(const char *path, const struct source_options *options, unsigned threads) {
    struct taken taken;
    bytes_init(&taken.text);
    struct source_report report;
    int code = source_read(path, options, threads, take, &taken, &report);
    if (code)
        fail_msg("%s", error_text());
    source_report_release(&report);
    bytes_put_u8(&taken.text, 0);
    return (char *)taken.text.data;
}

static void assert_read(const char *path, const struct source_options *options,
                        const char *expected) {
    char *text = read_with(path, options, 2);
    assert_string_equal(text, expected);
    free(text);
}

static const struct source_options plain_options;

static void libsvm_rows_are_read_as_written(void **state) {
    (void)state;
    const char *path = fixture_text("a.txt", "# a comment\n"
                                             "+1 1:0.5 7:-2e3 # the first\r\n"
                                             "\n"
                                             "-1.0\t3:1  281474976710655:4 \n"
                                             "2\n"
                                             "-0 5:0 2:1");
    assert_read(path, &plain_options,
                "1 1:0.5 7:-2000\n-1 3:1 281474976710655:4\n2\n0 2:1@1 5:0@0\n");
}

static void csv_rows_are_read_as_written(void **state) {
    (void)state;
    const char *path = fixture_text("a.csv", "\xef\xbb\xbf"
                                             "a,b,\"the, label\"\r\n"
                                             "1, 2.5 ,yes\r\n"
                                             "\r\n"
                                             "\"-3\",4,\"no, \"\"not\"\"\"\r\n");
    assert_read(path, &plain_options, "yes 1:1 2:2.5\nno, \"not\" 1:-3 2:4\n");
}

static void csv_columns_are_chosen_by_name_or_number(void **state) {
    (void)state;
    const char *path = fixture_text("b.csv", "id;y;u;v\nx1;M;1;2\nx2;B;3;4\n");
    const char *const by_name[] = {"id", NULL}, *const by_number[] = {"1", NULL};
    struct source_options options = {.label.column = "y", .table.skip = by_name};
    assert_read(path, &options, "M 3:1 4:2\nB 3:3 4:4\n");
    options = (struct source_options){.label.column = "2", .table.skip = by_number};
    assert_read(path, &options, "M 3:1 4:2\nB 3:3 4:4\n");
}

static void a_csv_without_header_keeps_its_first_row(void **state) {
    (void)state;
    const char *path = fixture_text("c.csv", "1\t2\tyes\n3\t4\tno\n");
    assert_read(path, &plain_options, "yes 1:1 2:2\nno 1:3 2:4\n");
}

static int take_nothing(void *context, const struct source_rows *rows) {
    (void)context, (void)rows;
    return 0;
}

/* Whether the first line of the text is taken for a header. */
static bool has_header(const char *text) {
    struct source_options options = {.format = FORMAT_CSV, .bad_lines_max = 9};
    struct source_report report;
    assert_int_equal(
        source_read(fixture_text("h.csv", text), &options, 1, take_nothing, NULL, &report), 0);
    bool has = report.column_names != NULL;
    assert_int_equal(report.rejected + report.rows + has, 3);
    source_report_release(&report);
    return has;
}

/* Changes the file while its first block is handed out. */
static int take_and_change(void *context, const struct source_rows *rows) {
    (void)rows;
    FILE *file = fopen(context, "r+");
    assert_non_null(file);
    fputs("-1", file);
    fclose(file);
    return 0;
}

static void a_file_that_changes_while_it_is_read_is_refused_by_name(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        char *text = fixture_rows(0, 20000);
        char *path = memory_copy_string(fixture_text("changing", text));
        struct source_report report;
        usleep(20000); /* the clock of files has ticked */
        assert_int_equal(source_read(path, &plain_options, threads, take_and_change, path, &report),
                         ERROR_DATA);
        assert_non_null(strstr(error_text(), "changing was changed while it was read"));
        error_clear();
        free(path);
        free(text);
    }
}

#define TWO_ROWS "\n5,3,1\n4,2,0\n"

static void names_above_numbers_are_a_header(void **state) {
    (void)state;
    static const char *const headers[] = {"a,b,y",
                                          ",b,y",
                                          "sepal length,sepal width,class",
                                          "\"a\",\"b\",y",
                                          "information,nan_count,y",
                                          "gr\xc3\xb6\xc3\x9f,x1,y"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char *text = memory_format("%s" TWO_ROWS, headers[i]);
        if (!has_header(text))
            fail_msg("%s is taken for a row", headers[i]);
        free(text);
    }
    /* most of them are */
    assert_true(has_header("1stFlrSF,Na,area,rooms,y\n856,12,4,3,1\n9,8,7,6,0\n"));
    assert_true(has_header("a,b,y\nx,z,1\n4,2,0\n"));
    assert_true(has_header("a,b,y\nx,\"z,1\n4,2,0\n")); /* what is wrong there is said */
}

/* As pandas and R write a table, and as pandas writes what it has read so: once, and again. */
static void a_nameless_first_column_is_an_index(void **state) {
    const char *const headers[] = {",a,b", "\"\",a,b", "Unnamed: 0,a,b", "a,b,Unnamed: 0.1",
                                   "a,b,__index_level_0__"};
    const struct source_options other = {.label.column = "b",
                                         .table.numbers = (const char *const[]){"1", "2", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const bool behind = *headers[i] == 'a';
        char *text = memory_format("%s\n%s1\n%s0\n", headers[i], behind ? "7,0," : "1,7,",
                                   behind ? "8,1," : "0,8,");
        assert_read(fixture_text("t.csv", text), &plain_options,
                    behind ? "0 1:7\n1 1:8\n" : "1 2:7\n0 2:8\n");
        if (!behind)
            assert_read(fixture_text("t.csv", text), &other, "1 1:1 2:7\n0 1:0 2:8\n");
        free(text);
    }
    /* no name of an index */
    assert_read(fixture_text("t.csv", "Unnamed: 1,a,b\n1,7,1\n"), &plain_options, "1 1:1 2:7\n");
    assert_read(fixture_text("t.csv", "a,,b\n1,7,1\n"), &plain_options, "1 1:1 2:7\n");
    assert_read(fixture_text("t.csv", ",,b\n1,7,1\n"), &plain_options, "1 1:1 2:7\n");
}

/* A stray quote and the next one enclose rows. */
static void a_quoted_text_takes_in_no_rows(void **state) {
    static const struct {
        const char *text;
        uint64_t line; /* that is refused; 0: the rows are read */
        uint64_t rows;
    } cases[] = {
        {"t,x,y\na,1,0\n\"a,2,1\nb,3,0\nb\",4,1\n", 3, 4},
        {"t,x,y\na,1,0\n\"a,2,1\nb\",4,1\n", 3, 3},        /* rows beside each other */
        {"x,t,y\n1,a,0\n\"2,a,1\n3,b,0\n4\",b,1\n", 3, 4}, /* the quote is at a number */
        {"t,u,y\na,c,0\n\"a,d,1\nb,c,0\nb\",d,1\n", 3, 4}, /* there are no numbers */
        {"\"t,x,y\na,1,0\nb\",3,0\nc,1,1\n", 1, 3},        /* the line of names */
        /* texts that are as they should be */
        {"t,x,y\na,1,0\n\"12 Main St, Rome, Italy\nEurope\",2,1\n", 0, 2},
        {"t,y\n\"so, it is\nwell, then\nbye\",1\n\"a, b\nc\",0\n", 0, 2},
        {"t,x,y\n\"1,2\n3,4,5\n6\",2,1\n", 0, 1},
        {"\"weight,\nkg\",x,y\n1,2,0\n", 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum csv_quote quote = CSV_QUOTE_AUTO; quote < CSV_QUOTES; quote++) {
            struct source_options options = {.syntax.quote = quote,
                                             .syntax.header = CSV_HEADER_YES};
            struct source_report report;
            struct taken taken;
            bytes_init(&taken.text);
            options.table.categories =
                (const char *const[]){"1", NULL}; /* "t and t are the same here */
            const char *path = fixture_text("q.csv", cases[i].text);
            const bool refused = quote == CSV_QUOTE_AUTO && cases[i].line;
            if (quote == CSV_QUOTE_NONE && !cases[i].line)
                continue;
            int code = source_read(path, &options, 2, take, &taken, &report);
            if (code != (refused ? ERROR_DATA : 0))
                fail_msg("case %zu, quote %d: %d: %s", i, (int)quote, code, error_text());
            if (refused) {
                char *where =
                    memory_format("q.csv:%llu: a quoted", (unsigned long long)cases[i].line);
                if (!strstr(error_text(), where) || !strstr(error_text(), "csv.quote = none"))
                    fail_msg("%s", error_text());
                free(where);
                error_clear();
            } else {
                if (quote == CSV_QUOTE_NONE || !cases[i].line)
                    assert_int_equal(report.rows, cases[i].rows);
                source_report_release(&report);
            }
            bytes_release(&taken.text);
        }
}

static void comments_are_no_rows_wherever_they_stand(void **state) {
    const struct source_options options = {.syntax.comment = "#"};
    (void)state;
    assert_read(
        fixture_text("c.csv", "# a \"table\n#,\"\na,y\n1,0\n#\"x,\n\n#2,0\n3,1\n\"4\",0\n#"),
        &options, "0 1:1\n1 1:3\n0 1:4\n");
}

static void times_in_cells_make_no_libsvm(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum source_format format;
    } cases[] = {
        {"07:08,3.5,1\n", FORMAT_CSV},
        {"1,2024-05-06 07:08,3.5\n", FORMAT_CSV},
        {"1;12:30;4\n", FORMAT_CSV},
        {"12:30\t4\t1\n", FORMAT_CSV},
        {"1\t13:10\t12:45\n", FORMAT_CSV},
        {"1\t07:30\n", FORMAT_CSV},
        {"1 3:0.5 7:-1e-3\n", FORMAT_LIBSVM},
        {"1\t3:0.5\t7:1\n", FORMAT_LIBSVM},
        {"1 7:2 3:1\n", FORMAT_LIBSVM},
        {"1,2 7:2 3:1\n", FORMAT_LIBSVM},
        {"1,2 7:2 # at 07:30, or later, or never\n", FORMAT_LIBSVM},
        {"3:0.5\t7:1\n", FORMAT_LIBSVM},
        {"1 3:x 4:1\n", FORMAT_LIBSVM},
        {"1\n", FORMAT_LIBSVM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct format format;
        char *text = memory_copy_string(cases[i].text);
        format_find(&format, "times", text, strlen(text), &plain_options);
        if (format.kind != cases[i].format)
            fail_msg("%s", cases[i].text);
        format_release(&format);
        free(text);
        error_clear();
    }
}

static void a_line_that_may_be_a_row_is_no_header(void **state) {
    (void)state;
    static const char *const rows[] = {
        "5,,1",         ",3,1",  "5,x,1",   "1.2.3,4,1", "NA,NA,yes",      "nan,inf,yes", "?,?,yes",
        "12kg,7cm,yes", "a,2,1", "-,-,yes", ",,",        "0x1F,1e999,yes", "N/A,,no"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = memory_format("%s" TWO_ROWS, rows[i]);
        if (has_header(text))
            fail_msg("%s is taken for a header", rows[i]);
        free(text);
    }
    assert_false(has_header("red,small,yes\nblue,large,no\n5,3,1\n"));
}

static void rows_without_label_are_taken_when_asked_for(void **state) {
    (void)state;
    struct source_options options = {.label.optional = true};
    assert_read(fixture_text("d.txt", "1:2 3:4\n1 1:1\n"), &options, "nan 1:2 3:4\n1 1:1\n");
    options.label.column = "3";
    assert_read(fixture_text("d.csv", "1,2\n3,4\n"), &options, "nan 1:1 2:2\nnan 1:3 2:4\n");
}

static void gzip_and_zstd_are_told_by_content(void **state) {
    (void)state;
    struct bytes gzip;
    bytes_init(&gzip);
    fixture_gzip(&gzip, "1 1:1\n-1 ");
    fixture_gzip(&gzip, "2:1\n");
    assert_read(fixture_bytes("e.dat", gzip.data, gzip.length), &plain_options, "1 1:1\n-1 2:1\n");
    bytes_release(&gzip);
    char zstd[256];
    static const char text[] = "1 1:1\n-1 2:1\n";
    size_t length = ZSTD_compress(zstd, sizeof zstd, text, strlen(text), 3);
    assert_read(fixture_bytes("f.dat", zstd, length), &plain_options, text);
}

static void many_threads_give_what_one_gives(void **state) {
    (void)state;
    char *rows = fixture_rows(0, 30000);
    struct bytes gzip;
    bytes_init(&gzip);
    fixture_gzip(&gzip, rows);
    const char *path = fixture_bytes("g.gz", gzip.data, gzip.length);
    char *one = read_with(path, &plain_options, 1), *four = read_with(path, &plain_options, 4);
    assert_true(strlen(rows) > 4u << 18); /* several blocks */
    assert_string_equal(one, four);
    free(one);
    free(four);
    free(rows);
    bytes_release(&gzip);
}

static void the_report_says_what_was_read(void **state) {
    (void)state;
    const char *path = fixture_text("h.csv", "a,b,y\n1,2,0\n3,x,1\n5,6,1\n");
    struct source_options options = {.bad_lines_max = 1};
    struct source_report report;
    struct taken taken;
    bytes_init(&taken.text);
    assert_int_equal(source_read(path, &options, 2, take, &taken, &report), 0);
    assert_int_equal(report.format, FORMAT_CSV);
    assert_int_equal(report.rows, 2);
    assert_int_equal(report.values, 4);
    assert_int_equal(report.bytes, 24);
    assert_int_equal(report.label_column, 3);
    assert_string_equal(report.column_names[1], "b");
    assert_int_equal(report.rejected, 1);
    assert_non_null(strstr(report.rejected_reasons[0], "h.csv:3: column 2 (b) holds \"x\""));
    assert_null(report.rejected_reasons[1]);
    source_report_release(&report);
    bytes_release(&taken.text);
}

static int stop(void *context, const struct source_rows *rows) {
    (void)context, (void)rows;
    return error_set(ERROR_AGAIN, "enough");
}

static void the_taker_can_end_the_reading(void **state) {
    (void)state;
    struct source_report report;
    char *rows = fixture_rows(0, 20000);
    assert_int_equal(
        source_read(fixture_text("i.txt", rows), &plain_options, 3, stop, NULL, &report),
        ERROR_AGAIN);
    assert_string_equal(error_text(), "enough");
    error_clear();
    free(rows);
}

static void globs_are_expanded_bytewise_each_file_once(void **state) {
    (void)state;
    fixture_text("part-B", "1");
    fixture_text("part-a", "1");
    fixture_text("part-10", "1");
    const char *const patterns[] = {"part-*", "part-a", NULL};
    char **paths;
    assert_int_equal(source_paths(fixture_folder, patterns, &paths), 0);
    assert_string_equal(paths[0], fixture_path("part-10"));
    assert_string_equal(paths[1], fixture_path("part-B"));
    assert_string_equal(paths[2], fixture_path("part-a"));
    assert_null(paths[3]); /* the second one is left out */
    names_free(paths);
}

/* Makes FOLDER/NAME with `text`. */
static void put_file(const char *folder, const char *name, const char *text) {
    char *path = path_join(fixture_path(folder), name);
    assert_int_equal(folder_make(fixture_path(folder), 0755), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void assert_only_match(const char *folder, const char *pattern, const char *expected) {
    const char *const patterns[] = {pattern, NULL};
    char **paths;
    assert_int_equal(source_paths(folder, patterns, &paths), 0);
    assert_string_equal(paths[0], expected);
    assert_null(paths[1]);
    names_free(paths);
}

static void only_what_was_written_is_a_pattern_and_no_folder_that_is_there(void **state) {
    (void)state;
    const char *const names[] = {"v[1]", "v?", "v*", "v\\[1]", "v[!2]"};
    put_file("v1", "rows.csv", "1");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *folder = memory_copy_string(fixture_path(names[i]));
        char *expected = path_join(folder, "rows.csv");
        char *behind = memory_format("%s/*.csv", names[i]);
        char *whole = memory_format("%s/*.csv", folder);
        put_file(names[i], "rows.csv", "1");
        assert_only_match(folder, "*.csv", expected);
        assert_only_match(fixture_folder, behind, expected);
        assert_only_match("elsewhere", whole, expected);
        free(folder);
        free(expected);
        free(behind);
        free(whole);
    }
    const char *const missing[] = {"w[1]/*.csv", NULL}, *const there[] = {"v[1]", NULL};
    char **paths;
    assert_only_match(fixture_folder, "[v]1/r*", fixture_path("v1/rows.csv"));
    assert_int_equal(source_paths(fixture_folder, missing, &paths), ERROR_DATA);
    assert_non_null(strstr(error_text(), "w[1]/*.csv"));
    error_clear();
    assert_int_equal(source_paths(fixture_folder, there, &paths), 0);
    assert_string_equal(paths[0], fixture_path("v[1]/rows.csv"));
    names_free(paths);
}

static void a_glob_without_match_is_an_error(void **state) {
    (void)state;
    const char *const none[] = {"nothing-*", NULL}, *const pipe[] = {"pip[e]", NULL};
    char **paths;
    assert_int_equal(mkfifo(fixture_path("pipe"), 0600), 0);
    assert_int_equal(source_paths(fixture_folder, none, &paths), ERROR_DATA);
    assert_non_null(strstr(error_text(), "nothing-*"));
    error_clear();
    assert_int_equal(source_paths(fixture_folder, pipe, &paths), ERROR_DATA);
    assert_non_null(strstr(error_text(), "pipe is not a regular file"));
    error_clear();
}

static void assert_cannot_look(const char *pattern, const char *what) {
    const char *const patterns[] = {pattern, NULL};
    char **paths;
    assert_int_equal(source_paths(fixture_folder, patterns, &paths), ERROR_IO);
    if (!strstr(error_text(), what))
        fail_msg("%s", error_text());
    error_clear();
}

/* Root may read any folder, but nobody without a descriptor. */
static void what_a_glob_cannot_look_at_is_an_error_and_not_left_out(void **state) {
    (void)state;
    struct rlimit limit, none;
    fixture_text("linked-a", "1");
    assert_int_equal(symlink("nowhere", fixture_path("linked-b")), 0);
    assert_cannot_look("linked-*", "linked-b");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_cannot_look("linked-a*", "cannot look into");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* ---- three parts ---- */

struct halves {
    uint64_t taken;
    atomic_ullong finished, strange;
    uint64_t fails_at; /* the block whose second half fails, from 1; 0: none */
};

static int prepare(void *context, const struct source_rows *rows) {
    (void)context;
    bytes_clear(rows->workspace);
    bytes_append(rows->workspace, &rows->count, sizeof rows->count);
    return 0;
}

static int take_first_half(void *context, const struct source_rows *rows) {
    struct halves *halves = context;
    uint32_t prepared = 0;
    if (rows->workspace->length == sizeof prepared)
        memcpy(&prepared, rows->workspace->data, sizeof prepared);
    halves->taken += prepared;
    bytes_clear(rows->workspace);
    bytes_append(rows->workspace, &rows->first_line, sizeof rows->first_line);
    return 0;
}

/* No assertions here: this runs in many threads. */
static int take_second_half(void *context, const struct source_rows *rows) {
    struct halves *halves = context;
    bool same = rows->workspace->length == sizeof rows->first_line &&
                !memcmp(rows->workspace->data, &rows->first_line, sizeof rows->first_line);
    halves->strange += !same;
    halves->finished += rows->count;
    if (halves->fails_at && rows->first_line >= halves->fails_at)
        return error_set(ERROR_IO, "the disk is full");
    return 0;
}

static void each_part_gets_each_block_once_and_the_last_may_fail(void **state) {
    (void)state;
    enum { ROWS = 100000 };
    char *text = memory_new(ROWS, 32), *end = text;
    for (unsigned row = 0; row < ROWS; row++)
        end += sprintf(end, "%u 1:%u 2:0.5 3:4\n", row % 2, row);
    const char *path = fixture_bytes("halves", text, (size_t)(end - text));
    const struct source_parts parts = {prepare, take_first_half, take_second_half};
    for (unsigned threads = 1; threads <= 5; threads += SANITIZED ? 2 : 1) {
        struct source_report report;
        struct halves halves = {0};
        assert_int_equal(
            source_read_in_parts(path, &plain_options, threads, &parts, &halves, &report), 0);
        assert_int_equal(halves.taken, ROWS);
        assert_int_equal(halves.finished, ROWS);
        assert_int_equal(halves.strange, 0);
        source_report_release(&report);
        struct halves failing = {.fails_at = ROWS / 2};
        assert_int_equal(
            source_read_in_parts(path, &plain_options, threads, &parts, &failing, &report),
            ERROR_IO);
        assert_string_equal(error_text(), "the disk is full");
        error_clear();
    }
    free(text);
}

SUITE(source) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libsvm_rows_are_read_as_written),
        cmocka_unit_test(each_part_gets_each_block_once_and_the_last_may_fail),
        cmocka_unit_test(csv_rows_are_read_as_written),
        cmocka_unit_test(csv_columns_are_chosen_by_name_or_number),
        cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused_by_name),
        cmocka_unit_test(names_above_numbers_are_a_header),
        cmocka_unit_test(a_nameless_first_column_is_an_index),
        cmocka_unit_test(a_quoted_text_takes_in_no_rows),
        cmocka_unit_test(comments_are_no_rows_wherever_they_stand),
        cmocka_unit_test(times_in_cells_make_no_libsvm),
        cmocka_unit_test(a_line_that_may_be_a_row_is_no_header),
        cmocka_unit_test(a_csv_without_header_keeps_its_first_row),
        cmocka_unit_test(rows_without_label_are_taken_when_asked_for),
        cmocka_unit_test(gzip_and_zstd_are_told_by_content),
        cmocka_unit_test(many_threads_give_what_one_gives),
        cmocka_unit_test(the_report_says_what_was_read),
        cmocka_unit_test(the_taker_can_end_the_reading),
        cmocka_unit_test(globs_are_expanded_bytewise_each_file_once),
        cmocka_unit_test(only_what_was_written_is_a_pattern_and_no_folder_that_is_there),
        cmocka_unit_test(a_glob_without_match_is_an_error),
        cmocka_unit_test(what_a_glob_cannot_look_at_is_an_error_and_not_left_out),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
