/* A sweep of a program as a device runs it: each block of threads takes one block of the range
 * through all operations, in phases.
 *
 * Operations become steps. In an EACH phase every thread takes its own elements through all steps
 * of the phase: element i of the block is always thread i mod SWEEP_THREADS's, so nothing has to be
 * waited for. Sums are made in two phases: in LANES each lane of each sum is one thread's, in FOLD
 * the lanes of a sum are added up, which is added to the sum over all blocks, exactly. Additions
 * are in the order of numeric/vector.c and numeric/steps.c. */
#ifndef DML_SHARD_SWEEP_STEP_H
#define DML_SHARD_SWEEP_STEP_H

#include <stdint.h>

#include "numeric/sum_element.h"

#define SWEEP_BLOCK 4096 /* elements: BLOCK_ELEMENTS */
#define SWEEP_THREADS 256
#define SWEEP_RESULTS 3 /* the most sums that one step makes */
#define SWEEP_HISTORY_LANES 16

/* Bytes of `shared`: y of the last PAIR, and what lanes add up to. */
#define SWEEP_SHARED ((SWEEP_BLOCK + SWEEP_RESULTS * SWEEP_THREADS) * 8)

enum sweep_code {
    SWEEP_ZERO,        /* a = 0 */
    SWEEP_ADD,         /* a = b + alpha·c */
    SWEEP_SCALE,       /* a = alpha·b */
    SWEEP_MULTIPLY,    /* a *= b, element by element */
    SWEEP_GRADIENT,    /* a = sum/alpha under a bound, exponents undone */
    SWEEP_TURN,        /* a gradient by weights becomes that by coordinates */
    SWEEP_REGULARIZE,  /* a += alpha·penalty·b */
    SWEEP_STORE_S,     /* s = a − b */
    SWEEP_STORE_Q,     /* q = y = a − b, y rounded as q is */
    SWEEP_DIFFERENCE,  /* y = a − b */
    SWEEP_SCALE_Q,     /* q *= alpha */
    SWEEP_MULTIPLY_Q,  /* q *= a, element by element */
    SWEEP_ADD_HISTORY, /* a += Σ terms */
    SWEEP_PSEUDO,      /* those of numeric/steps.h: a, given b and c */
    SWEEP_PROJECT,
    SWEEP_ALIGN,
    SWEEP_MASK,     /* q and y, given a and b */
    SWEEP_ADAGRAD,  /* those of numeric/steps.h: a, with sums in `sums` and given c */
    SWEEP_SHRINK,   /* a, given sums b */
    SWEEP_DIAGONAL, /* a, from sums */
    SWEEP_EACH_END,

    SWEEP_DOT = SWEEP_EACH_END, /* a·b, b times `weight` unless that is NULL */
    SWEEP_SQUARE_OF_STEP,       /* |a − b|² */
    SWEEP_HISTORY,              /* s·a and s·y */
    SWEEP_MAX,                  /* max |a_j|, as bits */
    SWEEP_NORM,                 /* Σ|a_j|, and how many are not 0 */
    SWEEP_DESCENT,              /* of a, b, c, d */
    SWEEP_EXCESS,               /* of a and b */
};

struct sweep_step {
    uint32_t code;
    uint32_t thread;     /* of sums: that of the first lane */
    uint32_t lanes;      /* of sums */
    uint32_t results;    /* of sums: how many it makes */
    uint32_t yield;      /* of sums: where the first goes, */
    uint32_t yield_step; /* and from there to the next */
    int32_t bound;       /* GRADIENT */
    uint32_t first_term, terms;
    uint64_t first, end; /* elements of the range that it is about */
    double *a;
    const double *b, *c, *d;
    void *s, *q; /* stored vectors */
    double *sums;
    double alpha, beta, l1;
    const double *weight;
};

/* p·s + r·q of a pair. */
struct sweep_term {
    const void *s, *q;
    double p, r;
};

enum sweep_kind { SWEEP_EACH, SWEEP_LANES, SWEEP_FOLD };

struct sweep_phase {
    uint32_t kind;
    uint32_t first, end; /* steps */
};

/* A sum or a maximum over all blocks. */
struct sweep_yield {
    int64_t limb[EXACT_LIMBS]; /* as in numeric/exact.h */
    uint64_t max;              /* the bits of it */
    uint32_t special;          /* enum exact_special */
    uint32_t zero;
};

/* What steps work with, besides their own operands. */
struct sweep_range {
    uint64_t count;           /* elements */
    uint32_t wide;            /* stored vectors are of doubles, else of floats */
    int32_t exponent;         /* of all sums, if `exponents` is NULL */
    const int64_t *sum;       /* of the evaluation */
    const int16_t *exponents; /* of each element, or NULL */
    uint64_t output, outputs; /* of the first element; of a feature: coordinates only */
    const double *mean, *scale, *root, *bias_gradient; /* coordinates: see shard/frame.h; root is
                                                          NULL if the vectors are weights */
};

struct sweep_arguments {
    struct sweep_range range;
    const struct sweep_phase *phase;
    uint32_t phases;
    const struct sweep_step *steps;
    const struct sweep_term *terms;
    struct sweep_yield *yields;
};

#endif
