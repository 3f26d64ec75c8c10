/* What losses share whose prediction is e^margin. */
#include <math.h>

#include "numeric/special.h"
#include "objective/parts.h"

bool log_link_positive(double label) {
    return label > 0 && label <= LOG_LINK_LABEL_MAX;
}

bool log_link_not_negative(double label) {
    return label >= 0 && label <= LOG_LINK_LABEL_MAX;
}

/* The derivative there is at most the largest label, and 1 at margin 0 if that is smaller. */
double log_link_bound(const struct loss_parameters *parameters, double label_max_abs) {
    (void)parameters;
    return label_max_abs > 1 ? label_max_abs : 1;
}

double log_link_start(const struct loss_parameters *parameters,
                      const struct label_summary *labels) {
    (void)parameters;
    double start = 0;
    if (labels->mean > 0)
        special_log(1, &start, &labels->mean);
    return isfinite(start) ? start : 0;
}

void log_link_predict(size_t outputs, double *margins) {
    (void)outputs;
    margins[0] = exp(margins[0]);
}
