/* Errors of estimates, from second derivatives over all rows: what a shard that has the whole
 * vector makes of a triangle of sums.
 *
 *   H = Σ w·ℓ''·xxᵀ     Λ = l2·Σw on what l2 acts on     M = Σ (w·g)²·xxᵀ
 *
 * over weights and biases, whatever the scaling of the run, as sums of second derivatives are
 * (doc/PROTOCOL.md). H + Λ is brought to a diagonal of 1 and factored in an order of its own:
 * biases first, then columns in the order of the set, whose frequent ones come first, and of
 * outputs the last before the first. A parameter whose pivot is at most ALIASED_LEAST, and what
 * rounding may have left, follows from those before it, as in R: of a column for each category
 * beside an intercept the rarest one, of the classes of a softmax the first one. */
#ifndef DML_SHARD_COVARIANCE_H
#define DML_SHARD_COVARIANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "wire/program.h"

struct operation_list; /* shard/pass_plan.h */
struct registers;      /* shard/registers.h */
struct yield;

/* What is kept from COVARIANCE to SANDWICH, in memory alone. */
struct covariance {
    size_t order;
    uint32_t *element; /* of the vector, by rows of the factor */
    double *root;      /* √(H + Λ)_rr, by rows */
    double *by;        /* what a sum is multiplied by for its row, and for its column */
    bool *aliased;
    double *triangle; /* C, where R⁻¹(H + Λ)R⁻¹ = C·Cᵀ with the roots R; mapped */
};

/* Makes a covariance of `order` elements of the vector: zeros except for `element`. */
struct covariance *covariance_new(const struct layout *layout, size_t order);
void covariance_free(struct covariance *covariance); /* NULL: nothing */

/* Bytes of a triangle of so many rows. */
size_t covariance_triangle_bytes(size_t order);

/* A pivot is what is left of a 1: of what a column has without its mean, this share must be its
 * own. R's least squares take 1e-7 of a norm, whose square is less. Rounding leaves less than
 * PIVOT_LEAST of a column that follows from others exactly. */
#define ALIASED_LEAST 1e-13
#define PIVOT_LEAST 1e-14

/* Runs the COVARIANCE and SANDWICH of a program, before its passes. */
int covariance_run(const struct operation_list *list, struct registers *registers,
                   const struct bounds *bounds, struct yield *yields);

#endif
