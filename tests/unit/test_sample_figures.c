/* Figures of a sample of examples, as scikit-learn 1.9 computes them. */
#include "tests/unit/suites.h"
#include "tests/unit/score_fixture.h"

#include "model/figures.h"

#define SAMPLE 200

static double weight_of(int i) {
    return 1 + i % 5 * 0.3;
}

/* Adds example i of the sample, whose figures stand below. */
static void add_binary(struct figures *figures, int i, double weight) {
    double margin = i * 37 % 101 / 16.0 - 3;
    figures_add(figures, &margin, i * i * 7 % 11 < 4 ? 1 : -1, NULL, weight);
}

static void add_class(struct figures *figures, int i, double weight) {
    static const char *const texts[] = {NULL, NULL, "say \"three\""};
    double margins[] = {i * 37 % 101 / 16.0 - 3, i * 53 % 97 / 20.0 - 2, i * 29 % 89 / 25.0 - 1.5};
    int class = i * i * 7 % 11 % 3;
    figures_add(figures, margins, class + 1, texts[class], weight);
}

static void add_list(struct figures *figures, int i, double weight) {
    double margins[] = {i * 37 % 101 / 16.0 - 3, i * 53 % 97 / 20.0 - 2, i * 29 % 89 / 25.0 - 1.5};
    char list[64];
    snprintf(list, sizeof list, "%s%s%s", i % 2 ? "1.0; " : "", i * i * 7 % 11 < 4 ? "2;" : "",
             i * 3 % 7 < 1 ? "say \"three\"" : "");
    figures_add(figures, margins, NAN, list, weight);
}

static void add_target(struct figures *figures, int i, double weight) {
    double value = 1998 + i * 37 % 23 / 5.0;
    figures_add(figures, &value, 1998 + i * i * 3 % 17 / 4.0, NULL, weight);
}

typedef void add_example(struct figures *figures, int i, double weight);

/* The examples in an order that depends on `stride`. */
static struct score_figures of_sample(const struct model *model, add_example *add, bool weighted,
                                      int stride) {
    struct figures *figures = figures_new(&model->layout, FIGURES_ALL);
    struct score_figures result;
    for (int i = 0; i < SAMPLE; i++)
        add(figures, i * stride % SAMPLE, weighted ? weight_of(i * stride % SAMPLE) : 1);
    figures_finish(figures, &result);
    figures_free(figures);
    return result;
}

struct expected {
    const char *name;
    double plain, weighted;
};

static void check_sample(const struct model *model, add_example *add,
                         const struct expected *expected, size_t count) {
    struct score_figures plain = of_sample(model, add, false, 1);
    struct score_figures weighted = of_sample(model, add, true, 1);
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (strcmp(score_figure_table[j].name, expected[i].name) != 0)
            j++;
        assert_close(expected[i].name, score_figure_value(&plain, &score_figure_table[j]),
                     expected[i].plain);
        assert_close(expected[i].name, score_figure_value(&weighted, &score_figure_table[j]),
                     expected[i].weighted);
    }
    assert_true(isnan(plain.weight));
    assert_close("weight", weighted.weight, 320);
    score_figures_release(&plain);
    score_figures_release(&weighted);
}

#define CHECK(model, add, expected)                                                                \
    check_sample(model, add, expected, sizeof(expected) / sizeof(expected)[0])

static void figures_of_two_classes_are_those_of_scikit_learn(void **state) {
    (void)state;
    static const struct expected expected[] = {
        {"log_loss", 0.9906485674802528, 0.989607708931103},
        {"accuracy", 0.55, 0.551875},
        {"precision", 0.3300970873786408, 0.3300613496932515},
        {"recall", 0.6181818181818182, 0.6113636363636363},
        {"f1", 0.43037974683544306, 0.4286852589641434},
        {"macro_precision", 0.556801121008908, 0.5561134773943964},
        {"macro_recall", 0.5711598746081505, 0.5703369905956113},
        {"macro_f1", 0.529239460194581, 0.5300238634152337},
        {"auc", 0.5612539184952978, 0.5584693377742946},
        {"average_precision", 0.31447935804638505, 0.31156057108534735},
        {"brier", 0.33138915998595814, 0.33110038962481564},
    };
    CHECK(&binary, add_binary, expected);
}

static void figures_of_several_classes_are_those_of_scikit_learn(void **state) {
    (void)state;
    static const struct expected expected[] = {
        {"log_loss", 1.5550007001094996, 1.5627803931547866},
        {"accuracy", 0.31, 0.31},
        {"macro_precision", 0.3067893547345602, 0.30610132082602776},
        {"macro_recall", 0.3139442368894424, 0.3150626318116419},
        {"macro_f1", 0.30701470535361164, 0.3071054331961794},
        {"auc", 0.5156392234693431, 0.5105358633706882},
        {"average_precision", 0.35826463215806226, 0.35390973745505455},
        {"brier", 0.9036093677482799, 0.905144312301276},
    };
    CHECK(&softmax, add_class, expected);
}

/* The error of ranks: of the class's place. */
static void figures_of_ordered_classes_are_those_of_scikit_learn(void **state) {
    (void)state;
    static const struct expected expected[] = {
        {"loss", 1.7215105824804993, 1.72767155397041},
        {"accuracy", 0.285, 0.2859375},
        {"macro_f1", 0.26989981472586294, 0.2708127109284773},
        {"mae", 0.88, 0.88375},
    };
    CHECK(&ordinal, add_class, expected);
    struct score_figures figures = of_sample(&ordinal, add_class, false, 1);
    json_t *json = score_figures_json(&figures);
    static const char *const lacking[] = {"rmse", "auc", "log_loss", "brier", "precision"};
    assert_non_null(json_object_get(json, "mae"));
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        assert_null(json_object_get(json, lacking[i]));
    json_decref(json);
    score_figures_release(&figures);
}

static void figures_of_lists_of_classes_are_those_of_scikit_learn(void **state) {
    (void)state;
    static const struct expected expected[] = {
        {"loss", 3.1075431652325496, 3.0636751683039627},
        {"accuracy", 0.065, 0.06875},
        {"hamming", 0.5833333333333334, 0.5733333333333335},
        {"micro_precision", 0.25149700598802394, 0.25870834117868574},
        {"micro_recall", 0.45652173913043476, 0.4671880312818769},
        {"micro_f1", 0.32432432432432434, 0.3330101793504605},
        {"macro_precision", 0.26030091750241385, 0.2683684704842786},
        {"macro_recall", 0.4569383490073145, 0.46952910339840925},
        {"macro_f1", 0.3077175697865353, 0.3161837370886787},
        {"auc", 0.4515481258440424, 0.4657636550072637},
        {"average_precision", 0.31548420954905176, 0.32857635154300713},
    };
    CHECK(&multilabel, add_list, expected);
}

/* Its other classes count. */
static void a_list_with_a_class_that_training_never_saw_is_never_right(void **state) {
    (void)state;
    struct figures *figures = figures_new(&multilabel.layout, FIGURES_ALL);
    const double margins[] = {1, -1, -1};
    struct score_figures result;
    figures_add(figures, margins, NAN, "1", 1);
    figures_add(figures, margins, NAN, "1;other", 1);
    figures_add(figures, margins, NAN, "", 1);
    figures_add(figures, margins, NAN, NULL, 1);
    figures_finish(figures, &result);
    assert_int_equal(result.examples, 3);
    assert_int_equal(result.unseen_labels, 1);
    assert_int_equal(result.unlabelled, 1);
    assert_close("accuracy", result.accuracy, 1.0 / 3);
    assert_close("micro_precision", result.micro_precision, 2.0 / 3);
    assert_close("micro_recall", result.micro_recall, 1);
    assert_close("hamming", result.hamming, 1.0 / 9);
    score_figures_release(&result);
    figures_free(figures);
}

static void figures_of_numbers_are_those_of_scikit_learn(void **state) {
    (void)state;
    static const struct expected expected[] = {
        {"deviance", 1.3256437500000056, 1.3516722656250049},
        {"rmse", 1.6282774640705469, 1.6441850659977453},
        {"mae", 1.33975, 1.358078125},
        {"r2", -1.6656528699193114, -1.7301671066470266},
        {"coverage", 0.565, 0.559375},
    };
    CHECK(&squared, add_target, expected);
}

static void assert_text(const json_t *object, const char *expected) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    assert_string_equal(text, expected);
    free(text);
}

static void the_confusion_matrix_has_a_row_a_label_and_a_column_a_prediction(void **state) {
    (void)state;
    struct score_figures figures = of_sample(&softmax, add_class, false, 1);
    json_t *object = score_figures_json(&figures);
    assert_text(json_object_get(object, "confusion"), "[[20,10,25],[31,27,15],[21,36,15]]");
    const json_t *last = json_array_get(json_object_get(object, "classes"), 2);
    assert_string_equal(json_string_value(json_object_get(last, "class")), "say \"three\"");
    assert_int_equal(json_integer_value(json_object_get(last, "examples")), 72);
    json_decref(object);
    score_figures_release(&figures);
    figures = of_sample(&softmax, add_class, true, 1);
    assert_text(json_object_get(figures.classes, "confusion"),
                "[[32.6,16.3,39.1],[47.5,43.2,24.9],[34.5,58.5,23.4]]");
    score_figures_release(&figures);
}

/* All of JSON, so that the last bit of each figure of each class counts. */
static void the_order_of_examples_changes_no_bit(void **state) {
    (void)state;
    static const struct {
        const struct model *model;
        add_example *add;
    } samples[] = {{&binary, add_binary},
                   {&softmax, add_class},
                   {&ordinal, add_class},
                   {&multilabel, add_list},
                   {&squared, add_target}};
    static const int strides[] = {3, 77, 199};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct score_figures first = of_sample(samples[i].model, samples[i].add, true, 1);
        json_t *expected = score_figures_json(&first);
        for (size_t j = 0; j < 3; j++) {
            struct score_figures other =
                of_sample(samples[i].model, samples[i].add, true, strides[j]);
            json_t *object = score_figures_json(&other);
            assert_true(json_equal(object, expected));
            json_decref(object);
            score_figures_release(&other);
        }
        json_decref(expected);
        score_figures_release(&first);
    }
}

SUITE(sample_figures) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_two_classes_are_those_of_scikit_learn),
        cmocka_unit_test(figures_of_several_classes_are_those_of_scikit_learn),
        cmocka_unit_test(figures_of_ordered_classes_are_those_of_scikit_learn),
        cmocka_unit_test(figures_of_lists_of_classes_are_those_of_scikit_learn),
        cmocka_unit_test(a_list_with_a_class_that_training_never_saw_is_never_right),
        cmocka_unit_test(figures_of_numbers_are_those_of_scikit_learn),
        cmocka_unit_test(the_confusion_matrix_has_a_row_a_label_and_a_column_a_prediction),
        cmocka_unit_test(the_order_of_examples_changes_no_bit),
    };
    return cmocka_run_group_tests_name("sample figures", tests, NULL, NULL);
}
