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
 * needs it. The caller holds the lock of the state folder, or only looks. */
#ifndef DML_COORDINATOR_PUBLISH_PRUNE_H
#define DML_COORDINATOR_PUBLISH_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/run/loop.h"
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

/* Lists it; release the list also after a failure. ERROR_PERMISSION: there is something that the
 * caller may not read. */
int prune_find(struct store *store, const char *state, struct prune_list *list);
void prune_release(struct prune_list *list);

/* Removes what is listed. What cannot be removed stays, with a warning; then ERROR_IO. */
int prune_remove(struct store *store, const struct prune_list *list);

/* ---- which runs something still needs ---- */

struct need;      /* of one run; opaque */
struct need_pack; /* of one source of one run; opaque */

struct needs {
    struct need *runs; /* oldest first */
    size_t count, capacity;
    struct need_pack *packs;
    size_t pack_count, pack_capacity;
    int64_t *starts, *origins; /* of those that are needed: [needed], each in order */
    size_t needed;
    bool unfinished;      /* some run or sweep can go on */
    int64_t decided;      /* the run that was decided about last */
    int64_t live, before; /* as the decisions have them; 0: none */
    uint32_t keep_models; /* of the newest run */
};

/* Release the needs also after a failure. */
int needs_read(struct store *store, struct needs *needs);
void needs_release(struct needs *needs);

bool needs_run(const struct needs *needs, int64_t run);
bool needs_checkpoints(const struct needs *needs, int64_t origin);  /* of the run that began them */
bool needs_failed(const struct needs *needs, int64_t run);          /* a model read back wrongly */
bool needs_model(const struct needs *needs, int64_t run);           /* besides versions */
bool needs_set(const struct needs *needs, const char *fingerprint); /* of that data */

/* What is known of the pack with this file name. Runs record the files that they were trained on,
 * and not those of a holdout or of test data. */
enum need_for_pack { PACK_UNKNOWN, PACK_NEEDED, PACK_NOT_NEEDED };
enum need_for_pack needs_pack(const struct needs *needs, const char *name);

/* ---- what `retrain` removes, so that the folder does not grow night after night ----
 *
 * Files are removed beside the loop; a file that cannot be removed stays. */

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

/* Removes the checkpoints of all runs that have ended, except those of run `keep` and of those that
 * went on from one and have not ended. A run that ended at a limit can no longer go on then. */
int versions_prune_checkpoints(struct loop *loop, struct store *store, const char *state,
                               int64_t keep);

#endif
