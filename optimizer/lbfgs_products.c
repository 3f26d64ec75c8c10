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

bool products_run(const struct lbfgs *o) {
    return o->data.tiles > 0 && !common_runs(o);
}

enum optimizer_want products_trial(struct lbfgs *o, struct bytes *program) {
    assert(products_run(o) && !o->accepted);
    o->common.stage = COMMON_NONE;
    program_add(program, &(struct operation){.code = OPERATION_MAX_ABS, .a = REGISTER_T});
    return lbfgs_measure(o, MEASURING_POINT);
}

static enum optimizer_want take_point(struct lbfgs *o, double largest, struct bytes *program) {
    assert(products_run(o) && o->common.stage == COMMON_NONE);
    if (!isfinite(largest))
        return lbfgs_not_finite(o, program);
    if (!mutant(BOUND_OF_FORMER_POINT))
        o->common.point_max = largest;
    return rows_evaluate(o, COMMON_MARGINS);
}

static enum optimizer_want take_margins(struct lbfgs *o, struct bytes *program) {
    rows_add_take(program, ROWS_MARGINS, 0);
    if (o->data.upper)
        return rows_evaluate(o, COMMON_DERIVATIVES);
    program_add(program, &(struct operation){.code = OPERATION_ROWS_AT});
    program_add(program, &(struct operation){.code = OPERATION_ROWS_LOSS});
    program_add(program, &(struct operation){.code = OPERATION_ROWS_DERIVATIVE});
    rows_add_held(o, program);
    return lbfgs_measure(o, MEASURING_SPAN);
}

static enum optimizer_want take_losses(struct lbfgs *o, const double *scalars,
                                       struct bytes *program) {
    assert(products_run(o) && o->data.weight_sum > 0);
    o->mean_loss = scalars[0] / o->data.weight_sum;
    o->common.span.derivative = scalars[1];
    rows_take_held(o, scalars + 2);
    if (!isfinite(o->mean_loss) || !isfinite(o->common.span.derivative))
        return lbfgs_not_finite(o, program);
    if (lbfgs_refuses(o, o->mean_loss))
        return lbfgs_refused(o, o->mean_loss, program);
    program_add(program, &(struct operation){.code = OPERATION_ROWS_AT});
    program_add(program, &(struct operation){.code = OPERATION_ROWS_ADVANCE});
    return rows_evaluate(o, COMMON_TRANSPOSE);
}

/* Takes the derivatives of a network. The loss alone may show that the trial is not the step. */
static enum optimizer_want take_derivatives(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request) {
    o->mean_loss = found_total(found, 0, 0) / o->data.weight_sum;
    if (!o->started || !mutant(HELD_LOSS_OF_START))
        lbfgs_take_held(o, found_held(found, 1, &o->data));
    if (!isfinite(o->mean_loss))
        return lbfgs_not_finite(o, request->program);
    if (lbfgs_refuses(o, o->mean_loss))
        return lbfgs_refused(o, o->mean_loss, request->program);
    if (!o->started || !mutant(DERIVATIVES_NOT_TAKEN))
        program_add(request->program,
                    &(struct operation){.code = OPERATION_ROWS_TAKE, .vector = ROWS_GIVEN});
    return rows_evaluate(o, COMMON_TRANSPOSE);
}

/* What is finite exceeds no bound here, as all are of what was measured. */
static enum optimizer_want products_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                              struct optimizer_request *request) {
    const enum common_stage stage = o->common.stage;
    const char *outcome = found->exceeded ? "not finite" : rows_outcome(stage);
    assert(products_run(o) && (stage == COMMON_MARGINS || stage == COMMON_TRANSPOSE ||
                               (stage == COMMON_DERIVATIVES && o->data.upper)));
    o->common.stage = COMMON_NONE;
    if (outcome)
        lbfgs_report(&request->report, o, outcome, NAN, NAN);
    if (found->exceeded)
        return lbfgs_not_finite(o, request->program);
    if (stage == COMMON_MARGINS)
        return take_margins(o, request->program);
    return stage == COMMON_DERIVATIVES ? take_derivatives(o, found, request)
                                       : lbfgs_measure_trial(o, request->program);
}

static enum optimizer_want products_measured(struct lbfgs *o, const double *scalars,
                                             struct optimizer_request *request) {
    return o->measuring == MEASURING_POINT ? take_point(o, scalars[0], request->program)
                                           : take_losses(o, scalars, request->program);
}

const struct phase products_phase = {
    .evaluates = products_run,
    .request = rows_request,
    .evaluated = products_evaluated,
    .measured = products_measured,
};
