#include "coordinator/run/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* How many parameters the fit has: with a penalty the effective ones. NaN where it is not known. */
static double count_parameters(const struct training *run,
                               const struct summary_covariance *covariance) {
    if (!covariance || !covariance->variance)
        return NAN;
    return run->job->l2.value > 0 ? covariance->trace : (double)summary_estimated(covariance);
}

int training_summarise(struct training *run, const struct summary_covariance *covariance,
                       const char *why) {
    struct model view;
    struct fit_statistics statistics;
    int code = model_writer_view(run->recorder.writer, &view);
    if (code)
        return code;
    double *parameters = memory_new(model_parameters(&run->layout), sizeof *parameters);
    model_spread(&view, &run->layout, parameters);
    code = summary_fit(run->set, &run->layout, parameters, count_parameters(run, covariance),
                       &statistics);
    free(parameters);
    if (code)
        return code;
    json_t *fit = fit_json(&statistics);
    json_t *summary = summary_json(fit, covariance, why);
    code = model_writer_summary(run->recorder.writer, summary);
    json_decref(fit);
    json_decref(summary);
    return code;
}
