/* Programs: the vector operations that the coordinator issues and the shards run.
 *
 * A program is a list of operations on registers. A shard runs it in fused passes: block by block,
 * all operations of a pass on one block before the next block, so operations share what is in the
 * cache. PRECONDITION needs all blocks of its operand, so it ends a pass, and the operations behind
 * it are the next one; a program without it is one pass. No operation may need a scalar
 * that the same program yields. Operations marked "first" act once, in program order, before the
 * passes, those marked "last" after them. Those marked "→" yield scalars, in program order: exact
 * sums (numeric/exact.h, encoded), or a maximum (a double).
 *
 * The preconditioner P is the inverse of a sampled matrix of second derivatives, and of a diagonal
 * where that leaves parameters out (wire/evaluation.h). The matrix lies on the shard whose range
 * begins the vector; all shards know P by its serial number, which is never 0.
 *
 *   first  CHECK hash count        refuse unless exactly these flushes were folded
 *   first  SWAP a b                the two registers change names; no other operation may name
 *                                  REGISTER_BEST
 *   last   BEGIN evaluation l b rows   sum = 0, of layout l and under bounds b; from now on slices
 *                                  of this evaluation are taken, and the trial point is given out
 *                                  once the program is through; if rows is 1, D is given out
 *   first  FACTOR lambda beta gamma serial
 *   →max                           P = (sum/weight, exponents undone, plus lambda on the diagonal
 *                                  of regularised parameters)⁻¹; the sum is a triangle. Relative to
 *                                  the diagonal, 1e-10 is added to it. Yields what was added beyond
 *                                  that to find a factor: +infinity if there is none, and no P from
 *                                  now on. Where the block is not the whole vector, P is
 *                                  1/(beta + gamma·penalty_j) for scaled weights beyond it, and
 *                                  1/beta for what is no weight of a column
 *   →      HIDDEN                  with g what the last PRECONDITION before it in the program was
 *                                  applied to: how much more gᵀH⁻¹g may be than gᵀPg
 *                                  (shard/factor.h); not with a leading block
 *   first  COVARIANCE a b c lambda    a = the diagonal of (H + Λ)⁻¹ (shard/covariance.h), of
 *   →2                             parameters by weights; H = sum, exponents undone, Λ =
 *                                  lambda·weight_sum for regularised ones. The sum is a triangle of
 *                                  all parameters. b = c by weights, restated so that parameters
 *                                  that follow from others are 0, and margins stay. Yields
 *                                  tr((H + Λ)⁻¹H), and how many follow from others: NaN in a.
 *                                  Without a finite H all are NaN
 *   first  SANDWICH a              a = the diagonal of (H + Λ)⁻¹M(H + Λ)⁻¹, with H of the last
 *                                  COVARIANCE, which may stand before it in the program,
 *                                  and M = sum
 *          ZERO a                  a = 0
 *          ADD a b alpha c         a = b + alpha·c
 *          GRADIENT a weight       a = sum/weight, exponents undone; the sum is of the parameters.
 *                                  One weight a program
 *          REGULARIZE a lambda b   a_j += lambda·b_j for regularised j
 *          PRECONDITION a b serial    a = P·b, a not b; P must be the one of this serial
 *          ADAGRAD a b c rate beta l1
 *                                  b_j += c_j²; a_j −= rate·c_j/(√b_j + beta); with l1 then nearer
 *                                  to 0 by rate·l1/(√b_j + beta) for regularised j. Where b_j is
 *                                  not finite, a_j stays (numeric/steps.h)
 *          DIAGONAL a alpha beta   a_j = alpha/(√a_j + beta)
 *          PAIR slot a b c d e f beta scaled
 *                                  s[slot] = a − b, q[slot] = B·(c − d), rounded to the history
 *                                  type, and y = e − f for HISTORY_DOTS. B is beta, a power of two,
 *                                  for biases (what is not regularised) and 1 for others; scaled,
 *                                  it is the diagonal matrix of register A. Without P: e is c, f is
 *                                  d, and y is rounded as q is. With P: q is P·y, beta is 1, and y
 *                                  is not rounded
 *          DIRECTION a gamma beta g k slots u w scaled
 *                                  a = −gamma·B·g + Σ_i (−u_i·s_i + gamma·w_i·q_i)
 *   →      DOT a b                 Σ a_j·b_j
 *   →      DOT_REGULARIZED a b     the same over regularised j
 *   →      GAP a second lambda share   Σ a_j²/(second·square_j + lambda·penalty_j) over regularised
 *                                  j, square and penalty of the column (base/layout.h; the penalty
 *                                  is 1 where nothing is scaled), and Σ a_j²/(second·share) over
 *                                  others. What has no curvature does not count. For shards that
 *                                  were told the squares
 *   →      METRIC a b second lambda share   Σ (a_j − b_j)²·(second·square_j + lambda·penalty_j)
 *                                  likewise: what GAP divides by
 *   →max   MAX_ABS a               max |a_j|; +infinity if one is not finite
 *   →n     TENSOR_SQUARES a n      Σ a_j² over each tensor; n is how many the layout has
 *          KEEP slot a             window[slot] = a, rounded to the history type; then a is that
 *          COMBINE a b k slots u   a = b + Σ u_i·window[slot_i]
 *   →k     WINDOW_DOTS a k slots   for each i: Σ a_j·window[slot_i]_j over regularised j, as
 *                                  DOT_REGULARIZED
 *   →4k    HISTORY_DOTS a slot k slots   for each i: s_i·a, q_i·a, s_i·y, q_i·y
 *                                  (y is of the last PAIR, which must be of `slot` and in the same
 *                                  pass)
 *
 * With l1|x|₁ in F, orthant-wise (numeric/steps.h has q(x, g), the orthant ξ, and formulae). What
 * they do and add up to is for regularised j, unless something else is said:
 *
 *          PSEUDO_GRADIENT a b c l1  a = q(b, c); a_j = c_j for others
 *          PROJECT a b c           a_j = 0 unless it lies in the orthant ξ of b, whose q is c
 *          ALIGN a b c             a_j = 0 where b_j = 0, unless a_j·c_j < 0
 *          MASK slot a b           q[slot]_j = y_j = 0 where a_j = b_j = 0; y is of the last PAIR,
 *                                  which must be of `slot` and in the same pass
 *   →2     NORM_1 a                Σ|a_j|, and how many a_j are not 0
 *   →3     DESCENT a b c d l1      with s = a − b over all j: c·s, (d + l1·ξ)·s and s·s; ξ is of b,
 *                                  whose q is c, and 0 for others
 *   →      EXCESS a b lambda l1    Σ max(|a_j − lambda·b_j| − l1, 0)²
 *
 * Shards that were told limits of columns (base/layout.h) do the same within bounds, with an l1 of
 * each column and the formulae of numeric/box.h; l1 may be 0. They alone have
 *
 *          CLIP a b                a_j = the nearest value within the bounds; b is where the step
 *                                  that led to a came from
 *   →2     HELD a l1               how many a_j may move to either side (neither at a bound, nor 0
 *                                  with an l1), and how many are at a bound
 * and no EXCESS.
 *
 * Steps over a working set (optimizer/working.h), for shards that were set up for listed columns.
 * They act in program order before the passes. A listed parameter (wire/listed.h) is told by its
 * number, with what a step needs of it:
 *
 *   →2     LIST a b l1 limit       how many a_j are not 0 or free of l1, and for how many others
 *                                  the gradient b exceeds it: |b_j| > l1_j, which is l1·√penalty_j,
 *                                  or l1·lasso_j of limits. At a bound it must lead off it.
 *                                  Lists the former, unless they are more than WORKING_SET_MAX, and
 *                                  of the latter up to `limit` a shard, by |b_j| − l1_j
 *   →n     SOLVE lambda beta l1 n list
 *                                  the step d from the listed x that minimises g·d + ½ dᵀHd +
 *                                  Σ l1_j·|x_j + d_j| within bounds (numeric/lasso.h). H is
 *                                  sum/weight, exponents undone, plus lambda·penalty_j +
 *                                  beta·square_j on the diagonal; the sum is a triangle. NaN where
 *                                  H is not finite. Biases come last: all, or none
 *          SCATTER a n values      a = 0, but for the values that are listed
 *
 * Vectors of rows (doc/PROTOCOL.md) lie on shards that were set up for directions: Z, the margins
 * at x, D, the derivatives of the losses by the margins, and Q[slot], the margins of the directions
 * in the window. Their operations act in program order before the passes over columns, and add up
 * blocks of ROW_BLOCK rows, each in the order of its rows, exactly. Rows that are held out have
 * margins, and 0 for D; ROWS_HELD alone counts them:
 *
 *          ROWS_TAKE rows slot     a vector of rows = what an evaluation with SUMS_ROWS has added
 *                                  up; the slot is for ROWS_PRODUCT alone, and else 0. With tiles
 *                                  ROWS_MARGINS and ROWS_PRODUCT are sums in fixed point
 *          ROWS_AT k slots u       v = Z + Σ u_i·Q[slot_i], in this order; what follows is at v
 *   →      ROWS_LOSS               Σ weight·loss
 *   →2     ROWS_HELD               the same over the rows that are held out, and the weight of what
 *                                  is predicted correctly of them
 *   →max   ROWS_DERIVATIVE         max |derivative of a loss by a margin|; +infinity if one is not
 *                                  finite
 *   →k     ROWS_SLOPES k slots     for each i: Σ weight·derivative·Q[slot_i]
 *   →k(k+1)/2 ROWS_SECOND k slots rate sample_seed   for i ≥ j, row by row: Σ
 * weight/rate·Q[slot_i]ᵀ·S· Q[slot_j] over the rows with u(sample_seed, 0, row) < rate; S are the
 *                                  second derivatives of the row's loss by its margins
 *   →k     ROWS_HESSIAN_PRODUCT slot k slots rate sample_seed
 *                                  the row of ROWS_SECOND that is of `slot`: for each i:
 *                                  Σ weight/rate·Q[slot_i]ᵀ·S·Q[slot]
 *          ROWS_ADVANCE            Z = v, and D is the derivatives there: BEGIN with `rows` gives
 *                                  them out in place of t
 */
#ifndef DML_WIRE_PROGRAM_H
#define DML_WIRE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "wire/evaluation.h"
#include "wire/listed.h"

enum vector_register {
    REGISTER_X,    /* the current point */
    REGISTER_T,    /* the trial point */
    REGISTER_G,    /* the gradient at x */
    REGISTER_H,    /* the gradient at t */
    REGISTER_D,    /* the direction */
    REGISTER_BEST, /* the best point, if the shards were set up to keep one: SWAP only */
    REGISTER_PG,   /* P·g; this and P·h are there if the shards were set up to precondition */
    REGISTER_PH,   /* P·h */
    REGISTER_QG,   /* the pseudo-gradient at x; this and the next are there if the shards were set
                      up for orthants */
    REGISTER_QH,   /* the pseudo-gradient at t */
    REGISTER_A, /* Adagrad's sums of squares, later the diagonal of H₀; there if the shards were
                   set up for Adagrad */
    REGISTERS,
};

/* What ROWS_TAKE names. */
enum row_vector {
    ROWS_LABELS,  /* the label of a row is its first number */
    ROWS_WEIGHTS, /* the weight of a row is its first number; without this vector all are 1 */
    ROWS_MARGINS, /* Z */
    ROWS_PRODUCT, /* Q[slot] */
    ROWS_SIZES,   /* of the rows of a tiled set: the largest |margin| at a point within ±1 is below
                     2 to this */
    ROWS_OFFSETS, /* as labels; Z has them added, and is taken after them. Without them all are 0 */
    ROWS_GIVEN, /* D, which replicas have found: of a network, of whose first layer Z are margins */
    ROW_VECTORS,
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
    OPERATION_FACTOR,
    OPERATION_PRECONDITION,
    OPERATION_PSEUDO_GRADIENT,
    OPERATION_PROJECT,
    OPERATION_ALIGN,
    OPERATION_MASK,
    OPERATION_NORM_1,
    OPERATION_DESCENT,
    OPERATION_EXCESS,
    OPERATION_TENSOR_SQUARES,
    OPERATION_ADAGRAD,
    OPERATION_DIAGONAL,
    OPERATION_GAP,
    OPERATION_KEEP,
    OPERATION_COMBINE,
    OPERATION_WINDOW_DOTS,
    OPERATION_ROWS_TAKE,
    OPERATION_ROWS_AT,
    OPERATION_ROWS_LOSS,
    OPERATION_ROWS_DERIVATIVE,
    OPERATION_ROWS_SLOPES,
    OPERATION_ROWS_SECOND,
    OPERATION_ROWS_ADVANCE,
    OPERATION_METRIC,
    OPERATION_LIST,
    OPERATION_SOLVE,
    OPERATION_SCATTER,
    OPERATION_COVARIANCE,
    OPERATION_SANDWICH,
    OPERATION_CLIP,
    OPERATION_HELD,
    OPERATION_ROWS_HELD,
    OPERATION_ROWS_HESSIAN_PRODUCT,
    OPERATION_HIDDEN,
    OPERATIONS, /* one more than the last */
};

struct operation {
    enum operation_code code;
    uint8_t a, b, c, d, e, f; /* registers */
    double alpha;             /* or lambda, gamma, weight, rate */
    double beta;              /* of B, ADAGRAD or DIAGONAL */
    double gamma;             /* of FACTOR; or share */
    double l1;
    bool scaled;     /* B is of register A */
    uint64_t serial; /* of P; or of a sample */
    uint32_t slot;
    uint32_t count;   /* of slots */
    uint32_t tensors; /* of the layout */
    uint16_t slots[SLOTS_MAX];
    double u[SLOTS_MAX], w[SLOTS_MAX];
    uint64_t hash, folds;   /* CHECK */
    uint32_t evaluation;    /* BEGIN */
    enum sums_layout sums;  /* BEGIN */
    struct bounds bounds;   /* BEGIN */
    bool rows;              /* BEGIN: D is given out, not t */
    enum row_vector vector; /* ROWS_TAKE */
    uint32_t limit;         /* LIST */
    uint32_t listed;        /* SOLVE, SCATTER: how many, */
    const void *list;       /* and where they are: as wire/listed.h reads them; not owned */
};

/* Scalars that an operation yields. */
uint32_t operation_scalars(const struct operation *operation);

/* Whether they are maxima, not sums. */
bool operation_yields_max(const struct operation *operation);

/* Whether it changes elements of the register, or takes its name. */
bool operation_writes(const struct operation *operation, uint8_t number);

/* Appends an operation to a program. */
void program_add(struct bytes *program, const struct operation *operation);

/* Reads the next operation; false at the end or if it is malformed (then cursor->failed is set):
 * an unknown code, a register or slot out of range, too many slots or tensors, a flag that is
 * neither 0 nor 1. Registers and flags that the operation does not have are 0. */
bool program_next(struct cursor *program, struct operation *operation);

/* Why a program is invalid (a constant); NULL if it is valid. It is invalid if it is malformed, has
 * too many operations or scalars, masks a pair or takes products with one that was not formed last
 * and in the same pass, or uses REGISTER_BEST in any operation but SWAP; if it has two FACTORs, or
 * one together with BEGIN or PRECONDITION; if P has no serial, or is applied in place; if a
 * gradient has no weight, or two; if an operation at v comes before ROWS_AT, or a rate is not above
 * 0 and at most 1; if ADAGRAD is not of three registers, or one of its numbers is out of range, as
 * may be those of DIAGONAL; if a B of register A has a beta other than 1; if COVARIANCE has a
 * lambda below 0, or it or SANDWICH comes after FACTOR or BEGIN. */
const char *program_fault(const void *program, size_t length);

/* Names the content of a program. */
uint64_t program_hash(const void *program, size_t length);

#endif
