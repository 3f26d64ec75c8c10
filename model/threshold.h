/* From which probability on a class is predicted: a number, or what is found on held-out rows. */
#ifndef DML_MODEL_THRESHOLD_H
#define DML_MODEL_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#define THRESHOLD_ALLOWED                                                                          \
    "auto, a probability from 0 to 1, f1, \"recall >= R\" or \"precision >= P\" (R, P: above 0, "  \
    "at most 1), or cost"

enum threshold_kind {
    THRESHOLD_AUTO,      /* a margin above 0 */
    THRESHOLD_VALUE,     /* `value` */
    THRESHOLD_F1,        /* the largest F1 */
    THRESHOLD_RECALL,    /* the highest with a recall of at least `value` */
    THRESHOLD_PRECISION, /* the lowest with a precision of at least `value` */
    THRESHOLD_COST,      /* the least cost of all wrong answers */
};

struct threshold_rule {
    enum threshold_kind kind;
    double value;
    double false_positive, false_negative; /* what these cost; not part of the text */
};

/* False if the text is no rule. */
bool threshold_parse(const char *text, struct threshold_rule *rule);
bool threshold_is_rule(const char *text);

/* Whether the rule looks at rows. */
static inline bool threshold_is_found(const struct threshold_rule *rule) {
    return rule->kind > THRESHOLD_VALUE;
}

struct ranked_score;

/* The threshold by such a rule: a score s of the examples, those with at least s being predicted.
 * Of thresholds that are equally good the highest. *reached: false if no threshold has that
 * precision; then that with the largest is taken. Some example must be positive. Sorts the scores;
 * their order does not matter. */
double threshold_find(const struct threshold_rule *rule, struct ranked_score *scores,
                      uint64_t count, bool *reached);

#endif
