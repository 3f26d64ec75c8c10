/* Mean and variance of columns: zeros that are not stored count, held-out rows do not. */
#include "tests/unit/suites.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/set/statistics.h"
#include "tests/unit/data_fixture.h"

enum { ROWS = 3000, COLUMNS = 6 };

static double table[ROWS][COLUMNS], weight[ROWS];

/* Columns far from 0, mostly 0, never 0, constant, and in one row alone. */
static void draw(void) {
    struct random random;
    random_init(&random, 11);
    for (unsigned i = 0; i < ROWS; i++) {
        weight[i] = 1;
        table[i][0] = 1e6 + (double)random_below(&random, 100);
        table[i][1] = random_below(&random, 20) ? 0 : 1;
        table[i][2] = random_unit(&random) + 0.25;
        table[i][3] = 0.1;
        table[i][4] = i == 7 ? 3 : 0;
        table[i][5] = (double)random_below(&random, 7) - 3;
    }
}

/* As LIBSVM text; zeros are left out unless `dense`. */
static struct set *made_set(const char *name, bool dense, double holdout) {
    char *text, weights[64];
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct set *set;
    struct pack *pack;
    bool made;
    for (unsigned i = 0; i < ROWS; i++) {
        fprintf(file, "%d", i % 2 ? 1 : -1);
        for (unsigned j = 0; j < COLUMNS; j++)
            if (dense || table[i][j] != 0)
                fprintf(file, " %u:%.17g", j + 1, table[i][j]);
        fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
    const char *path = fixture_bytes(name, text, length);
    free(text);
    file = open_memstream(&text, &length);
    for (unsigned i = 0; i < ROWS; i++)
        fprintf(file, "%.17g\n", weight[i]);
    assert_int_equal(fclose(file), 0);
    snprintf(weights, sizeof weights, "%s.weights", name);
    const struct source_options reading = {.property.file[ROW_WEIGHT] =
                                               fixture_bytes(weights, text, length)};
    free(text);
    assert_int_equal(pack_of_source(fixture_path("packs"), path, &reading, 2, &pack, &made), 0);
    const struct set_options options = {
        .labels = LABEL_BINARY, .holdout = holdout, .keep_holdout = holdout > 0, .threads = 2};
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, &options, &set, &made), 0);
    pack_close(pack);
    return set;
}

static void assert_moments(struct set *set, const struct moments *moments) {
    for (unsigned column = 0; column < COLUMNS; column++) {
        unsigned j = (unsigned)set_info(set)->feature_id[column] - 1;
        long double sum = 0, square = 0, all = 0;
        uint64_t nonzero = 0;
        for (unsigned i = 0; i < ROWS; i++) {
            all += weight[i];
            sum += weight[i] * (long double)table[i][j];
            nonzero += weight[i] > 0 && table[i][j] != 0;
        }
        for (unsigned i = 0; i < ROWS; i++)
            square += weight[i] * (table[i][j] - sum / all) * (table[i][j] - sum / all);
        double mean = (double)(sum / all), variance = j == 3 ? 0 : (double)(square / all);
        assert_true(fabs(moments->mean[column] - mean) <= 1e-13 * fabs(mean));
        assert_true(fabs(moments->variance[column] - variance) <= 1e-12 * variance);
        assert_int_equal(moments->nonzero[column], nonzero);
    }
}

static void the_mean_square_of_a_row_is_that_of_its_columns(void **state) {
    (void)state;
    draw();
    for (unsigned i = 0; i < ROWS; i++)
        weight[i] = i % 9 == 2 ? 0 : 1 + i % 7;
    for (int dense = 0; dense < 2; dense++) {
        struct set *set = made_set(dense ? "dense-squares" : "sparse-squares", dense, 0);
        const struct moments unknown = {.kind = MOMENTS_NONE};
        double squares[COLUMNS], sum = 0, one, three;
        assert_int_equal(moments_squares(set, 1, &unknown, squares), 0);
        for (unsigned j = 0; j < COLUMNS; j++)
            sum += squares[j];
        assert_int_equal(set_mean_square(set, 1, &one), 0);
        assert_int_equal(set_mean_square(set, 3, &three), 0);
        assert_true(fabs(one - sum) <= 1e-13 * sum);
        assert_memory_equal(&one, &three, sizeof one);
        set_close(set);
    }
}

static void they_are_those_of_all_rows_stored_or_not(void **state) {
    (void)state;
    draw();
    for (int dense = 0; dense < 2; dense++) {
        struct set *set = made_set(dense ? "dense" : "sparse", dense, 0);
        struct moments moments;
        assert_int_equal(moments_find(set, 1, &moments), 0);
        assert_moments(set, &moments);
        moments_release(&moments);
        set_close(set);
    }
}

/* Far apart, and of 0. At last, column 3 is stored in all rows that weigh something, and constant.
 */
static void rows_count_with_their_weights(void **state) {
    (void)state;
    draw();
    for (unsigned i = 0; i < ROWS; i++)
        weight[i] = i % 9 == 2 ? 0 : exp((double)(i % 40) - 25) / 3;
    for (int dense = 1; dense >= 0; dense--) {
        struct set *set = made_set(dense ? "dense-weighted" : "sparse-weighted", dense, 0);
        struct moments moments;
        assert_true(set_info(set)->weighted);
        assert_int_equal(moments_find(set, 1, &moments), 0);
        assert_moments(set, &moments);
        moments_release(&moments);
        set_close(set);
        for (unsigned i = 0; i < ROWS; i++)
            table[i][3] = weight[i] > 0 ? 0.1 : 0;
    }
}

static void they_have_the_same_bits_with_any_number_of_threads(void **state) {
    (void)state;
    draw();
    struct set *set = made_set("threads", false, 0);
    struct moments one, many;
    assert_int_equal(moments_find(set, 1, &one), 0);
    for (unsigned threads = 2; threads < 40; threads += SANITIZED ? 18 : 9) {
        assert_int_equal(moments_find(set, threads, &many), 0);
        assert_memory_equal(many.mean, one.mean, COLUMNS * sizeof *one.mean);
        assert_memory_equal(many.variance, one.variance, COLUMNS * sizeof *one.variance);
        moments_release(&many);
    }
    moments_release(&one);
    set_close(set);
}

/* More columns than rows, so that threads take ranges of columns: 1 is in every row, each other one
 * in two rows, and every row has eight of them. */
enum { PER_ROW = 8 };

static struct set *made_wide_set(const char *name, unsigned rows) {
    char *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct set *set;
    struct pack *pack;
    bool made;
    for (unsigned i = 0; i < rows; i++) {
        fprintf(file, "%d 1:%u", i % 2 ? 1 : -1, i % 3);
        for (unsigned k = 0; k < PER_ROW; k++)
            fprintf(file, " %u:%u", 2 + (i % (rows / 2)) * PER_ROW + k, 1 + i % 5);
        fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
    const char *path = fixture_bytes(name, text, length);
    free(text);
    assert_int_equal(
        pack_of_source(fixture_path("packs"), path, &(struct source_options){0}, 2, &pack, &made),
        0);
    const struct set_options options = {.labels = LABEL_BINARY, .threads = 2};
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, &options, &set, &made), 0);
    pack_close(pack);
    return set;
}

static void assert_shared(const char *name, unsigned wide) {
    unsigned rows = wide * 2 / PER_ROW;
    struct set *set = made_wide_set(name, rows);
    const struct set_info *info = set_info(set);
    struct moments one, many, none = {0};
    double *squares = memory_new(info->features, sizeof *squares);
    assert_int_equal(info->features, wide + 1);
    assert_int_equal(moments_find(set, 1, &one), 0);
    assert_int_equal(one.rows, rows);
    assert_int_equal(moments_squares(set, 3, &none, squares), 0);
    for (uint32_t column = 0; column < info->features; column++) {
        uint64_t id = info->feature_id[column];
        unsigned i = (unsigned)(id - 2) / PER_ROW, a = 1 + i % 5, b = 1 + (i + rows / 2) % 5;
        if (id == 1)
            continue;
        assert_int_equal(one.nonzero[column], 2);
        assert_true(one.mean[column] == (double)(a + b) / rows);
        assert_true(squares[column] == (double)(a * a + b * b) / rows);
    }
    for (unsigned threads = 2; threads < 40; threads += SANITIZED ? 18 : 9) {
        assert_int_equal(moments_find(set, threads, &many), 0);
        assert_int_equal(many.rows, one.rows);
        assert_memory_equal(many.mean, one.mean, info->features * sizeof *one.mean);
        assert_memory_equal(many.variance, one.variance, info->features * sizeof *one.variance);
        assert_memory_equal(many.nonzero, one.nonzero, info->features * sizeof *one.nonzero);
        moments_release(&many);
    }
    free(squares);
    moments_release(&one);
    set_close(set);
}

/* Groups of chunks are one of 140,000 columns, and sixteen of 20,000. */
static void threads_share_the_columns_of_wide_sets(void **state) {
    (void)state;
    assert_shared("one-group", 140000);
    assert_shared("many-groups", 20000);
}

/* Read at once, or taken from moments, with and without weights and held-out rows. */
static void squares_are_those_of_the_moments(void **state) {
    (void)state;
    draw();
    for (int form = 0; form < 4; form++) {
        for (unsigned i = 0; i < ROWS; i++)
            weight[i] = form % 2 ? (double)(i % 5) / 3 : 1;
        struct set *set = made_set(form < 2 ? "squares" : "squares-dense", form >= 2, 0.3);
        struct moments moments, none = {0};
        double *read = memory_new(COLUMNS, sizeof *read),
               *again = memory_new(COLUMNS, sizeof *read),
               *known = memory_new(COLUMNS, sizeof *read);
        assert_int_equal(moments_find(set, 2, &moments), 0);
        assert_int_equal(moments_squares(set, 1, &none, read), 0);
        set_forget_squares(set);
        assert_int_equal(moments_squares(set, 7, &none, again), 0);
        assert_int_equal(moments_squares(set, 1, &moments, known), 0);
        assert_memory_equal(read, again, COLUMNS * sizeof *read);
        for (uint32_t column = 0; column < COLUMNS; column++)
            assert_true(read[column] > 0 &&
                        fabs(read[column] - known[column]) <= 1e-12 * known[column]);
        free(read);
        free(again);
        free(known);
        moments_release(&moments);
        set_close(set);
    }
}

/* The means are those of the moments for any number of threads, whether these are known or not. */
static void assert_means(struct set *set) {
    const size_t bytes = set_info(set)->features * sizeof(double);
    struct moments moments, none = {0};
    double *means;
    assert_int_equal(moments_find(set, 2, &moments), 0);
    for (unsigned threads = 1; threads < 40; threads += SANITIZED ? 18 : 9) {
        assert_int_equal(moments_means(set, threads, &none, &means), 0);
        assert_memory_equal(means, moments.mean, bytes);
        memory_unmap(means, bytes);
    }
    assert_int_equal(moments_means(set, 1, &moments, &means), 0);
    assert_memory_equal(means, moments.mean, bytes);
    memory_unmap(means, bytes);
    moments_release(&moments);
    set_close(set);
}

static void means_are_those_of_the_moments(void **state) {
    (void)state;
    draw();
    for (int form = 0; form < 4; form++) {
        for (unsigned i = 0; i < ROWS; i++)
            weight[i] = form % 2 ? (double)(i % 5) / 3 : 1;
        assert_means(made_set(form < 2 ? "means" : "means-dense", form >= 2, 0.3));
    }
    assert_means(made_wide_set("means-wide", 35000));
}

static void sizes_of_columns_follow_from_their_squares(void **state) {
    (void)state;
    draw();
    for (unsigned i = 0; i < ROWS; i++)
        weight[i] = 1;
    struct set *set = made_set("sizes", false, 0.3);
    const struct set_info *info = set_info(set);
    struct moments moments, sizes, none = {0};
    double *squares = memory_new(COLUMNS, sizeof *squares);
    assert_int_equal(moments_find(set, 2, &moments), 0);
    assert_int_equal(moments_squares(set, 1, &none, squares), 0);
    moments_of_squares(info, squares, &sizes);
    assert_true(moments.kind == MOMENTS_EXACT && sizes.kind == MOMENTS_OF_SQUARES);
    for (uint32_t j = 0; j < info->features; j++)
        assert_true(fabs(moments_size(&sizes, j) - moments_size(&moments, j)) <=
                    1e-9 * moments_size(&moments, j));
    free(squares);
    moments_release(&sizes);
    moments_release(&moments);
    set_close(set);
}

static void squares_are_read_once_while_a_set_is_open(void **state) {
    (void)state;
    draw();
    struct set *set = made_set("squares", false, 0.3);
    struct moments none = {0};
    double squares[COLUMNS];
    assert_int_equal(moments_squares(set, 2, &none, squares), 0);
    assert_memory_equal(*set_squares(set), squares, sizeof squares);
    (*set_squares(set))[0] = -1;
    assert_int_equal(moments_squares(set, 2, &none, squares), 0);
    assert_true(squares[0] == -1);
    double *taken;
    assert_int_equal(moments_take_squares(set, 2, &taken), 0);
    assert_memory_equal(taken, squares, sizeof squares);
    assert_null(*set_squares(set));
    memory_unmap(taken, sizeof squares);
    set_close(set);
}

/* A column of 0.1 has rounding in its mean, and no deviation. */
static void held_out_rows_do_not_count(void **state) {
    (void)state;
    draw();
    struct set *set = made_set("held", true, 0.3);
    const struct set_info *info = set_info(set);
    struct moments moments;
    assert_true(info->holdout_rows > 100);
    assert_int_equal(moments_find(set, 2, &moments), 0);
    for (uint32_t column = 0; column < info->features; column++) {
        assert_true(moments.nonzero[column] <= info->rows);
        if (info->feature_id[column] == 4) {
            assert_int_equal(moments.nonzero[column], info->rows);
            assert_true(moments.variance[column] == 0);
        }
    }
    moments_release(&moments);
    set_close(set);
}

/* 80 columns: pixels, of which some are dark; a table has other units beside them, or few columns.
 */
static void columns_of_one_unit_are_nearly_alike(void **state) {
    (void)state;
    enum { PIXELS = 80 };
    double mean[PIXELS], variance[PIXELS];
    uint64_t nonzero[PIXELS];
    const struct moments moments = {mean, variance, nonzero, 1000, MOMENTS_EXACT};
    for (unsigned j = 0; j < PIXELS; j++) {
        mean[j] = 100 - j / 2.0;
        variance[j] = 900;
        nonzero[j] = j ? 900 : 0;
    }
    mean[3] = 0.001;
    variance[3] = 0.01;
    nonzero[3] = 2;
    assert_true(moments_size(&moments, 0) == 0);
    assert_true(fabs(moments_size(&moments, 3) - sqrt(0.010001 * 500)) < 1e-12);
    assert_true(moments_share_unit(&moments, PIXELS));
    assert_false(moments_share_unit(&moments, 40));
    mean[7] = 1000;
    assert_false(moments_share_unit(&moments, PIXELS));
    mean[7] = 100;
    for (unsigned j = 0; j < PIXELS / 2; j++)
        mean[j] = variance[j] = 1;
    assert_false(moments_share_unit(&moments, PIXELS));
}

/* 80 columns of sizes 1 to 80 in any order: the median is 41, and three times that the bound. */
static void the_largest_column_is_held_against_the_median(void **state) {
    (void)state;
    enum { SIZES = 80 };
    double mean[SIZES], variance[SIZES] = {0};
    uint64_t nonzero[SIZES];
    const struct moments moments = {mean, variance, nonzero, 1000, MOMENTS_EXACT};
    unsigned largest = 0;
    for (unsigned j = 0; j < SIZES; j++) {
        mean[j] = 1 + j * 37 % SIZES;
        nonzero[j] = 1000;
        largest = mean[j] == SIZES ? j : largest;
    }
    mean[largest] = 123;
    assert_true(moments_share_unit(&moments, SIZES));
    mean[largest] = 123.001;
    assert_false(moments_share_unit(&moments, SIZES));
}

SUITE(moments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_all_rows_stored_or_not),
        cmocka_unit_test(the_mean_square_of_a_row_is_that_of_its_columns),
        cmocka_unit_test(rows_count_with_their_weights),
        cmocka_unit_test(columns_of_one_unit_are_nearly_alike),
        cmocka_unit_test(the_largest_column_is_held_against_the_median),
        cmocka_unit_test(they_have_the_same_bits_with_any_number_of_threads),
        cmocka_unit_test(threads_share_the_columns_of_wide_sets),
        cmocka_unit_test(squares_are_those_of_the_moments),
        cmocka_unit_test(means_are_those_of_the_moments),
        cmocka_unit_test(sizes_of_columns_follow_from_their_squares),
        cmocka_unit_test(squares_are_read_once_while_a_set_is_open),
        cmocka_unit_test(held_out_rows_do_not_count),
    };
    return cmocka_run_group_tests_name("moments", tests, fixture_set_up, fixture_tear_down);
}
