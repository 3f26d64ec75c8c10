/* One block of a run of a program, for the files that run its operations. */
#ifndef DML_SHARD_BLOCK_H
#define DML_SHARD_BLOCK_H

#include "numeric/exact.h"
#include "shard/registers.h"

/* A scalar that grows block by block. */
struct yield {
    struct exact sum;
    double max;
};

/* The scalars of a program, in its order: zeros, `*count` of them, to free; and as they travel. */
struct operation_list;
struct yield *yields_new(const struct operation_list *list, size_t *count);
void yields_encode(const struct operation_list *list, const struct yield *yields,
                   struct bytes *scalars);

/* One block of a run. */
struct block {
    struct registers *registers;
    const struct bounds *bounds;       /* of the evaluation whose sum the registers hold */
    size_t offset, count;              /* elements */
    double *s, *q;                     /* the pair formed last, rounded, without B */
    double *difference;                /* room for a y that is not q */
    double *y;                         /* of the pair formed last */
    double *penalised;                 /* room for the part of a register that l2 acts on */
    double (*weighed)[BLOCK_ELEMENTS]; /* the same for l1: four of them */
    struct yield *yields;              /* of the operation at hand */
};

static inline double *block_elements(const struct block *block, uint8_t number) {
    return block->registers->vector[number].elements + block->offset;
}

/* The part of a span of the range that lies in the block, counted from the block's start. */
static inline struct layout_span block_within(const struct block *block,
                                              const struct layout_span *span) {
    uint64_t begin = span->first > block->offset ? span->first - block->offset : 0;
    uint64_t end = span->first + span->count;
    end = end > block->offset ? end - block->offset : 0;
    if (end > block->count)
        end = block->count;
    return (struct layout_span){begin, end > begin ? end - begin : 0};
}

/* Operations with l1 (shard/orthant.c). */
void run_pseudo_gradient(const struct operation *operation, struct block *block);
void run_project(const struct operation *operation, struct block *block);
void run_align(const struct operation *operation, struct block *block);
void run_mask(const struct operation *operation, struct block *block);
void run_norm_1(const struct operation *operation, struct block *block);
void run_descent(const struct operation *operation, struct block *block);
void run_excess(const struct operation *operation, struct block *block);

#endif
