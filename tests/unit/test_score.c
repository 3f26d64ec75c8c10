/* Scoring: predictions, and how the data is read. */
#define _GNU_SOURCE
#include "tests/unit/suites.h"
#include "tests/unit/score_fixture.h"

#include "base/memory.h"
#include "base/random.h"

#define PLAIN ((struct score_output){.json = false})
#define JSON ((struct score_output){.json = true})

static void expect_predictions(const struct model *model, struct score_output output,
                               const char *expected) {
    char *text = predictions_of(model, output);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- predictions ---- */

static void a_value_is_the_sum_over_the_features_training_saw(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(1, 100); /* unseen, before, between and behind */
    add_value(2, 0.5);
    add_value(3, 100);
    add_value(9, 4);
    add_value(10, 100);
    add_row(NAN, NULL); /* without values */
    expect_predictions(&squared, PLAIN, "2.5\n0\n");
    expect_predictions(&squared, JSON, "{\"value\":2.5}\n{\"value\":0}\n");
    assert_int_equal(figures_of(&squared).unseen_features, 3);
}

static void a_binary_prediction_is_the_probability_of_the_second_class(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(9, -0.5);
    add_row(NAN, NULL);
    add_value(2, 1e5);
    add_row(NAN, NULL);
    add_value(5, 350);
    char expected[128];
    snprintf(expected, sizeof expected, "0.5\n1\n%.17g\n", exp(-699.75) / (1 + exp(-699.75)));
    expect_predictions(&binary, PLAIN, expected);
    clear();
    add_row(NAN, NULL);
    add_value(9, -0.5);
    expect_predictions(&binary, JSON, "{\"probability\":0.5}\n");
}

static void expect_shown(const struct model *model, enum score_shown shown, const char *plain,
                         const char *json) {
    expect_predictions(model, (struct score_output){.shown = shown, .header = true}, plain);
    expect_predictions(model, (struct score_output){.shown = shown, .json = true}, json);
}

static void labels_probabilities_and_margins_of_two_classes_are_written(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(9, -0.5); /* margin 0 */
    add_row(NAN, NULL);
    add_value(2, 999.75);
    expect_shown(&binary, SCORE_LABELS, "class\n-1\n+1\n",
                 "{\"class\":\"-1\"}\n{\"class\":\"+1\"}\n");
    expect_shown(&binary, SCORE_PROBABILITIES, "-1 +1\n0.5 0.5\n0 1\n",
                 "{\"probabilities\":[0.5,0.5],\"class\":\"-1\"}\n"
                 "{\"probabilities\":[0,1],\"class\":\"+1\"}\n");
    expect_shown(&binary, SCORE_MARGINS, "margin\n0\n1000\n",
                 "{\"margin\":0}\n{\"margin\":1000}\n");
    expect_predictions(&binary, (struct score_output){.header = true}, "probability\n0.5\n1\n");
}

static void a_small_probability_of_the_first_of_two_classes_keeps_its_digits(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(2, 99.75);
    char expected[64];
    snprintf(expected, sizeof expected, "%.17g 1\n", exp(-100) / (1 + exp(-100)));
    expect_predictions(&binary, (struct score_output){.shown = SCORE_PROBABILITIES}, expected);
}

static void labels_probabilities_and_margins_of_several_classes_are_written(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(2, -1000); /* margins −999.75, −3001, 2 */
    expect_shown(&softmax, SCORE_LABELS, "class\nsay \"three\"\n",
                 "{\"class\":\"say \\\"three\\\"\"}\n");
    const char *json = "{\"probabilities\":[0,0,1],\"class\":\"say \\\"three\\\"\"}\n";
    expect_shown(&softmax, SCORE_PROBABILITIES, "1 2.0 \"say \"\"three\"\"\"\n0 0 1\n", json);
    expect_shown(&softmax, SCORE_PREDICTION, "1 2.0 \"say \"\"three\"\"\"\n0 0 1\n", json);
    expect_shown(&softmax, SCORE_MARGINS, "1 2.0 \"say \"\"three\"\"\"\n-999.75 -3001 2\n",
                 "{\"margins\":[-999.75,-3001,2]}\n");
}

static void ordered_classes_share_a_margin(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(2, -5); /* −5 − 1, −5 + 2 */
    add_row(NAN, NULL);
    add_value(2, 1);
    add_value(5, 0.5); /* 0 − 1, 0 + 2 */
    add_row(NAN, NULL);
    add_value(2, 800);
    expect_shown(&ordinal, SCORE_LABELS, "class\n1\n1\nsay \"three\"\n",
                 "{\"class\":\"1\"}\n{\"class\":\"1\"}\n{\"class\":\"say \\\"three\\\"\"}\n");
    expect_shown(&ordinal, SCORE_MARGINS, "2.0 \"say \"\"three\"\"\"\n-6 -3\n-1 2\n799 802\n",
                 "{\"margins\":[-6,-3]}\n{\"margins\":[-1,2]}\n{\"margins\":[799,802]}\n");
    /* To be above the second class is not more probable than to be above the first. */
    double low = exp(-6) / (1 + exp(-6)), middle = exp(-1) / (1 + exp(-1));
    char expected[256];
    snprintf(expected, sizeof expected,
             "1 2.0 \"say \"\"three\"\"\"\n%.17g 0 %.17g\n%.17g 0 %.17g\n0 0 1\n", 1 - low, low,
             1 - middle, middle);
    expect_predictions(&ordinal, (struct score_output){.header = true}, expected);
    expect_predictions(
        &ordinal, (struct score_output){.shown = SCORE_PROBABILITIES, .header = true}, expected);
}

static void lists_of_classes_are_those_with_a_margin_above_0(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(2, 1000); /* 1000.25, 2999, 2 */
    add_row(NAN, NULL);
    add_value(2, -1000); /* −999.75, −3001, 2 */
    expect_shown(&multilabel, SCORE_LABELS, "classes\n1;2.0;say \"three\"\nsay \"three\"\n",
                 "{\"classes\":[\"1\",\"2.0\",\"say \\\"three\\\"\"]}\n"
                 "{\"classes\":[\"say \\\"three\\\"\"]}\n");
    expect_shown(&multilabel, SCORE_MARGINS,
                 "1 2.0 \"say \"\"three\"\"\"\n1000.25 2999 2\n-999.75 -3001 2\n",
                 "{\"margins\":[1000.25,2999,2]}\n{\"margins\":[-999.75,-3001,2]}\n");
    struct model none = multilabel;
    none.bias = (const double[]){-1, -1, -1};
    clear();
    add_row(NAN, NULL);
    char expected[128];
    double low = exp(-1) / (1 + exp(-1));
    snprintf(expected, sizeof expected, "{\"probabilities\":[%.17g,%.17g,%.17g],\"classes\":[]}\n",
             low, low, low);
    expect_predictions(&none, JSON, expected);
    expect_shown(&none, SCORE_LABELS, "classes\n\n", "{\"classes\":[]}\n");
}

static void expect_refused(const struct model *model, enum score_shown shown, const char *why) {
    struct source_options options = {0};
    char *paths[] = {(char *)"data", NULL}, *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    struct score_output output = {.file = file, .shown = shown, .header = true};
    assert_int_equal(score_files(model, paths, NULL, &options, 1, &output, NULL), ERROR_USAGE);
    fclose(file);
    assert_int_equal(length, 0);
    assert_non_null(strstr(error_text(), why));
    free(text);
    error_clear();
}

static void what_a_model_does_not_predict_is_refused(void **state) {
    (void)state;
    struct model hinge = binary;
    hinge.layout.objective = "squared_hinge";
    clear();
    add_row(NAN, NULL);
    expect_refused(&squared, SCORE_LABELS, "predicts numbers and has no labels");
    expect_refused(&squared, SCORE_PROBABILITIES, "no probabilities (objective squared)");
    expect_refused(&hinge, SCORE_PROBABILITIES, "take `--labels` or `--margins`");
    expect_predictions(&hinge, (struct score_output){.shown = SCORE_LABELS}, "+1\n");
    expect_shown(&squared, SCORE_MARGINS, "margin\n0\n", "{\"margin\":0}\n");
    expect_predictions(&squared, (struct score_output){.header = true}, "value\n0\n");
}

static void class_probabilities_add_up_to_one_at_any_margin(void **state) {
    (void)state;
    static const double scales[] = {0, 1, 300, 1e6, 1e300};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        clear();
        add_row(NAN, NULL);
        add_value(2, scales[s]);
        char *text = predictions_of(&softmax, PLAIN), *at = text;
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = strtod(at, &at);
        assert_string_equal(at, "\n");
        assert_true(fabs(p[0] + p[1] + p[2] - 1) < 1e-15);
        double largest = 3 * scales[s] - 1; /* of output 1 */
        if (scales[s] == 1)
            assert_true(fabs(p[0] / p[1] - exp(1.25 - largest)) < 1e-15);
        free(text);
    }
}

static void a_json_line_names_the_most_probable_class(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_value(9, -1e4);
    add_row(NAN, NULL);
    add_value(2, -1e4);
    add_value(5, 1e4);
    expect_predictions(&softmax, JSON,
                       "{\"probabilities\":[0,1,0],\"class\":\"2.0\"}\n"
                       "{\"probabilities\":[0,0,1],\"class\":\"say \\\"three\\\"\"}\n");
}

enum { MANY = 1200 };

static void expect_features_found(size_t features) {
    static uint64_t id[MANY];
    static double weight[MANY];
    struct random random;
    random_init(&random, 1);
    uint64_t next = 0;
    for (size_t j = 0; j < features; j++) {
        next += 1 + random_below(&random, 4);
        id[j] = next;
        weight[j] = (double)(1 + random_below(&random, 1000));
    }
    struct model model = squared;
    model.layout.features = features;
    model.layout.feature_id = id;
    model.weight = weight;
    for (uint64_t gap = 1; gap <= 512; gap *= 2) {
        clear();
        double expected = 0;
        uint64_t unseen = 0;
        add_row(0, NULL);
        for (uint64_t i = 1 + random_below(&random, gap); i < next + 9;
             i += 1 + random_below(&random, gap)) {
            add_value(i, 1);
            size_t j = 0;
            while (j < features && id[j] != i)
                j++;
            unseen += j == features;
            expected += j < features ? weight[j] : 0;
        }
        struct score_figures figures = figures_of(&model);
        assert_int_equal(figures.unseen_features, unseen);
        assert_true(figures.loss == 0.5 * expected * expected);
    }
}

/* Few are searched for, many have an index. */
static void features_are_found_in_rows_of_any_shape(void **state) {
    (void)state;
    expect_features_found(1000);
    expect_features_found(MANY);
}

static void a_margin_that_overflows_is_an_error_with_its_line(void **state) {
    (void)state;
    clear();
    add_row(1, NULL);
    add_row(1, NULL);
    add_value(2, 1e308);
    add_value(5, -1e308);
    struct source_options options = {0};
    char *paths[] = {(char *)"data", NULL};
    FILE *file = fopen("/dev/null", "w");
    assert_int_equal(
        score_files(&binary, paths, NULL, &options, 1, &(struct score_output){.file = file}, NULL),
        ERROR_DATA);
    fclose(file);
    assert_non_null(strstr(error_text(), "data:2: "));
}

static void a_csv_row_that_lacks_a_column_of_the_model_is_refused(void **state) {
    (void)state;
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", NULL};
    clear();
    table.format = FORMAT_CSV;
    add_row(1, NULL);
    for (size_t j = 0; j < 2; j++)
        add_value(ids[j], 0);
    add_value(100, 0);
    assert_int_equal(score_files(&squared, paths, NULL, &options, 1, NULL, &figures), ERROR_DATA);
    assert_non_null(strstr(error_text(), "only 2 of the 3 columns"));
    table.id[2] = ids[2];
    assert_int_equal(figures_of(&squared).examples, 1);
}

static void predictions_that_cannot_be_written_are_an_error(void **state) {
    (void)state;
    clear();
    add_row(1, NULL);
    struct source_options options = {0};
    char *paths[] = {(char *)"data", NULL};
    FILE *file = fopen("/dev/full", "w");
    assert_non_null(file);
    assert_int_equal(
        score_files(&binary, paths, NULL, &options, 1, &(struct score_output){.file = file}, NULL),
        ERROR_IO);
    fclose(file);
}

static void an_error_of_reading_ends_the_scoring(void **state) {
    (void)state;
    clear();
    add_row(1, NULL);
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", (char *)"missing", NULL};
    assert_int_equal(score_files(&binary, paths, NULL, &options, 1, NULL, &figures), ERROR_IO);
    assert_string_equal(error_text(), "cannot open missing");
}

/* ---- reading options ---- */

static void reading_options_come_back_as_they_were_stored(void **state) {
    (void)state;
    static const char *const skip[] = {"id", "7", NULL};
    struct source_options stored = {.format = FORMAT_CSV,
                                    .syntax.header = CSV_HEADER_NO,
                                    .label.column = "class",
                                    .table.skip = skip,
                                    .table.columns = 12};
    struct model model = {.details = json_object()};
    json_object_set_new(model.details, "source", score_options_json(&stored));
    struct source_options options;
    assert_int_equal(score_options(&model, &options), 0);
    assert_int_equal(options.format, FORMAT_CSV);
    assert_int_equal(options.syntax.header, CSV_HEADER_NO);
    assert_string_equal(options.label.column, "class");
    assert_int_equal(options.table.columns, 12);
    assert_string_equal(options.table.skip[0], "id");
    assert_string_equal(options.table.skip[1], "7");
    assert_null(options.table.skip[2]);
    score_options_release(&options);
    json_decref(model.details);
}

static void a_label_that_was_not_named_is_behind_the_last_feature(void **state) {
    (void)state;
    struct model model = squared;
    struct source_options options;
    model.details = json_object();
    assert_int_equal(score_options(&model, &options), 0);
    assert_string_equal(options.label.column, "10");
    score_options_release(&options);
    json_object_set_new(model.details, "source", json_pack("{s:[s]}", "skip", "id"));
    assert_int_equal(score_options(&model, &options), 0);
    assert_null(options.label.column); /* a skipped column might be there */
    score_options_release(&options);
    json_decref(model.details);
}

static void a_model_without_reading_options_reads_by_default(void **state) {
    (void)state;
    struct model model = {.details = json_object()};
    struct source_options options;
    assert_int_equal(score_options(&model, &options), 0);
    assert_int_equal(options.format, FORMAT_AUTO);
    assert_int_equal(options.syntax.header, CSV_HEADER_AUTO);
    assert_null(options.label.column);
    assert_null(options.table.skip);
    score_options_release(&options);
    json_decref(model.details);
}

static void unknown_reading_options_are_refused(void **state) {
    (void)state;
    error_clear();
    struct model model = {.details = json_pack("{s:{s:s}}", "source", "format", "arff")};
    struct source_options options;
    assert_int_equal(score_options(&model, &options), ERROR_DATA);
    json_decref(model.details);
}

SUITE(score) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_the_sum_over_the_features_training_saw),
        cmocka_unit_test(a_binary_prediction_is_the_probability_of_the_second_class),
        cmocka_unit_test(labels_probabilities_and_margins_of_two_classes_are_written),
        cmocka_unit_test(a_small_probability_of_the_first_of_two_classes_keeps_its_digits),
        cmocka_unit_test(labels_probabilities_and_margins_of_several_classes_are_written),
        cmocka_unit_test(ordered_classes_share_a_margin),
        cmocka_unit_test(lists_of_classes_are_those_with_a_margin_above_0),
        cmocka_unit_test(what_a_model_does_not_predict_is_refused),
        cmocka_unit_test(class_probabilities_add_up_to_one_at_any_margin),
        cmocka_unit_test(a_json_line_names_the_most_probable_class),
        cmocka_unit_test(features_are_found_in_rows_of_any_shape),
        cmocka_unit_test(a_margin_that_overflows_is_an_error_with_its_line),
        cmocka_unit_test(a_csv_row_that_lacks_a_column_of_the_model_is_refused),
        cmocka_unit_test(predictions_that_cannot_be_written_are_an_error),
        cmocka_unit_test(an_error_of_reading_ends_the_scoring),
        cmocka_unit_test(reading_options_come_back_as_they_were_stored),
        cmocka_unit_test(a_label_that_was_not_named_is_behind_the_last_feature),
        cmocka_unit_test(a_model_without_reading_options_reads_by_default),
        cmocka_unit_test(unknown_reading_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
