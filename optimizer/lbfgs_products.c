/* Evaluations of L-BFGS in tiles without common directions: of l1, bounds, or `directions` 0. No
 * replica sees a row whole, so what an evaluation of the gradient does at once is done one after
 * the other here:
 *
 *     max|t|, which bounds the margins as they are added up in fixed point
 *     the margins at t, which shards take as Z
 *     of them the losses and the largest derivative, which are sums over rows that shards have: a
 *         trial whose loss alone shows that it is too far costs no more than this
 *     the sums of the gradient of their derivatives
 *
 * and round A as ever. Of a network replicas find the losses and derivatives, with the layers above
 * the first, by an evaluation in place of the third. Nothing of rows outlives the evaluation: Z is
 * that of a trial, no checkpoint has it, and who goes back evaluates the trial again, after labels,
 * weights, offsets and sizes. */
#include <assert.h>
#include <math.h>

#include "base/mutant.h"
#include "optimizer/lbfgs_phase.h"

static enum optimizer_want products_try(struct lbfgs *o, struct bytes *program) {
    assert(!o->accepted);
    o->common.stage = COMMON_NONE;
    program_add(program, &(struct operation){.code = OPERATION_MAX_ABS, .a = REGISTER_T});
    return lbfgs_measure(o, MEASURING_POINT);
}

static enum optimizer_want point_measured(struct lbfgs *o, const double *scalars,
                                          struct optimizer_request *request) {
    const double largest = scalars[0];
    assert(o->common.stage == COMMON_NONE);
    if (!isfinite(largest))
        return lbfgs_not_finite(o, request->program);
    if (!mutant(BOUND_OF_FORMER_POINT))
        o->common.point_max = largest;
    return lbfgs_evaluate_stage(o, COMMON_MARGINS);
}

enum optimizer_want products_losses(struct lbfgs *o, struct bytes *program) {
    program_add(program, &(struct operation){.code = OPERATION_ROWS_AT});
    program_add(program, &(struct operation){.code = OPERATION_ROWS_LOSS});
    program_add(program, &(struct operation){.code = OPERATION_ROWS_DERIVATIVE});
    rows_add_held(o, program);
    return lbfgs_measure(o, MEASURING_SPAN);
}

enum optimizer_want products_derivatives(struct lbfgs *o, struct bytes *program) {
    (void)program; /* all of it is of one evaluation */
    return lbfgs_evaluate_stage(o, COMMON_DERIVATIVES);
}

static enum optimizer_want margins_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    (void)found;
    rows_add_take(request->program, ROWS_MARGINS, 0);
    return o->plan.way->losses(o, request->program);
}

/* The mean loss is there, which alone may show that the trial is not the step; else these make the
 * derivatives by margins the point of the sums of the gradient. */
static enum optimizer_want transpose(struct lbfgs *o, const struct operation *operations,
                                     unsigned count, struct bytes *program) {
    if (!isfinite(o->mean_loss) || !isfinite(o->common.span.derivative))
        return lbfgs_not_finite(o, program);
    if (lbfgs_refuses(o, o->mean_loss))
        return lbfgs_refused(o, o->mean_loss, program);
    for (unsigned i = 0; i < count; i++)
        program_add(program, &operations[i]);
    return lbfgs_evaluate_stage(o, COMMON_TRANSPOSE);
}

static enum optimizer_want losses_measured(struct lbfgs *o, const double *scalars,
                                           struct optimizer_request *request) {
    static const struct operation advance[] = {{.code = OPERATION_ROWS_AT},
                                               {.code = OPERATION_ROWS_ADVANCE}};
    assert(o->data.weight_sum > 0);
    o->mean_loss = scalars[0] / o->data.weight_sum;
    o->common.span.derivative = scalars[1];
    rows_take_held(o, scalars + 2);
    return transpose(o, advance, 2, request->program);
}

/* The losses and derivatives of a network. */
static enum optimizer_want derivatives_evaluated(struct lbfgs *o,
                                                 const struct evaluation_found *found,
                                                 struct optimizer_request *request) {
    static const struct operation take = {.code = OPERATION_ROWS_TAKE, .vector = ROWS_GIVEN};
    o->mean_loss = found_total(found, 0, 0) / o->data.weight_sum;
    if (!o->started || !mutant(HELD_LOSS_OF_START))
        lbfgs_take_held(o, found_held(found, 1, &o->data));
    return transpose(o, &take, !o->started || !mutant(DERIVATIVES_NOT_TAKEN), request->program);
}

static enum optimizer_want transpose_evaluated(struct lbfgs *o,
                                               const struct evaluation_found *found,
                                               struct optimizer_request *request) {
    (void)found;
    return lbfgs_measure_trial(o, request->program);
}

/* What is finite exceeds no bound here, as all are of what was measured. */
static enum optimizer_want products_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                              struct optimizer_request *request) {
    static phase_evaluated *const follows[COMMON_STAGES] = {
        [COMMON_MARGINS] = margins_evaluated,
        [COMMON_DERIVATIVES] = derivatives_evaluated,
        [COMMON_TRANSPOSE] = transpose_evaluated,
    };
    const enum common_stage stage = o->common.stage;
    const char *outcome = found->exceeded ? "not finite" : lbfgs_outcome(o);
    assert(follows[stage]);
    o->common.stage = COMMON_NONE;
    if (outcome)
        lbfgs_report(&request->report, o, outcome, NAN, NAN);
    return found->exceeded ? lbfgs_not_finite(o, request->program)
                           : follows[stage](o, found, request);
}

const struct phase products_phase = {
    .request = lbfgs_request,
    .evaluated = products_evaluated,
    .measured = {[MEASURING_POINT] = point_measured, [MEASURING_SPAN] = losses_measured},
    .try = products_try,
};
