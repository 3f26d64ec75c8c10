#include "coordinator/status/pace.h"

#include <math.h>

#define WINDOW_SECONDS 5.0

/* Evaluations made, the running one in part. */
static double evaluations_done(const struct coordinator *c) {
    if (!c->evaluations || !c->plan.chunks)
        return 0;
    return (double)(c->evaluations - 1) + (double)c->plan.counted_chunks / c->plan.chunks;
}

/* After a step back in the run, the past says nothing. */
static void note_evaluations(struct pace *pace, double done, double seconds) {
    if (!pace->noted || done < pace->newer.evaluations) {
        pace->noted = true;
        pace->older.seconds = pace->newer.seconds = seconds;
        pace->older.evaluations = pace->newer.evaluations = done;
    } else if (seconds - pace->newer.seconds > WINDOW_SECONDS) {
        pace->older = pace->newer;
        pace->newer.seconds = seconds;
        pace->newer.evaluations = done;
    }
}

void pace_note(struct pace *pace, const struct coordinator *c, double seconds) {
    const struct optimizer *o = &c->optimizer;
    note_evaluations(pace, evaluations_done(c), seconds);
    if (o->started && (!pace->begun || o->step < pace->step)) {
        pace->begun = true;
        pace->seconds = seconds;
        pace->gradient_max = o->gradient_max;
        pace->step = o->step;
    }
}

double pace_rate(const struct pace *pace, const struct coordinator *c, double seconds) {
    double elapsed = seconds - pace->older.seconds;
    if (!pace->noted || !(elapsed > 0))
        return NAN;
    return (evaluations_done(c) - pace->older.evaluations) / elapsed;
}

/* The gradient falls by about the same factor every second; NaN while it has not fallen. */
static double until_tolerance(const struct pace *pace, const struct optimizer *o, double elapsed) {
    double fallen = log(pace->gradient_max / o->gradient_max);
    double to_fall = log(o->gradient_max / o->settings.gradient_tolerance);
    return fallen > 0 && isfinite(to_fall) ? elapsed * fmax(to_fall, 0) / fallen : NAN;
}

static double until_step_limit(const struct pace *pace, const struct optimizer *o, double elapsed) {
    double left = (double)o->settings.steps_max - (double)o->step;
    return elapsed * fmax(left, 0) / (double)(o->step - pace->step);
}

double pace_seconds_left(const struct pace *pace, const struct coordinator *c, double seconds,
                         double seconds_max) {
    const struct optimizer *o = &c->optimizer;
    double elapsed = seconds - pace->seconds, left = NAN;
    if (pace->begun && o->step >= pace->step + 2 && elapsed > 0)
        left = fmin(until_tolerance(pace, o, elapsed), until_step_limit(pace, o, elapsed));
    if (isfinite(seconds_max))
        left = fmin(left, fmax(seconds_max - seconds, 0));
    return left; /* fmin() passes over a NaN */
}
