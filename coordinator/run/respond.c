/* What is made of a model's margins: it follows from the job, from the weights of classes in the
 * set, and from the holdout. */
#include "coordinator/run/training.h"

#include "model/ranking.h"
#include "model/response.h"

/* The rows of a fold judge what was trained without them: nothing is found on them. */
static struct response_wanted wanted_of(const struct training *run) {
    struct response_wanted wanted = job_response(run->session->job);
    bool fold = set_info(run->set)->fold > 0;
    if (fold && threshold_is_found(&wanted.threshold))
        wanted.threshold.kind = THRESHOLD_AUTO;
    if (fold)
        wanted.calibration = CALIBRATION_NONE;
    return wanted;
}

static int fit(const struct training *run, const struct response_wanted *wanted,
               struct response *response) {
    struct model model;
    struct ranking *margins = NULL;
    int code = response_is_found(wanted) ? model_writer_view(run->recorder.writer, &model) : 0;
    if (!code && response_is_found(wanted))
        code = holdout_margins(run->data->holdout, &model, &margins);
    if (!code)
        response_fit(wanted, &run->layout, margins, response);
    ranking_free(margins);
    return code;
}

int training_find_response(struct training *run) {
    const struct set_info *data = set_info(run->set);
    const struct objective *objective = objective_of(run->shape.kind);
    struct response_wanted wanted = wanted_of(run);
    struct response *response = response_new(run->layout.outputs);
    if (data->class_weight && run->session->job->prior_correction && response_has_prior(objective))
        response_set_prior(response, objective, data->class_weight, data->classes);
    int code = fit(run, &wanted, response);
    if (code || response_is_plain(response)) {
        response_free(response);
        return code;
    }
    run->response = response;
    run->layout.response = response;
    return 0;
}
