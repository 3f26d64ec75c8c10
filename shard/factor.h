/* The preconditioner P of a shard: the inverse of a dense symmetric matrix H, as a factor, and of a
 * diagonal for elements beyond it.
 *
 * H is scaled to a diagonal of 1, S = R⁻¹·H·R⁻¹ with the diagonal matrix R of roots, R_r = √H_rr,
 * so that neither columns of very different size nor a large lambda cost precision. With S = C·Cᵀ,
 * P·b = R⁻¹·(C·Cᵀ)⁻¹·R⁻¹·b.
 *
 * H is of all parameters, weights and biases; or, PRECONDITION_LEADING, of the scaled weights of
 * the first columns (base/layout.h), which are centred, so that they have little curvature in
 * common with the biases. Where a column has a weight for each output, H has a row a column and is
 * the same for all outputs. All other elements of scaled vectors then have the curvature
 *
 *     beta + gamma·penalty_j   a weight
 *     beta                     what is no weight of a column
 *
 * A factor does not change once it is made: the next one is new memory, so that one that is being
 * written to a checkpoint stays as it is. Its holders are counted; all of them are on one thread.
 */
#ifndef DML_SHARD_FACTOR_H
#define DML_SHARD_FACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registers; /* shard/registers.h */
struct scaling;   /* shard/scaling.h */

struct factor {
    uint64_t serial;
    size_t order;     /* rows: 0 on a shard whose range does not begin the vector */
    unsigned holders; /* each must call factor_drop() */
    double *elements; /* beta, gamma, what was added to the diagonal of S, and lambda; and the
                         roots, each padded with zeros to whole lanes; and the triangle of C
                         (numeric/dense.h): factor_bytes() */
    uint32_t *hidden; /* the rows that factor_hidden_gap() is about, once it was asked; owned */
    size_t hidden_count;
    bool searched;
};

/* Added to the diagonal of a leading block by scaled weights, relative to beta. Drawn rows may say
 * next to nothing of a class that is rare, and P would be as long as l2 allows. */
#define FACTOR_CURVATURE_LEAST 0.01

/* What a factor is made with: the operands of FACTOR. */
struct factor_terms {
    double lambda;      /* l2 */
    double beta, gamma; /* of what is beyond a block */
    uint64_t serial;
};

/* One of zeros, held by the caller. */
struct factor *factor_new(uint64_t serial, size_t order);
struct factor *factor_hold(struct factor *factor); /* NULL stays NULL */
void factor_drop(struct factor *factor);           /* the last holder frees it */

size_t factor_bytes(size_t order);
double *factor_roots(const struct factor *factor); /* in `elements`, as is the next */
double *factor_triangle(const struct factor *factor);

/* Makes the factor of H = sum/weight, exponents undone, plus lambda on the diagonal of
 * regularised parameters; the registers hold the triangle of sums, or none. A row of zeros counts
 * as one of the unit matrix if lambda is 0; in a leading block, where FACTOR_CURVATURE_LEAST is
 * added to all others, it has the curvature of what is beyond the block. 1e-10 is added to the
 * diagonal of S, or as much more as a factor needs: `*added` says how much more; or 3e-14, where
 * rows are nearly collinear, and that hides their curvature less. NULL, with
 * `*added` infinite, if no addition helps: something in H is not finite, or below 0 on the
 * diagonal, or beta is not positive where it is needed. */
struct factor *factor_make(const struct registers *registers, int derivative_exponent,
                           const struct factor_terms *terms, double *added);

/* out = P·in, `order` elements; `out` may be `in`. Elements that are not finite are passed on. */
void factor_apply(const struct factor *factor, double *out, const double *in);

/* How much gᵀ(H⁻¹ − P)g may be above 0, where out = P·g by weights: rows that hardly differ from
 * what those before them can be made to have curve by less than what was added to S. Their
 * curvature is not known: it counts as FACTOR_HIDDEN_LEAST of S, or as l2 has it. If columns follow
 * from others exactly, g is 0 there, but for rounding. */
double factor_hidden_gap(const struct registers *registers, const double *out);
#define FACTOR_HIDDEN_LEAST 1e-20

/* Applies a leading block to scaled vectors over the range of the shard, `scaling->count` elements.
 * Each output of which a column has a weight is multiplied by the block alike. */
void factor_apply_leading(const struct factor *factor, const struct scaling *scaling, double *out,
                          const double *in);

/* The curvature of element `element` of the range, if it is beyond the block. */
double factor_curvature(const struct factor_terms *terms, const struct scaling *scaling,
                        size_t element);

#endif
