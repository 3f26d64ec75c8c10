#include "coordinator/status/figures.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

const char *member_text(const json_t *object, const char *member) {
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "-";
}

long long member_count(const json_t *object, const char *member) {
    return (long long)json_integer_value(json_object_get(object, member));
}

double member_number(const json_t *object, const char *member) {
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

json_t *epochs_status_json(const struct downpour_view *view, double speed) {
    if (!view->epochs)
        return json_null();
    bool measured = view->measures && view->epoch;
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:b, s:o}",
                     "running", view->running, "epochs", (json_int_t)view->epochs, "epoch",
                     (json_int_t)view->epoch, "minibatches", (json_int_t)view->minibatches,
                     "minibatch", (json_int_t)view->minibatch, "done", (json_int_t)view->done,
                     "redone", (json_int_t)view->redone, "rate", view->rate, "loss",
                     number_json(view->done ? view->loss : NAN), "holdout_loss",
                     number_json(measured ? view->holdout.loss : NAN), "holdout_accuracy",
                     number_json(measured ? view->holdout.accuracy : NAN), "best_epoch",
                     view->best_epoch ? json_integer((json_int_t)view->best_epoch) : json_null(),
                     "stopped_early", view->stopped_early, "minibatches_per_second",
                     number_json(view->running ? speed : NAN));
}

struct stored {
    struct store_epoch last;
    uint64_t done;
};

static int take_epoch(void *context, const struct store_epoch *epoch) {
    struct stored *stored = context;
    stored->last = *epoch;
    stored->done += epoch->minibatches;
    return 0;
}

int epochs_stored_json(struct store *store, int64_t run, const json_t *settings,
                       json_t **downpour) {
    struct stored stored = {0};
    *downpour = json_null();
    int code = store_downpour_epochs(store, run, 0, take_epoch, &stored);
    if (code || !stored.last.epoch)
        return code;
    *downpour = json_pack("{s:b, s:I, s:I, s:I, s:o, s:o, s:o}", "running", false, "epochs",
                          (json_int_t)member_count(settings, "downpour.epochs"), "epoch",
                          (json_int_t)stored.last.epoch, "done", (json_int_t)stored.done, "loss",
                          number_json(stored.last.loss), "holdout_loss",
                          number_json(stored.last.holdout_loss), "holdout_accuracy",
                          number_json(stored.last.holdout_accuracy));
    return 0;
}

json_t *epochs_row_json(const struct store_epoch *epoch, int64_t started_ms) {
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:f, s:I, s:f}", "epoch",
                     (json_int_t)epoch->epoch, "minibatches", (json_int_t)epoch->minibatches,
                     "rows", (json_int_t)epoch->rows, "loss", number_json(epoch->loss),
                     "holdout_loss", number_json(epoch->holdout_loss), "holdout_accuracy",
                     number_json(epoch->holdout_accuracy), "took_seconds", epoch->seconds,
                     "wall_ms", (json_int_t)epoch->wall_ms, "seconds",
                     (double)(epoch->wall_ms - started_ms) / 1e3);
}

/* ", loss 0.3": nothing if there is no such figure. */
static void put_figure(const json_t *object, const char *member, const char *words, FILE *out) {
    const json_t *value = json_object_get(object, member);
    if (json_is_number(value))
        fprintf(out, ", %s %.6g", words, json_number_value(value));
}

static void put_progress(const json_t *downpour, FILE *out) {
    fprintf(out, "epoch %lld of %lld: %lld of %lld minibatches",
            member_count(downpour, "epoch") + 1, member_count(downpour, "epochs"),
            member_count(downpour, "minibatch"), member_count(downpour, "minibatches"));
    if (json_is_number(json_object_get(downpour, "minibatches_per_second")))
        fprintf(out, ", %.4g a second", member_number(downpour, "minibatches_per_second"));
}

char *epochs_line(const json_t *downpour) {
    char *text = NULL;
    size_t length;
    long long through = member_count(downpour, "epoch");
    FILE *out = open_memstream(&text, &length);
    if (!out)
        abort(); /* it fails only without memory */
    if (json_is_true(json_object_get(downpour, "running")))
        put_progress(downpour, out);
    else
        fprintf(out, "%lld epoch%s, %lld minibatches", through, through == 1 ? "" : "s",
                member_count(downpour, "done"));
    put_figure(downpour, "loss", "loss", out);
    put_figure(downpour, "holdout_loss", "holdout", out);
    put_figure(downpour, "holdout_accuracy", "accuracy", out);
    if (json_is_true(json_object_get(downpour, "stopped_early")))
        fputs(", stopped early", out);
    fclose(out);
    return text;
}
