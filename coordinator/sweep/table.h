/* The table of a sweep: for each value of the path what its model is worth. */
#ifndef DML_COORDINATOR_SWEEP_TABLE_H
#define DML_COORDINATOR_SWEEP_TABLE_H

#include "coordinator/sweep/record.h"

/* The result of the whole sweep, all of whose members are done: that of the winner, with "sweep"
 * and "path" added. A new reference. */
json_t *sweep_result(int64_t sweep, const struct sweep_shape *shape, const struct sweep_runs *runs);

#endif
