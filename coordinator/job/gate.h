/* The gate: conditions that a new model must fulfil before it is published, on figures of the new
 * and of the live model over the same examples.
 *
 *     FIGURE OP LIMIT     loss <= 1.01 * live      accuracy >= live - 0.005      auc > 0.8
 *
 * FIGURE is loss, accuracy, auc or rmse; OP is <=, <, >= or >; LIMIT is a number, or
 * [FACTOR *] live [+ NUMBER | - NUMBER]. Nothing here reads a file. */
#ifndef DML_COORDINATOR_JOB_GATE_H
#define DML_COORDINATOR_JOB_GATE_H

#include <jansson.h>
#include <stdbool.h>

#include "model/score.h"
#include "objective/objective.h"

#define GATE_ALLOWED                                                                               \
    "conditions like \"loss <= 1.01 * live\", \"accuracy >= live - 0.005\" or \"auc >= 0.8\": "    \
    "loss or rmse with <= or <, accuracy or auc (from 0 to 1) with >= or >; and a number, or "     \
    "live, "                                                                                       \
    "times and plus a number"

enum gate_figure { GATE_LOSS, GATE_ACCURACY, GATE_AUC, GATE_RMSE };
enum gate_comparison { GATE_AT_MOST, GATE_BELOW, GATE_AT_LEAST, GATE_ABOVE };

/* The limit is factor · live + offset; without `relative`, offset alone. */
struct gate_condition {
    enum gate_figure figure;
    enum gate_comparison comparison;
    bool relative;
    double factor, offset;
};

/* False if the text is no condition. */
bool gate_parse(const char *text, struct gate_condition *condition);

/* Whether it is one that can be meant, for the table of keys: errors are bounded from above,
 * accuracy and AUC from below by at most 1. */
bool gate_is_condition(const char *text);

/* Whether a model of that objective has the figure that the condition is about. */
bool gate_suits(const struct gate_condition *condition, enum objective_kind objective);
char *gate_figures(enum objective_kind objective); /* those that it has: "loss, rmse"; free it */

/* What became of one condition. `unpublished`: it holds because there is no live model yet. */
struct gate_outcome {
    const char *text; /* as the job file has it */
    struct gate_condition condition;
    double new, live; /* figures; NaN: there is none */
    bool holds, unpublished;
};

/* Whether the condition holds for these figures; `live` is NULL if there is no live model: then a
 * relative condition holds. A figure that is not finite fulfils nothing. `text` is a condition. */
struct gate_outcome gate_judge(const char *text, const struct score_figures *new,
                               const struct score_figures *live);

/* "loss <= 1.01 * live does not hold: 0.71 is not at most 0.4141 (live 0.41)". Free it. */
char *gate_explain(const struct gate_outcome *outcome);

/* {condition, new, live, holds}; null for a figure that is not there. A new reference. */
json_t *gate_outcome_json(const struct gate_outcome *outcome);

#endif
