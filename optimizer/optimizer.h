/* The optimizer of a run: the table of rows (row.h), and which of them is in force.
 *
 * Downpour, if there is any, comes first and hands over to L-BFGS; L-BFGS may begin with curvature
 * pairs that are given. doc/OPTIMIZERS.md follows a step and an epoch through the files, and says
 * how to add a row. */
#ifndef DML_OPTIMIZER_OPTIMIZER_H
#define DML_OPTIMIZER_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "optimizer/downpour.h"
#include "optimizer/lbfgs.h"
#include "optimizer/row.h"

struct optimizer {
    struct downpour downpour;
    struct lbfgs lbfgs;
    /* The pairs to begin with; none of this is stored, as a checkpoint has them in its slots. */
    bool loading;
    uint32_t to_load, loaded;
};

void optimizer_init(struct optimizer *optimizer, const struct downpour_settings *downpour,
                    const struct optimizer_settings *settings, const struct optimizer_data *data);

/* ---- its life, call by call; each leaves a request in `request`, whose inputs must be set ---- */

/* Begins with so many given curvature pairs, or goes on from the state that was read. */
void optimizer_begin(struct optimizer *optimizer, uint32_t pairs,
                     struct optimizer_request *request);
void optimizer_evaluated(struct optimizer *optimizer, const struct evaluation_found *found,
                         struct optimizer_request *request);
void optimizer_measured(struct optimizer *optimizer, const double *scalars,
                        struct optimizer_request *request);
/* Ends the run for a reason from outside: at the last accepted point. If a request is left, it
 * takes the place of whatever was under way. */
enum optimizer_end optimizer_end(struct optimizer *optimizer, enum reason reason,
                                 struct optimizer_request *request);
/* The run ends as cancelled, without any request. */
void optimizer_cancel(struct optimizer *optimizer);

/* What a checkpoint must hold that is taken now, and the state that belongs to it. */
struct optimizer_checkpoint optimizer_checkpoint(const struct optimizer *optimizer);
void optimizer_serialize(struct codec *codec, struct optimizer *optimizer);

/* ---- what it answers ---- */

/* Whether evaluations and programs are brief now: see struct optimizer_row. */
bool optimizer_is_brief(const struct optimizer *optimizer);

/* Whether points may lie far apart in what bounds follow from: those of minibatches do. */
bool optimizer_roams(const struct optimizer *optimizer);

/* Whether any evaluation takes the holdout. */
bool optimizer_uses_holdout(const struct optimizer *optimizer);

struct optimizer_progress {
    uint64_t epochs, step; /* of Downpour, that are through; the last accepted one after it */
    uint64_t checkpoint;   /* the number that a checkpoint has: steps of both */
};
struct optimizer_progress optimizer_progress(const struct optimizer *optimizer);

/* REASON_NONE while the run goes on. */
enum reason optimizer_reason(const struct optimizer *optimizer);

#endif
