/* What a state folder has recorded, kept to be shown: for the pages of state folders in which no
 * run needs to be alive. */
#ifndef DML_COORDINATOR_COMMAND_RECORDED_H
#define DML_COORDINATOR_COMMAND_RECORDED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/command/about_model.h"
#include "coordinator/status/api.h"
#include "store/store.h"

/* Zeroed but for `state`, it has not been looked at. The database is copied into memory and its
 * lock let go, so that a run can begin at any time. */
struct recorded {
    const char *state;        /* the folder; the caller's */
    struct store *store;      /* a copy in memory; NULL: nothing could be read yet */
    json_t *status;           /* of the newest run */
    struct about_model about; /* its model, once somebody has asked for that */
    bool has_about;
    json_t *runs;     /* while a coordinator is alive: the runs as it tells them; else NULL */
    int64_t stamp[4]; /* of the files that were copied */
    int code;         /* of the last look at the folder; what was read before stays */
    bool empty;       /* that was read, and nothing was run there: only `store` is there */
    char *trouble;    /* why it is not 0; owned */
    bool asked;       /* the coordinator was asked, and the look is to be completed */
    int64_t begun_ns; /* when it was */
    int64_t again_ns; /* the folder is not looked at before this */
};

/* The first half of a look at the folder, which may wait for a coordinator and touches nothing but
 * the record: it may run beside those of other folders. Nobody is asked if the folder's files are
 * as they were, or a look would come too early. */
void recorded_ask(struct recorded *record);

/* Reads the record again if the folder's files have changed. While a coordinator is alive, it is
 * asked for status and runs. ERROR_UNAVAILABLE if nothing was run there, ERROR_AGAIN if the
 * coordinator does not answer; what was read before stays. */
int recorded_refresh(struct recorded *record);

/* Reads what is shown of the newest run's model. It may take a while, so it is read when it is
 * asked for; where there is none, there is nothing to show. */
void recorded_read_model(struct recorded *record);

/* What the status server's answers are made from; valid until the next look. `counts` may be NULL.
 */
struct api recorded_api(const struct recorded *record, const struct http_counts *counts);

void recorded_release(struct recorded *record);

#endif
