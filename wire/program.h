/* Programs: the vector operations that the coordinator issues and the shards run.
 *
 * A program is a list of operations on registers. A shard runs it block by block, all operations
 * on one block before the next block, so operations share what is in the cache; no operation may
 * need a scalar that the same program yields. Operations marked "first" act once, before the
 * blocks. Those marked "→" yield scalars, in program order: exact sums (numeric/exact.h, encoded),
 * or a maximum (a double).
 *
 *   first  CHECK hash count        refuse unless exactly these flushes were folded
 *   first  SWAP a b                the two registers change names; no other operation may name
 *                                  REGISTER_BEST
 *   first  BEGIN evaluation l b    sum = 0, of layout l; from now on slices of this evaluation are
 *                                  taken, and the trial point is given out once the program is
 *                                  through
 *          ZERO a                  a = 0
 *          ADD a b alpha c         a = b + alpha·c
 *          GRADIENT a              a = sum/examples, exponents undone; the sum is of the parameters
 *          REGULARIZE a lambda b   a_j += lambda·b_j for regularised j
 *          PAIR slot a b c d       s[slot] = a − b, y[slot] = c − d, rounded to the history type
 *          DIRECTION a gamma g k slots u w    a = −gamma·g + Σ_i (−u_i·s_i + gamma·w_i·y_i)
 *   →      DOT a b                 Σ a_j·b_j
 *   →      DOT_REGULARIZED a b     the same over regularised j
 *   →max   MAX_ABS a               max |a_j|; +infinity if one is not finite
 *   →4k    HISTORY_DOTS a slot k slots   for each i: s_i·a, y_i·a, s_i·y_slot, y_i·y_slot
 *                                  (the pair of `slot` must be formed earlier in the program)
 */
#ifndef DML_WIRE_PROGRAM_H
#define DML_WIRE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/evaluation.h"

enum vector_register {
    REGISTER_X,    /* the current point */
    REGISTER_T,    /* the trial point */
    REGISTER_G,    /* the gradient at x */
    REGISTER_H,    /* the gradient at t */
    REGISTER_D,    /* the direction */
    REGISTER_BEST, /* the best point, if the shards were set up to keep one: SWAP only */
    REGISTERS,
};

enum operation_code {
    OPERATION_CHECK = 1,
    OPERATION_SWAP,
    OPERATION_BEGIN,
    OPERATION_ZERO,
    OPERATION_ADD,
    OPERATION_GRADIENT,
    OPERATION_REGULARIZE,
    OPERATION_PAIR,
    OPERATION_DIRECTION,
    OPERATION_DOT,
    OPERATION_DOT_REGULARIZED,
    OPERATION_MAX_ABS,
    OPERATION_HISTORY_DOTS,
};

struct operation {
    enum operation_code code;
    uint8_t a, b, c, d; /* registers */
    double alpha;       /* or lambda, gamma */
    uint32_t slot;
    uint32_t count; /* of slots */
    uint16_t slots[SLOTS_MAX];
    double u[SLOTS_MAX], w[SLOTS_MAX];
    uint64_t hash, folds;        /* CHECK */
    uint32_t evaluation;         /* BEGIN */
    enum sums_layout sums;       /* BEGIN */
    int32_t derivative_exponent; /* BEGIN */
};

/* Scalars that an operation yields. */
uint32_t operation_scalars(const struct operation *operation);

/* Appends an operation to a program. */
void program_add(struct bytes *program, const struct operation *operation);

/* Reads the next operation; false at the end or if it is malformed (then cursor->failed is set):
 * an unknown code, a register or slot out of range, too many slots. */
bool program_next(struct cursor *program, struct operation *operation);

/* Why a program is invalid (a constant); NULL if it is valid. It is invalid if it is malformed, has
 * too many operations or scalars, takes products with a pair before forming it, or uses
 * REGISTER_BEST in any operation but SWAP. */
const char *program_fault(const void *program, size_t length);

/* Names the content of a program. */
uint64_t program_hash(const void *program, size_t length);

#endif
