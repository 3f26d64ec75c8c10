/* The merged sets in STATE/packs: each as large as the data, and made again from its packs where it
 * is needed. They are told apart by the fingerprint of their data, as runs have it. */
#ifndef DML_COORDINATOR_SETS_H
#define DML_COORDINATOR_SETS_H

#include "data/set.h"

/* Opens the set of that data; NULL if there is none that can be read. */
struct set *sets_find(const char *state, const char *fingerprint);

/* Removes all sets save those of these two fingerprints (may be NULL). What cannot be removed
 * stays. */
void sets_prune(const char *state, const char *keep, const char *keep_too);

#endif
