#include "coordinator/status/eta.h"

#include <math.h>

#include "base/clock.h"

#define LOG_PAUSE_LEAST_NS (5 * NS_PER_S)
#define LOG_PAUSE_MOST_NS (600 * NS_PER_S)
#define LOG_PAUSE_SHARE 10 /* of the time so far */
#define WINDOW_SECONDS 5.0

/* Evaluations made, the running one in part; while Downpour runs, minibatches. */
static double evaluations_done(const struct coordinator_view *view) {
    if (view->downpour.running)
        return (double)(view->downpour.done + view->downpour.redone);
    if (!view->evaluations || !view->evaluation.chunks)
        return 0;
    return (double)(view->evaluations - 1) +
           (double)view->evaluation.counted / view->evaluation.chunks;
}

/* If the run went back to a checkpoint, or from minibatches on to evaluations of all rows, the rate
 * is measured anew from there. */
static void note_evaluations(struct pace *pace, bool pours, double done, double seconds) {
    if (!pace->noted || pours != pace->pours || done < pace->newer.evaluations) {
        pace->noted = true;
        pace->pours = pours;
        pace->older.seconds = pace->newer.seconds = seconds;
        pace->older.evaluations = pace->newer.evaluations = done;
    } else if (seconds - pace->newer.seconds > WINDOW_SECONDS) {
        pace->older = pace->newer;
        pace->newer.seconds = seconds;
        pace->newer.evaluations = done;
    }
}

/* Epochs that are through, the one under way in part. */
static double epochs_done(const struct downpour_view *downpour) {
    double part =
        downpour->minibatches ? (double)downpour->minibatch / (double)downpour->minibatches : 0;
    return (double)downpour->epoch + part;
}

static void note_epochs(struct pace *pace, double done, double seconds) {
    if (pace->poured && done >= pace->pouring_epochs)
        return;
    pace->poured = true;
    pace->pouring_seconds = seconds;
    pace->pouring_epochs = done;
}

/* What a checkpoint or a journal brings back was not done in these seconds. */
static bool is_taking_up(const struct coordinator_view *view) {
    return view->phase < PHASE_RUNNING;
}

void pace_note(struct pace *pace, const struct coordinator_view *view, double seconds) {
    if (is_taking_up(view)) {
        pace->noted = pace->poured = false;
        return;
    }
    note_evaluations(pace, view->downpour.running, evaluations_done(view), seconds);
    if (view->downpour.running)
        note_epochs(pace, epochs_done(&view->downpour), seconds);
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

/* As if each epoch took as long as those so far. */
static double until_last_epoch(const struct pace *pace, const struct downpour_view *downpour,
                               double seconds) {
    double done = epochs_done(downpour) - pace->pouring_epochs;
    double left = (double)downpour->epochs - epochs_done(downpour);
    return pace->poured && done > 0 ? (seconds - pace->pouring_seconds) * left / done : NAN;
}

double pace_seconds_left(const struct pace *pace, const struct coordinator_view *view,
                         double seconds, double seconds_max) {
    double elapsed = seconds - pace->seconds, left = NAN;
    if (pace->begun && view->step >= pace->step + 2 && elapsed > 0)
        left = fmin(until_tolerance(pace, view, elapsed), until_step_limit(pace, view, elapsed));
    if (view->downpour.running && view->downpour.alone)
        left = until_last_epoch(pace, &view->downpour, seconds);
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
