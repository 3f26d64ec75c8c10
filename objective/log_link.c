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

double log_link_exp(double x) {
    double e;
    special_exp(1, &e, &x);
    return e < LOG_LINK_BOUND_MAX ? e : LOG_LINK_BOUND_MAX;
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
