/* Losses of one row, for kernels of a device: the same text as those over arrays, and the same
 * bits. struct objective says what each computes. */
#ifndef DML_OBJECTIVE_LOSS_ROW_H
#define DML_OBJECTIVE_LOSS_ROW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/portable.h"
#include "numeric/scalar.h"
#include "objective/judge.h"
#include "objective/loss.h"

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
