/* Removing models that nothing needs any more. */
#ifndef DML_COORDINATOR_RUN_MODEL_REMOVAL_H
#define DML_COORDINATOR_RUN_MODEL_REMOVAL_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/run/loop.h"
#include "store/store.h"

/* Removes the models of these runs beside the loop, and then notes in the store which are gone. For
 * each a line of the log says `why`; NULL: none. A model that cannot be removed stays, with a
 * warning, and is not noted. If this process is killed in between, the store still lists models
 * that are gone: whoever chooses what to remove chooses them again. */
int models_remove(struct loop *loop, struct store *store, const char *state, const int64_t *runs,
                  size_t count, const char *why);

#endif
