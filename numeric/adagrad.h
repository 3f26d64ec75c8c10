/* Kernels of Adagrad on blocks of vectors: each parameter's step is divided by the root of the sum
 * of squares of its gradients so far. (Duchi, Hazan and Singer, "Adaptive subgradient methods for
 * online learning and stochastic optimization", 2011; 1e-10 and the order of roundings are those of
 * torch.optim.Adagrad.)
 *
 * An element whose sum of squares is not finite stays where it is from then on: no step yields a
 * number that is none. Its sum tells of it. As in vector.h, each element is computed alike wherever
 * it lies, n ≤ BLOCK_ELEMENTS, and one thread a call. */
#ifndef DML_NUMERIC_ADAGRAD_H
#define DML_NUMERIC_ADAGRAD_H

#include <stddef.h>

/* sums_j += g_j²; x_j −= rate·g_j/(√sums_j + 1e-10). No array may be another. */
void adagrad_step(size_t n, double *x, double *sums, const double *g, double rate);

/* The proximal step of the same length for l1_j·|x_j|, after that for the gradient:
 * x_j = sgn(x_j)·max(|x_j| − rate·l1_j/(√sums_j + 1e-10), 0). What is zero is +0. */
void adagrad_shrink(size_t n, double *x, const double *sums, const double *l1, double rate);

/* sums_j = alpha/(√sums_j + beta); 0 where the sum is not finite. */
void adagrad_diagonal(size_t n, double *sums, double alpha, double beta);

#endif
