/* The preconditioner P of a shard: the inverse of a dense symmetric matrix H, as a factor.
 *
 * H is scaled to a diagonal of 1, S = R⁻¹·H·R⁻¹ with the diagonal matrix R of roots, R_r = √H_rr,
 * so that neither columns of very different size nor a large lambda cost precision. With S = C·Cᵀ,
 * P·b = R⁻¹·(C·Cᵀ)⁻¹·R⁻¹·b.
 *
 * A factor does not change once it is made: the next one is new memory, so that one that is being
 * written to a checkpoint stays as it is. Its holders are counted; all of them are on one thread.
 */
#ifndef DML_SHARD_FACTOR_H
#define DML_SHARD_FACTOR_H

#include <stddef.h>
#include <stdint.h>

struct registers; /* shard/registers.h */

struct factor {
    uint64_t serial;
    size_t order;     /* rows: 0 on a shard that holds no parameters */
    unsigned holders; /* each must call factor_drop() */
    double *elements; /* the roots, padded with zeros to whole lanes, and the triangle of C
                         (numeric/dense.h): factor_bytes() */
};

/* One of zeros, held by the caller. */
struct factor *factor_new(uint64_t serial, size_t order);
struct factor *factor_hold(struct factor *factor); /* NULL stays NULL */
void factor_drop(struct factor *factor);           /* the last holder frees it */

size_t factor_bytes(size_t order);
double *factor_triangle(const struct factor *factor); /* in `elements` */

/* Makes the factor of H = sum/weight, exponents undone, plus lambda on the diagonal of
 * regularised parameters; the registers hold the triangle of sums, or an empty range. A row of
 * zeros counts as one of the unit matrix. 1e-10 is added to the diagonal of S, or as much more as a
 * factor needs: `*added` says how much more. NULL, with `*added` infinite, if no addition helps:
 * something in H is not finite, or below 0 on the diagonal. */
struct factor *factor_make(const struct registers *registers, int derivative_exponent,
                           double lambda, uint64_t serial, double *added);

/* out = P·in, `order` elements; `out` may be `in`. Elements that are not finite are passed on. */
void factor_apply(const struct factor *factor, double *out, const double *in);

#endif
