/* What is recorded of a command that trains: that it began, and what came of it, also where it made
 * no run. */
#ifndef DML_COORDINATOR_RUN_INVOCATION_H
#define DML_COORDINATOR_RUN_INVOCATION_H

#include <jansson.h>
#include <stdint.h>

#include "store/store.h"

/* The member `reason` of a result without a run. */
#define NO_NEW_DATA "no new data"

struct invocation {
    int64_t number; /* in the store; 0: it has not begun, or its end is recorded */
    int64_t run;    /* that it works on; 0: none yet */
};

/* Records that the command begins, and warns of the one before if that was lost. */
int invocation_begin(struct invocation *invocation, struct store *store, const char *command);

/* What the command came to, in a word, by the result that it prints and the code that it ends
 * with. `result` is NULL if it failed. */
const char *invocation_outcome(int code, const json_t *result);

/* Adds to a result that is to be printed: the number of the command, `outcome`, and how many
 * commands before it had failed one after the other. What cannot be read is left out. */
void invocation_add(const struct invocation *invocation, struct store *store, int code,
                    json_t *result);

/* Records the end, once. `why` is its message. That this fails is a warning alone: what the command
 * did stands. The error that the caller is about to report stays. Harmless without a beginning. */
void invocation_end(struct invocation *invocation, struct store *store, int code,
                    const json_t *result, const char *why);

#endif
