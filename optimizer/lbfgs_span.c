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
#include "optimizer/lbfgs_internal.h"

#ifdef MUTANTS
#define STEPS_WITH_MARGINS 3 /* the simulator makes few steps */
#else
#define STEPS_WITH_MARGINS 32 /* after which Z is made anew */
#endif

bool common_runs(const struct lbfgs *o) {
    assert(!o->settings.directions || !lbfgs_has_orthants(o));
    return o->settings.directions > 0;
}

bool common_is_within_step(const struct lbfgs *o) {
    enum common_stage stage = o->common.stage;
    bool searches = o->measuring == MEASURING_SPAN && o->common.ends == REASON_NONE;
    return common_runs(o) && (searches || stage == COMMON_HOLDOUT || stage == COMMON_TRANSPOSE);
}

/* ---- requests ---- */

enum optimizer_want common_evaluate(struct lbfgs *o, enum common_stage stage) {
    o->common.stage = stage;
    o->evaluations++;
    return OPTIMIZER_EVALUATE;
}

enum optimizer_want common_measure(struct lbfgs *o, enum lbfgs_measuring what) {
    o->measuring = what;
    o->rounds++;
    return OPTIMIZER_MEASURE;
}

static bool is_tiled(const struct lbfgs *o) {
    return o->data.tiles > 0;
}

static bool holdout_counts(const struct lbfgs *o) {
    return o->settings.patience && o->data.holdout_chunks;
}

/* Whether x is checked before the end. */
static bool is_checking(const struct lbfgs *o) {
    return o->common.ends != REASON_NONE;
}

/* Why the run ends where something at x is not finite. */
static enum reason reason_not_finite(const struct lbfgs *o) {
    return is_checking(o) ? o->common.ends : o->started ? REASON_STALLED : REASON_NOT_FINITE;
}

static uint32_t kind_of(const struct lbfgs *o, enum common_stage stage) {
    static const uint32_t kinds[] = {
        [COMMON_LABELS] = EVALUATION_LABELS,       [COMMON_WEIGHTS] = EVALUATION_WEIGHTS,
        [COMMON_SIZES] = EVALUATION_SIZES,         [COMMON_MARGINS] = EVALUATION_PRODUCT,
        [COMMON_PRODUCT] = EVALUATION_PRODUCT,     [COMMON_HOLDOUT] = EVALUATION_LOSS,
        [COMMON_TRANSPOSE] = EVALUATION_TRANSPOSE, [COMMON_CHECK] = EVALUATION_GRADIENT,
        [COMMON_OFFSETS] = EVALUATION_OFFSETS,     [COMMON_DERIVATIVES] = EVALUATION_DERIVATIVES,
    };
    assert(stage > COMMON_NONE && stage < sizeof kinds / sizeof kinds[0]);
    return stage == COMMON_CHECK && is_tiled(o) ? EVALUATION_TRANSPOSE : kinds[stage];
}

/* Of a network the upper layers' gradient comes with that of the first, over the training rows, as
 * tiles of one more strip. Its bounds, and that of the derivatives, follow from what the evaluation
 * of these, the one before, has found; that one has no bounds but what a sum can hold. Beside the
 * derivatives comes the loss on the holdout, if it counts: shards know no losses. */
static void network_request(const struct lbfgs *o, struct optimizer_request *request) {
    const struct optimizer_data *data = &o->data;
    struct evaluation_parts *parts = &request->parts;
    if (o->common.stage == COMMON_DERIVATIVES) {
        parts->items[0] = (struct evaluation_part){EVALUATION_DERIVATIVES, 0, data->chunks};
        if (holdout_counts(o))
            parts->items[parts->count++] =
                (struct evaluation_part){EVALUATION_LOSS, data->chunks, data->holdout_chunks};
        request->bounded = true;
        request->largest = DBL_MAX;
    } else if (o->common.stage == COMMON_TRANSPOSE) {
        parts->items[parts->count++] =
            (struct evaluation_part){EVALUATION_UPPER, data->tiles, data->chunks};
        request->bounded = false;
        request->again = true;
    }
}

void common_request(const struct lbfgs *o, struct optimizer_request *request) {
    const struct optimizer_data *data = &o->data;
    uint32_t kind = kind_of(o, o->common.stage);
    bool product = kind == EVALUATION_PRODUCT, transpose = kind == EVALUATION_TRANSPOSE;
    struct evaluation_part part = {kind, 0,
                                   data->chunks + (is_tiled(o) ? data->holdout_chunks : 0)};
    if (o->common.stage == COMMON_HOLDOUT)
        part = (struct evaluation_part){kind, data->chunks, data->holdout_chunks};
    else if (is_tiled(o) && (product || transpose))
        part.count = data->tiles;
    request->parts = (struct evaluation_parts){.items = {part}, .count = 1};
    request->rows = transpose;
    request->bounded = transpose || (is_tiled(o) && product);
    request->largest = transpose ? o->common.span.derivative : o->common.point_max;
    if (data->upper)
        network_request(o, request);
}

/* ---- labels, weights and margins ---- */

static enum optimizer_want measure_margins(struct lbfgs *o, struct bytes *program);

static void add_take(struct bytes *program, enum row_vector vector, uint16_t slot) {
    program_add(program,
                &(struct operation){.code = OPERATION_ROWS_TAKE, .vector = vector, .slot = slot});
}

/* The rows' own numbers need no point; replicas get one all the same. */
enum optimizer_want common_begin(struct lbfgs *o, struct bytes *program) {
    assert(lbfgs_by_rows(o) && !o->accepted);
    if (o->started && mutant(LABELS_NOT_FETCHED))
        return lbfgs_leave(o, program);
    program_return(program);
    return common_evaluate(o, o->data.upper ? COMMON_SIZES : COMMON_LABELS);
}

enum optimizer_want common_resume(struct lbfgs *o, struct bytes *program) {
    o->common.stage = COMMON_NONE;
    o->common.checked = false;
    o->common.ends = REASON_NONE;
    return common_begin(o, program);
}

static void add_largest(struct bytes *program, uint8_t a) {
    program_add(program, &(struct operation){.code = OPERATION_MAX_ABS, .a = a});
}

static enum optimizer_want take_margins(struct lbfgs *o, struct bytes *program) {
    programs_acceptance(o, program);
    if (is_tiled(o)) {
        add_largest(program, REGISTER_X);
        return common_measure(o, MEASURING_POINT);
    }
    program_return(program);
    return common_evaluate(o, COMMON_MARGINS);
}

enum optimizer_want common_point_measured(struct lbfgs *o, double largest, struct bytes *program) {
    assert(common_runs(o) && is_tiled(o));
    if (!isfinite(largest))
        return lbfgs_finish(o, reason_not_finite(o), program);
    o->common.point_max = largest;
    program_return(program);
    return common_evaluate(o, COMMON_MARGINS);
}

/* At the starting point Z is 0 on shards that were set up, as the margins there are. */
static bool margins_are_zero(const struct lbfgs *o) {
    return o->settings.from_zero && !o->settings.offsets && !is_tiled(o);
}

static enum optimizer_want begin_at_x(struct lbfgs *o, struct bytes *program) {
    if (o->started)
        return lbfgs_leave(o, program);
    if (products_run(o))
        return lbfgs_start_trial(o, program);
    return margins_are_zero(o) ? measure_margins(o, program) : take_margins(o, program);
}

static enum optimizer_want take_sizes(struct lbfgs *o, struct bytes *program) {
    if (!is_tiled(o) || (o->started && mutant(SIZES_NOT_FETCHED)))
        return begin_at_x(o, program);
    program_return(program);
    return common_evaluate(o, COMMON_SIZES);
}

static enum optimizer_want take_offsets(struct lbfgs *o, struct bytes *program) {
    if (!o->settings.offsets || (o->started && mutant(OFFSETS_NOT_FETCHED)))
        return take_sizes(o, program);
    program_return(program);
    return common_evaluate(o, COMMON_OFFSETS);
}

static enum optimizer_want labels_evaluated(struct lbfgs *o, struct bytes *program) {
    add_take(program, ROWS_LABELS, 0);
    if (!o->settings.weighted || (o->started && mutant(WEIGHTS_NOT_FETCHED)))
        return take_offsets(o, program);
    program_return(program);
    return common_evaluate(o, COMMON_WEIGHTS);
}

static enum optimizer_want weights_evaluated(struct lbfgs *o, struct bytes *program) {
    add_take(program, ROWS_WEIGHTS, 0);
    return take_offsets(o, program);
}

static enum optimizer_want offsets_evaluated(struct lbfgs *o, struct bytes *program) {
    add_take(program, ROWS_OFFSETS, 0);
    return take_sizes(o, program);
}

static enum optimizer_want sizes_evaluated(struct lbfgs *o, struct bytes *program) {
    add_take(program, ROWS_SIZES, 0);
    return begin_at_x(o, program);
}

/* ---- the direction ---- */

static void add_window_dots(const struct window *window, uint8_t a, struct bytes *program) {
    struct operation operation = {.code = OPERATION_WINDOW_DOTS, .a = a};
    operation.count = window_slots(window, operation.slots);
    program_add(program, &operation);
}

enum optimizer_want common_direction(struct lbfgs *o, struct bytes *program) {
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
    if (is_tiled(o))
        add_largest(program, REGISTER_D);
    return common_measure(o, MEASURING_DIRECTION);
}

static enum optimizer_want direction_after_biases(struct lbfgs *o, struct bytes *program) {
    o->common.biases_due = false;
    return common_direction(o, program);
}

enum optimizer_want common_direction_measured(struct lbfgs *o, const double *scalars,
                                              struct bytes *program) {
    struct window *window = &o->common.window;
    uint32_t newest = window->count;
    window_measured(window, scalars + 1, scalars + 1 + newest + 1);
    o->slope = scalars[0];
    double largest = is_tiled(o) ? scalars[1 + 2 * (newest + 1)] : 0;
    if (!mutant(BOUND_OF_FORMER_POINT))
        o->common.point_max = largest;
    if (!(o->slope < 0) || !isfinite(o->slope) || !isfinite(window->gram[newest][newest]) ||
        !isfinite(largest))
        return o->common.biases_due ? direction_after_biases(o, program)
                                    : lbfgs_retry(o, SAFEGUARD_HISTORY_RESET, program);
    /* Nothing else needs it outside the window. */
    program_add(program,
                &(struct operation){.code = OPERATION_SWAP, .a = REGISTER_T, .b = REGISTER_D});
    return common_evaluate(o, COMMON_PRODUCT);
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

/* ---- the holdout ---- */

/* In tiles shards have its margins, too, and find its losses themselves. Else, and of a network,
 * replicas do. */
static bool shards_have_holdout(const struct lbfgs *o) {
    return is_tiled(o) && !o->data.upper && holdout_counts(o);
}

void common_add_held(const struct lbfgs *o, struct bytes *program) {
    if (shards_have_holdout(o))
        program_add(program, &(struct operation){.code = OPERATION_ROWS_HELD});
}

uint32_t common_take_held(struct lbfgs *o, const double *scalars) {
    if (!shards_have_holdout(o))
        return 0;
    lbfgs_take_held(o, held_of(scalars, &o->data));
    return 2;
}

static bool asks_for_losses(enum span_answer asked) {
    return asked != SPAN_CURVED && asked != SPAN_SECOND;
}

static bool asks_for_slopes(enum span_answer asked) {
    return asks_for_losses(asked) && asked != SPAN_LOSS;
}

static void add_second(const struct lbfgs *o, enum span_answer asked, struct bytes *program) {
    const struct common *common = &o->common;
    bool all = asked == SPAN_ALL || asked == SPAN_SECOND;
    if (!all && asked != SPAN_NEWEST && asked != SPAN_CURVED)
        return;
    struct operation operation = {.code = all ? OPERATION_ROWS_SECOND : OPERATION_ROWS_CURVED,
                                  .slot = common->window.candidate,
                                  .alpha = common->span.rate,
                                  .serial = common->span.kept.dice};
    operation.count = window_slots(&common->window, operation.slots);
    program_add(program, &operation);
}

/* All that is asked of a trial comes from one round. */
static enum optimizer_want measure_trial(struct lbfgs *o, enum span_answer asked,
                                         struct bytes *program) {
    struct operation slopes = {.code = OPERATION_ROWS_SLOPES};
    o->common.asked = asked;
    add_at(o, program);
    if (asks_for_losses(asked)) {
        program_add(program, &(struct operation){.code = OPERATION_ROWS_LOSS});
        program_add(program, &(struct operation){.code = OPERATION_ROWS_DERIVATIVE});
        common_add_held(o, program);
    }
    if (asks_for_slopes(asked)) {
        slopes.count = window_slots(&o->common.window, slopes.slots);
        program_add(program, &slopes);
    }
    add_second(o, asked, program);
    return common_measure(o, MEASURING_SPAN);
}

/* Along −g nothing says how long a step may be but its length. */
static enum optimizer_want product_evaluated(struct lbfgs *o, struct bytes *program) {
    struct window *window = &o->common.window;
    const struct span_settings settings = {.weight_sum = o->data.weight_sum,
                                           .l2 = o->settings.l2,
                                           .rows = o->data.rows,
                                           .outputs = o->settings.outputs,
                                           .noise = lbfgs_noise(o),
                                           .damping = o->common.span.damping,
                                           .first = o->steepest ? lbfgs_steepest_step(o) : 1,
                                           .dice = window->entered + 1,
                                           .slope = o->slope};
    add_take(program, ROWS_PRODUCT, window->candidate);
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

static enum optimizer_want margins_evaluated(struct lbfgs *o, struct bytes *program) {
    add_take(program, ROWS_MARGINS, 0);
    return measure_margins(o, program);
}

/* ---- the gradient at the minimum ---- */

static enum optimizer_want transpose(struct lbfgs *o, struct bytes *program) {
    add_at(o, program);
    program_add(program, &(struct operation){.code = OPERATION_ROWS_ADVANCE});
    o->common.margins = false; /* until t is x */
    return common_evaluate(o, COMMON_TRANSPOSE);
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
    if (holdout_counts(o) && !is_tiled(o))
        return common_evaluate(o, COMMON_HOLDOUT);
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
    return common_evaluate(o, COMMON_CHECK);
}

enum optimizer_want common_searched(struct lbfgs *o, const double *scalars, struct bytes *program) {
    struct span *span = &o->common.span;
    const enum span_answer asked = o->common.asked;
    struct span_trial trial = {0};
    if (asks_for_losses(asked)) {
        trial.loss = scalars[0];
        trial.derivative = scalars[1];
        scalars += 2 + common_take_held(o, scalars + 2);
    }
    if (asks_for_slopes(asked)) {
        trial.slopes = scalars;
        scalars += span->count;
    }
    trial.newest = asked == SPAN_NEWEST || asked == SPAN_CURVED ? scalars : NULL;
    trial.second = asked == SPAN_ALL || asked == SPAN_SECOND ? scalars : NULL;
    if (!o->started || is_checking(o))
        return x_measured(o, &trial, program);
    enum span_answer answer = span_next(span, &o->common.window, &trial);
    if (answer == SPAN_FAIL)
        return lbfgs_retry(o, SAFEGUARD_SEARCH_RETRIED, program);
    if (answer != SPAN_ACCEPT)
        return measure_trial(o, answer, program);
    o->search.step = span->c[span->count - 1];
    o->search.trials = span->trials;
    return go_to(o, program);
}

void common_stepped(struct lbfgs *o) {
    struct common *common = &o->common;
    assert(common->stage == COMMON_TRANSPOSE);
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
bool common_must_check(const struct lbfgs *o, enum reason reason) {
    assert(reason != REASON_NONE);
    bool outside = reason == o->closes || reason == REASON_EARLY_STOPPING;
    bool shows = is_tiled(o) && reason_can_resume(reason);
    return common_runs(o) && !outside && !shows && lbfgs_answer_register(o) == REGISTER_X;
}

enum optimizer_want common_check(struct lbfgs *o, enum reason reason, struct bytes *program) {
    o->common.ends = reason;
    if (is_tiled(o))
        return take_margins(o, program);
    programs_acceptance(o, program);
    program_return(program);
    return common_evaluate(o, COMMON_CHECK);
}

/* The figures as they are without margins that were kept. If no tolerance holds by them, the run
 * goes on, from them. */
enum optimizer_want common_checked(struct lbfgs *o, const struct measured *m,
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
    common->margins = is_tiled(o); /* then they were made anew */
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
                                             struct bytes *program) {
    lbfgs_take_held(o, found_held(found, 0, &o->data));
    return transpose(o, program);
}

/* The bound of the derivatives is known, so it is not exceeded by what is finite. */
static enum optimizer_want transposed(struct lbfgs *o, const struct evaluation_found *found,
                                      struct optimizer_request *request) {
    o->mean_loss = found->exceeded ? INFINITY : o->common.span.loss;
    if (!found->exceeded)
        return lbfgs_measure_trial(o, request->program);
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    lbfgs_fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    return o->started ? lbfgs_retry(o, SAFEGUARD_SEARCH_RETRIED, request->program)
                      : lbfgs_finish(o, REASON_NOT_FINITE, request->program);
}

static enum optimizer_want check_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                           struct optimizer_request *request) {
    bool by_rows = is_tiled(o);
    o->mean_loss = by_rows ? o->common.span.loss : found_total(found, 0, 0) / o->data.weight_sum;
    if (!found->exceeded && isfinite(o->mean_loss))
        return lbfgs_measure_trial(o, request->program);
    if (found->exceeded && found->can_hold && isfinite(o->mean_loss) && !by_rows) {
        lbfgs_report(&request->report, o, "bound exceeded", NAN, NAN);
        request->again = true;
        return common_evaluate(o, COMMON_CHECK);
    }
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    return lbfgs_finish(o, o->common.ends, request->program);
}

/* As no element of the point is beyond the bound, a margin is not finite. */
static enum optimizer_want product_exceeded(struct lbfgs *o, struct optimizer_request *request) {
    bool margins = o->common.stage == COMMON_MARGINS;
    lbfgs_report(&request->report, o, "not finite", NAN, NAN);
    o->common.stage = COMMON_NONE;
    if (margins)
        return lbfgs_finish(o, reason_not_finite(o), request->program);
    lbfgs_fire(o, SAFEGUARD_TRIAL_NOT_FINITE);
    return lbfgs_retry(o, SAFEGUARD_SEARCH_RETRIED, request->program);
}

enum optimizer_want common_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                     struct optimizer_request *request) {
    static const char *const outcomes[] = {
        [COMMON_LABELS] = "labels",   [COMMON_WEIGHTS] = "weights", [COMMON_SIZES] = "sizes",
        [COMMON_MARGINS] = "margins", [COMMON_PRODUCT] = "product", [COMMON_HOLDOUT] = "holdout",
        [COMMON_OFFSETS] = "offsets"};
    enum common_stage stage = o->common.stage;
    if (products_run(o) &&
        (stage == COMMON_MARGINS || stage == COMMON_DERIVATIVES || stage == COMMON_TRANSPOSE))
        return products_evaluated(o, found, request);
    if (stage == COMMON_TRANSPOSE)
        return transposed(o, found, request);
    if (stage == COMMON_CHECK)
        return check_evaluated(o, found, request);
    if (found->exceeded && (stage == COMMON_MARGINS || stage == COMMON_PRODUCT))
        return product_exceeded(o, request);
    assert(stage > COMMON_NONE && stage < sizeof outcomes / sizeof outcomes[0]);
    lbfgs_report(&request->report, o, outcomes[stage], NAN, NAN);
    o->common.stage = COMMON_NONE;
    if (stage == COMMON_LABELS)
        return labels_evaluated(o, request->program);
    if (stage == COMMON_WEIGHTS)
        return weights_evaluated(o, request->program);
    if (stage == COMMON_OFFSETS)
        return offsets_evaluated(o, request->program);
    if (stage == COMMON_SIZES)
        return sizes_evaluated(o, request->program);
    if (stage == COMMON_MARGINS)
        return margins_evaluated(o, request->program);
    if (stage == COMMON_PRODUCT)
        return product_evaluated(o, request->program);
    return holdout_evaluated(o, found, request->program);
}
