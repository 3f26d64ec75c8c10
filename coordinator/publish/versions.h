/* Removes what a state folder needs no more, so that it does not grow night after night. Files are
 * removed beside the loop; a file that cannot be removed stays. */
#ifndef DML_COORDINATOR_PUBLISH_VERSIONS_H
#define DML_COORDINATOR_PUBLISH_VERSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/run/loop.h"
#include "store/store.h"

/* Removes versions of the model. It keeps `keep` of them: the live one, the one that `rollback`
 * would make live next, and the newest others; those two are kept even if `keep` is smaller. The
 * last model that was refused is kept as well, so that somebody can look at it. So are the models
 * of the newest sweep that another one was preferred to; those of earlier sweeps go. Neither
 * count. */
int versions_prune(struct loop *loop, struct store *store, const char *state, uint32_t keep);

/* The runs whose models versions_prune() would remove: `count` of them; free *runs also after a
 * failure. */
int versions_superfluous(struct store *store, const char *state, uint32_t keep, int64_t **runs,
                         size_t *count);

/* Removes the checkpoints of all runs that have ended, except those of run `keep`. A run that ended
 * at a limit can no longer go on then. */
int versions_prune_checkpoints(struct loop *loop, struct store *store, const char *state,
                               int64_t keep);

#endif
