/* How many values rows have in the first columns of a set, halved again and again. */
#include "tests/unit/suites.h"
#include "base/limits.h"
#include "base/memory.h"
#include "data/set/statistics.h"
#include "tests/unit/data_fixture.h"

enum { ROWS = 3000, ID_END = 110000 };

/* LIBSVM text, with the weights of the rows, or NULL: all are 1. */
static struct set *made_set(const char *name, const char *text, const char *weights,
                            const struct set_options *options) {
    char beside[64];
    struct set *set;
    struct pack *pack;
    bool made;
    snprintf(beside, sizeof beside, "%s.weights", name);
    const struct source_options reading = {.property.file[ROW_WEIGHT] =
                                               weights ? fixture_text(beside, weights) : NULL};
    const char *path = fixture_text(name, text);
    assert_int_equal(pack_of_source(fixture_path("packs"), path, &reading, 2, &pack, &made), 0);
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, options, &set, &made), 0);
    pack_close(pack);
    return set;
}

static struct set *set_of_fixture(const char *name, const char *weights, double holdout) {
    const struct set_options options = {
        .labels = LABEL_BINARY, .holdout = holdout, .keep_holdout = holdout > 0, .threads = 2};
    char *text = fixture_rows(0, ROWS);
    struct set *set = made_set(name, text, weights, &options);
    free(text);
    return set;
}

/* The column of each feature by its number in the file; the others have the largest number. */
static uint32_t *columns_by_id(const struct set *set) {
    uint32_t *column = memory_new(ID_END, sizeof *column);
    memset(column, 255, ID_END * sizeof *column);
    for (uint32_t j = 0; j < set_info(set)->features; j++)
        column[set_info(set)->feature_id[j]] = j;
    return column;
}

/* The numbers of the features of a row of fixture_rows(). */
static uint64_t id_at(uint64_t row, uint64_t k) {
    return (row * 31 + (17 - k) * 1009) % 5003 + 1 + k * 6000;
}

/* From the rows as they were written; each `left_out`th weighs nothing. */
static void assert_counts(struct set *set, uint32_t columns, uint64_t left_out) {
    uint32_t *column = columns_by_id(set);
    struct prefix_counts counts, expected = {0};
    assert_int_equal(prefix_counts_find(set, columns, &counts), 0);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t values = row % 17, inside[PREFIXES] = {0};
        if (left_out && row % left_out == 0)
            continue;
        for (uint64_t k = 0; k < values; k++)
            for (uint32_t i = 0; i < PREFIXES; i++)
                inside[i] += column[id_at(row, k)] < columns >> i;
        for (uint32_t i = 0; i < PREFIXES; i++) {
            expected.sum[i] += (double)inside[i];
            expected.square[i] += (double)(inside[i] * inside[i]);
        }
        expected.rows++;
        expected.all_sum += (double)values;
        expected.all_square += (double)(values * values);
        expected.rest_square += (double)((values - inside[0]) * (values - inside[0]));
    }
    for (uint32_t i = 0; i < PREFIXES; i++)
        expected.columns[i] = columns >> i;
    assert_memory_equal(&counts, &expected, sizeof counts);
    free(column);
}

static void sparse_rows_are_counted_up_to_each_half(void **state) {
    (void)state;
    struct set *set = set_of_fixture("sparse", NULL, 0);
    const uint32_t features = (uint32_t)set_info(set)->features,
                   prefixes[] = {1, 5, 300, 4095, features};
    assert_false(set_info(set)->dense);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        assert_counts(set, prefixes[i], 0);
    set_close(set);
}

static void rows_that_weigh_nothing_count_nowhere(void **state) {
    (void)state;
    struct bytes weights;
    bytes_init(&weights);
    for (uint64_t row = 0; row < ROWS; row++)
        bytes_append(&weights, row % 5 ? "2\n" : "0\n", 2);
    bytes_put_u8(&weights, 0);
    struct set *set = set_of_fixture("weighted", (const char *)weights.data, 0);
    assert_true(set_info(set)->weighted);
    assert_counts(set, 1000, 5);
    set_close(set);
    bytes_release(&weights);
}

static void held_out_rows_do_not_count(void **state) {
    (void)state;
    struct set *set = set_of_fixture("held-out", NULL, 0.25);
    struct prefix_counts counts;
    assert_int_equal(prefix_counts_find(set, 100, &counts), 0);
    assert_true(set_info(set)->holdout_rows > 0 && counts.rows == set_info(set)->rows);
    assert_true(counts.all_sum == (double)set_info(set)->values);
    set_close(set);
}

static void dense_rows_have_all_columns(void **state) {
    (void)state;
    const struct set_options options = {.labels = LABEL_BINARY, .threads = 1};
    struct prefix_counts counts;
    struct set *set = made_set("dense", "1 1:2 2:3 3:4\n0 1:1 2:5 3:2\n", NULL, &options);
    assert_true(set_info(set)->dense);
    assert_int_equal(prefix_counts_find(set, 2, &counts), 0);
    assert_true(counts.rows == 2 && counts.all_sum == 6 && counts.all_square == 18);
    assert_true(counts.sum[0] == 4 && counts.square[0] == 8 && counts.rest_square == 2);
    assert_true(counts.sum[1] == 2 && counts.square[1] == 2);
    assert_true(counts.columns[2] == 0 && counts.sum[2] == 0);
    set_close(set);
}

/* From a set of many chunks: a sample of them, the same whenever it is asked for. */
static void few_of_many_chunks_are_looked_at(void **state) {
    (void)state;
    enum { MANY = 100 * SET_BLOCK_ROWS };
    const struct set_options options = {.labels = LABEL_BINARY, .shuffled = true, .threads = 2};
    char *text = fixture_rows(0, MANY);
    struct set *set = made_set("many", text, NULL, &options);
    struct prefix_counts counts, again;
    assert_int_equal(set_training_chunks(set_info(set)), 100);
    assert_int_equal(prefix_counts_find(set, 500, &counts), 0);
    assert_int_equal(prefix_counts_find(set, 500, &again), 0);
    assert_memory_equal(&counts, &again, sizeof counts);
    assert_int_equal(counts.rows, 64 * SET_BLOCK_ROWS);
    double mean = counts.all_sum / (double)counts.rows;
    assert_true(mean > 7.5 && mean < 8.5); /* rows have 0 to 16 values */
    set_close(set);
    free(text);
}

SUITE(prefix) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_rows_are_counted_up_to_each_half),
        cmocka_unit_test(rows_that_weigh_nothing_count_nowhere),
        cmocka_unit_test(held_out_rows_do_not_count),
        cmocka_unit_test(dense_rows_have_all_columns),
        cmocka_unit_test(few_of_many_chunks_are_looked_at),
    };
    return cmocka_run_group_tests_name("prefix", tests, fixture_set_up, fixture_tear_down);
}
