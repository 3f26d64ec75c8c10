/* Errors of estimates where the rows of a cluster are not independent. */
#ifndef DML_MODEL_CLUSTERS_H
#define DML_MODEL_CLUSTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "model/model.h"

/* Clusters times parameters, at most: the sums of scores take 8 bytes each. */
#define CLUSTER_SUMS_MAX (UINT64_C(1) << 26)

struct cluster_errors {
    double *variance; /* by the run's parameters, as struct summary_covariance has it; NaN of those
                         that are aliased; owned */
    uint64_t clusters, single_rows;
};

/* Whether clusters_find() can do its work: ERROR_CONFIG if there is one cluster only, or too many
 * with so many parameters. `file` is that of the job. ERROR_DATA. */
int clusters_check(struct set *set, const char *file, uint64_t parameters);

/* Where the errors are: by the run's elements all three. */
struct cluster_point {
    const double *parameters; /* as summary_fit() has them */
    const double *variance;   /* NaN where a parameter is aliased */
    const double *ridge;      /* Λ of model/summary.h, in its units; NULL: no penalty */
};

/* Sums up scores by cluster, and second derivatives, over the training rows of a set with clusters,
 * chunk by chunk in one thread, so that the bits depend on the set and the parameters alone. For
 * models whose loss is a likelihood, after clusters_check(). `layout` as summary_fit()
 * has it. ERROR_DATA. */
int clusters_find(struct set *set, const struct model_layout *layout,
                  const struct cluster_point *point, struct cluster_errors *errors);

#endif
