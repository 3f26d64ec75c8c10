#include "model/threshold.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/text/number.h"
#include "model/ranking.h"

/* ---- the text of a rule ---- */

bool threshold_parse(const char *text, struct threshold_rule *rule) {
    static const struct {
        const char *word;
        enum threshold_kind kind;
    } words[] = {{"auto", THRESHOLD_AUTO}, {"f1", THRESHOLD_F1}, {"cost", THRESHOLD_COST}};
    *rule = (struct threshold_rule){.false_positive = 1, .false_negative = 1};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i].word) == 0) {
            rule->kind = words[i].kind;
            return true;
        }
    if (!number_of_text(text, &rule->value)) {
        /* "recall >= 0.9": blanks may stand anywhere between the parts. */
        char figure[16];
        int length = 0;
        if (sscanf(text, " %15[a-z] >=%n", figure, &length) != 1 || !length)
            return false;
        rule->kind = strcmp(figure, "recall") == 0 ? THRESHOLD_RECALL : THRESHOLD_PRECISION;
        if (rule->kind == THRESHOLD_PRECISION && strcmp(figure, "precision") != 0)
            return false;
        text += length;
        return number_of_text(text + strspn(text, " "), &rule->value) && rule->value > 0 &&
               rule->value <= 1;
    }
    rule->kind = THRESHOLD_VALUE;
    return rule->value >= 0 && rule->value <= 1;
}

bool threshold_is_rule(const char *text) {
    struct threshold_rule rule;
    return threshold_parse(text, &rule);
}

/* ---- finding ---- */

/* How good a threshold is: of two the one with the larger number, and none with −infinity. */
static double goodness(const struct threshold_rule *rule, const struct ranking_point *point,
                       const struct ranking_point *all) {
    double positives = all->positives;
    double precision = point->positives / point->predicted;
    switch (rule->kind) {
    case THRESHOLD_F1:
        return 2 * point->positives / (positives + point->predicted);
    case THRESHOLD_RECALL: /* the first that is enough is the best: precision is not asked for */
        return point->positives / positives >= rule->value ? 0 : -INFINITY;
    case THRESHOLD_PRECISION: /* the last that is enough */
        return precision >= rule->value ? 1 + point->predicted / all->predicted : precision;
    case THRESHOLD_COST:
        return -(rule->false_positive * (point->predicted - point->positives) +
                 rule->false_negative * (positives - point->positives));
    case THRESHOLD_AUTO:
    case THRESHOLD_VALUE:
        break;
    }
    assert(false);
    return -INFINITY;
}

double threshold_find(const struct threshold_rule *rule, struct ranked_score *scores,
                      uint64_t count, bool *reached) {
    assert(count);
    ranking_sort(scores, count);
    struct ranking_point point;
    struct ranking_walk walk = {.scores = scores, .count = count};
    const struct ranking_point all = ranking_all(scores, count);
    double best = -INFINITY, found = NAN;
    if (rule->kind == THRESHOLD_COST) { /* to predict none may cost least */
        best = -rule->false_negative * all.positives;
        found = nextafter(scores[0].score, INFINITY);
    }
    while (ranking_walk_next(&walk, &point)) {
        double here = goodness(rule, &point, &all);
        if (here > best) {
            best = here;
            found = point.threshold;
        }
    }
    ranking_walk_release(&walk);
    *reached = rule->kind != THRESHOLD_PRECISION || best > 1;
    return found;
}
