/* How a run differs from the one before. */
#ifndef DML_COORDINATOR_STATUS_CHANGES_H
#define DML_COORDINATOR_STATUS_CHANGES_H

#include <jansson.h>

#include "store/store.h"

/* The last run of a job that was listed. Zeroed at first; release with changes_release(). */
struct changes {
    char *job, *settings, *data;
};

/* Notes the run, and returns how it differs from the one noted before: {key: {from, to}} for keys
 * that both have, and {"data": {from, to}} with fingerprints if the same files had another content.
 * Null if the run before is of another job, or there is none. A new reference. */
json_t *changes_note(struct changes *changes, const struct store_run *run);
void changes_release(struct changes *changes);

#endif
