#include "coordinator/job/tiling.h"

#include <assert.h>

#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"

/* A replica holds the point and its sums of a strip: 16 bytes for each column and output, and 8 for
 * each thread. Narrower sets fit as they are, and need no second look at a row. */
#define STRIP_COLUMNS (1u << 21)
#define WHOLE_COLUMNS (1u << 22)

/* With l1 or bounds whole rows allow steps over working sets, which take a fifth of the passes of
 * a linear model. So there a replica holds all as long as that is a few gigabytes. */
#define WHOLE_COLUMNS_OF_WORKING_SETS (1u << 26)

/* So much as one weight for each of STRIP_COLUMNS: a network has one for each unit of its first
 * layer. Narrow strips have many tiles. */
#define STRIP_COLUMNS_LEAST (1u << 12)

static bool is_network(const struct job *job) {
    return job_family(job)->family == &family_network;
}

const char *tiling_cannot(const struct job *job) {
    /* Margins must be sums over columns: those of the model, whose losses shards must know, or of a
     * network's first layer. */
    if (job_family(job)->family != &family_linear && !is_network(job))
        return "only linear models and networks are trained in tiles";
    if (objective_of(job->objective)->labels == LABEL_LISTS)
        return "a row has several labels";
    /* Nor may what is trained differ from what products of rows and points make alone. */
    if (job_has_penalties(job))
        return "factors of `penalty` need whole rows; leave them out for tiles";
    if (job_has_minibatches(job))
        return "minibatches need whole rows; set optimizer = lbfgs and start = zero for tiles";
    if (job->standardise)
        return "standardise shifts columns; set standardise = false for tiles";
    bool preconditioner =
        job->precondition != PRECONDITION_AUTO && job->precondition != PRECONDITION_OFF;
    return preconditioner ? "tiles have no preconditioner; set precondition = auto for tiles"
                          : NULL;
}

static uint32_t strip_columns(const struct job *job) {
    uint32_t units = is_network(job) ? (uint32_t)job->layers.value[0] : 1;
    assert(units > 0);
    if (job->strip_columns != STRIP_COLUMNS_AUTO)
        return job->strip_columns;
    uint32_t columns = STRIP_COLUMNS;
    while (columns > STRIP_COLUMNS_LEAST && (uint64_t)columns * units > STRIP_COLUMNS)
        columns /= 2;
    assert(columns >= STRIP_COLUMNS_LEAST && columns <= STRIP_COLUMNS);
    return columns;
}

static uint32_t whole_columns(const struct job *job) {
    if (job->strip_columns != STRIP_COLUMNS_AUTO)
        return job->strip_columns;
    bool working_sets = !is_network(job) && (job_has_orthants(job) || job->l1.count > 1);
    return working_sets ? WHOLE_COLUMNS_OF_WORKING_SETS : WHOLE_COLUMNS;
}

void tiling_of(const struct job *job, struct set_options *options) {
    options->strip_columns = options->whole_columns = 0;
    if (tiling_cannot(job))
        return;
    options->strip_columns = strip_columns(job);
    options->whole_columns = whole_columns(job);
    assert(options->strip_columns <= options->whole_columns);
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
    return data->dense ? "its rows are dense" : "it was stored with whole rows";
}
