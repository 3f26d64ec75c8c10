/* Steps over a working set: doc/OPTIMIZERS.md, "L1".
 *
 * A step is: the shards list parameters (working_begin), second derivatives by the columns that are
 * chosen (working_listed), a shard solves the quadratic of them (working_evaluated), and trials
 * along what it found (working_solved), which the line search of L-BFGS shortens. Pairs are formed
 * as ever, so a quasi-Newton step can follow any of them. Nothing is counted before the step is
 * there: a checkpoint that is taken meanwhile begins the same step again, with the same draws. */
#include <assert.h>
#include <math.h>

#include "optimizer/lbfgs_internal.h"

static enum optimizer_want measure(struct lbfgs *o, enum working_stage stage,
                                   enum lbfgs_measuring what) {
    o->working.stage = stage;
    o->measuring = what;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

bool working_runs(const struct lbfgs *o) {
    return working_due(&o->working, &o->preconditioner, &o->settings.preconditioner, o->moving);
}

enum optimizer_want working_begin(struct lbfgs *o, struct bytes *program) {
    assert(o->started && lbfgs_has_orthants(o));
    programs_acceptance(o, program);
    programs_list(o, program, working_limit(&o->working, &o->settings.preconditioner, o->moving));
    return measure(o, WORKING_LISTING, MEASURING_LIST);
}

/* Another step, where this one is of no use. */
static enum optimizer_want give_up(struct lbfgs *o, struct bytes *program) {
    working_failed(&o->working);
    lbfgs_fire(o, SAFEGUARD_WORKING_SET_LEFT);
    return lbfgs_step_from(o, program);
}

enum optimizer_want working_listed(struct lbfgs *o, const struct listed *listed, uint32_t count,
                                   struct bytes *program) {
    uint32_t limit = working_limit(&o->working, &o->settings.preconditioner, o->moving);
    assert(o->working.stage == WORKING_LISTING && !o->accepted);
    working_choose(&o->working, listed, count, limit);
    if (!o->working.count)
        return give_up(o, program);
    if (working_is_dear(&o->working, &o->preconditioner, &o->settings.preconditioner)) {
        o->working.stage = WORKING_NONE;
        return lbfgs_step_from(o, program);
    }
    program_return(program);
    o->working.stage = WORKING_CURVATURE;
    return OPTIMIZER_CURVATURE;
}

void working_request(const struct lbfgs *o, struct optimizer_request *request) {
    assert(o->working.stage == WORKING_CURVATURE);
    request->parts =
        (struct evaluation_parts){.items = {{EVALUATION_LISTED, 0, o->data.chunks}}, .count = 1};
    request->sampling =
        working_sampling(&o->working, &o->preconditioner, &o->settings.preconditioner);
    request->weight_count = working_weights(&o->working, request->weights);
}

/* If a second derivative was not a number there are no sums. */
enum optimizer_want working_evaluated(struct lbfgs *o, struct bytes *program) {
    assert(o->working.stage == WORKING_CURVATURE);
    if (!isfinite(o->found.score))
        return give_up(o, program);
    programs_solve(o, program);
    return measure(o, WORKING_SOLVING, MEASURING_SOLVE);
}

enum optimizer_want working_solved(struct lbfgs *o, const double *step, struct bytes *program) {
    const struct preconditioner_settings *settings = &o->settings.preconditioner;
    assert(o->working.stage == WORKING_SOLVING);
    preconditioner_counted(&o->preconditioner, settings, o->loss, &o->found);
    working_paid(&o->working, &o->found, preconditioner_price(&o->preconditioner, settings));
    double promise = working_promise(&o->working, step, o->settings.l1);
    if (!(promise < 0))
        return give_up(o, program);
    o->working.stage = WORKING_STEP;
    o->steepest = false;
    o->slope = promise;
    working_scatter(&o->working, step, REGISTER_D, program);
    return lbfgs_search_along(o, 1, program);
}

void working_accepted(struct lbfgs *o, double fall) {
    assert(o->started);
    if (o->working.stage == WORKING_STEP)
        working_stepped(&o->working, o->search.step, o->slope, fall);
    else
        working_passed_over(&o->working);
}

enum optimizer_want working_rejected(struct lbfgs *o, struct bytes *program) {
    assert(o->working.stage == WORKING_STEP);
    return give_up(o, program);
}
