/* Records of what steering did: evaluations and steps. They are
 * for people; a run does not go on from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/steering_parts.h"

void recording_evaluation(const struct coordinator *c, uint64_t step, double step_length,
                          const char *outcome, int64_t now_ns, struct output *out) {
    struct record *record = output_add(out, RECORD_EVALUATION);
    bool exceeded = c->dispatch.evaluation.exceeded || c->steering->want == OPTIMIZER_CURVATURE;
    record->evaluation = (struct store_evaluation){
        .evaluation = c->dispatch.evaluations,
        .attempt = c->roster.attempt,
        .step = step,
        .step_length = step_length,
        .loss = exceeded ? NAN : c->steering->optimizer.trial_loss,
        .slope = exceeded ? NAN : c->steering->optimizer.trial_slope,
        .examples = c->settings.data->rows,
        .seconds = (double)(now_ns - c->dispatch.evaluation.started_ns) / 1e9,
        .outcome = outcome,
    };
}

/* Names the safeguards that fired since the last step, and writes an event for each. */
static void describe_safeguards(struct coordinator *c, char *text, size_t size,
                                struct output *out) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < SAFEGUARDS; i++) {
        if (!(c->steering->optimizer.fired >> i & 1))
            continue;
        output_event(out, "safeguard", "step %llu: %s",
                     (unsigned long long)c->steering->optimizer.step, safeguard_text(i));
        if (length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? "; " : "",
                                       safeguard_text(i));
    }
    c->steering->optimizer.fired = 0;
}

void recording_step(struct coordinator *c, struct output *out) {
    const struct optimizer *o = &c->steering->optimizer;
    /* The note is made beside the record: the events that go with it are added first, and adding a
     * record may move those before it. */
    char note[sizeof((struct record *)0)->note];
    describe_safeguards(c, note, sizeof note, out);
    struct record *record = output_add(out, RECORD_STEP);
    memcpy(record->note, note, sizeof note);
    record->step = (struct store_step){
        .step = o->step,
        .loss = o->loss,
        .gradient_max = o->gradient_max,
        .step_length = o->last_step_length,
        .trials = o->last_trials,
        .history = o->history.pairs,
        .holdout_loss = o->settings.patience ? o->holdout.loss : NAN,
        .holdout_accuracy = o->settings.patience ? o->holdout.accuracy : NAN,
    };
}

/* How long an epoch of so many minibatches took. One that was taken up in its middle counts as if
 * its earlier minibatches had taken as long each as those since; 0 if there is none since. */
static double epoch_seconds(const struct coordinator *c, uint64_t minibatches, int64_t now_ns) {
    const struct steering *s = c->steering;
    uint64_t since = minibatches - s->epoch_taken_up;
    double seconds = (double)(now_ns - s->epoch_started_ns) / 1e9;
    return since ? seconds * ((double)minibatches / (double)since) : 0;
}

void recording_epoch(const struct coordinator *c, int64_t now_ns, struct output *out) {
    const struct downpour *downpour = &c->steering->downpour;
    struct downpour_data data = pouring_data(&c->settings);
    uint64_t minibatches = downpour_minibatches(&c->settings.downpour, &data, downpour->epoch - 1);
    struct record *record = output_add(out, RECORD_EPOCH);
    record->epoch = (struct store_epoch){
        .epoch = downpour->epoch,
        .minibatches = minibatches,
        .rows = downpour->rows,
        .loss = downpour_loss(downpour, &data),
        .holdout_loss = c->settings.downpour.measures ? downpour->holdout.loss : NAN,
        .holdout_accuracy = c->settings.downpour.measures ? downpour->holdout.accuracy : NAN,
        .seconds = epoch_seconds(c, minibatches, now_ns),
    };
}
