/* What a state folder has recorded, for pages about runs that are not alive. The database is copied
 * into memory and its lock let go, so that a run can begin at any time. */
#ifndef DML_COORDINATOR_COMMAND_RECORDED_H
#define DML_COORDINATOR_COMMAND_RECORDED_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/status/api.h"

struct recorded {
    const char *state;   /* the folder; the caller's */
    struct store *store; /* a copy in memory; NULL: nothing could be read yet */
    json_t *status;      /* of the newest run */
    json_t *heaviest;    /* weights of its model, or NULL */
    json_t *runs;        /* while a coordinator is alive: the runs as it tells them; else NULL */
    int64_t stamp[4];    /* of the files that were copied */
    int64_t again_ns;    /* once there is a status, the folder is not looked at before this */
};

/* Reads the record again if the folder's files have changed. While a coordinator is alive, it is
 * asked for status and runs. ERROR_UNAVAILABLE if nothing was run there, ERROR_AGAIN if the
 * coordinator does not answer; what was read before stays. */
int recorded_refresh(struct recorded *record);
void recorded_release(struct recorded *record);

/* What the status server's answers are made from. */
struct api recorded_api(const struct recorded *record, const struct http_counts *counts);

#endif
