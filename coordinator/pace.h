/* How fast a run goes: evaluations a second of late, and the time left. Reads no clock. */
#ifndef DML_COORDINATOR_PACE_H
#define DML_COORDINATOR_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/coordinator.h"

struct pace {
    bool noted;
    /* Two moments in the past, so that the rate is one over the last 5 to 10 s. */
    struct {
        double seconds, evaluations;
    } older, newer;
    /* The first point seen, from which the gradient's fall is measured. */
    bool begun;
    double first_seconds, first_gradient;
    uint64_t first_step;
    double seconds; /* of the last note */
};

/* Takes note of where the run is, `seconds` after it began. Begin with a zeroed struct. */
void pace_note(struct pace *pace, const struct coordinator *coordinator, double seconds);

/* Evaluations a second, parts of the running one counted; NaN while not known. */
double pace_rate(const struct pace *pace, const struct coordinator *coordinator);

/* Seconds until the run ends: at the pace at which the logarithm of the gradient has fallen until
 * now, or at the limit of steps or of time if that comes first. A guess; NaN if there is none. */
double pace_left(const struct pace *pace, const struct coordinator *coordinator,
                 double seconds_max);

#endif
