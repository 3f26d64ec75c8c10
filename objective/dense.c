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
    size_t at;    /* the column where these lanes begin */
    size_t whole; /* columns in whole lanes */
    lanes keep;   /* 1 for a column that was not read yet, else 0 */
};

LANES_INLINE void tail_find(struct tail *tail, size_t n) {
    tail->whole = n - n % LANES;
    tail->at = n >= LANES ? n - LANES : 0;
    for (size_t k = 0; k < LANES; k++)
        tail->keep[k] = tail->at + k >= tail->whole ? 1 : 0;
}

/* `end` holds x at the columns of the tail; 0 at columns that were already read. */
LANES_INLINE double row_dot(enum value_type type, size_t n, const struct tail *tail,
                            const void *value, size_t begin, const double *x, const lanes *end) {
    lanes sum[2] = {{0}, {0}};
    lanes v, w;
    size_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        for (size_t half = 0; half < 2; half++) {
            load_values(type, &v, value, begin + j + half * LANES);
            memcpy(&w, x + j + half * LANES, sizeof w);
            sum[half] += v * w;
        }
    }
    if (j < tail->whole) {
        load_values(type, &v, value, begin + j);
        memcpy(&w, x + j, sizeof w);
        sum[0] += v * w;
        j += LANES;
    }
    if (j < n && n >= LANES) {
        load_values(type, &v, value, begin + tail->at);
        sum[1] += v * *end;
        j = n;
    }
    lanes s = sum[0] + sum[1];
    double dot = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    for (; j < n; j++)
        dot += value_at(type, value, begin + j) * x[j];
    return dot;
}

LANES_INLINE void row_dots(enum value_type type, size_t n, size_t count, const void *value,
                           size_t begin, const double *x, double *margins) {
    struct tail tail;
    tail_find(&tail, n);
    lanes end = {0};
    if (n >= LANES) {
        memcpy(&end, x + tail.at, sizeof end);
        end *= tail.keep;
    }
    for (size_t i = 0; i < count; i++)
        margins[i] = row_dot(type, n, &tail, value, begin + i * n, x, &end);
}

/* out += Σ d_r·row_r of four rows, at LANES columns from j on. */
LANES_INLINE void add_four(enum value_type type, size_t n, const void *value, size_t row, size_t j,
                           const lanes d[4], double *out) {
    lanes total, v;
    memcpy(&total, out + j, sizeof total);
    for (size_t r = 0; r < 4; r++) {
        load_values(type, &v, value, row + r * n + j);
        total += d[r] * v;
    }
    memcpy(out + j, &total, sizeof total);
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
        lanes d[4];
        for (size_t r = 0; r < 4; r++)
            d[r] = (lanes){0} + derivatives[i + r];
        for (size_t j = 0; j < tail.whole; j += LANES)
            add_four(type, n, value, row, j, d, out);
        for (size_t r = 0; r < 4; r++)
            d[r] *= tail.keep;
        if (tail.whole < n)
            add_four(type, n, value, row, tail.at, d, out);
    }
    for (; i < count; i++)
        for (size_t j = 0; j < n; j++)
            out[j] += derivatives[i] * value_at(type, value, begin + i * n + j);
}

LANES_INLINE void row_widen(enum value_type type, size_t n, const void *value, size_t begin,
                            double *out) {
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes v;
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
    [VALUE_FLOAT] = {dots_VALUE_FLOAT, sums_VALUE_FLOAT, widen_VALUE_FLOAT},
    [VALUE_DOUBLE] = {dots_VALUE_DOUBLE, sums_VALUE_DOUBLE, widen_VALUE_DOUBLE},
};

/* ---- several outputs ---- */

void dense_begin(const struct objective_shape *shape, const double *parameters,
                 struct objective_scratch *scratch) {
    size_t n = shape->features, outputs = shape->outputs;
    if (!scratch->gradient)
        scratch->gradient = memory_new(n * outputs, sizeof(double));
    if (outputs == 1)
        return;
    if (!scratch->packed) {
        scratch->packed_bytes = product_packed(n, outputs) * sizeof(double);
        scratch->packed = memory_map(scratch->packed_bytes);
    }
    product_pack(n, outputs, parameters, scratch->packed);
    memset(scratch->gradient, 0, n * outputs * sizeof(double));
}

static const double *first_value(const struct objective_shape *shape, const struct batch *batch,
                                 const struct objective_scratch *scratch) {
    if (batch->rows->type == VALUE_DOUBLE)
        return (const double *)batch->rows->value + (size_t)batch->first * shape->features;
    return scratch->tile;
}

/* The rows of a batch as doubles: in place if they are doubles, else converted into the tile. */
static const double *as_doubles(const struct objective_shape *shape, const struct batch *batch,
                                struct objective_scratch *scratch) {
    if (batch->rows->type != VALUE_DOUBLE) {
        size_t values = (size_t)batch->count * shape->features;
        if (values > scratch->tile_values) {
            scratch->tile = memory_resize(scratch->tile, values, sizeof(double));
            scratch->tile_values = values;
        }
        kernels[batch->rows->type].widen(values, batch->rows->value,
                                         (size_t)batch->first * shape->features, scratch->tile);
    }
    return first_value(shape, batch, scratch);
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

void dense_margins(const struct objective_shape *shape, const struct batch *batch,
                   const double *parameters, struct objective_scratch *scratch, double *margins) {
    size_t n = shape->features;
    if (shape->outputs > 1)
        product_plain(batch->count, shape->outputs, n, as_doubles(shape, batch, scratch),
                      scratch->packed, margins);
    else
        kernels[batch->rows->type].dots(n, batch->count, batch->rows->value, batch->first * n,
                                        parameters, margins);
}

/* With one output a batch is summed in doubles and rounded to fixed point once a column: over so
 * few rows, doubles are as good as exact. With several, the sums of the batches of a block are
 * added in doubles too, which is as good: a block has few batches. */
void dense_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct batch *batch, const double *derivatives, int64_t *sum,
                    struct objective_scratch *scratch) {
    size_t n = shape->features;
    if (shape->outputs > 1) {
        size_t size = batch->rows->type == VALUE_FLOAT ? sizeof(float) : sizeof(double);
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
