/* Scoring and predictions of the losses that are a logistic loss of each output. */
#include <math.h>

#include "objective/parts.h"

double logistic_loss(double margin, bool own) {
    double m = own ? -margin : margin;
    return log1p(exp(-fabs(m))) + (m > 0 ? m : 0);
}

double logistics_loss(enum logistics_side kind, size_t outputs, const double *margins,
                      double label) {
    struct logistics_side_range own = logistics_side_of(kind, label);
    double sum = 0;
    for (size_t k = 0; k < outputs; k++)
        sum += logistic_loss(margins[k], k >= own.first && k < own.end);
    return sum;
}

/* 1/(1 + e^−m) without overflow. */
static double probability(double margin) {
    double e = exp(-fabs(margin));
    return (margin >= 0 ? 1 : e) / (1 + e);
}

void logistics_predict(size_t outputs, double *margins) {
    for (size_t k = 0; k < outputs; k++)
        margins[k] = probability(margins[k]);
}
