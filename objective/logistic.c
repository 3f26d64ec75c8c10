/* log(1 + e^−m), m = ±margin: derivatives in [−1, 1]. */
#include <math.h>
#include <string.h>

#include "numeric/clones.h"
#include "numeric/special.h"
#include "objective/parts.h"

/* With m = ±margin and t = e^−|m|: the loss is log(1 + t) + max(0, −m), and its derivative by m is
 * −1/(1 + e^m), which is −t/(1 + t) for m ≥ 0, else −1/(1 + t). This keeps all digits, however
 * small the loss is. On entry `loss` holds log(1 + t). */
LANES_INLINE void finish(lanes *margin, lanes *loss, const lanes *label, const lanes *t) {
    const lanes one = (lanes){0} + 1.0;
    lanes sign = *label + *label - 1.0;
    lanes m = sign * *margin;
    const lanes zero = {0};
    word_lanes negative;
    lanes_above(&negative, &zero, &m);
    lanes zero_or_nan = m - m, minus = -m, above, numerator;
    lanes_choose(&above, &negative, &minus, &zero_or_nan);
    lanes_choose(&numerator, &negative, &one, t);
    *loss += above + zero_or_nan;
    *margin = -sign * (numerator / (1.0 + *t));
}

LANES_INLINE void finish_some(size_t count, const double *label, double *margins, double *loss,
                              const double *t) {
    size_t bytes = count * sizeof(double);
    lanes margin = {0}, row_loss = {0}, row_label = {0}, row_t = {0};
    memcpy(&margin, margins, bytes);
    memcpy(&row_loss, loss, bytes);
    memcpy(&row_label, label, bytes);
    memcpy(&row_t, t, bytes);
    finish(&margin, &row_loss, &row_label, &row_t);
    memcpy(margins, &margin, bytes);
    memcpy(loss, &row_loss, bytes);
}

VECTOR_CLONES
static void finish_rows(size_t rows, const double *label, double *margins, double *loss,
                        const double *t) {
    size_t i = 0;
    for (; i + LANES <= rows; i += LANES)
        finish_some(LANES, label + i, margins + i, loss + i, t + i);
    if (i < rows)
        finish_some(rows - i, label + i, margins + i, loss + i, t + i);
}

static void losses(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work) {
    (void)parameters;
    (void)outputs;
    for (size_t i = 0; i < rows; i++)
        work[i] = -fabs(margins[i]);
    special_exp(rows, work, work);
    special_log1p(rows, loss, work);
    finish_rows(rows, label, margins, loss, work);
}

static double loss_of_one(const struct loss_parameters *parameters, size_t outputs,
                          const double *margins, double label) {
    (void)parameters;
    (void)outputs;
    return logistic_loss(margins[0], label == 1);
}

const struct objective objective_logistic = {
    .name = "logistic",
    .labels = LABEL_BINARY,
    .convex = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .losses = losses,
    .second = logistics_second,
    .second_most = 0.25,
    .loss = loss_of_one,
    .predict = logistics_predict,
    .prediction = "probability",
    .liblinear = "L2R_LR",
};
