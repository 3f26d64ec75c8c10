#include "tests/unit/suites.h"
#include "data/table/table.h"

#include "data/set/set_file.h"
#include "tests/unit/data_fixture.h"

/* What was handed out: a row is its label and its features by name. */
struct taken {
    struct bytes text;
    const struct source_report *report;
};

static void put(struct taken *taken, const char *text) {
    bytes_append(&taken->text, text, strlen(text));
}

static int take(void *context, const struct source_rows *rows) {
    struct taken *taken = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        const uint64_t *id = source_row_ids(rows, row);
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++) {
            const struct source_origin *origin = rows->origin ? &rows->origin[i] : NULL;
            uint64_t here = id[i - rows->start[row]];
            uint32_t column = origin ? origin->column : (uint32_t)here - 1;
            enum feature_role role = origin ? origin->role : ROLE_NUMBER;
            char *name = table_feature_name(taken->report->table, column, role,
                                            origin && origin->text ? origin->text : "");
            char *word = memory_format("%s:%g ", name, rows->value[i]);
            if (i > rows->start[row])
                assert_true(here > id[i - rows->start[row] - 1]);
            put(taken, word);
            free(word);
            free(name);
        }
        put(taken, "\n");
    }
    return 0;
}

static int read_with(const char *text, const struct source_options *options, struct taken *taken,
                     struct source_report *report) {
    *taken = (struct taken){.report = report};
    int code = source_read(fixture_text("table", text), options, 2, take, taken, report);
    bytes_put_u8(&taken->text, 0);
    return code;
}

static void assert_has(const char *text, const struct source_options *options,
                       const char *const *words) {
    struct taken taken;
    struct source_report report;
    if (read_with(text, options, &taken, &report))
        fail_msg("%s", error_text());
    for (; *words; words++)
        if (!strstr((const char *)taken.text.data, *words))
            fail_msg("\"%s\" is not in \"%s\"", *words, (const char *)taken.text.data);
    source_report_release(&report);
    bytes_release(&taken.text);
}

static void assert_lacks(const char *text, const struct source_options *options,
                         const char *words) {
    struct taken taken;
    struct source_report report;
    if (!read_with(text, options, &taken, &report) || !strstr(error_text(), words))
        fail_msg("\"%s\" instead of \"%s\"", error_text(), words);
    error_clear();
    bytes_release(&taken.text);
}

static const struct source_options usual = {.format = FORMAT_CSV, .table.trim = true};

static void a_column_is_what_most_of_its_cells_are(void **state) {
    (void)state;
    static const char *const words[] = {"\na:1 b=x:1 \n", "\na:2 b=7:1 \n", "\na:3 b=y:1 \n", NULL};
    assert_has("a,b,y\n0,z,0\n1,x,1\n2,7,0\n3,y,1\n", &usual, words);
    assert_lacks("a,b,y\n1,x,1\n2,x,0\no,y,1\n", &usual, "table:4: column 1 (a) holds \"o\"");
}

static void missing_cells_are_marked(void **state) {
    (void)state;
    static const char *const words[] = {"a=(missing):1", "b=(missing):1", "b=\"(missing)\":1",
                                        NULL};
    assert_has("a,b,y\n1,x,1\n,?,0\n2,(missing),0\nNA,,1\n5,(rare),1\n", &usual, words);
    static const char *const own[] = {"-", NULL};
    struct source_options options = usual;
    options.table.missing = own;
    static const char *const others[] = {"b=?:1", "a=(missing):1", NULL};
    assert_has("a,b,y\n1,x,1\n-,?,0\n2,NA,0\n", &options, others);
    assert_lacks("a,b,y\n1,x,-\n", &options, "table:2: column 3 (y): the label is missing");
}

static void a_label_may_be_a_word_for_a_missing_cell(void **state) {
    (void)state;
    static const char *const words[] = {"a:1", NULL};
    assert_has("a,y\n1,none\n2,some\n", &usual, words);
    assert_lacks("a,y\n1,none\n2,\n", &usual, "table:3: column 2 (y): the label is empty");
}

static void blanks_around_a_text_count_if_the_job_says_so(void **state) {
    (void)state;
    static const char *const trimmed[] = {"b=x:1", "b=y z:1", NULL};
    assert_has("a,b,y\n1, x ,1\n2,\" y z\t\",0\n", &usual, trimmed);
    struct source_options options = usual;
    options.table.trim = false;
    static const char *const kept[] = {"b= x :1", "b= y z\t:1", NULL};
    assert_has("a,b,y\n1, x ,1\n2,\" y z\t\",0\n", &options, kept);
}

static void crosses_are_read_back_from_text(void **state) {
    (void)state;
    struct table *table = table_new(3), *other;
    table->column[1].kind = COLUMN_CATEGORY;
    static const char *const list[] = {"3 * 1", "pairs", "1*3", NULL};
    assert_int_equal(table_find_crosses(table, list, true), 0);
    assert_int_equal(table->crosses, 3);
    assert_true(table->cross_value == 1);
    char *text = table_text(table);
    assert_int_equal(table_of_text(text, "table", &other), 0);
    char *again = table_text(other), *name = table_cross_name(other, &other->cross[1]);
    assert_string_equal(again, text);
    assert_string_equal(name, "1 * 3");
    table_free(table);
    table_free(other);
    free(name);
    free(again);
    free(text);
}

static void a_feature_of_a_cross_is_not_that_of_a_smaller_one(void **state) {
    (void)state;
    static const char *const list[] = {"a*b", "a*c", "a*b*c", "b*c", NULL};
    struct table *table = table_new(3);
    for (uint32_t i = 0; i < 3; i++) {
        table_set_name(&table->column[i], (const char *const[]){"a", "b", "c"}[i]);
        table->column[i].kind = COLUMN_CATEGORY;
    }
    assert_int_equal(table_find_crosses(table, list, true), 0);
    static const char *const of[][2] = {{"a=1 * b=2", "a * b"},
                                        {"a=1 * c=b", "a * c"},
                                        {"a=1 * b=2 * c=3", "a * b * c"},
                                        {"b=2 * c=(missing)", "b * c"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *cross = table_cross_name(table, &table->cross[table_cross_of(table, of[i][0])]);
        assert_string_equal(cross, of[i][1]);
        free(cross);
    }
    assert_int_equal(table_cross_of(table, "c=3"), table->crosses);
    table_free(table);
}

static void crosses_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const char *const lists[] = {"[[1]]",           "[[2,1]]",    "[[1,1]]", "[[0,1]]",
                                        "[[1,3]]",         "[[1,2.0]]",  "[[1,4]]", "[1]",
                                        "[[1,2,4,5,6,7]]", "[[1,\"2\"]]"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct table *table;
        char *text =
            memory_format("{\"columns\":[{\"kind\":\"number\"},{\"kind\":\"category\"},{\"kind\":"
                          "\"label\"}],\"missing\":[],\"trim\":true,\"ids\":2,\"crosses\":%s}",
                          lists[i]);
        assert_int_not_equal(table_of_text(text, "table", &table), 0);
        error_clear();
        free(text);
    }
}

static void the_value_of_crosses_falls_with_their_number(void **state) {
    (void)state;
    assert_true(table_cross_value(3) == 1 && table_cross_value(4) == 0.5);
    assert_true(table_cross_value(91) == 0.125 && table_cross_value(CROSSES_MAX) == 1.0 / 256);
}

static void columns_of_one_name_keep_their_order(void **state) {
    (void)state;
    struct taken taken;
    struct source_report report, other;
    assert_int_equal(read_with("a,a,y,b\n1,2,0,3\n4,5,1,6\n",
                               &(struct source_options){.label.column = "y"}, &taken, &report),
                     0);
    bytes_release(&taken.text);
    struct source_options options = {.table.known = report.table};
    assert_int_equal(read_with("b,a,y,a\n3,1,0,2\n", &options, &taken, &other), 0);
    assert_string_equal((const char *)taken.text.data, "a:1 a:2 b:3 \n");
    source_report_release(&other);
    bytes_release(&taken.text);
    assert_lacks("b,a,y\n3,1,0\n", &options, "table:1: the column \"a\" is missing");
    source_report_release(&report);
}

static void lists_that_contradict_each_other_are_refused(void **state) {
    (void)state;
    static const char *const a[] = {"a", NULL}, *const y[] = {"y", NULL};
    struct source_options options = {.table.numbers = a, .table.categories = a};
    assert_lacks("a,y\n1,0\n", &options,
                 "column \"a\" is named by csv.numbers and by csv.categories");
    options = (struct source_options){.table.categories = y};
    assert_lacks("a,y\n1,0\n", &options, "and is the label");
}

static void numbers_with_a_decimal_comma_are_refused_or_read(void **state) {
    (void)state;
    static const char text[] = "a;b;y\n1,5;x;0\n2;z;1\n-3,25;x;1\n";
    assert_lacks(text, &usual,
                 "column 1 (a) holds texts such as \"1,5\": if the comma is a decimal");
    assert_lacks("1,5;0\n2,5;1\n", &usual, "column 1 holds texts such as \"1,5\"");
    assert_lacks("a;y\n1;0,5\n2;0,25\n", &usual, "column 2 (y) holds texts such as \"0,5\"");
    assert_lacks("a;y\n1;0\n2;1\n3,5;1\nx;0\n", &usual, "table:4: column 1 (a) holds \"3,5\"");
    struct source_options options = usual;
    options.syntax.decimal = ",";
    static const char *const numbers[] = {"a:1.5 b=x:1", "a:2 b=z:1", "a:-3.25 b=x:1", NULL};
    assert_has(text, &options, numbers);
    static const char *const quoted[] = {"a:1.5 ", "a:0.25 ", NULL};
    assert_has("a,y\n\"1,5\",0\n\"0,25\",1\n", &options, quoted);
    assert_lacks("a;y\n1,5;0\n2,5;1\n1.234;0\n", &options, "list the column in csv.amounts");
    options.syntax.decimal = ".";
    static const char *const texts[] = {"a=1,5:1", "a=2:1", NULL};
    assert_has(text, &options, texts);
}

static void the_delimiter_is_what_parts_columns(void **state) {
    (void)state;
    static const char *const one[] = {"a,b:1 c:2", NULL}, *const other[] = {"a;b:1 c:2", NULL};
    assert_has("\"a,b\";c;y\n1;2;0\n", &usual, one);
    assert_has("\"a;b\",c,y\n1,2,0\n", &usual, other);
    static const char *const lines[] = {"a\nb:1 c:2", NULL}, *const bars[] = {"a:1 b:2", NULL};
    assert_has("\"a\nb\",c,y\n1,2,0\n", &usual, lines);
    assert_has("a|b|y\n1|2|0\n", &(struct source_options){0}, bars);
    struct source_options options = {.syntax.delimiter = "!"};
    assert_has("a!b!y\n1!2!0\n", &options, bars);
    options.syntax.delimiter = "tab";
    static const char *const commas[] = {"a,b:1 c:2", NULL};
    assert_has("a,b\tc\ty\n1\t2\t0\n", &options, commas);
}

static void a_label_of_several_lines_is_refused(void **state) {
    (void)state;
    assert_lacks("a,y\n1,\"u\nv\"\n2,w\n", &usual, "table:2: column 2 (y): the label has a line");
}

static void a_table_comes_back_as_it_was_stored(void **state) {
    (void)state;
    struct taken taken;
    struct source_report report;
    assert_int_equal(read_with("a,b\xff,y\n1,x,1\n", &usual, &taken, &report), 0);
    report.table->column[0].mean = 0.1;
    char *text = table_text(report.table), *again;
    struct table *table;
    assert_int_equal(table_of_text(text, "here", &table), 0);
    again = table_text(table);
    assert_string_equal(text, again);
    assert_string_equal(table->column[1].name, "b\xc3\xbf");
    table_free(table);
    free(again);
    free(text);
    assert_int_equal(table_of_text("{\"columns\":[{\"kind\":\"odd\"}]}", "here", &table),
                     ERROR_DATA);
    assert_non_null(strstr(error_text(), "here does not describe"));
    error_clear();
    source_report_release(&report);
    bytes_release(&taken.text);
}

static void a_bin_begins_with_its_edge(void **state) {
    (void)state;
    double edge[] = {-1, 0, 2.5};
    struct table_column column = {.edge = edge, .edges = 3};
    assert_int_equal(table_bin(&column, -2), 0);
    assert_int_equal(table_bin(&column, -1), 1);
    assert_int_equal(table_bin(&column, 2.4), 2);
    assert_int_equal(table_bin(&column, 1e300), 3);
}

/* Ids of features, to be compared all with all. */
struct ids {
    uint64_t *id;
    size_t count, capacity;
};

static void put_id(struct ids *ids, uint64_t id) {
    MEMORY_ROOM(ids->id, ids->count, ids->capacity);
    ids->id[ids->count++] = id;
}

static void put_number(struct ids *ids, uint32_t column, const char *format, unsigned number) {
    char text[32];
    int length = snprintf(text, sizeof text, format, number);
    put_id(ids, table_feature(column, ROLE_VALUE, text, (size_t)length));
}

static int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void assert_differ(struct ids *ids) {
    qsort(ids->id, ids->count, sizeof *ids->id, compare_ids);
    for (size_t i = 1; i < ids->count; i++)
        assert_true(ids->id[i] != ids->id[i - 1]);
    free(ids->id);
}

static void texts_of_all_columns_have_ids_of_their_own(void **state) {
    (void)state;
    struct ids ids = {0};
    for (uint32_t column = 0; column < 8; column++) {
        for (unsigned code = 0; code < 10000; code++)
            put_number(&ids, column, "%u", code);
        for (unsigned date = 0; date < 40 * 12 * 28; date++)
            put_number(&ids, column, "%u",
                       (1990 + date / 336) * 10000 + (1 + date / 28 % 12) * 100 + 1 + date % 28);
        for (unsigned number = 0; number < 100000; number++)
            put_number(&ids, column, "%08u", 30000000 + 7 * number);
        put_id(&ids, table_feature(column, ROLE_MISSING, NULL, 0));
        put_id(&ids, table_feature(column, ROLE_RARE, NULL, 0));
        put_id(&ids, table_feature(column, ROLE_VALUE, "", 0));
        put_id(&ids, table_feature(column, ROLE_NUMBER, NULL, 0));
        for (uint32_t hash = 0; hash < 65536; hash++)
            put_id(&ids, table_hashed_feature(column, hash));
    }
    for (unsigned number = 0; number < 800000; number++)
        put_number(&ids, 8, "%08u", number);
    for (uint32_t column = 0; column < 64; column++)
        for (uint32_t bin = 0; bin < 256; bin++)
            put_id(&ids, table_bin_feature(column, bin));
    assert_differ(&ids);
}

/* As doc/FORMATS.md has it: a model must be read by whoever comes later. */
static void ids_of_texts_never_change(void **state) {
    (void)state;
    assert_true(table_feature(1, ROLE_VALUE, "red", 3) == UINT64_C(0xfd28fcbbda18885d));
    assert_true(table_bin_feature(0, 2) == UINT64_C(0x839a5975bff42e84));
}

SUITE(table) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_all_columns_have_ids_of_their_own),
        cmocka_unit_test(ids_of_texts_never_change),
        cmocka_unit_test(a_column_is_what_most_of_its_cells_are),
        cmocka_unit_test(missing_cells_are_marked),
        cmocka_unit_test(a_label_may_be_a_word_for_a_missing_cell),
        cmocka_unit_test(blanks_around_a_text_count_if_the_job_says_so),
        cmocka_unit_test(crosses_are_read_back_from_text),
        cmocka_unit_test(a_feature_of_a_cross_is_not_that_of_a_smaller_one),
        cmocka_unit_test(crosses_that_cannot_be_are_refused),
        cmocka_unit_test(the_value_of_crosses_falls_with_their_number),
        cmocka_unit_test(columns_of_one_name_keep_their_order),
        cmocka_unit_test(lists_that_contradict_each_other_are_refused),
        cmocka_unit_test(numbers_with_a_decimal_comma_are_refused_or_read),
        cmocka_unit_test(the_delimiter_is_what_parts_columns),
        cmocka_unit_test(a_label_of_several_lines_is_refused),
        cmocka_unit_test(a_table_comes_back_as_it_was_stored),
        cmocka_unit_test(a_bin_begins_with_its_edge),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
