#include "coordinator/status/eta.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"

#define LOG_PAUSE_LEAST_NS (5 * NS_PER_S)
#define LOG_PAUSE_MOST_NS (600 * NS_PER_S)
#define LOG_PAUSE_SHARE 10 /* of the time so far */
#define WINDOW_SECONDS 5.0

/* Complete evaluations, and the done part of the one that runs; while Downpour runs, minibatches.
 */
static double evaluations_done(const struct coordinator_view *view) {
    if (view->downpour.running)
        return (double)(view->downpour.done + view->downpour.redone);
    if (!view->evaluations || !view->evaluation.chunks)
        return 0;
    assert(view->evaluation.counted <= view->evaluation.chunks);
    return (double)(view->evaluations - 1) +
           (double)view->evaluation.counted / view->evaluation.chunks;
}

/* Notes the two moments that the rate is measured between. They begin anew when the run went back
 * to a checkpoint, or from minibatches on to evaluations of all rows. */
static void note_evaluations(struct eta *eta, bool of_minibatches, double done, double seconds) {
    if (!eta->noted || of_minibatches != eta->of_minibatches || done < eta->newer.evaluations) {
        eta->noted = true;
        eta->of_minibatches = of_minibatches;
        eta->older.seconds = eta->newer.seconds = seconds;
        eta->older.evaluations = eta->newer.evaluations = done;
    } else if (seconds - eta->newer.seconds > WINDOW_SECONDS) {
        eta->older = eta->newer;
        eta->newer.seconds = seconds;
        eta->newer.evaluations = done;
    }
    assert(eta->older.seconds <= eta->newer.seconds);
    assert(eta->older.evaluations <= eta->newer.evaluations);
}

/* Complete epochs, and the done part of the one under way. */
static double epochs_done(const struct downpour_view *downpour) {
    double part =
        downpour->minibatches ? (double)downpour->minibatch / (double)downpour->minibatches : 0;
    return (double)downpour->epoch + part;
}

/* Before PHASE_RUNNING nothing is noted: what a checkpoint or a journal brings back was not done in
 * these seconds. */
void eta_note(struct eta *eta, const struct coordinator_view *view, double seconds) {
    double epochs = epochs_done(&view->downpour);
    if (view->phase < PHASE_RUNNING) {
        eta->noted = eta->epochs_begun = false;
        return;
    }
    note_evaluations(eta, view->downpour.running, evaluations_done(view), seconds);
    if (view->downpour.running && (!eta->epochs_begun || epochs < eta->epochs_first)) {
        eta->epochs_begun = true;
        eta->epochs_seconds = seconds;
        eta->epochs_first = epochs;
    }
    if (view->started && (!eta->begun || view->step < eta->step)) {
        eta->begun = true;
        eta->seconds = seconds;
        eta->gradient_max = view->gradient_max;
        eta->step = view->step;
    }
}

double eta_rate(const struct eta *eta, const struct coordinator_view *view, double seconds) {
    double elapsed = seconds - eta->older.seconds;
    if (!eta->noted || !(elapsed > 0))
        return NAN;
    return (evaluations_done(view) - eta->older.evaluations) / elapsed;
}

/* The gradient is taken to fall by the same factor every second. fmin() ignores a NaN. */
double eta_seconds_left(const struct eta *eta, const struct coordinator_view *view, double seconds,
                        double seconds_max) {
    const struct downpour_view *downpour = &view->downpour;
    double elapsed = seconds - eta->seconds, left = NAN;
    if (eta->begun && view->step >= eta->step + 2 && elapsed > 0) {
        double fallen = log(eta->gradient_max / view->gradient_max);
        double to_fall = log(view->gradient_max / view->gradient_tolerance);
        double steps_left = fmax((double)view->steps_max - (double)view->step, 0);
        if (fallen > 0 && isfinite(to_fall))
            left = elapsed * fmax(to_fall, 0) / fallen;
        left = fmin(left, elapsed * steps_left / (double)(view->step - eta->step));
    }
    if (downpour->running && downpour->alone) { /* as if each epoch took as long as those so far */
        double done = epochs_done(downpour), fresh = done - eta->epochs_first;
        left = eta->epochs_begun && fresh > 0
                   ? (seconds - eta->epochs_seconds) * ((double)downpour->epochs - done) / fresh
                   : NAN;
    }
    return isfinite(seconds_max) ? fmin(left, fmax(seconds_max - seconds, 0)) : left;
}

int64_t eta_log_pause_ns(int64_t so_far_ns) {
    int64_t pause_ns = so_far_ns / LOG_PAUSE_SHARE;
    return pause_ns < LOG_PAUSE_LEAST_NS  ? LOG_PAUSE_LEAST_NS
           : pause_ns > LOG_PAUSE_MOST_NS ? LOG_PAUSE_MOST_NS
                                          : pause_ns;
}

/* ---- counters ---- */

static void counter_add(uint64_t *total, uint64_t before, uint64_t now) {
    *total += now > before ? now - before : 0;
}

void counters_note(struct counters *counters, const struct coordinator_view *view) {
    if (counters->last.known) {
        counter_add(&counters->evaluations, counters->last.evaluations, view->evaluations);
        counter_add(&counters->minibatches, counters->last.minibatches, view->downpour.done);
        for (unsigned i = 0; i < SAFEGUARDS; i++)
            counter_add(&counters->safeguards[i], counters->last.safeguards[i],
                        view->safeguards[i]);
    }
    counters->last.known = true;
    counters->last.evaluations = view->evaluations;
    counters->last.minibatches = view->downpour.done;
    memcpy(counters->last.safeguards, view->safeguards, sizeof counters->last.safeguards);
}
