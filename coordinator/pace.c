#include "coordinator/pace.h"

#include <math.h>

#define WINDOW_SECONDS 5.0

/* Evaluations made, the running one in part. */
static double evaluations_done(const struct coordinator *c) {
    if (!c->evaluations || !c->plan.chunks)
        return 0;
    return (double)(c->evaluations - 1) + (double)c->plan.counted_chunks / c->plan.chunks;
}

void pace_note(struct pace *pace, const struct coordinator *c, double seconds) {
    const struct optimizer *o = &c->optimizer;
    double done = evaluations_done(c);
    pace->seconds = seconds;
    /* After a step back in the run, the past says nothing. */
    if (!pace->noted || done < pace->newer.evaluations) {
        pace->noted = true;
        pace->older.seconds = pace->newer.seconds = seconds;
        pace->older.evaluations = pace->newer.evaluations = done;
    } else if (seconds - pace->newer.seconds > WINDOW_SECONDS) {
        pace->older = pace->newer;
        pace->newer.seconds = seconds;
        pace->newer.evaluations = done;
    }
    if (o->started && (!pace->begun || o->step < pace->first_step)) {
        pace->begun = true;
        pace->first_seconds = seconds;
        pace->first_gradient = o->gradient_max;
        pace->first_step = o->step;
    }
}

double pace_rate(const struct pace *pace, const struct coordinator *c) {
    double passed = pace->seconds - pace->older.seconds;
    return passed > 0 ? (evaluations_done(c) - pace->older.evaluations) / passed : NAN;
}

double pace_left(const struct pace *pace, const struct coordinator *c, double seconds_max) {
    const struct optimizer *o = &c->optimizer;
    double passed = pace->seconds - pace->first_seconds;
    double steps = (double)(o->step - pace->first_step);
    if (!pace->begun || !(passed > 0) || steps < 2)
        return NAN;
    double left = INFINITY;
    if (o->settings.gradient_tolerance > 0) {
        double fallen = log(pace->first_gradient / o->gradient_max);
        double to_fall = log(o->gradient_max / o->settings.gradient_tolerance);
        if (!(fallen > 0) || !isfinite(to_fall))
            return NAN;
        left = fmax(to_fall, 0) / fallen * passed;
    }
    double to_step_limit = ((double)o->settings.steps_max - (double)o->step) / steps * passed;
    return fmax(fmin(left, fmin(to_step_limit, seconds_max - pace->seconds)), 0);
}
