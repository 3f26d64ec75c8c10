/* Which rows of a matrix of rounded sums follow from those before them. */
#ifndef DML_SHARD_COVARIANCE_RANK_H
#define DML_SHARD_COVARIANCE_RANK_H

#include <stddef.h>

/* The first row whose pivot is no larger than what rounding may have left; n if there is none.
 *
 * `c` is a factor of cholesky_ranked() of a matrix A with a diagonal of 1, and A_rr may be off by
 * rounding[r], A_rs by the root of the product of both. A row that is Σ γ_s of those before it, and
 * a rest, has a pivot that may be off by (Σ |γ_s|·√rounding[s] + √rounding[r])². Frequent columns
 * have the coarsest sums, so this matters for a rare text of a category, whose γ is large for the
 * intercept; a rare column that follows from nothing has small ones. Rows that the factor leaves
 * out are passed over. */
size_t covariance_next_aliased(size_t n, const double *c, const double *rounding);

#endif
