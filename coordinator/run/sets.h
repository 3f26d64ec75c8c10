/* What lies in STATE/packs. Merged sets are each as large as the data, and made again from their
 * packs where they are needed; they are told apart by the fingerprint of their data, as runs have
 * it. */
#ifndef DML_COORDINATOR_RUN_SETS_H
#define DML_COORDINATOR_RUN_SETS_H

#include "coordinator/run/dataset.h"

/* Opens the set of that data; NULL if there is none that can be read. */
struct set *sets_find(const char *state, const char *fingerprint);

/* Removes all sets save those of these two fingerprints (may be NULL). What cannot be removed
 * stays. */
void sets_prune(const char *state, const char *keep, const char *keep_too);

/* Removes the packs of all other files than these: files that went, or that have other content. */
void packs_prune(const char *state, const struct dataset_sources *sources);

#endif
