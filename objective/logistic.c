#include <math.h>
#include <stdint.h>
#include <string.h>

#include "numeric/special.h"
#include "objective/parts.h"

static double sign_of(double label) {
    return label > 0 ? 1.0 : -1.0;
}

/* With m = ±margin and t = e^−|m|: the loss is log(1 + t) + max(0, −m), and its derivative by m is
 * −1/(1 + e^m), which is −t/(1 + t) for m ≥ 0, else −1/(1 + t). No digits are lost, however small
 * the loss. */
static void first(size_t rows, size_t outputs, const double *label, double *margins, double *loss,
                  double *work) {
    (void)outputs;
    for (size_t i = 0; i < rows; i++)
        work[i] = -fabs(margins[i]);
    special_exp(rows, work, work);
    special_log1p(rows, loss, work);
    for (size_t i = 0; i < rows; i++) {
        double sign = sign_of(label[i]);
        double m = sign * margins[i];
        double not_finite = m - m; /* NaN then, else 0 */
        double numerator = m < 0 ? 1.0 : work[i];
        loss[i] += (m < 0 ? -m : 0.0) + not_finite;
        margins[i] = -sign * (numerator / (1.0 + work[i]));
    }
}

const struct loss loss_logistic = {
    .name = "logistic", .classification = true, .bounded = true, .first = first};
