/* Sets with held-out rows: training gives the same as if the files did not have these rows. */
#include "tests/unit/suites.h"
#include "base/hash.h"
#include "data/set/holdout.h"
#include "data/set/set.h"
#include "tests/unit/data_fixture.h"

#define FILES_MAX 3
#define ROWS_MAX 4000

static const struct source_options reading;
static const struct source_options hashing = {.hashes_rows = true};

/* ---- texts, split as the holdout splits them ---- */

struct sides {
    double share;
    uint32_t rows;
    bool held[ROWS_MAX];
};

static int note_sides(void *context, const struct source_rows *rows) {
    struct sides *sides = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        assert_true(sides->rows < ROWS_MAX);
        sides->held[sides->rows++] = holdout_has(sides->share, holdout_hash(rows, row));
    }
    return 0;
}

/* A file of those lines of `text` that are on the side, behind `header` lines. */
static const char *side_of(const char *name, const char *text, unsigned header, double share,
                           bool held) {
    static struct sides sides;
    struct source_report report;
    sides = (struct sides){.share = share};
    assert_int_equal(
        source_read(fixture_text("whole", text), &hashing, 1, note_sides, &sides, &report), 0);
    source_report_release(&report);
    struct bytes out;
    bytes_init(&out);
    for (unsigned line = 0; *text; line++) {
        size_t length = strcspn(text, "\n") + 1;
        if (line < header || sides.held[line - header] == held)
            bytes_append(&out, text, length);
        text += length;
    }
    const char *path = fixture_bytes(name, out.data, out.length);
    bytes_release(&out);
    return path;
}

/* ---- merging ---- */

struct packs {
    struct pack *pack[FILES_MAX];
    uint32_t count;
};

static struct packs pack_all(const char *const *files) {
    struct packs packs = {0};
    bool made;
    for (; files[packs.count]; packs.count++)
        if (pack_of_source(fixture_path("packs"), files[packs.count], &reading, 2,
                           &packs.pack[packs.count], &made))
            fail_msg("%s", error_text());
    return packs;
}

static void close_all(struct packs *packs) {
    while (packs->count)
        pack_close(packs->pack[--packs->count]);
}

static int merge_code(const char *const *files, const struct set_options *options, struct set **set,
                      bool *made) {
    struct packs packs = pack_all(files);
    int code = set_of_packs(fixture_path("sets"), packs.pack, packs.count, options, set, made);
    close_all(&packs);
    return code;
}

static struct set *merge(const char *const *files, struct set_options options) {
    struct set *set;
    bool made;
    options.threads = 2;
    if (merge_code(files, &options, &set, &made))
        fail_msg("%s", error_text());
    return set;
}

/* ---- comparing ---- */

static void append_rows(struct bytes *all, const struct rows *rows) {
    bytes_put_u32(all, rows->count);
    bytes_put_u32(all, rows->type);
    bytes_append(all, rows->label, rows->count * sizeof *rows->label);
    if (!rows->dense) {
        bytes_append(all, rows->start, (rows->count + 1) * sizeof *rows->start);
        bytes_append(all, rows->feature, rows->values * sizeof *rows->feature);
    }
    if (rows->value)
        bytes_append(all, rows->value, rows->values * value_bytes(rows->type));
}

/* All that training sees of a set. */
static struct bytes training_of(struct set *set) {
    const struct set_info *info = set_info(set);
    struct bytes all;
    bytes_init(&all);
    bytes_put_u64(&all, info->rows);
    bytes_put_u64(&all, info->values);
    bytes_put_u32(&all, (uint32_t)info->features);
    bytes_put_u32(&all, info->chunks - info->holdout_chunks);
    bytes_put_u32(&all, info->type);
    bytes_put_u32(&all, info->dense);
    bytes_put_u32(&all, info->uniform ? (uint32_t)info->uniform_exponent : UINT32_MAX);
    bytes_put_f64(&all, info->label_max_abs);
    bytes_append(&all, info->feature_id, info->features * sizeof *info->feature_id);
    bytes_append(&all, info->original_order.narrow, info->features * sizeof(uint32_t));
    bytes_append(&all, info->exponent, (info->features + 1) * sizeof *info->exponent);
    for (uint32_t i = 0; i < info->classes; i++)
        bytes_append(&all, info->class_names[i], strlen(info->class_names[i]) + 1);
    for (uint32_t i = 0; i < info->chunks - info->holdout_chunks; i++) {
        struct rows rows;
        assert_int_equal(set_chunk(set, i, &rows), 0);
        append_rows(&all, &rows);
    }
    return all;
}

static void assert_same_training(struct set *one, struct set *other) {
    struct bytes a = training_of(one), b = training_of(other);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.data, b.data, a.length);
    bytes_release(&a);
    bytes_release(&b);
}

/* The set of `texts` with a holdout against that of files without the rows held out. */
static void assert_no_trace(const char *const *texts, unsigned header, enum label_kind labels,
                            double share) {
    const char *whole[FILES_MAX + 1] = {0}, *kept[FILES_MAX + 1] = {0};
    for (unsigned i = 0; texts[i]; i++) {
        char name[16];
        snprintf(name, sizeof name, "kept-%u", i);
        kept[i] = side_of(name, texts[i], header, share, false);
        snprintf(name, sizeof name, "whole-%u", i);
        whole[i] = fixture_text(name, texts[i]);
    }
    struct set *expected = merge(kept, (struct set_options){.labels = labels});
    struct set *set = merge(whole, (struct set_options){.labels = labels, .holdout = share});
    struct set *keeping = merge(
        whole, (struct set_options){.labels = labels, .holdout = share, .keep_holdout = true});
    assert_same_training(set, expected);
    assert_same_training(keeping, expected);
    assert_int_equal(set_info(set)->holdout_chunks, 0);
    assert_true(set_info(set)->rows_held_out > 0);
    assert_true(set_info(keeping)->holdout_chunks > 0);
    assert_int_equal(set_info(keeping)->holdout_rows + set_info(keeping)->holdout_unseen,
                     set_info(set)->rows_held_out);
    set_close(expected);
    set_close(set);
    set_close(keeping);
}

/* LIBSVM rows whose ids stand in no order, some of them rare. */
static char *unsorted_rows(unsigned first, unsigned rows) {
    struct bytes text;
    bytes_init(&text);
    for (unsigned row = first; row < first + rows; row++) {
        char word[64];
        int length = snprintf(word, sizeof word, "%d", row % 3 ? 1 : -1);
        bytes_append(&text, word, (size_t)length);
        for (unsigned k = 0; k < row % 17; k++) {
            unsigned id = (row * 31 + k * 1009) % 500 + 1;
            length = snprintf(word, sizeof word, " %u:%.3f", k == 3 ? id + row * 500 : id,
                              (row % 101 + 1) / (k + 3.0));
            bytes_append(&text, word, (size_t)length);
        }
        bytes_append(&text, "\n", 1);
    }
    bytes_put_u8(&text, 0);
    return (char *)text.data;
}

static void rows_of_unsorted_text_leave_no_trace(void **state) {
    (void)state;
    char *one = unsorted_rows(0, 2500), *two = unsorted_rows(2500, 1500);
    const char *const texts[] = {one, two, NULL};
    assert_no_trace(texts, 0, LABEL_BINARY, 0.3);
    assert_no_trace(texts, 0, LABEL_TARGET, 0.9);
    free(one);
    free(two);
}

/* The only values that need a double are those of rows held out. */
static void the_value_type_follows_from_training_alone(void **state) {
    (void)state;
    struct bytes text;
    bytes_init(&text);
    for (unsigned row = 0; row < 200; row++) {
        char line[64];
        int length = snprintf(line, sizeof line, "%u %u:0.1", row % 2, 1 + row % 50);
        if (!holdout_has(0.5, hash64(line, (size_t)length)))
            length = snprintf(line, sizeof line, "%u %u:1", row % 2, 1 + row % 50);
        if (strstr(line, ":0.1") || !holdout_has(0.5, hash64(line, (size_t)length))) {
            bytes_append(&text, line, (size_t)length);
            bytes_append(&text, "\n", 1);
        }
    }
    bytes_put_u8(&text, 0);
    const char *const texts[] = {(char *)text.data, NULL};
    assert_no_trace(texts, 0, LABEL_BINARY, 0.5);
    bytes_release(&text);
}

/* CSV with a label of every kind: `rare` in few rows, so that some are only held out. */
static char *csv(unsigned rows) {
    struct bytes text;
    bytes_init(&text);
    bytes_append(&text, "a,b,c,y\n", 8);
    for (unsigned row = 0; row < rows; row++) {
        char line[96];
        int length = snprintf(line, sizeof line, "%u,%.17g,%u,", row % 31, row / 9.0, row % 2);
        if (row % 100 == 99)
            length += snprintf(line + length, sizeof line - (size_t)length, "rare-%u\n", row);
        else
            length +=
                snprintf(line + length, sizeof line - (size_t)length, "%s\n", row % 3 ? "M" : "7");
        bytes_append(&text, line, (size_t)length);
    }
    bytes_put_u8(&text, 0);
    return (char *)text.data;
}

static void rows_of_csv_leave_no_trace(void **state) {
    (void)state;
    char *text = csv(2000);
    const char *const texts[] = {text, NULL};
    assert_no_trace(texts, 1, LABEL_CLASSES, 0.5);
    free(text);
}

/* ---- what is kept ---- */

static void kept_rows_have_columns_and_classes_of_training_alone(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("trained", "1 5:1 9:1\n0 9:1\n1 9:1 20:1\n"
                                                         "0 30:1\n0 31:1\n0 32:1\n"),
                                 NULL};
    const char *const held[] = {
        fixture_text("held", "0 9:0.1 77:3 5:2\n2 5:1\n1 78:1\n1 20:1 5:0\n"), NULL};
    struct packs packs = pack_all(held);
    struct set_options options = {.labels = LABEL_BINARY,
                                  .holdout_packs = packs.pack,
                                  .holdout_count = packs.count,
                                  .keep_holdout = true};
    struct set *set = merge(files, options), *without = merge(files, (struct set_options){0});
    const struct set_info *info = set_info(set);
    assert_same_training(set, without);
    assert_int_equal(info->type, VALUE_ONES);
    assert_int_equal(info->chunks, 2);
    assert_int_equal(info->holdout_chunks, 1);
    assert_int_equal(info->holdout_rows, 3);
    assert_int_equal(info->holdout_unseen, 1);
    assert_int_equal(info->rows_held_out, 0);
    struct rows rows;
    assert_int_equal(set_chunk(set, 1, &rows), 0);
    /* Columns: 9, 5, 20, 30, 31, 32. */
    static const uint32_t start[] = {0, 2, 2, 4}, feature[] = {0, 1, 1, 2};
    static const double label[] = {0, 1, 1}, value[] = {0.1, 2, 0, 1};
    assert_int_equal(rows.count, 3);
    assert_int_equal(rows.type, VALUE_DOUBLE);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_memory_equal(rows.start, start, sizeof start);
    assert_memory_equal(rows.feature, feature, sizeof feature);
    assert_memory_equal(rows.value, value, sizeof value);
    set_close(set);
    set_close(without);
    close_all(&packs);
}

static void kept_rows_are_dense_where_training_is(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("trained", "1 1:1 2:1\n0 1:1\n0 2:1\n"), NULL};
    const char *const held[] = {fixture_text("held", "1 2:1 3:1\n0 1:1\n"), NULL};
    struct packs packs = pack_all(held);
    struct set *set = merge(files, (struct set_options){.labels = LABEL_BINARY,
                                                        .holdout_packs = packs.pack,
                                                        .holdout_count = packs.count,
                                                        .keep_holdout = true});
    struct rows rows;
    static const float value[] = {0, 1, 1, 0};
    assert_int_equal(set_chunk(set, 1, &rows), 0);
    assert_true(rows.dense);
    assert_int_equal(rows.type, VALUE_FLOAT);
    assert_memory_equal(rows.value, value, sizeof value);
    set_close(set);
    close_all(&packs);
}

/* Held rows of one file whose features and labels only the other file trains on. */
static void kept_rows_find_columns_and_labels_of_other_files(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("x.csv", "a,b,y\n1,2,M\n3,4,B\n"), NULL};
    const char *const held[] = {fixture_text("z.csv", "a,b,y\n5,6,B\n7,8,Z\n"), NULL};
    struct packs packs = pack_all(held);
    struct set *set = merge(files, (struct set_options){.labels = LABEL_CLASSES,
                                                        .holdout_packs = packs.pack,
                                                        .holdout_count = packs.count,
                                                        .keep_holdout = true});
    struct rows rows;
    assert_int_equal(set_info(set)->classes, 2);
    assert_int_equal(set_info(set)->holdout_unseen, 1);
    assert_int_equal(set_chunk(set, 1, &rows), 0);
    assert_int_equal(rows.count, 1);
    assert_true(rows.label[0] == 0);
    assert_memory_equal(rows.value, ((const float[]){5, 6}), 2 * sizeof(float));
    set_close(set);
    close_all(&packs);
}

static void rows_are_numbered_through_training_and_then_the_holdout(void **state) {
    (void)state;
    char *text = fixture_rows(0, 3000);
    const char *const files[] = {fixture_text("numbered", text), NULL};
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        struct set *set = merge(files, (struct set_options){.labels = LABEL_BINARY,
                                                            .holdout = 0.3,
                                                            .keep_holdout = true,
                                                            .shuffled = shuffled});
        const struct set_info *info = set_info(set);
        uint64_t row = 0;
        for (uint32_t i = 0; i < info->chunks; i++) {
            struct rows rows;
            assert_int_equal(set_chunk(set, i, &rows), 0);
            assert_true(i != set_training_chunks(info) || row == info->rows);
            assert_int_equal(rows.first, row);
            row += rows.count;
        }
        assert_int_equal(row, info->rows + info->holdout_rows);
        assert_int_equal(row, 3000);
        assert_true(info->chunks > 1u + 10u * (unsigned)shuffled);
        set_close(set);
    }
    free(text);
}

/* ---- names and errors ---- */

static void another_share_is_another_set(void **state) {
    (void)state;
    char *text = fixture_rows(0, 500);
    const char *const files[] = {fixture_text("named", text), NULL};
    const struct set_options options[] = {
        {.labels = LABEL_TARGET, .threads = 1},
        {.labels = LABEL_TARGET, .threads = 1, .holdout = 0.2},
        {.labels = LABEL_TARGET, .threads = 1, .holdout = 0.200001},
        {.labels = LABEL_TARGET, .threads = 1, .holdout = 0.2, .keep_holdout = true}};
    char *fingerprint[4];
    for (unsigned i = 0; i < 4; i++) {
        struct set *set;
        bool made;
        for (unsigned again = 0; again < 2; again++) {
            assert_int_equal(merge_code(files, &options[i], &set, &made), 0);
            assert_int_equal(made, !again);
            fingerprint[i] = again ? memory_copy_string(set_info(set)->fingerprint) : NULL;
            set_close(set);
        }
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(fingerprint[i], fingerprint[j]);
    }
    for (unsigned i = 0; i < 4; i++)
        free(fingerprint[i]);
    free(text);
}

static void a_holdout_that_is_not_kept_changes_no_name(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("plain", "1 1:1\n0 2:1\n"), NULL};
    struct packs packs = pack_all(files);
    const struct set_options with = {
        .threads = 1, .holdout_packs = packs.pack, .holdout_count = packs.count};
    struct set *set;
    bool made;
    set_close(merge(files, (struct set_options){0}));
    assert_int_equal(merge_code(files, &with, &set, &made), 0);
    assert_false(made);
    set_close(set);
    close_all(&packs);
}

static void a_share_that_leaves_a_side_empty_is_refused(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("few", "1 1:1\n0 2:1\n"), NULL};
    struct set *set;
    bool made;
    struct set_options options = {.threads = 1, .holdout = 1e-9};
    assert_int_equal(merge_code(files, &options, &set, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "a holdout of 1e-09 has none of the 2 rows"));
    error_clear();
    options.holdout = 0.999999999;
    assert_int_equal(merge_code(files, &options, &set, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "has all of the 2 rows"));
    error_clear();
    const uint64_t one = hash64("1 1:1", 5), two = hash64("0 2:1", 5);
    options.holdout = ldexp((double)(one / 2 + two / 2), -64); /* one of the two */
    assert_int_equal(merge_code(files, &options, &set, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "all rows that are trained on have the same label"));
    error_clear();
}

SUITE(set_holdout) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_unsorted_text_leave_no_trace),
        cmocka_unit_test(the_value_type_follows_from_training_alone),
        cmocka_unit_test(rows_of_csv_leave_no_trace),
        cmocka_unit_test(kept_rows_have_columns_and_classes_of_training_alone),
        cmocka_unit_test(kept_rows_are_dense_where_training_is),
        cmocka_unit_test(kept_rows_find_columns_and_labels_of_other_files),
        cmocka_unit_test(rows_are_numbered_through_training_and_then_the_holdout),
        cmocka_unit_test(another_share_is_another_set),
        cmocka_unit_test(a_holdout_that_is_not_kept_changes_no_name),
        cmocka_unit_test(a_share_that_leaves_a_side_empty_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
