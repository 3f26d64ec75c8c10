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
 * file that is both in the data and in the holdout, and for weights or labels that are not as
 * many as the files they are for. */
struct dataset_paths {
    char **data, **test, **holdout;
    struct source_beside beside_data, beside_test, beside_holdout;
};
int dataset_find(const struct job *job, struct dataset_paths *paths);
void dataset_paths_release(struct dataset_paths *paths);

/* The files that were packed: those of the set first. */
struct dataset_source {
    char *path;
    char fingerprint[HASH128_TEXT]; /* names its pack */
    char content[HASH128_TEXT];     /* a hash of its bytes as stored */
    uint64_t bytes, rows;
    enum dataset_use { USE_TRAINING, USE_HOLDOUT, USE_TEST } use;
};
struct dataset_sources {
    struct dataset_source *items;
    uint32_t count;
    struct source_shape shape; /* of those that are trained on */
};

/* All data of a job, as it was when it was opened. */
struct dataset {
    struct set *set;
    struct holdout *holdout; /* NULL if the job has none; with early stopping its rows are in the
                                set as well, in chunks of their own */
    struct holdout *test;    /* the test data, or NULL */
    struct dataset_sources sources;
    double seconds; /* that opening took */
};

/* The caller holds the lock of the state folder. Packs what is not packed yet under STATE/packs,
 * merges and opens it; logs what it did. Takes long. Release it also after a failure. Columns of a
 * table take the numbers that they have in `order`, by name (struct source_options); NULL: those of
 * the first file. */
int dataset_open(const struct job *job, const struct table *order, struct dataset *data);

/* The same from the packs of earlier sources that are still in STATE/packs. */
int dataset_recall(const struct job *job, const struct dataset_sources *sources,
                   struct dataset *data);

/* The data of a member of a cross-validation, from the packs of these sources: trained on without
 * the rows of a fold (from 1 to job->folds), which are the holdout. There is no test data. */
int dataset_open_fold(const struct job *job, const struct dataset_sources *sources, uint32_t fold,
                      struct dataset *data);

/* Before a cross-validation on the packs of these sources: folds_check(), for objectives with
 * classes. */
int dataset_check_folds(const struct job *job, const struct dataset_sources *sources);

/* Adds a copy. */
void dataset_add_source(struct dataset_sources *sources, const struct dataset_source *source);
void dataset_sources_release(struct dataset_sources *sources);

void dataset_release(struct dataset *data); /* harmless on a zeroed struct */

#endif
