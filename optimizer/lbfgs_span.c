/* Steps of L-BFGS in the span of common directions: doc/OPTIMIZERS.md, "Common directions".
 *
 * A step is: round B with the direction's products (common_direction), the product of the rows with
 * it, trials in the span (common_searched), the loss on the holdout if it counts, the sums of the
 * gradient at the margins found, and round A.
 *
 * Z becomes the margins at t with the program that begins the evaluation of the gradient there,
 * before t is x. So the run does not end in between: a checkpoint must find Z and x of one point.
 *
 * In tiles no replica sees a row whole: products and sums of gradients are all that there is. A
 * product is fixed point, so how large its point is must be known before; and an end is checked by
 * the margins and the gradient at x, made anew. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/lbfgs.h"
#include "optimizer/lbfgs_phase.h"

#ifdef MUTANTS
#define STEPS_WITH_MARGINS 3 /* the simulator makes few steps */
#else
#define STEPS_WITH_MARGINS 32 /* after which Z is made anew */
#endif

/* What differs with how the products of points with the rows are found. */
struct span_products {
    /* Begins the evaluation of the margins at x, which is in its register. */
    enum optimizer_want (*ask_margins)(struct lbfgs *o, struct bytes *program);
    /* Measures how large a direction is, whose product has its bound by that; NULL: it has none. */
    void (*add_bound)(struct bytes *program, uint8_t a);
    /* Checks x before an end, and takes what was evaluated there. */
    enum optimizer_want (*check)(struct lbfgs *o, struct bytes *program);
    phase_evaluated *checked;
    bool anew; /* a check makes Z anew */
};

/* Until the step is made the second derivatives that were kept are those of a point on the way, and
 * at last Z is that of t, which is not x yet. */
static bool common_is_within_step(const struct lbfgs *o) {
    static const bool within[COMMON_STAGES] = {[COMMON_HOLDOUT] = true, [COMMON_TRANSPOSE] = true};
    bool searches = o->measuring == MEASURING_SPAN && o->common.ends == REASON_NONE;
    return searches || within[o->common.stage];
}

/* ---- margins ---- */

/* Whether x is checked before the end. */
static bool is_checking(const struct lbfgs *o) {
    return o->common.ends != REASON_NONE;
}

/* Why the run ends where something at x is not finite. */
static enum reason reason_not_finite(const struct lbfgs *o) {
    return is_checking(o) ? o->common.ends : o->started ? REASON_STALLED : REASON_NOT_FINITE;
}

/* Reports the evaluation that just ended, whose stage is over. */
static void report_stage(struct lbfgs *o, struct optimizer_request *request) {
    lbfgs_report(&request->report, o, lbfgs_outcome(o), NAN, NAN);
    o->common.stage = COMMON_NONE;
}

static enum optimizer_want measure_margins(struct lbfgs *o, struct bytes *program);

static void add_bound(struct bytes *program, uint8_t a) {
    program_add(program, &(struct operation){.code = OPERATION_MAX_ABS, .a = a});
}

static enum optimizer_want ask_margins(struct lbfgs *o, struct bytes *program) {
    program_return(program);
    return lbfgs_evaluate_stage(o, COMMON_MARGINS);
}

static enum optimizer_want ask_bound(struct lbfgs *o, struct bytes *program) {
    add_bound(program, REGISTER_X);
    return lbfgs_measure(o, MEASURING_POINT);
}

static enum optimizer_want bound_measured(struct lbfgs *o, const double *scalars,
                                          struct optimizer_request *request) {
    const double largest = scalars[0];
    if (!isfinite(largest))
        return lbfgs_finish(o, reason_not_finite(o), request->program);
    o->common.point_max = largest;
    return ask_margins(o, request->program);
}

static enum optimizer_want take_margins(struct lbfgs *o, struct bytes *program) {
    programs_acceptance(o, program);
    return o->plan.way->products->ask_margins(o, program);
}

/* At the starting point Z is 0 on shards that were set up, as the margins may be there. */
static enum optimizer_want common_start(struct lbfgs *o, struct bytes *program) {
    const struct optimizer_settings *settings = &o->settings;
    bool are_0 = settings->from_zero && !settings->offsets && !o->plan.way->products->anew;
    return are_0 ? measure_margins(o, program) : take_margins(o, program);
}

/* ---- the direction ---- */

static void add_window_dots(const struct window *window, uint8_t a, struct bytes *program) {
    struct operation operation = {.code = OPERATION_WINDOW_DOTS, .a = a};
    operation.count = window_slots(window, operation.slots);
    program_add(program, &operation);
}

static enum optimizer_want common_direction(struct lbfgs *o, struct bytes *program) {
    struct common *common = &o->common;
    assert(o->started && !o->refreshing);
    if (!common->margins || common->age >= STEPS_WITH_MARGINS)
        return take_margins(o, program);
    if (window_make_room(&common->window))
        span_drop_oldest(&common->span);
    programs_acceptance(o, program);
    programs_direction(o, program);
    program_add(program, &(struct operation){.code = OPERATION_KEEP,
                                             .slot = common->window.candidate,
                                             .a = REGISTER_D});
    program_add(program,
                &(struct operation){.code = OPERATION_DOT, .a = REGISTER_G, .b = REGISTER_D});
    add_window_dots(&common->window, REGISTER_D, program);
    add_window_dots(&common->window, REGISTER_X, program);
    if (o->plan.way->products->add_bound)
        o->plan.way->products->add_bound(program, REGISTER_D);
    return lbfgs_measure(o, MEASURING_DIRECTION);
}

static enum optimizer_want direction_after_biases(struct lbfgs *o, struct bytes *program) {
    o->common.biases_due = false;
    return common_direction(o, program);
}

static enum optimizer_want direction_measured(struct lbfgs *o, const double *scalars,
                                              struct optimizer_request *request) {
    struct bytes *program = request->program;
    struct window *window = &o->common.window;
    uint32_t newest = window->count;
    window_measured(window, scalars + 1, scalars + 1 + newest + 1);
    o->slope = scalars[0];
    double largest = o->plan.way->products->add_bound ? scalars[1 + 2 * (newest + 1)] : 0;
    if (!mutant(BOUND_OF_FORMER_POINT))
        o->common.point_max = largest;
    if (!(o->slope < 0) || !isfinite(o->slope) || !isfinite(window->gram[newest][newest]) ||
        !isfinite(largest))
        return o->common.biases_due ? direction_after_biases(o, program)
                                    : lbfgs_fail(o, SAFEGUARD_HISTORY_RESET, program);
    /* Nothing else needs it outside the window. */
    program_add(program,
                &(struct operation){.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_D});
    return lbfgs_evaluate_stage(o, COMMON_PRODUCT);
}

/* ---- the search ---- */

static void add_at(const struct lbfgs *o, struct bytes *program) {
    const struct common *common = &o->common;
    struct operation operation = {.code = OPERATION_ROWS_AT};
    if (common->span.count && (common->span.length > 0 || common->span.steps > 0)) {
        operation.count = window_slots(&common->window, operation.slots);
        span_point(&common->span, operation.u);
    }
    program_add(program, &operation);
}

static bool asks_for_losses(enum span_answer asked) {
    return asked != SPAN_HESSIAN_PRODUCT && asked != SPAN_SECOND;
}

static bool asks_for_slopes(enum span_answer asked) {
    return asks_for_losses(asked) && asked != SPAN_LOSS;
}

/* All that is asked of a trial comes from one round. */
static enum optimizer_want measure_trial(struct lbfgs *o, enum span_answer asked,
                                         struct bytes *program) {
    const struct common *common = &o->common;
    const bool all = asked == SPAN_ALL || asked == SPAN_SECOND;
    struct operation slopes = {.code = OPERATION_ROWS_SLOPES};
    struct operation second = {.code = all ? OPERATION_ROWS_SECOND : OPERATION_ROWS_HESSIAN_PRODUCT,
                               .slot = common->window.candidate,
                               .alpha = common->span.rate,
                               .serial = common->span.kept.sample_seed};
    o->common.asked = asked;
    add_at(o, program);
    if (asks_for_losses(asked)) {
        program_add(program, &(struct operation){.code = OPERATION_ROWS_LOSS});
        program_add(program, &(struct operation){.code = OPERATION_ROWS_DERIVATIVE});
        rows_add_held(o, program);
    }
    if (asks_for_slopes(asked)) {
        slopes.count = window_slots(&common->window, slopes.slots);
        program_add(program, &slopes);
    }
    if (all || asked == SPAN_NEWEST || asked == SPAN_HESSIAN_PRODUCT) {
        second.count = window_slots(&common->window, second.slots);
        program_add(program, &second);
    }
    return lbfgs_measure(o, MEASURING_SPAN);
}

/* Along −g nothing says how long a step may be but its length. */
static enum optimizer_want product_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    (void)found;
    report_stage(o, request);
    struct bytes *program = request->program;
    struct window *window = &o->common.window;
    const struct span_settings settings = {.weight_sum = o->data.weight_sum,
                                           .l2 = o->settings.l2,
                                           .rows = o->data.rows,
                                           .outputs = o->settings.outputs,
                                           .noise = lbfgs_noise(o),
                                           .damping = o->common.span.damping,
                                           .first = o->steepest ? lbfgs_steepest_step(o) : 1,
                                           .sample_seed = window->entered + 1,
                                           .slope = o->slope};
    rows_add_take(program, ROWS_PRODUCT, window->candidate);
    if (o->common.biases_due) {
        window_enter(window);
        return direction_after_biases(o, program);
    }
    return measure_trial(o, span_begin(&o->common.span, window, &settings), program);
}

/* Z is that at x. */
static enum optimizer_want measure_margins(struct lbfgs *o, struct bytes *program) {
    o->common.margins = true;
    o->common.age = 0;
    o->common.span.kept.slopes = false; /* by the margins of before */
    if (o->started && !is_checking(o))
        return common_direction(o, program);
    double damping = o->common.span.damping; /* for the next search */
    o->common.span = (struct span){.damping = damping, .settings.damping = damping};
    return measure_trial(o, SPAN_LOSS, program);
}

static enum optimizer_want margins_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    (void)found;
    report_stage(o, request);
    rows_add_take(request->program, ROWS_MARGINS, 0);
    return measure_margins(o, request->program);
}

/* ---- the gradient at the minimum ---- */

static enum optimizer_want transpose(struct lbfgs *o, struct bytes *program) {
    add_at(o, program);
    program_add(program, &(struct operation){.code = OPERATION_ROWS_ADVANCE});
    o->common.margins = false; /* until t is x */
    return lbfgs_evaluate_stage(o, COMMON_TRANSPOSE);
}

/* Forms t. The replicas find it in its register until the derivatives take its place, so the
 * holdout comes first. */
static enum optimizer_want go_to(struct lbfgs *o, struct bytes *program) {
    const struct common *common = &o->common;
    struct operation operation = {.code = OPERATION_COMBINE, .a = REGISTER_T, .b = REGISTER_X};
    if (o->started) {
        operation.count = window_slots(&common->window, operation.slots);
        span_point(&common->span, operation.u);
        program_add(program, &operation);
    } else {
        programs_zero(program, REGISTER_D);
        program_return(program);
    }
    if (o->plan.held == HELD_BY_REPLICAS)
        return lbfgs_evaluate_stage(o, COMMON_HOLDOUT);
    return transpose(o, program);
}

/* At x, which is t as well. */
static enum optimizer_want x_measured(struct lbfgs *o, const struct span_trial *at,
                                      struct bytes *program) {
    struct span *span = &o->common.span;
    span->loss = at->loss / o->data.weight_sum;
    span->derivative = at->derivative;
    if (!isfinite(span->loss) || !isfinite(span->derivative))
        return lbfgs_finish(o, reason_not_finite(o), program);
    if (!is_checking(o))
        return go_to(o, program);
    add_at(o, program);
    program_add(program, &(struct operation){.code = OPERATION_ROWS_ADVANCE});
    return lbfgs_evaluate_stage(o, COMMON_CHECK);
}

static enum optimizer_want trial_measured(struct lbfgs *o, const double *scalars,
                                          struct optimizer_request *request) {
    struct bytes *program = request->program;
    struct span *span = &o->common.span;
    const enum span_answer asked = o->common.asked;
    struct span_trial trial = {0};
    if (asks_for_losses(asked)) {
        trial.loss = scalars[0];
        trial.derivative = scalars[1];
        scalars += 2 + rows_take_held(o, scalars + 2);
    }
    if (asks_for_slopes(asked)) {
        trial.slopes = scalars;
        scalars += span->count;
    }
    trial.newest = asked == SPAN_NEWEST || asked == SPAN_HESSIAN_PRODUCT ? scalars : NULL;
    trial.second = asked == SPAN_ALL || asked == SPAN_SECOND ? scalars : NULL;
    if (!o->started || is_checking(o))
        return x_measured(o, &trial, program);
    enum span_answer answer = span_next(span, &o->common.window, &trial);
    if (answer == SPAN_FAIL)
        return lbfgs_fail(o, SAFEGUARD_SEARCH_RETRIED, program);
    if (answer != SPAN_ACCEPT)
        return measure_trial(o, answer, program);
    o->search.step = span->c[span->count - 1];
    o->search.trials = span->trials;
    return go_to(o, program);
}

static void common_stepped(struct lbfgs *o) {
    struct common *common = &o->common;
    assert(common->stage == COMMON_TRANSPOSE);
    if (o->started)
        preconditioner_stepped(&o->preconditioner, fabs(o->search.step), 1);
    common->stage = COMMON_NONE;
    common->margins = true;
    common->age++;
    if (common->span.count) {
        window_enter(&common->window);
        span_stepped(&common->span);
    }
}

/* ---- the end ---- */

/* What outside wants ends at once; so does a run whose answer is another point. In tiles the check
 * makes Z anew, which would show in a run that goes on from its limit. */
static bool common_awaited(const struct lbfgs *o, enum reason reason) {
    assert(reason != REASON_NONE);
    if (o->plan.way->directions != &span_phase)
        return false;
    bool outside = reason == o->closes || reason == REASON_EARLY_STOPPING;
    bool shows = o->plan.way->products->anew && reason_can_resume(reason);
    return !outside && !shows && lbfgs_answer_register(o) == REGISTER_X;
}

static enum optimizer_want common_conclude(struct lbfgs *o, enum reason reason,
                                           struct bytes *program) {
    o->common.ends = reason;
    programs_acceptance(o, program);
    return o->plan.way->products->check(o, program);
}

static enum optimizer_want ask_gradient(struct lbfgs *o, struct bytes *program) {
    program_return(program);
    return lbfgs_evaluate_stage(o, COMMON_CHECK);
}

/* The figures as they are without margins that were kept. If no tolerance holds by them, the run
 * goes on, from them. */
static enum optimizer_want take_check(struct lbfgs *o, const struct measured *m,
                                      struct bytes *program) {
    struct common *common = &o->common;
    enum reason reason = common->ends;
    bool tolerance = reason_claims_optimum(reason);
    common->stage = COMMON_NONE;
    common->ends = REASON_NONE;
    if (!isfinite(m->loss) || !isfinite(m->max))
        return lbfgs_finish(o, reason, program);
    common->checked = true;
    common->figures = (struct optimizer_point){.step = o->step,
                                               .loss = m->loss,
                                               .gradient_max = m->max,
                                               .holdout = o->holdout,
                                               .gap_bound = NAN,
                                               .gap_estimate = lbfgs_gap_estimate(o, m),
                                               .norms = m->norms};
    if (tolerance)
        reason = lbfgs_reason_to_end(o);
    if (reason)
        return lbfgs_finish(o, reason, program);
    common->checked = false;
    common->margins = o->plan.way->products->anew;
    o->accepted = true;
    o->loss = o->losses[o->step % (LOSSES_KEPT + 1)] = m->loss;
    o->gradient_max = m->max;
    o->gradient_square = m->square;
    o->gap_estimate = common->figures.gap_estimate;
    o->norms = m->norms;
    return lbfgs_go_on(o, program);
}

/* ---- what follows an evaluation ---- */

static enum optimizer_want holdout_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    report_stage(o, request);
    lbfgs_take_held(o, found_held(found, 0, &o->data));
    return transpose(o, request->program);
}

static enum optimizer_want transposed(struct lbfgs *o, const struct evaluation_found *found,
                                      struct optimizer_request *request) {
    (void)found;
    o->mean_loss = o->common.span.loss;
    return lbfgs_measure_trial(o, request->program);
}

/* Something at a trial is not finite: the bounds of derivatives are known, and no element of a
 * direction is beyond its bound, so what is finite exceeds none. */
static enum optimizer_want trial_exceeded(struct lbfgs *o, const struct evaluation_found *found,
                                          struct optimizer_request *request) {
    (void)found;
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    lbfgs_fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    return o->started ? lbfgs_fail(o, SAFEGUARD_SEARCH_RETRIED, request->program)
                      : lbfgs_finish(o, REASON_NOT_FINITE, request->program);
}

static enum optimizer_want transpose_exceeded(struct lbfgs *o, const struct evaluation_found *found,
                                              struct optimizer_request *request) {
    o->mean_loss = INFINITY;
    return trial_exceeded(o, found, request);
}

/* As no element of x is beyond the bound, a margin is not finite. */
static enum optimizer_want margins_exceeded(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request) {
    (void)found;
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    return lbfgs_finish(o, reason_not_finite(o), request->program);
}

/* The gradient at x is there, and its mean loss. */
static enum optimizer_want measure_check(struct lbfgs *o, bool finite,
                                         struct optimizer_request *request) {
    if (finite && isfinite(o->mean_loss)) {
        programs_measures(o, request->program);
        return lbfgs_measure(o, MEASURING_CHECK);
    }
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    return lbfgs_finish(o, o->common.ends, request->program);
}

static enum optimizer_want gradient_checked(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request) {
    o->mean_loss = found_total(found, 0, 0) / o->data.weight_sum;
    if (!found->exceeded || !found->can_hold || !isfinite(o->mean_loss))
        return measure_check(o, !found->exceeded, request);
    lbfgs_report(&request->report, o, "bound exceeded", NAN, NAN);
    request->again = true;
    return lbfgs_evaluate_stage(o, COMMON_CHECK);
}

static enum optimizer_want transpose_checked(struct lbfgs *o, const struct evaluation_found *found,
                                             struct optimizer_request *request) {
    o->mean_loss = o->common.span.loss;
    return measure_check(o, !found->exceeded, request);
}

const struct span_products span_of_rows = {
    .ask_margins = ask_margins, .check = ask_gradient, .checked = gradient_checked};
const struct span_products span_in_tiles = {.ask_margins = ask_bound,
                                            .add_bound = add_bound,
                                            .check = ask_bound,
                                            .checked = transpose_checked,
                                            .anew = true};

static enum optimizer_want check_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                           struct optimizer_request *request) {
    return o->plan.way->products->checked(o, found, request);
}

static enum optimizer_want common_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request) {
    static const struct {
        phase_evaluated *takes, *exceeded;
    } rows[COMMON_STAGES] = {
        [COMMON_MARGINS] = {margins_evaluated, margins_exceeded},
        [COMMON_PRODUCT] = {product_evaluated, trial_exceeded},
        [COMMON_HOLDOUT] = {holdout_evaluated, holdout_evaluated},
        [COMMON_TRANSPOSE] = {transposed, transpose_exceeded},
        [COMMON_CHECK] = {check_evaluated, check_evaluated},
    };
    const enum common_stage stage = o->common.stage;
    assert(rows[stage].takes && rows[stage].exceeded);
    return (found->exceeded ? rows[stage].exceeded : rows[stage].takes)(o, found, request);
}

static enum optimizer_want check_measured(struct lbfgs *o, const double *scalars,
                                          struct optimizer_request *request) {
    struct measured x = programs_measured(o, scalars);
    lbfgs_report(&request->report, o, "checked", x.loss, x.slope);
    return take_check(o, &x, request->program);
}

/* The search has found it already. */
static enum linesearch_answer common_check_trial(struct lbfgs *o, const struct measured *m,
                                                 bool finite) {
    (void)o, (void)m;
    return finite ? LINESEARCH_ACCEPT : LINESEARCH_FAIL;
}

/* Where steepest descent fails, too, only the margins may be to blame. */
static enum optimizer_want common_failed(struct lbfgs *o, enum safeguard safeguard,
                                         struct bytes *program) {
    if (!o->steepest)
        return lbfgs_retry(o, safeguard, program);
    if (o->common.age == 0)
        return lbfgs_end_for(o, REASON_STALLED, program);
    o->common.margins = false;
    return lbfgs_steepest(o, program);
}

static double common_fall(const struct lbfgs *o) {
    return span_fall(&o->common.span);
}

static void common_serialize(struct codec *codec, struct lbfgs *o) {
    struct common *common = &o->common;
    window_serialize(codec, &common->window);
    serialize_fails_if(codec, common->window.most != o->settings.directions);
    if (!o->plan.numbers[0])
        return;
    span_serialize(codec, &common->span);
    common->stage = serialize_enum(codec, common->stage, COMMON_STAGES);
    common->ends = serialize_enum(codec, common->ends, REASONS);
    common->asked = serialize_enum(codec, common->asked, SPAN_SECOND + 1);
    serialize_bool(codec, &common->biases_due);
    serialize_bool(codec, &common->margins);
    if (!mutant(AGE_FORGOTTEN))
        serialize_u32(codec, &common->age);
    serialize_f64(codec, &common->point_max);
    serialize_bool(codec, &common->checked);
    lbfgs_serialize_point(codec, &common->figures, o->settings.tensors);
}

const struct phase span_phase = {
    .begin = common_direction,
    .awaited = common_awaited,
    .conclude = common_conclude,
    .request = lbfgs_request,
    .evaluated = common_evaluated,
    .measured = {[MEASURING_DIRECTION] = direction_measured,
                 [MEASURING_POINT] = bound_measured,
                 [MEASURING_SPAN] = trial_measured,
                 [MEASURING_TRIAL] = lbfgs_trial_measured,
                 [MEASURING_CHECK] = check_measured},
    .check_trial = common_check_trial,
    .failed = common_failed,
    .follows = lbfgs_end_or_go_on,
    .start = common_start,
    .within_step = common_is_within_step,
    .fall = common_fall,
    .stepped = common_stepped,
    .serialize = common_serialize,
};
