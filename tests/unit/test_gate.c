#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/suites.h"
#include "coordinator/job/gate.h"

static struct score_figures with_loss(double loss) {
    struct score_figures figures = score_no_figures();
    figures.examples = 10;
    figures.loss = loss;
    figures.accuracy = 0.8;
    return figures;
}

static bool holds(const char *text, double new, double live) {
    struct score_figures of_new = with_loss(new), of_live = with_loss(live);
    return gate_check(text, &of_new, &of_live).holds;
}

static void conditions_are_read(void **state) {
    (void)state;
    static const char *const good[] = {
        "loss <= 1.01 * live",
        "loss<=1.01*live",
        "accuracy >= live",
        "accuracy >= live - 0.01",
        "auc > 0.8",
        "rmse < 2e3",
        "loss <= live + 1e-3",
        "  loss  <  -0.5  ",
        "loss <= 0.9 * live + 0.05",
        "f1 >= 0.8",
        "macro_f1 > live",
        "average_precision >= 0.1",
        "brier <= 0.2",
        "log_loss < live",
        "r2 >= 0.5",
        "deviance <= 3",
        "mae <= 1.1 * live",
        "coverage >= 0.85",
        "coverage <= 0.95",
    };
    static const char *const bad[] = {
        "",
        "loss",
        "loss <=",
        "losses <= 1",
        "loss == 1",
        "loss <= live * 1.01",
        "loss <= 1.01 * life",
        "loss <= lively",
        "loss <= nan",
        "loss <= inf",
        "loss <= 1.01 live",
        "loss <= 1 + 2",
        "loss <= live +",
        "loss <= live 2",
        "1 >= loss",
        "loss <= 1 and auc > 0.5",
        "AUC >= 0.5",
        "loss >= live",
        "rmse > 0.5",
        "accuracy <= 1.01 * live",
        "auc < 0.9",
        "accuracy >= 80",
        "f1 <= 0.8",
        "f1_ >= 0.8",
        "macro_f >= 0.8",
        "r2 >= 2",
        "coverage >= 85",
        "classes >= 1",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!gate_is_condition(good[i]))
            fail_msg("\"%s\" is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (gate_is_condition(bad[i]))
            fail_msg("\"%s\" is taken", bad[i]);
}

static void a_misspelt_word_of_a_condition_is_asked_for(void **state) {
    (void)state;
    assert_string_equal(gate_suggestion("acuracy >= 0.9"), "; did you mean `accuracy`?");
    assert_string_equal(gate_suggestion("  avrage_precision>0.5"),
                        "; did you mean `average_precision`?");
    assert_string_equal(gate_suggestion("loss <= 1.01 * life"), "; did you mean `live`?");
    assert_string_equal(gate_suggestion("auc >= liev - 0.01"), "; did you mean `live`?");
    assert_string_equal(gate_suggestion("accuracy >= 80"), "");
    assert_string_equal(gate_suggestion("loss >= live"), "");
    assert_string_equal(gate_suggestion("speed > 3"), "");
    assert_string_equal(gate_suggestion(""), "");
}

static void a_condition_is_taken_apart(void **state) {
    (void)state;
    struct gate_condition condition;
    assert_true(gate_parse("accuracy >= 0.5 * live - 0.25", &condition));
    assert_string_equal(condition.figure->name, "accuracy");
    assert_int_equal(condition.comparison, GATE_AT_LEAST);
    assert_true(condition.relative);
    assert_true(condition.factor == 0.5 && condition.offset == -0.25);
    assert_true(gate_parse("rmse < 3", &condition));
    assert_false(condition.relative);
    assert_true(condition.offset == 3);
}

static void a_limit_is_compared_as_it_says(void **state) {
    (void)state;
    assert_true(holds("loss <= 0.5", 0.5, 9));
    assert_false(holds("loss < 0.5", 0.5, 9));
    assert_true(holds("loss >= 0.5", 0.5, 9));
    assert_false(holds("loss > 0.5", 0.5, 9));
    assert_true(holds("loss <= 1.5 * live", 0.6, 0.4));
    assert_false(holds("loss <= 1.25 * live", 0.6, 0.4));
    assert_true(holds("loss <= live + 0.25", 0.6, 0.4));
    assert_false(holds("loss <= live - 0.25", 0.2, 0.4));
    assert_true(holds("loss < live", 0.3, 0.4));
}

static void without_a_live_model_only_absolute_limits_bind(void **state) {
    (void)state;
    struct score_figures new = with_loss(0.7);
    struct gate_outcome outcome = gate_check("loss <= 1.01 * live", &new, NULL);
    assert_true(outcome.holds && outcome.unpublished);
    assert_true(isnan(outcome.live));
    assert_false(gate_check("loss <= 0.5", &new, NULL).holds);
    assert_true(gate_check("loss <= 0.75", &new, NULL).holds);
}

static void a_figure_that_is_not_there_fulfils_nothing(void **state) {
    (void)state;
    struct score_figures figures = with_loss(0.5);
    assert_false(gate_check("auc >= 0", &figures, &figures).holds);
    assert_false(gate_check("rmse <= 1e300", &figures, NULL).holds);
    assert_false(holds("loss <= live", INFINITY, INFINITY));
    assert_false(holds("loss >= live", 1, NAN));
    assert_false(holds("loss <= live", 1, INFINITY));
}

static void explains(const char *text, double new, double live, const char *expected) {
    struct score_figures of_new = with_loss(new), of_live = with_loss(live);
    struct gate_outcome outcome = gate_check(text, &of_new, &of_live);
    char *said = gate_explain(&outcome);
    assert_string_equal(said, expected);
    free(said);
}

static void both_figures_are_said(void **state) {
    (void)state;
    explains("loss <= 1.5 * live", 0.75, 0.25,
             "loss <= 1.5 * live does not hold: the new model's loss 0.75 is not at most 0.375 "
             "(live 0.25)");
    explains("loss < 1", 0.75, 0.25, "loss < 1 holds: the new model's loss 0.75 is below 1");
    explains("auc > 0.5", 1, 1,
             "auc > 0.5 does not hold: the new model has no finite auc on the holdout");
}

static void a_figure_goes_with_its_objective(void **state) {
    (void)state;
    struct gate_condition condition;
    assert_true(gate_parse("auc > 0.5", &condition));
    assert_true(gate_suits(&condition, OBJECTIVE_LOGISTIC));
    assert_true(gate_suits(&condition, OBJECTIVE_SOFTMAX));
    assert_false(gate_suits(&condition, OBJECTIVE_SQUARED));
    assert_true(gate_parse("f1 > 0.5", &condition)); /* of the positive class */
    assert_true(gate_suits(&condition, OBJECTIVE_LOGISTIC));
    assert_false(gate_suits(&condition, OBJECTIVE_SOFTMAX));
    assert_true(gate_parse("brier < 0.5", &condition));
    assert_false(gate_suits(&condition, OBJECTIVE_SQUARED_HINGE));
    assert_true(gate_parse("rmse < live", &condition));
    assert_true(gate_suits(&condition, OBJECTIVE_SQUARED));
    assert_false(gate_suits(&condition, OBJECTIVE_LOGISTIC));
    assert_true(gate_parse("accuracy > 0.5", &condition));
    assert_false(gate_suits(&condition, OBJECTIVE_SQUARED));
}

static void an_outcome_is_written_as_json(void **state) {
    (void)state;
    struct score_figures figures = with_loss(0.5);
    struct gate_outcome outcome = gate_check("loss <= live", &figures, NULL);
    json_t *json = gate_outcome_json(&outcome);
    assert_string_equal(json_string_value(json_object_get(json, "condition")), "loss <= live");
    assert_true(json_real_value(json_object_get(json, "new")) == 0.5);
    assert_true(json_is_null(json_object_get(json, "live")));
    assert_true(json_is_true(json_object_get(json, "holds")));
    json_decref(json);
}

SUITE(gate) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_read),
        cmocka_unit_test(a_misspelt_word_of_a_condition_is_asked_for),
        cmocka_unit_test(a_condition_is_taken_apart),
        cmocka_unit_test(a_limit_is_compared_as_it_says),
        cmocka_unit_test(without_a_live_model_only_absolute_limits_bind),
        cmocka_unit_test(a_figure_that_is_not_there_fulfils_nothing),
        cmocka_unit_test(both_figures_are_said),
        cmocka_unit_test(a_figure_goes_with_its_objective),
        cmocka_unit_test(an_outcome_is_written_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
