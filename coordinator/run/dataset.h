/* From a job to its data: packs of all sources, merged into one set. */
#ifndef DML_COORDINATOR_RUN_DATASET_H
#define DML_COORDINATOR_RUN_DATASET_H

#include "coordinator/run/holdout.h"
#include "coordinator/job/job.h"
#include "data/set.h"

/* Makes the state folder if it is missing. ERROR_CREATE, ERROR_PERMISSION. */
int dataset_make_state(const struct job *job);

/* The files that a job's patterns name now; lists are NULL-terminated, test and holdout may be
 * empty. Release also after a failure. ERROR_DATA for a pattern without a file, ERROR_CONFIG for a
 * file that is both in the data and in the holdout. */
struct dataset_paths {
    char **data, **test, **holdout;
};
int dataset_find(const struct job *job, struct dataset_paths *paths);
void dataset_paths_release(struct dataset_paths *paths);

/* The files that a set was made from, those of a holdout of its own last. */
struct dataset_source {
    char *path;
    char fingerprint[HASH128_TEXT]; /* names its pack */
    uint64_t bytes, rows;
    bool held_out;
};
struct dataset_sources {
    struct dataset_source *items;
    uint32_t count;
    struct source_shape shape; /* of those that are trained on */
};
void dataset_sources_release(struct dataset_sources *sources);

/* The caller holds the lock of the state folder. Packs what is not packed yet under STATE/packs,
 * merges and opens it; logs what it did. *holdout is what is held out, NULL if the job has no
 * holdout; its rows are in the set too if the job stops early. Both start as NULL and are, as
 * the sources, the caller's to release, also after a failure. *seconds is how long it took. */
int dataset_open(const struct job *job, struct set **set, struct holdout **holdout,
                 struct dataset_sources *sources, double *seconds);

#endif
