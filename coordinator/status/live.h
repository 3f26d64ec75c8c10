/* A run as its coordinator's process knows it: what the command does now, and how far it is. The
 * figures of status/figures.h are read from it. */
#ifndef DML_COORDINATOR_STATUS_LIVE_H
#define DML_COORDINATOR_STATUS_LIVE_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/job/job.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/machine/hosts.h"
#include "store/store.h"

/* What a command does before and after a training:
 *    name             how it is shown */
#define STAGES(X)                                                                                  \
    X(STAGE_STARTING, "starting")                                                                  \
    X(STAGE_PACKING, "packing")                                                                    \
    X(STAGE_CHECKING, "checking the holdout and the test data")                                    \
    X(STAGE_SCORING, "scoring")                                                                    \
    X(STAGE_WRITING, "writing the model")                                                          \
    X(STAGE_GATE, "checking the gate")                                                             \
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

struct counters; /* coordinator/status/eta.h */

/* Nothing is owned. */
struct live {
    enum stage stage;
    const struct coordinator *coordinator; /* NULL before and after a training */
    const struct hosts *hosts;             /* that workers are started on, or NULL */
    const struct job *job;
    int64_t run; /* 0: none yet */
    int64_t started_ms;
    double seconds, seconds_left;    /* of the run; NaN: not known */
    double speed;                    /* as of eta_rate() */
    const struct counters *counters; /* NULL without a live run */
    int64_t durable_ms;              /* wall clock of the last durable step; 0: none yet */
    const char *waiting;             /* the workers that the run waits for, or NULL */
    const char *http;                /* where the status server is, or NULL */
    json_t *(*sweep)(void *context); /* sweep_json() of that which the run is of, or NULL */
    void *sweep_context;
    uint32_t member;      /* its number in the sweep */
    const json_t *result; /* of result_json() once the training has ended, else NULL */
};

/* "packing"; NULL for STAGE_TRAINING. */
const char *stage_text(enum stage stage);

/* What a run is doing while its stage is STAGE_TRAINING: "running", "setting up", …; a constant. */
const char *live_phase(enum coordinator_phase phase);

/* What the command does now: "packing", "running", …; a constant. */
const char *live_state(const struct live *live);

/* What is recorded of a host, by its number; valid as long as the hosts are. */
struct store_host host_row(const struct hosts *hosts, uint32_t number);

#endif
