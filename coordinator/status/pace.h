/* How fast a run goes: evaluations a second of late, and a guess at the time left. Reads no clock.
 */
#ifndef DML_COORDINATOR_STATUS_PACE_H
#define DML_COORDINATOR_STATUS_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/coordinator.h"

/* Zeros are a good start. */
struct pace {
    /* Two moments in the past, so that the rate is one over the last 5 to 10 s. */
    bool noted;
    struct {
        double seconds, evaluations;
    } older, newer;
    /* The first accepted point seen, from which the gradient's fall is measured. */
    bool begun;
    double seconds, gradient_max;
    uint64_t step;
};

/* Looks at the run, `seconds` after it began; as often as one likes. */
void pace_note(struct pace *pace, const struct coordinator_view *view, double seconds);

/* Evaluations a second, parts of the running one counted; NaN while not known. */
double pace_rate(const struct pace *pace, const struct coordinator_view *view, double seconds);

/* Seconds until the gradient has fallen to its tolerance at the pace at which its logarithm fell
 * until now, or until a limit on steps or on seconds if that comes first. NaN if nothing can be
 * said yet. */
double pace_seconds_left(const struct pace *pace, const struct coordinator_view *view,
                         double seconds, double seconds_max);

/* How long after a logged step the next one is: 5 s, then a tenth of the time since the first step,
 * at most 10 minutes. A night has some hundred lines. With --verbose all steps are logged. */
int64_t pace_log_pause_ns(int64_t so_far_ns);

#endif
