#include "shard/interpreter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/clock.h"
#include "base/memory.h"
#include "numeric/steps.h"
#include "numeric/vector.h"
#include "shard/block.h"
#include "shard/factor.h"

enum { BLOCKS_A_BEAT = 64 };

/* ---- reading ---- */

static int check_slots(const struct operation *operation, uint32_t slots) {
    bool paired = operation->code == OPERATION_PAIR || operation->code == OPERATION_HISTORY_DOTS ||
                  operation->code == OPERATION_MASK;
    if (paired && operation->slot >= slots)
        return error_set(ERROR_INTERNAL, "a program names slot %u of %u", operation->slot, slots);
    for (uint32_t i = 0; i < operation->count; i++)
        if (operation->slots[i] >= slots)
            return error_set(ERROR_INTERNAL, "a program names slot %u of %u", operation->slots[i],
                             slots);
    return 0;
}

static struct operation *add_place(struct operation_list *list) {
    MEMORY_ROOM(list->items, list->count, list->capacity);
    return &list->items[list->count];
}

int operation_list_read(struct operation_list *list, const struct blob *program, uint32_t slots) {
    struct cursor cursor = cursor_over(program->data, program->length);
    *list = (struct operation_list){0};
    while (program_next(&cursor, add_place(list))) {
        int code = check_slots(&list->items[list->count++], slots);
        if (code)
            return code;
    }
    assert(!cursor.failed);
    return 0;
}

void operation_list_release(struct operation_list *list) {
    free(list->items);
    *list = (struct operation_list){0};
}

double operation_list_weight(const struct operation_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].code == OPERATION_GRADIENT)
            return list->items[i].alpha;
    return 0;
}

/* ---- running ---- */

static void run_zero(const struct operation *operation, struct block *block) {
    double *a = block_elements(block, operation->a);
    for (size_t i = 0; i < block->count; i++)
        a[i] = 0;
}

static void run_add(const struct operation *operation, struct block *block) {
    vector_add(block->count, block_elements(block, operation->a),
               block_elements(block, operation->b), operation->alpha,
               block_elements(block, operation->c));
}

/* The part of the block that lies in a tensor. */
static struct layout_span tensor_within(const struct block *block,
                                        const struct layout_tensor *tensor) {
    uint64_t begin = tensor->first, end = begin + tensor->rows * tensor->columns;
    uint64_t first = block->registers->first;
    begin = begin > first ? begin - first : 0;
    end = end > first ? end - first : 0;
    return block_within(block, &(struct layout_span){begin, end > begin ? end - begin : 0});
}

/* Elements of a gradient from their sums, all under one bound. */
static void read_sums(const struct block *block, struct layout_span part, int bound, double weight,
                      double *out) {
    const struct registers *registers = block->registers;
    size_t first = block->offset + part.first;
    const int64_t *sum = registers->sum + first;
    if (registers->uniform)
        vector_from_fixed(part.count, out + part.first, sum, registers->exponent - bound, weight);
    else
        vector_from_fixed_columns(part.count, out + part.first, sum, registers->exponents + first,
                                  bound, weight);
}

static void run_gradient(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    double *a = block_elements(block, operation->a);
    const struct layout *layout = &registers->layout;
    bool shared = block->bounds->count == 1;
    if (shared)
        read_sums(block, (struct layout_span){0, block->count}, block->bounds->exponent[0],
                  operation->alpha, a);
    for (uint32_t i = 0; !shared && i < layout->count; i++)
        read_sums(block, tensor_within(block, &layout->tensor[i]), block->bounds->exponent[i],
                  operation->alpha, a);
    if (registers->frame.used)
        frame_turn_gradient(&registers->frame, block->offset, block->count, a);
}

/* What l2 takes the place of in elements of a register: they are not all regularised alike if the
 * vectors are in coordinates. The answer may be room of the block. */
static const double *penalised(const struct block *block, struct layout_span part, uint8_t number) {
    const double *in = block_elements(block, number) + part.first;
    if (!block->registers->frame.used)
        return in;
    frame_penalise(&block->registers->frame, block->offset + part.first, part.count,
                   block->penalised, in);
    return block->penalised;
}

static void run_regularize(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    for (uint32_t i = 0; i < registers->regularized_count; i++) {
        struct layout_span part = block_within(block, &registers->regularized[i]);
        double *a = block_elements(block, operation->a) + part.first;
        if (part.count)
            vector_add(part.count, a, a, operation->alpha, penalised(block, part, operation->b));
    }
}

/* With l1 where vectors are in coordinates: see point_of() in shard/orthant.c. */
static void shrink(const struct operation *operation, const struct block *block,
                   struct layout_span part) {
    const struct frame *frame = &block->registers->frame;
    double *l1 = block->weighed[0];
    for (size_t i = 0; i < part.count; i++)
        l1[i] = operation->l1;
    if (frame->used)
        frame_weigh(frame, block->offset + part.first, part.count, l1, l1, false);
    adagrad_shrink(part.count, block_elements(block, operation->a) + part.first,
                   block_elements(block, operation->b) + part.first, l1, operation->alpha);
}

static void run_adagrad(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    adagrad_step(block->count, block_elements(block, operation->a),
                 block_elements(block, operation->b), block_elements(block, operation->c),
                 operation->alpha);
    for (uint32_t i = 0; operation->l1 > 0 && i < registers->regularized_count; i++)
        shrink(operation, block, block_within(block, &registers->regularized[i]));
}

static void run_diagonal(const struct operation *operation, struct block *block) {
    adagrad_diagonal(block->count, block_elements(block, operation->a), operation->alpha,
                     operation->beta);
}

/* What B differs from 1 in, of a stored vector. */
static void scale_stored_biases(const struct block *block, uint8_t *stored, double beta) {
    const struct registers *registers = block->registers;
    enum history_type type = registers->history_type;
    for (uint32_t i = 0; i < registers->biases_count; i++) {
        struct layout_span part = block_within(block, &registers->biases[i]);
        history_scale(type, part.count, stored + part.first * history_size(type), beta);
    }
}

static void scale_biases(const struct block *block, double *a, double beta) {
    const struct registers *registers = block->registers;
    for (uint32_t i = 0; i < registers->biases_count; i++) {
        struct layout_span part = block_within(block, &registers->biases[i]);
        vector_scale(part.count, a + part.first, beta, a + part.first);
    }
}

static void run_pair(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    history_store(registers->history_type, block->count,
                  registers_s(registers, operation->slot, block->offset), block->s,
                  block_elements(block, operation->a), block_elements(block, operation->b));
    history_store(registers->history_type, block->count,
                  registers_q(registers, operation->slot, block->offset), block->q,
                  block_elements(block, operation->c), block_elements(block, operation->d));
    bool stored = operation->e == operation->c && operation->f == operation->d;
    block->y = stored ? block->q : block->difference;
    if (!stored)
        vector_add(block->count, block->difference, block_elements(block, operation->e), -1,
                   block_elements(block, operation->f));
    uint8_t *q = registers_q(registers, operation->slot, block->offset);
    if (operation->scaled)
        history_multiply(registers->history_type, block->count, q,
                         block_elements(block, REGISTER_A));
    else
        scale_stored_biases(block, q, operation->beta);
}

static void run_direction(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    double *a = block_elements(block, operation->a);
    vector_scale(block->count, a, -operation->alpha, block_elements(block, operation->b));
    if (operation->scaled)
        vector_multiply(block->count, a, a, block_elements(block, REGISTER_A));
    else
        scale_biases(block, a, operation->beta);
    for (uint32_t i = 0; i < operation->count; i++)
        history_add(registers->history_type, block->count, a, -operation->u[i],
                    registers_s(registers, operation->slots[i], block->offset),
                    operation->alpha * operation->w[i],
                    registers_q(registers, operation->slots[i], block->offset));
}

static void run_dot(const struct operation *operation, struct block *block) {
    exact_add(&block->yields->sum, vector_dot(block->count, block_elements(block, operation->a),
                                              block_elements(block, operation->b)));
}

static void run_dot_regularized(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    for (uint32_t i = 0; i < registers->regularized_count; i++) {
        struct layout_span part = block_within(block, &registers->regularized[i]);
        if (part.count)
            exact_add(&block->yields->sum,
                      vector_dot(part.count, block_elements(block, operation->a) + part.first,
                                 penalised(block, part, operation->b)));
    }
}

static void run_max_abs(const struct operation *operation, struct block *block) {
    double max = vector_max_abs(block->count, block_elements(block, operation->a));
    block->yields->max = fmax(block->yields->max, max);
}

static void run_tensor_squares(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    uint64_t first = registers->first + block->offset;
    for (uint32_t i = 0; i < operation->tensors; i++) {
        struct layout_span part = layout_part(&registers->layout.tensor[i], first, block->count);
        const double *a = block_elements(block, operation->a) + part.first;
        if (part.count)
            exact_add(&block->yields[i].sum, vector_dot(part.count, a, a));
    }
}

/* One call for all vectors of the history: they are read side by side. */
static void run_history_dots(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    const void *stored[2 * SLOTS_MAX]; /* s and q of each slot */
    double dots[2 * SLOTS_MAX][2];     /* with a and with the new y */
    for (uint32_t i = 0; i < operation->count; i++) {
        stored[2 * i] = registers_s(registers, operation->slots[i], block->offset);
        stored[2 * i + 1] = registers_q(registers, operation->slots[i], block->offset);
    }
    history_dots_all(registers->history_type, 2 * (size_t)operation->count, block->count, stored,
                     block_elements(block, operation->a), block->y, dots);
    for (uint32_t i = 0; i < operation->count; i++) {
        struct yield *yield = block->yields + 4 * i;
        exact_add(&yield[0].sum, dots[2 * i][0]);
        exact_add(&yield[1].sum, dots[2 * i + 1][0]);
        exact_add(&yield[2].sum, dots[2 * i][1]);
        exact_add(&yield[3].sum, dots[2 * i + 1][1]);
    }
}

/* Operations without an entry act before the blocks (act_first(), run_factor()), or between sweeps.
 */
static void (*const runs[OPERATIONS])(const struct operation *, struct block *) = {
    [OPERATION_ZERO] = run_zero,
    [OPERATION_ADD] = run_add,
    [OPERATION_GRADIENT] = run_gradient,
    [OPERATION_REGULARIZE] = run_regularize,
    [OPERATION_PAIR] = run_pair,
    [OPERATION_DIRECTION] = run_direction,
    [OPERATION_DOT] = run_dot,
    [OPERATION_DOT_REGULARIZED] = run_dot_regularized,
    [OPERATION_MAX_ABS] = run_max_abs,
    [OPERATION_HISTORY_DOTS] = run_history_dots,
    [OPERATION_PSEUDO_GRADIENT] = run_pseudo_gradient,
    [OPERATION_PROJECT] = run_project,
    [OPERATION_ALIGN] = run_align,
    [OPERATION_MASK] = run_mask,
    [OPERATION_NORM_1] = run_norm_1,
    [OPERATION_DESCENT] = run_descent,
    [OPERATION_EXCESS] = run_excess,
    [OPERATION_TENSOR_SQUARES] = run_tensor_squares,
    [OPERATION_ADAGRAD] = run_adagrad,
    [OPERATION_DIAGONAL] = run_diagonal,
};

/* Part of a program: the operations of a sweep, and where their yields are. */
struct sweep {
    const struct operation *items;
    size_t count;
    struct yield *yields;
};

static void run_block(const struct sweep *sweep, struct block *block) {
    struct yield *yields = sweep->yields;
    for (size_t i = 0; i < sweep->count; i++) {
        const struct operation *operation = &sweep->items[i];
        block->yields = yields;
        if (runs[operation->code])
            runs[operation->code](operation, block);
        yields += operation_scalars(operation);
    }
}

struct yield *yields_new(const struct operation_list *list, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < list->count; i++)
        *count += operation_scalars(&list->items[i]);
    struct yield *yields = memory_new(*count, sizeof *yields);
    for (size_t i = 0; i < *count; i++)
        exact_init(&yields[i].sum);
    return yields;
}

void yields_encode(const struct operation_list *list, const struct yield *yields,
                   struct bytes *scalars) {
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *operation = &list->items[i];
        for (uint32_t n = operation_scalars(operation); n; n--, yields++) {
            if (operation_yields_max(operation))
                bytes_put_f64(scalars, yields->max);
            else
                exact_encode(&yields->sum, scalars);
        }
    }
}

static void run_sweep(const struct sweep *sweep, struct block *block) {
    size_t all = block->registers->count;
    for (size_t offset = 0; offset < all; offset += BLOCK_ELEMENTS) {
        size_t left = all - offset;
        block->offset = offset;
        block->count = left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS;
        run_block(sweep, block);
        if (offset % (BLOCKS_A_BEAT * BLOCK_ELEMENTS) == 0)
            heartbeat();
    }
}

/* The factor is of the Hessian by weights. */
void interpreter_precondition(const struct operation *operation,
                              const struct registers *registers) {
    double *a = registers->vector[operation->a].elements;
    const double *b = registers->vector[operation->b].elements;
    if (!registers->frame.used || !registers->count) {
        factor_apply(registers->factor, a, b);
        return;
    }
    memcpy(a, b, registers->count * sizeof *a);
    frame_to_weights(&registers->frame, a);
    factor_apply(registers->factor, a, a);
    frame_from_weights(&registers->frame, a);
}

/* Sweeps end at PRECONDITION, which needs all blocks of what it is applied to. */
static void run_sweeps(const struct operation_list *list, struct block *block,
                       struct yield *yields) {
    struct sweep sweep = {.items = list->items, .yields = yields};
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *operation = &list->items[i];
        yields += operation_scalars(operation);
        sweep.count++;
        if (operation->code != OPERATION_PRECONDITION)
            continue;
        run_sweep(&sweep, block);
        interpreter_precondition(operation, block->registers);
        sweep = (struct sweep){.items = operation + 1, .yields = yields};
    }
    run_sweep(&sweep, block);
}

void interpreter_factor(const struct operation *operation, struct registers *registers,
                        const struct bounds *bounds, double *added) {
    failpoint(FAILPOINT_factor_begin);
    struct factor *factor =
        factor_make(registers, bounds->exponent[0], operation->alpha, operation->serial, added);
    registers_set_factor(registers, factor);
    failpoint(FAILPOINT_factor_done);
}

static void run_factor(const struct operation_list *list, const struct block *block,
                       struct yield *yields) {
    for (size_t i = 0; i < list->count; i++) {
        const struct operation *operation = &list->items[i];
        if (operation->code == OPERATION_FACTOR)
            interpreter_factor(operation, block->registers, block->bounds, &yields->max);
        yields += operation_scalars(operation);
    }
}

void interpreter_run(const struct operation_list *list, struct registers *registers,
                     const struct bounds *bounds, struct bytes *scalars) {
    _Alignas(64) double s[BLOCK_ELEMENTS], q[BLOCK_ELEMENTS], difference[BLOCK_ELEMENTS],
        penalised[BLOCK_ELEMENTS], weighed[4][BLOCK_ELEMENTS];
    size_t count;
    struct yield *yields = yields_new(list, &count);
    struct block block = {.registers = registers,
                          .bounds = bounds,
                          .s = s,
                          .q = q,
                          .difference = difference,
                          .penalised = penalised,
                          .weighed = weighed};
    double weight = operation_list_weight(list);
    if (weight > 0)
        frame_read_biases(&registers->frame, bounds, weight);
    run_factor(list, &block, yields);
    run_sweeps(list, &block, yields);
    yields_encode(list, yields, scalars);
    free(yields);
}
