#include "numeric/cholesky.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heartbeat.h"
#include "base/memory.h"
#include "numeric/clones.h"

/* A pivot is what is left of a 1 on the diagonal: rounding leaves about n·1e-16 of it. */
#define PIVOT_LEAST 1e-14

/* Rows that are found together: each element of the rows above is then read once for all. */
enum { TOGETHER = 8 };

size_t triangle_row(size_t r) {
    size_t whole = r / LANES; /* groups of rows of one length before row r */
    return LANES * (whole + 1) * (LANES / 2 * whole + r % LANES);
}

/* Elements of row r with its padding. */
static size_t row_length(size_t r) {
    return (r / LANES + 1) * LANES;
}

/* ---- the factor ---- */

/* The half of the lanes from `half` on of the products of `count` rows with one other row. AVX2 has
 * registers for the sums of half of them. */
LANES_INLINE void half_dots(size_t count, size_t half, size_t length, const double *const *rows,
                            const double *other, half_lanes *dots) {
    half_lanes sum[TOGETHER] = {0};
    for (size_t k = half; k < length; k += LANES) {
        half_lanes b;
        memcpy(&b, other + k, sizeof b);
        UNROLL for (size_t r = 0; r < count; r++) {
            half_lanes a;
            memcpy(&a, rows[r] + k, sizeof a);
            sum[r] += a * b;
        }
    }
    memcpy(dots, sum, sizeof sum);
}

/* Products of `count` rows with one other row, in the order of that row's elements. */
LANES_INLINE void row_dots(size_t count, size_t length, const double *const *rows,
                           const double *other, double *dots) {
    half_lanes low[TOGETHER], high[TOGETHER];
    half_dots(count, 0, length, rows, other, low);
    half_dots(count, HALF, length, rows, other, high);
    for (size_t r = 0; r < count; r++)
        dots[r] = half_lanes_sum(&low[r], &high[r]);
}

/* Rows first… of C, left to right. A row's elements from k on are 0 until they are found, so a
 * product over whole lanes is one over the elements before k. */
LANES_INLINE bool find_rows(size_t count, size_t first, double *c, const double *const *a) {
    double *rows[TOGETHER] = {0};
    double dots[TOGETHER];
    for (size_t r = 0; r < count; r++)
        rows[r] = c + triangle_row(first + r);
    for (size_t k = 0; k < first; k++) {
        const double *above = c + triangle_row(k);
        row_dots(count, row_length(k), (const double *const *)rows, above, dots);
        for (size_t r = 0; r < count; r++)
            rows[r][k] = (a[r][k] - dots[r]) / above[k];
    }
    for (size_t k = first; k < first + count; k++) {
        size_t own = k - first;
        row_dots(count - own, row_length(k), (const double *const *)rows + own, rows[own],
                 dots + own);
        double pivot = a[own][k] - dots[own];
        if (!(pivot > PIVOT_LEAST) || isinf(pivot))
            return false;
        rows[own][k] = sqrt(pivot);
        for (size_t r = own + 1; r < count; r++)
            rows[r][k] = (a[r][k] - dots[r]) / rows[own][k];
    }
    return true;
}

/* Keeps rows first… of A and clears them, since those of C grow in their place. */
static void take_rows(size_t count, size_t first, double *triangle, double *const *kept) {
    for (size_t r = 0; r < count; r++) {
        size_t bytes = row_length(first + r) * sizeof(double);
        double *row = triangle + triangle_row(first + r);
        memcpy(kept[r], row, bytes);
        memset(row, 0, bytes);
    }
}

VECTOR_CLONES
static bool factor(size_t n, double *triangle, double *const *kept) {
    const double *const *a = (const double *const *)kept;
    for (size_t first = 0; first < n; first += TOGETHER) {
        size_t count = n - first < TOGETHER ? n - first : TOGETHER;
        heartbeat();
        take_rows(count, first, triangle, kept);
        bool found = count == TOGETHER ? find_rows(TOGETHER, first, triangle, a)
                                       : find_rows(count, first, triangle, a);
        if (!found)
            return false;
    }
    return true;
}

bool cholesky_factor(size_t n, double *a) {
    assert(n <= PRECONDITION_PARAMETERS_MAX);
    size_t length = row_length(n);
    double *room = memory_new(TOGETHER * length, sizeof *room), *kept[TOGETHER];
    for (size_t r = 0; r < TOGETHER; r++)
        kept[r] = room + r * length;
    bool found = factor(n, a, kept);
    free(room);
    return found;
}

/* ---- solutions ---- */

LANES_INLINE double row_dot(size_t length, const double *row, const double *z) {
    lanes sum[2] = {{0}, {0}};
    for (size_t k = 0; k < length; k += LANES) {
        lanes a, b;
        lanes_load(&a, row + k);
        lanes_load(&b, z + k);
        sum[k / LANES % 2] += a * b;
    }
    sum[0] += sum[1];
    return lanes_sum(&sum[0]);
}

/* z = C⁻¹·b; z is zero before. */
LANES_INLINE void solve_forward(size_t n, const double *c, const double *b, double *z) {
    for (size_t r = 0; r < n; r++) {
        const double *row = c + triangle_row(r);
        z[r] = (b[r] - row_dot(row_length(r), row, z)) / row[r];
    }
}

/* z = C⁻ᵀ·z. What lies behind an element in its lane is subtracted 0 times. */
LANES_INLINE void solve_backward(size_t n, const double *c, double *z) {
    for (size_t r = n; r-- > 0;) {
        const double *row = c + triangle_row(r);
        double found = z[r] / row[r];
        for (size_t k = 0; k < row_length(r); k += LANES) {
            lanes a, v;
            lanes_load(&a, row + k);
            lanes_load(&v, z + k);
            v -= found * a;
            lanes_store(z + k, &v);
        }
        z[r] = found;
    }
}

VECTOR_CLONES
void cholesky_solve(size_t n, const double *c, double *b) {
    _Alignas(64) double z[PRECONDITION_PARAMETERS_MAX + LANES];
    assert(n <= PRECONDITION_PARAMETERS_MAX);
    memset(z, 0, row_length(n) * sizeof *z);
    solve_forward(n, c, b, z);
    solve_backward(n, c, z);
    memcpy(b, z, n * sizeof *b);
}
