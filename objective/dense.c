#include <string.h>

#include "base/memory.h"
#include "numeric/clones.h"
#include "numeric/fixed.h"
#include "numeric/product.h"
#include "numeric/vector.h"
#include "objective/parts.h"

#define INLINE static inline __attribute__((always_inline))

INLINE double value_at(enum value_type type, const void *value, size_t i) {
    switch (type) {
    case VALUE_ONES:
        return 1;
    case VALUE_FLOAT:
        return ((const float *)value)[i];
    case VALUE_DOUBLE:
        return ((const double *)value)[i];
    }
    return 0;
}

INLINE void load(enum value_type type, lanes *out, const void *value, size_t i) {
    if (type == VALUE_DOUBLE) {
        memcpy(out, (const double *)value + i, sizeof *out);
    } else if (type == VALUE_FLOAT) {
        float_lanes narrow;
        memcpy(&narrow, (const float *)value + i, sizeof narrow);
        *out = __builtin_convertvector(narrow, lanes);
    } else {
        *out = (lanes){0} + 1.0;
    }
}

INLINE double row_dot(enum value_type type, size_t n, const void *value, size_t begin,
                      const double *x) {
    lanes sum[2] = {{0}, {0}};
    size_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        for (size_t half = 0; half < 2; half++) {
            lanes v, w;
            load(type, &v, value, begin + j + half * LANES);
            memcpy(&w, x + j + half * LANES, sizeof w);
            sum[half] += v * w;
        }
    }
    lanes s = sum[0] + sum[1];
    double dot = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    for (; j < n; j++)
        dot += value_at(type, value, begin + j) * x[j];
    return dot;
}

/* out = Σ derivatives_i·row_i over the batch, four rows at a time so that `out` is passed over
 * less often; each column is added to in the order of the rows. */
INLINE void rows_sum(enum value_type type, size_t n, size_t count, const void *value, size_t begin,
                     const double *derivatives, double *out) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const double *d = derivatives + i;
        size_t row = begin + i * n;
        size_t j = 0;
        for (; j + LANES <= n; j += LANES) {
            lanes total, v[4];
            memcpy(&total, out + j, sizeof total);
            for (size_t r = 0; r < 4; r++) {
                load(type, &v[r], value, row + r * n + j);
                total += d[r] * v[r];
            }
            memcpy(out + j, &total, sizeof total);
        }
        for (; j < n; j++)
            for (size_t r = 0; r < 4; r++)
                out[j] += d[r] * value_at(type, value, row + r * n + j);
    }
    for (; i < count; i++)
        for (size_t j = 0; j < n; j++)
            out[j] += derivatives[i] * value_at(type, value, begin + i * n + j);
}

#define FOR_TYPE(type)                                                                             \
    VECTOR_CLONES                                                                                  \
    static void dots_##type(size_t n, size_t count, const void *value, size_t begin,               \
                            const double *x, double *margins) {                                    \
        for (size_t i = 0; i < count; i++)                                                         \
            margins[i] = row_dot(type, n, value, begin + i * n, x);                                \
    }                                                                                              \
    VECTOR_CLONES                                                                                  \
    static void sums_##type(size_t n, size_t count, const void *value, size_t begin,               \
                            const double *derivatives, double *out) {                              \
        rows_sum(type, n, count, value, begin, derivatives, out);                                  \
    }                                                                                              \
    VECTOR_CLONES                                                                                  \
    static void widen_##type(size_t n, const void *value, size_t begin, double *out) {             \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = value_at(type, value, begin + i);                                             \
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

/* The rows of a batch as doubles, where they lie or in the scratch memory. */
static const double *as_doubles(const struct objective_shape *shape, const struct batch *batch,
                                struct objective_scratch *scratch) {
    size_t begin = (size_t)batch->first * shape->features;
    if (batch->rows->type == VALUE_DOUBLE)
        return (const double *)batch->rows->value + begin;
    size_t values = (size_t)batch->count * shape->features;
    if (values > scratch->tile_values) {
        scratch->tile = memory_resize(scratch->tile, values, sizeof(double));
        scratch->tile_values = values;
    }
    kernels[batch->rows->type].widen(values, batch->rows->value, begin, scratch->tile);
    return scratch->tile;
}

void dense_margins(const struct objective_shape *shape, const struct batch *batch,
                   const double *parameters, struct objective_scratch *scratch, double *margins) {
    size_t n = shape->features;
    if (shape->outputs > 1)
        product_plain(batch->count, shape->outputs, n, as_doubles(shape, batch, scratch),
                      parameters, margins);
    else
        kernels[batch->rows->type].dots(n, batch->count, batch->rows->value, batch->first * n,
                                        parameters, margins);
}

/* A batch is summed in doubles, which over so few rows is as good as exact, and rounded once a
 * column. */
void dense_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct batch *batch, const double *derivatives, int64_t *sum,
                    struct objective_scratch *scratch) {
    size_t n = shape->features, outputs = shape->outputs;
    if (!scratch->gradient)
        scratch->gradient = memory_new(n * outputs, sizeof(double));
    if (outputs > 1) {
        product_transposed(n, outputs, batch->count, as_doubles(shape, batch, scratch), derivatives,
                           scratch->gradient);
    } else {
        memset(scratch->gradient, 0, n * sizeof(double));
        kernels[batch->rows->type].sums(n, batch->count, batch->rows->value, batch->first * n,
                                        derivatives, scratch->gradient);
    }
    for (size_t j = 0; j < n; j++) {
        double power = scale_of(scale, j);
        for (size_t k = j * outputs; k < (j + 1) * outputs; k++)
            fixed_add(&sum[k], scratch->gradient[k] * power);
    }
}
