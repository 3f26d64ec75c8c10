#include "shard/sparse_step.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "numeric/steps.h"
#include "numeric/vector.h"
#include "shard/scaling.h"

/* An element that is picked out costs some times as much as one that is passed by. */
#define DENSE_SHARE 8

/* The operations of such a program. BEGIN and CHECK, beside them, touch no vector. */
struct sparse_step {
    const struct operation *gradient, *adagrad, *back, *begin;
};

static bool is_back_to_x(const struct operation *o) {
    return o->code == OPERATION_ADD && o->a == REGISTER_T && o->b == REGISTER_X &&
           o->c == REGISTER_X && o->alpha == 0;
}

static bool find_step(const struct operation_list *list, struct sparse_step *step) {
    *step = (struct sparse_step){0};
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *o = &list->items[i];
        if (o->code == OPERATION_BEGIN)
            step->begin = o;
        if (o->code == OPERATION_CHECK || o->code == OPERATION_BEGIN)
            continue;
        if (!step->gradient && o->code == OPERATION_GRADIENT && o->a == REGISTER_G)
            step->gradient = o;
        else if (step->gradient && !step->adagrad && o->code == OPERATION_ADAGRAD &&
                 o->a == REGISTER_X && o->b == REGISTER_A && o->c == REGISTER_G && o->l1 == 0)
            step->adagrad = o;
        else if (step->adagrad && !step->back && is_back_to_x(o))
            step->back = o;
        else
            return false;
    }
    return step->back;
}

/* By a gradient by biases that is not finite that by every weight is none. */
static bool biases_are_finite(const struct scaling *scaling) {
    for (size_t k = 0; scaling->used && k < scaling->outputs; k++)
        if (!isfinite(scaling->bias_gradient[k]))
            return false;
    return true;
}

bool sparse_step_fits(const struct registers *registers, const struct operation_list *list) {
    struct sparse_step step;
    return registers->trial_is_x && registers->sum_touched.some && find_step(list, &step) &&
           touched_total(&registers->sum_touched) < registers->count / DENSE_SHARE &&
           biases_are_finite(&registers->scaling);
}

/* ---- the step ---- */

/* Elements that are picked out, side by side. */
struct picked {
    size_t count;
    uint32_t at[BLOCK_ELEMENTS];
    int64_t sum[BLOCK_ELEMENTS];
    int16_t exponent[BLOCK_ELEMENTS];
    double x[BLOCK_ELEMENTS], a[BLOCK_ELEMENTS], g[BLOCK_ELEMENTS];
};

/* What is needed later is on its way meanwhile. */
static void pick(struct picked *picked, const struct registers *registers) {
    const double *t = registers->vector[REGISTER_T].elements;
    const double *a = registers->vector[REGISTER_A].elements;
    const double *g = registers->vector[REGISTER_G].elements;
    for (size_t i = 0; i < picked->count; i++) {
        picked->sum[i] = registers->sum[picked->at[i]];
        picked->x[i] = t[picked->at[i]];
        picked->a[i] = a[picked->at[i]];
        __builtin_prefetch(&g[picked->at[i]], 1);
    }
    for (size_t i = 0; registers->scaling.used && i < picked->count; i++)
        __builtin_prefetch(&registers->scaling.scale[picked->at[i]]);
    for (size_t i = 0; !registers->uniform && i < picked->count; i++)
        picked->exponent[i] = registers->exponents[picked->at[i]];
}

/* As x is finite, x + 0·x is x. */
static void put_back(const struct picked *picked, struct registers *registers, bool clears) {
    double *a = registers->vector[REGISTER_A].elements;
    double *g = registers->vector[REGISTER_G].elements;
    double *t = registers->vector[REGISTER_T].elements;
    for (size_t i = 0; i < picked->count; i++) {
        a[picked->at[i]] = picked->a[i];
        g[picked->at[i]] = picked->g[i];
        t[picked->at[i]] = picked->x[i];
    }
    for (size_t i = 0; clears && i < picked->count; i++)
        registers->sum[picked->at[i]] = 0;
}

static void step_picked(struct picked *picked, struct registers *registers,
                        const struct sparse_step *step, int bound) {
    const struct operation *o = step->adagrad;
    size_t n = picked->count;
    pick(picked, registers);
    if (registers->uniform)
        vector_from_fixed(n, picked->g, picked->sum, registers->exponent - bound,
                          step->gradient->alpha);
    else
        vector_from_fixed_columns(n, picked->g, picked->sum, picked->exponent, bound,
                                  step->gradient->alpha);
    if (registers->scaling.used)
        scaling_picked_to_scaled(&registers->scaling, picked->at, n, picked->g);
    adagrad_step(n, picked->x, picked->a, picked->g, o->alpha, o->beta);
    put_back(picked, registers, step->begin);
}

static void step_span(struct registers *registers, const struct sparse_step *step,
                      struct layout_span span, int bound) {
    struct picked picked;
    size_t at = span.first, end = span.first + span.count;
    while ((picked.count =
                touched_next(&registers->sum_touched, &at, end, picked.at, BLOCK_ELEMENTS))) {
        step_picked(&picked, registers, step, bound);
        heartbeat();
    }
}

void sparse_step_run(struct registers *registers, const struct bounds *bounds,
                     const struct operation_list *list) {
    const struct layout *layout = &registers->layout;
    struct sparse_step step;
    bool found = find_step(list, &step);
    assert(found && registers->trial_is_x && !registers->device);
    (void)found;
    for (size_t i = 0; i < registers->scaling.centred_count; i++)
        touched_add(&registers->sum_touched, registers->scaling.centred[i]);
    registers->unsettled = true;
    if (bounds->count == 1)
        step_span(registers, &step, (struct layout_span){0, registers->count}, bounds->exponent[0]);
    for (uint32_t i = 0; bounds->count > 1 && i < layout->count; i++) {
        struct layout_span part =
            layout_part(&layout->tensor[i], registers->first, registers->count);
        if (part.count) /* else it may lie beyond the range */
            step_span(registers, &step, part, bounds->exponent[i]);
    }
    touched_swap(&registers->gradient_touched, &registers->sum_touched);
    if (step.begin)
        touched_none(&registers->sum_touched);
    else
        touched_copy(&registers->sum_touched, &registers->gradient_touched);
}

/* ---- what is known afterwards ---- */

static void note_written(struct registers *registers, const struct operation *o) {
    if (operation_writes(o, REGISTER_X) || operation_writes(o, REGISTER_T))
        registers->trial_is_x = is_back_to_x(o);
    if (operation_writes(o, REGISTER_G))
        touched_all(&registers->gradient_touched);
}

void sparse_step_note(struct registers *registers, const struct operation_list *list, bool sparse) {
    if (sparse)
        return;
    for (size_t i = 0; i < list->count; i++) /* these act first */
        if (list->items[i].code == OPERATION_SWAP)
            note_written(registers, &list->items[i]);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].code != OPERATION_SWAP)
            note_written(registers, &list->items[i]);
}
