/* Which model was live when, from the publications in the store. */
#ifndef DML_COORDINATOR_STATUS_HISTORY_H
#define DML_COORDINATOR_STATUS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

enum decision {
    DECISION_PUBLISHED,   /* the run's model is live from now on */
    DECISION_REFUSED,     /* the gate refused the run's model */
    DECISION_ROLLED_BACK, /* the run's model is live again */
    DECISION_KEPT,        /* the run's model is kept, and another one stays live */
};

/* Whether it makes the run's model live. */
bool decision_makes_live(enum decision decision);

/* The text in the store and in DML_KIND: "rolled back". */
const char *decision_text(enum decision decision);

struct history_item {
    int64_t publication; /* its number in the store */
    int64_t wall_ms;     /* when it was made */
    enum decision decision;
    int64_t run, previous_run;
    bool settled;
    char *text; /* why, for people; owned by the history */
};

struct history {
    struct history_item *items; /* oldest first */
    size_t count;
};

/* Release the history also after a failure. */
int history_read(struct store *store, struct history *history);
void history_release(struct history *history);

/* The run whose model STATE/models/current points to; 0 if there is no such link or no such model.
 */
int64_t history_current(const char *state);

/* The decision that an earlier command took and did not complete; NULL if there is none. */
const struct history_item *history_pending(const struct history *history);

/* The run whose model is live when all decisions are complete; 0 if none was published. */
int64_t history_live(const struct history *history);

/* The refusals since a model went live last. */
struct history_refusals {
    size_t count;
    int64_t since_ms;                /* when the first of them was decided */
    const struct history_item *last; /* NULL: there are none */
};
struct history_refusals history_refusals(const struct history *history);

/* The last decision about a run's model, NULL if there was none. */
const struct history_item *history_of(const struct history *history, int64_t run);

/* The run to whose model a rollback from run `live` goes: that which was live before. Versions from
 * which was rolled back are left out. 0 if there is none. */
int64_t history_before(const struct history *history, int64_t live);

#endif
