#include "shard/pass_plan.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "shard/registers.h"

/* ---- operations of a program ---- */

/* Whether an operation has slots of the window, not of the history. */
static bool is_of_window(const struct operation *operation) {
    switch (operation->code) {
    case OPERATION_KEEP:
    case OPERATION_COMBINE:
    case OPERATION_WINDOW_DOTS:
    case OPERATION_ROWS_TAKE:
    case OPERATION_ROWS_AT:
    case OPERATION_ROWS_SLOPES:
    case OPERATION_ROWS_SECOND:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        return true;
    default:
        return false;
    }
}

static bool has_slot(const struct operation *operation) {
    switch (operation->code) {
    case OPERATION_PAIR:
    case OPERATION_HISTORY_DOTS:
    case OPERATION_MASK:
    case OPERATION_KEEP:
    case OPERATION_ROWS_HESSIAN_PRODUCT:
        return true;
    case OPERATION_ROWS_TAKE:
        return operation->vector == ROWS_PRODUCT;
    default:
        return false;
    }
}

static int check_slots(const struct operation *operation, struct slot_counts counts) {
    uint32_t slots = is_of_window(operation) ? counts.window : counts.history;
    if (has_slot(operation) && operation->slot >= slots)
        return error_set(ERROR_INTERNAL, "a program names slot %u of %u", operation->slot, slots);
    for (uint32_t i = 0; i < operation->count; i++)
        if (operation->slots[i] >= slots)
            return error_set(ERROR_INTERNAL, "a program names slot %u of %u", operation->slots[i],
                             slots);
    return 0;
}

int operation_list_read(struct operation_list *list, const struct blob *program,
                        struct slot_counts slots) {
    struct cursor cursor = cursor_over(program->data, program->length);
    int code = 0;
    *list = (struct operation_list){0};
    while (!code) {
        MEMORY_ROOM(list->items, list->count, list->capacity);
        struct operation *next = &list->items[list->count];
        if (!program_next(&cursor, next))
            break;
        list->count++;
        code = check_slots(next, slots);
    }
    assert(code || !cursor.failed);
    return code;
}

void operation_list_release(struct operation_list *list) {
    free(list->items);
    *list = (struct operation_list){0};
}

/* ---- a plan ---- */

/* What the steps of one operation are made from. */
struct planner {
    struct pass_plan *plan;
    const struct registers *registers;
    const struct bounds *bounds;
    const struct operation *operation;
    uint32_t yield;
};

void pass_plan_release(struct pass_plan *plan) {
    free(plan->steps);
    free(plan->terms);
    *plan = (struct pass_plan){0};
}

void pass_plan_clear(struct pass_plan *plan) {
    plan->step_count = plan->term_count = 0;
}

static struct layout_span whole_range(const struct planner *planner) {
    return (struct layout_span){0, planner->registers->count};
}

/* Adds a step over a part of the range; `step` is complete but for that. */
static void add_step(const struct planner *planner, struct layout_span span,
                     struct pass_step step) {
    struct pass_plan *plan = planner->plan;
    if (!span.count)
        return;
    assert(span.first + span.count <= planner->registers->count);
    step.first = span.first;
    step.end = span.first + span.count;
    MEMORY_ROOM(plan->steps, plan->step_count, plan->step_capacity);
    plan->steps[plan->step_count++] = step;
}

/* ---- operands ---- */

/* The register where programs run: on the device, if there is one. */
static double *at(const struct planner *planner, uint8_t number) {
    const struct vector *vector = &planner->registers->vector[number];
    return vector->resident ? vector->resident : vector->elements;
}

/* The weights of l2, which differ between elements if columns are scaled; else NULL. */
static const double *penalty_of(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    return registers->resident ? registers->resident->penalty : registers->scaling.penalty;
}

/* A step with the operands of the operation, under the same letters. */
static struct pass_step step_of(const struct planner *planner, enum pass_code code) {
    const struct operation *operation = planner->operation;
    return (struct pass_step){.code = (uint32_t)code,
                              .a = at(planner, operation->a),
                              .b = at(planner, operation->b),
                              .c = at(planner, operation->c),
                              .d = at(planner, operation->d),
                              .alpha = operation->alpha,
                              .beta = operation->beta,
                              .l1 = operation->l1};
}

static struct pass_step sums_of(const struct planner *planner, enum pass_code code,
                                uint32_t results) {
    struct pass_step step = step_of(planner, code);
    step.results = results;
    step.yield = planner->yield;
    step.yield_step = 1;
    return step;
}

static void for_regularized(const struct planner *planner, struct pass_step step) {
    for (uint32_t i = 0; i < planner->registers->regularized_count; i++)
        add_step(planner, planner->registers->regularized[i], step);
}

static void for_others(const struct planner *planner, struct pass_step step) {
    for (uint32_t i = 0; i < planner->registers->biases_count; i++)
        add_step(planner, planner->registers->biases[i], step);
}

/* ---- operations that make elements ---- */

static void plan_gradient(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    const struct layout *layout = &registers->layout;
    struct pass_step step = step_of(planner, PASS_GRADIENT);
    bool shared = planner->bounds->count == 1;
    step.bound = planner->bounds->exponent[0];
    if (shared)
        add_step(planner, whole_range(planner), step);
    for (uint32_t i = 0; !shared && i < layout->count; i++) {
        step.bound = planner->bounds->exponent[i];
        add_step(planner, layout_part(&layout->tensor[i], registers->first, registers->count),
                 step);
    }
    if (registers->scaling.used)
        add_step(planner, whole_range(planner), step_of(planner, PASS_TO_SCALED));
}

/* q = B·q. */
static void plan_scaling_of_q(const struct planner *planner, struct pass_step step) {
    const struct operation *operation = planner->operation;
    step.a = operation->scaled ? at(planner, REGISTER_A) : NULL;
    step.alpha = operation->beta;
    step.code = operation->scaled ? PASS_MULTIPLY_Q : PASS_SCALE_Q;
    if (operation->scaled)
        add_step(planner, whole_range(planner), step);
    else
        for_others(planner, step);
}

/* s = a − b, q = B·(c − d); y, which stays with the block, is what q was before B, or e − f. */
static void plan_pair(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    struct pass_step step = step_of(planner, PASS_STORE_S);
    step.s = registers_stored(planner->registers, operation->slot, 0);
    step.q = registers_stored(planner->registers, operation->slot, 1);
    add_step(planner, whole_range(planner), step);
    step.code = PASS_STORE_Q;
    step.a = at(planner, operation->c);
    step.b = at(planner, operation->d);
    add_step(planner, whole_range(planner), step);
    plan_scaling_of_q(planner, step);
    if (operation->e == operation->c && operation->f == operation->d)
        return;
    step.code = PASS_DIFFERENCE;
    step.a = at(planner, operation->e);
    step.b = at(planner, operation->f);
    add_step(planner, whole_range(planner), step);
}

/* a = B·a. */
static void plan_scaling(const struct planner *planner, struct pass_step step) {
    const struct operation *operation = planner->operation;
    step.code = operation->scaled ? PASS_MULTIPLY : PASS_SCALE;
    step.b = operation->scaled ? at(planner, REGISTER_A) : step.a;
    step.alpha = operation->beta;
    if (operation->scaled)
        add_step(planner, whole_range(planner), step);
    else
        for_others(planner, step);
}

static void plan_direction(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    struct pass_plan *plan = planner->plan;
    struct pass_step step = step_of(planner, PASS_SCALE);
    step.alpha = -operation->alpha;
    add_step(planner, whole_range(planner), step);
    plan_scaling(planner, step);
    step.code = PASS_ADD_HISTORY;
    step.first_term = (uint32_t)plan->term_count;
    step.terms = operation->count;
    for (uint32_t i = 0; i < operation->count; i++) {
        MEMORY_ROOM(plan->terms, plan->term_count, plan->term_capacity);
        plan->terms[plan->term_count++] =
            (struct pass_term){.s = registers_stored(planner->registers, operation->slots[i], 0),
                               .q = registers_stored(planner->registers, operation->slots[i], 1),
                               .p = -operation->u[i],
                               .r = operation->alpha * operation->w[i]};
    }
    if (operation->count)
        add_step(planner, whole_range(planner), step);
}

/* a, rounded, is a direction of the window. */
static void plan_keep(const struct planner *planner) {
    struct pass_step step = step_of(planner, PASS_KEEP);
    step.s = registers_stored_direction(planner->registers, planner->operation->slot);
    add_step(planner, whole_range(planner), step);
}

/* Two directions are read beside each other, like the vectors of a pair; the last may be alone. */
static void plan_combine(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    struct pass_plan *plan = planner->plan;
    struct pass_step step = step_of(planner, PASS_SCALE);
    step.alpha = 1;
    if (operation->a != operation->b)
        add_step(planner, whole_range(planner), step);
    step.code = PASS_ADD_HISTORY;
    step.first_term = (uint32_t)plan->term_count;
    for (uint32_t i = 0; i < operation->count; i++) {
        void *direction = registers_stored_direction(planner->registers, operation->slots[i]);
        if (operation->u[i] == 0)
            continue;
        struct pass_term *last = step.terms ? &plan->terms[plan->term_count - 1] : NULL;
        if (last && last->q == last->s) {
            last->q = direction;
            last->r = operation->u[i];
            continue;
        }
        MEMORY_ROOM(plan->terms, plan->term_count, plan->term_capacity);
        plan->terms[plan->term_count++] =
            (struct pass_term){.s = direction, .q = direction, .p = operation->u[i]};
        step.terms++;
    }
    if (step.terms)
        add_step(planner, whole_range(planner), step);
}

static void plan_adagrad(const struct planner *planner) {
    struct pass_step step = step_of(planner, PASS_ADAGRAD);
    step.sums = at(planner, planner->operation->b);
    add_step(planner, whole_range(planner), step);
    if (step.l1 > 0)
        for_regularized(planner, step_of(planner, PASS_SHRINK));
}

/* First a copy, then the regularised elements of it. */
static void plan_pseudo_gradient(const struct planner *planner) {
    struct pass_step copy = step_of(planner, PASS_SCALE);
    copy.alpha = 1;
    copy.b = copy.c;
    add_step(planner, whole_range(planner), copy);
    struct pass_step step = step_of(planner, PASS_PSEUDO);
    step.c = step.a;
    for_regularized(planner, step);
}

static void plan_mask(const struct planner *planner) {
    struct pass_step step = step_of(planner, PASS_MASK);
    step.q = registers_stored(planner->registers, planner->operation->slot, 1);
    for_regularized(planner, step);
}

/* ---- operations that add up ---- */

static void plan_tensor_squares(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    struct pass_step step = sums_of(planner, PASS_DOT, 1);
    step.b = step.a;
    for (uint32_t i = 0; i < planner->operation->tensors; i++) {
        step.yield = planner->yield + i;
        add_step(planner,
                 layout_part(&registers->layout.tensor[i], registers->first, registers->count),
                 step);
    }
}

/* The curvature of what is not regularised is alpha times its share alone. */
static void plan_by_curvature(const struct planner *planner, uint32_t code) {
    const struct registers *registers = planner->registers;
    struct pass_step step = sums_of(planner, code, 1);
    step.square = registers->resident ? registers->resident->square : registers->scaling.square;
    step.weight = registers->scaling.used ? penalty_of(planner) : NULL;
    for_regularized(planner, step);
    step.square = step.weight = NULL;
    step.alpha *= planner->operation->gamma;
    step.beta = 0;
    for_others(planner, step);
}

static void plan_gap(const struct planner *planner) {
    plan_by_curvature(planner, PASS_GAP);
}

static void plan_metric(const struct planner *planner) {
    plan_by_curvature(planner, PASS_METRIC);
}

/* Scalars of a slot are s·a, q·a, s·y and q·y. */
static void plan_history_dots(const struct planner *planner) {
    const struct operation *operation = planner->operation;
    for (uint32_t i = 0; i < operation->count; i++) {
        struct pass_step step = sums_of(planner, PASS_HISTORY, 2);
        step.yield = planner->yield + 4 * i;
        step.yield_step = 2;
        step.s = registers_stored(planner->registers, operation->slots[i], 0);
        add_step(planner, whole_range(planner), step);
        step.yield++;
        step.s = registers_stored(planner->registers, operation->slots[i], 1);
        add_step(planner, whole_range(planner), step);
    }
}

/* Directions are next to each other in the plan, for the host reads them side by side. */
static void plan_window_dots(const struct planner *planner) {
    const struct registers *registers = planner->registers;
    const struct operation *operation = planner->operation;
    for (uint32_t span = 0; span < registers->regularized_count; span++)
        for (uint32_t i = 0; i < operation->count; i++) {
            struct pass_step step = sums_of(planner, PASS_WINDOW, 1);
            step.yield = planner->yield + i;
            step.weight = penalty_of(planner);
            step.s = registers_stored_direction(registers, operation->slots[i]);
            add_step(planner, registers->regularized[span], step);
        }
}

/* Where nothing is regularised l1 is 0, and the sign constraint is inactive. The square of the step
 * is that of the vectors themselves: with scaled columns, whose operands are weighed for l1 unless
 * they have limits, a step of its own computes it. */
static void plan_descent(const struct planner *planner) {
    bool used = planner->registers->scaling.used && !planner->registers->limits.used;
    struct pass_step step = sums_of(planner, PASS_DESCENT, used ? 2 : 3);
    for_regularized(planner, step);
    step.l1 = 0;
    for_others(planner, step);
    step = sums_of(planner, PASS_SQUARE_OF_STEP, 1);
    step.yield += 2;
    if (used) {
        for_regularized(planner, step);
        for_others(planner, step);
    }
}

/* ---- operations of one step ---- */

enum extent { NOTHING, WHOLE, REGULARIZED };

/* How an operation becomes steps: by `plan`, or else as one step with this code. */
struct plan_rule {
    void (*plan)(const struct planner *planner);
    enum pass_code code;
    enum extent extent;
    bool weighted;    /* with the penalties of scaled columns */
    uint32_t results; /* of sums */
};

static const struct plan_rule rules[OPERATIONS] = {
    [OPERATION_ZERO] = {NULL, PASS_ZERO, WHOLE, false, 0},
    [OPERATION_ADD] = {NULL, PASS_ADD, WHOLE, false, 0},
    [OPERATION_GRADIENT] = {.plan = plan_gradient},
    [OPERATION_REGULARIZE] = {NULL, PASS_REGULARIZE, REGULARIZED, true, 0},
    [OPERATION_PAIR] = {.plan = plan_pair},
    [OPERATION_DIRECTION] = {.plan = plan_direction},
    [OPERATION_DOT] = {NULL, PASS_DOT, WHOLE, false, 1},
    [OPERATION_DOT_REGULARIZED] = {NULL, PASS_DOT, REGULARIZED, true, 1},
    [OPERATION_MAX_ABS] = {NULL, PASS_MAX, WHOLE, false, 1},
    [OPERATION_HISTORY_DOTS] = {.plan = plan_history_dots},
    [OPERATION_PSEUDO_GRADIENT] = {.plan = plan_pseudo_gradient},
    [OPERATION_PROJECT] = {NULL, PASS_PROJECT, REGULARIZED, false, 0},
    [OPERATION_ALIGN] = {NULL, PASS_ALIGN, REGULARIZED, false, 0},
    [OPERATION_MASK] = {.plan = plan_mask},
    [OPERATION_NORM_1] = {NULL, PASS_NORM, REGULARIZED, false, 2},
    [OPERATION_DESCENT] = {.plan = plan_descent},
    [OPERATION_EXCESS] = {NULL, PASS_EXCESS, REGULARIZED, false, 1},
    [OPERATION_TENSOR_SQUARES] = {.plan = plan_tensor_squares},
    [OPERATION_ADAGRAD] = {.plan = plan_adagrad},
    [OPERATION_DIAGONAL] = {NULL, PASS_DIAGONAL, WHOLE, false, 0},
    [OPERATION_GAP] = {.plan = plan_gap},
    [OPERATION_KEEP] = {.plan = plan_keep},
    [OPERATION_COMBINE] = {.plan = plan_combine},
    [OPERATION_WINDOW_DOTS] = {.plan = plan_window_dots},
    [OPERATION_METRIC] = {.plan = plan_metric},
    [OPERATION_CLIP] = {NULL, PASS_CLIP, REGULARIZED, false, 0},
    [OPERATION_HELD] = {NULL, PASS_HELD, REGULARIZED, false, 2},
};

void pass_plan_add(struct pass_plan *plan, const struct registers *registers,
                   const struct bounds *bounds, const struct operation *operation, uint32_t yield) {
    const struct planner planner = {plan, registers, bounds, operation, yield};
    const struct plan_rule *rule = &rules[operation->code];
    if (rule->plan || rule->extent == NOTHING) {
        if (rule->plan)
            rule->plan(&planner);
        return;
    }
    struct pass_step step = sums_of(&planner, rule->code, rule->results);
    step.weight = rule->weighted ? penalty_of(&planner) : NULL;
    if (rule->extent == WHOLE)
        add_step(&planner, whole_range(&planner), step);
    else
        for_regularized(&planner, step);
}
