/* Inside objective/ only: what processor and device compute for one row by the same text, and so to
 * the same bits: whether it is predicted correctly, whether it is sampled, and its loss. */
#ifndef DML_OBJECTIVE_LOSS_ROW_H
#define DML_OBJECTIVE_LOSS_ROW_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"
#include "numeric/scalar.h"
#include "objective/loss.h"

/* ---- whether a row is predicted correctly ---- */

/* How the rows of an objective are checked: see prediction_check_of(). The functions have no
 * branches, since no processor could predict them. */
enum prediction_check {
    CHECK_NONE,    /* it has no classes, and no row is correct */
    CHECK_SIGN,    /* one output, which tells two classes */
    CHECK_BEST,    /* the class of the largest margin */
    CHECK_ORDERED, /* outputs part classes */
    CHECK_LISTS,   /* the label is as many numbers as there are outputs */
};

/* The weights of correct rows are added up over this many rows of a batch, and then the sums. */
#define CHECK_PIECE 64

struct objective;
enum prediction_check prediction_check_of(const struct objective *objective, size_t outputs);

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

PORTABLE bool check_sign(double margin, double label) {
    return (margin > 0) == (label > 0);
}

/* The label's margin is above those before it, and none after it is above: best_output(). */
PORTABLE bool check_best(size_t outputs, const double *margins, double label) {
    size_t of_label = (size_t)label;
    double own = margins[of_label];
    bool beaten = false;
    for (size_t k = 0; k < outputs; k++)
        beaten |= (margins[k] > own) | ((k < of_label) & !(own > margins[k]));
    return !beaten;
}

PORTABLE bool check_lists(size_t outputs, const double *margins, const double *label) {
    bool differ = false;
    for (size_t k = 0; k < outputs; k++)
        differ |= (margins[k] > 0) != (label[k] > 0);
    return !differ;
}

/* Whether the margins of a row predict its label. `check` is of enum prediction_check. */
PORTABLE bool check_row(uint32_t check, size_t outputs, const double *margins,
                        const double *label) {
    return check == CHECK_SIGN      ? check_sign(margins[0], *label)
           : check == CHECK_BEST    ? check_best(outputs, margins, *label)
           : check == CHECK_ORDERED ? (double)outputs_below(outputs, margins) == *label
           : check == CHECK_LISTS   ? check_lists(outputs, margins, label)
                                    : false;
}

/* ---- which rows an evaluation of curvature samples ---- */

/* random_mix() of base/random.h, which devices cannot call. */
PORTABLE uint64_t sample_hash_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number that is even in [0, 1), and a function of these three alone. */
PORTABLE double sample_hash(uint64_t sample_seed, uint32_t chunk, uint32_t row) {
    uint64_t place = (uint64_t)chunk << 32 | row;
    uint64_t bits =
        sample_hash_mix(sample_hash_mix(sample_seed) + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(bits >> 11) * 0x1p-53;
}

/* ---- losses of one row, for kernels of a device; struct objective says what each computes ---- */

#define LOSS PORTABLE
#define NAME(function) function##_each
#define LOSS_PIECE 1
#define NUMBERS double
#define WORDS uint64_t
#define ALL(number) ((double)(number))
#define ABOVE scalar_above
#define CHOOSE scalar_choose
#define FUNCTION PORTABLE
#define CLONED PORTABLE
#include "objective/losses.def"
#undef LOSS
#undef NAME
#undef LOSS_PIECE
#undef NUMBERS
#undef WORDS
#undef ALL
#undef ABOVE
#undef CHOOSE
#undef FUNCTION
#undef CLONED

/* `losses` of the objective of that kind, for one row: `label` is one number, or `outputs` numbers
 * if the labels are lists; the `outputs` margins become the derivatives; `work` has room for as
 * many. */
PORTABLE void loss_row(uint32_t kind, const struct loss_parameters *parameters, size_t outputs,
                       const double *label, double *margins, double *loss, double *work) {
    switch (kind) {
#define OBJECTIVE(NAME, name)                                                                      \
    case OBJECTIVE_##NAME:                                                                         \
        name##_losses_each(parameters, 1, outputs, label, margins, loss, work);                    \
        break;
#include "objective/objectives.def"
    }
}

/* `second` for one row, after its loss_row(). */
PORTABLE void loss_second(uint32_t kind, const struct loss_parameters *parameters, size_t outputs,
                          const double *label, const double *derivatives, const double *work,
                          double *diagonal) {
    switch (kind) {
#define OBJECTIVE(NAME, name)                                                                      \
    case OBJECTIVE_##NAME:                                                                         \
        name##_second_each(parameters, 1, outputs, label, derivatives, work, diagonal);            \
        break;
#include "objective/objectives.def"
    }
}

/* `second_row`, of losses with several outputs. Of one output the row is the diagonal. */
PORTABLE void loss_second_row(uint32_t kind, size_t outputs, double label,
                              const double *derivatives, size_t k, double *row) {
    switch (kind) {
#define OBJECTIVE(NAME, name)                                                                      \
    case OBJECTIVE_##NAME:                                                                         \
        name##_second_row_each(outputs, label, derivatives, k, row);                               \
        break;
#include "objective/objectives.def"
    }
}

#endif
