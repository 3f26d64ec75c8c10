/* What a state folder that works night after night lets go of. What cannot be removed stays. */
#ifndef DML_COORDINATOR_PUBLISH_VERSIONS_H
#define DML_COORDINATOR_PUBLISH_VERSIONS_H

#include <stdint.h>

#include "store/store.h"

/* Removes versions but the live one, the one that `rollback` would make live next, and the newest
 * others: `keep` in all, and never fewer than those two. Of models that were refused only the last
 * is kept, beside those, to be looked at. */
int versions_prune(struct store *store, const char *state, uint32_t keep);

/* Removes the checkpoints of runs that have ended, but of `keep`: what ended at a limit does not go
 * on any more. */
int versions_prune_checkpoints(struct store *store, const char *state, int64_t keep);

#endif
