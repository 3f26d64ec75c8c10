/* Kernels of minimisation within limits: F = f + Σ l1_j·|x_j| over low_j ≤ x_j ≤ high_j, on blocks
 * of vectors. Where all have one l1 and no bounds that is orthant-wise minimisation, whose kernels
 * are faster (numeric/steps.h).
 *
 * The pseudo-gradient q(x, g), where g is the gradient of f, is the projected gradient: what is
 * left of the subgradient of F of least norm where steps against it stay within the bounds. With
 * the derivatives of F to the right and to the left, which differ where x_j = 0,
 *
 *     right   if it is below 0 and x_j < high_j
 *     left    if it is above 0 and x_j > low_j
 *     0       else
 *
 * At the minimum it is 0. A parameter is *held* where one of its sides is closed or dear: x_j is at
 * a bound, or 0 with l1_j > 0. It leaves such a place only downhill. What is zero is +0. As in
 * vector.h, the order of sums depends on n alone, and one thread a call. */
#ifndef DML_NUMERIC_BOX_H
#define DML_NUMERIC_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include "numeric/vector.h"

/* The limits of one parameter: l1 ≥ 0, low ≤ high; infinite where there is no bound. */
struct box_limit {
    double l1, low, high;
};

/* The limits of n parameters. l1_j is l1·lasso_j. All three NULL: l1 > 0 for each, and no bounds.
 */
struct box {
    double l1;
    const double *lasso, *low, *high;
};

struct box_limit box_limit_at(const struct box *box, size_t j);

/* Whether x is at a bound, and whether it is held. */
bool box_is_at_bound(const struct box_limit *limit, double x);
bool box_is_held(const struct box_limit *limit, double x);

/* q(x, g); no number where g is none. */
double box_pseudo(const struct box_limit *limit, double x, double g);

/* The nearest value within the bounds. A step from x that ends at a bound but for rounding ends
 * there: within 2⁻⁵⁰ of what the numbers are. */
double box_clip(const struct box_limit *limit, double x, double t);

/* q = q(x, g); `q` may be g. */
void box_pseudo_gradient(const struct box *box, size_t n, double *q, const double *x,
                         const double *g);

/* t = clip(t), and 0 where it would leave the orthant of x, whose pseudo-gradient is q, if l1_j is
 * above 0. */
void box_project(const struct box *box, size_t n, double *t, const double *x, const double *q);

/* t = clip(t) alone. */
void box_clip_all(const struct box *box, size_t n, double *t, const double *x);

/* d_j = 0 where x_j is held, unless it leads downhill: d_j·q_j < 0. */
void box_align(const struct box *box, size_t n, double *d, const double *x, const double *q);

/* y_j = stored_j = 0 where x_j is held and t_j is the same. */
void box_mask(const struct box *box, enum history_type type, size_t n, void *stored, double *y,
              const double *x, const double *t);

/* Σ lasso_j·|a_j| */
double box_norm(const struct box *box, size_t n, const double *a);

/* How many a_j are not held, and how many are at a bound. */
void box_count(const struct box *box, size_t n, const double *a, double counts[2]);

/* Along s = t − x: sums[0] = q·s, sums[1] = (h + l1·ξ)·s, sums[2] = s·s, with the orthant ξ of x.
 */
void box_descent(const struct box *box, size_t n, const double *t, const double *x, const double *q,
                 const double *h, double sums[3]);

#endif
