#include "numeric/dense.h"

#include <assert.h>
#include <lapacke.h>

void dense_upper_solve(size_t n, const double *r, size_t ld, bool transposed, double *b) {
    if (n == 0)
        return;
    lapack_int order = (lapack_int)n;
    /* Without LAPACKE's search for NaN: what is NaN comes out as NaN. */
    lapack_int info = LAPACKE_dtrtrs_work(LAPACK_COL_MAJOR, 'U', transposed ? 'T' : 'N', 'N', order,
                                          1, r, (lapack_int)ld, b, order);
    assert(info == 0);
    (void)info;
}

double dense_upper_rcond(size_t n, const double *r, size_t ld) {
    if (n == 0)
        return 1;
    double rcond = 0;
    lapack_int info =
        LAPACKE_dtrcon(LAPACK_COL_MAJOR, '1', 'U', 'N', (lapack_int)n, r, (lapack_int)ld, &rcond);
    return info == 0 ? rcond : 0;
}
