/* Shuffled sets: the rows of the ordinary set, once each, in the documented order, 64 a chunk. */
#include "tests/unit/suites.h"
#include "base/limits.h"
#include "data/set/set.h"
#include "tests/unit/data_fixture.h"

#define FILES_MAX 4

/* ---- the order, as doc/FORMATS.md has it ---- */

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t seed, uint64_t number) {
    return mix(mix(seed) + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t row_at(uint64_t place, uint64_t rows, uint64_t seed) {
    uint64_t key = key_of(seed, 0), x = place;
    unsigned half = 1;
    while ((UINT64_C(1) << 2 * half) < rows)
        half++;
    do {
        uint64_t left = x >> half, right = x & ((UINT64_C(1) << half) - 1);
        for (unsigned i = 0; i < 6; i++) {
            uint64_t other = mix(key_of(key, i) + right * UINT64_C(0x9e3779b97f4a7c15));
            other = left ^ other >> (64 - half);
            left = right;
            right = other;
        }
        x = left << half | right;
    } while (x >= rows);
    return x;
}

/* ---- sets ---- */

/* Files with what belongs to them, and how they are merged. */
struct wanted {
    const char *path[FILES_MAX], *labels, *weights;
    struct source_options reading;
    struct set_options merging;
};

static struct set *make(const struct wanted *wanted, const char *sets) {
    struct pack *pack[FILES_MAX];
    struct set *set;
    uint32_t count = 0;
    bool made;
    for (; count < FILES_MAX && wanted->path[count]; count++) {
        struct source_options reading = wanted->reading;
        reading.label.file = wanted->labels;
        reading.property.file[ROW_WEIGHT] = wanted->weights;
        if (pack_of_source(fixture_path("packs"), wanted->path[count], &reading, 2, &pack[count],
                           &made))
            fail_msg("%s", error_text());
    }
    struct set_options merging = wanted->merging;
    merging.threads = merging.threads ? merging.threads : 2;
    if (set_of_packs(fixture_path(sets), pack, count, &merging, &set, &made))
        fail_msg("%s", error_text());
    while (count)
        pack_close(pack[--count]);
    return set;
}

static struct set *shuffle(struct wanted wanted, uint64_t seed) {
    wanted.merging.shuffled = true;
    wanted.merging.shuffle_seed = seed;
    return make(&wanted, "sets");
}

/* ---- rows ---- */

/* All that a row has, one behind the other; where each begins. */
struct all_rows {
    struct bytes bytes;
    size_t *start;
    uint64_t count;
};

static void add_row(struct all_rows *all, const struct rows *rows, uint32_t row) {
    uint64_t width = rows->features;
    uint64_t i = rows->dense ? row * width : rows->start[row];
    uint64_t end = rows->dense ? i + width : rows->start[row + 1];
    all->start = memory_resize(all->start, all->count + 2, sizeof *all->start);
    all->start[all->count++] = all->bytes.length;
    bytes_put_f64(&all->bytes, rows->label[row]);
    bytes_put_f64(&all->bytes, rows->weight ? rows->weight[row] : 1);
    for (; i < end; i++) {
        if (!rows->dense)
            bytes_put_u32(&all->bytes, rows->feature[i]);
        bytes_put_f64(&all->bytes, value_at(rows->type, rows->value, i));
    }
    all->start[all->count] = all->bytes.length;
}

static struct all_rows rows_of(struct set *set, uint32_t first, uint32_t end) {
    struct all_rows all = {.start = memory_new(1, sizeof(size_t))};
    bytes_init(&all.bytes);
    for (uint32_t chunk = first; chunk < end; chunk++) {
        struct rows rows;
        assert_int_equal(set_chunk(set, chunk, &rows), 0);
        for (uint32_t row = 0; row < rows.count; row++)
            add_row(&all, &rows, row);
    }
    return all;
}

static void release(struct all_rows *all) {
    bytes_release(&all->bytes);
    free(all->start);
}

static void assert_same_row(const struct all_rows *a, uint64_t i, const struct all_rows *b,
                            uint64_t j) {
    size_t length = a->start[i + 1] - a->start[i];
    assert_int_equal(length, b->start[j + 1] - b->start[j]);
    assert_memory_equal(a->bytes.data + a->start[i], b->bytes.data + b->start[j], length);
}

static void assert_same_facts(const struct set_info *a, const struct set_info *b) {
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->values, b->values);
    assert_int_equal(a->features, b->features);
    assert_int_equal(a->classes, b->classes);
    assert_int_equal(a->holdout_rows, b->holdout_rows);
    assert_int_equal(a->holdout_chunks > 0, b->holdout_chunks > 0);
    assert_true(a->weight_sum == b->weight_sum && a->weight_exponent == b->weight_exponent);
    assert_memory_equal(a->feature_id, b->feature_id, a->features * sizeof *a->feature_id);
    assert_memory_equal(a->exponent, b->exponent, (a->features + 1) * sizeof *a->exponent);
    for (uint32_t i = 0; i < a->classes; i++)
        assert_string_equal(a->class_names[i], b->class_names[i]);
}

static void assert_blocks(struct set *set, uint32_t each) {
    const struct set_info *info = set_info(set);
    assert_int_equal(info->block_rows, each);
    assert_int_equal(set_training_chunks(info), (info->rows + each - 1) / each);
    for (uint32_t i = 0; i < set_training_chunks(info); i++) {
        struct rows rows;
        assert_int_equal(set_chunk(set, i, &rows), 0);
        uint64_t left = info->rows - (uint64_t)each * i;
        assert_int_equal(rows.count, left < each ? left : each);
    }
}

/* The shuffled set against the ordinary one. */
static void assert_shuffled(const struct wanted *wanted) {
    const uint64_t seed = 5;
    struct set *plain = make(wanted, "sets"), *shuffled = shuffle(*wanted, seed);
    const struct set_info *info = set_info(shuffled);
    uint32_t ordinary = set_training_chunks(set_info(plain)), blocks = set_training_chunks(info);
    assert_int_equal(set_info(plain)->block_rows, 0);
    assert_same_facts(set_info(plain), info);
    assert_blocks(shuffled, wanted->merging.block_rows ? wanted->merging.block_rows : 64);
    struct all_rows a = rows_of(plain, 0, ordinary), b = rows_of(shuffled, 0, blocks);
    assert_int_equal(a.count, info->rows);
    assert_int_equal(b.count, info->rows);
    for (uint64_t place = 0; place < info->rows; place++)
        assert_same_row(&b, place, &a, row_at(place, info->rows, seed));
    release(&a);
    release(&b);
    a = rows_of(plain, ordinary, set_info(plain)->chunks);
    b = rows_of(shuffled, blocks, info->chunks);
    for (uint64_t row = 0; row < info->holdout_rows; row++)
        assert_same_row(&a, row, &b, row);
    release(&a);
    release(&b);
    set_close(plain);
    set_close(shuffled);
}

/* ---- files of all kinds ---- */

static const char *sparse_file(const char *name, uint64_t first, uint64_t rows) {
    char *text = fixture_rows(first, rows);
    const char *path = fixture_text(name, text);
    free(text);
    return path;
}

static void sparse_rows_are_shuffled(void **state) {
    (void)state;
    struct wanted wanted = {.path = {sparse_file("sparse", 0, 6000)}};
    assert_shuffled(&wanted);
    wanted.merging.keep_holdout = true;
    wanted.merging.holdout = 0.3;
    assert_shuffled(&wanted);
    wanted.merging.fold = (struct holdout_pick){.share = 0.3, .folds = 3, .fold = 2, .seed = 1};
    assert_shuffled(&wanted);
    wanted.merging.class_weight = (const char *[]){"-1 = 3", NULL};
    assert_shuffled(&wanted);
}

static void chunks_have_the_rows_that_are_asked_for(void **state) {
    (void)state;
    struct wanted wanted = {.path = {sparse_file("few", 0, 1001)}};
    wanted.merging.block_rows = 16;
    assert_shuffled(&wanted);
}

/* 1,001 rows: 15 chunks of 64, 31 of 32 and 62 of 16. */
static void chunks_are_halved_until_there_are_as_many_as_asked_for(void **state) {
    (void)state;
    static const struct {
        uint32_t least, rows;
    } cases[] = {{15, 64}, {16, 32}, {32, 16}, {100, 8}, {1000, 8}};
    struct wanted wanted = {.path = {sparse_file("few", 0, 1001)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wanted.merging.chunks_least = cases[i].least;
        struct set *set = shuffle(wanted, 5);
        assert_blocks(set, cases[i].rows);
        set_close(set);
    }
}

/* Numbers, some missing, categories and weights; `columns` numbers in all. */
static const char *table_file(const char *name, unsigned rows, unsigned columns) {
    struct bytes text;
    bytes_init(&text);
    char word[64];
    for (unsigned i = 0; i < rows; i++) {
        for (unsigned j = 0; j < columns; j++) {
            int length = (i * 7 + j) % 11 ? snprintf(word, sizeof word, "%u.%u,", i * j % 97, j)
                                          : snprintf(word, sizeof word, ",");
            bytes_append(&text, word, (size_t)length);
        }
        int length = snprintf(word, sizeof word, "c%u,%u,k%u\n", i * i % 5, 1 + i % 3, i % 3);
        bytes_append(&text, word, (size_t)length);
    }
    const char *path = fixture_bytes(name, text.data, text.length);
    bytes_release(&text);
    return path;
}

static void tables_with_what_their_rows_bring_are_shuffled(void **state) {
    (void)state;
    struct wanted wanted = {.path = {table_file("table", 1500, 5)},
                            .reading = {.property.column[ROW_WEIGHT] = "7"},
                            .merging = {.labels = LABEL_CLASSES, .category_least = 2}};
    assert_shuffled(&wanted);
    wanted.merging.bins = 8; /* sparse, with values that bring others */
    wanted.merging.keep_holdout = true;
    wanted.merging.holdout = 0.2;
    assert_shuffled(&wanted);
    wanted.reading.property.column[ROW_WEIGHT] = NULL;
    wanted.merging.class_weight = (const char *[]){CLASS_WEIGHT_BALANCED, NULL};
    assert_shuffled(&wanted);
}

static void targets_and_lists_go_with_their_rows(void **state) {
    (void)state;
    struct wanted targets = {.path = {sparse_file("targets", 10, 700)},
                             .merging = {.labels = LABEL_TARGET}};
    assert_shuffled(&targets);
    struct bytes text;
    bytes_init(&text);
    for (unsigned i = 0; i < 500; i++) {
        char line[64];
        int length = snprintf(line, sizeof line, "%u,%u %u:1\n", i % 3, 3 + i % 2, 1 + i % 40);
        bytes_append(&text, line, (size_t)length);
    }
    struct wanted lists = {.path = {fixture_bytes("lists", text.data, text.length)},
                           .reading = {.label.separator = ','},
                           .merging = {.labels = LABEL_LISTS, .separator = ','}};
    bytes_release(&text);
    assert_shuffled(&lists);
}

/* A file of .npy of version 1.0. */
static const char *npy(const char *name, const char *shape, const void *data, size_t bytes) {
    struct bytes file;
    bytes_init(&file);
    bytes_append(&file, "\x93NUMPY\x01\x00\x76\x00", 10);
    char header[119], words[100];
    snprintf(words, sizeof words, "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }", shape);
    snprintf(header, sizeof header, "%-117s\n", words);
    bytes_append(&file, header, 118);
    bytes_append(&file, data, bytes);
    const char *path = fixture_bytes(name, file.data, file.length);
    bytes_release(&file);
    return path;
}

static void images_are_shuffled_as_bytes(void **state) {
    (void)state;
    static uint8_t cells[400 * 30], classes[400];
    for (unsigned i = 0; i < sizeof cells; i++)
        cells[i] = (uint8_t)(i * i % 251);
    for (unsigned i = 0; i < sizeof classes; i++)
        classes[i] = (uint8_t)(i % 4);
    struct wanted wanted = {.path = {npy("images", "(400, 30)", cells, sizeof cells)},
                            .labels = npy("classes", "(400,)", classes, sizeof classes),
                            .merging = {.labels = LABEL_CLASSES}};
    assert_shuffled(&wanted);
    struct set *set = shuffle(wanted, 1);
    assert_int_equal(set_info(set)->type, VALUE_BYTE);
    set_close(set);
}

static void few_rows_and_whole_blocks_are_shuffled(void **state) {
    (void)state;
    static const unsigned rows[] = {2, 63, 64, 65, 128};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wanted wanted = {.path = {sparse_file("few", 0, rows[i])}};
        assert_shuffled(&wanted);
    }
}

/* 64 of these rows have more than CHUNK_BYTES_MAX bytes. */
static void wide_rows_are_64_a_chunk_too(void **state) {
    (void)state;
    enum { WIDE = 4200 };
    assert_true((size_t)64 * WIDE * sizeof(float) > CHUNK_BYTES_MAX);
    struct wanted wanted = {.path = {table_file("wide", 130, WIDE)},
                            .merging = {.labels = LABEL_CLASSES}};
    assert_shuffled(&wanted);
}

/* ---- what no byte depends on ---- */

static const char *fingerprint_of(struct set *set) {
    static char text[8][40];
    static unsigned next;
    char *slot = text[next++ % 8];
    snprintf(slot, sizeof text[0], "%s", set_info(set)->fingerprint);
    set_close(set);
    return slot;
}

static const char *made_with(struct wanted wanted, unsigned threads, uint64_t window,
                             const char *sets) {
    wanted.merging.shuffled = true;
    wanted.merging.shuffle_seed = 3;
    wanted.merging.threads = threads;
    wanted.merging.window_bytes = window;
    return fingerprint_of(make(&wanted, sets));
}

static void threads_windows_and_files_change_nothing(void **state) {
    (void)state;
    struct wanted one = {.path = {sparse_file("whole", 0, 9000)},
                         .merging = {.holdout = 0.1, .keep_holdout = true}};
    struct wanted many = one;
    many.path[0] = sparse_file("part-1", 0, 70);
    many.path[1] = sparse_file("part-2", 70, 5000);
    many.path[2] = sparse_file("part-3", 5070, 3930);
    const char *expected = made_with(one, 1, 0, "sets-1");
    assert_string_equal(made_with(one, 7, 0, "sets-2"), expected);
    assert_string_equal(made_with(one, 4, 1, "sets-3"), expected); /* a chunk at a time */
    assert_string_equal(made_with(one, 3, 50000, "sets-4"), expected);
    assert_string_equal(made_with(many, 2, 30000, "sets-5"), expected);
}

static void another_seed_is_another_set(void **state) {
    (void)state;
    struct wanted wanted = {.path = {sparse_file("seeds", 0, 300)}};
    struct set *one = shuffle(wanted, 1), *other = shuffle(wanted, 2),
               *plain = make(&wanted, "sets");
    assert_string_not_equal(set_path(one), set_path(other));
    assert_string_not_equal(set_path(one), set_path(plain));
    assert_string_not_equal(set_info(one)->fingerprint, set_info(other)->fingerprint);
    set_close(one);
    set_close(other);
    set_close(plain);
}

SUITE(set_shuffled) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_rows_are_shuffled),
        cmocka_unit_test(chunks_have_the_rows_that_are_asked_for),
        cmocka_unit_test(chunks_are_halved_until_there_are_as_many_as_asked_for),
        cmocka_unit_test(tables_with_what_their_rows_bring_are_shuffled),
        cmocka_unit_test(targets_and_lists_go_with_their_rows),
        cmocka_unit_test(images_are_shuffled_as_bytes),
        cmocka_unit_test(few_rows_and_whole_blocks_are_shuffled),
        cmocka_unit_test(wide_rows_are_64_a_chunk_too),
        cmocka_unit_test(threads_windows_and_files_change_nothing),
        cmocka_unit_test(another_seed_is_another_set),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
