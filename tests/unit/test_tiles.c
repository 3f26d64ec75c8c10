/* Sets in tiles: chunks that are cut along columns. */
#include <sys/stat.h>

#include "tests/unit/suites.h"
#include "data/set/statistics.h"
#include "data/set/set_file.h"
#include "tests/unit/data_fixture.h"

#define ROWS 3000
#define STRIP 1000
#define FILES_MAX 5

/* A set of `files` files that have the rows between them, with weights or without. */
static struct set *made_of(unsigned files, bool weighted, const char *folder,
                           const struct set_options *options) {
    struct pack *pack[FILES_MAX];
    struct set *set;
    bool made;
    assert_true(files <= FILES_MAX);
    for (unsigned i = 0; i < files; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u-%u", files, i);
        pack[i] = fixture_pack(name, (uint64_t)i * ROWS / files, (uint64_t)(i + 1) * ROWS / files,
                               weighted);
    }
    if (set_of_packs(fixture_path(folder), pack, files, options, &set, &made))
        fail_msg("%s", error_text());
    while (files)
        pack_close(pack[--files]);
    return set;
}

static struct set *made(const struct set_options *options) {
    return made_of(1, false, "sets", options);
}

static struct rows tile_of(struct set *set, uint32_t number) {
    struct rows rows;
    if (set_tile(set, number, &rows))
        fail_msg("%s", error_text());
    return rows;
}

/* What a row has in all tiles is what it has in the chunk. */
static void assert_row(struct set *tiled, const struct rows *chunk, uint32_t number, uint32_t row) {
    const struct set_info *info = set_info(tiled);
    uint32_t at = chunk->start[row];
    double sum = 1;
    for (uint32_t strip = 0; strip < set_strips(info); strip++) {
        struct rows tile = tile_of(tiled, strip * info->chunks + number);
        for (uint32_t i = tile.start[row]; i < tile.start[row + 1]; i++, at++) {
            assert_true(tile.feature[i] < tile.features);
            assert_int_equal(tile.feature[i] + strip * info->strip_columns, chunk->feature[at]);
            double value = value_at(tile.type, tile.value, i);
            assert_true(value == value_at(chunk->type, chunk->value, at));
            sum += fabs(value);
        }
    }
    assert_int_equal(at, chunk->start[row + 1]);
    int size = tile_of(tiled, number).size[row];
    assert_true(sum <= ldexp(1, size) && sum > ldexp(0.499, size));
}

static void assert_same_rows(struct set *tiled, struct set *whole) {
    const struct set_info *info = set_info(tiled);
    assert_int_equal(info->chunks, set_info(whole)->chunks);
    for (uint32_t number = 0; number < info->chunks; number++) {
        struct rows chunk, tile;
        assert_int_equal(set_chunk(whole, number, &chunk), 0);
        uint64_t values = 0;
        for (uint32_t strip = 0; strip < set_strips(info); strip++) {
            tile = tile_of(tiled, strip * info->chunks + number);
            assert_int_equal(tile.count, chunk.count);
            assert_int_equal(tile.first, chunk.first);
            assert_int_equal(tile.type, chunk.type);
            assert_memory_equal(tile.label, chunk.label, chunk.count * sizeof *chunk.label);
            assert_int_equal(tile.weight != NULL, chunk.weight != NULL);
            if (tile.weight)
                assert_memory_equal(tile.weight, chunk.weight, chunk.count * sizeof *chunk.weight);
            values += tile.values;
        }
        assert_int_equal(values, chunk.values);
        for (uint32_t row = 0; row < chunk.count; row++)
            assert_row(tiled, &chunk, number, row);
    }
}

/* All that is said of the set but how it is cut. */
static void assert_same_columns(struct set *tiled, struct set *whole) {
    const struct set_info *a = set_info(tiled), *b = set_info(whole);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->values, b->values);
    assert_int_equal(a->weighted, b->weighted);
    assert_memory_equal(a->feature_id, b->feature_id, a->features * sizeof *a->feature_id);
    assert_memory_equal(a->exponent, b->exponent, (a->features + 1) * sizeof *a->exponent);
    assert_memory_equal(a->original_order.narrow, b->original_order.narrow,
                        a->features * sizeof(uint32_t));
    assert_string_not_equal(a->fingerprint, b->fingerprint);
}

static void tiles_hold_what_the_chunks_of_the_ordinary_set_hold(void **state) {
    (void)state;
    static const char *const heavy[] = {"1 = 3", NULL};
    const struct {
        enum label_kind labels;
        bool weighted;
        const char *const *class_weight;
        double holdout;
    } cases[] = {{LABEL_BINARY, false, NULL, 0}, {LABEL_BINARY, true, NULL, 0},
                 {LABEL_BINARY, true, heavy, 0}, {LABEL_TARGET, false, NULL, 0},
                 {LABEL_TARGET, true, NULL, 0},  {LABEL_BINARY, false, NULL, 0.3},
                 {LABEL_TARGET, true, NULL, 0.3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct set_options options = {.labels = cases[i].labels,
                                      .class_weight = cases[i].class_weight,
                                      .holdout = cases[i].holdout,
                                      .keep_holdout = true,
                                      .threads = 2};
        struct set *whole = made_of(1, cases[i].weighted, "sets", &options);
        options.strip_columns = STRIP;
        struct set *tiled = made_of(1, cases[i].weighted, "sets", &options);
        const struct set_info *info = set_info(tiled);
        uint32_t strips = set_strips(info);
        assert_int_equal(info->strip_columns, STRIP);
        assert_int_equal(set_tiles(info), strips * info->chunks);
        assert_int_equal(info->holdout_chunks > 0, cases[i].holdout > 0);
        assert_int_equal(set_vector_rows(info), info->rows + info->holdout_rows);
        assert_true(strips > 3 && info->chunks > 3 && info->features % STRIP);
        assert_int_equal(tile_of(tiled, 0).features, STRIP);
        assert_int_equal(tile_of(tiled, strips * info->chunks - 1).features,
                         info->features % STRIP);
        assert_int_equal(set_info(whole)->strip_columns + set_tiles(set_info(whole)), 0);
        assert_same_columns(tiled, whole);
        assert_same_rows(tiled, whole);
        set_close(tiled);
        set_close(whole);
    }
}

/* Of a table: bins, means for what is missing, and what the second file lacks. */
static void tiles_hold_what_values_of_a_table_bring_with_them(void **state) {
    (void)state;
    struct pack *pack[2];
    struct set *set[2];
    bool now;
    for (unsigned file = 0; file < 2; file++) {
        char *text, name[] = "table0.csv";
        size_t length;
        FILE *stream = open_memstream(&text, &length);
        fprintf(stream, file ? "a,n,y\n" : "a,b,n,y\n");
        for (unsigned i = 0; i < 3000; i++) {
            fprintf(stream, "t%u,", i * 7919 % 50);
            if (!file)
                fprintf(stream, "u%u,", i * 104729 % 40);
            if (i % 5)
                fprintf(stream, "%u", i % 97);
            fprintf(stream, ",%d\n", i % 3 == 0);
        }
        assert_int_equal(fclose(stream), 0);
        name[5] = (char)('0' + file);
        const struct source_options reading = {0};
        if (pack_of_source(fixture_path("packs"), fixture_text(name, text), &reading, 1,
                           &pack[file], &now))
            fail_msg("%s", error_text());
        free(text);
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct set_options options = {
            .labels = LABEL_BINARY, .bins = 4, .threads = 2, .strip_columns = i ? 16 : 0};
        if (set_of_packs(fixture_path("sets"), pack, 2, &options, &set[i], &now))
            fail_msg("%s", error_text());
    }
    assert_true(set_strips(set_info(set[1])) > 4 && set_info(set[1])->chunks > 4);
    assert_same_columns(set[1], set[0]);
    assert_same_rows(set[1], set[0]);
    for (unsigned i = 0; i < 2; i++) {
        set_close(set[i]);
        pack_close(pack[i]);
    }
}

static void assert_same_bytes(const void *one, const void *other, size_t bytes) {
    assert_memory_equal(one, other, bytes);
}

static void threads_and_files_do_not_change_the_tiles(void **state) {
    (void)state;
    static const struct {
        unsigned files, threads;
        const char *folder;
    } ways[] = {{1, 1, "sets-a"}, {1, 4, "sets-b"}, {5, 1, "sets-c"}, {3, 3, "sets-d"}};
    struct set *first = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct set_options options = {
            .labels = LABEL_BINARY, .strip_columns = STRIP, .threads = ways[i].threads};
        struct set *set = made_of(ways[i].files, true, ways[i].folder, &options);
        if (!first) {
            first = set;
            continue;
        }
        assert_string_equal(set_info(set)->fingerprint, set_info(first)->fingerprint);
        for (uint32_t number = 0; number < set_tiles(set_info(set)); number++) {
            struct rows a = tile_of(first, number), b = tile_of(set, number);
            assert_same_bytes(a.start, b.start, (a.count + 1) * sizeof *a.start);
            assert_same_bytes(a.feature, b.feature, a.values * sizeof *a.feature);
            assert_same_bytes(a.value, b.value, a.values * value_bytes(a.type));
            assert_same_bytes(a.size, b.size, a.count * sizeof *a.size);
        }
        set_close(set);
    }
    set_close(first);
}

static uint64_t bytes_of(const struct set *set) {
    struct stat status;
    assert_int_equal(stat(set_path(set), &status), 0);
    return (uint64_t)status.st_size;
}

/* Each strip is one run of bytes, in the order of its chunks: no other strip is read with it. */
static void a_strip_is_stored_in_one_piece(void **state) {
    (void)state;
    struct set *set = made(&(struct set_options){.strip_columns = STRIP});
    struct container container;
    const void *tiles;
    uint32_t count = set_tiles(set_info(set));
    assert_int_equal(container_open(&container, &set_kind, set_path(set)), 0);
    assert_int_equal(container_array(&container, SET_TILES, count, sizeof(struct set_tile), &tiles),
                     0);
    const struct set_tile *tile = tiles;
    for (uint32_t i = 1; i < count; i++)
        assert_int_equal(tile[i].offset, tile[i - 1].offset + tile[i - 1].bytes);
    assert_true(tile[count - 1].offset + tile[count - 1].bytes <= bytes_of(set));
    container_close(&container);
    set_close(set);
}

static void only_wide_sparse_sets_are_in_tiles(void **state) {
    (void)state;
    const struct set_options plain = {.labels = LABEL_BINARY, .threads = 2};
    struct set *set = made(&plain);
    char *path = memory_copy_string(set_path(set));
    const uint32_t columns = (uint32_t)set_info(set)->features;
    set_close(set);
    const struct {
        struct set_options options;
        uint32_t strips;
    } cases[] = {
        {{.labels = LABEL_BINARY, .strip_columns = columns}, 0},
        {{.labels = LABEL_BINARY, .strip_columns = columns - 1}, 2},
        {{.labels = LABEL_BINARY, .strip_columns = 10, .whole_columns = columns}, 0},
        {{.labels = LABEL_BINARY, .strip_columns = columns / 2 + 1, .whole_columns = columns - 1},
         2},
        {{.labels = LABEL_BINARY, .strip_columns = 10, .shuffled = true}, 0},
        {{.labels = LABEL_BINARY, .strip_columns = columns / 2, .holdout = 0.01}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set = made(&cases[i].options);
        assert_int_equal(set_strips(set_info(set)), cases[i].strips);
        bool same =
            !cases[i].strips && !cases[i].options.shuffled && !(cases[i].options.holdout > 0);
        if (same) /* found again, whatever was asked for */
            assert_string_equal(set_path(set), path);
        set_close(set);
    }
    free(path);
    const char *dense = fixture_text("dense", "1 1:1 2:1 3:2\n0 1:3 2:1 3:1\n");
    const struct source_options reading = {0};
    const struct set_options narrow = {.labels = LABEL_BINARY, .strip_columns = 1};
    struct pack *pack;
    bool made_now;
    assert_int_equal(pack_of_source(fixture_path("packs"), dense, &reading, 1, &pack, &made_now),
                     0);
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, &narrow, &set, &made_now), 0);
    assert_true(set_info(set)->dense && !set_strips(set_info(set)));
    pack_close(pack);
    set_close(set);
}

static struct set *merged_text(const char *text, const struct set_options *options, int code) {
    const struct source_options reading = {0};
    struct pack *pack;
    struct set *set = NULL;
    bool now;
    assert_int_equal(
        pack_of_source(fixture_path("packs"), fixture_text("text", text), &reading, 1, &pack, &now),
        0);
    assert_int_equal(set_of_packs(fixture_path("sets"), &pack, 1, options, &set, &now), code);
    pack_close(pack);
    return set;
}

static void a_row_that_cannot_be_added_up_is_refused(void **state) {
    (void)state;
    struct set_options options = {.labels = LABEL_BINARY};
    static const char text[] = "1 1:1\n0 2:1.7e308 7:1e308\n1 3:1\n0 4:1\n1 5:2\n0 6:3\n";
    set_close(merged_text(text, &options, 0));
    options.strip_columns = 2;
    merged_text(text, &options, ERROR_DATA);
    assert_non_null(strstr(error_text(), "row 2 of training"));
    error_clear();
}

static void ones_are_not_stored(void **state) {
    (void)state;
    const struct set_options options = {.labels = LABEL_BINARY, .strip_columns = 3};
    struct set *set = merged_text("1 1:1 2:1\n0 2:1 7:1\n1 3:1\n0 4:1\n1\n0 6:1\n", &options, 0);
    struct rows rows = tile_of(set, 1);
    assert_null(rows.value);
    assert_int_equal(rows.type, VALUE_ONES);
    assert_int_equal(rows.size[4], 0); /* it has nothing */
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

static void assert_damaged(struct set *set, uint32_t tile, const char *words) {
    struct rows rows;
    assert_int_equal(set_tile(set, tile, &rows), ERROR_DATA);
    assert_non_null(strstr(error_text(), set_path(set)));
    assert_non_null(strstr(error_text(), words));
    error_clear();
}

/* And no other tile is looked at for it. */
static void a_damaged_tile_is_found_at_its_first_touch(void **state) {
    (void)state;
    struct set *set = made(&(struct set_options){.strip_columns = STRIP});
    char *path = memory_copy_string(set_path(set));
    uint32_t chunks = set_info(set)->chunks, damaged = 2 * chunks + 1;
    struct rows rows = tile_of(set, damaged), first = tile_of(set, 0);
    uint64_t head = CONTAINER_ALIGNMENT * 7; /* the labels of the first chunk begin the bulk */
    uint64_t at = head + (uint64_t)((const uint8_t *)rows.feature - (const uint8_t *)first.label);
    set_close(set);
    flip_byte(path, at);
    assert_int_equal(set_open(path, &set), 0);
    for (uint32_t i = 0; i < set_tiles(set_info(set)); i++)
        if (i != damaged)
            tile_of(set, i);
    char words[32];
    snprintf(words, sizeof words, "tile %u", damaged);
    assert_damaged(set, damaged, words);
    set_close(set);
    assert_int_equal(inspect_print(path, true), ERROR_DATA);
    error_clear();
    flip_byte(path, at);
    flip_byte(path, head);
    assert_int_equal(set_open(path, &set), 0);
    assert_damaged(set, chunks, "chunk 0"); /* whose labels it has */
    tile_of(set, chunks + 1);
    set_close(set);
    unlink(path);
    free(path);
}

static void what_there_is_not_is_refused(void **state) {
    (void)state;
    struct set *tiled = made(&(struct set_options){.strip_columns = STRIP});
    struct set *whole = made(&(struct set_options){.threads = 1});
    struct rows rows;
    assert_int_equal(set_chunk(tiled, 0, &rows), ERROR_INTERNAL);
    error_clear();
    assert_int_equal(set_tile(tiled, set_tiles(set_info(tiled)), &rows), ERROR_INTERNAL);
    error_clear();
    assert_int_equal(set_tile(whole, 0, &rows), ERROR_INTERNAL);
    error_clear();
    set_close(whole);
    set_close(tiled);
}

/* What is damaged in the set since is in the copy. */
static void a_copy_has_the_tiles_that_were_read(void **state) {
    (void)state;
    struct set *set = made(&(struct set_options){.strip_columns = STRIP});
    char *path = memory_copy_string(set_path(set));
    struct rows rows = tile_of(set, 0);
    uint64_t at = CONTAINER_ALIGNMENT * 7;
    at += (uint64_t)((const uint8_t *)rows.feature - (const uint8_t *)rows.label);
    assert_true(rows.values > 0);
    set_close(set);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(set_open(path, &set), 0);
        assert_int_equal(set_copy_to(set, fixture_path("copies")), 0);
        tile_of(set, 0);
        set_close(set);
        flip_byte(path, at);
        assert_int_equal(set_open(path, &set), 0);
        if (!round)
            assert_damaged(set, 0, "tile 0");
        set_close(set);
    }
    free(path);
}

static void columns_have_the_moments_of_the_ordinary_set(void **state) {
    (void)state;
    struct set_options options = {.labels = LABEL_TARGET, .threads = 2};
    struct set *whole = made_of(1, true, "sets", &options);
    options.strip_columns = STRIP;
    struct set *tiled = made_of(1, true, "sets", &options);
    uint32_t columns = (uint32_t)set_info(whole)->features;
    double *squares = memory_new(columns, sizeof *squares), *others = memory_new(columns, 8);
    struct moments one, other, none = {0};
    assert_int_equal(moments_find(whole, 2, &one), 0);
    assert_int_equal(moments_find(tiled, 3, &other), 0);
    assert_int_equal(one.rows, other.rows);
    assert_memory_equal(one.mean, other.mean, columns * sizeof *one.mean);
    assert_memory_equal(one.variance, other.variance, columns * sizeof *one.variance);
    assert_memory_equal(one.nonzero, other.nonzero, columns * sizeof *one.nonzero);
    assert_int_equal(moments_squares(whole, 2, &none, squares), 0);
    assert_int_equal(moments_squares(tiled, 1, &none, others), 0);
    assert_memory_equal(squares, others, columns * sizeof *squares);
    free(squares);
    free(others);
    moments_release(&one);
    moments_release(&other);
    set_close(whole);
    set_close(tiled);
}

static void a_sample_has_whole_rows(void **state) {
    (void)state;
    struct set_options options = {.labels = LABEL_BINARY, .threads = 2};
    struct set *whole = made(&options);
    options.strip_columns = STRIP;
    struct set *tiled = made(&options);
    struct sample one, other;
    const struct sample_options sampling = {0};
    assert_int_equal(sample_take(whole, fixture_path("packs"), &sampling, &one), 0);
    assert_int_equal(sample_take(tiled, fixture_path("packs"), &sampling, &other), 0);
    assert_int_equal(one.count, other.count);
    uint64_t values = one.stored_start[one.count];
    assert_true(one.count > 8 && values > 64);
    assert_memory_equal(one.stored_start, other.stored_start,
                        (one.count + 1) * sizeof *one.stored_start);
    assert_memory_equal(one.column, other.column, values * sizeof *one.column);
    assert_memory_equal(one.column_id, other.column_id, values * sizeof *one.column_id);
    assert_memory_equal(one.stored, other.stored, values * sizeof *one.stored);
    sample_release(&one);
    sample_release(&other);
    set_close(whole);
    set_close(tiled);
}

SUITE(tiles) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_hold_what_the_chunks_of_the_ordinary_set_hold),
        cmocka_unit_test(tiles_hold_what_values_of_a_table_bring_with_them),
        cmocka_unit_test(threads_and_files_do_not_change_the_tiles),
        cmocka_unit_test(a_strip_is_stored_in_one_piece),
        cmocka_unit_test(only_wide_sparse_sets_are_in_tiles),
        cmocka_unit_test(a_row_that_cannot_be_added_up_is_refused),
        cmocka_unit_test(ones_are_not_stored),
        cmocka_unit_test(a_damaged_tile_is_found_at_its_first_touch),
        cmocka_unit_test(what_there_is_not_is_refused),
        cmocka_unit_test(a_copy_has_the_tiles_that_were_read),
        cmocka_unit_test(columns_have_the_moments_of_the_ordinary_set),
        cmocka_unit_test(a_sample_has_whole_rows),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
