/* Carries out the coordinator's records: rows in the store, lines in the log, and slices of the
 * model for its writer. */
#ifndef DML_COORDINATOR_RUN_RECORDER_H
#define DML_COORDINATOR_RUN_RECORDER_H

#include "base/layout.h"
#include "coordinator/machine/coordinator.h"
#include "coordinator/machine/hosts.h"
#include "coordinator/run/active_bounds.h"
#include "coordinator/run/convergence.h"
#include "coordinator/run/curvature.h"
#include "coordinator/run/kronecker_scaling.h"
#include "model/model.h"
#include "model/readback.h"

/* An event that came, and how often. */
struct recorder_event {
    char text[256];
    int64_t row; /* of the last that was stored */
    uint64_t times;
};

#define RECORDER_EVENTS 16 /* whose repetitions are counted */

struct recorder {
    struct store *store; /* NULL: nothing is recorded */
    int64_t run;
    struct model_writer *writer;          /* set before the model is read */
    struct readback *readback;            /* takes what the writer takes; set before it is read */
    struct curvature_writer *curvature;   /* set before pairs are read */
    double *variance, *sampling, *robust; /* errors of estimates, squared, by the run's elements:
                                             NULL until they come; owned, as the next */
    double *estimate;                     /* restated */
    struct kronecker_scaling *kronecker;  /* how the model comes scaled; or NULL */
    struct scaling_walk walk;             /* begun before the model is read, if it is scaled */
    struct active_bounds active;          /* weights at a bound, if there are any */
    const char **addresses;               /* of the workers, by link; NULL: it has none yet */
    struct hosts *hosts;                  /* that workers are started on, or NULL */
    int64_t first_step_ns;                /* when the first step or epoch was taken; 0: none was */
    int64_t step_logged_ns;               /* when one was last logged; 0: none was */
    char step_unlogged[512];              /* the line of the last one, if it was left out */
    struct recorder_event events[RECORDER_EVENTS];
    uint32_t events_next; /* which of them gives way to another */
    int64_t durable_ms;   /* wall clock of the last durable step here; 0: none yet */
};

/* Takes one record; answers the first error. */
int recorder_take(struct recorder *recorder, const struct coordinator *coordinator,
                  const struct output *output, const struct record *record);

/* By what active bounds are found. */
struct active_bounds_settings recorder_bounds(const struct coordinator_settings *settings);

/* Records the hosts whose state has changed, and tells which are set aside or used again. */
int recorder_hosts(struct recorder *recorder);

/* Forgets errors of estimates: of a reading that a lost shard broke off. */
void recorder_drop_errors(struct recorder *recorder);

/* After the last record: logs the last step, if its line was left out. */
void recorder_finish(struct recorder *recorder);

#endif
