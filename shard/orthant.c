/* The operations of programs that minimise with l1, block by block. */
#include "numeric/steps.h"

#include "shard/block.h"

/* Where the regularised elements of a block, or its others, lie. */
struct spans {
    const struct layout_span *items;
    uint32_t count;
};

static struct spans regularized(const struct block *block) {
    return (struct spans){block->registers->regularized, block->registers->regularized_count};
}

static struct spans others(const struct block *block) {
    return (struct spans){block->registers->biases, block->registers->biases_count};
}

/* Where vectors are in coordinates, l1 is that of the columns, √penalty·|z|: as if with each point
 * multiplied by √penalty, and each gradient divided by it. These answer the elements of a register
 * like that, in room `room` of the block unless they are what they are. */
static const double *point_of(const struct block *block, struct layout_span part, uint8_t number,
                              unsigned room) {
    const double *in = block_elements(block, number) + part.first;
    if (!block->registers->frame.used)
        return in;
    frame_weigh(&block->registers->frame, block->offset + part.first, part.count,
                block->weighed[room], in, false);
    return block->weighed[room];
}

static const double *gradient_of(const struct block *block, struct layout_span part, uint8_t number,
                                 unsigned room) {
    const double *in = block_elements(block, number) + part.first;
    if (!block->registers->frame.used)
        return in;
    frame_weigh(&block->registers->frame, block->offset + part.first, part.count,
                block->weighed[room], in, true);
    return block->weighed[room];
}

void run_pseudo_gradient(const struct operation *operation, struct block *block) {
    double *q = block_elements(block, operation->a);
    const double *x = block_elements(block, operation->b);
    const double *g = block_elements(block, operation->c);
    struct spans spans = regularized(block);
    vector_scale(block->count, q, 1, g);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        orthant_pseudo_gradient(part.count, q + part.first, x + part.first,
                                gradient_of(block, part, operation->a, 0), operation->l1);
        if (block->registers->frame.used)
            frame_weigh(&block->registers->frame, block->offset + part.first, part.count,
                        q + part.first, q + part.first, false);
    }
}

/* What a kernel makes of regularised elements of a, given those of b and c. */
typedef void element_kernel(size_t n, double *a, const double *b, const double *c);

static void run_kernel(const struct operation *operation, struct block *block,
                       element_kernel *kernel) {
    double *a = block_elements(block, operation->a);
    const double *b = block_elements(block, operation->b);
    const double *c = block_elements(block, operation->c);
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        kernel(part.count, a + part.first, b + part.first, c + part.first);
    }
}

void run_project(const struct operation *operation, struct block *block) {
    run_kernel(operation, block, orthant_project);
}

void run_align(const struct operation *operation, struct block *block) {
    run_kernel(operation, block, orthant_align);
}

void run_mask(const struct operation *operation, struct block *block) {
    const struct registers *registers = block->registers;
    char *stored = registers_q(registers, operation->slot, block->offset);
    const double *t = block_elements(block, operation->a);
    const double *x = block_elements(block, operation->b);
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        orthant_mask(registers->history_type, part.count,
                     stored + part.first * history_size(registers->history_type),
                     block->y + part.first, x + part.first, t + part.first);
    }
}

void run_norm_1(const struct operation *operation, struct block *block) {
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        const double *a = point_of(block, part, operation->a, 0);
        exact_add(&block->yields[0].sum, orthant_norm(part.count, a));
        exact_add(&block->yields[1].sum, (double)orthant_nonzeros(part.count, a));
    }
}

/* |t − x|², as it is. */
static double square_of_step(const struct operation *operation, const struct block *block,
                             struct layout_span part) {
    double *step = block->weighed[0];
    vector_add(part.count, step, block_elements(block, operation->a) + part.first, -1,
               block_elements(block, operation->b) + part.first);
    return vector_dot(part.count, step, step);
}

static void add_descent(const struct operation *operation, struct block *block, struct spans spans,
                        double l1) {
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        const double *t = point_of(block, part, operation->a, 0);
        const double *x = point_of(block, part, operation->b, 1);
        const double *q = gradient_of(block, part, operation->c, 2);
        const double *h = gradient_of(block, part, operation->d, 3);
        double sums[3];
        orthant_descent(part.count, t, x, q, h, l1, sums);
        if (block->registers->frame.used)
            sums[2] = square_of_step(operation, block, part);
        for (size_t k = 0; k < 3; k++)
            exact_add(&block->yields[k].sum, sums[k]);
    }
}

/* An orthant without l1 is no border. */
void run_descent(const struct operation *operation, struct block *block) {
    add_descent(operation, block, regularized(block), operation->l1);
    add_descent(operation, block, others(block), 0);
}

void run_excess(const struct operation *operation, struct block *block) {
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        exact_add(&block->yields[0].sum,
                  orthant_excess(part.count, gradient_of(block, part, operation->a, 0),
                                 operation->alpha, point_of(block, part, operation->b, 1),
                                 operation->l1));
    }
}
