/* How fast a run goes: recent evaluations or minibatches a second, and an estimate of the time
 * left. And what it counted since this process began. Reads no clock. */
#ifndef DML_COORDINATOR_STATUS_ETA_H
#define DML_COORDINATOR_STATUS_ETA_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/machine/coordinator.h"

/* Starts as zeros. */
struct eta {
    /* Two moments in the past, so that the rate is that of the last 5 to 10 s. */
    bool noted, of_minibatches; /* what is counted is minibatches, not evaluations */
    struct {
        double seconds, evaluations;
    } older, newer;
    /* The first moment of Downpour seen: epochs that were through, the one under way in part. */
    bool epochs_begun;
    double epochs_seconds, epochs_first;
    /* The first accepted point seen, from which the gradient's fall is measured. */
    bool begun;
    double seconds, gradient_max;
    uint64_t step;
};

/* Notes the state of the run, `seconds` after it began. May be called at any time; while the run is
 * being taken up there is no rate. */
void eta_note(struct eta *eta, const struct coordinator_view *view, double seconds);

/* Evaluations a second, the done part of the running one included; while Downpour runs, minibatches
 * a second. NaN while not known. */
double eta_rate(const struct eta *eta, const struct coordinator_view *view, double seconds);

/* Seconds until the gradient reaches its tolerance, if its logarithm falls as fast as until now; or
 * until the limit on steps or seconds, if that is reached first; of a run that is Downpour alone,
 * until its last epoch is through. NaN if not known yet. */
double eta_seconds_left(const struct eta *eta, const struct coordinator_view *view, double seconds,
                        double seconds_max);

/* The pause between two logged steps: a tenth of the time since the first step, but at least 5 s
 * and at most 10 minutes. So a night has about a hundred lines. With --verbose all steps are
 * logged. */
int64_t eta_log_pause_ns(int64_t so_far_ns);

/* Counts since this process began, which never fall. The coordinator's counts fall when it goes
 * back to a durable step; a monitoring system would take that for a restart of the process. Starts
 * as zeros. */
struct counters {
    uint64_t evaluations, minibatches;
    uint64_t safeguards[SAFEGUARDS];
    struct {
        bool known;
        uint64_t evaluations, minibatches;
        uint64_t safeguards[SAFEGUARDS];
    } last;
};

/* Adds what was counted since the last call. Call it from time to time. */
void counters_note(struct counters *counters, const struct coordinator_view *view);

#endif
