#include "numeric/matrix.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/memory.h"

#define UNITS 3   /* registers of columns in a panel */
#define DEPTH 400 /* rows of a block of b: a panel of it is read for each group of rows */
#define HEIGHT 64 /* rows of a that are packed at once, for the second cache */
#define BLOCK_BYTES (2 << 20) /* of a block of b, for the third cache */
#define ROWS_BYTES (HEIGHT * DEPTH * sizeof(double))
#define AT_ONCE 8     /* columns that are packed at once: they fill whole lines of the cache */
#define GATHERED 12   /* registers for a row with few values */
#define FETCH_AHEAD 4 /* values */
#define ALIGNMENT 64

static_assert(BLOCK_BYTES % ALIGNMENT == 0, "rows begin aligned after the block");
static_assert(HEIGHT % 8 == 0 && ALIGNMENT % AT_ONCE == 0, "whole groups of rows are packed");

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL_ROWS _Pragma("clang loop unroll(full)")
#else
#define UNROLL_ROWS _Pragma("GCC unroll 16")
#endif

/* Operands of a product in one type: a and b by the elements between rows and between columns, of
 * which one is 1. */
struct double_call {
    size_t m, n, k;
    const double *a;
    size_t a_row, a_column;
    const double *b;
    size_t b_row, b_column;
    double *c;
    size_t ldc;
    bool fresh; /* from 0, not from c */
};

struct float_call {
    size_t m, n, k;
    const float *a;
    size_t a_row, a_column;
    const float *b;
    size_t b_row, b_column;
    float *c;
    size_t ldc;
    bool fresh;
};

/* Those of a product by rows with few values. */
struct double_sparse {
    const struct matrix_sparse *a;
    const double *value;
    size_t n;
    const double *b;
    size_t ldb;
    double *c;
    size_t ldc;
};

struct float_sparse {
    const struct matrix_sparse *a;
    const float *value;
    size_t n;
    const float *b;
    size_t ldb;
    float *c;
    size_t ldc;
};

struct kernels {
    void (*product_double)(const struct double_call *call, void *block, void *rows);
    void (*product_float)(const struct float_call *call, void *block, void *rows);
    void (*sparse_double)(const struct double_sparse *call);
    void (*sparse_float)(const struct float_sparse *call);
    void (*transposed_double)(const struct double_sparse *call);
    void (*transposed_float)(const struct float_sparse *call);
};

#define KERNELS(processor)                                                                         \
    static const struct kernels processor = {                                                      \
        product_double_##processor,           product_float_##processor,                           \
        sparse_product_double_##processor,    sparse_product_float_##processor,                    \
        sparse_transposed_double_##processor, sparse_transposed_float_##processor}

/* ---- Any processor: an instruction for a number, or the library's software ---- */

#define NUMBER double
#define CALL double_call
#define SPARSE double_sparse
#define FUSED_ONE fma
#define NAME(function) function##_double_any
#define TARGET
#define VECTOR_BYTES 16
#define GROUP 4
#define FUSED(sum, a, b)                                                                           \
    (sum) = (NAME(vector)) {                                                                       \
        fma((a)[0], (b)[0], (sum)[0]), fma((a)[1], (b)[1], (sum)[1])                               \
    }
#include "numeric/matrix_kernel.def"

#define NUMBER float
#define CALL float_call
#define SPARSE float_sparse
#define FUSED_ONE fmaf
#define NAME(function) function##_float_any
#define TARGET
#define VECTOR_BYTES 16
#define GROUP 4
#define FUSED(sum, a, b)                                                                           \
    (sum) = (NAME(vector)) {                                                                       \
        fmaf((a)[0], (b)[0], (sum)[0]), fmaf((a)[1], (b)[1], (sum)[1]),                            \
            fmaf((a)[2], (b)[2], (sum)[2]), fmaf((a)[3], (b)[3], (sum)[3])                         \
    }
#include "numeric/matrix_kernel.def"

KERNELS(any);

#if defined(__x86_64__)

/* ---- AVX2 with FMA: sixteen registers ---- */

#define NUMBER double
#define CALL double_call
#define SPARSE double_sparse
#define FUSED_ONE fma
#define NAME(function) function##_double_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR_BYTES 32
#define GROUP 4
#define FUSED(sum, a, b) (sum) = _mm256_fmadd_pd(a, b, sum)
#include "numeric/matrix_kernel.def"

#define NUMBER float
#define CALL float_call
#define SPARSE float_sparse
#define FUSED_ONE fmaf
#define NAME(function) function##_float_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR_BYTES 32
#define GROUP 4
#define FUSED(sum, a, b) (sum) = _mm256_fmadd_ps(a, b, sum)
#include "numeric/matrix_kernel.def"

KERNELS(avx2);

/* ---- AVX-512: thirty-two registers ---- */

#define NUMBER double
#define CALL double_call
#define SPARSE double_sparse
#define FUSED_ONE fma
#define NAME(function) function##_double_avx512
#define TARGET __attribute__((target("avx512f,fma")))
#define VECTOR_BYTES 64
#define GROUP 8
#define FUSED(sum, a, b) (sum) = _mm512_fmadd_pd(a, b, sum)
#include "numeric/matrix_kernel.def"

#define NUMBER float
#define CALL float_call
#define SPARSE float_sparse
#define FUSED_ONE fmaf
#define NAME(function) function##_float_avx512
#define TARGET __attribute__((target("avx512f,fma")))
#define VECTOR_BYTES 64
#define GROUP 8
#define FUSED(sum, a, b) (sum) = _mm512_fmadd_ps(a, b, sum)
#include "numeric/matrix_kernel.def"

KERNELS(avx512);

#endif

static const struct kernels *kernels_for(enum matrix_processor processor) {
    switch (processor) {
    case MATRIX_ANY:
        return &any;
#if defined(__x86_64__)
    case MATRIX_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2 : NULL;
    case MATRIX_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") ? &avx512 : NULL;
#endif
    default:
        return NULL;
    }
}

static const struct kernels *_Atomic chosen;

bool matrix_choose(enum matrix_processor processor) {
    const struct kernels *kernels = kernels_for(processor);
    if (kernels)
        atomic_store(&chosen, kernels);
    assert(kernels || processor != MATRIX_ANY);
    return kernels != NULL;
}

/* Threads that come here at once all choose the same. */
static const struct kernels *kernels_chosen(void) {
    const struct kernels *kernels = atomic_load_explicit(&chosen, memory_order_acquire);
    if (kernels)
        return kernels;
    if (!matrix_choose(MATRIX_AVX512) && !matrix_choose(MATRIX_AVX2))
        matrix_choose(MATRIX_ANY);
    return atomic_load(&chosen);
}

struct matrix_scratch {
    void *block, *rows; /* aligned */
    char memory[];
};

struct matrix_scratch *matrix_scratch_new(void) {
    struct matrix_scratch *scratch =
        memory_resize(NULL, 1, sizeof *scratch + BLOCK_BYTES + ROWS_BYTES + ALIGNMENT);
    uintptr_t start = (uintptr_t)scratch->memory;
    size_t skipped = (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
    scratch->block = scratch->memory + skipped;
    scratch->rows = scratch->memory + skipped + BLOCK_BYTES;
    assert((uintptr_t)scratch->block % ALIGNMENT == 0 && (uintptr_t)scratch->rows % ALIGNMENT == 0);
    return scratch;
}

void matrix_scratch_free(struct matrix_scratch *scratch) {
    free(scratch);
}

void matrix_product(struct matrix_scratch *scratch, size_t m, size_t n, size_t k, const double *a,
                    size_t lda, const double *b, size_t ldb, double *c, size_t ldc) {
    assert(lda >= k && ldb >= n && ldc >= n);
    const struct double_call call = {m, n, k, a, lda, 1, b, ldb, 1, c, ldc, true};
    kernels_chosen()->product_double(&call, scratch->block, scratch->rows);
}

void matrix_product_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                          const float *a, size_t lda, const float *b, size_t ldb, float *c,
                          size_t ldc) {
    assert(lda >= k && ldb >= n && ldc >= n);
    const struct float_call call = {m, n, k, a, lda, 1, b, ldb, 1, c, ldc, true};
    kernels_chosen()->product_float(&call, scratch->block, scratch->rows);
}

void matrix_by_transposed(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                          const double *a, size_t lda, const double *b, size_t ldb, double *c,
                          size_t ldc) {
    assert(lda >= k && ldb >= k && ldc >= n);
    const struct double_call call = {m, n, k, a, lda, 1, b, 1, ldb, c, ldc, true};
    kernels_chosen()->product_double(&call, scratch->block, scratch->rows);
}

void matrix_by_transposed_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                                const float *a, size_t lda, const float *b, size_t ldb, float *c,
                                size_t ldc) {
    assert(lda >= k && ldb >= k && ldc >= n);
    const struct float_call call = {m, n, k, a, lda, 1, b, 1, ldb, c, ldc, true};
    kernels_chosen()->product_float(&call, scratch->block, scratch->rows);
}

void matrix_add_transposed(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                           const double *a, size_t lda, const double *b, size_t ldb, double *c,
                           size_t ldc) {
    assert(lda >= m && ldb >= n && ldc >= n);
    const struct double_call call = {m, n, k, a, 1, lda, b, ldb, 1, c, ldc, false};
    kernels_chosen()->product_double(&call, scratch->block, scratch->rows);
}

void matrix_add_transposed_float(struct matrix_scratch *scratch, size_t m, size_t n, size_t k,
                                 const float *a, size_t lda, const float *b, size_t ldb, float *c,
                                 size_t ldc) {
    assert(lda >= m && ldb >= n && ldc >= n);
    const struct float_call call = {m, n, k, a, 1, lda, b, ldb, 1, c, ldc, false};
    kernels_chosen()->product_float(&call, scratch->block, scratch->rows);
}

void matrix_sparse_product(const struct matrix_sparse *a, const double *value, size_t n,
                           const double *b, size_t ldb, double *c, size_t ldc) {
    assert(ldb >= n && ldc >= n);
    const struct double_sparse call = {a, value, n, b, ldb, c, ldc};
    kernels_chosen()->sparse_double(&call);
}

void matrix_sparse_product_float(const struct matrix_sparse *a, const float *value, size_t n,
                                 const float *b, size_t ldb, float *c, size_t ldc) {
    assert(ldb >= n && ldc >= n);
    const struct float_sparse call = {a, value, n, b, ldb, c, ldc};
    kernels_chosen()->sparse_float(&call);
}

void matrix_sparse_add_transposed(const struct matrix_sparse *a, const double *value, size_t n,
                                  const double *b, size_t ldb, double *c, size_t ldc) {
    assert(ldb >= n && ldc >= n);
    const struct double_sparse call = {a, value, n, b, ldb, c, ldc};
    kernels_chosen()->transposed_double(&call);
}

void matrix_sparse_add_transposed_float(const struct matrix_sparse *a, const float *value, size_t n,
                                        const float *b, size_t ldb, float *c, size_t ldc) {
    assert(ldb >= n && ldc >= n);
    const struct float_sparse call = {a, value, n, b, ldb, c, ldc};
    kernels_chosen()->transposed_float(&call);
}
