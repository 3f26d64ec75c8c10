/* What retraining finds done in a state folder, and what that leaves to be done. */
#ifndef DML_COORDINATOR_COMMAND_PAST_H
#define DML_COORDINATOR_COMMAND_PAST_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

/* The newest run of a job. Texts are owned. */
struct last_run {
    int64_t run; /* 0: there is none */
    char *data;  /* fingerprint of what it was trained on */
    char *result;
    bool concluded; /* it has a model */
    bool over;      /* it has ended, and cannot go on */
    bool decided;   /* whether a model of it goes live; an unfinished run may have had one before */
    bool refused;   /* the last decision about it */
    bool has_data;  /* what it was trained on is there still; the caller sets it */
};

/* Reads it into *last, which is zeroed or holds what was read before. The job is known by
 * job_identity(). */
int last_run_read(struct store *store, const char *state, const char *identity,
                  struct last_run *last);
void last_run_release(struct last_run *last);

/* Whether it could go on if its data is there. */
bool last_run_is_open(const struct last_run *last);

enum task {
    TASK_NONE,
    TASK_DECIDE, /* whether the last run's model goes live */
    TASK_GO_ON,  /* with the last run */
    TASK_TRAIN,  /* a new run */
};

/* What comes next, now that the data has this fingerprint. */
enum task task_next(const struct last_run *last, const char *data);

/* The evaluations of the last run of the job that started from zero and came to a model; 0 if there
 * was none. */
int past_cold_evaluations(struct store *store, const char *identity, int64_t *evaluations);

#endif
