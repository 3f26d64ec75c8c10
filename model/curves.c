#include "model/curves.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "numeric/exact.h"

#define TENTHS 10

/* ---- reliability ---- */

struct reliability {
    struct {
        struct weight_sum examples, positives;
        struct exact probability; /* Σ weight·probability */
    } tenth[TENTHS];
};

struct reliability *reliability_new(void) {
    struct reliability *reliability = memory_new(1, sizeof *reliability);
    for (int k = 0; k < TENTHS; k++)
        exact_init(&reliability->tenth[k].probability);
    return reliability;
}

void reliability_free(struct reliability *reliability) {
    if (!reliability)
        return;
    for (int k = 0; k < TENTHS; k++) {
        weight_sum_release(&reliability->tenth[k].examples);
        weight_sum_release(&reliability->tenth[k].positives);
    }
    free(reliability);
}

void reliability_add(struct reliability *reliability, double probability, bool positive,
                     double weight) {
    int k = (int)fmin(probability * TENTHS, TENTHS - 1);
    weight_sum_add(&reliability->tenth[k].examples, weight);
    if (positive)
        weight_sum_add(&reliability->tenth[k].positives, weight);
    exact_add(&reliability->tenth[k].probability, weight * probability);
}

double reliability_error(const struct reliability *reliability) {
    double distance = 0, examples = 0;
    for (int k = 0; k < TENTHS; k++) {
        struct exact rest = reliability->tenth[k].probability;
        exact_add(&rest, -weight_sum_value(&reliability->tenth[k].positives));
        distance += fabs(exact_value(&rest));
        examples += weight_sum_value(&reliability->tenth[k].examples);
    }
    return examples > 0 ? distance / examples : NAN;
}

json_t *reliability_json(const struct reliability *reliability) {
    json_t *list = json_array();
    for (int k = 0; k < TENTHS; k++) {
        double examples = weight_sum_value(&reliability->tenth[k].examples);
        if (!(examples > 0))
            continue;
        double positives = weight_sum_value(&reliability->tenth[k].positives);
        json_array_append_new(
            list, json_pack("{s:f, s:f, s:f, s:f, s:f}", "from", (double)k / TENTHS, "to",
                            (k + 1.0) / TENTHS, "examples", examples, "probability",
                            exact_value(&reliability->tenth[k].probability) / examples, "frequency",
                            positives / examples));
    }
    return list;
}

/* ---- thresholds ---- */

struct curve {
    struct ranking_point all;
    struct ranking_point last, listed; /* the point before, and the last one in the lists */
    json_t *thresholds, *gains;
    json_t *threshold, *recall, *precision, *false_positive_rate, *share; /* of the points */
};

static double recall_of(const struct curve *curve, const struct ranking_point *point) {
    return point->positives / curve->all.positives;
}

static double share_of(const struct curve *curve, const struct ranking_point *point) {
    return point->predicted / curve->all.predicted;
}

static double negatives_of(const struct ranking_point *point) {
    return point->predicted - point->positives;
}

/* If the point is the first with so many tenths of the positives. */
static void add_threshold(struct curve *curve, const struct ranking_point *point) {
    double before = recall_of(curve, &curve->last), recall = recall_of(curve, point);
    bool reaches = false;
    for (int k = 1; k <= TENTHS; k++)
        reaches |= before < (double)k / TENTHS && recall >= (double)k / TENTHS;
    if (!reaches)
        return;
    json_array_append_new(
        curve->thresholds,
        json_pack("{s:f, s:f, s:f, s:f, s:f}", "threshold", point->threshold, "precision",
                  point->positives / point->predicted, "recall", recall, "f1",
                  2 * point->positives / (curve->all.positives + point->predicted), "share",
                  share_of(curve, point)));
}

/* Lists recall and lift at the tenths of all examples that end between the last point and this one.
 */
static void add_tenths(struct curve *curve, const struct ranking_point *point) {
    double from = share_of(curve, &curve->last), to = share_of(curve, point);
    for (int k = 1; k <= TENTHS; k++) {
        double share = (double)k / TENTHS;
        if (!(from < share && share <= to))
            continue;
        double before = recall_of(curve, &curve->last), part = (share - from) / (to - from);
        double recall = before + (recall_of(curve, point) - before) * part;
        json_array_append_new(curve->gains, json_pack("{s:f, s:f, s:f}", "share", share, "recall",
                                                      recall, "lift", recall / share));
    }
}

/* Whether a point is far enough from the last one that was listed: a hundredth of either class. */
static bool is_far(const struct curve *curve, const struct ranking_point *point) {
    return point->positives - curve->listed.positives >= curve->all.positives / 100 ||
           negatives_of(point) - negatives_of(&curve->listed) >= negatives_of(&curve->all) / 100;
}

static void list_point(struct curve *curve, const struct ranking_point *point) {
    curve->listed = *point;
    json_array_append_new(curve->threshold, json_real(point->threshold));
    json_array_append_new(curve->recall, json_real(recall_of(curve, point)));
    json_array_append_new(curve->precision, json_real(point->positives / point->predicted));
    json_array_append_new(curve->false_positive_rate,
                          json_real(negatives_of(point) / negatives_of(&curve->all)));
    json_array_append_new(curve->share, json_real(share_of(curve, point)));
}

static void walk_curve(struct curve *curve, const struct ranked_score *scores, uint64_t count) {
    struct ranking_walk walk = {.scores = scores, .count = count};
    struct ranking_point point;
    while (ranking_walk_next(&walk, &point)) {
        add_threshold(curve, &point);
        add_tenths(curve, &point);
        if (is_far(curve, &point) || walk.next == count)
            list_point(curve, &point);
        curve->last = point;
    }
    ranking_walk_release(&walk);
}

json_t *curves_json(struct ranked_score *scores, uint64_t count) {
    struct curve curve = {.thresholds = json_array(),
                          .gains = json_array(),
                          .threshold = json_array(),
                          .recall = json_array(),
                          .precision = json_array(),
                          .false_positive_rate = json_array(),
                          .share = json_array()};
    ranking_sort(scores, count);
    curve.all = ranking_all(scores, count);
    walk_curve(&curve, scores, count);
    return json_pack("{s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o}}", "thresholds", curve.thresholds,
                     "gains", curve.gains, "points", "threshold", curve.threshold, "recall",
                     curve.recall, "precision", curve.precision, "false_positive_rate",
                     curve.false_positive_rate, "share", curve.share);
}
