/* Columns of the inverse are found eight at a time, side by side in lanes: so each element of the
 * factor is read once for all of them, and no sum goes across lanes. */
#include "numeric/inverse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "numeric/clones.h"
#include "numeric/dense.h"

/* Rows of the factor that are taken together: each element of the columns is then read once for all
 * of them, and AVX2 has registers for their sums. */
enum { TOGETHER = 4 };

/* An element of each of the eight columns. */
struct column_lanes {
    half_lanes part[2];
};

/* sums[i] = Σ rows[i][k]·z[k] over k in [first, end). */
LANES_INLINE void add_products(size_t count, const double *const *rows, size_t first, size_t end,
                               const struct column_lanes *z, struct column_lanes *sums) {
    half_lanes low[TOGETHER] = {0}, high[TOGETHER] = {0};
    for (size_t k = first; k < end; k++) {
        half_lanes a = z[k].part[0], b = z[k].part[1];
        UNROLL for (size_t i = 0; i < count; i++) {
            low[i] += rows[i][k] * a;
            high[i] += rows[i][k] * b;
        }
    }
    for (size_t i = 0; i < count; i++)
        sums[i] = (struct column_lanes){{low[i], high[i]}};
}

LANES_INLINE void products(size_t count, const double *const *rows, size_t first, size_t end,
                           const struct column_lanes *z, struct column_lanes *sums) {
    if (count == TOGETHER)
        add_products(TOGETHER, rows, first, end, z, sums);
    else
        add_products(count, rows, first, end, z, sums);
}

LANES_INLINE size_t rows_from(size_t n, size_t r, const double *triangle, const double **rows) {
    size_t count = n - r < TOGETHER ? n - r : TOGETHER;
    for (size_t i = 0; i < count; i++)
        rows[i] = triangle + triangle_row(r + i);
    return count;
}

/* z = C⁻¹·z from row `first` on, above which z is 0. */
LANES_INLINE void forward(size_t n, const double *c, size_t first, struct column_lanes *z) {
    for (size_t r = first; r < n; r += TOGETHER) {
        const double *rows[TOGETHER];
        struct column_lanes sums[TOGETHER];
        size_t count = rows_from(n, r, c, rows);
        products(count, rows, first, r, z, sums);
        for (size_t i = 0; i < count; i++)
            for (size_t half = 0; half < 2; half++) {
                half_lanes sum = sums[i].part[half];
                for (size_t k = r; k < r + i; k++)
                    sum += rows[i][k] * z[k].part[half];
                z[r + i].part[half] = (z[r + i].part[half] - sum) / rows[i][r + i];
            }
    }
}

/* z = C⁻ᵀ·z. */
LANES_INLINE void backward(size_t n, const double *c, struct column_lanes *z) {
    for (size_t r = n; r-- > 0;) {
        const double *row = c + triangle_row(r);
        half_lanes a = z[r].part[0] / row[r], b = z[r].part[1] / row[r];
        z[r] = (struct column_lanes){{a, b}};
        for (size_t k = 0; k < r; k++) {
            z[k].part[0] -= row[k] * a;
            z[k].part[1] -= row[k] * b;
        }
    }
}

/* zᵀ·M·z of each column. */
LANES_INLINE void quadratic(size_t n, const double *m, const struct column_lanes *z,
                            struct column_lanes *out) {
    half_lanes total[2] = {0};
    for (size_t r = 0; r < n; r += TOGETHER) {
        const double *rows[TOGETHER];
        struct column_lanes sums[TOGETHER];
        size_t count = rows_from(n, r, m, rows);
        products(count, rows, 0, r, z, sums);
        for (size_t i = 0; i < count; i++)
            for (size_t half = 0; half < 2; half++) {
                half_lanes sum = sums[i].part[half], own = z[r + i].part[half];
                for (size_t k = r; k < r + i; k++)
                    sum += rows[i][k] * z[k].part[half];
                total[half] += own * (2 * sum + rows[i][r + i] * own);
            }
    }
    *out = (struct column_lanes){{total[0], total[1]}};
}

LANES_INLINE void squares(size_t n, size_t first, const struct column_lanes *z,
                          struct column_lanes *out) {
    half_lanes total[2] = {0};
    for (size_t r = first; r < n; r++)
        for (size_t half = 0; half < 2; half++)
            total[half] += z[r].part[half] * z[r].part[half];
    *out = (struct column_lanes){{total[0], total[1]}};
}

VECTOR_CLONES
static void find_columns(size_t n, const double *c, const double *m, size_t first,
                         struct column_lanes *z, struct column_lanes *out) {
    forward(n, c, first, z);
    if (!m) {
        squares(n, first, z, out);
        return;
    }
    backward(n, c, z);
    quadratic(n, m, z, out);
}

static void find_all(size_t n, const double *c, const double *m, double *diagonal) {
    struct column_lanes *z = memory_map((n + 1) * sizeof *z), out;
    for (size_t first = 0; first < n; first += LANES) {
        heartbeat();
        /* Columns first… of the unit matrix. */
        memset(z, 0, n * sizeof *z);
        for (size_t j = 0; j < LANES && first + j < n; j++)
            z[first + j].part[j / HALF][j % HALF] = 1;
        find_columns(n, c, m, first, z, &out);
        for (size_t j = 0; j < LANES && first + j < n; j++)
            diagonal[first + j] = out.part[j / HALF][j % HALF];
    }
    memory_unmap(z, (n + 1) * sizeof *z);
}

VECTOR_CLONES
static void find_form(size_t n, const double *c, const double *m, struct column_lanes *z,
                      struct column_lanes *out) {
    forward(n, c, 0, z);
    if (!m) {
        squares(n, 0, z, out);
        return;
    }
    backward(n, c, z);
    quadratic(n, m, z, out);
}

double inverse_form(size_t n, const double *c, const double *m, const double *u) {
    struct column_lanes *z = memory_map((n + 1) * sizeof *z), out;
    for (size_t r = 0; r < n; r++)
        z[r].part[0][0] = u[r];
    find_form(n, c, m, z, &out);
    memory_unmap(z, (n + 1) * sizeof *z);
    return out.part[0][0];
}

void inverse_diagonal(size_t n, const double *c, double *diagonal) {
    find_all(n, c, NULL, diagonal);
}

void inverse_sandwich(size_t n, const double *c, const double *m, double *diagonal) {
    assert(m);
    find_all(n, c, m, diagonal);
}
