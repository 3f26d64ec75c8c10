#include "coordinator/status/pace.h"

#include <math.h>

#include "base/clock.h"

#define LOG_PAUSE_LEAST_NS (5 * NS_PER_S)
#define LOG_PAUSE_MOST_NS (600 * NS_PER_S)
#define LOG_PAUSE_SHARE 10 /* of the time so far */
#define WINDOW_SECONDS 5.0

/* Evaluations made, the running one in part. */
static double evaluations_done(const struct coordinator_view *view) {
    if (!view->evaluations || !view->evaluation.chunks)
        return 0;
    return (double)(view->evaluations - 1) +
           (double)view->evaluation.counted / view->evaluation.chunks;
}

/* If the run went back to a checkpoint, the rate is measured anew from there. */
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

void pace_note(struct pace *pace, const struct coordinator_view *view, double seconds) {
    note_evaluations(pace, evaluations_done(view), seconds);
    if (view->started && (!pace->begun || view->step < pace->step)) {
        pace->begun = true;
        pace->seconds = seconds;
        pace->gradient_max = view->gradient_max;
        pace->step = view->step;
    }
}

double pace_rate(const struct pace *pace, const struct coordinator_view *view, double seconds) {
    double elapsed = seconds - pace->older.seconds;
    if (!pace->noted || !(elapsed > 0))
        return NAN;
    return (evaluations_done(view) - pace->older.evaluations) / elapsed;
}

/* Assumes that the gradient falls by the same factor every second. NaN while it has not fallen. */
static double until_tolerance(const struct pace *pace, const struct coordinator_view *view,
                              double elapsed) {
    double fallen = log(pace->gradient_max / view->gradient_max);
    double to_fall = log(view->gradient_max / view->gradient_tolerance);
    return fallen > 0 && isfinite(to_fall) ? elapsed * fmax(to_fall, 0) / fallen : NAN;
}

static double until_step_limit(const struct pace *pace, const struct coordinator_view *view,
                               double elapsed) {
    double left = (double)view->steps_max - (double)view->step;
    return elapsed * fmax(left, 0) / (double)(view->step - pace->step);
}

double pace_seconds_left(const struct pace *pace, const struct coordinator_view *view,
                         double seconds, double seconds_max) {
    double elapsed = seconds - pace->seconds, left = NAN;
    if (pace->begun && view->step >= pace->step + 2 && elapsed > 0)
        left = fmin(until_tolerance(pace, view, elapsed), until_step_limit(pace, view, elapsed));
    if (isfinite(seconds_max))
        left = fmin(left, fmax(seconds_max - seconds, 0));
    return left; /* fmin() ignores a NaN */
}

int64_t pace_log_pause_ns(int64_t so_far_ns) {
    int64_t pause_ns = so_far_ns / LOG_PAUSE_SHARE;
    return pause_ns < LOG_PAUSE_LEAST_NS  ? LOG_PAUSE_LEAST_NS
           : pause_ns > LOG_PAUSE_MOST_NS ? LOG_PAUSE_MOST_NS
                                          : pause_ns;
}
