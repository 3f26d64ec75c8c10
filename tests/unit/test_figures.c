/* Labels, and the figures of a model on labelled data. */
#include "tests/unit/suites.h"
#include "tests/unit/score_fixture.h"

#include "base/random.h"
#include "model/figures.h"
#include "model/classes.h"
#include "objective/objective.h"

/* ---- labels ---- */

static void labels_are_compared_as_numbers_if_both_are(void **state) {
    (void)state;
    static const char *const names[] = {"10", "-1.0", "a", "caf\xc3\xa9", "1e1x"};
    struct model_layout layout = {.classes = 5, .class_names = names};
    struct class_table *labels = class_table_new(&layout);
    assert_int_equal(class_table_find(labels, 10, NULL), 0);
    assert_int_equal(class_table_find(labels, -1, NULL), 1);
    assert_int_equal(class_table_find(labels, 1, NULL), LABEL_UNSEEN);
    assert_int_equal(class_table_find(labels, NAN, "a"), 2);
    assert_int_equal(class_table_find(labels, NAN, "A"), LABEL_UNSEEN);
    assert_int_equal(class_table_find(labels, NAN, "1e1x"), 4);
    class_table_free(labels);
}

static void what_the_reader_of_data_takes_for_a_text_is_one_here(void **state) {
    (void)state;
    static const char *const names[] = {"1", "0x1", "inf", "1e999", " 1", "nan"};
    struct model_layout layout = {.classes = 6, .class_names = names};
    struct class_table *labels = class_table_new(&layout);
    for (uint32_t i = 1; i < 6; i++) {
        assert_int_equal(class_table_find(labels, NAN, names[i]), i);
        assert_int_equal(class_table_find_name(labels, names[i]), i);
    }
    assert_int_equal(class_table_find(labels, 1, NULL), 0);
    assert_int_equal(class_table_find_name(labels, "+1.0"), 0);
    assert_int_equal(class_table_find(labels, INFINITY, NULL), LABEL_UNSEEN);
    class_table_free(labels);
}

static void a_label_that_is_not_utf8_means_the_class_it_was_stored_as(void **state) {
    (void)state;
    static const char *const names[] = {"x", "caf\xc3\xa9"};
    struct model_layout layout = {.classes = 2, .class_names = names};
    struct class_table *labels = class_table_new(&layout);
    assert_int_equal(class_table_find(labels, NAN, "caf\xe9"), 1);
    assert_int_equal(class_table_find(labels, NAN, "caf\xc3\xa9"), 1);
    class_table_free(labels);
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

static double loss_of(const char *objective, size_t outputs, const double *margins, double label) {
    enum objective_kind kind = (enum objective_kind)objective_from_name(objective);
    struct loss_parameters parameters = objective_defaults(kind);
    return objective_of(kind)->loss(&parameters, outputs, margins, label);
}

static void losses_are_exact_far_out(void **state) {
    (void)state;
    assert_true(loss_of("logistic", 1, (double[]){0}, 1) == log(2));
    assert_true(loss_of("logistic", 1, (double[]){1000}, 0) == 1000);
    assert_true(loss_of("logistic", 1, (double[]){-1e300}, 1) == 1e300);
    assert_true(loss_of("logistic", 1, (double[]){700}, 1) == exp(-700));
    assert_true(loss_of("logistic", 1, (double[]){-40}, 0) == exp(-40));
    const double margins[] = {0, 700, 1e5};
    assert_true(loss_of("softmax", 3, margins, 0) == 1e5);
    assert_true(loss_of("softmax", 3, margins, 1) == 1e5 - 700);
    assert_true(loss_of("softmax", 3, margins, 2) == 0);
    assert_true(loss_of("softmax", 2, margins, 1) == exp(-700));
    const double equal[] = {-1e5, -1e5, -1e5};
    assert_true(fabs(loss_of("softmax", 3, equal, 2) - log(3)) < 1e-15);
    assert_int_equal(objective_best(3, equal), 0);
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
    assert_true(isnan(figures.rmse) && isnan(figures.f1));
}

static void only_figures_that_apply_are_in_json_and_undefined_ones_are_null(void **state) {
    (void)state;
    struct score_figures figures = score_no_figures();
    figures.examples = 3;
    figures.loss = 0.5;
    figures.rmse = 1;
    figures.unlabelled = 2;
    json_t *object = score_figures_json(&figures);
    char *text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, "{\"examples\":3,\"loss\":0.5,\"rmse\":1.0,\"unlabelled\":2}");
    free(text);
    json_decref(object);
    figures.objective = objective_find("squared");
    object = score_figures_json(&figures);
    assert_true(json_is_null(json_object_get(object, "r2")));
    assert_null(json_object_get(object, "auc"));
    json_decref(object);
}

static struct score_figures of_margins(const struct model *model, const double *margins,
                                       const double *labels, size_t count) {
    struct figures *figures = figures_new(&model->layout, FIGURES_ALL);
    struct score_figures result;
    for (size_t i = 0; i < count; i++)
        figures_add(figures, margins + i * model->layout.outputs, labels[i], NULL, 1);
    figures_finish(figures, &result);
    figures_free(figures);
    return result;
}

static void what_one_class_alone_leaves_undefined_is_null(void **state) {
    (void)state;
    const double margins[] = {-2, -1, -3}, labels[] = {-1, -1, -1};
    struct score_figures figures = of_margins(&binary, margins, labels, 3);
    json_t *object = score_figures_json(&figures);
    static const char *const undefined[] = {"auc", "average_precision", "precision", "recall",
                                            "f1"};
    for (size_t i = 0; i < 5; i++)
        assert_true(json_is_null(json_object_get(object, undefined[i])));
    assert_true(figures.accuracy == 1 && figures.macro_f1 == 1);
    json_decref(object);
    score_figures_release(&figures);
}

static void scores_that_are_all_tied_rank_nothing(void **state) {
    (void)state;
    const double margins[] = {7, 7, 7, 7}, labels[] = {-1, 1, -1, -1};
    struct score_figures figures = of_margins(&binary, margins, labels, 4);
    assert_true(figures.auc == 0.5);
    assert_true(figures.average_precision == 0.25);
    score_figures_release(&figures);
}

static void probabilities_of_exactly_0_and_1_have_figures(void **state) {
    (void)state;
    const double margins[] = {-800, 800, 800, -1e300}, labels[] = {-1, 1, -1, -1};
    struct score_figures figures = of_margins(&binary, margins, labels, 4);
    assert_true(figures.brier == 0.25);
    assert_true(figures.log_loss == 200);
    assert_true(fabs(figures.auc - 5.0 / 6) < 1e-15);
    score_figures_release(&figures);
}

/* The spread of years is small beside their squares. */
static void r2_keeps_its_digits_far_from_0_and_is_undefined_for_equal_targets(void **state) {
    (void)state;
    const double values[] = {1e9 + 1, 1e9 + 2, 1e9 + 4}, targets[] = {1e9 + 1, 1e9 + 3, 1e9 + 5};
    struct score_figures figures = of_margins(&squared, values, targets, 3);
    assert_close("r2", figures.r2, 0.75);
    score_figures_release(&figures);
    const double equal[] = {0.1, 0.1, 0.1};
    figures = of_margins(&squared, values, equal, 3);
    assert_true(isnan(figures.r2));
    score_figures_release(&figures);
}

static void very_many_classes_are_counted_and_not_listed(void **state) {
    (void)state;
    enum { CLASSES = 1500 };
    static char names[CLASSES][8];
    static const char *list[CLASSES];
    static double margins[CLASSES];
    for (int k = 0; k < CLASSES; k++) {
        snprintf(names[k], sizeof names[k], "%d", k);
        list[k] = names[k];
    }
    struct model_layout layout = {
        .objective = "softmax", .outputs = CLASSES, .classes = CLASSES, .class_names = list};
    struct figures *figures = figures_new(&layout, FIGURES_ALL);
    for (int i = 0; i < 20; i++) {
        memset(margins, 0, sizeof margins);
        margins[i] = 20;
        figures_add(figures, margins, i < 15 ? i : i + 1, NULL, 1);
    }
    struct score_figures result;
    figures_finish(figures, &result);
    assert_true(result.accuracy == 0.75);
    assert_close("macro_recall", result.macro_recall, 15.0 / 21); /* 15 is only predicted */
    assert_int_equal(json_array_size(json_object_get(result.classes, "classes")), 0);
    assert_null(json_object_get(result.classes, "confusion"));
    figures_free(figures);
    score_figures_release(&result);
}

SUITE(figures) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_compared_as_numbers_if_both_are),
        cmocka_unit_test(what_the_reader_of_data_takes_for_a_text_is_one_here),
        cmocka_unit_test(a_label_that_is_not_utf8_means_the_class_it_was_stored_as),
        cmocka_unit_test(an_unseen_label_counts_as_wrong_and_not_in_the_loss),
        cmocka_unit_test(examples_without_a_label_count_nowhere_else),
        cmocka_unit_test(losses_are_exact_far_out),
        cmocka_unit_test(the_auc_counts_every_pair_and_ties_half),
        cmocka_unit_test(figures_of_targets_are_half_the_mean_square_and_its_root),
        cmocka_unit_test(figures_of_classes_are_of_the_right_label),
        cmocka_unit_test(only_figures_that_apply_are_in_json_and_undefined_ones_are_null),
        cmocka_unit_test(what_one_class_alone_leaves_undefined_is_null),
        cmocka_unit_test(scores_that_are_all_tied_rank_nothing),
        cmocka_unit_test(probabilities_of_exactly_0_and_1_have_figures),
        cmocka_unit_test(r2_keeps_its_digits_far_from_0_and_is_undefined_for_equal_targets),
        cmocka_unit_test(very_many_classes_are_counted_and_not_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
