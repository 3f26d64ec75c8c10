/* Runs programs on a device: sweep by sweep, all blocks of the range at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shard/backend.h"
#include "shard/block.h"
#include "shard/interpreter.h"
#include "shard/resident.h"
#include "shard/sweep_kernel.h"
#include "shard/sweep_plan.h"

extern const struct kernel kernel_sweep;

/* A program under way. */
struct course {
    const struct operation_list *list;
    struct registers *registers;
    const struct bounds *bounds;
    struct device *device;
    struct sweep_plan plan; /* of the sweep at hand */
    struct yield *yields;
    size_t yield_count;
};

/* ---- one sweep ---- */

static struct sweep_range range_of(const struct registers *registers) {
    const struct resident *resident = registers->resident;
    const struct frame *frame = &registers->frame;
    return (struct sweep_range){.count = registers->count,
                                .wide = registers->history_type == HISTORY_DOUBLE,
                                .exponent = registers->exponent,
                                .sum = resident->sum,
                                .exponents = registers->uniform ? NULL : resident->exponents,
                                .output = frame->used ? frame->first % frame->outputs : 0,
                                .outputs = frame->outputs,
                                .mean = resident->mean,
                                .scale = resident->scale,
                                .root = resident->root,
                                .bias_gradient = resident->bias_gradient};
}

/* Room for `bytes` of a program. */
static int make_room(struct course *course, size_t bytes) {
    struct resident *resident = course->registers->resident;
    if (bytes <= resident->program_bytes)
        return 0;
    device_delete(course->device, resident->program);
    resident->program = NULL;
    resident->program_bytes = 0;
    int code = device_new(course->device, 2 * bytes, &resident->program);
    resident->program_bytes = code ? 0 : 2 * bytes;
    return code;
}

/* Brings the plan to the device: steps, terms, phases. */
static int put_plan(struct course *course, struct sweep_arguments *arguments) {
    const struct sweep_plan *plan = &course->plan;
    size_t steps = plan->step_count * sizeof *plan->steps;
    size_t terms = plan->term_count * sizeof *plan->terms;
    size_t phases = plan->phase_count * sizeof *plan->phases;
    int code = make_room(course, steps + terms + phases);
    if (code)
        return code;
    uint8_t *to = course->registers->resident->program;
    uint8_t *bytes = memory_new(steps + terms + phases, 1);
    memcpy(bytes, plan->steps, steps);
    if (terms)
        memcpy(bytes + steps, plan->terms, terms);
    memcpy(bytes + steps + terms, plan->phases, phases);
    code = device_put(course->device, QUEUE_COMPUTE, to, bytes, steps + terms + phases);
    free(bytes);
    arguments->steps = (const struct sweep_step *)(void *)to;
    arguments->terms = (const struct sweep_term *)(void *)(to + steps);
    arguments->phase = (const struct sweep_phase *)(void *)(to + steps + terms);
    return code;
}

static int run_sweep(struct course *course) {
    const struct registers *registers = course->registers;
    struct sweep_plan *plan = &course->plan;
    struct sweep_arguments arguments = {.range = range_of(registers),
                                        .phases = (uint32_t)plan->phase_count,
                                        .yields = registers->resident->yields};
    uint64_t blocks = (registers->count + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    int code = plan->phase_count ? put_plan(course, &arguments) : 0;
    if (!code && plan->phase_count)
        code = device_launch(course->device, QUEUE_COMPUTE, &kernel_sweep, blocks, &arguments);
    sweep_plan_clear(plan);
    return code;
}

/* ---- what is done on the host ---- */

/* What the sums of the biases come to is known on the host. */
static int put_bias_gradient(const struct course *course) {
    struct registers *registers = course->registers;
    struct frame *frame = &registers->frame;
    double weight = operation_list_weight(course->list);
    if (!frame->used || weight <= 0)
        return 0;
    frame_read_biases(frame, course->bounds, weight);
    return device_put(course->device, QUEUE_COMPUTE, registers->resident->bias_gradient,
                      frame->bias_gradient, frame->outputs * sizeof *frame->bias_gradient);
}

/* A factor is made on the host, of a triangle of few sums. */
static int run_factor(struct course *course, const struct operation *operation,
                      struct yield *yield) {
    struct registers *registers = course->registers;
    size_t bytes = registers_sums(registers, SUMS_TRIANGLE) * sizeof *registers->sum;
    int code =
        device_get(course->device, QUEUE_COMPUTE, registers->sum, registers->resident->sum, bytes);
    if (!code)
        interpreter_factor(operation, registers, course->bounds, &yield->max);
    return code;
}

static int run_factors(struct course *course) {
    struct yield *yield = course->yields;
    int code = 0;
    for (size_t i = 0; i < course->list->count && !code; i++) {
        const struct operation *operation = &course->list->items[i];
        if (operation->code == OPERATION_FACTOR)
            code = run_factor(course, operation, yield);
        yield += operation_scalars(operation);
    }
    return code;
}

/* It is applied there too. */
static int run_precondition(struct course *course, const struct operation *operation) {
    struct registers *registers = course->registers;
    int code = shard_on_device.pull(registers, operation->b, 0, registers->count);
    if (code)
        return code;
    interpreter_precondition(operation, registers);
    return shard_on_device.push(registers, operation->a, 0, registers->count);
}

/* ---- yields ---- */

static int clear_yields(const struct course *course) {
    struct sweep_yield *yields = course->registers->resident->yields;
    return device_fill(course->device, QUEUE_COMPUTE, yields, 0,
                       course->yield_count * sizeof *yields);
}

/* A block adds at most a term a tensor to a sum, or two. */
_Static_assert(PARAMETERS_MAX / BLOCK_ELEMENTS * 2 * TENSORS_MAX < EXACT_TERMS_BETWEEN_CARRIES,
               "limbs need no carries while blocks add to them");

static void take_yield(const struct sweep_yield *from, struct yield *yield) {
    double max;
    memcpy(&max, &from->max, sizeof max);
    max = isfinite(max) ? max : INFINITY;
    yield->max = max > yield->max ? max : yield->max;
    memcpy(yield->sum.limb, from->limb, sizeof yield->sum.limb);
    yield->sum.special = (uint8_t)from->special;
    yield->sum.pending = EXACT_TERMS_BETWEEN_CARRIES / 2;
}

/* Waits for all sweeps. */
static int take_yields(const struct course *course) {
    struct sweep_yield *yields = memory_new(course->yield_count, sizeof *yields);
    int code =
        device_get(course->device, QUEUE_COMPUTE, yields, course->registers->resident->yields,
                   course->yield_count * sizeof *yields);
    for (size_t i = 0; i < course->yield_count && !code; i++)
        take_yield(&yields[i], &course->yields[i]);
    free(yields);
    return code;
}

/* ---- the program ---- */

static int run_sweeps(struct course *course) {
    uint32_t yield = 0;
    int code = 0;
    for (size_t i = 0; i < course->list->count && !code; i++) {
        const struct operation *operation = &course->list->items[i];
        sweep_plan_add(&course->plan, course->registers, course->bounds, operation, yield);
        yield += operation_scalars(operation);
        if (operation->code != OPERATION_PRECONDITION)
            continue;
        code = run_sweep(course);
        if (!code)
            code = run_precondition(course, operation);
    }
    return code ? code : run_sweep(course);
}

int resident_run(const struct operation_list *list, struct registers *registers,
                 const struct bounds *bounds, struct bytes *scalars) {
    struct course course = {
        .list = list, .registers = registers, .bounds = bounds, .device = registers->device};
    course.yields = yields_new(list, &course.yield_count);
    int code = put_bias_gradient(&course);
    if (!code)
        code = clear_yields(&course);
    if (!code)
        code = run_factors(&course);
    if (!code)
        code = run_sweeps(&course);
    if (!code)
        code = take_yields(&course);
    if (!code)
        yields_encode(list, course.yields, scalars);
    sweep_plan_release(&course.plan);
    free(course.yields);
    return code;
}
