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
    const struct initial *initial = programs_initial(o);
    if (initial->product)
        add(program, OPERATION_SWAP, initial->gradient_x, initial->gradient_t);
    if (o->leaves_best)
        add(program, OPERATION_SWAP, REGISTER_T, REGISTER_BEST);
    o->accepted = o->leaves_best = false;
    assert(program->length > 0);
}

/* ---- H₀ ---- */

static void add_preconditioned(const struct lbfgs *o, struct bytes *program, uint8_t a, uint8_t b) {
    assert(a != b && o->preconditioner.refreshes > 0);
    program_add(program, &(struct operation){.code = OPERATION_PRECONDITION,
                                             .a = a,
                                             .b = b,
                                             .serial = o->preconditioner.refreshes});
}

const struct initial *programs_initial(const struct lbfgs *o) {
    static const struct initial by_p = {REGISTER_PG, REGISTER_PH, .product = add_preconditioned,
                                        .curves = true};
    static const struct initial by_sums = {REGISTER_G, REGISTER_H, .scaled = true, .curves = true};
    static const struct initial plain = {REGISTER_G, REGISTER_H, .scales_biases = true};
    if (o->history.preconditioned)
        return &by_p;
    return o->scaled ? &by_sums : &plain;
}

static double bias_scale(const struct lbfgs *o) {
    assert(o->settings.bias_scale > 0);
    return programs_initial(o)->scales_biases ? o->settings.bias_scale : 1;
}

/* ---- trials and directions ---- */

/* An operation of the domain, if it has one. */
static void add_kept(struct bytes *program, enum operation_code code, uint8_t a) {
    if (code)
        program_add(program,
                    &(struct operation){.code = code, .a = a, .b = REGISTER_X, .c = REGISTER_QG});
}

void programs_trial(const struct lbfgs *o, struct bytes *program, enum operation_code keep) {
    assert(o->search.step >= 0 && !o->accepted);
    program_add(program, &(struct operation){.code = OPERATION_ADD,
                                             .a = REGISTER_T,
                                             .b = REGISTER_X,
                                             .c = REGISTER_D,
                                             .alpha = o->search.step});
    add_kept(program, keep, REGISTER_T);
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
    const struct initial *initial = programs_initial(o);
    if (initial->product && o->unconditioned)
        initial->product(o, program, REGISTER_PG, REGISTER_G);
    assert(!o->steepest || !o->history.pairs); /* d is −g then */
    struct operation operation = {.code = OPERATION_DIRECTION,
                                  .a = REGISTER_D,
                                  .b = o->plan.domain->descend(o, program),
                                  .alpha = o->history.gamma,
                                  .beta = o->steepest ? 1 : bias_scale(o),
                                  .scaled = !o->steepest && initial->scaled,
                                  .count = o->history.pairs};
    memcpy(operation.slots, o->history.slot, o->history.pairs * sizeof operation.slots[0]);
    pairs_direction(&o->history, operation.u, operation.w);
    program_add(program, &operation);
    add_kept(program, o->plan.domain->align, REGISTER_D);
    o->unconditioned = false;
}

void programs_list(const struct lbfgs *o, struct bytes *program, uint32_t limit) {
    assert(!o->accepted && limit <= WORKING_SET_MAX);
    domain_pseudo_gradient(o, program, REGISTER_QG, REGISTER_X, REGISTER_G);
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
    add(program, OPERATION_DOT, o->plan.domain->gradient_x, REGISTER_D);
}

/* ---- pairs ---- */

void programs_pair(const struct lbfgs *o, struct bytes *program, uint8_t x, uint8_t g,
                   uint8_t initial) {
    assert(o->history.candidate < o->history.memory + 2);
    program_add(program, &(struct operation){.code = OPERATION_PAIR,
                                             .slot = o->history.candidate,
                                             .a = REGISTER_T,
                                             .b = x,
                                             .c = programs_initial(o)->gradient_t,
                                             .d = initial,
                                             .e = REGISTER_H,
                                             .f = g,
                                             .beta = bias_scale(o),
                                             .scaled = programs_initial(o)->scaled});
}

void programs_products(const struct lbfgs *o, struct bytes *program) {
    struct operation operation = {.code = OPERATION_HISTORY_DOTS,
                                  .a = o->plan.domain->gradient_t,
                                  .slot = o->history.candidate,
                                  .count = o->history.pairs + 1};
    assert(operation.count <= SLOTS_MAX);
    memcpy(operation.slots, o->history.slot, o->history.pairs * sizeof operation.slots[0]);
    operation.slots[o->history.pairs] = o->history.candidate;
    program_add(program, &operation);
}

/* ---- measures ---- */

/* Where the scalars stand. Those of the domain follow, then squares of tensors, those of the gap,
 * and products of pairs. */
enum { MEASURED_SLOPE, MEASURED_SQUARE, MEASURED_MAX, MEASURED_NORM, MEASURED_DOMAIN };

/* Whether t is a step from x; else it is the starting point, or x itself. */
static bool is_step(const struct lbfgs *o) {
    return o->started && o->common.stage != COMMON_CHECK;
}

/* At the start, pairs that were given need their products with the gradient. */
static bool wants_products(const struct lbfgs *o) {
    return is_step(o) || (!o->started && o->history.pairs);
}

static void add_tensors(const struct lbfgs *o, struct bytes *program, uint8_t a) {
    assert(o->settings.tensors <= TENSORS_MAX);
    if (o->settings.tensors)
        program_add(program, &(struct operation){.code = OPERATION_TENSOR_SQUARES,
                                                 .a = a,
                                                 .tensors = o->settings.tensors});
}

void programs_measures(const struct lbfgs *o, struct bytes *program) {
    const struct domain *domain = o->plan.domain;
    const uint8_t gradient = domain->gradient_t;
    assert(o->data.weight_sum > 0 && !o->accepted);
    program_add(program, &(struct operation){.code = OPERATION_GRADIENT,
                                             .a = REGISTER_H,
                                             .alpha = o->data.weight_sum});
    if (o->settings.l2 > 0)
        program_add(program, &(struct operation){.code = OPERATION_REGULARIZE,
                                                 .a = REGISTER_H,
                                                 .b = REGISTER_T,
                                                 .alpha = o->settings.l2});
    const struct initial *initial = programs_initial(o);
    if (initial->product)
        initial->product(o, program, REGISTER_PH, REGISTER_H);
    if (domain->finish)
        domain->finish(o, program);
    add(program, OPERATION_DOT, gradient,
        o->plan.way->directions->along_line ? REGISTER_D : REGISTER_T);
    add(program, OPERATION_DOT, gradient, gradient);
    add(program, OPERATION_MAX_ABS, gradient, 0);
    add(program, OPERATION_DOT_REGULARIZED, REGISTER_T, REGISTER_T);
    if (domain->measure)
        domain->measure(o, program);
    add_tensors(o, program, REGISTER_T);
    add_tensors(o, program, gradient);
    gap_add(o, gradient, is_step(o), program);
    if (!wants_products(o))
        return;
    programs_pair(o, program, REGISTER_X, REGISTER_G, initial->gradient_x);
    if (domain->mask)
        domain->mask(o, program);
    programs_products(o, program);
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
    const struct domain *domain = o->plan.domain;
    const double *tensors = scalars + MEASURED_DOMAIN + domain->scalars;
    const double *gap = tensors + 2 * o->settings.tensors;
    double square = scalars[MEASURED_NORM];
    struct measured measured = {
        .loss = o->mean_loss + o->settings.l2 / 2 * square,
        .slope = o->plan.way->directions->along_line ? scalars[MEASURED_SLOPE] : 0,
        .square = scalars[MEASURED_SQUARE],
        .max = scalars[MEASURED_MAX],
        .norms = norms_of(o->settings.tensors, tensors),
        .gap_bound = NAN};
    if (domain->take)
        domain->take(o, scalars + MEASURED_DOMAIN, square, &measured);
    if (!isfinite(measured.max) || !isfinite(measured.square))
        measured.slope = measured.falls = NAN;
    if (wants_products(o))
        measured.products = (const void *)(gap + gap_scalars(o, is_step(o)));
    gap_take(o, gap, is_step(o), &measured);
    return measured;
}
