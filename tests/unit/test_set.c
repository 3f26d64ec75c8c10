#include "tests/unit/suites.h"
#include "data/set/statistics.h"

#include <jansson.h>

#include "base/hash.h"
#include "data/set/set_file.h"
#include "numeric/fixed.h"
#include "tests/unit/data_fixture.h"

#define PACKS_MAX 8

static const char *const *label_order; /* of the labels; NULL: none is given */
static bool centred;                   /* columns that are far from 0 may have centres */

/* Packs the files (NULL-terminated) and merges them; answers what set_of_packs() does. */
static int merge(const char *const *files, enum label_kind labels, const char *positive,
                 unsigned threads, const char *sets, struct set **set, bool *made) {
    static const struct source_options reading;
    struct pack *pack[PACKS_MAX];
    uint32_t count = 0;
    for (; files[count]; count++)
        if (pack_of_source(fixture_path("packs"), files[count], &reading, threads, &pack[count],
                           made))
            fail_msg("%s", error_text());
    struct set_options options = {.labels = labels,
                                  .positive = positive,
                                  .order = label_order,
                                  .centred = centred,
                                  .threads = threads};
    int code = set_of_packs(fixture_path(sets), pack, count, &options, set, made);
    while (count)
        pack_close(pack[--count]);
    return code;
}

static struct set *merge_one(const char *text, enum label_kind labels, const char *positive) {
    const char *const files[] = {fixture_text("one", text), NULL};
    struct set *set;
    bool made;
    if (merge(files, labels, positive, 2, "sets", &set, &made))
        fail_msg("%s", error_text());
    return set;
}

static void assert_refused(const char *text, enum label_kind labels, const char *positive,
                           const char *words) {
    const char *const files[] = {fixture_text("one", text), NULL};
    struct set *set;
    bool made;
    int code = merge(files, labels, positive, 2, "sets", &set, &made);
    if (code != ERROR_DATA || !strstr(error_text(), words))
        fail_msg("code %d, \"%s\" instead of \"%s\"", code, error_text(), words);
    error_clear();
}

/* Counts: 50 ×1, 7 ×4, 3 ×5, 9 ×2, 8 ×3. By log2: {7, 3} by appearance 7, 3; {9, 8}: 9, 8; {50}. */
static const char hand_made[] = "1 50:1\n"
                                "0 7:1 3:1\n"
                                "1 9:1 8:1 7:1 3:1\n"
                                "0 3:1 7:1 8:1\n"
                                "1 3:1 8:1 9:1 7:1\n"
                                "0 3:1\n0 60:2\n0 61:2\n0 62:2\n0 63:2\n";

static void columns_are_numbered_by_frequency_class_then_appearance(void **state) {
    (void)state;
    struct set *set = merge_one(hand_made, LABEL_BINARY, NULL);
    const struct set_info *info = set_info(set);
    static const uint64_t id[] = {7, 3, 9, 8, 50, 60, 61, 62, 63};
    assert_int_equal(info->features, 9);
    assert_memory_equal(info->feature_id, id, sizeof id);
    static const uint32_t order[] = {1, 0, 3, 2, 4, 5, 6, 7, 8};
    assert_memory_equal(info->original_order.narrow, order, sizeof order);
    struct rows rows;
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    static const uint32_t start[] = {0, 1, 3, 7, 10, 14, 15, 16, 17, 18, 19};
    static const uint32_t feature[] = {4, 0, 1, 0, 1, 2, 3, 0, 1, 3, 0, 1, 2, 3, 1, 5, 6, 7, 8};
    assert_false(rows.dense);
    assert_int_equal(rows.count, 10);
    assert_memory_equal(rows.start, start, sizeof start);
    assert_memory_equal(rows.feature, feature, sizeof feature);
    assert_true(((const float *)rows.value)[0] == 1 && ((const float *)rows.value)[18] == 2);
    assert_int_equal((uintptr_t)rows.feature % 64, 0);
    assert_int_equal((uintptr_t)rows.value % 64, 0);
    set_close(set);
}

static void rows_with_two_fifths_of_their_values_become_dense(void **state) {
    (void)state;
    struct set *two = merge_one("1 1:1 5:2\n0 2:1 3:2 4:3\n0 1:1\n", LABEL_BINARY, NULL);
    assert_true(set_info(two)->dense); /* 6 of 15 */
    set_close(two);
    struct set *less = merge_one("1 1:1 5:2\n0 2:1 3:2 4:3\n0\n", LABEL_BINARY, NULL);
    assert_false(set_info(less)->dense);
    set_close(less);
    struct set *set = merge_one("1 1:1 2:2\n0 1:3\n", LABEL_BINARY, NULL);
    struct rows rows;
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_true(rows.dense);
    static const float value[] = {1, 2, 3, 0};
    assert_int_equal(rows.values, 4);
    assert_memory_equal(rows.value, value, sizeof value);
    set_close(set);
}

/* Each row has two values of six: with the means of what is missing they are 20 of 48, and 18 where
 * two rows lack the number. */
static void means_of_missing_numbers_count_as_values(void **state) {
    (void)state;
    struct set *set = merge_one("a,t,y\n1,p,1\n2,p,0\n3,q,1\n4,q,0\n,r,1\n,r,0\n,s,1\n,s,0\n",
                                LABEL_BINARY, NULL);
    assert_int_equal(set_info(set)->features, 6);
    assert_true(set_info(set)->dense);
    set_close(set);
    set = merge_one("a,t,y\n1,p,1\n2,p,0\n3,q,1\n4,q,0\n1,r,1\n4,r,0\n,s,1\n,s,0\n", LABEL_BINARY,
                    NULL);
    assert_false(set_info(set)->dense);
    struct rows rows;
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    for (uint32_t row = 0; row < 8; row++) {
        const uint32_t *feature = rows.feature + rows.start[row];
        assert_int_equal(rows.start[row + 1] - rows.start[row], row < 6 ? 2 : 3);
        assert_true(feature[0] == 0 && feature[1] > 0 && (row < 6 || feature[2] > feature[1]));
    }
    assert_true(((const float *)rows.value)[rows.start[7]] == 2.5f);
    set_close(set);
}

static void assert_classes(const struct set *set, const char *first, const char *second) {
    assert_int_equal(set_info(set)->classes, 2);
    assert_string_equal(set_info(set)->class_names[0], first);
    assert_string_equal(set_info(set)->class_names[1], second);
}

/* A number of a table that is far from 0, one that is not, and whole numbers that an image could
 * have; with texts as wide as `texts`. */
static struct set *merge_far(unsigned texts, bool in_two) {
    char *text[2];
    const char *files[] = {NULL, NULL, NULL};
    for (unsigned f = 0; f < 1u + in_two; f++) {
        text[f] = memory_format("t,n,b,w,y\n");
        for (unsigned i = f * 30; i < (in_two ? 30 + f * 30 : 60); i++) {
            char *longer =
                memory_format("%s%.1f,%u,%u,w%u,%u\n", text[f], 1700000000.5 + (i * 7) % 40,
                              90 + (i * 7) % 40, 200 + i % 3, i % texts, i % 2);
            free(text[f]);
            text[f] = longer;
        }
        files[f] = fixture_text(f ? "far2" : "far1", text[f]);
        free(text[f]);
    }
    struct set *set;
    bool made;
    if (merge(files, LABEL_BINARY, NULL, 2, in_two ? "two" : "sets", &set, &made))
        fail_msg("%s", error_text());
    return set;
}

static void a_column_far_from_0_is_stored_as_differences(void **state) {
    (void)state;
    for (unsigned texts = 1; texts <= 30; texts += 29)
        for (int with = 0; with < 2; with++) {
            centred = with;
            struct set *set = merge_far(texts, false);
            const struct set_info *info = set_info(set);
            uint64_t far = info->features;
            struct rows rows;
            assert_true(!info->centre == !with && info->dense == (texts == 1));
            for (uint64_t j = 0; with && j < info->features; j++)
                far = info->centre[j] != 0 ? j : far;
            assert_int_equal(set_chunk(set, 0, &rows), 0);
            for (uint32_t i = 0; with && i < rows.count; i++) {
                uint64_t at = rows.dense ? (uint64_t)i * rows.features + far : rows.start[i];
                while (!rows.dense && rows.feature[at] != far)
                    at++;
                double value = value_at(rows.type, rows.value, at);
                assert_true(value + info->centre[far] == 1700000000.5 + (i * 7) % 40);
                assert_true(fabs(value) < 64 && rows.type == VALUE_FLOAT);
            }
            assert_true(!with || info->centre[far] != 0);
            set_close(set);
        }
    centred = false;
}

static void centres_do_not_depend_on_files(void **state) {
    (void)state;
    centred = true;
    for (unsigned texts = 1; texts <= 30; texts += 29) {
        struct set *one = merge_far(texts, false), *two = merge_far(texts, true);
        assert_string_equal(set_info(one)->fingerprint, set_info(two)->fingerprint);
        set_close(one);
        set_close(two);
    }
    centred = false;
}

static void numeric_classes_are_in_numeric_order(void **state) {
    (void)state;
    struct set *set = merge_one("10 1:1\n9 1:1\n-1 2:1\n", LABEL_CLASSES, NULL);
    struct rows rows;
    static const double label[] = {2, 1, 0};
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_string_equal(set_info(set)->class_names[2], "10");
    set_close(set);
}

static void text_classes_are_in_bytewise_order(void **state) {
    (void)state;
    struct set *set = merge_one("1,2,b\n3,4,B\n1,1,b\n", LABEL_BINARY, NULL);
    struct rows rows;
    static const double label[] = {1, 0, 1};
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_classes(set, "B", "b");
    set_close(set);
}

static void the_positive_class_can_be_chosen(void **state) {
    (void)state;
    struct set *set = merge_one("-1.0 1:1\n+1 2:1\n", LABEL_BINARY, "-1");
    struct rows rows;
    static const double label[] = {1, 0};
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_classes(set, "1", "-1");
    set_close(set);
    assert_refused("-1.0 1:1\n+1 2:1\n", LABEL_BINARY, "yes",
                   "the positive label \"yes\": the labels are \"-1\" and \"1\"");
}

static void assert_ordered(const char *text, const char *const *labels, const char *last) {
    static const double label[] = {1, 0, 2};
    label_order = labels;
    struct set *set = merge_one(text, LABEL_ORDERED, NULL);
    struct rows rows;
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_int_equal(set_info(set)->classes, 3);
    assert_string_equal(set_info(set)->class_names[2], last);
    set_close(set);
    label_order = NULL;
}

static void ordered_labels_are_numbers_or_listed(void **state) {
    (void)state;
    const char *const levels[] = {"low", "mid", "between", "high", NULL};
    const char *const falling[] = {"10.0", "9", "-1", NULL};
    assert_ordered("9 1:1\n-1 1:1\n10 2:1\n", NULL, "10");
    assert_ordered("9 1:1\n10 1:1\n-1 2:1\n", falling, "-1");
    assert_ordered("1,2,mid\n3,4,low\n1,1,high\n", levels, "high");
    assert_refused("1,2,3\n3,4,low\n", LABEL_ORDERED, NULL,
                   "row 2: the label \"low\" is a text, and texts have no order");
    label_order = levels;
    assert_refused("1,2,low\n3,4,high\n3,4,huge\n", LABEL_ORDERED, NULL,
                   "row 3: the label \"huge\" is not listed in `ordinal.order`");
    assert_refused("1,2,low\n3,4,7\n", LABEL_ORDERED, NULL, "row 2: the label \"7\" is not listed");
    label_order = NULL;
}

static void labels_that_do_not_fit_are_refused(void **state) {
    (void)state;
    assert_refused("1 1:1\n1 2:1\n", LABEL_BINARY, NULL,
                   "one: all rows have the same label, \"1\"");
    assert_refused("1 1:1\n1 2:1\n", LABEL_CLASSES, NULL, "all rows have the same label");
    assert_refused("0 1:1\n1 2:1\n0 1:1\n2 1:1\n", LABEL_BINARY, NULL,
                   "one: row 4: \"2\" is a third label");
    assert_refused("1,2,x\n3,4,y\n5,6,z\n", LABEL_BINARY, NULL, "row 3: \"z\" is a third label");
    assert_refused("1,2,3\n3,4,high\n", LABEL_TARGET, NULL,
                   "one: row 2: the label \"high\" is a text");
    assert_refused("1\n2\n", LABEL_BINARY, NULL, "no row has a single feature");
}

static void targets_are_kept_as_they_are(void **state) {
    (void)state;
    struct set *set = merge_one("1.5 1:1\n-2.25 2:1\n", LABEL_TARGET, NULL);
    struct rows rows;
    static const double label[] = {1.5, -2.25};
    assert_int_equal(set_chunk(set, 0, &rows), 0);
    assert_memory_equal(rows.label, label, sizeof label);
    assert_int_equal(set_info(set)->classes, 0);
    assert_true(set_info(set)->label_max_abs == 2.25);
    set_close(set);
}

static void exponents_follow_the_sums_of_absolute_values(void **state) {
    (void)state;
    struct set *set =
        merge_one("1 1:-1e12 2:1e-12\n0 1:3e12 2:-2e-12\n1 1:1 2:0\n", LABEL_BINARY, NULL);
    const struct set_info *info = set_info(set);
    assert_int_equal(info->exponent[0], fixed_exponent(1e12 + 3e12 + 1, 3));
    assert_int_equal(info->exponent[1], fixed_exponent(1e-12 + 2e-12, 3));
    assert_int_equal(info->exponent[2], fixed_exponent(3, 3));
    assert_false(info->uniform);
    set_close(set);
}

/* Everything that a set says of its data but where it came from. */
static char *contents(struct set *set) {
    struct bytes all;
    bytes_init(&all);
    const struct set_info *info = set_info(set);
    for (uint32_t i = 0; i < info->chunks; i++) {
        struct rows rows;
        assert_int_equal(set_chunk(set, i, &rows), 0);
        bytes_append(&all, rows.label, rows.count * sizeof *rows.label);
        bytes_append(&all, rows.start, (rows.count + 1) * sizeof *rows.start);
        bytes_append(&all, rows.feature, rows.values * sizeof *rows.feature);
        bytes_append(&all, rows.value, rows.values * sizeof(double));
    }
    bytes_append(&all, info->feature_id, info->features * sizeof *info->feature_id);
    bytes_append(&all, info->exponent, (info->features + 1) * sizeof *info->exponent);
    char *digest = memory_new(64, 1);
    snprintf(digest, 64, "%llu %016llx %.20s", (unsigned long long)all.length,
             (unsigned long long)hash64(all.data, all.length), info->fingerprint);
    bytes_release(&all);
    return digest;
}

static char *merge_rows(unsigned files, unsigned threads, const char *sets) {
    enum { ROWS = 20000 };
    const char *paths[PACKS_MAX] = {0};
    char *copies[PACKS_MAX];
    uint64_t first = 0;
    for (unsigned i = 0; i < files; i++) {
        uint64_t end = i + 1 == files ? ROWS : first + ROWS / files + i * 37;
        char name[32];
        snprintf(name, sizeof name, "rows-%u-of-%u", i, files);
        char *text = fixture_rows(first, end - first);
        paths[i] = copies[i] = memory_copy_string(fixture_text(name, text));
        free(text);
        first = end;
    }
    struct set *set;
    bool made;
    if (merge(paths, LABEL_BINARY, NULL, threads, sets, &set, &made))
        fail_msg("%s", error_text());
    assert_true(made);
    assert_true(set_info(set)->chunks >= 64);
    char *digest = contents(set);
    set_close(set);
    for (unsigned i = 0; i < files; i++)
        free(copies[i]);
    return digest;
}

static void threads_and_files_do_not_change_the_chunks(void **state) {
    (void)state;
    char *one = merge_rows(1, 1, "sets-a"), *parallel = merge_rows(1, 4, "sets-b");
    char *five = merge_rows(5, 1, "sets-c"), *five_parallel = merge_rows(5, 3, "sets-d");
    assert_string_equal(one, parallel);
    assert_string_equal(one, five);
    assert_string_equal(one, five_parallel);
    free(one);
    free(parallel);
    free(five);
    free(five_parallel);
}

/* Rows of scattered ids, of which few come twice and some, far above 2^32, need many digits. */
static char *scattered_rows(unsigned count) {
    struct bytes text;
    uint64_t random = 1;
    bytes_init(&text);
    for (unsigned row = 0; row < count; row++) {
        bytes_append(&text, row % 2 ? "1" : "-1", row % 2 ? 1 : 2);
        uint64_t id = 0;
        for (unsigned i = 0; i < 30; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            id += 1 + (random >> 33) % (i < 10 ? 20 : 9000) + (i == 29 ? UINT64_C(1) << 40 : 0);
            char value[64];
            snprintf(value, sizeof value, " %llu:%llu", (unsigned long long)id,
                     (unsigned long long)(id % 97 + 1));
            bytes_append(&text, value, strlen(value));
        }
        bytes_append(&text, "\n", 1);
    }
    bytes_append(&text, "", 1);
    return (char *)text.data;
}

/* Each value stands in its own column, and the columns of a row rise. */
static void check_scattered(struct set *set) {
    const struct set_info *info = set_info(set);
    for (uint32_t i = 1; i < info->features; i++)
        assert_true(info->feature_id[info->original_order.narrow[i - 1]] <
                    info->feature_id[info->original_order.narrow[i]]);
    for (uint32_t c = 0; c < info->chunks; c++) {
        struct rows rows;
        assert_int_equal(set_chunk(set, c, &rows), 0);
        for (uint32_t row = 0; row < rows.count; row++)
            for (uint32_t i = rows.start[row]; i < rows.start[row + 1]; i++) {
                assert_true(i == rows.start[row] || rows.feature[i - 1] < rows.feature[i]);
                assert_true(((const float *)rows.value)[i] ==
                            (float)(info->feature_id[rows.feature[i]] % 97 + 1));
            }
    }
}

static void any_number_of_threads_gives_the_same_file(void **state) {
    (void)state;
    static const unsigned threads[] = {1, 2, 3, 7};
    static const char *const sets[] = {"sets-1", "sets-2", "sets-3", "sets-7"};
    char *text = scattered_rows(4000), *first = NULL;
    size_t first_length = 0;
    const char *const files[] = {memory_copy_string(fixture_text("scattered", text)), NULL};
    for (unsigned i = 0; i < 4; i++) {
        struct set *set;
        bool made;
        assert_int_equal(merge(files, LABEL_BINARY, NULL, threads[i], sets[i], &set, &made), 0);
        assert_true(made && set_info(set)->chunks >= 16 && set_info(set)->features > 1 << 15);
        check_scattered(set);
        char *bytes;
        size_t length;
        assert_int_equal(file_read(set_path(set), 64 << 20, &bytes, &length), 0);
        if (!first) {
            first = bytes;
            first_length = length;
        }
        assert_int_equal(length, first_length);
        assert_memory_equal(bytes, first, length);
        if (bytes != first)
            free(bytes);
        set_close(set);
    }
    free(first);
    free(text);
    free((char *)(uintptr_t)files[0]);
}

/* Rows of a table, in which one cell in five is empty. */
static char *table_rows(unsigned count, uint64_t random) {
    struct bytes text;
    bytes_init(&text);
    bytes_append(&text, "a,b,c,y\n", 8);
    for (unsigned row = 0; row < count; row++) {
        for (unsigned i = 0; i < 3; i++) {
            char cell[32];
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            int length = snprintf(cell, sizeof cell, "%.6g", (double)(random >> 40) / 977 - 99);
            bytes_append(&text, cell, random >> 33 & 1 || row % 5 ? (size_t)length : 0);
            bytes_append(&text, ",", 1);
        }
        bytes_append(&text, row % 3 ? "1\n" : "0\n", 2);
    }
    bytes_append(&text, "", 1);
    return (char *)text.data;
}

static struct set *merge_tables(const char *const *files, uint32_t bins, unsigned threads,
                                const char *sets) {
    static const struct source_options reading = {.label.column = "y"};
    const struct set_options options = {.labels = LABEL_BINARY, .bins = bins, .threads = threads};
    struct pack *packs[2];
    struct set *set;
    bool made;
    for (uint32_t i = 0; i < 2; i++)
        if (pack_of_source(fixture_path("packs"), files[i], &reading, 2, &packs[i], &made))
            fail_msg("%s", error_text());
    if (set_of_packs(fixture_path(sets), packs, 2, &options, &set, &made))
        fail_msg("%s", error_text());
    for (uint32_t i = 0; i < 2; i++)
        pack_close(packs[i]);
    return set;
}

static void any_number_of_threads_finds_the_same_means_and_bins(void **state) {
    (void)state;
    static const unsigned threads[] = {1, 2, 3, 7};
    const char *files[2];
    for (uint32_t i = 0; i < 2; i++) {
        char *text = table_rows(20000 + 7 * i, i);
        files[i] = memory_copy_string(fixture_text(i ? "table-b.csv" : "table-a.csv", text));
        free(text);
    }
    for (uint32_t bins = 0; bins <= 4; bins += 4) {
        char *first = NULL;
        for (unsigned i = 0; i < 4; i++) {
            char sets[32];
            snprintf(sets, sizeof sets, "tables-%u-%u", bins, threads[i]);
            struct set *set = merge_tables(files, bins, threads[i], sets);
            if (!first)
                first = memory_copy_string(set_info(set)->fingerprint);
            assert_string_equal(set_info(set)->fingerprint, first);
            set_close(set);
        }
        free(first);
    }
    free((char *)(uintptr_t)files[0]);
    free((char *)(uintptr_t)files[1]);
}

/* In all rows of the first block it is missing. */
static void a_number_that_comes_late_has_a_mean_and_bins_of_its_own_alone(void **state) {
    (void)state;
    struct bytes text;
    bytes_init(&text);
    bytes_append(&text, "a,y\n", 4);
    for (uint32_t row = 0; row < 100000; row++)
        bytes_append(&text, row % 2 ? ",1\n" : ",0\n", 3);
    bytes_append(&text, "4,1\n10,0\n4,1\n10,0\n", 19);
    const char *files[] = {fixture_text("late.csv", (const char *)text.data),
                           fixture_text("few.csv", "a,y\n4,1\n10,0\n")};
    struct set *set = merge_tables(files, 4, 2, "tables-late");
    const struct table_column *late = &set_info(set)->table->column[0];
    assert_true(late->mean == 7);
    assert_int_equal(late->edges, 1);
    assert_true(late->edge[0] == 10);
    set_close(set);
    bytes_release(&text);
}

static void a_set_is_made_once(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("once", "1 1:1\n0 2:1\n"), NULL};
    struct set *set;
    bool made;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(merge(files, LABEL_BINARY, NULL, 2, "sets-once", &set, &made), 0);
        assert_int_equal(made, i == 0);
        set_close(set);
    }
    assert_int_equal(merge(files, LABEL_CLASSES, NULL, 2, "sets-once", &set, &made), 0);
    assert_true(made);
    set_close(set);
}

static void flip_byte(const char *path, uint64_t at) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, (long)at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, (long)at, SEEK_SET);
    fputc(byte ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

static void a_damaged_chunk_is_found_at_the_first_touch(void **state) {
    (void)state;
    struct set *set = merge_one("1 1:1\n0 2:1\n", LABEL_BINARY, NULL);
    char *path = memory_copy_string(set_path(set));
    set_close(set);
    flip_byte(path, CONTAINER_ALIGNMENT * 7);
    assert_int_equal(set_open(path, &set), 0);
    struct rows rows;
    assert_int_equal(set_chunk(set, 0, &rows), ERROR_DATA);
    assert_non_null(strstr(error_text(), path));
    assert_non_null(strstr(error_text(), "chunk 0"));
    error_clear();
    set_close(set);
    assert_int_equal(inspect_print(path, true), ERROR_DATA);
    error_clear();
    unlink(path);
    free(path);
}

/* No chunk is touched for them, damaged or not. */
static void squares_of_rows_of_ones_are_counts(void **state) {
    (void)state;
    const struct moments none = {0};
    double squares[5];
    struct set *set = merge_one("1 1:1 5:1\n0 5:1\n1 2:1\n0 3:1\n0 4:1\n", LABEL_BINARY, NULL);
    char *path = memory_copy_string(set_path(set));
    set_close(set);
    flip_byte(path, CONTAINER_ALIGNMENT * 7);
    assert_int_equal(set_open(path, &set), 0);
    assert_int_equal(moments_squares(set, 1, &none, squares), 0);
    assert_true(squares[0] == 2 / 5.0 && squares[1] == 1 / 5.0);
    set_close(set);
    unlink(path);
    free(path);
}

static void a_set_with_a_damaged_header_is_made_again(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("header", "1 1:1\n0 2:1\n1 7:1\n"), NULL};
    struct set *set;
    bool made;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(merge(files, LABEL_BINARY, NULL, 2, "sets-header", &set, &made), 0);
        assert_true(made);
        flip_byte(set_path(set), 20);
        set_close(set);
    }
}

static void header_lines_that_disagree_are_refused(void **state) {
    (void)state;
    const char *const files[] = {fixture_text("x.csv", "a,b,y\n1,2,0\n"),
                                 fixture_text("z.csv", "a,c,y\n1,2,1\n"), NULL};
    struct set *set;
    bool made;
    assert_int_equal(merge(files, LABEL_BINARY, NULL, 2, "sets", &set, &made), ERROR_DATA);
    assert_non_null(strstr(error_text(), "z.csv:1: column 2 is named \"c\""));
    error_clear();
}

/* What `inspect` prints of a file, as JSON. */
static json_t *inspect(const char *path) {
    const char *printed = fixture_path("printed");
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_non_null(freopen(printed, "w", stdout));
    int code = inspect_print(path, true);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    assert_int_equal(code, 0);
    json_t *object = json_load_file(printed, 0, NULL);
    assert_non_null(object);
    return object;
}

static void inspect_says_what_a_set_and_its_packs_hold(void **state) {
    (void)state;
    struct set *set = merge_one("u,v,y\n1,2,no\n3,4,yes\n", LABEL_BINARY, NULL);
    json_t *object = inspect(set_path(set));
    assert_int_equal(json_integer_value(json_object_get(object, "rows")), 2);
    json_t *classes = json_object_get(object, "classes");
    assert_string_equal(json_string_value(json_array_get(classes, 1)), "yes");
    const char *name = json_string_value(json_array_get(json_object_get(object, "packs"), 0));
    char *path = memory_format("%s/%s.pack", fixture_path("packs"), name);
    json_t *pack = inspect(path);
    assert_int_equal(json_integer_value(json_object_get(pack, "values")), 4);
    assert_string_equal(json_string_value(json_object_get(pack, "source")), fixture_path("one"));
    free(path);
    json_decref(pack);
    json_decref(object);
    set_close(set);
}

SUITE(set) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_numbered_by_frequency_class_then_appearance),
        cmocka_unit_test(rows_with_two_fifths_of_their_values_become_dense),
        cmocka_unit_test(means_of_missing_numbers_count_as_values),
        cmocka_unit_test(a_column_far_from_0_is_stored_as_differences),
        cmocka_unit_test(centres_do_not_depend_on_files),
        cmocka_unit_test(numeric_classes_are_in_numeric_order),
        cmocka_unit_test(text_classes_are_in_bytewise_order),
        cmocka_unit_test(the_positive_class_can_be_chosen),
        cmocka_unit_test(ordered_labels_are_numbers_or_listed),
        cmocka_unit_test(labels_that_do_not_fit_are_refused),
        cmocka_unit_test(targets_are_kept_as_they_are),
        cmocka_unit_test(exponents_follow_the_sums_of_absolute_values),
        cmocka_unit_test(threads_and_files_do_not_change_the_chunks),
        cmocka_unit_test(any_number_of_threads_gives_the_same_file),
        cmocka_unit_test(any_number_of_threads_finds_the_same_means_and_bins),
        cmocka_unit_test(a_number_that_comes_late_has_a_mean_and_bins_of_its_own_alone),
        cmocka_unit_test(a_set_is_made_once),
        cmocka_unit_test(a_damaged_chunk_is_found_at_the_first_touch),
        cmocka_unit_test(squares_of_rows_of_ones_are_counts),
        cmocka_unit_test(a_set_with_a_damaged_header_is_made_again),
        cmocka_unit_test(header_lines_that_disagree_are_refused),
        cmocka_unit_test(inspect_says_what_a_set_and_its_packs_hold),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
