/* Kernels of orthant-wise minimisation: F = f + l1·|x|₁ on blocks of vectors.
 *
 * q(x, g) is the pseudo-gradient, the subgradient of F of least norm where g is the gradient of f:
 *
 *     x_j ≠ 0    g_j + l1·sgn(x_j)
 *     x_j = 0    sgn(g_j)·max(|g_j| − l1, 0)
 *
 * and ξ is the orthant in which a step from x stays: sgn(x_j), or −sgn(q_j) where x_j = 0.
 * (Andrew and Gao, "Scalable training of L1-regularized log-linear models", 2007.)
 *
 * Every element here is a regularised one. What is zero is +0. As in vector.h, the order of sums
 * depends on n alone, and one thread a call. */
#ifndef DML_NUMERIC_STEPS_H
#define DML_NUMERIC_STEPS_H

#include <stddef.h>

#include "numeric/vector.h"

/* q = q(x, g); `q` may be g. A g that is not a number gives one that is none. */
void orthant_pseudo_gradient(size_t n, double *q, const double *x, const double *g, double l1);

/* t_j = 0 unless it lies in the orthant: t_j·ξ_j > 0. */
void orthant_project(size_t n, double *t, const double *x, const double *q);

/* d_j = 0 where x_j = 0, unless it leads downhill: d_j·q_j < 0. */
void orthant_align(size_t n, double *d, const double *x, const double *q);

/* y_j = stored_j = 0 where x_j = t_j = 0. */
void orthant_mask(enum history_type type, size_t n, void *stored, double *y, const double *x,
                  const double *t);

/* Σ|a_i| */
double orthant_norm(size_t n, const double *a);

/* How many a_i are not 0. */
size_t orthant_nonzeros(size_t n, const double *a);

/* Along s = t − x: sums[0] = q·s, sums[1] = (h + l1·ξ)·s, sums[2] = s·s. */
void orthant_descent(size_t n, const double *t, const double *x, const double *q, const double *h,
                     double l1, double sums[3]);

/* Σ max(|a_i − lambda·b_i| − l1, 0)² */
double orthant_excess(size_t n, const double *a, double lambda, const double *b, double l1);

/* Kernels of Adagrad on blocks of vectors: each parameter's step is divided by the root of the sum
 * of squares of its gradients so far. (Duchi, Hazan and Singer, "Adaptive subgradient methods for
 * online learning and stochastic optimization", 2011; the order of roundings is that of
 * torch.optim.Adagrad.)
 *
 * An element whose sum of squares is not finite stays where it is from then on: no step yields a
 * number that is none. Its sum tells of it. As in vector.h, each element is computed alike wherever
 * it lies, n ≤ BLOCK_ELEMENTS, and one thread a call. */

/* sums_j += g_j²; x_j −= rate·g_j/(√sums_j + beta). No array may be another. */
void adagrad_step(size_t n, double *x, double *sums, const double *g, double rate, double beta);

/* The proximal step of the same length for l1_j·|x_j|, after that for the gradient:
 * x_j = sgn(x_j)·max(|x_j| − rate·l1_j/(√sums_j + beta), 0). What is zero is +0. */
void adagrad_shrink(size_t n, double *x, const double *sums, const double *l1, double rate,
                    double beta);

/* sums_j = alpha/(√sums_j + beta); 0 where the sum is not finite. */
void adagrad_diagonal(size_t n, double *sums, double alpha, double beta);

#endif
