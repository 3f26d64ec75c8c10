/* The kinds of losses and their parameters, in a header that nvcc can include as well. */
#ifndef DML_OBJECTIVE_LOSS_H
#define DML_OBJECTIVE_LOSS_H

#include <stddef.h>

#include "base/limits.h"
#include "device/kernel.h"

enum objective_kind {
#define OBJECTIVE(NAME, name) OBJECTIVE_##NAME,
#include "objective/objectives.def"
    OBJECTIVES, /* how many losses dml has */

    /* Plug-ins, by what they predict: see enum dml_prediction. The two numbers before stand
     * for networks and plug-ins in coordinator/job/job.h. */
    OBJECTIVE_PLUGIN_VALUE = OBJECTIVES + 2,
    OBJECTIVE_PLUGIN_SCORE,
    OBJECTIVE_PLUGIN_MARGIN,
    OBJECTIVE_PLUGIN_SCORES, /* of several classes */
    OBJECTIVE_PLUGIN_MARGINS,
    OBJECTIVE_KINDS
};

/* The values of a loss's parameters, in the order of objective/objectives.def; those that the loss
 * does not have are 0. */
struct loss_parameters {
    double value[LOSS_PARAMETERS_MAX];
};

/* Which of them, as objective/objectives.def numbers them. */
enum { HUBER_DELTA = 0, TWEEDIE_POWER = 0, QUANTILE_TAU = 0, QUANTILE_EPSILON = 1 };

/* Those of `losses`, `second`, `second_sums` and `second_row` of struct objective, which says what
 * they mean. */
#define LOSSES_ARGUMENTS                                                                           \
    const struct loss_parameters *parameters, size_t rows, size_t outputs, const double *label,    \
        double *margins, double *loss, double *work
#define SECOND_ARGUMENTS                                                                           \
    const struct loss_parameters *parameters, size_t rows, size_t outputs, const double *label,    \
        const double *derivatives, const double *work, double *diagonal
#define SUMS_ARGUMENTS                                                                             \
    size_t rows, size_t outputs, const double *label, const double *derivatives, double *sums
#define SECOND_ROW_ARGUMENTS                                                                       \
    size_t outputs, double label, const double *derivatives, size_t k, double *row

/* What losses share that are a logistic loss of each output, log(1 + e^−m) for outputs that the
 * label is on the side of, log(1 + e^m) for others. */
enum logistics_side {
    LOGISTICS_CLASS,  /* the one of its class */
    LOGISTICS_BELOW,  /* those below its class */
    LOGISTICS_LISTED, /* all with a 1 in the label, which is rows × outputs */
};

/* The outputs that a row's label is on the side of, if these follow each other. */
struct logistics_side_range {
    size_t first, end;
};

PORTABLE struct logistics_side_range logistics_side_of(enum logistics_side kind, double label) {
    struct logistics_side_range range;
    size_t own = (size_t)label;
    range.first = kind == LOGISTICS_BELOW ? 0 : own;
    range.end = kind == LOGISTICS_BELOW ? own : own + 1;
    return range;
}

#endif
