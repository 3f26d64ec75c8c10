/* What a command does before and after a training. */
#ifndef DML_COORDINATOR_STATUS_LIVE_H
#define DML_COORDINATOR_STATUS_LIVE_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/machine/coordinator.h"
#include "coordinator/machine/hosts.h"
#include "coordinator/job/job.h"
#include "store/store.h"

/*    name             how it is shown */
#define STAGES(X)                                                                                  \
    X(STAGE_STARTING, "starting")                                                                  \
    X(STAGE_PACKING, "packing")                                                                    \
    X(STAGE_CHECKING, "checking the holdout and the test data")                                    \
    X(STAGE_SCORING, "scoring")                                                                    \
    X(STAGE_WRITING, "writing the model")                                                          \
    X(STAGE_JUDGING, "judging")                                                                    \
    X(STAGE_ANNOUNCING, "running on_publish")                                                      \
    X(STAGE_ENDING, "ending")                                                                      \
    X(STAGE_ENDED, "ended")

enum stage {
    STAGE_TRAINING, /* the coordinator's phase says more */
#define X(name, text) name,
    STAGES(X)
#undef X
        STAGE_COUNT
};

/* "packing"; NULL for STAGE_TRAINING. */
const char *stage_text(enum stage stage);

/* The live state of a run, for `status` and the status server: JSON made from the coordinator. */

/* A run as its coordinator's process knows it. Nothing is owned. */
struct live {
    enum stage stage;
    const struct coordinator *coordinator; /* NULL before and after a training */
    const struct hosts *hosts;             /* that workers are started on, or NULL */
    const struct job *job;
    int64_t run; /* 0: none yet */
    int64_t started_ms;
    double seconds, seconds_left; /* of the run; NaN: not known */
    double speed;                 /* as of pace_rate() */
    const char *waiting;          /* the workers that the run waits for, or NULL */
    const char *http;             /* where the status server is, or NULL */
    const json_t *result;         /* of result_json() once the training has ended, else NULL */
};

/* What a run is doing while its stage is STAGE_TRAINING: "running", "setting up", …; a constant. */
const char *live_phase(enum coordinator_phase phase);

/* What the command does now: "packing", "running", …; a constant. */
const char *live_state(const struct live *live);

/* Members: job, run, pid, state, what report_add_end() says, step, loss, gradient_max, evaluation
 * {number, chunks, counted, map (coordinator/status/live.h), started_seconds_ago}, evaluations,
 * attempt, downpour (coordinator/status/figures.h), waiting, started_ms, time_ms, seconds,
 * seconds_left, processes [{role, index, pid, host,
 * state, portions, chunks, rate, restarts, threads, device}], objective, examples, features,
 * parameters, history, backup_copies, safeguards {text: count}, gradient_tolerance, loss_tolerance,
 * tensors (as result_tensors_json() has them), holdout_loss, holdout_accuracy, settings {key:
 * value}, http, version. `rate` is in chunks a second, null if it is not known. Without a
 * coordinator the members that only the coordinator knows are null, 0 or missing. A new reference.
 */
json_t *live_json(const struct live *live);

/* As report_runs(), but the run that a coordinator works on is "running", and its seconds are those
 * spent on it until now. */
int live_runs(const struct live *live, struct store *store, json_t **runs);

/* The state of each chunk of the running evaluation. */

/* [[count, state, replica], …] over the chunks in order; chunks side by side with the same state
 * and replica, as in struct chunk_view, are one entry. A new reference. */
json_t *chunks_json(const struct coordinator *coordinator);

/* Hosts as the status and the result show them. */

/* What is recorded of a host, by its number; valid as long as the hosts are. */
struct store_host host_row(const struct hosts *hosts, uint32_t number);

/* {name, state, why (or null), workers, failures, threads (null: all that it has)}. A new
 * reference. */
json_t *host_json(const struct store_host *host);

/* A list of all; empty if `hosts` is NULL. A new reference. */
json_t *hosts_json(const struct hosts *hosts);

#endif
