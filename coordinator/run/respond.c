/* What is made of a model's margins: it follows from the job, from the weights of classes in the
 * set, and from the holdout. */
#include "coordinator/run/training.h"

#include <assert.h>

#include "model/ranking.h"
#include "model/response.h"

/* The rows of a fold only evaluate a model that was trained without them: nothing is fitted to
 * them. */
int training_find_response(struct training *run) {
    const struct set_info *data = set_info(run->set);
    const struct objective *objective = objective_of(run->shape.kind);
    struct response_wanted wanted = job_response(run->session->job);
    struct response *response = response_new(run->layout.outputs);
    struct ranking *margins = NULL;
    int code = 0;
    assert(!run->response);
    if (data->fold && threshold_is_found(&wanted.threshold))
        wanted.threshold.kind = THRESHOLD_AUTO;
    if (data->fold)
        wanted.calibration = CALIBRATION_NONE;
    if (data->class_weight && run->session->job->prior_correction && response_has_prior(objective))
        response_set_prior(response, objective, data->class_weight, data->classes);
    if (response_is_found(&wanted)) {
        struct model model;
        code = model_writer_view(run->recorder.writer, &model);
        if (!code)
            code = holdout_margins(run->data->holdout, &model, &margins);
    }
    if (!code)
        response_fit(&wanted, &run->layout, margins, response);
    ranking_free(margins);
    if (code || response_is_plain(response)) {
        response_free(response);
        return code;
    }
    run->response = response;
    run->layout.response = response;
    return 0;
}
