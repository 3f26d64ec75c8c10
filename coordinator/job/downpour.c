#include "coordinator/job/downpour.h"

#include "base/error.h"

/* Values behind the last epoch would never be used. */
static int check_length(const struct job *job, const char *key, uint32_t count) {
    uint32_t epochs = job->downpour.epochs;
    if (count <= epochs)
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: has %u values for %u epoch%s; allowed: at most as many as "
                     "`downpour.epochs`, so set that to %u or take values away",
                     job->file, key, count, epochs, epochs == 1 ? "" : "s", count);
}

int job_check_downpour(const struct job *job) {
    if (!job_pours(job))
        return 0;
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_KRONECKER)
        return error_set(ERROR_CONFIG,
                         "%s: key `precondition`: `block` and `kronecker` do not go together with "
                         "training on minibatches, whose own scales precondition L-BFGS; allowed "
                         "here: auto, none, diagonal",
                         job->file);
    int code = check_length(job, "downpour.schedule", job->downpour.schedule.count);
    return code ? code : check_length(job, "downpour.rate", job->downpour.rate.count);
}
