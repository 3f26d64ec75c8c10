/* The files in STATE/packs. A merged set is as large as the data, and is made again from its packs
 * when it is needed and gone. Sets are told apart by the fingerprint of their data, which the
 * record of each run has, too. */
#ifndef DML_COORDINATOR_RUN_SETS_H
#define DML_COORDINATOR_RUN_SETS_H

#include "coordinator/run/dataset.h"
#include "coordinator/run/loop.h"

/* Opens the set of that data; NULL if there is none that can be read. */
struct set *sets_find(const char *state, const char *fingerprint);

/* Opens the set that a model was trained on, if the state folder that the model is in still has it;
 * else NULL. */
struct model;
struct set *sets_find_of_model(const struct model *model);

/* Why sets_find_of_model() found none: 0 if it is gone, else ERROR_PERMISSION, recorded. */
int sets_check_access(const struct model *model);

/* Opens the set that was made last; NULL if there is none. */
struct set *sets_newest(const char *state);

/* After an error of that code, whose text stays: removes the file of the set if a checksum in it is
 * wrong. */
void sets_drop_damaged(struct set *set, int code);

/* Removes, beside the loop, all sets except those with one of these two fingerprints (each may be
 * NULL). A file that cannot be removed stays; ERROR_UNAVAILABLE if no thread can be started. */
int sets_prune(struct loop *loop, const char *state, const char *keep, const char *keep_too);

/* Keeps the set with this fingerprint and, of the others, those made last, `count` in all; removes
 * the rest beside the loop. Errors as of sets_prune(). */
int sets_keep(struct loop *loop, const char *state, const char *keep, uint32_t count);

/* Removes, beside the loop, the sets of folds. Errors as of sets_prune(). */
int sets_prune_folds(struct loop *loop, const char *state);

/* Removes, beside the loop, all packs except those of these sources: the packs of files that are
 * gone or have changed. Errors as of sets_prune(). */
int packs_prune(struct loop *loop, const char *state, const struct dataset_sources *sources);

#endif
