/* What was done in a state folder, and what retraining has to do next. */
#ifndef DML_COORDINATOR_COMMAND_LAST_RUN_H
#define DML_COORDINATOR_COMMAND_LAST_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/job/job.h"
#include "coordinator/status/sweep_plan.h"
#include "optimizer/row.h"
#include "store/store.h"

/* The newest run of a job, or the newest sweep: then `run` is its winner, or, as long as there is
 * none, its newest run. Texts are owned. */
struct last_run {
    int64_t run;       /* 0: there is none */
    char *data;        /* fingerprint of its training data */
    char *start_model; /* SHA-256 of what it started from; "": from zero */
    char *result;
    bool concluded;     /* it has a model */
    bool over;          /* it has ended, and cannot go on */
    enum reason reason; /* of a run: why it ended; REASON_NONE while it runs, and of a sweep */
    json_t *settings;   /* of a run: those that it had; NULL of a sweep */
    bool decided;  /* whether a model of it goes live; an unfinished run may have had one before */
    bool refused;  /* the last decision about it */
    bool kept;     /* whether by the last decision its model is kept and not live */
    bool has_data; /* its training data is still there; the caller sets this */
    int64_t sweep; /* 0: it is a run */
    char *evaluated_on; /* of a sweep: as of struct store_sweep */
    char *sources;
};

/* Reads the newest run, or, with the shape of the job's sweep, the newest sweep of the job with
 * this job_identity(). *last is zeroed, or the result of an earlier call, which is released. */
int last_run_read(struct store *store, const char *state, const char *identity,
                  const struct sweep_shape *shape, struct last_run *last);
void last_run_release(struct last_run *last);

/* Whether the run can go on if its data is still there. */
bool last_run_is_open(const struct last_run *last);

/* Whether it ended at a limit that the job has not raised, and the job makes the same model of that
 * end, so that there is nothing to go on for. */
bool last_run_is_at_limit(const struct last_run *last, const struct job *job);

enum task {
    TASK_NONE,
    TASK_DECIDE, /* decide whether the last run's model goes live */
    TASK_GO_ON,  /* go on with the last run */
    TASK_TRAIN,  /* train in a new run */
};

/* The next task if the data has this fingerprint now. */
enum task task_next(const struct last_run *last, const char *data);

/* The evaluations of the job's last run that started from zero and has a model; 0 if there is no
 * such run. */
int past_cold_evaluations(struct store *store, const char *identity, int64_t *evaluations);

#endif
