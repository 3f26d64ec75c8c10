/* Labels that are lists: how they are taken apart, read, and stored in sets. */
#include "tests/unit/suites.h"
#include "data/text/number.h"

#include "data/set/set.h"
#include "tests/unit/data_fixture.h"

static void assert_parts(const char *list, char separator, const char *expected) {
    struct bytes part, all;
    bytes_init(&part);
    bytes_init(&all);
    while (list_next(&list, separator, &part)) {
        bytes_append(&all, "|", 1);
        bytes_append(&all, part.data, part.length - 1);
    }
    bytes_put_u8(&all, 0);
    assert_string_equal((const char *)all.data, expected);
    bytes_release(&part);
    bytes_release(&all);
}

static void blanks_and_empty_parts_do_not_count(void **state) {
    (void)state;
    assert_parts("1,3,5", ',', "|1|3|5");
    assert_parts("", ',', "");
    assert_parts(" , ,", ',', "");
    assert_parts(" new york ;\trome;;", ';', "|new york|rome");
    assert_parts("a b  c", ' ', "|a|b|c");
    assert_parts("a,b", ';', "|a,b");
}

/* The label texts, each behind a "/". */
static int take(void *context, const struct source_rows *rows) {
    for (uint32_t row = 0; row < rows->count; row++) {
        assert_non_null(rows->label_text[row]);
        assert_true(isnan(rows->label[row]));
        bytes_append(context, "/", 1);
        bytes_append(context, rows->label_text[row], strlen(rows->label_text[row]));
    }
    return 0;
}

static int read_code(const char *path, char separator, struct bytes *texts) {
    const struct source_options options = {.label.separator = separator};
    struct source_report report = {0};
    bytes_init(texts);
    int code = source_read(path, &options, 2, take, texts, &report);
    source_report_release(&report);
    bytes_put_u8(texts, 0);
    return code;
}

static void assert_texts(const char *path, char separator, const char *expected) {
    struct bytes texts;
    assert_int_equal(read_code(path, separator, &texts), 0);
    assert_string_equal((const char *)texts.data, expected);
    bytes_release(&texts);
}

/* A line of LIBSVM without labels begins with its values, behind a blank or not. */
static void every_label_is_a_text_and_may_be_empty(void **state) {
    (void)state;
    assert_texts(fixture_text("l.txt", "1,3 1:2\n3 2:1\n 1:1\n2:5\n-1,2.5\n4, 1:1\n"), ',',
                 "/1,3/3///-1,2.5/4,");
    assert_texts(fixture_text("l.csv", "x,tags\n1,a\n2,\n3,\"a, b\"\n4,7\n"), ',', "/a//a, b/7");
}

static void assert_rejected(const char *path, const char *why) {
    struct bytes texts;
    assert_int_equal(read_code(path, ',', &texts), ERROR_DATA);
    if (!strstr(error_text(), why))
        fail_msg("%s", error_text());
    bytes_release(&texts);
    error_clear();
}

static void a_list_that_is_not_of_numbers_is_no_label_of_libsvm(void **state) {
    (void)state;
    assert_rejected(
        fixture_text("b.txt", "1,2 1:1\n1,x 1:2\n"),
        "b.txt:2: the label \"1,x\" is no list of finite numbers with \",\" between them");
    assert_rejected(fixture_text("c.txt", "1;2 1:1\n"), "c.txt:1: the label \"1;2\" is no list");
    assert_rejected(fixture_text("d.txt", "nan 1:1\n"), "d.txt:1: the label \"nan\" is no list");
}

/* ---- sets ---- */

static struct pack *pack_of(const char *name, const char *text, char separator) {
    const struct source_options reading = {.label.separator = separator};
    struct pack *pack;
    bool made;
    if (pack_of_source(fixture_path("packs"), fixture_text(name, text), &reading, 2, &pack, &made))
        fail_msg("%s", error_text());
    return pack;
}

/* The classes of each row by their names: "/a b/". */
static void assert_rows(struct set *set, uint32_t chunk, const char *expected) {
    struct rows rows;
    char text[256] = "";
    assert_int_equal(set_chunk(set, chunk, &rows), 0);
    for (uint32_t i = 0; i < rows.count; i++) {
        uint32_t list = (uint32_t)rows.label[i];
        assert_true(list < rows.lists->count);
        strcat(text, "/");
        for (uint32_t at = rows.lists->start[list]; at < rows.lists->start[list + 1]; at++) {
            strcat(text, set_info(set)->class_names[rows.lists->class[at]]);
            strcat(text, " ");
        }
    }
    assert_string_equal(text, expected);
}

static struct set *set_of(const char *text, char separator) {
    struct pack *pack = pack_of("set", text, separator);
    struct set_options options = {.labels = LABEL_LISTS, .separator = separator, .threads = 2};
    struct set *set;
    bool made;
    if (set_of_packs(fixture_path("sets"), &pack, 1, &options, &set, &made))
        fail_msg("%s", error_text());
    pack_close(pack);
    return set;
}

static void classes_are_the_parts_of_all_lists_in_their_order(void **state) {
    (void)state;
    struct set *set = set_of("10,2 1:1\n2,10,2.0 1:1\n 1:1\n-1 2:1\n", ',');
    assert_int_equal(set_info(set)->classes, 3);
    assert_string_equal(set_info(set)->class_names[0], "-1");
    assert_rows(set, 0, "/2 10 /2 10 //-1 ");
    set_close(set);
    set = set_of("1,rome; oslo\n2,\n3,oslo\n", ';');
    assert_int_equal(set_info(set)->classes, 2);
    assert_rows(set, 0, "/oslo rome //oslo ");
    set_close(set);
}

/* A list of known classes that only held-out rows have is kept; one with another class is not. */
static void held_out_lists_are_of_classes_that_training_knows(void **state) {
    (void)state;
    struct pack *train = pack_of("t", "1,2 1:1\n3 1:2\n1 2:1\n", ',');
    struct pack *held = pack_of("h", "3,1 1:1\n1,4 1:2\n 1:3\n2 1:1\n", ',');
    struct set_options options = {.labels = LABEL_LISTS,
                                  .separator = ',',
                                  .holdout_packs = &held,
                                  .holdout_count = 1,
                                  .keep_holdout = true,
                                  .threads = 2};
    struct set *set;
    bool made;
    if (set_of_packs(fixture_path("sets"), &train, 1, &options, &set, &made))
        fail_msg("%s", error_text());
    assert_int_equal(set_info(set)->holdout_unseen, 1);
    assert_rows(set, 0, "/1 2 /3 /1 ");
    assert_rows(set, 1, "/1 3 //2 ");
    set_close(set);
    pack_close(train);
    pack_close(held);
}

static void rows_without_any_class_are_refused_only_together(void **state) {
    (void)state;
    struct pack *pack = pack_of("none", " 1:1\n, 1:2\n", ',');
    struct set_options options = {.labels = LABEL_LISTS, .separator = ',', .threads = 2};
    struct set *set;
    bool made;
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, &options, &set, &made),
                     ERROR_DATA);
    assert_non_null(strstr(error_text(), "no row has a label"));
    error_clear();
    pack_close(pack);
}

SUITE(lists) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_and_empty_parts_do_not_count),
        cmocka_unit_test(every_label_is_a_text_and_may_be_empty),
        cmocka_unit_test(a_list_that_is_not_of_numbers_is_no_label_of_libsvm),
        cmocka_unit_test(classes_are_the_parts_of_all_lists_in_their_order),
        cmocka_unit_test(held_out_lists_are_of_classes_that_training_knows),
        cmocka_unit_test(rows_without_any_class_are_refused_only_together),
    };
    return cmocka_run_group_tests_name("lists", tests, fixture_set_up, fixture_tear_down);
}
