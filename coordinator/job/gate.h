/* The gate: conditions that a new model must fulfil before it is published. They compare figures of
 * the new model and of the live model on the same examples.
 *
 *     FIGURE OP LIMIT     loss <= 1.01 * live      accuracy >= live - 0.005      auc > 0.8
 *
 * FIGURE is one of score_figure_table; OP is <=, <, >= or >; LIMIT is a number, or
 * [FACTOR *] live [+ NUMBER | - NUMBER]. Nothing here reads a file. */
#ifndef DML_COORDINATOR_JOB_GATE_H
#define DML_COORDINATOR_JOB_GATE_H

#include <jansson.h>
#include <stdbool.h>

#include "model/score.h"

#define GATE_ALLOWED                                                                               \
    "conditions like \"loss <= 1.01 * live\", \"accuracy >= live - 0.005\" or \"auc >= 0.8\": "    \
    "a figure of dml-figures(7), such as loss, rmse or brier with <= or <, or accuracy, auc, f1 "  \
    "or r2 with >= or >; then a number (at most 1 for a share) or [NUMBER *] live [+ or - NUMBER]"

enum gate_comparison { GATE_AT_MOST, GATE_BELOW, GATE_AT_LEAST, GATE_ABOVE };

/* The limit is factor · live + offset; without `relative`, offset alone. */
struct gate_condition {
    const struct score_figure *figure;
    enum gate_comparison comparison;
    bool relative;
    double factor, offset;
};

/* False if the text is no condition. */
bool gate_parse(const char *text, struct gate_condition *condition);

/* Whether the text is a condition that makes sense: a figure that is better if it is lower has an
 * upper bound; one that is better if it is higher, a lower one that can be reached. For the table
 * of keys. */
bool gate_is_condition(const char *text);

/* "; did you mean `accuracy`?" of a text that is no condition, if its figure or `live` seems to be
 * misspelt; else "". Valid until the next call. */
const char *gate_suggestion(const char *text);

/* Whether a model of that objective has the figure that the condition is about. */
bool gate_suits(const struct gate_condition *condition, enum objective_kind objective);

/* The outcome of one condition. `unpublished`: it holds because there is no live model yet. */
struct gate_outcome {
    const char *text; /* as the job file has it */
    struct gate_condition condition;
    double new, live; /* figures; NaN: there is none */
    bool holds, unpublished;
};

/* Whether the condition `text` holds for these figures. `live` is NULL if there is no live model:
 * then a condition relative to it holds. No condition holds for a figure that is not finite. */
struct gate_outcome gate_check(const char *text, const struct score_figures *new,
                               const struct score_figures *live);

/* "loss <= 1.01 * live does not hold: 0.71 is not at most 0.4141 (live 0.41)". Free it. */
char *gate_explain(const struct gate_outcome *outcome);

/* {condition, new, live, holds}; a figure that is not known is null. A new reference. */
json_t *gate_outcome_json(const struct gate_outcome *outcome);

#endif
