#include "optimizer/lbfgs_phase.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mutant.h"
#include "optimizer/linesearch.h"

static void add(struct bytes *program, enum operation_code code, uint8_t a, uint8_t b) {
    program_add(program, &(struct operation){.code = code, .a = a, .b = b});
}

void programs_zero(struct bytes *program, uint8_t a) {
    add(program, OPERATION_ZERO, a, 0);
}

void programs_acceptance(struct lbfgs *o, struct bytes *program) {
    assert(o->accepted || !o->leaves_best);
    if (!o->accepted)
        return;
    add(program, OPERATION_SWAP, REGISTER_X, REGISTER_T);
    add(program, OPERATION_SWAP, REGISTER_G, REGISTER_H);
    if (o->history.preconditioned)
        add(program, OPERATION_SWAP, REGISTER_PG, REGISTER_PH);
    if (o->leaves_best)
        add(program, OPERATION_SWAP, REGISTER_T, REGISTER_BEST);
    o->accepted = o->leaves_best = false;
    assert(program->length > 0);
}

/* a = P·b. */
static void add_preconditioned(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t b) {
    assert(a != b && o->preconditioner.refreshes > 0);
    program_add(program, &(struct operation){.code = OPERATION_PRECONDITION,
                                             .a = a,
                                             .b = b,
                                             .serial = o->preconditioner.refreshes});
}

/* a = q(x, g). */
static void add_pseudo_gradient(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t x,
                                uint8_t g) {
    assert(a != x && a != g && lbfgs_has_orthants(o));
    program_add(
        program,
        &(struct operation){
            .code = OPERATION_PSEUDO_GRADIENT, .a = a, .b = x, .c = g, .l1 = o->settings.l1});
}

static void add_of_x(struct bytes *program, enum operation_code code, uint8_t a) {
    program_add(program,
                &(struct operation){.code = code, .a = a, .b = REGISTER_X, .c = REGISTER_QG});
}

/* The starting point has no orthant: the first trial is that point, within the bounds. A step over
 * a working set keeps to bounds alone. */
void programs_trial(const struct lbfgs *o, struct bytes *program) {
    assert(o->search.step >= 0 && !o->accepted);
    program_add(program, &(struct operation){.code = OPERATION_ADD,
                                             .a = REGISTER_T,
                                             .b = REGISTER_X,
                                             .c = REGISTER_D,
                                             .alpha = o->search.step});
    bool orthant = o->started && o->working.stage != WORKING_STEP;
    if (lbfgs_has_orthants(o) && orthant)
        add_of_x(program, OPERATION_PROJECT, REGISTER_T);
    else if (o->settings.limited)
        add(program, OPERATION_CLIP, REGISTER_T, REGISTER_X);
}

/* ---- directions ---- */

/* Whether B is the diagonal in register A. P takes its place while it is in force. */
static bool is_scaled(const struct lbfgs *o) {
    return o->scaled && !o->history.preconditioned;
}

/* P and the diagonal have a scale of their own for each parameter. */
static double bias_scale(const struct lbfgs *o) {
    assert(o->settings.bias_scale > 0);
    return o->history.preconditioned || o->scaled ? 1 : o->settings.bias_scale;
}

/* The part of −g that is the biases', weights being exactly 0: what two scales of theirs differ by.
 */
static void add_biases(struct bytes *program) {
    struct operation whole = {
        .code = OPERATION_DIRECTION, .a = REGISTER_D, .b = REGISTER_G, .alpha = 1, .beta = 1};
    struct operation half = whole;
    half.a = REGISTER_T;
    half.beta = 0.5;
    program_add(program, &whole);
    program_add(program, &half);
    program_add(
        program,
        &(struct operation){
            .code = OPERATION_ADD, .a = REGISTER_D, .b = REGISTER_D, .c = REGISTER_T, .alpha = -1});
}

void programs_direction(struct lbfgs *o, struct bytes *program) {
    if (o->common.biases_due) {
        add_biases(program);
        return;
    }
    bool forgotten = o->unconditioned && mutant(ORTHANT_FORGOTTEN);
    if (o->history.preconditioned && o->unconditioned)
        add_preconditioned(o, program, REGISTER_PG, REGISTER_G);
    o->unconditioned = false;
    assert(!o->steepest || !o->history.pairs); /* d is −g then */
    if (lbfgs_has_orthants(o) && !forgotten)
        add_pseudo_gradient(o, program, REGISTER_QG, REGISTER_X, REGISTER_G);
    uint8_t gradient = lbfgs_has_orthants(o)       ? REGISTER_QG
                       : o->history.preconditioned ? REGISTER_PG
                                                   : REGISTER_G;
    struct operation operation = {.code = OPERATION_DIRECTION,
                                  .a = REGISTER_D,
                                  .b = gradient,
                                  .alpha = o->history.gamma,
                                  .beta = o->steepest ? 1 : bias_scale(o),
                                  .scaled = !o->steepest && is_scaled(o),
                                  .count = o->history.pairs};
    memcpy(operation.slots, o->history.slot, o->history.pairs * sizeof operation.slots[0]);
    pairs_direction(&o->history, operation.u, operation.w);
    program_add(program, &operation);
    if (lbfgs_has_orthants(o))
        add_of_x(program, OPERATION_ALIGN, REGISTER_D);
}

void programs_list(const struct lbfgs *o, struct bytes *program, uint32_t limit) {
    assert(!o->accepted && limit <= WORKING_SET_MAX);
    add_pseudo_gradient(o, program, REGISTER_QG, REGISTER_X, REGISTER_G);
    program_add(program, &(struct operation){.code = OPERATION_LIST,
                                             .a = REGISTER_X,
                                             .b = REGISTER_G,
                                             .l1 = o->settings.l1,
                                             .limit = limit});
}

void programs_solve(const struct lbfgs *o, struct bytes *program) {
    struct bytes list;
    bytes_init(&list);
    for (uint32_t i = 0; i < o->working.count; i++)
        listed_put(&list, &o->working.items[i]);
    program_add(program, &(struct operation){.code = OPERATION_SOLVE,
                                             .alpha = o->settings.l2,
                                             .beta = working_damping(&o->working),
                                             .l1 = o->settings.l1,
                                             .listed = o->working.count,
                                             .list = list.data});
    bytes_release(&list);
}

void programs_covariance(const struct lbfgs *o, struct bytes *program) {
    assert(!o->accepted);
    program_add(program, &(struct operation){.code = OPERATION_COVARIANCE,
                                             .a = REGISTER_D,
                                             .b = REGISTER_H,
                                             .c = REGISTER_X,
                                             .alpha = o->settings.l2});
    if (o->settings.l2 > 0) /* of H itself, whose sums are still there */
        add(program, OPERATION_SANDWICH, REGISTER_PG, 0);
}

void programs_sandwich(const struct lbfgs *o, struct bytes *program) {
    assert(o->summary.found.made);
    add(program, OPERATION_SANDWICH, REGISTER_PH, 0);
}

void programs_slope(const struct lbfgs *o, struct bytes *program) {
    assert(o->started && !o->steepest);
    add(program, OPERATION_DOT, lbfgs_has_orthants(o) ? REGISTER_QG : REGISTER_G, REGISTER_D);
}

/* ---- pairs ---- */

void programs_pair(const struct lbfgs *o, struct bytes *program, uint8_t x, uint8_t g) {
    bool conditioned = o->history.preconditioned;
    assert(o->history.candidate < o->history.memory + 2);
    program_add(program, &(struct operation){.code = OPERATION_PAIR,
                                             .slot = o->history.candidate,
                                             .a = REGISTER_T,
                                             .b = x,
                                             .c = conditioned ? REGISTER_PH : REGISTER_H,
                                             .d = conditioned ? REGISTER_PG : g,
                                             .e = REGISTER_H,
                                             .f = g,
                                             .beta = bias_scale(o),
                                             .scaled = is_scaled(o)});
    /* A pair that was given has no step from x: it is whole. */
    if (lbfgs_has_orthants(o) && x == REGISTER_X)
        program_add(program, &(struct operation){.code = OPERATION_MASK,
                                                 .slot = o->history.candidate,
                                                 .a = REGISTER_T,
                                                 .b = REGISTER_X});
    /* Products of every pair, the candidate last, with the gradient and with the candidate's y. */
    struct operation operation = {.code = OPERATION_HISTORY_DOTS,
                                  .a = lbfgs_has_orthants(o) ? REGISTER_QH : REGISTER_H,
                                  .slot = o->history.candidate,
                                  .count = o->history.pairs + 1};
    assert(operation.count <= SLOTS_MAX);
    memcpy(operation.slots, o->history.slot, o->history.pairs * sizeof operation.slots[0]);
    operation.slots[o->history.pairs] = o->history.candidate;
    program_add(program, &operation);
}

/* ---- measures ---- */

/* Where the scalars stand. Those from FALLS on are with l1 or limits only, and those from
 * GAP_PRODUCT on only if the gap is bounded. */
enum {
    MEASURED_SLOPE,
    MEASURED_SQUARE,
    MEASURED_MAX,
    MEASURED_NORM,
    MEASURED_FALLS,
    MEASURED_ENDS,
    MEASURED_STEP_SQUARE,
    MEASURED_NORM_1,
    MEASURED_NONZERO,
    MEASURED_GAP_PRODUCT,
    MEASURED_GAP_EXCESS,
    MEASURED_MOVING = MEASURED_GAP_PRODUCT, /* with limits, which have no bound of the gap */
    MEASURED_AT_BOUND,
};

/* Where the squares of the tensors begin. */
static unsigned tensors_at(const struct lbfgs *o) {
    assert(o->settings.tensors <= TENSORS_MAX);
    if (!lbfgs_has_orthants(o))
        return MEASURED_NORM + 1;
    assert(!o->settings.bounds_gap || !o->settings.limited);
    bool more = o->settings.bounds_gap || o->settings.limited;
    return more ? MEASURED_GAP_EXCESS + 1 : MEASURED_NONZERO + 1;
}

/* Sums that tell the gap: if P does, that of P and that of what P hides; one if l2 does; else one
 * for each second derivative to divide by. */
bool programs_newton_tells(const struct lbfgs *o) {
    bool whole = o->history.preconditioned && o->settings.preconditioner.form != PRECONDITION_HEAVY;
    return o->settings.gap.newton && whole && !lbfgs_has_orthants(o);
}

static double second_rather(const struct lbfgs *o) {
    const struct gap_settings *gap = &o->settings.gap;
    return gap->rather > 0 ? gap->rather : o->mean_loss;
}

bool programs_l2_tells(const struct lbfgs *o) {
    return o->settings.gap.mean_square > 0 && !programs_newton_tells(o);
}

static unsigned gap_sums(const struct lbfgs *o) {
    if (!o->settings.gap.known)
        return 0;
    if (programs_newton_tells(o))
        return 2;
    if (programs_l2_tells(o))
        return 1;
    double rather = second_rather(o);
    return rather > 0 && rather < o->settings.gap.second ? 2 : 1;
}

/* Whether t is a step from x; else it is the starting point, or x itself. */
static bool is_step(const struct lbfgs *o) {
    return o->started && o->common.stage != COMMON_CHECK;
}

/* Where P tells, what pairs have of it is the metric. */
static bool wants_metric(const struct lbfgs *o) {
    return gap_by_columns(&o->settings.gap) && is_step(o) && !programs_newton_tells(o);
}

static unsigned gap_at(const struct lbfgs *o) {
    return tensors_at(o) + 2 * o->settings.tensors;
}

/* At the start, pairs that were given need their products with the gradient. */
static bool wants_products(const struct lbfgs *o) {
    return is_step(o) || (!o->started && o->history.pairs);
}

static void add_orthant_measures(const struct lbfgs *o, struct bytes *program) {
    assert(lbfgs_has_orthants(o));
    program_add(program, &(struct operation){.code = OPERATION_DESCENT,
                                             .a = REGISTER_T,
                                             .b = REGISTER_X,
                                             .c = REGISTER_QG,
                                             .d = REGISTER_H,
                                             .l1 = o->settings.l1});
    add(program, OPERATION_NORM_1, REGISTER_T, 0);
    if (o->settings.limited)
        program_add(program, &(struct operation){
                                 .code = OPERATION_HELD, .a = REGISTER_T, .l1 = o->settings.l1});
    if (o->settings.bounds_gap) {
        add(program, OPERATION_DOT, REGISTER_T, REGISTER_H);
        program_add(program, &(struct operation){.code = OPERATION_EXCESS,
                                                 .a = REGISTER_H,
                                                 .b = REGISTER_T,
                                                 .alpha = o->settings.l2,
                                                 .l1 = o->settings.l1});
    }
}

static void add_tensors(const struct lbfgs *o, struct bytes *program, uint8_t a) {
    assert(o->settings.tensors <= TENSORS_MAX);
    if (o->settings.tensors)
        program_add(program, &(struct operation){.code = OPERATION_TENSOR_SQUARES,
                                                 .a = a,
                                                 .tensors = o->settings.tensors});
}

static void add_gap(const struct lbfgs *o, struct bytes *program, uint8_t gradient) {
    const double seconds[] = {o->settings.gap.second, second_rather(o)};
    unsigned sums = gap_sums(o);
    if (sums && programs_newton_tells(o)) {
        add(program, OPERATION_DOT, REGISTER_H, REGISTER_PH);
        program_add(program, &(struct operation){.code = OPERATION_HIDDEN});
        return;
    }
    if (sums && programs_l2_tells(o)) {
        add(program, OPERATION_DOT_REGULARIZED, gradient, gradient);
        return;
    }
    for (unsigned i = 0; i < sums; i++)
        program_add(program, &(struct operation){.code = OPERATION_GAP,
                                                 .a = gradient,
                                                 .alpha = seconds[i],
                                                 .beta = o->settings.l2,
                                                 .gamma = o->settings.gap.bias_share});
    if (wants_metric(o))
        program_add(program, &(struct operation){.code = OPERATION_METRIC,
                                                 .a = REGISTER_T,
                                                 .b = REGISTER_X,
                                                 .alpha = o->settings.gap.second,
                                                 .beta = o->settings.l2,
                                                 .gamma = o->settings.gap.bias_share});
}

/* A step in a span is along no line: that is measured by its first number all the same. */
static bool has_slope(const struct lbfgs *o) {
    return !common_runs(o);
}

void programs_measures(const struct lbfgs *o, struct bytes *program) {
    bool orthants = lbfgs_has_orthants(o);
    assert(o->data.weight_sum > 0 && !o->accepted);
    uint8_t gradient = orthants ? REGISTER_QH : REGISTER_H;
    program_add(program, &(struct operation){.code = OPERATION_GRADIENT,
                                             .a = REGISTER_H,
                                             .alpha = o->data.weight_sum});
    if (o->settings.l2 > 0)
        program_add(program, &(struct operation){.code = OPERATION_REGULARIZE,
                                                 .a = REGISTER_H,
                                                 .b = REGISTER_T,
                                                 .alpha = o->settings.l2});
    if (o->history.preconditioned)
        add_preconditioned(o, program, REGISTER_PH, REGISTER_H);
    if (orthants)
        add_pseudo_gradient(o, program, REGISTER_QH, REGISTER_T, REGISTER_H);
    add(program, OPERATION_DOT, gradient, has_slope(o) ? REGISTER_D : REGISTER_T);
    add(program, OPERATION_DOT, gradient, gradient);
    add(program, OPERATION_MAX_ABS, gradient, 0);
    add(program, OPERATION_DOT_REGULARIZED, REGISTER_T, REGISTER_T);
    if (orthants)
        add_orthant_measures(o, program);
    add_tensors(o, program, REGISTER_T);
    add_tensors(o, program, gradient);
    add_gap(o, program, gradient);
    if (wants_products(o))
        programs_pair(o, program, REGISTER_X, REGISTER_G);
}

#define NEWTON_FACTOR 2.0

#define MEAN_FACTOR 8.0 /* as bias_scale is |E|x||² to a factor of 2, and c is uncertain */

/* By l2 alone, of the squares of the gradient's weights and of all of it: struct gap_settings. */
static double gap_by_l2(const struct lbfgs *o, double weights, double all) {
    const struct gap_settings *gap = &o->settings.gap;
    double rather = second_rather(o), l2 = o->settings.l2, scale = o->settings.bias_scale;
    double c = rather > 0 && rather < gap->second ? rather : gap->second, uneven = gap->second / c;
    double mean = scale < 1 ? MEAN_FACTOR * scale * uneven * uneven : INFINITY;
    double biases = fmax(0, all - weights);
    double moved = sqrt(weights) + sqrt(fmin(mean, gap->mean_square) * biases);
    return 0.5 * (moved * moved / l2 + COLUMNS_FACTOR / c * biases);
}

static double gap_measured(const struct lbfgs *o, const double *sums, double square) {
    unsigned count = gap_sums(o);
    if (!count)
        return NAN;
    double gap = 0.5 * sums[0] * COLUMNS_FACTOR;
    if (programs_newton_tells(o))
        gap = 0.5 * NEWTON_FACTOR * (sums[0] + sums[1]);
    if (programs_l2_tells(o))
        gap = gap_by_l2(o, sums[0], square);
    if (count > 1 && !programs_newton_tells(o))
        gap = fmax(gap, 0.5 * sums[1]);
    return isnan(gap) ? INFINITY : gap;
}

/* A step that the columns have more curvature for than F has tells how nearly collinear they are.
 * Rounded curvature, or what is none, tells nothing. */
static double steepness_of(const struct lbfgs *o, const struct pairs_products *candidate,
                           double metric) {
    double steepness =
        programs_newton_tells(o) ? candidate->yy / candidate->sy : candidate->sy / metric;
    return steepness > 0 && steepness < 1 ? steepness : 1;
}

static double gap_bound(const struct lbfgs *o, const double *scalars) {
    assert(lbfgs_has_orthants(o));
    if (!o->settings.bounds_gap)
        return NAN;
    double square = scalars[MEASURED_NORM], l1 = o->settings.l1, l2 = o->settings.l2;
    double excess = scalars[MEASURED_GAP_EXCESS];
    /* Without l2 the largest component counts. What it exceeds l1 by is at most the root of the
     * sum, whatever the scaling. */
    if (l2 <= 0)
        excess = l1 + sqrt(excess);
    struct orthant_gap gap = {.mean_loss = o->mean_loss,
                              .norm_1 = scalars[MEASURED_NORM_1],
                              .square = square,
                              .wr = scalars[MEASURED_GAP_PRODUCT] - l2 * square,
                              .excess = excess};
    return orthant_gap_bound(l1, l2, &gap);
}

static struct tensor_norms norms_of(uint32_t tensors, const double *squares) {
    struct tensor_norms norms = {.count = tensors};
    assert(tensors <= TENSORS_MAX);
    for (uint32_t i = 0; i < tensors; i++) {
        norms.point[i] = sqrt(squares[i]);
        norms.gradient[i] = sqrt(squares[tensors + i]);
    }
    return norms;
}

struct measured programs_measured(const struct lbfgs *o, const double *scalars) {
    assert(isfinite(o->mean_loss)); /* else nothing was measured */
    double loss = o->mean_loss + o->settings.l2 / 2 * scalars[MEASURED_NORM];
    const double *squares = scalars + tensors_at(o);
    struct measured measured = {.loss = loss,
                                .slope = has_slope(o) ? scalars[MEASURED_SLOPE] : 0,
                                .square = scalars[MEASURED_SQUARE],
                                .max = scalars[MEASURED_MAX],
                                .norms = norms_of(o->settings.tensors, squares),
                                .gap =
                                    gap_measured(o, scalars + gap_at(o), scalars[MEASURED_SQUARE]),
                                .steepness = 1,
                                .gap_bound = NAN};
    if (lbfgs_has_orthants(o)) {
        measured.loss += o->settings.l1 * scalars[MEASURED_NORM_1];
        measured.falls = scalars[MEASURED_FALLS];
        measured.ends = scalars[MEASURED_ENDS];
        measured.step_square = scalars[MEASURED_STEP_SQUARE];
        measured.nonzero = measured.moving = (uint64_t)scalars[MEASURED_NONZERO];
        if (o->settings.limited) {
            measured.moving = (uint64_t)scalars[MEASURED_MOVING];
            measured.at_bound = (uint64_t)scalars[MEASURED_AT_BOUND];
        }
        measured.gap_bound = gap_bound(o, scalars);
    }
    if (!isfinite(measured.max) || !isfinite(measured.square))
        measured.slope = measured.falls = NAN;
    if (wants_products(o))
        measured.products = (const void *)(scalars + gap_at(o) + gap_sums(o) + wants_metric(o));
    if (is_step(o) && gap_sums(o) && !programs_l2_tells(o))
        measured.steepness =
            steepness_of(o, &measured.products[o->history.pairs], scalars[gap_at(o) + gap_sums(o)]);
    return measured;
}
