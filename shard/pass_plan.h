/* The plan of a program: fused passes over a shard's range, each a list of steps.
 *
 * A pass takes one block of the range through all its steps before the next block, so that steps
 * share what is in the cache. One planner (shard/pass_plan.c) makes steps of operations; the host
 * (shard/host.c) and a device (shard/device.c) execute them, each with its own arithmetic and to
 * the same bits: elements depend on elements of their own place alone, and sums over blocks are
 * exact. Additions within a block are in the order of numeric/vector.h and numeric/steps.h. */
#ifndef DML_SHARD_PASS_PLAN_H
#define DML_SHARD_PASS_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct registers; /* shard/registers.h */
struct bounds;    /* base/bounds.h */
struct operation; /* wire/program.h */
struct blob;      /* wire/message.h */

/* The operations of a program. */
struct operation_list {
    struct operation *items; /* owned */
    size_t count, capacity;
};

/* Slots that a shard has. */
struct slot_counts {
    uint32_t history, window;
};

/* Decodes a program that program_fault() has found sound. ERROR_INTERNAL if it names a slot that
 * the shard does not have. Release the list in any case. */
int operation_list_read(struct operation_list *list, const struct blob *program,
                        struct slot_counts slots);
void operation_list_release(struct operation_list *list);

enum pass_code {
    PASS_ZERO,        /* a = 0 */
    PASS_ADD,         /* a = b + alpha·c */
    PASS_SCALE,       /* a = alpha·b */
    PASS_MULTIPLY,    /* a *= b, element by element */
    PASS_GRADIENT,    /* a = sum/alpha as the bound and the exponents say */
    PASS_TO_SCALED,   /* a gradient by weights becomes that by scaled ones */
    PASS_REGULARIZE,  /* a += alpha·penalty·b */
    PASS_STORE_S,     /* s = a − b */
    PASS_KEEP,        /* s = a; then a is that */
    PASS_STORE_Q,     /* q = y = a − b, y rounded as q is */
    PASS_DIFFERENCE,  /* y = a − b */
    PASS_SCALE_Q,     /* q *= alpha */
    PASS_MULTIPLY_Q,  /* q *= a, element by element */
    PASS_ADD_HISTORY, /* a += Σ terms */
    PASS_PSEUDO,      /* those of numeric/steps.h: a, given b and c */
    PASS_PROJECT,
    PASS_ALIGN,
    PASS_MASK,     /* q and y, given a and b */
    PASS_ADAGRAD,  /* those of numeric/steps.h: a, with sums in `sums` and given c */
    PASS_SHRINK,   /* a, given sums b */
    PASS_DIAGONAL, /* a, from sums */
    PASS_CLIP,     /* a, given b; of numeric/box.h, as is all of l1 where elements have limits */
    PASS_EACH_END,

    PASS_DOT = PASS_EACH_END, /* a·b, b times `weight` unless that is NULL */
    PASS_SQUARE_OF_STEP,      /* |a − b|² */
    PASS_GAP,                 /* a·a, divided by the curvature of each element */
    PASS_WINDOW,              /* s·a, a times `weight` unless that is NULL */
    PASS_METRIC,              /* |a − b|², times that */
    PASS_HISTORY,             /* s·a and s·y */
    PASS_MAX,                 /* max |a_j|, as bits */
    PASS_NORM,                /* Σ|a_j|, and how many are not 0 */
    PASS_DESCENT,             /* of a, b, c, d */
    PASS_EXCESS,              /* of a and b */
    PASS_HELD,                /* of a, with limits */
};

/* Operands are in the memory of whoever executes the step, and begin with the range. */
struct pass_step {
    uint32_t code;
    uint32_t thread;     /* of sums, for a device alone: the thread of the first lane, */
    uint32_t lanes;      /* and how many lanes there are */
    uint32_t results;    /* of sums: how many it makes */
    uint32_t yield;      /* of sums: where the first goes, */
    uint32_t yield_step; /* and from there to the next */
    int32_t bound;       /* GRADIENT */
    uint32_t first_term, terms;
    uint64_t first, end; /* the elements of the range that it takes */
    double *a;
    const double *b, *c, *d;
    void *s, *q; /* stored vectors */
    double *sums;
    double alpha, beta, l1;
    const double *weight;
    const double *square; /* GAP: b is a, divided by alpha·square + beta·weight */
};

/* p·s + r·q of a pair. */
struct pass_term {
    void *s, *q;
    double p, r;
};

/* One pass. Zeroed memory is an empty one. */
struct pass_plan {
    struct pass_step *steps; /* owned, as the terms */
    struct pass_term *terms;
    size_t step_count, step_capacity;
    size_t term_count, term_capacity;
};

void pass_plan_clear(struct pass_plan *plan);
void pass_plan_release(struct pass_plan *plan);

/* Adds the steps of an operation, whose first scalar is number `yield` of the program. Operations
 * that act before, after or between passes add none. `bounds` are those of the
 * evaluation whose sum the registers hold. */
void pass_plan_add(struct pass_plan *plan, const struct registers *registers,
                   const struct bounds *bounds, const struct operation *operation, uint32_t yield);

#endif
