/* The status server's answers, by path: about a live run, or about what a state folder has
 * recorded. No sockets here. */
#ifndef DML_COORDINATOR_STATUS_API_H
#define DML_COORDINATOR_STATUS_API_H

#include "coordinator/status/http.h"
#include "coordinator/status/live.h"
#include "coordinator/status/metrics.h"
#include "store/store.h"

/* What the answers are made from. Nothing is owned. */
struct api {
    struct live live;         /* without a live run: its number and when it started */
    const json_t *status;     /* of a run that is not live (report_status()), else NULL */
    const json_t *runs;       /* as another process tells them, or NULL: from the store */
    const json_t *heaviest;   /* weights of its model (export_top_json()), or NULL */
    const json_t *summary;    /* of its model (summary_table()), or NULL */
    const json_t *importance; /* of the columns of its data (importance_json()), or NULL */
    struct store *store;      /* NULL after it was closed */
    const struct http_counts *counts;
};

/* Whether the answer is made from what is known of a model. */
bool api_is_about_model(const char *path);

/* Fills in the answer. It never fails: an error is an answer, too, and the run goes on. */
void api_answer(const struct api *api, const struct request *request, struct http_answer *answer);

#endif
