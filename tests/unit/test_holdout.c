/* Which rows are held out, rows read back from packs, and figures over them. */
#include "tests/unit/suites.h"
#include "base/hash.h"
#include "data/set/holdout.h"

#include "data/pack/pack.h"
#include "model/score.h"
#include "tests/unit/data_fixture.h"

/* ---- the hash ---- */

/* A hash as good as that of a row. */
static uint64_t hash_of(uint64_t row) {
    return hash64(&row, sizeof row);
}

static int take_hash(void *context, const struct source_rows *rows) {
    *(uint64_t *)context = holdout_hash(rows, 0);
    return 0;
}

/* That of the first row of a pack. */
static uint64_t first_hash(const char *path, const struct source_options *options) {
    struct pack *pack;
    bool made;
    uint64_t hash = 0;
    if (pack_of_source(fixture_path("packs"), path, options, 1, &pack, &made))
        fail_msg("%s", error_text());
    assert_int_equal(pack_read(pack, take_hash, &hash), 0);
    pack_close(pack);
    return hash;
}

static uint64_t line_hash(const char *line, const char *end) {
    static const struct source_options any;
    char *text = memory_format("%s%s", line, end);
    uint64_t hash = first_hash(fixture_text("line", text), &any);
    free(text);
    return hash;
}

static void the_hash_of_a_row_is_the_one_that_is_documented(void **state) {
    static const struct {
        const char *line;
        uint64_t hash;
    } rows[] = {
        {"1 3:1 11:0.5 281474976710655:-0.002", UINT64_C(0xe897f6c3ef96e812)},
        {"-1", UINT64_C(0xbc25a7b612cba21f)},
        {"5.1,3.5,setosa", UINT64_C(0xb483e6c82b9f20d9)},
        {"{\"a\": 5.1, \"kind\": \"setosa\"}", UINT64_C(0x19c6f9eb99e766b6)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(line_hash(rows[i].line, "\n") == rows[i].hash);
        assert_true(line_hash(rows[i].line, "\r\n") == rows[i].hash);
        assert_true(line_hash(rows[i].line, "") == rows[i].hash);
    }
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Whatever columns are used, and whatever they are taken for: text, number, weight, label. */
static void the_hash_of_a_row_is_of_what_stands_and_not_of_what_is_read(void **state) {
    static const char *const names[] = {"texts.csv", "texts.jsonl"};
    static const char *const texts[] = {"id,town,n,y\n7,red,,1\n4,blue,2,0\n3,red,1,0\n",
                                        "{\"id\":7,\"town\":\"red\",\"n\":null,\"y\":1}\n"
                                        "{\"id\":4,\"town\":\"blue\",\"n\":2,\"y\":0}\n"};
    const struct source_options ways[] = {
        {.table.numbers = NULL},
        {.table.skip = LIST("id")},
        {.table.skip = LIST("id", "n")},
        {.table.categories = LIST("id")},
        {.property.column[ROW_WEIGHT] = "id"},
        {.label.column = "town"},
        {.table.hash_bits = 8},
        {.table.text = LIST("town"), .words.ngrams = 2},
        {.table.missing = LIST("red")},
        {.table.trim = true},
    };
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const char *path = fixture_text(names[k], texts[k]);
        const uint64_t hash = first_hash(path, &ways[0]);
        for (size_t i = 1; i < sizeof ways / sizeof *ways; i++)
            assert_true(first_hash(path, &ways[i]) == hash);
    }
}

/* Bounds of five standard deviations. */
static void as_many_rows_are_held_out_as_the_share_says(void **state) {
    (void)state;
    enum { ROWS = 100000 };
    static const double shares[] = {0.01, 0.1, 0.5, 0.9};
    for (unsigned s = 0; s < 4; s++) {
        double held = 0, share = shares[s];
        for (uint64_t row = 0; row < ROWS; row++)
            held += holdout_has(share, hash_of(row));
        assert_true(fabs(held - share * ROWS) <= 5 * sqrt(share * (1 - share) * ROWS));
    }
}

static void a_larger_share_holds_what_a_smaller_one_does(void **state) {
    (void)state;
    assert_false(holdout_has(0, 0));
    assert_true(holdout_has(0.5, 0));
    assert_true(holdout_has(0.5, UINT64_C(0x7fffffffffffffff)));
    assert_false(holdout_has(0.5, UINT64_C(0x8000000000000000)));
    assert_false(holdout_has(nextafter(1, 0), UINT64_MAX));
}

/* ---- folds ---- */

static void the_fold_of_a_row_is_the_one_that_is_documented(void **state) {
    (void)state;
    static const uint64_t hashes[] = {UINT64_C(0xe897f6c3ef96e812), UINT64_C(0xbc25a7b612cba21f),
                                      UINT64_C(0xb483e6c82b9f20d9), UINT64_C(0x19c6f9eb99e766b6)};
    static const uint32_t folds[] = {4, 2, 5, 1};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(holdout_fold(hashes[i], 1, 5), folds[i]);
}

/* Bounds of five standard deviations. With a share only what it leaves is in folds. */
static void every_row_that_is_not_held_out_is_in_one_fold_of_like_size(void **state) {
    (void)state;
    enum { ROWS = 70000, FOLDS = 7 };
    double in_fold[FOLDS + 1] = {0}, moved = 0;
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t hash = hash_of(row);
        uint32_t picked = 0;
        for (uint32_t fold = 1; fold <= FOLDS; fold++) {
            struct holdout_pick pick = {.share = 0.5, .folds = FOLDS, .fold = fold, .seed = 3};
            picked += holdout_picks(&pick, hash);
            in_fold[fold] += holdout_picks(&pick, hash);
        }
        assert_int_equal(picked, !holdout_has(0.5, hash));
        moved += holdout_fold(hash, 1, FOLDS) != holdout_fold(hash, 2, FOLDS);
    }
    for (uint32_t fold = 1; fold <= FOLDS; fold++)
        assert_true(fabs(in_fold[fold] - ROWS / 14.0) <= 5 * sqrt(ROWS / 14.0));
    assert_true(fabs(moved - ROWS * 6 / 7.0) <= 5 * sqrt(ROWS * 6 / 49.0));
}

/* ---- packs ---- */

static const struct source_options plain_options;
static const struct source_options hashing = {.hashes_rows = true};

/* Appends rows as text, with all that a taker can see of them. */
static int write_rows(void *context, const struct source_rows *rows) {
    struct bytes *to = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        char word[128];
        const char *text = rows->label_text ? rows->label_text[row] : NULL;
        int length = snprintf(word, sizeof word, "%s %a", text ? text : "-", rows->label[row]);
        bytes_append(to, word, (size_t)length);
        const uint64_t *id = source_row_ids(rows, row);
        for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++) {
            uint64_t place = rows->position ? rows->position[i] : i - rows->start[row];
            length = snprintf(word, sizeof word, " %llu:%a@%llu", (unsigned long long)*id++,
                              rows->value[i], (unsigned long long)place);
            bytes_append(to, word, (size_t)length);
        }
        bytes_append(to, "\n", 1);
    }
    return 0;
}

static struct pack *pack_of(const char *path) {
    struct pack *pack;
    bool made;
    if (pack_of_source(fixture_path("packs"), path, &plain_options, 2, &pack, &made))
        fail_msg("%s", error_text());
    return pack;
}

static void assert_read_back(const char *path) {
    struct source_report report;
    struct bytes source, packed;
    bytes_init(&source);
    bytes_init(&packed);
    assert_int_equal(source_read(path, &plain_options, 2, write_rows, &source, &report), 0);
    source_report_release(&report);
    struct pack *pack = pack_of(path);
    assert_int_equal(pack_read(pack, write_rows, &packed), 0);
    pack_close(pack);
    bytes_put_u8(&source, 0);
    bytes_put_u8(&packed, 0);
    assert_string_equal((char *)source.data, (char *)packed.data);
    bytes_release(&source);
    bytes_release(&packed);
}

static void a_pack_gives_its_rows_as_the_text_had_them(void **state) {
    (void)state;
    char *many = fixture_rows(0, 5000);
    struct bytes compressed;
    bytes_init(&compressed);
    fixture_gzip(&compressed, many);
    assert_read_back(fixture_bytes("many.gz", compressed.data, compressed.length));
    bytes_release(&compressed);
    free(many);
    assert_read_back(fixture_text("ones", "1 3:1 7:1\n0\n1 1:1\n"));
    assert_read_back(fixture_text("mixed", "1 7:2 3:0.1 5:0\n-1 1:1 2:-3\n"));
    assert_read_back(fixture_text("texts.csv", "a,b,y\n1,2.5,M\n-3,0,7\n4e-300,1,B\n"));
}

static int refuse(void *context, const struct source_rows *rows) {
    (void)context;
    (void)rows;
    return ERROR_AGAIN;
}

static void the_taker_can_end_the_reading_of_a_pack(void **state) {
    (void)state;
    struct pack *pack = pack_of(fixture_text("ended", "1 1:1\n"));
    assert_int_equal(pack_read(pack, refuse, NULL), ERROR_AGAIN);
    pack_close(pack);
}

/* ---- figures ---- */

static const uint64_t ids[] = {1, 2, 6007};
static const double weights[] = {0.3, -1.7, 0.9, 2.1, -0.2, 0.4};
static const double biases[] = {0.11, -0.07};
static const char *const binary_names[] = {"-1", "1"};
static const char *const text_names[] = {"M", "B"};

static struct model model_of(const char *objective, uint32_t outputs, uint32_t features,
                             uint32_t classes, const char *const *names) {
    return (struct model){.layout = {.objective = objective,
                                     .outputs = outputs,
                                     .intercept = true,
                                     .features = features,
                                     .feature_id = ids,
                                     .classes = classes,
                                     .class_names = names},
                          .weight = weights,
                          .bias = biases};
}

#define ROWS_MAX 2000

struct sides {
    double share;
    uint32_t rows, held;
    bool is_held[ROWS_MAX];
};

static int note_sides(void *context, const struct source_rows *rows) {
    struct sides *sides = context;
    for (uint32_t row = 0; row < rows->count; row++) {
        bool held = holdout_has(sides->share, holdout_hash(rows, row));
        assert_true(sides->rows < ROWS_MAX);
        sides->is_held[sides->rows++] = held;
        sides->held += held;
    }
    return 0;
}

/* A file of those lines of `text` that are held out, behind the `header` lines. */
static const char *held_file(const char *path, const char *text, unsigned header, double share) {
    struct sides sides = {.share = share};
    struct source_report report;
    assert_int_equal(source_read(path, &hashing, 1, note_sides, &sides, &report), 0);
    source_report_release(&report);
    assert_true(sides.held > 0 && sides.held < sides.rows);
    struct bytes out;
    bytes_init(&out);
    for (unsigned line = 0; *text; line++) {
        size_t length = strcspn(text, "\n") + 1;
        if (line < header || sides.is_held[line - header])
            bytes_append(&out, text, length);
        text += length;
    }
    const char *held = fixture_bytes("held", out.data, out.length);
    bytes_release(&out);
    return held;
}

/* Every member, as bits and as JSON. */
static void assert_same_figures(const struct model *model, const char *path, const char *held,
                                double share) {
    char *paths[] = {(char *)(uintptr_t)held, NULL};
    struct score_figures files, packs;
    memset(&files, 0, sizeof files);
    memset(&packs, 0, sizeof packs);
    assert_int_equal(score_files(model, paths, NULL, &plain_options, 1, NULL, &files), 0);
    struct pack *pack = pack_of(path);
    const struct holdout_pick pick = {.share = share};
    assert_int_equal(score_packs(model, &pack, 1, share > 0 ? &pick : NULL, &packs), 0);
    pack_close(pack);
    assert_true(files.examples > 0);
    for (size_t i = 0; i < score_figure_count; i++) {
        double a = score_figure_value(&files, &score_figure_table[i]);
        double b = score_figure_value(&packs, &score_figure_table[i]);
        assert_true(memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)));
    }
    json_t *of_files = score_figures_json(&files), *of_packs = score_figures_json(&packs);
    assert_true(json_equal(of_files, of_packs));
    json_decref(of_files);
    json_decref(of_packs);
    score_figures_release(&files);
    score_figures_release(&packs);
}

static void packs_have_the_figures_of_their_files(void **state) {
    (void)state;
    struct model binary = model_of("logistic", 1, 3, 2, binary_names);
    struct model squared = model_of("squared", 1, 3, 0, NULL);
    char *text = fixture_rows(0, 1500);
    const char *path = fixture_text("scored", text);
    assert_same_figures(&binary, path, path, 0);
    const char *held = held_file(path, text, 0, 0.3);
    assert_same_figures(&binary, path, held, 0.3);
    assert_same_figures(&squared, path, held, 0.3);
    free(text);
}

static void packs_of_csv_have_the_figures_of_their_files(void **state) {
    (void)state;
    struct model softmax = model_of("softmax", 2, 2, 2, text_names);
    struct bytes text;
    bytes_init(&text);
    bytes_append(&text, "a,b,y\n", 6);
    for (int row = 0; row < 500; row++) {
        char line[64];
        int length = snprintf(line, sizeof line, "%d,%.3f,%c\n", row % 13, row / 7.0,
                              row % 50 == 0 ? 'X'
                              : row % 3     ? 'M'
                                            : 'B');
        bytes_append(&text, line, (size_t)length);
    }
    bytes_put_u8(&text, 0);
    const char *path = fixture_text("scored.csv", (char *)text.data);
    const char *held = held_file(path, (char *)text.data, 1, 0.2);
    assert_same_figures(&softmax, path, held, 0.2);
    bytes_release(&text);
}

static void a_pack_that_lacks_columns_of_the_model_is_named(void **state) {
    (void)state;
    struct model squared = model_of("squared", 1, 3, 0, NULL);
    struct pack *pack = pack_of(fixture_text("narrow.csv", "a,b,y\n1,2,3\n"));
    struct score_figures figures;
    assert_int_equal(score_packs(&squared, &pack, 1, NULL, &figures), ERROR_DATA);
    assert_non_null(strstr(error_text(), "narrow.csv: row 1: no value in column 6007"));
    error_clear();
    pack_close(pack);
}

static void a_pack_with_other_columns_than_the_model_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b"};
    struct model squared = model_of("squared", 1, 2, 0, NULL);
    squared.layout.feature_names = names;
    struct pack *pack = pack_of(fixture_text("swapped.csv", "y,a,b\n1,2,3\n"));
    struct score_figures figures;
    assert_int_equal(score_packs(&squared, &pack, 1, NULL, &figures), ERROR_DATA);
    assert_non_null(strstr(error_text(), "swapped.csv:1: column 1 is named \"y\", but \"a\""));
    error_clear();
    pack_close(pack);
}

SUITE(holdout) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_of_a_row_is_the_one_that_is_documented),
        cmocka_unit_test(the_fold_of_a_row_is_the_one_that_is_documented),
        cmocka_unit_test(every_row_that_is_not_held_out_is_in_one_fold_of_like_size),
        cmocka_unit_test(the_hash_of_a_row_is_of_what_stands_and_not_of_what_is_read),
        cmocka_unit_test(as_many_rows_are_held_out_as_the_share_says),
        cmocka_unit_test(a_larger_share_holds_what_a_smaller_one_does),
        cmocka_unit_test(a_pack_gives_its_rows_as_the_text_had_them),
        cmocka_unit_test(the_taker_can_end_the_reading_of_a_pack),
        cmocka_unit_test(packs_have_the_figures_of_their_files),
        cmocka_unit_test(packs_of_csv_have_the_figures_of_their_files),
        cmocka_unit_test(a_pack_with_other_columns_than_the_model_is_named),
        cmocka_unit_test(a_pack_that_lacks_columns_of_the_model_is_named),
    };
    return cmocka_run_group_tests(tests, fixture_set_up, fixture_tear_down);
}
