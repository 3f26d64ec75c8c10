#include "numeric/product.h"

#include <cblas.h>

void product_plain(size_t m, size_t n, size_t k, const double *a, const double *b, double *c) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1, a,
                (blasint)k, b, (blasint)n, 0, c, (blasint)n);
}

void product_transposed(size_t m, size_t n, size_t k, const double *a, const double *b, double *c) {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1, a,
                (blasint)m, b, (blasint)n, 0, c, (blasint)n);
}
