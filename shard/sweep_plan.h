/* Turns the operations of a program into the steps that a device runs (shard/sweep_step.h). */
#ifndef DML_SHARD_SWEEP_PLAN_H
#define DML_SHARD_SWEEP_PLAN_H

#include <stddef.h>

#include "shard/registers.h"
#include "shard/sweep_step.h"

/* Steps name memory of the device. Zeroed memory is a plan of nothing. */
struct sweep_plan {
    struct sweep_phase *phases; /* owned, as the next two */
    struct sweep_step *steps;
    struct sweep_term *terms;
    size_t phase_count, phase_capacity;
    size_t step_count, step_capacity;
    size_t term_count, term_capacity;
};

void sweep_plan_clear(struct sweep_plan *plan);
void sweep_plan_release(struct sweep_plan *plan);

/* Adds an operation on registers that are on a device, whose first scalar is number `yield` of the
 * program. Those that act before the sweeps, or end one, add nothing. `bounds` are those of
 * the evaluation whose sum the registers hold. */
void sweep_plan_add(struct sweep_plan *plan, const struct registers *registers,
                    const struct bounds *bounds, const struct operation *operation, uint32_t yield);

#endif
