/* The errors of estimates, at the end of a run.
 *
 * A run that has converged may still be off by a thousandth of such an error. So P is made anew of
 * all rows, and Newton's steps go on while each brings the gradient down by half: then the
 * estimates are as exact as rounding allows. A run that ends at its limit of steps stays where it
 * is: with a limit of 0 a model that was trained before is measured, and not changed.
 *
 * Then the second derivatives of all rows at x, their inverse on the shard that has the vector, and
 * where robust errors are wanted the products of the scores of all rows. Nothing of these is in a
 * checkpoint: a run that goes back does them again. */
#include <assert.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

#define POLISHED_MAX 8
#define POLISHED_FALL 0.5

/* Where the scalars of its program stand. */
enum { SUMMARY_TRACE, SUMMARY_ALIASED };

static bool summary_awaited(const struct lbfgs *o, enum reason reason) {
    bool full = o->settings.preconditioner.form == PRECONDITION_FULL;
    return o->settings.summary && full && reason_has_model(reason) && !o->summary.found.made;
}

/* Second derivatives at x; t is x. */
static enum optimizer_want ask_information(struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->refreshing);
    o->summary.stage = SUMMARY_INFORMATION;
    programs_acceptance(o, program);
    program_return(program);
    return OPTIMIZER_CURVATURE;
}

static enum optimizer_want summary_conclude(struct lbfgs *o, enum reason reason,
                                            struct bytes *program) {
    assert(o->started && !o->summary.polishing && reason != REASON_NONE);
    o->summary.reason = reason;
    if (o->step >= o->settings.steps_max)
        return ask_information(o, program);
    const struct preconditioner *p = &o->preconditioner;
    /* P of constant second derivatives may be of all rows as it is. */
    if (p->in_force && o->settings.preconditioner.constant &&
        p->sample == o->settings.preconditioner.rows) {
        assert(o->history.preconditioned);
        o->summary.polishing = true;
        return lbfgs_step_from(o, program);
    }
    o->summary.stage = SUMMARY_REFRESH;
    return lbfgs_refresh(o, program);
}

enum optimizer_want summary_refreshed(struct lbfgs *o, struct bytes *program) {
    assert(o->summary.stage == SUMMARY_REFRESH && !o->refreshing);
    o->summary.stage = SUMMARY_STAGE_NONE;
    if (!o->preconditioner.in_force)
        return ask_information(o, program);
    o->summary.polishing = true;
    return lbfgs_step_from(o, program);
}

/* ---- polishing ---- */

static enum linesearch_answer polishing_check_trial(struct lbfgs *o, const struct measured *m,
                                                    bool finite) {
    bool falls = m->max < POLISHED_FALL * o->gradient_max && m->loss <= o->loss + lbfgs_noise(o);
    o->search.trials++;
    return finite && falls ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
}

static enum optimizer_want polishing_failed(struct lbfgs *o, enum safeguard safeguard,
                                            struct bytes *program) {
    (void)safeguard; /* the run has converged: the end of the steps is what was to come */
    assert(o->summary.polishing);
    return ask_information(o, program);
}

static enum optimizer_want polishing_follows(struct lbfgs *o, struct bytes *program) {
    assert(o->summary.polishing && o->summary.reason != REASON_NONE);
    if (o->accepted)
        o->summary.polished++;
    bool goes_on = o->summary.polished < POLISHED_MAX && o->gradient_max > 0 &&
                   o->step < o->settings.steps_max;
    return goes_on ? lbfgs_step_from(o, program) : ask_information(o, program);
}

static bool polishing_steps(const struct lbfgs *o) {
    return o->summary.polishing;
}

const struct phase polishing_phase = {
    .steps = polishing_steps,
    .tries_once = true,
    .check_trial = polishing_check_trial,
    .failed = polishing_failed,
    .follows = polishing_follows,
};

/* ---- the errors ---- */

static enum optimizer_want finish(struct lbfgs *o, struct bytes *program) {
    o->summary.stage = SUMMARY_STAGE_NONE;
    return lbfgs_finish(o, o->summary.reason, program);
}

static bool summary_evaluates(const struct lbfgs *o) {
    return o->summary.stage == SUMMARY_INFORMATION || o->summary.stage == SUMMARY_SCORES;
}

/* The bound of scores is that of rows of weight 1: one that is exceeded says what they need. What
 * is not finite has no errors. */
static enum optimizer_want summary_evaluated(struct lbfgs *o,
                                             const struct evaluation_found *evaluation,
                                             struct optimizer_request *request) {
    struct summary_found *found = &o->summary.found;
    struct bytes *program = request->program;
    bool scores = o->summary.stage == SUMMARY_SCORES, exceeded = evaluation->exceeded;
    assert(summary_evaluates(o) && found->made == scores);
    lbfgs_take_curvature(o, evaluation, request);
    if (exceeded && scores && !o->summary.again) {
        o->summary.again = request->again = true;
        return OPTIMIZER_CURVATURE;
    }
    if (exceeded)
        return finish(o, program);
    if (scores) {
        programs_sandwich(o, program);
        found->robust = true;
        return finish(o, program);
    }
    programs_covariance(o, program);
    return lbfgs_measure(o, MEASURING_SUMMARY);
}

static enum optimizer_want summary_measured(struct lbfgs *o, const double *scalars,
                                            struct optimizer_request *request) {
    struct bytes *program = request->program;
    report_event(&request->report, "summary",
                 "step %llu: second derivatives of all %llu rows in %.3f s; parameters that follow "
                 "from others: %.0f",
                 (unsigned long long)o->step, (unsigned long long)o->data.rows,
                 request->evaluation_seconds, scalars[SUMMARY_ALIASED]);
    double trace = scalars[SUMMARY_TRACE];
    assert(o->summary.stage == SUMMARY_INFORMATION);
    o->summary.found = (struct summary_found){
        .made = isfinite(trace), .trace = trace, .aliased = (uint64_t)scalars[SUMMARY_ALIASED]};
    if (!o->summary.found.made || o->settings.summary != SUMMARY_ROBUST)
        return finish(o, program);
    o->summary.stage = SUMMARY_SCORES;
    o->summary.again = false;
    program_return(program);
    return OPTIMIZER_CURVATURE;
}

static void summary_request(const struct lbfgs *o, struct optimizer_request *request) {
    lbfgs_request_hessian(o, o->summary.found.made ? HESSIAN_SCORES : HESSIAN_EXPECTED, request);
    request->sampling = (struct row_sampling){.floor = 1};
}

/* The steps that were made are in x, and P in the checkpoint. */
static void summary_resume(struct lbfgs *o) {
    o->summary.stage = SUMMARY_STAGE_NONE;
    o->summary.found = (struct summary_found){.made = false};
    o->summary.polishing &= o->history.preconditioned;
}

static void summary_serialize(struct codec *codec, struct lbfgs *o) {
    struct summary *summary = &o->summary;
    if (!mutant(POLISHING_FORGOTTEN))
        serialize_bool(codec, &summary->polishing);
    serialize_u32(codec, &summary->polished);
    if (!mutant(CLOSING_FORGOTTEN))
        summary->reason = serialize_enum(codec, summary->reason, REASONS);
    summary->stage = serialize_enum(codec, summary->stage, SUMMARY_SCORES + 1);
    serialize_bool(codec, &summary->again);
    serialize_bool(codec, &summary->found.made);
    serialize_bool(codec, &summary->found.robust);
    serialize_f64(codec, &summary->found.trace);
    serialize_u64(codec, &summary->found.aliased);
}

const struct phase summary_phase = {
    .awaited = summary_awaited,
    .conclude = summary_conclude,
    .evaluates = summary_evaluates,
    .request = summary_request,
    .evaluated = summary_evaluated,
    .measured = {[MEASURING_SUMMARY] = summary_measured},
    .resume = summary_resume,
    .serialize = summary_serialize,
};
