#define _GNU_SOURCE
/* What programs can do with libdml, beside what tests/integration/test_library.py compares with
 * `predict`. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "tests/unit/library_fixture.h"

static struct dml_model *opened_table(void) {
    write_model(of_table, of_table_ids);
    return opened();
}

static double margin_of(struct dml_scorer *scorer, const struct dml_rows *rows) {
    double margin;
    if (dml_score(scorer, rows, &(struct dml_scores){.margins = &margin}, NULL))
        fail_msg("%s", dml_error_text());
    return margin;
}

/* ---- what a model is ---- */

static void a_model_is_described(void **state) {
    (void)state;
    struct dml_model *model = opened_table();
    assert_string_equal(dml_model_objective(model), "logistic");
    assert_int_equal(dml_model_format_version(model), 1);
    assert_int_equal(strlen(dml_model_sha256(model)), 64);
    assert_int_equal(dml_model_margins(model), 1);
    assert_int_equal(dml_model_values(model), 1);
    assert_int_equal(dml_model_probabilities(model), 2);
    assert_int_equal(dml_model_labels(model), 1);
    assert_int_equal(dml_model_classes(model), 2);
    assert_string_equal(dml_model_class(model, 1), "yes");
    assert_null(dml_model_class(model, 2));
    assert_true(dml_model_threshold(model, 0) == 0.75 && isnan(dml_model_threshold(model, 1)));
    assert_int_equal(dml_model_columns(model), 3);
    assert_string_equal(dml_model_column_name(model, 2), "age");
    assert_int_equal(dml_model_column_kind(model, 1), DML_CATEGORY);
    assert_int_equal(dml_model_features(model), 3);
    assert_memory_equal(dml_model_feature_ids(model), of_table_ids, sizeof of_table_ids);
    assert_non_null(strstr(dml_model_description(model), "\"kind\":\"category\""));
    dml_model_close(model);
    dml_model_close(NULL);
}

static void a_scorer_keeps_its_model_open(void **state) {
    (void)state;
    struct dml_model *model = opened_table();
    struct dml_scorer *scorer, *other, *none;
    static const char *const names[] = {"town", "age"};
    static const char *const texts[] = {"Rome", "3"};
    const struct dml_rows rows = {.count = 1, .texts = texts};
    assert_int_equal(dml_scorer_of_columns(model, 2, names, DML_MISSING_COLUMNS, &scorer), 0);
    assert_int_equal(dml_scorer_of_columns(model, 2, names, DML_MISSING_COLUMNS, &other), 0);
    assert_int_not_equal(dml_scorer_of_sparse(model, &none), 0);
    double before = margin_of(scorer, &rows);
    dml_model_close(model);
    dml_scorer_free(other);
    assert_true(margin_of(scorer, &rows) == before);
    dml_scorer_free(scorer);
}

/* ---- rows of numbers ---- */

static void numbers_are_scored_by_the_ids_of_features(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    struct dml_scorer *scorer;
    static const uint64_t mixed[] = {9, 77, 3};
    assert_int_equal(dml_scorer_of_ids(model, 3, mixed, &scorer), 0);
    static const double few[] = {2, 5, 7, 4, 5, 0};
    double margins[2], values[2];
    size_t scored;
    assert_int_equal(dml_score(scorer, &(struct dml_rows){.count = 2, .numbers = few},
                               &(struct dml_scores){.margins = margins, .values = values}, &scored),
                     0);
    assert_true(margins[0] == 1207 && margins[1] == 1400 && values[1] == 1400 && scored == 2);
    dml_scorer_free(scorer);
    assert_int_equal(dml_scorer_of_ids(model, 9, NULL, &scorer), 0);
    static const double all[] = {9, 9, 1, 9, 2, 9, 9, 9, 3};
    assert_true(margin_of(scorer, &(struct dml_rows){.count = 1, .numbers = all}) == 1321);
    dml_scorer_free(scorer);
    assert_says(dml_scorer_of_ids(model, 8, NULL, &scorer), DML_DATA, "feature of id 9");
    assert_null(scorer);
    static const uint64_t twice[] = {3, 5, 3};
    assert_says(dml_scorer_of_ids(model, 3, twice, &scorer), DML_DATA, "id 3 is given twice");
    dml_model_close(model);
}

static void sparse_rows_may_be_in_any_order(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    struct dml_scorer *scorer;
    static const size_t start[] = {0, 3, 3, 4, 6};
    static const uint64_t ids[] = {9, 4, 3, 5, 9, 9};
    static const double values[] = {1, 50, 2, 3, 1, 1};
    struct dml_rows rows = {.count = 3, .start = start, .ids = ids, .values = values};
    double margins[4];
    size_t scored;
    assert_int_equal(dml_scorer_of_sparse(model, &scorer), 0);
    assert_int_equal(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, NULL), 0);
    assert_true(margins[0] == 1102 && margins[1] == 1000 && margins[2] == 1030);
    rows.count = 4;
    margins[2] = 0;
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, &scored),
                DML_DATA, "rows[3]: id 9 is given twice");
    assert_true(scored == 3 && margins[2] == 1030);
    static const size_t falling[] = {0, 3, 1};
    rows.count = 2;
    rows.start = falling;
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, &scored),
                DML_DATA, "rows[1]: it ends before it starts");
    dml_scorer_free(scorer);
    dml_model_close(model);
}

static void a_row_that_cannot_be_scored_is_named(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    struct dml_scorer *scorer;
    static const uint64_t ids[] = {3, 5};
    static const double numbers[] = {1, 2, 1e308, 1e308, NAN, 1};
    struct dml_rows rows = {.count = 3, .numbers = numbers};
    double margins[3];
    size_t scored;
    assert_int_equal(dml_scorer_of_ids(model, 2, ids, &scorer), 0);
    /* The row behind it, which is refused sooner, is not told. */
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, &scored),
                DML_DATA, "rows[1]: the values are too large");
    assert_true(scored == 1 && margins[0] == 1021);
    rows = (struct dml_rows){.count = 1, .numbers = numbers + 4};
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, &scored),
                DML_DATA, "rows[0]: the value of id 3 is not finite");
    rows = (struct dml_rows){.count = 1, .numbers = numbers, .offsets = numbers};
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, NULL), DML_USAGE,
                "takes no offset");
    rows = (struct dml_rows){.count = 1, .start = (size_t[]){0, 0}};
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.margins = margins}, NULL), DML_USAGE,
                "not of the form");
    rows = (struct dml_rows){.count = 1, .numbers = numbers};
    assert_says(dml_score(scorer, &rows, &(struct dml_scores){.labels = (int32_t[1]){0}}, NULL),
                DML_USAGE, "no labels");
    dml_scorer_free(scorer);
    assert_says(dml_scorer_of_columns(model, 0, NULL, 0, &scorer), DML_USAGE, "ids of features");
    dml_model_close(model);
}

/* ---- rows of tables ---- */

static void cells_are_texts_or_numbers(void **state) {
    (void)state;
    struct dml_model *model = opened_table();
    struct dml_scorer *scorer;
    static const char *const names[] = {"other", "age", "town", "size", "y"};
    assert_int_equal(dml_scorer_of_columns(model, 5, names, 0, &scorer), 0);
    const char *texts[] = {"x", NULL, "Rome", " 5 ", "maybe"};
    double numbers[] = {0, -100.5, 0, 0, 0};
    struct dml_rows rows = {.count = 1, .texts = texts, .numbers = numbers};
    double margin, both[2];
    int32_t label;
    struct dml_scores scores = {&margin, NULL, both, &label};
    assert_int_equal(dml_score(scorer, &rows, &scores, NULL), 0);
    assert_true(margin == 0 && both[0] == 0.5 && both[1] == 0.5 && label == 0); /* below 0.75 */
    texts[2] = NULL;
    numbers[2] = NAN;
    texts[3] = "?";
    rows.numbers = NULL;                          /* what has no text is missing */
    assert_true(margin_of(scorer, &rows) == -95); /* their means */
    rows.numbers = numbers;
    texts[3] = "five";
    assert_says(dml_score(scorer, &rows, &scores, NULL), DML_DATA,
                "rows[0]: column 4 (size) holds \"five\"");
    texts[3] = NULL;
    numbers[3] = INFINITY;
    assert_says(dml_score(scorer, &rows, &scores, NULL), DML_DATA, "column 4 (size) holds inf");
    numbers[3] = 1;
    numbers[2] = 7;
    assert_says(dml_score(scorer, &rows, &scores, NULL), DML_DATA,
                "column 3 (town) is one of texts, and the number 7 was given");
    dml_scorer_free(scorer);
    dml_model_close(model);
}

static void columns_may_be_missing_where_that_is_said(void **state) {
    (void)state;
    struct dml_model *model = opened_table();
    struct dml_scorer *scorer;
    static const char *const names[] = {"town", "size"};
    assert_says(dml_scorer_of_columns(model, 2, names, 0, &scorer), DML_DATA,
                "the column \"age\" is missing");
    assert_null(scorer);
    assert_says(dml_scorer_of_columns(model, 2, names, 2, &scorer), DML_USAGE, "flags 0x2");
    assert_int_equal(dml_scorer_of_columns(model, 2, names, DML_MISSING_COLUMNS, &scorer), 0);
    static const double numbers[] = {NAN, 3};
    assert_true(margin_of(scorer, &(struct dml_rows){.count = 1, .numbers = numbers}) == 3);
    dml_scorer_free(scorer);
    assert_says(dml_scorer_of_columns(model, 2, NULL, 0, &scorer), DML_DATA, "2 columns");
    assert_int_equal(dml_scorer_of_columns(model, 3, NULL, 0, &scorer), 0);
    static const double places[] = {0, NAN, -99};
    assert_true(margin_of(scorer, &(struct dml_rows){.count = 1, .numbers = places}) == 10);
    dml_scorer_free(scorer);
    assert_says(dml_scorer_of_sparse(model, &scorer), DML_USAGE, "names of columns");
    dml_model_close(model);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 2000

/* Longer ones come from no line, but may from a caller. */
static void a_text_that_is_too_long_is_refused_and_the_scorer_goes_on(void **state) {
    static const char of_texts[] =
        "{\"format\":\"dml\",\"format_version\":1,\"objective\":\"squared\",\"preparation\":{"
        "\"columns\":["
        "{\"name\":\"review\",\"kind\":\"text\"},{\"name\":\"y\",\"kind\":\"label\"}],"
        "\"missing\":[],"
        "\"text\":{\"ngrams\":1,\"lowercase\":true,\"values\":\"count\"}}}";
    static const char *const name[] = {"review"};
    const size_t length = ((size_t)64 << 20) + 1;
    (void)state;
    write_model(of_texts, of_table_ids);
    struct dml_model *model = opened();
    struct dml_scorer *scorer;
    assert_int_equal(dml_scorer_of_columns(model, 1, name, 0, &scorer), DML_OK);
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, ' ', length);
    text[length] = '\0';
    text[0] = text[length - 1] = 'a';
    const char *cell = text;
    double value;
    struct dml_rows rows = {.count = 1, .texts = &cell};
    struct dml_scores scores = {.values = &value};
    assert_says(dml_score(scorer, &rows, &scores, NULL), DML_DATA,
                "column 1 (review) holds a text of 67108865 bytes");
    cell = "short";
    assert_int_equal(dml_score(scorer, &rows, &scores, NULL), DML_OK);
    assert_true(value == 1000);
    free(text);
    dml_scorer_free(scorer);
    dml_model_close(model);
}

static void *score_often(void *context) {
    const struct dml_model *model = context;
    struct dml_scorer *scorer;
    static const char *const names[] = {"size", "age", "town"};
    size_t wrong = dml_scorer_of_columns(model, 3, names, 0, &scorer) != 0;
    for (int i = 0; i < ROUNDS && !wrong; i++) {
        double margin;
        const char *const texts[] = {NULL, "-100", i % 2 ? "Rome" : "Oslo"};
        const double numbers[] = {i, 0, 0};
        wrong =
            dml_score(scorer, &(struct dml_rows){.count = 1, .texts = texts, .numbers = numbers},
                      &(struct dml_scores){.margins = &margin}, NULL) ||
            margin != i;
        struct dml_scorer *none; /* its error is this thread's alone */
        wrong += dml_scorer_of_sparse(model, &none) != DML_USAGE ||
                 !strstr(dml_error_text(), "names of columns");
    }
    dml_scorer_free(scorer);
    return (void *)wrong;
}

static void threads_share_a_model(void **state) {
    (void)state;
    struct dml_model *model = opened_table();
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, score_often, model), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    dml_model_close(model);
}

/* ---- a model that becomes live ---- */

static void make_model(const char *number, const char *json, const uint64_t ids[3]) {
    char path[128];
    unsigned char tensors[TENSORS_BYTES];
    snprintf(path, sizeof path, "%s/models/%s", folder, number);
    assert_int_equal(mkdir(path, 0700), 0);
    make_tensors(ids, tensors);
    snprintf(path, sizeof path, "models/%s/model.safetensors", number);
    write_file(path, tensors, sizeof tensors);
    snprintf(path, sizeof path, "models/%s/model.json", number);
    write_file(path, json, strlen(json));
}

static void make_live(const char *number) {
    char link[128], temporary[128];
    snprintf(link, sizeof link, "%s/models/current", folder);
    snprintf(temporary, sizeof temporary, "%s/models/next", folder);
    if (symlink(number, temporary) || rename(temporary, link))
        perror(link);
}

static void *take_turns(void *context) {
    atomic_bool *ended = context;
    for (unsigned i = 0; !atomic_load(ended); i++)
        make_live(i % 2 ? "1" : "2");
    return NULL;
}

/* Both files are of the model that was live at one instant. */
static void a_model_is_opened_while_another_becomes_live(void **state) {
    (void)state;
    pthread_t thread;
    atomic_bool ended = false;
    char path[128];
    snprintf(path, sizeof path, "rm -rf %s/*", folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/models", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    make_model("1", of_numbers, of_numbers_ids);
    make_model("2", of_table, of_table_ids);
    make_live("1");
    assert_int_equal(pthread_create(&thread, NULL, take_turns, &ended), 0);
    unsigned mixed = 0;
    for (int i = 0; i < 2000; i++) {
        struct dml_model *model = opened();
        bool numbers = dml_model_feature_ids(model)[2] == of_numbers_ids[2] &&
                       dml_model_feature_ids(model)[1] == of_numbers_ids[1];
        mixed += numbers == (dml_model_columns(model) > 0);
        dml_model_close(model);
    }
    atomic_store(&ended, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mixed, 0);
}

/* ---- explanations ---- */

/* Writes the model of a table once more, with the means 2, 4 and 0.5 of its features. */
static void write_model_with_means(void) {
    enum { HEADER = 400 };
    static const double numbers[] = {1, 10, 100, 1000}, means[] = {2, 4, 0.5};
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"dml\",\"format_version\":\"1\"},"
        "\"weight\":{\"dtype\":\"F64\",\"shape\":[1,3],\"data_offsets\":[0,24]},"
        "\"bias\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[24,32]},"
        "\"feature_id\":{\"dtype\":\"U64\",\"shape\":[3],\"data_offsets\":[32,56]},"
        "\"mean\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[56,80]}}";
    unsigned char tensors[8 + HEADER + 80];
    const uint64_t length = HEADER;
    memset(tensors, ' ', sizeof tensors);
    memcpy(tensors, &length, 8);
    memcpy(tensors + 8, header, sizeof header - 1);
    memcpy(tensors + 8 + HEADER, numbers, sizeof numbers);
    memcpy(tensors + 8 + HEADER + 32, of_table_ids, 24);
    memcpy(tensors + 8 + HEADER + 56, means, sizeof means);
    write_file("model.safetensors", tensors, sizeof tensors);
    write_file("model.json", of_table, strlen(of_table));
}

static void columns_contribute_their_distance_from_the_means(void **state) {
    (void)state;
    static const char *const names[] = {"size", "age"};
    write_model_with_means();
    struct dml_model *model = opened();
    struct dml_scorer *scorer;
    struct dml_explained explained;
    assert_int_equal(dml_scorer_of_columns(model, 2, names, DML_MISSING_COLUMNS, &scorer), 0);
    assert_int_equal(dml_scorer_explained(scorer, &explained), 0);
    assert_int_equal(explained.columns, 3);
    assert_string_equal(explained.names[0], "size");
    assert_string_equal(explained.names[1], "age");
    assert_string_equal(explained.names[2], "(other)"); /* its feature has no name */
    assert_true(explained.base[0] == 1000 + 1 * 2 + 10 * 4 + 100 * 0.5);
    const double numbers[] = {3, 1, 2, 7};
    double found[6];
    size_t rows;
    assert_int_equal(
        dml_explain(scorer, &(struct dml_rows){.count = 2, .numbers = numbers}, found, &rows), 0);
    static const double expected[] = {1, -30, -50, 0, 30, -50};
    assert_int_equal(rows, 2);
    assert_memory_equal(found, expected, sizeof expected);
    const double infinite[] = {3, 1, INFINITY, 1};
    assert_says(
        dml_explain(scorer, &(struct dml_rows){.count = 2, .numbers = infinite}, found, &rows),
        DML_DATA, "rows[1]");
    assert_int_equal(rows, 1);
    dml_scorer_free(scorer);
    dml_model_close(model);
}

static void a_model_without_means_is_not_explained(void **state) {
    (void)state;
    struct dml_model *model = opened_numbers();
    struct dml_scorer *scorer;
    struct dml_explained explained;
    const double numbers[] = {1, 2, 3};
    double found[3];
    assert_int_equal(dml_scorer_of_ids(model, 3, of_numbers_ids, &scorer), 0);
    assert_says(dml_scorer_explained(scorer, &explained), DML_USAGE, "does not have the means");
    assert_says(
        dml_explain(scorer, &(struct dml_rows){.count = 1, .numbers = numbers}, found, NULL),
        DML_USAGE, "does not have the means");
    dml_scorer_free(scorer);
    dml_model_close(model);
}

SUITE(library) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_described),
        cmocka_unit_test(a_scorer_keeps_its_model_open),
        cmocka_unit_test(numbers_are_scored_by_the_ids_of_features),
        cmocka_unit_test(sparse_rows_may_be_in_any_order),
        cmocka_unit_test(a_row_that_cannot_be_scored_is_named),
        cmocka_unit_test(cells_are_texts_or_numbers),
        cmocka_unit_test(columns_may_be_missing_where_that_is_said),
        cmocka_unit_test(a_text_that_is_too_long_is_refused_and_the_scorer_goes_on),
        cmocka_unit_test(columns_contribute_their_distance_from_the_means),
        cmocka_unit_test(a_model_without_means_is_not_explained),
        cmocka_unit_test(threads_share_a_model),
        cmocka_unit_test(a_model_is_opened_while_another_becomes_live),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
