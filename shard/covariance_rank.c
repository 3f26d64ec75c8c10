#include "shard/covariance_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/dense.h"

/* Rows with a larger root of the pivot are not looked at: rounding leaves less, and most rows have
 * one. */
#define ROOT_MOST 0.1

/* √ of what rounding may have left of the pivot of row r; `gamma` has room for r elements. */
static double rounding_of(const double *c, const double *rounding, size_t r, double *gamma) {
    double sum = sqrt(rounding[r]);
    memcpy(gamma, c + triangle_row(r), r * sizeof *gamma);
    for (size_t k = r; k-- > 0;) {
        const double *row = c + triangle_row(k);
        gamma[k] /= row[k];
        for (size_t j = 0; j < k; j++)
            gamma[j] -= row[j] * gamma[k];
        sum += fabs(gamma[k]) * sqrt(rounding[k]);
    }
    return sum;
}

size_t covariance_next_aliased(size_t n, const double *c, const double *rounding) {
    double *gamma = memory_new(n, sizeof *gamma);
    size_t r = 0;
    for (; r < n; r++) {
        double root = c[triangle_row(r) + r]; /* of the pivot */
        if (root <= ROOT_MOST && root <= rounding_of(c, rounding, r, gamma))
            break;
    }
    free(gamma);
    return r;
}
