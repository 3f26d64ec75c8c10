#include <stdio.h>
#include <stdlib.h>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include "bench/plain_gpu.h"

#define THREADS 256

static cublasHandle_t blas;
static cusparseHandle_t sparse;
static cusparseSpMatDescr_t rows, transpose;
static cusparseDnVecDescr_t of_columns, of_rows; /* whose vectors are set before each use */
static void *rows_buffer, *transpose_buffer;
static double *label, *margin, *loss;
static int row_count, column_count, regularized_count;
static double l2_term;

/* Each of the three libraries answers 0 if all is well. */
static void must(int code, const char *what) {
    if (code) {
        fprintf(stderr, "plain_lbfgs: %s failed: %d\n", what, code);
        exit(1);
    }
}

static void *memory(size_t bytes) {
    void *fresh;
    must(cudaMalloc(&fresh, bytes ? bytes : 1), "cudaMalloc");
    must(cudaMemset(fresh, 0, bytes), "cudaMemset");
    return fresh;
}

static void *to_gpu(const void *from, size_t bytes) {
    void *to = memory(bytes);
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return to;
}

/* ---- products ---- */

static void product(cusparseSpMatDescr_t matrix, cusparseDnVecDescr_t in, const double *x,
                    cusparseDnVecDescr_t out, double *y, void *buffer) {
    const double one = 1, zero = 0;
    must(cusparseDnVecSetValues(in, (void *)x), "cusparseDnVecSetValues");
    must(cusparseDnVecSetValues(out, y), "cusparseDnVecSetValues");
    must(cusparseSpMV(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero, out,
                      CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, buffer),
         "cusparseSpMV");
}

static cusparseSpMatDescr_t take(const struct plain_matrix *from) {
    cusparseSpMatDescr_t matrix;
    void *start = to_gpu(from->start, ((size_t)from->rows + 1) * sizeof *from->start);
    void *column = to_gpu(from->column, (size_t)from->values * sizeof *from->column);
    void *value = to_gpu(from->value, (size_t)from->values * sizeof *from->value);
    must(cusparseCreateCsr(&matrix, from->rows, from->columns, from->values, start, column, value,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                           CUDA_R_64F),
         "cusparseCreateCsr");
    return matrix;
}

static void *prepared(cusparseSpMatDescr_t matrix, cusparseDnVecDescr_t in,
                      cusparseDnVecDescr_t out) {
    const double one = 1, zero = 0;
    size_t bytes;
    must(cusparseSpMV_bufferSize(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero,
                                 out, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
         "cusparseSpMV_bufferSize");
    void *buffer = memory(bytes);
    must(cusparseSpMV_preprocess(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero,
                                 out, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, buffer),
         "cusparseSpMV_preprocess");
    return buffer;
}

void plain_open(const struct plain_matrix *from, const struct plain_matrix *transposed,
                const double *labels, int regularized, double l2) {
    row_count = from->rows;
    column_count = from->columns;
    regularized_count = regularized;
    l2_term = l2;
    must(cublasCreate(&blas), "cublasCreate");
    must(cusparseCreate(&sparse), "cusparseCreate");
    label = (double *)to_gpu(labels, (size_t)row_count * sizeof *labels);
    margin = (double *)memory((size_t)row_count * sizeof *margin);
    loss = (double *)memory((size_t)row_count * sizeof *loss);
    must(cusparseCreateDnVec(&of_rows, row_count, margin, CUDA_R_64F), "cusparseCreateDnVec");
    double *column = plain_vector();
    must(cusparseCreateDnVec(&of_columns, column_count, column, CUDA_R_64F), "cusparseCreateDnVec");
    rows = take(from);
    transpose = take(transposed);
    rows_buffer = prepared(rows, of_columns, of_rows);
    transpose_buffer = prepared(transpose, of_rows, of_columns);
}

/* ---- the objective ---- */

/* Replaces each margin by the derivative of the mean loss. */
__global__ static void judge_kernel(int count, const double *label, double *margin, double *loss) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count)
        return;
    double m = margin[i], e = exp(-fabs(m));
    double p = (m >= 0 ? 1 : e) / (1 + e);
    loss[i] = log1p(e) + fmax(m, 0.0) - label[i] * m;
    margin[i] = (p - label[i]) / count;
}

double plain_evaluate(const double *x, double *gradient) {
    double sum, square;
    product(rows, of_columns, x, of_rows, margin, rows_buffer);
    judge_kernel<<<(row_count + THREADS - 1) / THREADS, THREADS>>>(row_count, label, margin, loss);
    must(cudaGetLastError(), "judge_kernel");
    must(cublasDasum(blas, row_count, loss, 1, &sum), "cublasDasum"); /* none is below 0 */
    product(transpose, of_rows, margin, of_columns, gradient, transpose_buffer);
    must(cublasDaxpy(blas, regularized_count, &l2_term, x, 1, gradient, 1), "cublasDaxpy");
    must(cublasDdot(blas, regularized_count, x, 1, x, 1, &square), "cublasDdot");
    return sum / row_count + l2_term / 2 * square;
}

/* ---- vectors ---- */

double *plain_vector(void) {
    return (double *)memory((size_t)column_count * sizeof(double));
}

double plain_dot(const double *a, const double *b) {
    double dot;
    must(cublasDdot(blas, column_count, a, 1, b, 1, &dot), "cublasDdot");
    return dot;
}

void plain_add(double *a, double alpha, const double *b) {
    must(cublasDaxpy(blas, column_count, &alpha, b, 1, a, 1), "cublasDaxpy");
}

void plain_copy(double *to, const double *from) {
    must(cublasDcopy(blas, column_count, from, 1, to, 1), "cublasDcopy");
}

void plain_scale(double *a, double alpha) {
    must(cublasDscal(blas, column_count, &alpha, a, 1), "cublasDscal");
}
