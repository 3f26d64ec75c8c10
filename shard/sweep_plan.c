#include "shard/sweep_plan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "shard/resident.h"

enum { ORTHANT_LANES = 8, DOT_LANES = 32 };

/* One operation on its way into the plan. */
struct planner {
    struct sweep_plan *plan;
    const struct registers *registers;
    const struct bounds *bounds;
    const struct operation *operation;
    uint32_t yield;
};

void sweep_plan_release(struct sweep_plan *plan) {
    free(plan->phases);
    free(plan->steps);
    free(plan->terms);
    *plan = (struct sweep_plan){0};
}

void sweep_plan_clear(struct sweep_plan *plan) {
    plan->phase_count = plan->step_count = plan->term_count = 0;
}

/* ---- phases ---- */

static void add_phase(struct sweep_plan *plan, enum sweep_kind kind) {
    MEMORY_ROOM(plan->phases, plan->phase_count, plan->phase_capacity);
    uint32_t first = (uint32_t)plan->step_count;
    plan->phases[plan->phase_count++] = (struct sweep_phase){(uint32_t)kind, first, first};
}

/* Whether the last phase is of this kind. */
static bool goes_on(const struct sweep_plan *plan, enum sweep_kind kind) {
    return plan->phase_count && plan->phases[plan->phase_count - 1].kind == (uint32_t)kind;
}

static void add_step(struct sweep_plan *plan, const struct sweep_step *step) {
    MEMORY_ROOM(plan->steps, plan->step_count, plan->step_capacity);
    plan->steps[plan->step_count++] = *step;
}

static struct layout_span whole_range(const struct planner *planner) {
    return (struct layout_span){0, planner->registers->count};
}

/* Adds a step that makes elements; `step` lacks only them. */
static void add_each(const struct planner *planner, struct layout_span span,
                     struct sweep_step step) {
    struct sweep_plan *plan = planner->plan;
    if (!span.count)
        return;
    if (!goes_on(plan, SWEEP_EACH))
        add_phase(plan, SWEEP_EACH);
    step.first = span.first;
    step.end = span.first + span.count;
    add_step(plan, &step);
    plan->phases[plan->phase_count - 1].end++;
}

/* Adds a step that makes sums, whose threads begin at a multiple of their number. Steps share the
 * two phases while there are threads for them. */
static void add_sums(const struct planner *planner, struct layout_span span,
                     struct sweep_step step) {
    struct sweep_plan *plan = planner->plan;
    uint32_t thread = 0;
    if (!span.count)
        return;
    if (goes_on(plan, SWEEP_FOLD)) {
        const struct sweep_step *last = &plan->steps[plan->step_count - 1];
        thread = last->thread + last->lanes + step.lanes - 1;
        thread -= thread % step.lanes;
    }
    if (!goes_on(plan, SWEEP_FOLD) || thread + step.lanes > SWEEP_THREADS) {
        add_phase(plan, SWEEP_LANES);
        add_phase(plan, SWEEP_FOLD);
        thread = 0;
    }
    step.thread = thread;
    step.first = span.first;
    step.end = span.first + span.count;
    add_step(plan, &step);
    plan->phases[plan->phase_count - 2].end++;
    plan->phases[plan->phase_count - 1].end++;
}

/* ---- operands ---- */

static double *at(const struct planner *planner, uint8_t number) {
    return planner->registers->vector[number].resident;
}

static void *stored_s(const struct planner *planner, uint32_t slot) {
    return resident_pair(planner->registers, slot, 0);
}

static void *stored_q(const struct planner *planner, uint32_t slot) {
    return resident_pair(planner->registers, slot, 1);
}

/* What l2 is weighed with, or NULL: see penalised() in shard/interpreter.c. */
static const double *penalty_of(const struct planner *planner) {
    return planner->registers->resident->penalty;
}

/* The operands that an operation names as the step does. */
static struct sweep_step step_of(const struct planner *planner, enum sweep_code code) {
    const struct operation *operation = planner->operation;
    return (struct sweep_step){.code = (uint32_t)code,
                               .a = at(planner, operation->a),
                               .b = at(planner, operation->b),
                               .c = at(planner, operation->c),
                               .d = at(planner, operation->d),
                               .alpha = operation->alpha,
                               .beta = operation->beta,
                               .l1 = operation->l1};
}

static struct sweep_step sums_of(const struct planner *planner, enum sweep_code code,
                                 uint32_t lanes, uint32_t results) {
    struct sweep_step step = step_of(planner, code);
    step.lanes = lanes;
    step.results = results;
    step.yield = planner->yield;
    step.yield_step = 1;
    return step;
}

typedef void add_function(const struct planner *planner, struct layout_span span,
                          struct sweep_step step);

static void for_regularized(const struct planner *planner, add_function *add,
                            struct sweep_step step) {
    for (uint32_t i = 0; i < planner->registers->regularized_count; i++)
        add(planner, planner->registers->regularized[i], step);
}

static void for_others(const struct planner *planner, add_function *add, struct sweep_step step) {
    for (uint32_t i = 0; i < planner->registers->biases_count; i++)
        add(planner, planner->registers->biases[i], step);
}

/* ---- operations that make elements ---- */

static void plan_zero(const struct planner *planner) {
    add_each(planner, whole_range(planner), step_of(planner, SWEEP_ZERO));
}

static void plan_add(const struct planner *planner) {
    add_each(planner, whole_range(planner), step_of(planner, SWEEP_ADD));
}

static void plan_gradient(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    const struct layout *layout = &registers->layout;
    struct sweep_step step = step_of(planner, SWEEP_GRADIENT);
    bool shared = planner->bounds->count == 1;
    step.bound = planner->bounds->exponent[0];
    if (shared)
        add_each(planner, whole_range(planner), step);
    for (uint32_t i = 0; !shared && i < layout->count; i++) {
        step.bound = planner->bounds->exponent[i];
        add_each(planner, layout_part(&layout->tensor[i], registers->first, registers->count),
                 step);
    }
    if (registers->frame.used)
        add_each(planner, whole_range(planner), step_of(planner, SWEEP_TURN));
}

static void plan_regularize(const struct planner *planner) {
    struct sweep_step step = step_of(planner, SWEEP_REGULARIZE);
    step.weight = penalty_of(planner);
    for_regularized(planner, add_each, step);
}

/* q = B·q. */
static void plan_scaling_of_q(const struct planner *planner, struct sweep_step step) {
    const struct operation *operation = planner->operation;
    step.a = operation->scaled ? at(planner, REGISTER_A) : NULL;
    step.alpha = operation->beta;
    step.code = operation->scaled ? SWEEP_MULTIPLY_Q : SWEEP_SCALE_Q;
    if (operation->scaled)
        add_each(planner, whole_range(planner), step);
    else
        for_others(planner, add_each, step);
}

/* y stays with the block; see run_pair(). */
static void plan_pair(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    struct sweep_step step = step_of(planner, SWEEP_STORE_S);
    step.s = stored_s(planner, operation->slot);
    step.q = stored_q(planner, operation->slot);
    add_each(planner, whole_range(planner), step);
    step.code = SWEEP_STORE_Q;
    step.a = at(planner, operation->c);
    step.b = at(planner, operation->d);
    add_each(planner, whole_range(planner), step);
    plan_scaling_of_q(planner, step);
    if (operation->e == operation->c && operation->f == operation->d)
        return;
    step.code = SWEEP_DIFFERENCE;
    step.a = at(planner, operation->e);
    step.b = at(planner, operation->f);
    add_each(planner, whole_range(planner), step);
}

/* a = B·a. */
static void plan_scaling(const struct planner *planner, struct sweep_step step) {
    const struct operation *operation = planner->operation;
    step.code = operation->scaled ? SWEEP_MULTIPLY : SWEEP_SCALE;
    step.b = operation->scaled ? at(planner, REGISTER_A) : step.a;
    step.alpha = operation->beta;
    if (operation->scaled)
        add_each(planner, whole_range(planner), step);
    else
        for_others(planner, add_each, step);
}

static void plan_direction(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    struct sweep_plan *plan = planner->plan;
    struct sweep_step step = step_of(planner, SWEEP_SCALE);
    step.alpha = -operation->alpha;
    add_each(planner, whole_range(planner), step);
    plan_scaling(planner, step);
    step.code = SWEEP_ADD_HISTORY;
    step.first_term = (uint32_t)plan->term_count;
    step.terms = operation->count;
    for (uint32_t i = 0; i < operation->count; i++) {
        MEMORY_ROOM(plan->terms, plan->term_count, plan->term_capacity);
        plan->terms[plan->term_count++] =
            (struct sweep_term){.s = stored_s(planner, operation->slots[i]),
                                .q = stored_q(planner, operation->slots[i]),
                                .p = -operation->u[i],
                                .r = operation->alpha * operation->w[i]};
    }
    if (operation->count)
        add_each(planner, whole_range(planner), step);
}

static void plan_adagrad(const struct planner *planner) {
    struct sweep_step step = step_of(planner, SWEEP_ADAGRAD);
    step.sums = at(planner, planner->operation->b);
    add_each(planner, whole_range(planner), step);
    if (step.l1 > 0)
        for_regularized(planner, add_each, step_of(planner, SWEEP_SHRINK));
}

static void plan_diagonal(const struct planner *planner) {
    add_each(planner, whole_range(planner), step_of(planner, SWEEP_DIAGONAL));
}

/* As run_pseudo_gradient(): first a copy, then the regularised elements of it. */
static void plan_pseudo_gradient(const struct planner *planner) {
    struct sweep_step copy = step_of(planner, SWEEP_SCALE);
    copy.alpha = 1;
    copy.b = copy.c;
    add_each(planner, whole_range(planner), copy);
    struct sweep_step step = step_of(planner, SWEEP_PSEUDO);
    step.c = step.a;
    for_regularized(planner, add_each, step);
}

static void plan_project(const struct planner *planner) {
    for_regularized(planner, add_each, step_of(planner, SWEEP_PROJECT));
}

static void plan_align(const struct planner *planner) {
    for_regularized(planner, add_each, step_of(planner, SWEEP_ALIGN));
}

static void plan_mask(const struct planner *planner) {
    struct sweep_step step = step_of(planner, SWEEP_MASK);
    step.q = stored_q(planner, planner->operation->slot);
    for_regularized(planner, add_each, step);
}

/* ---- operations that add up ---- */

static void plan_dot(const struct planner *planner) {
    add_sums(planner, whole_range(planner), sums_of(planner, SWEEP_DOT, DOT_LANES, 1));
}

static void plan_dot_regularized(const struct planner *planner) {
    struct sweep_step step = sums_of(planner, SWEEP_DOT, DOT_LANES, 1);
    step.weight = penalty_of(planner);
    for_regularized(planner, add_sums, step);
}

static void plan_max_abs(const struct planner *planner) {
    add_sums(planner, whole_range(planner), sums_of(planner, SWEEP_MAX, DOT_LANES, 1));
}

static void plan_tensor_squares(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    struct sweep_step step = sums_of(planner, SWEEP_DOT, DOT_LANES, 1);
    step.b = step.a;
    for (uint32_t i = 0; i < planner->operation->tensors; i++) {
        step.yield = planner->yield + i;
        add_sums(planner,
                 layout_part(&registers->layout.tensor[i], registers->first, registers->count),
                 step);
    }
}

/* Scalars of a slot are s·a, q·a, s·y and q·y. */
static void plan_history_dots(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    for (uint32_t i = 0; i < operation->count; i++) {
        struct sweep_step step = sums_of(planner, SWEEP_HISTORY, SWEEP_HISTORY_LANES, 2);
        step.yield = planner->yield + 4 * i;
        step.yield_step = 2;
        step.s = stored_s(planner, operation->slots[i]);
        add_sums(planner, whole_range(planner), step);
        step.yield++;
        step.s = stored_q(planner, operation->slots[i]);
        add_sums(planner, whole_range(planner), step);
    }
}

static void plan_norm_1(const struct planner *planner) {
    for_regularized(planner, add_sums, sums_of(planner, SWEEP_NORM, ORTHANT_LANES, 2));
}

/* The square of a step is of the vectors themselves, also if l1 is of others: see run_descent(). */
static void plan_descent(const struct planner *planner) {
    bool used = planner->registers->frame.used;
    struct sweep_step step = sums_of(planner, SWEEP_DESCENT, ORTHANT_LANES, used ? 2 : 3);
    for_regularized(planner, add_sums, step);
    step.l1 = 0;
    for_others(planner, add_sums, step);
    step = sums_of(planner, SWEEP_SQUARE_OF_STEP, DOT_LANES, 1);
    step.yield += 2;
    if (used) {
        for_regularized(planner, add_sums, step);
        for_others(planner, add_sums, step);
    }
}

static void plan_excess(const struct planner *planner) {
    for_regularized(planner, add_sums, sums_of(planner, SWEEP_EXCESS, ORTHANT_LANES, 1));
}

static void (*const plans[OPERATIONS])(const struct planner *) = {
    [OPERATION_ZERO] = plan_zero,
    [OPERATION_ADD] = plan_add,
    [OPERATION_GRADIENT] = plan_gradient,
    [OPERATION_REGULARIZE] = plan_regularize,
    [OPERATION_PAIR] = plan_pair,
    [OPERATION_DIRECTION] = plan_direction,
    [OPERATION_DOT] = plan_dot,
    [OPERATION_DOT_REGULARIZED] = plan_dot_regularized,
    [OPERATION_MAX_ABS] = plan_max_abs,
    [OPERATION_HISTORY_DOTS] = plan_history_dots,
    [OPERATION_PSEUDO_GRADIENT] = plan_pseudo_gradient,
    [OPERATION_PROJECT] = plan_project,
    [OPERATION_ALIGN] = plan_align,
    [OPERATION_MASK] = plan_mask,
    [OPERATION_NORM_1] = plan_norm_1,
    [OPERATION_DESCENT] = plan_descent,
    [OPERATION_EXCESS] = plan_excess,
    [OPERATION_TENSOR_SQUARES] = plan_tensor_squares,
    [OPERATION_ADAGRAD] = plan_adagrad,
    [OPERATION_DIAGONAL] = plan_diagonal,
};

void sweep_plan_add(struct sweep_plan *plan, const struct registers *registers,
                    const struct bounds *bounds, const struct operation *operation,
                    uint32_t yield) {
    const struct planner planner = {plan, registers, bounds, operation, yield};
    if (plans[operation->code])
        plans[operation->code](&planner);
}
