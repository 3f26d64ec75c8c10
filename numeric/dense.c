#include "numeric/dense.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b) {
    for (size_t j = 0; j < n && transposed; j++) {
        for (size_t i = 0; i < j; i++)
            b[j] -= r[i + j * ld] * b[i];
        b[j] /= r[j + j * ld];
    }
    for (size_t j = n; j-- > 0 && !transposed;) {
        b[j] /= r[j + j * ld];
        for (size_t i = 0; i < j; i++)
            b[i] -= r[i + j * ld] * b[j];
    }
}

/* Row k of X = R⁻¹ (row-major n×n, zero before), when the rows below it are known. */
static void invert_row(size_t n, const double *r, size_t ld, size_t k, double *x) {
    double *row = x + k * n, pivot = r[k + k * ld];
    for (size_t i = k + 1; i < n; i++)
        for (size_t j = i; j < n; j++)
            row[j] -= r[k + i * ld] * x[i * n + j];
    for (size_t j = k + 1; j < n; j++)
        row[j] /= pivot;
    row[k] = 1 / pivot;
}

/* NaN if one of the sums is. */
static double largest(size_t count, const double *sums) {
    double most = 0;
    for (size_t j = 0; j < count && !isnan(most); j++)
        most = sums[j] <= most ? most : sums[j];
    return most;
}

/* The inverse of a corner is the same corner of the inverse. So the corner grows row by row, and
 * with each row the sums over its columns, of which the 1-norm is the largest. Norms of a larger
 * corner are no smaller: the first that is too badly conditioned is one too many. */
size_t dense_upper_corner(size_t n, const double *r, size_t ld, double least) {
    double *x = memory_new(n * (n + 2), sizeof *x), *sums = x + n * n, *inverse_sums = sums + n;
    size_t k = n;
    while (k > 0) {
        size_t row = k - 1;
        invert_row(n, r, ld, row, x);
        for (size_t j = row; j < n; j++) {
            sums[j] += fabs(r[row + j * ld]);
            inverse_sums[j] += fabs(x[row * n + j]);
        }
        if (!(least * largest(n - row, sums + row) * largest(n - row, inverse_sums + row) <= 1))
            break;
        k = row;
    }
    free(x);
    return n - k;
}
