/* The column of the rows' weights in CSV files. */
#include "tests/unit/suites.h"
#include "data/set/holdout.h"
#include "data/pack/pack_file.h"
#include "tests/unit/data_fixture.h"

static int make_pack(const char *text, const struct source_options *options, struct pack **pack) {
    bool made;
    return pack_of_source(fixture_path("packs"), fixture_text("data.csv", text), options, 2, pack,
                          &made);
}

static struct pack *packed(const char *text, const struct source_options *options) {
    struct pack *pack;
    if (make_pack(text, options, &pack))
        fail_msg("%s", error_text());
    return pack;
}

static void assert_weights(const char *text, const struct source_options *options,
                           const double expected[3]) {
    struct pack *pack = packed(text, options);
    struct pack_rows rows = pack_rows(pack, 0);
    assert_int_equal(rows.rows, 3);
    assert_memory_equal(rows.weight, expected, 3 * sizeof *expected);
    pack_close(pack);
}

static const double three[] = {0.5, 300, 0};

static void the_column_is_given_by_name_or_by_number(void **state) {
    (void)state;
    const char *text = "a,w,b,y\n1,0.5,2,x\n3,\"3e2\",4,y\n5, 0 ,6,x\n";
    struct source_options options = {.property.column[ROW_WEIGHT] = "w"};
    assert_weights(text, &options, three);
    options.property.column[ROW_WEIGHT] = "2";
    assert_weights(text, &options, three);
    assert_weights(strchr(text, '\n') + 1, &options, three);
    struct pack *pack = packed(text, &options);
    static const uint64_t ids[] = {1, 3}; /* it is no feature, and moves no other */
    assert_int_equal(pack->facts->features, 2);
    assert_memory_equal(pack->id, ids, sizeof ids);
    pack_close(pack);
}

static void assert_refused(const char *text, const struct source_options *options,
                           const char *words) {
    struct pack *pack;
    if (make_pack(text, options, &pack) != ERROR_DATA || !strstr(error_text(), words))
        fail_msg("\"%s\" instead of \"%s\"", error_text(), words);
    error_clear();
}

static void a_cell_that_is_no_weight_is_a_bad_line(void **state) {
    (void)state;
    static const char *const cells[] = {"x", "-1", "nan", "inf", "1e308", "?", "1e999"};
    struct source_options options = {.property.column[ROW_WEIGHT] = "w"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        char text[100], words[100];
        snprintf(text, sizeof text, "a,w,y\n1,2,0\n2,%s,1\n3,1,0\n", cells[i]);
        snprintf(words, sizeof words, "data.csv:3: column 2 (w) holds \"%s\", which is no weight",
                 cells[i]);
        options.bad_lines_max = 0;
        assert_refused(text, &options, words);
        options.bad_lines_max = 1;
        struct pack *pack = packed(text, &options);
        assert_int_equal(pack->facts->rows, 2);
        assert_true(pack_rows(pack, 0).weight[0] == 2 && pack_rows(pack, 0).weight[1] == 1);
        pack_close(pack);
    }
    options.bad_lines_max = 0;
    assert_refused("a,w,y\n1,,0\n", &options, "data.csv:2: column 2 (w): the weight is empty");
}

static void a_column_has_one_meaning(void **state) {
    (void)state;
    const char *text = "a,b,w,y\n1,1,2,0\n2,2,1,1\n3,1,1,1\n", *const list[] = {"w", NULL};
    struct source_options options = {.property.column[ROW_WEIGHT] = "v"};
    assert_refused(text, &options, "there is no column \"v\" to take the weight from");
    options.property.column[ROW_WEIGHT] = "y";
    assert_refused(text, &options, "is the label, since it is the last; name that of the labels");
    options.label.column = "w";
    options.property.column[ROW_WEIGHT] = "w";
    assert_refused(text, &options, "\"w\" cannot be csv.weight: it is the label");
    options = (struct source_options){.property.column[ROW_WEIGHT] = "w", .table.skip = list};
    assert_refused(text, &options, "\"w\" cannot be csv.weight: it is left out by csv.skip");
    options = (struct source_options){.property.column[ROW_WEIGHT] = "3", .table.numbers = list};
    assert_refused(text, &options, "\"3\" cannot be csv.weight: it is a feature");
}

/* Other files are read by the table of the first. */
static void other_files_may_have_it_elsewhere_or_not_at_all(void **state) {
    (void)state;
    struct source_options options = {.property.column[ROW_WEIGHT] = "w"};
    struct pack *first = packed("a,w,b,y\n1,0.5,2,x\n3,3e2,4,y\n5,0,6,x\n", &options);
    struct source_report report;
    pack_report(first, &report);
    pack_close(first);
    options = (struct source_options){.table.known = report.table};
    assert_weights("w,y,b,a\n0.5,x,1,2\n300,y,1,2\n0,x,1,2\n", &options, three);
    assert_weights("7,0.5,1,x\n7,300,1,y\n7,0,1,x\n", &options, three);
    struct pack *without = packed("y,b,a\nx,1,2\ny,1,2\n", &options);
    assert_null(pack_rows(without, 0).weight);
    pack_close(without);
    options.property.ignores_weights = true;
    without = packed("w,y,b,a\n,x,1,2\n300,y,1,2\n-1,x,1,2\n", &options);
    assert_null(pack_rows(without, 0).weight);
    pack_close(without);
    options =
        (struct source_options){.table.known = report.table, .property.column[ROW_WEIGHT] = "w"};
    assert_refused("y,b,a\nx,1,2\ny,1,2\n", &options, "no column \"w\" to take the weight from");
    options.property.column[ROW_WEIGHT] = "v";
    assert_weights("v,y,b,a\n0.5,x,1,2\n300,y,1,2\n0,x,1,2\n", &options, three);
    source_report_release(&report);
}

static int take_hashes(void *context, const struct source_rows *rows) {
    uint64_t *hash = context;
    for (uint32_t row = 0; row < rows->count; row++)
        hash[row] = holdout_hash(rows, row);
    return 0;
}

static void a_row_is_held_out_whatever_it_weighs(void **state) {
    (void)state;
    uint64_t one[2], other[2];
    struct source_options options = {.property.column[ROW_WEIGHT] = "w"};
    struct pack *pack = packed("a,b,w,y\n1,2,7,x\n3,4,8,y\n", &options);
    assert_int_equal(pack_read(pack, take_hashes, one), 0);
    pack_close(pack);
    options = (struct source_options){.table.skip = (const char *const[]){"w", NULL}};
    pack = packed("a,b,w,y\n1,2,7,x\n3,4,8,y\n", &options);
    assert_int_equal(pack_read(pack, take_hashes, other), 0);
    pack_close(pack);
    assert_memory_equal(one, other, sizeof one);
}

SUITE(csv_weight) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_column_is_given_by_name_or_by_number),
        cmocka_unit_test(a_cell_that_is_no_weight_is_a_bad_line),
        cmocka_unit_test(a_column_has_one_meaning),
        cmocka_unit_test(other_files_may_have_it_elsewhere_or_not_at_all),
        cmocka_unit_test(a_row_is_held_out_whatever_it_weighs),
    };
    return cmocka_run_group_tests_name("csv weight", tests, fixture_set_up, fixture_tear_down);
}
