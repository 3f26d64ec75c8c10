/* Calibrations and thresholds that are found on rows, and what they make of margins. Figures to
 * compare with are from scikit-learn 1.9.1 (IsotonicRegression, precision_recall_curve) and, of
 * Platt's, from Newton's method in NumPy. */
#include "tests/unit/suites.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/random.h"
#include "model/curves.h"
#include "model/ranking.h"
#include "model/response.h"

#define ROWS 40

/* 40 rows of 23 margins, 16 of them positive; `weighted`: they weigh 1 to 4. In another order for
 * each `turn`. */
static void make_rows(struct ranked_score rows[ROWS], bool weighted, int turn) {
    for (int j = 0; j < ROWS; j++) {
        int i = (j * 7 + turn * 13) % ROWS;
        double weight = weighted ? 1 + (i * 5 % 7) / 2.0 : 1;
        bool positive = (i * 37 + 11) % 23 + i * 29 % 17 > 20;
        rows[j] =
            (struct ranked_score){(i * 37 + 11) % 23 / 4.0 - 2.5, positive ? weight : -weight};
    }
}

static struct calibration fit(enum calibration_method method, bool weighted, int turn) {
    struct ranked_score rows[ROWS];
    make_rows(rows, weighted, turn);
    return calibration_fit(method, rows, ROWS);
}

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void platt_is_the_minimum_of_the_smoothed_log_loss(void **state) {
    (void)state;
    struct calibration plain = fit(CALIBRATION_PLATT, false, 0);
    assert_near(plain.slope, 1.0506830917877188, 1e-9);
    assert_near(plain.offset, -0.8791305196369604, 1e-9);
    struct calibration weighted = fit(CALIBRATION_PLATT, true, 0);
    assert_near(weighted.slope, 1.3101935501269784, 1e-9);
    assert_near(weighted.offset, -0.9275000137197904, 1e-9);
}

static void isotonic_pools_violators_and_ties(void **state) {
    (void)state;
    static const double margins[] = {-3, -1.1, 0.1, 0.9, 1.3, 9};
    static const double plain[] = {0, 0, 1.0 / 3, 0.6, 0.6761904761904761, 1};
    static const double weighted[] = {0, 0, 0.5, 0.6285714285714286, 0.719815668202765, 1};
    for (int k = 0; k < 2; k++) {
        struct calibration found = fit(CALIBRATION_ISOTONIC, k, 0);
        assert_int_equal(found.knots, k ? 12 : 14);
        for (size_t i = 0; i < sizeof margins / sizeof *margins; i++) {
            /* No certainty beyond what 40 rows can show. */
            double expected = fmin(fmax((k ? weighted : plain)[i], 1.0 / 42), 41.0 / 42);
            assert_near(calibration_probability(&found, margins[i]), expected, 1e-14);
        }
        calibration_release(&found);
    }
}

static void no_order_of_rows_changes_a_bit(void **state) {
    (void)state;
    static const enum threshold_kind kinds[] = {THRESHOLD_F1, THRESHOLD_RECALL, THRESHOLD_PRECISION,
                                                THRESHOLD_COST};
    for (int weighted = 0; weighted < 2; weighted++)
        for (int turn = 1; turn < 5; turn++) {
            struct calibration one = fit(CALIBRATION_PLATT, weighted, 0);
            struct calibration other = fit(CALIBRATION_PLATT, weighted, turn);
            assert_true(one.slope == other.slope && one.offset == other.offset);
            one = fit(CALIBRATION_ISOTONIC, weighted, 0);
            other = fit(CALIBRATION_ISOTONIC, weighted, turn);
            assert_int_equal(one.knots, other.knots);
            assert_memory_equal(one.margin, other.margin, one.knots * sizeof(double));
            assert_memory_equal(one.probability, other.probability, one.knots * sizeof(double));
            calibration_release(&one);
            calibration_release(&other);
            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                struct threshold_rule rule = {kinds[i], 0.7, 1, 3};
                struct ranked_score rows[2][ROWS];
                bool reached;
                make_rows(rows[0], weighted, 0);
                make_rows(rows[1], weighted, turn);
                assert_true(threshold_find(&rule, rows[0], ROWS, &reached) ==
                            threshold_find(&rule, rows[1], ROWS, &reached));
            }
        }
}

static void thresholds_are_those_of_the_curve(void **state) {
    (void)state;
    static const struct {
        struct threshold_rule rule;
        double plain, weighted;
    } cases[] = {{{THRESHOLD_F1, 0, 1, 1}, 0.5, 0},
                 {{THRESHOLD_RECALL, 0.8, 1, 1}, 0.5, 0.5},
                 {{THRESHOLD_PRECISION, 0.9, 1, 1}, 2.5, 2},
                 {{THRESHOLD_COST, 0, 1, 3}, 0, 0}}; /* of equal costs the higher threshold */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int weighted = 0; weighted < 2; weighted++) {
            struct ranked_score rows[ROWS];
            bool reached;
            make_rows(rows, weighted, 0);
            double found = threshold_find(&cases[i].rule, rows, ROWS, &reached);
            assert_true(reached && found == (weighted ? cases[i].weighted : cases[i].plain));
        }
}

static void what_no_threshold_reaches_is_told(void **state) {
    (void)state;
    struct ranked_score rows[] = {{3, -1}, {2, 1}, {1, -1}};
    struct threshold_rule rule = {THRESHOLD_PRECISION, 0.9, 1, 1};
    bool reached;
    assert_true(threshold_find(&rule, rows, 3, &reached) == 2);
    assert_false(reached);
    rule = (struct threshold_rule){THRESHOLD_COST, 0, 10, 1}; /* to predict none costs least */
    assert_true(threshold_find(&rule, rows, 3, &reached) > 3);
    rule = (struct threshold_rule){THRESHOLD_RECALL, 1, 1, 1};
    assert_true(threshold_find(&rule, rows, 3, &reached) == 2);
}

static void ties_are_one_threshold(void **state) {
    (void)state;
    struct ranked_score rows[] = {{1, 1}, {1, -1}, {1, -1}, {0, 1}, {0, -1}};
    struct threshold_rule rule = {THRESHOLD_PRECISION, 0.5, 1, 1};
    bool reached;
    assert_true(threshold_find(&rule, rows, 5, &reached) == 0);
    assert_false(reached); /* 2 of 5, and 1 of 3: not the one positive alone */
}

static void rules_are_read_with_and_without_blanks(void **state) {
    (void)state;
    static const char *const good[] = {
        "auto", "f1",   "cost",          "0.5",          "0",
        "1",    "1e-3", "recall >= 0.9", "precision>=1", "  recall  >=  .5"};
    static const char *const bad[] = {"",
                                      "F1",
                                      "1.5",
                                      "-0.1",
                                      "0.5 ",
                                      "nan",
                                      "recall > 0.9",
                                      "recall >= 2",
                                      "recall >= 0",
                                      "auc >= 0.9",
                                      "recall >= 0.9x",
                                      "precision >=",
                                      "50%"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(threshold_is_rule(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(threshold_is_rule(bad[i]));
}

/* ---- curves ---- */

static double number_at(const json_t *points, const char *member, size_t i) {
    return json_number_value(json_array_get(json_object_get(points, member), i));
}

static void curves_have_the_points_of_scikit_learn(void **state) {
    (void)state;
    /* Its precision-recall and ROC curves: threshold, precision, recall, false positives. */
    static const double expected[2][3][4] = {
        {{3.0, 1.0, 0.125, 0.0}, {2.75, 1.0, 0.25, 0.0}, {2.5, 1.0, 0.3125, 0.0}},
        {{3.0, 1.0, 0.15476190476190477, 0.0},
         {2.75, 1.0, 0.2976190476190476, 0.0},
         {2.5, 1.0, 0.38095238095238093, 0.0}}};
    for (int weighted = 0; weighted < 2; weighted++) {
        struct ranked_score rows[ROWS];
        make_rows(rows, weighted, 3);
        json_t *curves = curves_json(rows, ROWS), *points = json_object_get(curves, "points");
        assert_int_equal(json_array_size(json_object_get(points, "recall")), 23);
        for (size_t i = 0; i < 3; i++) {
            assert_true(number_at(points, "threshold", i) == expected[weighted][i][0]);
            assert_near(number_at(points, "precision", i), expected[weighted][i][1], 1e-15);
            assert_near(number_at(points, "recall", i), expected[weighted][i][2], 1e-15);
            assert_near(number_at(points, "false_positive_rate", i), expected[weighted][i][3],
                        1e-15);
        }
        assert_true(number_at(points, "share", 22) == 1);
        json_decref(curves);
    }
}

static void curves_of_many_scores_have_few_points_and_every_tenth(void **state) {
    (void)state;
    enum { MANY = 20000 };
    struct ranked_score *rows = calloc(MANY, sizeof *rows);
    for (int i = 0; i < MANY; i++)
        rows[i] = (struct ranked_score){(i * 7919 % MANY) / 2 / (double)MANY, i % 100 < 3 ? 1 : -1};
    json_t *curves = curves_json(rows, MANY), *points = json_object_get(curves, "points");
    size_t count = json_array_size(json_object_get(points, "recall"));
    assert_true(count >= 50 && count <= CURVES_POINTS_MAX);
    assert_int_equal(json_array_size(json_object_get(curves, "thresholds")), 10);
    json_t *gains = json_object_get(curves, "gains");
    assert_int_equal(json_array_size(gains), 10);
    assert_true(json_number_value(json_object_get(json_array_get(gains, 9), "recall")) == 1);
    json_decref(curves);
    free(rows);
}

static void more_scores_than_can_be_held_go_into_bins(void **state) {
    (void)state;
    enum { MANY = 3000 };
    struct ranking *whole = ranking_new(1, RANKING_BYTES_MAX), *small[2];
    for (int k = 0; k < 2; k++)
        small[k] = ranking_new(1, k ? 16 * 700 : 16);
    for (int i = 0; i < MANY; i++) {
        int j = i * 1201 % MANY;
        double score = (j - 1300) / 77.7, back = (MANY - 1 - i) * 1201 % MANY;
        double other = (back - 1300) / 77.7;
        ranking_add(whole, &score, j % 3 == 0 || j > 2000, 1 + j % 2);
        ranking_add(small[0], &score, j % 3 == 0 || j > 2000, 1 + j % 2);
        ranking_add(small[1], &other, (int)back % 3 == 0 || back > 2000, 1 + (int)back % 2);
    }
    assert_true(ranking_is_binned(small[0]) && ranking_overflowed(small[0]));
    uint64_t counts[3];
    struct ranked_score *scores[3] = {ranking_scores(whole, 0, &counts[0]),
                                      ranking_scores(small[0], 0, &counts[1]),
                                      ranking_scores(small[1], 0, &counts[2])};
    for (int k = 0; k < 3; k++)
        ranking_sort(scores[k], counts[k]);
    assert_true(counts[1] == counts[2] && counts[1] < MANY);
    assert_memory_equal(scores[1], scores[2], counts[1] * sizeof **scores);
    struct ranking_walk walk = {.scores = scores[1], .count = counts[1]};
    struct ranking_point point;
    while (ranking_walk_next(&walk, &point)) { /* what is above an edge is exact */
        double positives = 0, predicted = 0;
        for (uint64_t i = 0; i < counts[0] && scores[0][i].score >= point.threshold; i++) {
            positives += fmax(scores[0][i].weight, 0);
            predicted += fabs(scores[0][i].weight);
        }
        assert_true(positives == point.positives && predicted == point.predicted);
    }
    ranking_walk_release(&walk);
    for (int k = 0; k < 3; k++)
        free(scores[k]);
    ranking_free(whole);
    ranking_free(small[0]);
    ranking_free(small[1]);
}

static void the_calibration_error_is_the_mean_distance_in_tenths(void **state) {
    (void)state;
    struct reliability *reliability = reliability_new();
    assert_true(isnan(reliability_error(reliability)));
    reliability_add(reliability, 0.05, false, 3);
    reliability_add(reliability, 0.05, true, 1); /* 0.25 for 0.05: 4 × 0.2 */
    reliability_add(reliability, 1, true, 2);    /* right */
    reliability_add(reliability, 0.9, false, 2); /* of one tenth with it: 4 × 0.45 */
    assert_near(reliability_error(reliability), (4 * 0.2 + 4 * 0.45) / 8, 1e-15);
    json_t *list = reliability_json(reliability);
    assert_int_equal(json_array_size(list), 2);
    json_decref(list);
    reliability_free(reliability);
}

/* ---- what is made of margins ---- */

static const char *const names[] = {"no", "yes"};

static struct model_layout layout_with(const struct response *response) {
    return (struct model_layout){.objective = "logistic",
                                 .outputs = 1,
                                 .classes = 2,
                                 .class_names = names,
                                 .response = response};
}

static void class_weights_are_undone_in_probabilities_and_not_in_answers(void **state) {
    (void)state;
    static const double weight[] = {0.5, 50};
    struct response *response = response_new(1);
    response_set_prior(response, objective_find("logistic"), weight, 2);
    struct model_layout layout = layout_with(response);
    double margin = log(100), prediction;
    response_predict(objective_find("logistic"), &layout, &margin, &prediction);
    assert_near(prediction, 0.5, 1e-15);
    margin = 0.1;
    response_predict(objective_find("logistic"), &layout, &margin, &prediction);
    assert_near(prediction, exp(0.1) / (100 + exp(0.1)), 1e-15);
    assert_int_equal(response_class(objective_find("logistic"), &layout, &margin, &prediction), 1);
    assert_near(response_threshold(objective_find("logistic"), &layout, 0), 1 / 101.0, 1e-15);
    response_free(response);
    static const double none[] = {1, 0};
    response = response_new(1);
    response_set_prior(response, objective_find("logistic"), none, 2);
    assert_true(response_is_plain(response));
    response_free(response);
}

static void both_probabilities_and_the_loss_agree_with_the_prediction(void **state) {
    (void)state;
    static const enum calibration_method methods[] = {CALIBRATION_PLATT, CALIBRATION_ISOTONIC};
    for (size_t i = 0; i < 2; i++) {
        struct response *response = response_new(1);
        response->method = methods[i];
        response->calibration = calloc(1, sizeof *response->calibration);
        *response->calibration = fit(methods[i], false, 0);
        struct model_layout layout = layout_with(response);
        for (double margin = -4; margin < 4; margin += 0.3) {
            double prediction, both[2], room;
            response_predict(objective_find("logistic"), &layout, &margin, &prediction);
            response_both(objective_find("logistic"), &layout, margin, both);
            assert_true(both[1] == prediction &&
                        prediction ==
                            response_probability(objective_find("logistic"), &layout, 0, margin));
            assert_near(both[0] + both[1], 1, 1e-15);
            assert_near(response_log_loss(&layout, &margin, 1, &room), -log(both[1]), 1e-13);
            assert_near(response_log_loss(&layout, &margin, 0, &room), -log(both[0]), 1e-13);
        }
        response_free(response);
    }
}

static struct response *made(enum calibration_method method) {
    struct response *response = response_new(1);
    response->method = method;
    response->calibration = calloc(1, sizeof *response->calibration);
    *response->calibration = fit(method, true, 0);
    response->threshold = calloc(1, sizeof(double));
    *response->threshold = 1 / 3.0;
    response->rule = strdup("f1");
    response->shift = calloc(1, sizeof(double));
    *response->shift = -4.6;
    return response;
}

static void what_is_written_is_read_again(void **state) {
    (void)state;
    for (int method = CALIBRATION_PLATT; method <= CALIBRATION_ISOTONIC; method++) {
        struct response *response = made((enum calibration_method)method), *read;
        json_t *all = json_object();
        response_describe(response, all);
        char *text = json_dumps(all, JSON_REAL_PRECISION(17));
        json_t *again = json_loads(text, 0, NULL);
        struct model_layout layout = layout_with(NULL);
        assert_int_equal(response_read(again, "model.json", &layout, &read), 0);
        struct model_layout one = layout_with(response), other = layout_with(read);
        for (double margin = -4; margin < 9; margin += 0.17)
            assert_true(response_probability(objective_find("logistic"), &one, 0, margin) ==
                        response_probability(objective_find("logistic"), &other, 0, margin));
        assert_true(*read->threshold == 1 / 3.0 && !strcmp(read->rule, "f1"));
        response_free(response);
        response_free(read);
        json_decref(all);
        json_decref(again);
        free(text);
    }
}

static void damage_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{\"prior_correction\": [1, 2]}",
        "{\"prior_correction\": [\"a\"]}",
        "{\"threshold\": {\"rule\": \"f1\"}}",
        "{\"threshold\": {\"rule\": \"f1\", \"probabilities\": [null]}}",
        "{\"calibration\": {\"method\": \"none\", \"outputs\": [null]}}",
        "{\"calibration\": {\"method\": \"platt\", \"outputs\": [{\"slope\": 1}]}}",
        "{\"calibration\": {\"method\": \"temperature\", \"temperature\": 2}}",
        "{\"calibration\": {\"method\": \"isotonic\", \"outputs\": [{\"margins\": [], "
        "\"probabilities\": []}]}}",
        "{\"calibration\": {\"method\": \"isotonic\", \"outputs\": [{\"margins\": [0, 0], "
        "\"probabilities\": [0.1, 0.2]}]}}",
        "{\"calibration\": {\"method\": \"isotonic\", \"outputs\": [{\"margins\": [0, 1], "
        "\"probabilities\": [0.3, 0.2]}]}}",
        "{\"calibration\": {\"method\": \"isotonic\", \"outputs\": [{\"margins\": [0], "
        "\"probabilities\": [1]}]}}",
    };
    struct model_layout layout = layout_with(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct response *read;
        json_t *all = json_loads(bad[i], 0, NULL);
        assert_non_null(all);
        assert_int_equal(response_read(all, "model.json", &layout, &read), ERROR_DATA);
        assert_null(read);
        json_decref(all);
    }
}

SUITE(response) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(platt_is_the_minimum_of_the_smoothed_log_loss),
        cmocka_unit_test(isotonic_pools_violators_and_ties),
        cmocka_unit_test(no_order_of_rows_changes_a_bit),
        cmocka_unit_test(thresholds_are_those_of_the_curve),
        cmocka_unit_test(what_no_threshold_reaches_is_told),
        cmocka_unit_test(ties_are_one_threshold),
        cmocka_unit_test(rules_are_read_with_and_without_blanks),
        cmocka_unit_test(curves_have_the_points_of_scikit_learn),
        cmocka_unit_test(curves_of_many_scores_have_few_points_and_every_tenth),
        cmocka_unit_test(more_scores_than_can_be_held_go_into_bins),
        cmocka_unit_test(the_calibration_error_is_the_mean_distance_in_tenths),
        cmocka_unit_test(class_weights_are_undone_in_probabilities_and_not_in_answers),
        cmocka_unit_test(both_probabilities_and_the_loss_agree_with_the_prediction),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
