/* Explains a row that somebody gives the status server, in a process of its own: `explain-row`
 * (coordinator/command/explain_row.c). One row at a time, and each has a deadline, so that whoever
 * asks costs a run little, whatever they send. */
#ifndef DML_COORDINATOR_RUN_ROW_EXPLAINER_H
#define DML_COORDINATOR_RUN_ROW_EXPLAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/status/http.h"

struct event_base;
struct row_explainer; /* opaque */

/* `http` is where answers go; both must outlive it. */
struct row_explainer *row_explainer_new(struct event_base *base, struct http *http);

/* Ends the process that is at work. Harmless on NULL. */
void row_explainer_free(struct row_explainer *explainer);

/* Answers a POST of a row, as http_callbacks.post does, by the live model of the state folder or
 * that of the run that the query names. */
bool row_explainer_post(struct row_explainer *explainer, const char *state,
                        const struct request *request, uint64_t ticket, struct http_answer *answer);

#endif
