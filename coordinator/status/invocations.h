/* What is shown of the commands that trained, or came to no training (the table `invocations`). */
#ifndef DML_COORDINATOR_STATUS_INVOCATIONS_H
#define DML_COORDINATOR_STATUS_INVOCATIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "store/store.h"

/* The rows, oldest first: {invocation, command, first_ms, began_ms, ended_ms, times, outcome,
 * status, reason, run}, null where there is none. One that has not ended is "lost". */
int invocations_read(struct store *store, json_t **list);

/* The last of a list, NULL if it is empty. Borrowed. */
json_t *invocations_last(const json_t *list);

/* Gives one that is shown as lost, but may be at work, another outcome: "running", "unknown".
 * Harmless on NULL, and where it is not lost. */
void invocation_is_at_work(json_t *invocation, const char *outcome);

/* Whether the list of runs does not say already what it came to: it made no model and was not
 * stopped in a run, or ended with an error after it. */
bool invocation_is_news(const json_t *invocation);

/* Whether it failed, or was lost. */
bool invocation_has_failed(const json_t *invocation);

/* How many failed one after the other, and none but stopped ones since. */
long long invocations_failures(const json_t *list);

/* "retrain: failed (65), 3 times since 2026-11-20 02:15: no file matches", without the time of the
 * last one. Free it. */
char *invocation_words(const json_t *invocation);

#endif
