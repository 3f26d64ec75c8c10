/* The operations of programs that minimise with l1, block by block. */
#include "numeric/orthant.h"

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

void run_pseudo_gradient(const struct operation *operation, struct block *block) {
    double *q = block_elements(block, operation->a);
    const double *x = block_elements(block, operation->b);
    const double *g = block_elements(block, operation->c);
    struct spans spans = regularized(block);
    vector_scale(block->count, q, 1, g);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        orthant_pseudo_gradient(part.count, q + part.first, x + part.first, q + part.first,
                                operation->l1);
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
    const double *a = block_elements(block, operation->a);
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        exact_add(&block->yields[0].sum, orthant_norm(part.count, a + part.first));
        exact_add(&block->yields[1].sum, (double)orthant_nonzeros(part.count, a + part.first));
    }
}

static void add_descent(const struct operation *operation, struct block *block, struct spans spans,
                        double l1) {
    const double *t = block_elements(block, operation->a);
    const double *x = block_elements(block, operation->b);
    const double *q = block_elements(block, operation->c);
    const double *h = block_elements(block, operation->d);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        double sums[3];
        orthant_descent(part.count, t + part.first, x + part.first, q + part.first, h + part.first,
                        l1, sums);
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
    const double *a = block_elements(block, operation->a);
    const double *b = block_elements(block, operation->b);
    struct spans spans = regularized(block);
    for (uint32_t i = 0; i < spans.count; i++) {
        struct layout_span part = block_within(block, &spans.items[i]);
        exact_add(&block->yields[0].sum,
                  orthant_excess(part.count, a + part.first, operation->alpha, b + part.first,
                                 operation->l1));
    }
}
