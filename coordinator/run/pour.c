#include "coordinator/run/pour.h"

#include "base/log.h"

static bool is_left_out(const struct training *run) {
    return run->job->optimizer != JOB_DOWNPOUR && run->start_model && *run->start_model;
}

/* Larger ones than there are rows are no error: tomorrow there may be more. */
static void warn_of_size(const struct job *job, uint64_t rows) {
    uint64_t first = (uint64_t)job->downpour.batch * job->downpour.schedule.value[0];
    if (first >= rows)
        log_warning("there are %llu rows, so an epoch is one minibatch of them all: set "
                    "downpour.batch (%u) lower for more steps",
                    (unsigned long long)rows, job->downpour.batch);
}

struct downpour_settings pour_settings(const struct training *run) {
    const struct job *job = run->job;
    if (!job_pours(job))
        return (struct downpour_settings){0};
    if (is_left_out(run)) {
        log_info("starts from a model: there is no Downpour before L-BFGS");
        return (struct downpour_settings){0};
    }
    warn_of_size(job, set_info(run->set)->rows);
    return (struct downpour_settings){.epochs = job->downpour.epochs,
                                      .batch = job->downpour.batch,
                                      .seed = job->downpour.seed,
                                      .rates = job->downpour.rate.value,
                                      .rate_count = job->downpour.rate.count,
                                      .multiples = job->downpour.schedule.value,
                                      .multiple_count = job->downpour.schedule.count,
                                      .alone = job->optimizer == JOB_DOWNPOUR,
                                      .scales = job_is_network(job) || job_is_plugin(job),
                                      .measures = set_info(run->set)->holdout_weight_sum > 0};
}
