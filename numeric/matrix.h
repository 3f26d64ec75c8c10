/* Products of matrices for networks, in double and in float.
 *
 * Matrices are row-major; `lda`, `ldb` and `ldc` are the elements from one row to the next, at
 * least the columns. Any size may be 0. `c` must not overlap `a` or `b`. One thread.
 *
 * The order is the contract: an element of c is one accumulator, to which the products are added
 * one after another, each by a fused multiply-add (rounded once) in the matrix's own type, k
 * ascending: the bits of the loop with fma() or fmaf(), for every shape, on every processor. Where
 * the result is a NaN, which NaN is not fixed. A processor without such an instruction computes
 * them by software, far slower. */
#ifndef DML_NUMERIC_MATRIX_H
#define DML_NUMERIC_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that the products work in, whatever the shapes: one for each thread that computes, used
 * again for any number of products. Holds nothing between calls. Mostly untouched if all matrices
 * are small. */
struct matrix_scratch;
struct matrix_scratch *matrix_scratch_new(void);
void matrix_scratch_free(struct matrix_scratch *scratch);

/* c (m×n) = a (m×k) · b (k×n), from 0. */
void matrix_product(struct matrix_scratch *scratch, size_t m, size_t n, size_t k, const double *a,
                    size_t lda, const double *b, size_t ldb, double *c, size_t ldc);
void matrix_product_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                          const float *a, size_t lda, const float *b, size_t ldb, float *c,
                          size_t ldc);

/* c (m×n) = a (m×k) · bᵀ with b n×k, from 0. */
void matrix_by_transposed(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                          const double *a, size_t lda, const double *b, size_t ldb, double *c,
                          size_t ldc);
void matrix_by_transposed_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                                const float *a, size_t lda, const float *b, size_t ldb, float *c,
                                size_t ldc);

/* c (m×n) += aᵀ · b with a k×m and b k×n: from c. */
void matrix_add_transposed(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                           const double *a, size_t lda, const double *b, size_t ldb, double *c,
                           size_t ldc);
void matrix_add_transposed_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                                 const float *a, size_t lda, const float *b, size_t ldb, float *c,
                                 size_t ldc);

/* Rows with few values: those of row i are number start[i] … start[i + 1] − 1, in the columns
 * column[…], and value[…] itself is given beside. */
struct matrix_sparse {
    size_t rows;
    const uint32_t *start; /* rows + 1 */
    const uint32_t *column;
};

/* c (rows×n) = a · b, from 0: to the bits of the product with a written out, if all is finite. */
void matrix_sparse_product(const struct matrix_sparse *a, const double *value, size_t n,
                           const double *b, size_t ldb, double *c, size_t ldc);
void matrix_sparse_product_float(const struct matrix_sparse *a, const float *value, size_t n,
                                 const float *b, size_t ldb, float *c, size_t ldc);

/* c += aᵀ · b with b rows×n, from c; rows of c where a has no value are not touched. */
void matrix_sparse_add_transposed(const struct matrix_sparse *a, const double *value, size_t n,
                                  const double *b, size_t ldb, double *c, size_t ldc);
void matrix_sparse_add_transposed_float(const struct matrix_sparse *a, const float *value, size_t n,
                                        const float *b, size_t ldb, float *c, size_t ldc);

/* Processors that there is code of its own for. */
enum matrix_processor { MATRIX_ANY, MATRIX_AVX2, MATRIX_AVX512 };

/* For tests and measurements: computes from now on by the code for that processor. False if this
 * one cannot run it. By itself the products choose the fastest that can. */
bool matrix_choose(enum matrix_processor processor);

#endif
