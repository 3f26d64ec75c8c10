/* From a job to its data: packs of all sources, merged into one set. */
#ifndef DML_COORDINATOR_RUN_DATASET_H
#define DML_COORDINATOR_RUN_DATASET_H

#include "coordinator/job/job.h"
#include "data/pack/pack.h"
#include "data/set/set.h"
#include "data/source/paths.h"
#include "model/score.h"

/* Makes the state folder if it is missing. ERROR_CREATE, ERROR_PERMISSION. */
int dataset_make_state(const struct job *job);

/* The files that a job's patterns name now; lists are NULL-terminated, test and holdout may be
 * empty. Release also after a failure. ERROR_DATA for a pattern without a file, ERROR_CONFIG for a
 * file that is both in the data and in the holdout, and for weights or labels that are not as
 * many as the files they are for. `order` as of dataset_open(). */
struct dataset_paths {
    char **data, **test, **holdout;
    struct source_beside beside_data, beside_test, beside_holdout;
};
int dataset_find(const struct job *job, const struct table *order, struct dataset_paths *paths);
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

/* Opens a dataset from the packs of earlier sources that are still in STATE/packs. */
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

/* The columns of several files of data: together they are those of the job. */

/* Decides whether columns of `files` files of data may be missing, and whether they add up. */
void dataset_choose_missing(struct source_options *options, unsigned files);

/* As much of options->table as reading a file needs: so its pack stays the same when later files
 * bring columns. NULL: all of it. */
struct table *dataset_table_for(const struct source_options *options, const char *path);

/* ERROR_DATA if the job lists a column that no file has. */
int dataset_check_lists(const struct job *job, const struct table *table);

/* Reads the beginnings of all files, but of pipes: ERROR_DATA if they do not have the columns that
 * the job names, or if one is no data. *table: the columns of CSV, or NULL. */
int dataset_check_columns(const struct job *job, const struct dataset_paths *paths,
                          struct table **table);

/* What crosses the job makes of a table's columns, before the data is read. */
struct crosses_outlook {
    uint32_t crosses;
    double value;        /* of each */
    uint32_t row_values; /* that a row has at most besides */
};

/* ERROR_CONFIG or ERROR_DATA if its columns cannot be crossed so. `outlook` may be NULL. */
int dataset_check_crosses(const struct job *job, const struct table *table,
                          struct crosses_outlook *outlook);

/* ERROR_DATA: none of these files, at least one, has rows. */
int dataset_refuse_empty(char *const *paths);

/* ERROR_DATA unless both or neither is a table: the columns of others have numbers, and no name or
 * place in a table. */
int dataset_check_kind(const char *first, bool first_is_table, const char *path, bool is_table);

/* Says which files lack columns that others have. */
void dataset_warn_of_lacking(const struct table *table, struct pack *const *packs, uint32_t count);

/* Rows that a model is scored on: the holdout or the test data. They are packs that stay open;
 * either all rows count, or a part of them. */

struct holdout; /* opaque */

/* Takes ownership of the packs. `pick` is that of score_packs(). */
struct holdout *holdout_new(struct pack *const *packs, uint32_t count,
                            const struct holdout_pick *pick);
void holdout_free(struct holdout *holdout); /* harmless on NULL */

/* Checks, before training, that a model of this layout, trained on this data, can be scored.
 * ERROR_DATA if columns are missing or have other names, if no row has a label, or if no label is
 * one that is trained on. `key` is the key of the job file. Reads all rows. Harmless on NULL. */
int holdout_check(const struct holdout *holdout, const struct set_info *data,
                  const struct model_layout *layout, const char *key);

/* The margins of a model on the holdout, ranked: the caller's. Errors as of score_margins(). */
int holdout_margins(const struct holdout *holdout, const struct model *model,
                    struct ranking **ranking);

/* The share that draws the holdout's rows; 0: it is files of its own. */
double holdout_share(const struct holdout *holdout);

/* Figures on the holdout, as score_figures_json() has them, with what tells its rows from others as
 * `rows`. A new reference. */
json_t *holdout_json(const struct holdout *holdout, const struct score_figures *figures);

/* As holdout_score() on those rows alone that a smaller share draws, too. */
int holdout_score_within(const struct holdout *holdout, double share, const struct model *model,
                         struct score_figures *figures);

/* The figures of any model on the holdout, to be released if this succeeds: of the one that was
 * just trained (model_writer_view()) or of an earlier one (model_open()). Errors as of
 * score_packs(); ERROR_DATA if no row has a label. */
int holdout_score(const struct holdout *holdout, const struct model *model,
                  struct score_figures *figures);

#endif
