/* Which model was live when, as the store's publications say. */
#ifndef DML_COORDINATOR_STATUS_HISTORY_H
#define DML_COORDINATOR_STATUS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

enum decision {
    DECISION_PUBLISHED,   /* the run's model is live from now on */
    DECISION_REFUSED,     /* the gate did not let it */
    DECISION_ROLLED_BACK, /* it is live again */
};

/* As the store and DML_KIND have it: "rolled back". */
const char *decision_text(enum decision decision);

struct history_item {
    int64_t publication; /* its number in the store */
    enum decision decision;
    int64_t run, previous_run;
    bool settled;
};

struct history {
    struct history_item *items; /* oldest first */
    size_t count;
};

/* Release it also after a failure. */
int history_read(struct store *store, struct history *history);
void history_release(struct history *history);

/* The run whose model is live; 0 if none was published. */
int64_t history_live(const struct history *history);

/* The last decision about a run's model, NULL if there was none. */
const struct history_item *history_of(const struct history *history, int64_t run);

/* The run whose model was live before that of run `live`, as one rolls back: a version that was
 * rolled back from is not gone back to. 0 if there is none. */
int64_t history_before(const struct history *history, int64_t live);

#endif
