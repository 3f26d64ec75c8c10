/* Which rows are predicted correctly: without branches, since no processor foresees them. Processor
 * and device judge by the same text. */
#ifndef DML_OBJECTIVE_JUDGE_H
#define DML_OBJECTIVE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/portable.h"

/* How the rows of an objective are judged: see judge_of(). */
enum judge {
    JUDGE_NONE,    /* it has no classes, and no row is correct */
    JUDGE_SIGN,    /* one output, which tells two classes */
    JUDGE_BEST,    /* the class of the largest margin */
    JUDGE_ORDERED, /* outputs part classes */
    JUDGE_LISTS,   /* the label is as many numbers as there are outputs */
};

/* The weights of so many rows of a batch that are correct are added up, and then their sums. */
#define JUDGE_PIECE 64

struct objective;
enum judge judge_of(const struct objective *objective, size_t outputs);

/* The index of the largest margin, the first one of equals. */
PORTABLE size_t best_output(size_t outputs, const double *margins) {
    size_t best = 0;
    for (size_t k = 1; k < outputs; k++)
        if (margins[k] > margins[best])
            best = k;
    return best;
}

/* How many outputs come before the first whose margin is not above 0. */
PORTABLE size_t outputs_below(size_t outputs, const double *margins) {
    size_t below = 0;
    while (below < outputs && margins[below] > 0)
        below++;
    return below;
}

PORTABLE bool judge_sign(double margin, double label) {
    return (margin > 0) == (label > 0);
}

/* The label's margin is above those before it, and none after it is above: best_output(). */
PORTABLE bool judge_best(size_t outputs, const double *margins, double label) {
    size_t of_label = (size_t)label;
    double own = margins[of_label];
    bool beaten = false;
    for (size_t k = 0; k < outputs; k++)
        beaten |= (margins[k] > own) | ((k < of_label) & !(own > margins[k]));
    return !beaten;
}

PORTABLE bool judge_lists(size_t outputs, const double *margins, const double *label) {
    bool differ = false;
    for (size_t k = 0; k < outputs; k++)
        differ |= (margins[k] > 0) != (label[k] > 0);
    return !differ;
}

/* Whether the margins of a row predict its label. `judge` is of enum judge. */
PORTABLE bool judge_row(uint32_t judge, size_t outputs, const double *margins,
                        const double *label) {
    return judge == JUDGE_SIGN      ? judge_sign(margins[0], *label)
           : judge == JUDGE_BEST    ? judge_best(outputs, margins, *label)
           : judge == JUDGE_ORDERED ? (double)outputs_below(outputs, margins) == *label
           : judge == JUDGE_LISTS   ? judge_lists(outputs, margins, label)
                                    : false;
}

#endif
