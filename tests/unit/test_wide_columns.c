/* Sets whose columns have numbers of 64 bits until they are cut into strips. Few columns are made
 * to have such numbers: as many as would need them do not fit into a test. */
#include "tests/unit/suites.h"
#include "data/set/set.h"
#include "data/set/tiles.h"
#include "tests/unit/data_fixture.h"

#define ROWS 1200
#define STRIP 1000
#define FILES 3
#define NARROW 700 /* so many columns have 32 bits: there are more */

struct packs {
    struct pack *pack[FILES];
};

static void open_packs(struct packs *packs, bool weighted) {
    for (unsigned i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u", i);
        packs->pack[i] = fixture_pack(name, (uint64_t)i * ROWS / FILES,
                                      (uint64_t)(i + 1) * ROWS / FILES, weighted);
    }
}

static void close_packs(struct packs *packs) {
    for (unsigned i = 0; i < FILES; i++)
        pack_close(packs->pack[i]);
}

/* ---- the same set ---- */

static struct set *merged(const struct packs *packs, const char *folder,
                          const struct set_options *options) {
    struct set *set;
    bool made;
    if (set_of_packs(fixture_path(folder), packs->pack, FILES, options, &set, &made))
        fail_msg("%s", error_text());
    assert_true(made);
    return set;
}

static char *file_of(struct set *set, size_t *length) {
    char *data = NULL;
    if (file_read(set_path(set), SIZE_MAX, &data, length))
        fail_msg("%s", error_text());
    return data;
}

static void assert_same_file(struct set *a, struct set *b) {
    size_t length, other_length;
    char *data = file_of(a, &length), *other = file_of(b, &other_length);
    assert_int_equal(length, other_length);
    assert_memory_equal(data, other, length);
    free(data);
    free(other);
}

static void how_many_bits_columns_have_changes_no_byte_of_a_set(void **state) {
    (void)state;
    const struct {
        bool weighted;
        double holdout;
        const char *folder[2];
    } cases[] = {{false, 0, {"narrow0", "wide0"}},
                 {true, 0, {"narrow1", "wide1"}},
                 {false, 0.3, {"narrow2", "wide2"}},
                 {true, 0.3, {"narrow3", "wide3"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct packs packs;
        struct set_options options = {.labels = LABEL_BINARY,
                                      .holdout = cases[i].holdout,
                                      .keep_holdout = true,
                                      .strip_columns = STRIP,
                                      .threads = 2};
        open_packs(&packs, cases[i].weighted);
        struct set *narrow = merged(&packs, cases[i].folder[0], &options);
        options.narrow_columns = NARROW;
        struct set *wide = merged(&packs, cases[i].folder[1], &options);
        assert_true(set_info(wide)->features > 2 * NARROW && set_strips(set_info(wide)) > 2);
        assert_same_file(narrow, wide);
        set_close(narrow);
        set_close(wide);
        close_packs(&packs);
    }
}

/* Packs that have much in common are merged as if they had more columns than they have. */
static void columns_that_are_fewer_than_feared_need_no_tiles(void **state) {
    (void)state;
    struct packs packs;
    open_packs(&packs, false);
    const struct packs alike = {{packs.pack[0], packs.pack[0], packs.pack[0]}};
    struct set_options options = {.labels = LABEL_BINARY, .threads = 2};
    struct set *narrow = merged(&alike, "whole", &options);
    uint64_t features = set_info(narrow)->features;
    options.narrow_columns = (uint32_t)features;
    struct set *wide = merged(&alike, "feared", &options);
    assert_same_file(narrow, wide);
    set_close(narrow);
    set_close(wide);
    close_packs(&packs);
}

/* ---- what is refused ---- */

static void whole_rows_of_more_columns_than_they_may_have_are_refused(void **state) {
    (void)state;
    struct packs packs;
    struct set *set;
    bool made;
    open_packs(&packs, false);
    const struct set_options options = {
        .labels = LABEL_BINARY, .narrow_columns = NARROW, .threads = 2};
    assert_int_equal(
        set_of_packs(fixture_path("refused"), packs.pack, FILES, &options, &set, &made),
        ERROR_DATA);
    assert_non_null(strstr(error_text(), "not cut into tiles"));
    assert_non_null(strstr(error_text(), "2147483647"));
    error_clear();
    close_packs(&packs);
}

static void tables_of_more_columns_than_they_may_have_are_refused(void **state) {
    (void)state;
    struct pack *pack[2];
    struct set *set;
    bool made;
    const struct source_options reading = {.format = FORMAT_CSV};
    const char *text[] = {"town,y\na,1\nb,0\n", "town,y\nc,1\nd,0\n"};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pack_of_source(fixture_path("packs"),
                                        fixture_text(i ? "more.csv" : "some.csv", text[i]),
                                        &reading, 1, &pack[i], &made),
                         0);
    const struct set_options options = {
        .labels = LABEL_BINARY, .narrow_columns = 3, .strip_columns = 2, .threads = 1};
    assert_int_equal(set_of_packs(fixture_path("refused"), pack, 2, &options, &set, &made),
                     ERROR_DATA);
    assert_non_null(strstr(error_text(), "more.csv") ? error_text()
                                                     : strstr(error_text(), "some.csv"));
    assert_non_null(strstr(error_text(), "csv.hash"));
    error_clear();
    pack_close(pack[0]);
    pack_close(pack[1]);
}

/* ---- columns beyond 2^32 ---- */

#define WIDE_STRIP (1u << 21)

/* What a set is written from, without its file. */
struct writing {
    struct split split;
    struct columns columns;
    struct labels labels;
    struct row_weights row_weights;
    struct chunk_plan plan;
    struct chunk_source source;
    struct container_writer container;
    uint64_t apart; /* how far columns are from each other */
};

/* Column c becomes column c·apart of COLUMNS_MAX. */
static void spread(struct writing *writing) {
    struct columns *columns = &writing->columns;
    writing->apart = COLUMNS_MAX / columns->count;
    assert_true(columns->wide && writing->apart > STRIP);
    for (uint32_t p = 0; p < columns->packs; p++)
        for (uint32_t i = 0; i < writing->split.packs[p]->facts->features; i++)
            if (columns_has(columns, p, i))
                columns->of_pack[p].wide[i] *= writing->apart;
    columns->count = COLUMNS_MAX;
}

static void plan_writing(struct writing *writing, const struct packs *packs) {
    const struct set_options options = {.labels = LABEL_BINARY,
                                        .narrow_columns = NARROW,
                                        .strip_columns = WIDE_STRIP,
                                        .threads = 2};
    *writing = (struct writing){.source = {&writing->split, &writing->columns, &writing->labels,
                                           &writing->row_weights, &writing->plan}};
    assert_int_equal(split_make(&writing->split, packs->pack, FILES, &options), 0);
    assert_int_equal(columns_find(&writing->columns, &writing->split, &options), 0);
    assert_int_equal(labels_find(&writing->labels, &writing->split, &options), 0);
    assert_int_equal(
        row_weights_find(&writing->row_weights, &writing->split, &writing->labels, NULL), 0);
    spread(writing);
    assert_int_equal(chunk_plan_make(&writing->plan, &writing->split, &writing->columns,
                                     &(struct chunk_extras){false, false, false}, &options),
                     0);
    assert_int_equal(writing->plan.strips, COLUMNS_MAX / WIDE_STRIP);
    assert_int_equal(container_create(&writing->container, &set_kind, fixture_path("beyond.set")),
                     0);
}

static void write_tiles(struct writing *writing) {
    struct chunk_buffer buffer;
    chunk_buffer_init(&buffer);
    tiles_place(&writing->source, &writing->plan, &writing->container, 2);
    for (uint32_t i = 0; i < writing->plan.chunks; i++) {
        chunk_fill(&buffer, &writing->source, &writing->plan.chunk[i], &writing->plan.trained);
        assert_int_equal(tiles_write(&buffer, &writing->plan, i, &writing->container), 0);
    }
    chunk_buffer_release(&buffer);
}

/* Appends what row after row of a tile has to `column` and `value`, where `next` says. */
static void read_tile(const struct writing *writing, uint32_t chunk, uint32_t strip, uint32_t *next,
                      uint64_t *column, double *value) {
    const struct set_chunk *of = &writing->plan.chunk[chunk];
    const struct set_tile *tile = &writing->plan.tile[(size_t)strip * writing->plan.chunks + chunk];
    const struct set_tile_layout layout = set_tile_layout(of, tile->values);
    if (!tile->values)
        return;
    uint8_t *data = memory_new_aligned(tile->bytes, 1);
    assert_int_equal(
        pread(writing->container.file.descriptor, data, tile->bytes, (off_t)tile->offset),
        tile->bytes);
    const uint32_t *start = (const void *)(data + layout.start);
    const uint32_t *feature = (const void *)(data + layout.feature);
    for (uint32_t row = 0; row < of->rows; row++)
        for (uint32_t i = start[row]; i < start[row + 1]; i++) {
            assert_true(feature[i] < WIDE_STRIP);
            column[next[row]] = (uint64_t)strip * WIDE_STRIP + feature[i];
            value[next[row]++] = value_at((enum value_type)of->type, data + layout.value, i);
        }
    free(data);
}

/* The tiles of a chunk have what it has in an ordinary set, each column in its strip. */
static void assert_tiles(const struct writing *writing, struct set *whole, uint32_t number) {
    struct rows rows;
    assert_int_equal(set_chunk(whole, number, &rows), 0);
    assert_int_equal(writing->plan.chunk[number].rows, rows.count);
    assert_int_equal(writing->plan.chunk[number].values, rows.values);
    uint32_t *next = memory_new(rows.count, sizeof *next);
    uint64_t *column = memory_new(rows.values, sizeof *column);
    double *value = memory_new(rows.values, sizeof *value);
    memcpy(next, rows.start, rows.count * sizeof *next);
    for (uint32_t strip = 0; strip < writing->plan.strips; strip++)
        read_tile(writing, number, strip, next, column, value);
    for (uint32_t row = 0; row < rows.count; row++)
        assert_int_equal(next[row], rows.start[row + 1]);
    for (uint64_t i = 0; i < rows.values; i++) {
        assert_int_equal(column[i], rows.feature[i] * writing->apart);
        assert_true(value[i] == value_at(rows.type, rows.value, i));
    }
    free(next);
    free(column);
    free(value);
}

static void columns_beyond_32_bits_come_to_their_strips(void **state) {
    (void)state;
    struct packs packs;
    struct writing writing;
    open_packs(&packs, false);
    struct set *whole =
        merged(&packs, "ordinary", &(struct set_options){.labels = LABEL_BINARY, .threads = 2});
    plan_writing(&writing, &packs);
    assert_int_equal(writing.plan.chunks, set_info(whole)->chunks);
    assert_true(set_info(whole)->features * writing.apart > UINT64_C(1) << 32);
    write_tiles(&writing);
    for (uint32_t i = 0; i < writing.plan.chunks; i++)
        assert_tiles(&writing, whole, i);
    container_discard(&writing.container);
    writing.columns.count = set_info(whole)->features;
    chunk_plan_release(&writing.plan);
    row_weights_release(&writing.row_weights);
    labels_release(&writing.labels);
    columns_release(&writing.columns);
    split_release(&writing.split);
    set_close(whole);
    close_packs(&packs);
}

/* ---- what a file says ---- */

static void orders_of_columns_have_64_bits_where_they_must(void **state) {
    (void)state;
    const uint64_t wide[] = {UINT64_C(1) << 32, 0};
    const uint32_t narrow[] = {1, 0};
    assert_int_equal(column_number_bytes(FEATURES_MAX), sizeof *narrow);
    assert_int_equal(column_number_bytes(FEATURES_MAX + UINT64_C(1)), sizeof *wide);
    struct column_order order = column_order_of(wide, COLUMNS_MAX);
    assert_true(column_order_at(&order, 0) == wide[0] && column_order_data(&order) == wide);
    order = column_order_of(narrow, 2);
    assert_true(column_order_at(&order, 0) == 1 && column_order_data(&order) == narrow);
    order = (struct column_order){0};
    assert_true(column_order_at(&order, wide[0]) == wide[0]);
}

SUITE(wide_columns) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_many_bits_columns_have_changes_no_byte_of_a_set),
        cmocka_unit_test(columns_that_are_fewer_than_feared_need_no_tiles),
        cmocka_unit_test(whole_rows_of_more_columns_than_they_may_have_are_refused),
        cmocka_unit_test(tables_of_more_columns_than_they_may_have_are_refused),
        cmocka_unit_test(columns_beyond_32_bits_come_to_their_strips),
        cmocka_unit_test(orders_of_columns_have_64_bits_where_they_must),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
