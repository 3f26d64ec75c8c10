/* What a state folder holds and nothing needs any more. The record of runs stays: it is small.
 *
 * Needed are, with their data, checkpoints and models, these runs:
 *
 *   - the newest of each job
 *   - one that can go on and has no model yet, unless a later run of the same job and data replaced
 *     it
 *   - all after the last that was decided about: `retrain` decides about them, or goes on with the
 *     sweep of which they are a part
 *
 * and besides, the model that such a run started from, the live model, that to which `rollback`
 * goes, and as many versions as the newest run's `keep_models` says. Packs that no run was trained
 * on are of a holdout or of test data: the newest of each file is kept, and all of them while
 * something is unfinished.
 *
 * A kill at any instant leaves a valid state: each thing is gone or whole, and nothing that is left
 * needs it. The caller holds the lock of the state folder. */
#ifndef DML_COORDINATOR_PUBLISH_PRUNE_H
#define DML_COORDINATOR_PUBLISH_PRUNE_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct prune_item {
    const char *kind; /* "model", "checkpoint", "set", "pack" or "leftover" */
    char *path;       /* of a file or folder; owned */
    uint64_t bytes;
    int64_t run; /* of a model; else 0 */
};

struct prune_list {
    struct prune_item *items;
    size_t count;
    uint64_t bytes;      /* of all items */
    uint64_t bytes_kept; /* of all else in the state folder */
};

/* Lists it; release the list also after a failure. */
int prune_find(struct store *store, const char *state, struct prune_list *list);
void prune_release(struct prune_list *list);

/* Removes what is listed. What cannot be removed stays, with a warning; then ERROR_IO. */
int prune_remove(struct store *store, const struct prune_list *list);

#endif
