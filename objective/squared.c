#include "objective/parts.h"

static void first(size_t rows, size_t outputs, const double *label, double *margins, double *loss,
                  double *work) {
    (void)outputs;
    (void)work;
    for (size_t i = 0; i < rows; i++) {
        double residual = margins[i] - label[i];
        loss[i] = 0.5 * residual * residual;
        margins[i] = residual;
    }
}

const struct loss loss_squared = {.name = "squared", .bounded = false, .first = first};
