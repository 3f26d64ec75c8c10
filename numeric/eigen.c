#include "numeric/eigen.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Iterations of the subspace: directions of eigenvalues half as large as the last one that is
 * wanted have then lost all but 2⁻¹² of their share. */
#define ITERATIONS 12
#define SWEEPS_MAX 30

/* ---- small symmetric matrices ---- */

static void swap(double *a, double *b) {
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Rotates rows and columns p and q of the matrix so that its element (p, q) becomes 0. */
static void rotate(size_t n, double *matrix, double *vectors, size_t p, size_t q) {
    double off = matrix[p * n + q];
    if (off == 0)
        return;
    double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * off);
    double t = 1 / (fabs(theta) + sqrt(theta * theta + 1));
    t = theta < 0 ? -t : t;
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (size_t k = 0; k < n; k++) {
        double a = matrix[k * n + p], b = matrix[k * n + q];
        matrix[k * n + p] = c * a - s * b;
        matrix[k * n + q] = s * a + c * b;
    }
    for (size_t k = 0; k < n; k++) {
        double a = matrix[p * n + k], b = matrix[q * n + k];
        matrix[p * n + k] = c * a - s * b;
        matrix[q * n + k] = s * a + c * b;
    }
    for (size_t k = 0; k < n; k++) {
        double a = vectors[k * n + p], b = vectors[k * n + q];
        vectors[k * n + p] = c * a - s * b;
        vectors[k * n + q] = s * a + c * b;
    }
}

static double off_diagonal(size_t n, const double *matrix) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            sum += fabs(matrix[i * n + j]);
    return sum;
}

static void sort_falling(size_t n, double *values, double *vectors) {
    for (size_t i = 0; i < n; i++) {
        size_t most = i;
        for (size_t j = i + 1; j < n; j++)
            if (values[j] > values[most])
                most = j;
        if (most == i)
            continue;
        swap(&values[i], &values[most]);
        for (size_t k = 0; k < n; k++)
            swap(&vectors[k * n + i], &vectors[k * n + most]);
    }
}

void eigen_symmetric(size_t n, double *matrix, double *values, double *vectors) {
    double trace = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            vectors[i * n + j] = i == j;
        trace += fabs(matrix[i * n + i]);
    }
    for (unsigned sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        if (!(off_diagonal(n, matrix) > 1e-15 * trace))
            break;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                rotate(n, matrix, vectors, p, q);
    }
    for (size_t i = 0; i < n; i++)
        values[i] = matrix[i * n + i];
    sort_falling(n, values, vectors);
}

/* ---- large ones ---- */

/* Even in (−1, 1), by the element's number: a step of a Weyl sequence, mixed. */
static double fixed_number(size_t i) {
    uint64_t x = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1;
}

/* Column k of the n×count matrix, times itself or another one. */
static double column_dot(size_t n, size_t count, const double *q, size_t k, size_t other) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += q[i * count + k] * q[i * count + other];
    return sum;
}

/* Gram and Schmidt, each column twice. What is left of a column that depends on those before is
 * rounding: it becomes 0. */
static void orthonormalise(size_t n, size_t count, double *q) {
    for (size_t k = 0; k < count; k++) {
        double before = column_dot(n, count, q, k, k);
        for (size_t twice = 0; twice < 2; twice++)
            for (size_t other = 0; other < k; other++) {
                double share = column_dot(n, count, q, k, other);
                for (size_t i = 0; i < n; i++)
                    q[i * count + k] -= share * q[i * count + other];
            }
        double left = column_dot(n, count, q, k, k);
        double scale = left > 1e-24 * before && left > 0 ? 1 / sqrt(left) : 0;
        for (size_t i = 0; i < n; i++)
            q[i * count + k] *= scale;
    }
}

void eigen_largest(struct matrix_scratch *scratch, size_t m, size_t n, const double *a,
                   size_t count, double *values, double *vectors) {
    double small[EIGEN_MAX * EIGEN_MAX] = {0}, turn[EIGEN_MAX * EIGEN_MAX];
    double *q = memory_new(n * count + 1, sizeof *q),
           *image = memory_new(m * count + 1, sizeof *image);
    for (size_t i = 0; i < n * count; i++)
        q[i] = fixed_number(i);
    orthonormalise(n, count, q);
    for (unsigned iteration = 0; iteration < ITERATIONS; iteration++) {
        matrix_product(scratch, m, count, n, a, n, q, count, image, count);
        memset(q, 0, n * count * sizeof *q);
        matrix_add_transposed(scratch, n, count, m, a, n, image, count, q, count);
        orthonormalise(n, count, q);
    }
    matrix_product(scratch, m, count, n, a, n, q, count, image, count);
    matrix_add_transposed(scratch, count, count, m, image, count, image, count, small, count);
    eigen_symmetric(count, small, values, turn);
    for (size_t k = 0; k < count; k++)
        values[k] = fmax(values[k], 0) / (double)(m ? m : 1);
    matrix_product(scratch, n, count, count, q, count, turn, count, vectors, count);
    free(q);
    free(image);
}
