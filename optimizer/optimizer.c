#include "optimizer/optimizer.h"

#include <assert.h>

static const struct optimizer_row *const rows[] = {&downpour_row, &lbfgs_row};

/* The place of the row in force, and its state. */
static unsigned row_in_force(const struct optimizer *o) {
    return downpour_runs(&o->downpour) ? 0 : 1;
}

/* That of a run that goes on from what is stored: Downpour may have been closing. */
static unsigned row_to_resume(const struct optimizer *o) {
    return o->downpour.stage != DOWNPOUR_OVER ? 0 : 1;
}

static void *state_of(struct optimizer *o, unsigned row) {
    assert(row < sizeof rows / sizeof rows[0]);
    return row == 0 ? (void *)&o->downpour : (void *)&o->lbfgs;
}

void optimizer_init(struct optimizer *o, const struct downpour_settings *downpour,
                    const struct optimizer_settings *settings, const struct optimizer_data *data) {
    *o = (struct optimizer){.loading = false};
    downpour_init(&o->downpour, downpour, settings, data);
    lbfgs_init(&o->lbfgs, settings, data);
    assert(data->chunks > 0 && !o->loading);
}

/* ---- from row to row ---- */

/* Takes what only this table understands out of a request, so that it is one for the driver. */
static void settle(struct optimizer *o, struct optimizer_request *request) {
    if (request->want == OPTIMIZER_HAND_OVER) {
        assert(!downpour_runs(&o->downpour) && !o->lbfgs.started);
        o->lbfgs.closes = request->closes;
        o->lbfgs.scaled = request->scaled;
        lbfgs_row.begin(&o->lbfgs, request);
    } else if (request->want == OPTIMIZER_FINISH && request->closes) {
        o->lbfgs.reason = request->closes;
    }
    assert(request->want != OPTIMIZER_FINISH || o->lbfgs.reason != REASON_NONE);
    assert(request->want != OPTIMIZER_HAND_OVER);
}

static void load_or_begin(struct optimizer *o, struct optimizer_request *request) {
    assert(o->loaded <= o->to_load);
    if (o->loaded == o->to_load) {
        /* L-BFGS may have measured, or ended, where Downpour was closing. */
        unsigned row = row_to_resume(o);
        o->loading = false;
        if (row == 0) {
            struct optimizer_settings settings = o->lbfgs.settings;
            struct optimizer_data data = o->lbfgs.data;
            lbfgs_init(&o->lbfgs, &settings, &data);
        }
        rows[row]->begin(state_of(o, row), request);
        settle(o, request);
        return;
    }
    o->loading = true;
    request->want = OPTIMIZER_LOAD;
    request->pair = o->loaded;
    lbfgs_load(&o->lbfgs, request->program);
}

void optimizer_begin(struct optimizer *o, uint32_t pairs, struct optimizer_request *request) {
    o->loaded = 0;
    o->to_load = pairs;
    load_or_begin(o, request);
}

/* If Downpour goes on later, its bounds must follow from its last minibatch: where L-BFGS measures
 * the end of it, x is none of its points. */
void optimizer_evaluated(struct optimizer *o, const struct evaluation_found *found,
                         struct optimizer_request *request) {
    unsigned row = row_in_force(o);
    bool closing = o->downpour.closing;
    assert(!o->loading);
    rows[row]->evaluated(state_of(o, row), found, request);
    request->accepted &= !closing;
    settle(o, request);
}

void optimizer_measured(struct optimizer *o, const double *scalars,
                        struct optimizer_request *request) {
    unsigned row = row_in_force(o);
    bool closing = o->downpour.closing;
    assert(!o->loading || o->loaded < o->to_load);
    if (o->loading) {
        lbfgs_loaded(&o->lbfgs, scalars, o->loaded++);
        load_or_begin(o, request);
        return;
    }
    rows[row]->measured(state_of(o, row), scalars, request);
    request->accepted &= !closing;
    settle(o, request);
}

/* Until x is measured Downpour answers, also while it closes. Where L-BFGS takes over x has no loss
 * yet, but a run that is cancelled there may go on from it. */
enum optimizer_end optimizer_end(struct optimizer *o, enum reason reason,
                                 struct optimizer_request *request) {
    assert(reason != REASON_NONE && reason < REASONS);
    bool keeps_x = o->downpour.done && reason == REASON_CANCELLED;
    unsigned row = o->lbfgs.started ? 1 : row_to_resume(o);
    enum optimizer_end end = rows[row]->end(state_of(o, row), reason, request);
    if (end == END_TOO_EARLY && keeps_x) {
        request->want = OPTIMIZER_FINISH;
        request->closes = reason;
        end = END_REQUESTED;
    }
    if (end == END_REQUESTED)
        settle(o, request);
    return end;
}

void optimizer_cancel(struct optimizer *o) {
    o->lbfgs.reason = REASON_CANCELLED;
}

/* ---- what outlives a process ---- */

struct optimizer_checkpoint optimizer_checkpoint(const struct optimizer *o) {
    struct optimizer_checkpoint checkpoint = {.best = false};
    if (row_to_resume(o) == 0)
        downpour_row.checkpoint(&o->downpour, &checkpoint);
    else
        lbfgs_row.checkpoint(&o->lbfgs, &checkpoint);
    assert(checkpoint.pairs <= HISTORY_MAX);
    return checkpoint;
}

void optimizer_serialize(struct codec *codec, struct optimizer *o) {
    for (unsigned row = 0; row < sizeof rows / sizeof rows[0]; row++)
        rows[row]->serialize(codec, state_of(o, row));
}

/* ---- what it answers ---- */

bool optimizer_is_brief(const struct optimizer *o) {
    return rows[row_in_force(o)]->brief;
}

bool optimizer_roams(const struct optimizer *o) {
    return o->downpour.stage != DOWNPOUR_OVER;
}

bool optimizer_uses_holdout(const struct optimizer *o) {
    const struct downpour_settings *downpour = &o->downpour.settings;
    return o->lbfgs.settings.patience || (downpour->epochs && downpour->measures);
}

struct optimizer_progress optimizer_progress(const struct optimizer *o) {
    return (struct optimizer_progress){.epochs = o->downpour.epoch,
                                       .step = o->lbfgs.step,
                                       .checkpoint = o->downpour.done + o->lbfgs.step};
}

enum reason optimizer_reason(const struct optimizer *o) {
    return o->lbfgs.reason;
}
