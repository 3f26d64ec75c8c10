/* Steps over a working set: doc/OPTIMIZERS.md, "L1".
 *
 * A step is: the shards list parameters (working_set_begin), second derivatives by the columns that
 * are chosen (list_measured), a shard solves the quadratic of them (working_set_evaluated), and
 * trials along what it found (take_step), which the line search of L-BFGS shortens. Pairs are
 * formed as ever, so a quasi-Newton step can follow any of them. Nothing is counted before the step
 * is there: a checkpoint that is taken meanwhile begins the same step again, with the same draws.
 */
#include <assert.h>
#include <math.h>

#include "optimizer/lbfgs_phase.h"

static enum optimizer_want measure(struct lbfgs *o, enum working_stage stage,
                                   enum lbfgs_measuring what) {
    o->working.stage = stage;
    return lbfgs_measure(o, what);
}

static bool working_set_due(const struct lbfgs *o) {
    return working_due(&o->working, &o->preconditioner, &o->settings.preconditioner, o->moving);
}

static enum optimizer_want working_set_begin(struct lbfgs *o, struct bytes *program) {
    assert(o->started && settings_boxed(&o->settings));
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

static enum optimizer_want list_measured(struct lbfgs *o, const double *scalars,
                                         struct optimizer_request *request) {
    struct bytes *program = request->program;
    (void)scalars; /* a list has none */
    uint32_t limit = working_limit(&o->working, &o->settings.preconditioner, o->moving);
    assert(o->working.stage == WORKING_LISTING && !o->accepted);
    working_choose(&o->working, request->listed, request->listed_count, limit);
    if (!o->working.count)
        return give_up(o, program);
    if (working_is_too_costly(&o->working, &o->preconditioner, &o->settings.preconditioner)) {
        o->working.stage = WORKING_NONE;
        return lbfgs_step_from(o, program);
    }
    program_return(program);
    o->working.stage = WORKING_CURVATURE;
    return OPTIMIZER_CURVATURE;
}

static bool working_set_evaluates(const struct lbfgs *o) {
    return o->working.stage == WORKING_CURVATURE;
}

static void working_set_request(const struct lbfgs *o, struct optimizer_request *request) {
    assert(o->working.stage == WORKING_CURVATURE);
    lbfgs_request_hessian(o, HESSIAN_LISTED, request);
    request->sampling =
        working_sampling(&o->working, &o->preconditioner, &o->settings.preconditioner);
    request->weight_count = working_weights(&o->working, request->weights);
}

/* If a second derivative was not a number there are no sums. */
static enum optimizer_want working_set_evaluated(struct lbfgs *o,
                                                 const struct evaluation_found *found,
                                                 struct optimizer_request *request) {
    assert(o->working.stage == WORKING_CURVATURE);
    lbfgs_take_curvature(o, found, request);
    if (!isfinite(o->found.score))
        return give_up(o, request->program);
    programs_solve(o, request->program);
    return measure(o, WORKING_SOLVING, MEASURING_SOLVE);
}

static enum optimizer_want take_step(struct lbfgs *o, const double *step, struct bytes *program) {
    const struct preconditioner_settings *settings = &o->settings.preconditioner;
    assert(o->working.stage == WORKING_SOLVING);
    preconditioner_counted(&o->preconditioner, settings, o->loss, &o->found);
    working_paid(&o->working, &o->found, preconditioner_cost(&o->preconditioner, settings));
    double promise = working_promise(&o->working, step, o->settings.l1);
    if (!(promise < 0))
        return give_up(o, program);
    o->working.stage = WORKING_STEP;
    o->steepest = false;
    o->slope = promise;
    working_scatter(&o->working, step, REGISTER_D, program);
    return lbfgs_search_along(o, 1, program);
}

static enum optimizer_want step_measured(struct lbfgs *o, const double *scalars,
                                         struct optimizer_request *request) {
    enum optimizer_want want = take_step(o, scalars, request->program);
    const struct preconditioner *p = &o->preconditioner;
    report_event(&request->report, "working set",
                 "step %llu: %u parameters, curvature of %.0f of %llu rows, about %.3g passes",
                 (unsigned long long)o->step, o->working.count, p->found.rows,
                 (unsigned long long)o->data.rows,
                 preconditioner_cost(p, &o->settings.preconditioner));
    return want;
}

static enum linesearch_answer working_set_check_trial(struct lbfgs *o, const struct measured *m,
                                                      bool finite) {
    return convex_search_next(&o->search, finite ? m->loss : NAN);
}

static enum optimizer_want working_set_failed(struct lbfgs *o, enum safeguard safeguard,
                                              struct bytes *program) {
    (void)safeguard; /* a working set has one of its own */
    assert(o->working.stage == WORKING_STEP);
    return give_up(o, program);
}

static bool working_set_steps(const struct lbfgs *o) {
    return o->working.stage == WORKING_STEP;
}

static void working_set_accepted(struct lbfgs *o, double fall) {
    assert(o->started);
    if (working_set_steps(o))
        working_stepped(&o->working, o->search.step, o->slope, fall);
    else
        working_passed_over(&o->working);
}

static void working_set_resume(struct lbfgs *o) {
    o->working.stage = WORKING_NONE;
}

static void working_set_serialize(struct codec *codec, struct lbfgs *o) {
    working_serialize(codec, &o->working);
}

const struct phase working_phase = {
    .due = working_set_due,
    .begin = working_set_begin,
    .evaluates = working_set_evaluates,
    .request = working_set_request,
    .evaluated = working_set_evaluated,
    .measured = {[MEASURING_LIST] = list_measured, [MEASURING_SOLVE] = step_measured},
    .steps = working_set_steps,
    .leaves_orthant = true,
    .check_trial = working_set_check_trial,
    .failed = working_set_failed,
    .follows = lbfgs_end_or_go_on,
    .accepted = working_set_accepted,
    .resume = working_set_resume,
    .serialize = working_set_serialize,
};
