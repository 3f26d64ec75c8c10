/* What the store knows of a sweep: how it was begun, and what became of its members. */
#ifndef DML_COORDINATOR_SWEEP_RECORD_H
#define DML_COORDINATOR_SWEEP_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/sweep/plan.h"
#include "store/store.h"

/* Texts are owned. */
struct sweep_record {
    int64_t sweep; /* 0: there is none */
    char *settings, *data, *judged, *sources, *start_model, *result;
    int64_t ended_ms; /* 0: it has not ended */
    int64_t winner;
};

/* Reads the newest sweep of the job with this job_identity(). *record is zeroed, or that of an
 * earlier call, which is released. */
int sweep_record_read(struct store *store, const char *identity, struct sweep_record *record);
void sweep_record_release(struct sweep_record *record);

/* The members of a sweep and, by member, the results and the settings of their runs. */
struct sweep_runs {
    uint32_t count;
    struct sweep_member *members;
    json_t **results; /* NULL: not done */
    json_t **settings;
    bool *removed; /* the member's model was removed */
};

/* The limits of the job now, which may be higher than those that members ended at. */
struct sweep_limits {
    const json_t *settings; /* job_settings() */
    const char *state;      /* the folder with the checkpoints */
};

/* With `limits`, members are open again that ended at a limit which is higher now, if their
 * checkpoints are there. */
int sweep_runs_read(struct store *store, int64_t sweep, const struct sweep_shape *shape,
                    const struct sweep_limits *limits, struct sweep_runs *runs);
void sweep_runs_release(struct sweep_runs *runs);

/* Whether the sweep can go on: it has begun a member, none has failed, and it has not ended or a
 * member is open again. */
bool sweep_is_open(const struct sweep_record *record, const struct sweep_shape *shape,
                   const struct sweep_runs *runs);

#endif
