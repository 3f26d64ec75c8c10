/* Which jobs are trained in tiles (doc/PROTOCOL.md): what the key `strip_columns` comes to. */
#ifndef DML_COORDINATOR_JOB_TILING_H
#define DML_COORDINATOR_JOB_TILING_H

#include "coordinator/job/job.h"
#include "data/set/set.h"

/* Why the data of the job cannot be in tiles, however wide it is: a constant that completes "has no
 * effect: "; NULL: it can. */
const char *tiling_cannot(const struct job *job);

/* How wide strips are, and from how many columns on there are any: fills these two options. */
void tiling_of(const struct job *job, struct set_options *options);

/* How many columns the strips have in which the job stores such data, of which a set may be at hand
 * that other settings made; 0: its rows are whole. */
uint32_t tiling_columns(const struct job *job, const struct set_info *data);

/* Why data that is so wide is not in tiles all the same; NULL: it is, or it is not so wide. */
const char *tiling_refused(const struct job *job, const struct set_info *data);

#endif
