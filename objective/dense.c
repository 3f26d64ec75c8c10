#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/clones.h"
#include "numeric/fixed.h"
#include "numeric/product.h"
#include "numeric/vector.h"
#include "objective/parts.h"

/* How a row is read whose length is no multiple of LANES: the last LANES columns are read at once;
 * those of them that were already read with the whole lanes count as 0. A row with fewer than
 * LANES columns is read column by column. */
struct tail {
    size_t at;          /* the column where these lanes begin */
    size_t whole;       /* columns in whole lanes */
    half_lanes keep[2]; /* 1 for a column that was not read yet, else 0 */
};

LANES_INLINE void tail_find(struct tail *tail, size_t n) {
    tail->whole = n - n % LANES;
    tail->at = n >= LANES ? n - LANES : 0;
    for (size_t k = 0; k < LANES; k++)
        tail->keep[k / HALF][k % HALF] = tail->at + k >= tail->whole ? 1 : 0;
}

LANES_INLINE void add_product(enum value_type type, half_lanes *sum, const void *value, size_t i,
                              const double *x) {
    half_lanes v, w;
    load_values(type, &v, value, i);
    memcpy(&w, x, sizeof w);
    *sum += v * w;
}

/* `end` holds x at the columns of the tail; 0 at columns that were already read. Two sums of whole
 * lanes: `a` and `b`, `c` and `d`. */
LANES_INLINE double row_dot(enum value_type type, size_t n, const struct tail *tail,
                            const void *value, size_t begin, const double *x, const double *end) {
    half_lanes a = {0}, b = {0}, c = {0}, d = {0};
    size_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        add_product(type, &a, value, begin + j, x + j);
        add_product(type, &b, value, begin + j + HALF, x + j + HALF);
        add_product(type, &c, value, begin + j + 2 * HALF, x + j + 2 * HALF);
        add_product(type, &d, value, begin + j + 3 * HALF, x + j + 3 * HALF);
    }
    if (j < tail->whole) {
        add_product(type, &a, value, begin + j, x + j);
        add_product(type, &b, value, begin + j + HALF, x + j + HALF);
        j += LANES;
    }
    if (j < n && n >= LANES) {
        add_product(type, &c, value, begin + tail->at, end);
        add_product(type, &d, value, begin + tail->at + HALF, end + HALF);
        j = n;
    }
    a += c;
    b += d;
    double dot = half_lanes_sum(&a, &b);
    for (; j < n; j++)
        dot += value_at(type, value, begin + j) * x[j];
    return dot;
}

LANES_INLINE void row_dots(enum value_type type, size_t n, size_t count, const void *value,
                           size_t begin, const double *x, double *margins) {
    struct tail tail;
    tail_find(&tail, n);
    double end[LANES] = {0};
    for (size_t k = 0; k < LANES && n >= LANES; k++)
        end[k] = x[tail.at + k] * tail.keep[k / HALF][k % HALF];
    for (size_t i = 0; i < count; i++)
        margins[i] = row_dot(type, n, &tail, value, begin + i * n, x, end);
}

LANES_INLINE void add_row(enum value_type type, half_lanes *total, const half_lanes *d,
                          const void *value, size_t i) {
    half_lanes v;
    load_values(type, &v, value, i);
    *total += *d * v;
}

/* out += Σ d_r·row_r of four rows, at HALF columns from j on. */
LANES_INLINE void add_four(enum value_type type, size_t n, const void *value, size_t row, size_t j,
                           const half_lanes d[4], double *out) {
    half_lanes total;
    memcpy(&total, out + j, sizeof total);
    add_row(type, &total, &d[0], value, row + j);
    add_row(type, &total, &d[1], value, row + n + j);
    add_row(type, &total, &d[2], value, row + 2 * n + j);
    add_row(type, &total, &d[3], value, row + 3 * n + j);
    memcpy(out + j, &total, sizeof total);
}

/* Adds at the columns of the tail that were not read yet. */
LANES_INLINE void add_tail(enum value_type type, size_t n, const void *value, size_t row,
                           const struct tail *tail, const half_lanes d[4], double *out) {
    for (size_t half = 0; half < 2; half++) {
        half_lanes kept[4];
        for (size_t r = 0; r < 4; r++)
            kept[r] = d[r] * tail->keep[half];
        add_four(type, n, value, row, tail->at + half * HALF, kept, out);
    }
}

/* out += Σ derivatives_i·row_i over the batch. Four rows are added in one pass over `out`, which
 * saves passes; each column still adds the rows in their order. */
LANES_INLINE void rows_sum(enum value_type type, size_t n, size_t count, const void *value,
                           size_t begin, const double *derivatives, double *out) {
    struct tail tail;
    tail_find(&tail, n);
    size_t i = 0;
    for (; i + 4 <= count && n >= LANES; i += 4) {
        size_t row = begin + i * n;
        half_lanes d[4];
        for (size_t r = 0; r < 4; r++)
            d[r] = (half_lanes){0} + derivatives[i + r];
        for (size_t j = 0; j < tail.whole; j += HALF)
            add_four(type, n, value, row, j, d, out);
        if (tail.whole < n)
            add_tail(type, n, value, row, &tail, d, out);
    }
    for (; i < count; i++)
        for (size_t j = 0; j < n; j++)
            out[j] += derivatives[i] * value_at(type, value, begin + i * n + j);
}

LANES_INLINE void row_widen(enum value_type type, size_t n, const void *value, size_t begin,
                            double *out) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes v;
        load_values(type, &v, value, begin + i);
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++)
        out[i] = value_at(type, value, begin + i);
}

#define FOR_TYPE(type)                                                                             \
    VECTOR_CLONES                                                                                  \
    static void dots_##type(size_t n, size_t count, const void *value, size_t begin,               \
                            const double *x, double *margins) {                                    \
        row_dots(type, n, count, value, begin, x, margins);                                        \
    }                                                                                              \
    VECTOR_CLONES                                                                                  \
    static void sums_##type(size_t n, size_t count, const void *value, size_t begin,               \
                            const double *derivatives, double *out) {                              \
        rows_sum(type, n, count, value, begin, derivatives, out);                                  \
    }                                                                                              \
    VECTOR_CLONES                                                                                  \
    static void widen_##type(size_t n, const void *value, size_t begin, double *out) {             \
        row_widen(type, n, value, begin, out);                                                     \
    }
FOR_TYPE(VALUE_ONES)
FOR_TYPE(VALUE_BYTE)
FOR_TYPE(VALUE_FLOAT)
FOR_TYPE(VALUE_DOUBLE)

static const struct dense_kernels {
    void (*dots)(size_t n, size_t count, const void *value, size_t begin, const double *x,
                 double *margins);
    void (*sums)(size_t n, size_t count, const void *value, size_t begin, const double *derivatives,
                 double *out);
    void (*widen)(size_t n, const void *value, size_t begin, double *out);
} kernels[] = {
    [VALUE_ONES] = {dots_VALUE_ONES, sums_VALUE_ONES, widen_VALUE_ONES},
    [VALUE_BYTE] = {dots_VALUE_BYTE, sums_VALUE_BYTE, widen_VALUE_BYTE},
    [VALUE_FLOAT] = {dots_VALUE_FLOAT, sums_VALUE_FLOAT, widen_VALUE_FLOAT},
    [VALUE_DOUBLE] = {dots_VALUE_DOUBLE, sums_VALUE_DOUBLE, widen_VALUE_DOUBLE},
};

static_assert(BATCH_ROWS_MAX <= PRODUCT_ROWS_MAX, "a batch is one product");

/* ---- several outputs ---- */

void dense_prepare(const struct objective_shape *shape, const struct rows_most *rows,
                   uint32_t batch_rows, struct objective_scratch *scratch) {
    size_t n = shape->features, outputs = shape->outputs;
    size_t tile = (size_t)(rows->count < batch_rows ? rows->count : batch_rows) * n;
    if (!scratch->gradient)
        scratch->gradient = memory_new_aligned(n * outputs, sizeof(double));
    if (outputs == 1)
        return;
    if (!scratch->packed) {
        scratch->packed_bytes = product_packed(n, outputs) * sizeof(double);
        scratch->packed = memory_map(scratch->packed_bytes);
    }
    if (rows->types != 1U << VALUE_DOUBLE && tile > scratch->tile_values) {
        free(scratch->tile);
        scratch->tile = memory_new_aligned(tile, sizeof(double));
        scratch->tile_values = tile;
    }
}

void dense_begin(const struct objective_shape *shape, const double *parameters,
                 struct objective_scratch *scratch) {
    size_t n = shape->features, outputs = shape->outputs;
    assert(scratch->gradient && (outputs == 1 || scratch->packed));
    if (outputs == 1)
        return;
    if (parameters && (!scratch->point || scratch->packed_point != scratch->point))
        product_pack(n, outputs, parameters, scratch->packed);
    if (parameters)
        scratch->packed_point = scratch->point;
    memset(scratch->gradient, 0, n * outputs * sizeof(double));
}

static const double *first_value(const struct objective_shape *shape, const struct row_batch *batch,
                                 const struct objective_scratch *scratch) {
    if (batch->rows->type == VALUE_DOUBLE)
        return (const double *)batch->rows->value + (size_t)batch->first * shape->features;
    return scratch->tile;
}

/* The rows of a batch as doubles: in place if they are doubles, else converted into the tile. */
static const double *as_doubles(const struct objective_shape *shape, const struct row_batch *batch,
                                struct objective_scratch *scratch) {
    if (batch->rows->type != VALUE_DOUBLE) {
        size_t values = (size_t)batch->count * shape->features;
        assert(values <= scratch->tile_values);
        kernels[batch->rows->type].widen(values, batch->rows->value,
                                         (size_t)batch->first * shape->features, scratch->tile);
    }
    return first_value(shape, batch, scratch);
}

void dense_take(const struct objective_shape *shape, const struct row_batch *batch,
                struct objective_scratch *scratch) {
    if (shape->outputs > 1)
        as_doubles(shape, batch, scratch);
}

void dense_finish(const struct objective_shape *shape, const struct objective_scale *scale,
                  int64_t *sum, struct objective_scratch *scratch) {
    size_t n = shape->features, outputs = shape->outputs;
    for (size_t j = 0; outputs > 1 && j < n; j++) {
        double power = scale_of(scale, j);
        for (size_t k = 0; k < outputs; k++)
            fixed_add(&sum[j * outputs + k], scratch->gradient[k * n + j] * power);
    }
}

/* ---- any number of outputs ---- */

void dense_margins(const struct objective_shape *shape, const struct row_batch *batch,
                   const double *parameters, struct objective_scratch *scratch, double *margins) {
    size_t n = shape->features;
    if (shape->outputs > 1)
        product_plain(batch->count, shape->outputs, n, as_doubles(shape, batch, scratch),
                      scratch->packed, margins);
    else
        kernels[batch->rows->type].dots(n, batch->count, batch->rows->value, batch->first * n,
                                        parameters, margins);
}

/* With one output a batch is summed in doubles and rounded to fixed point once a column. With
 * several, the batches of a block are added in doubles too, and rounded once. Over so few rows the
 * error of doubles does not matter. */
void dense_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct row_batch *batch, const double *derivatives, int64_t *sum,
                    struct objective_scratch *scratch) {
    size_t n = shape->features;
    if (shape->outputs > 1) {
        size_t size = value_bytes(batch->rows->type);
        const double *now = first_value(shape, batch, scratch);
        const char *next = batch->rows->value;
        next = next ? next + (size_t)(batch->first + batch->count) * n * size : (const char *)now;
        product_transposed(n, shape->outputs, batch->count, now, derivatives, scratch->gradient,
                           next, size);
        return;
    }
    memset(scratch->gradient, 0, n * sizeof(double));
    kernels[batch->rows->type].sums(n, batch->count, batch->rows->value, batch->first * n,
                                    derivatives, scratch->gradient);
    for (size_t j = 0; j < n; j++)
        fixed_add(&sum[j], scratch->gradient[j] * scale_of(scale, j));
}
