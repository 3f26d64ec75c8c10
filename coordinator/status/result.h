/* The result of a run, as INTERFACE's members: one JSON object, or a short table. */
#ifndef DML_COORDINATOR_STATUS_RESULT_H
#define DML_COORDINATOR_STATUS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/coordinator.h"

struct result_seconds {
    double total, pack, train;
};

/* How often something was started again, over all the time that the run took. */
struct result_restarts {
    uint64_t coordinator, shard, replica;
};

/* What the coordinator knows: everything but the model and its figures on other data. Loss and
 * gradient are those at the optimizer's answer, steps are all that were accepted. A new
 * reference. */
json_t *result_json(const struct coordinator *coordinator, const char *job, int64_t run,
                    const struct result_seconds *seconds, const struct result_restarts *restarts);

/* Adds where the run started: the model's hash, and its run if that is not 0. */
void result_add_start(json_t *result, const char *sha256, int64_t run);

/* How often each safeguard fired that did: {text: count}. A new reference. */
json_t *result_safeguards_json(const struct coordinator_view *view);

/* Adds the model's place and hash. */
void result_add_model(json_t *result, const char *folder, const char *sha256);

/* Prints it on standard output: as JSON, else as a table unless `cron`. */
void result_show(const json_t *result, bool json, bool cron);

#endif
