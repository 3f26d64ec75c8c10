#include "coordinator/job/tiling.h"

#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"

/* A replica holds the point and its sums of a strip: 16 bytes for each column and output, and 8 for
 * each thread. Narrower sets fit as they are, and need no second look at a row. */
#define STRIP_COLUMNS (1u << 21)
#define WHOLE_COLUMNS (1u << 22)

/* Margins must be sums over columns, and shards must know the losses of margins. */
static const char *objective_cannot(const struct job *job) {
    const struct objective *objective = objective_of(job->objective);
    if (job_family(job)->family != &family_linear)
        return "only linear models are trained in tiles";
    if (!objective->second || !objective->convex)
        return "the loss has no second derivatives";
    return objective->labels == LABEL_LISTS ? "a row has several labels" : NULL;
}

/* Nor may what is trained differ from what the rows and a direction make alone. */
static const char *training_cannot(const struct job *job) {
    if (job->l1.value > 0 || job->l1.count > 1)
        return "with l1 steps are over working sets, which take whole rows";
    if (job_has_penalties(job) || job_has_bounds(job))
        return "rules of columns are for whole rows";
    if (job_has_minibatches(job))
        return "minibatches take whole rows";
    if (job->early_stopping)
        return "early stopping looks at whole rows";
    if (job->standardise)
        return "standardise shifts columns";
    if (job->precondition != PRECONDITION_AUTO && job->precondition != PRECONDITION_OFF)
        return "`precondition` asks for a preconditioner, which tiles do not have";
    return job->directions == 0 ? "`directions` is 0, and tiles need some" : NULL;
}

const char *tiling_cannot(const struct job *job) {
    const char *why = objective_cannot(job);
    return why ? why : training_cannot(job);
}

static uint32_t whole_columns(const struct job *job) {
    return job->strip_columns == STRIP_COLUMNS_AUTO ? WHOLE_COLUMNS : job->strip_columns;
}

void tiling_of(const struct job *job, struct set_options *options) {
    bool automatic = job->strip_columns == STRIP_COLUMNS_AUTO;
    options->strip_columns = options->whole_columns = 0;
    if (tiling_cannot(job))
        return;
    options->strip_columns = automatic ? STRIP_COLUMNS : job->strip_columns;
    options->whole_columns = whole_columns(job);
}

uint32_t tiling_columns(const struct job *job, const struct set_info *data) {
    struct set_options options = {0};
    tiling_of(job, &options);
    return set_is_cut(&options, data->dense, data->features) ? options.strip_columns : 0;
}

const char *tiling_refused(const struct job *job, const struct set_info *data) {
    if (data->strip_columns || !job->strip_columns || data->features <= whole_columns(job))
        return NULL;
    const char *why = tiling_cannot(job);
    if (why)
        return why;
    return data->dense ? "its rows are dense" : "it keeps rows of the holdout";
}
