/* Scoring: predictions, labels and figures. Data comes from tables here instead of files. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/figures.h"
#include "model/labels.h"
#include "model/score.h"

/* ---- a source in memory ---- */

#define ROWS_MAX 400
#define VALUES_MAX 4000

static struct table {
    enum source_format format;
    uint32_t count;
    uint64_t start[ROWS_MAX + 1], id[VALUES_MAX];
    double value[VALUES_MAX], label[ROWS_MAX];
    const char *text[ROWS_MAX];
} table;

static void clear(void) {
    memset(&table, 0, sizeof table);
    error_clear();
}

static void add_row(double label, const char *text) {
    table.label[table.count] = label;
    table.text[table.count] = text;
    table.count++;
    table.start[table.count] = table.start[table.count - 1];
}

/* Adds a value to the last row. */
static void add_value(uint64_t id, double value) {
    uint64_t at = table.start[table.count]++;
    table.id[at] = id;
    table.value[at] = value;
}

/* Hands the table out in two parts; the first comes without texts if it has none. */
int source_read(const char *path, const struct source_options *options, unsigned threads,
                source_take *take, void *context, struct source_report *report) {
    (void)options;
    (void)threads;
    report->format = table.format;
    if (strcmp(path, "missing") == 0)
        return error_set(ERROR_IO, "cannot open %s", path);
    uint32_t half = table.count / 2;
    bool texts = false;
    for (uint32_t i = 0; i < half; i++)
        texts |= table.text[i] != NULL;
    struct source_rows rows = {.count = half,
                               .first_line = 1,
                               .start = table.start,
                               .id = table.id,
                               .value = table.value,
                               .label = table.label,
                               .label_text = texts ? table.text : NULL};
    int code = half ? take(context, &rows) : 0;
    if (code)
        return code;
    rows.count = table.count - half;
    rows.first_line += half;
    rows.start += half;
    rows.label += half;
    rows.label_text = table.text + half;
    return take(context, &rows);
}

void source_report_release(struct source_report *report) {
    (void)report;
}

/* ---- models ---- */

static const uint64_t ids[] = {2, 5, 9};
static const double weights[] = {1, -2, 0.5, /* output 0 */ 3, 0, -1, /* 1 */ 0, 0, 0 /* 2 */};
static const double biases[] = {0.25, -1, 2};
static const char *const binary_names[] = {"-1", "+1"};
static const char *const class_names[] = {"1", "2.0", "say \"three\""};

static const struct model binary = {
    .layout = {.objective = "logistic",
               .outputs = 1,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 2,
               .class_names = binary_names},
    .weight = weights,
    .bias = biases,
};
static const struct model softmax = {
    .layout = {.objective = "softmax",
               .outputs = 3,
               .intercept = true,
               .features = 3,
               .feature_id = ids,
               .classes = 3,
               .class_names = class_names},
    .weight = weights,
    .bias = biases,
};
static const struct model squared = {
    .layout = {.objective = "squared", .outputs = 1, .features = 3, .feature_id = ids},
    .weight = weights,
};

static struct score_figures figures_of(const struct model *model) {
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", NULL};
    assert_int_equal(score_files(model, paths, &options, 1, NULL, SCORE_PLAIN, &figures), 0);
    return figures;
}

/* The predictions as text; free it. */
static char *predictions_of(const struct model *model, enum score_format format) {
    struct source_options options = {0};
    char *paths[] = {(char *)"data", NULL}, *text;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(score_files(model, paths, &options, 1, file, format, NULL), 0);
    fclose(file);
    return text;
}

static void expect_predictions(const struct model *model, enum score_format format,
                               const char *expected) {
    char *text = predictions_of(model, format);
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
    expect_predictions(&squared, SCORE_PLAIN, "2.5\n0\n");
    expect_predictions(&squared, SCORE_JSON, "{\"value\":2.5}\n{\"value\":0}\n");
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
    expect_predictions(&binary, SCORE_PLAIN, expected);
    clear();
    add_row(NAN, NULL);
    add_value(9, -0.5);
    expect_predictions(&binary, SCORE_JSON, "{\"probability\":0.5}\n");
}

static void class_probabilities_add_up_to_one_at_any_margin(void **state) {
    (void)state;
    static const double scales[] = {0, 1, 300, 1e6, 1e300};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        clear();
        add_row(NAN, NULL);
        add_value(2, scales[s]);
        char *text = predictions_of(&softmax, SCORE_PLAIN), *at = text;
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
    expect_predictions(&softmax, SCORE_JSON,
                       "{\"probabilities\":[0,1,0],\"class\":\"2.0\"}\n"
                       "{\"probabilities\":[0,0,1],\"class\":\"say \\\"three\\\"\"}\n");
}

static void features_are_found_in_rows_of_any_shape(void **state) {
    (void)state;
    enum { FEATURES = 1000 };
    static uint64_t id[FEATURES];
    static double weight[FEATURES];
    struct random random;
    random_init(&random, 1);
    uint64_t next = 0;
    for (size_t j = 0; j < FEATURES; j++) {
        next += 1 + random_below(&random, 4);
        id[j] = next;
        weight[j] = (double)(1 + random_below(&random, 1000));
    }
    struct model model = squared;
    model.layout.features = FEATURES;
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
            while (j < FEATURES && id[j] != i)
                j++;
            unseen += j == FEATURES;
            expected += j < FEATURES ? weight[j] : 0;
        }
        struct score_figures figures = figures_of(&model);
        assert_int_equal(figures.unseen_features, unseen);
        assert_true(figures.loss == 0.5 * expected * expected);
    }
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
    assert_int_equal(score_files(&binary, paths, &options, 1, file, SCORE_PLAIN, NULL), ERROR_DATA);
    fclose(file);
    assert_non_null(strstr(error_text(), "data: about line 2"));
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
    assert_int_equal(score_files(&squared, paths, &options, 1, NULL, SCORE_PLAIN, &figures),
                     ERROR_DATA);
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
    assert_int_equal(score_files(&binary, paths, &options, 1, file, SCORE_PLAIN, NULL), ERROR_IO);
    fclose(file);
}

static void an_error_of_reading_ends_the_scoring(void **state) {
    (void)state;
    clear();
    add_row(1, NULL);
    struct source_options options = {0};
    struct score_figures figures;
    char *paths[] = {(char *)"data", (char *)"missing", NULL};
    assert_int_equal(score_files(&binary, paths, &options, 1, NULL, SCORE_PLAIN, &figures),
                     ERROR_IO);
    assert_string_equal(error_text(), "cannot open missing");
}

/* ---- labels ---- */

static void labels_are_compared_as_numbers_if_both_are(void **state) {
    (void)state;
    static const char *const names[] = {"10", "-1.0", "a", "caf\xc3\xa9", "1e1x"};
    struct model_layout layout = {.classes = 5, .class_names = names};
    struct labels *labels = label_table_new(&layout);
    assert_int_equal(label_table_find(labels, 10, NULL), 0);
    assert_int_equal(label_table_find(labels, -1, NULL), 1);
    assert_int_equal(label_table_find(labels, 1, NULL), LABEL_UNSEEN);
    assert_int_equal(label_table_find(labels, NAN, "a"), 2);
    assert_int_equal(label_table_find(labels, NAN, "A"), LABEL_UNSEEN);
    assert_int_equal(label_table_find(labels, NAN, "1e1x"), 4);
    label_table_free(labels);
}

static void a_label_that_is_not_utf8_means_the_class_it_was_stored_as(void **state) {
    (void)state;
    static const char *const names[] = {"x", "caf\xc3\xa9"};
    struct model_layout layout = {.classes = 2, .class_names = names};
    struct labels *labels = label_table_new(&layout);
    assert_int_equal(label_table_find(labels, NAN, "caf\xe9"), 1);
    assert_int_equal(label_table_find(labels, NAN, "caf\xc3\xa9"), 1);
    label_table_free(labels);
}

static void an_unseen_label_counts_as_wrong_and_not_in_the_loss(void **state) {
    (void)state;
    clear();
    add_row(1, NULL);
    add_value(2, 10); /* margin 10.25 */
    struct score_figures before = figures_of(&binary);
    assert_true(before.accuracy == 1);
    add_row(7, NULL);
    add_row(NAN, "maybe");
    add_row(-1, NULL);
    add_value(2, -10.5); /* margin −10.25: the same loss */
    struct score_figures figures = figures_of(&binary);
    assert_int_equal(figures.examples, 4);
    assert_int_equal(figures.unseen_labels, 2);
    assert_true(figures.accuracy == 0.5);
    assert_true(figures.loss == before.loss);
    assert_true(figures.auc == 1);
}

static void examples_without_a_label_count_nowhere_else(void **state) {
    (void)state;
    clear();
    add_row(NAN, NULL);
    add_row(-1, NULL);
    add_row(NAN, NULL);
    struct score_figures figures = figures_of(&binary);
    assert_int_equal(figures.examples, 1);
    assert_int_equal(figures.unlabelled, 2);
    assert_true(figures.accuracy == 0); /* margin 0.25 */
    assert_true(isnan(figures.auc));
    clear();
    add_row(NAN, NULL);
    figures = figures_of(&binary);
    assert_int_equal(figures.examples, 0);
    assert_true(isnan(figures.loss) && isnan(figures.accuracy));
}

/* ---- figures ---- */

static void losses_are_exact_far_out(void **state) {
    (void)state;
    assert_true(figures_loss_binary(0, true) == log(2));
    assert_true(figures_loss_binary(1000, false) == 1000);
    assert_true(figures_loss_binary(-1e300, true) == 1e300);
    assert_true(figures_loss_binary(700, true) == exp(-700));
    assert_true(figures_loss_binary(-40, false) == exp(-40));
    const double margins[] = {0, 700, 1e5};
    assert_true(figures_loss_classes(margins, 3, 0) == 1e5);
    assert_true(figures_loss_classes(margins, 3, 1) == 1e5 - 700);
    assert_true(figures_loss_classes(margins, 3, 2) == 0);
    assert_true(figures_loss_classes(margins, 2, 1) == exp(-700));
    const double equal[] = {-1e5, -1e5, -1e5};
    assert_true(fabs(figures_loss_classes(equal, 3, 2) - log(3)) < 1e-15);
    assert_int_equal(figures_best_class(equal, 3), 0);
}

static void the_auc_counts_every_pair_and_ties_half(void **state) {
    (void)state;
    struct random random;
    random_init(&random, 2);
    for (uint64_t levels = 1; levels <= 256; levels *= 4) {
        clear();
        for (int i = 0; i < 300; i++) {
            bool positive = random_below(&random, 3) == 0;
            add_row(positive ? 1 : -1, NULL);
            add_value(2, (double)random_below(&random, levels) + (double)positive);
        }
        double pairs = 0, won = 0;
        for (uint32_t i = 0; i < table.count; i++)
            for (uint32_t j = 0; j < table.count; j++) {
                if (table.label[i] < 0 || table.label[j] > 0)
                    continue;
                double a = table.value[i], b = table.value[j];
                pairs += 1;
                won += a > b ? 1 : a == b ? 0.5 : 0;
            }
        assert_true(figures_of(&binary).auc == won / pairs);
    }
}

static void figures_of_targets_are_half_the_mean_square_and_its_root(void **state) {
    (void)state;
    clear();
    add_row(5, NULL);
    add_value(2, 2);   /* residual −3 */
    add_row(-1, NULL); /* residual 1 */
    struct score_figures figures = figures_of(&squared);
    assert_true(figures.loss == 2.5);
    assert_true(figures.rmse == sqrt(5));
    assert_true(isnan(figures.accuracy) && isnan(figures.auc));
}

static void figures_of_classes_are_of_the_right_label(void **state) {
    (void)state;
    clear();
    add_row(2, NULL);              /* the class is named 2.0 */
    add_value(2, 2);               /* margins 2.25, 5, 2 */
    add_row(NAN, "say \"three\""); /* margins 0.25, −1, 2 */
    add_row(1, NULL);
    struct score_figures figures = figures_of(&softmax);
    double a = log(exp(2.25) + exp(5) + exp(2)) - 5;
    double b = log(exp(0.25) + exp(-1) + exp(2));
    assert_true(fabs(figures.loss - (a + (b - 2) + (b - 0.25)) / 3) < 1e-15);
    assert_true(fabs(figures.accuracy - 2.0 / 3) < 1e-15);
    assert_true(isnan(figures.auc) && isnan(figures.rmse));
}

static void figures_that_do_not_apply_are_left_out_of_json(void **state) {
    (void)state;
    struct score_figures figures = {
        .examples = 3, .loss = 0.5, .accuracy = NAN, .auc = NAN, .rmse = 1, .unlabelled = 2};
    json_t *object = score_figures_json(&figures);
    char *text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, "{\"examples\":3,\"loss\":0.5,\"rmse\":1.0,\"unlabelled\":2}");
    free(text);
    json_decref(object);
}

/* ---- reading options ---- */

static void reading_options_come_back_as_they_were_stored(void **state) {
    (void)state;
    static const char *const skip[] = {"id", "7", NULL};
    struct source_options stored = {
        .format = FORMAT_CSV, .header = CSV_HEADER_NO, .label = "class", .skip = skip};
    struct model model = {.details = json_object()};
    json_object_set_new(model.details, "source", score_options_json(&stored));
    struct source_options options;
    assert_int_equal(score_options(&model, &options), 0);
    assert_int_equal(options.format, FORMAT_CSV);
    assert_int_equal(options.header, CSV_HEADER_NO);
    assert_string_equal(options.label, "class");
    assert_string_equal(options.skip[0], "id");
    assert_string_equal(options.skip[1], "7");
    assert_null(options.skip[2]);
    score_options_release(&options);
    json_decref(model.details);
}

static void a_label_that_was_not_named_is_behind_the_last_feature(void **state) {
    (void)state;
    struct model model = squared;
    struct source_options options;
    model.details = json_object();
    assert_int_equal(score_options(&model, &options), 0);
    assert_string_equal(options.label, "10");
    score_options_release(&options);
    json_object_set_new(model.details, "source", json_pack("{s:[s]}", "skip", "id"));
    assert_int_equal(score_options(&model, &options), 0);
    assert_null(options.label); /* a skipped column might be there */
    score_options_release(&options);
    json_decref(model.details);
}

static void a_model_without_reading_options_reads_by_default(void **state) {
    (void)state;
    struct model model = {.details = json_object()};
    struct source_options options;
    assert_int_equal(score_options(&model, &options), 0);
    assert_int_equal(options.format, FORMAT_AUTO);
    assert_int_equal(options.header, CSV_HEADER_AUTO);
    assert_null(options.label);
    assert_null(options.skip);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_the_sum_over_the_features_training_saw),
        cmocka_unit_test(a_binary_prediction_is_the_probability_of_the_second_class),
        cmocka_unit_test(class_probabilities_add_up_to_one_at_any_margin),
        cmocka_unit_test(a_json_line_names_the_most_probable_class),
        cmocka_unit_test(features_are_found_in_rows_of_any_shape),
        cmocka_unit_test(a_margin_that_overflows_is_an_error_with_its_line),
        cmocka_unit_test(a_csv_row_that_lacks_a_column_of_the_model_is_refused),
        cmocka_unit_test(predictions_that_cannot_be_written_are_an_error),
        cmocka_unit_test(an_error_of_reading_ends_the_scoring),
        cmocka_unit_test(labels_are_compared_as_numbers_if_both_are),
        cmocka_unit_test(a_label_that_is_not_utf8_means_the_class_it_was_stored_as),
        cmocka_unit_test(an_unseen_label_counts_as_wrong_and_not_in_the_loss),
        cmocka_unit_test(examples_without_a_label_count_nowhere_else),
        cmocka_unit_test(losses_are_exact_far_out),
        cmocka_unit_test(the_auc_counts_every_pair_and_ties_half),
        cmocka_unit_test(figures_of_targets_are_half_the_mean_square_and_its_root),
        cmocka_unit_test(figures_of_classes_are_of_the_right_label),
        cmocka_unit_test(figures_that_do_not_apply_are_left_out_of_json),
        cmocka_unit_test(reading_options_come_back_as_they_were_stored),
        cmocka_unit_test(a_label_that_was_not_named_is_behind_the_last_feature),
        cmocka_unit_test(a_model_without_reading_options_reads_by_default),
        cmocka_unit_test(unknown_reading_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
