#include <string.h>

#include "numeric/fixed.h"
#include "objective/parts.h"

/* With so many parameters and more, they and their sums do not fit into the second cache. Then the
 * kernels ask for the memory of a value early, for K = 1 AHEAD values: the processor itself looks
 * ahead no further than half of that. With fewer parameters that would only cost time. */
#define WIDE_PARAMETERS 65536
#define AHEAD 64
#define COLUMN_AHEAD 16
#define ASKED_BYTES_MAX 512
#define CACHE_LINE 64

/* Asks for the elements of `vector` that `count` values from i on will need. */
LANES_INLINE void ask_ahead(const struct rows *rows, size_t i, size_t count, const void *vector,
                            size_t size) {
    if (i + AHEAD + count > rows->start[rows->count])
        return;
    for (size_t k = 0; k < count; k++)
        __builtin_prefetch((const char *)vector + rows->feature[i + AHEAD + k] * size);
}

/* Asks for the elements of one value, `size` bytes, COLUMN_AHEAD values early. Of many outputs the
 * first are enough: the processor itself asks for what follows. */
LANES_INLINE void ask_column(const struct rows *rows, size_t i, const void *vector, size_t size) {
    if (i + COLUMN_AHEAD >= rows->start[rows->count])
        return;
    const char *column = (const char *)vector + rows->feature[i + COLUMN_AHEAD] * size;
    for (size_t at = 0; at < size && at < ASKED_BYTES_MAX; at += CACHE_LINE)
        __builtin_prefetch(column + at);
}

/* With scaled columns the weight is rounded before it is multiplied: it has the bits of one that
 * was found for all rows. */
LANES_INLINE double weight_of(const double *x, const struct column_scaling *columns, size_t j) {
    return columns ? columns[j].scale * x[j] : x[j];
}

/* Four sums, because each addition to a single sum would wait for the one before it. The order of
 * the additions depends on the row alone. */
LANES_INLINE double row_margin(enum value_type type, bool wide, size_t begin, size_t end,
                               const struct rows *rows, const double *x,
                               const struct column_scaling *columns) {
    const uint32_t *feature = rows->feature;
    const void *value = rows->value;
    double a = 0, b = 0, c = 0, d = 0;
    size_t i = begin;
    for (; i + 4 <= end; i += 4) {
        if (wide)
            ask_ahead(rows, i, 4, x, sizeof *x);
        if (wide && columns)
            ask_ahead(rows, i, 4, columns, sizeof *columns);
        a += value_at(type, value, i) * weight_of(x, columns, feature[i]);
        b += value_at(type, value, i + 1) * weight_of(x, columns, feature[i + 1]);
        c += value_at(type, value, i + 2) * weight_of(x, columns, feature[i + 2]);
        d += value_at(type, value, i + 3) * weight_of(x, columns, feature[i + 3]);
    }
    if (i < end)
        a += value_at(type, value, i) * weight_of(x, columns, feature[i]);
    if (i + 1 < end)
        b += value_at(type, value, i + 1) * weight_of(x, columns, feature[i + 1]);
    if (i + 2 < end)
        c += value_at(type, value, i + 2) * weight_of(x, columns, feature[i + 2]);
    return (a + b) + (c + d);
}

LANES_INLINE void row_margins(enum value_type type, size_t outputs, bool wide, size_t begin,
                              size_t end, const struct rows *rows, const double *x,
                              const struct column_scaling *columns, double *m) {
    memset(m, 0, outputs * sizeof *m);
    for (size_t i = begin; i < end; i++) {
        if (wide)
            ask_column(rows, i, x, outputs * sizeof *x);
        const double v = value_at(type, rows->value, i);
        const double scale = columns ? columns[rows->feature[i]].scale : 1;
        const double *column = x + (size_t)rows->feature[i] * outputs;
        size_t k = 0;
        for (; k + HALF <= outputs; k += HALF) {
            half_lanes margin, parameter;
            memcpy(&margin, m + k, sizeof margin);
            memcpy(&parameter, column + k, sizeof parameter);
            margin += v * (scale * parameter);
            memcpy(m + k, &margin, sizeof margin);
        }
        for (; k < outputs; k++)
            m[k] += v * (scale * column[k]);
    }
}

LANES_INLINE void typed_margins(enum value_type type, size_t outputs, bool wide,
                                const struct row_batch *batch, const double *x,
                                const struct column_scaling *columns, double *margins) {
    const struct rows *rows = batch->rows;
    for (size_t i = 0; i < batch->count; i++) {
        size_t begin = rows->start[batch->first + i];
        size_t end = rows->start[batch->first + i + 1];
        if (outputs == 1)
            margins[i] = row_margin(type, wide, begin, end, rows, x, columns);
        else
            row_margins(type, outputs, wide, begin, end, rows, x, columns, margins + i * outputs);
    }
}

LANES_INLINE bool is_wide(const struct row_batch *batch, size_t outputs) {
    return batch->rows->features >= WIDE_PARAMETERS / outputs;
}

/* Lets the compiler make one copy of the loops for each case. */
LANES_INLINE void margins_of(enum value_type type, size_t outputs, const struct row_batch *batch,
                             const double *x, const struct column_scaling *columns,
                             double *margins) {
    if (columns)
        typed_margins(type, outputs, true, batch, x, columns, margins);
    else if (is_wide(batch, outputs))
        typed_margins(type, outputs, true, batch, x, NULL, margins);
    else
        typed_margins(type, outputs, false, batch, x, NULL, margins);
}

VECTOR_CLONES
void sparse_margins(const struct objective_shape *shape, const struct row_batch *batch,
                    const double *parameters, const struct column_scaling *columns,
                    double *margins) {
    switch (batch->rows->type) {
    case VALUE_ONES:
        margins_of(VALUE_ONES, shape->outputs, batch, parameters, columns, margins);
        break;
    case VALUE_BYTE:
        margins_of(VALUE_BYTE, shape->outputs, batch, parameters, columns, margins);
        break;
    case VALUE_FLOAT:
        margins_of(VALUE_FLOAT, shape->outputs, batch, parameters, columns, margins);
        break;
    case VALUE_DOUBLE:
        margins_of(VALUE_DOUBLE, shape->outputs, batch, parameters, columns, margins);
        break;
    }
}

/* K = 1. If there are no exponents by column, the derivative already includes the exponent of all
 * columns; if all values are 1 too, every value adds the same term. */
LANES_INLINE void row_gradient(enum value_type type, bool wide, size_t begin, size_t end,
                               const struct rows *rows, const int16_t *exponent, double derivative,
                               int64_t *sum) {
    const uint32_t *feature = rows->feature;
    const void *value = rows->value;
    if (type == VALUE_ONES && !exponent) {
        const int64_t term = fixed_term(derivative);
        for (size_t i = begin; i < end; i++) {
            if (wide)
                ask_ahead(rows, i, 1, sum, sizeof *sum);
            fixed_add_term(&sum[feature[i]], term);
        }
        return;
    }
    for (size_t i = begin; i < end; i++) {
        if (wide)
            ask_ahead(rows, i, 1, sum, sizeof *sum);
        if (wide && exponent)
            ask_ahead(rows, i, 1, exponent, sizeof *exponent);
        double term = derivative * value_at(type, value, i);
        if (exponent)
            term *= fixed_power(exponent[feature[i]]);
        fixed_add(&sum[feature[i]], term);
    }
}

/* The gradients of rows for any K. */
LANES_INLINE void row_gradients(enum value_type type, size_t outputs, bool wide, size_t begin,
                                size_t end, const struct rows *rows, const int16_t *exponent,
                                const double *derivatives, int64_t *sum) {
    for (size_t i = begin; i < end; i++) {
        if (wide)
            ask_column(rows, i, sum, outputs * sizeof *sum);
        const size_t j = rows->feature[i];
        const double v = value_at(type, rows->value, i);
        const double power = exponent ? fixed_power(exponent[j]) : 1;
        int64_t *column = sum + j * outputs;
        size_t k = 0;
        for (; k + HALF <= outputs; k += HALF) {
            half_lanes terms;
            memcpy(&terms, derivatives + k, sizeof terms);
            terms = terms * v * power;
            fixed_add_half(&column[k], &terms);
        }
        for (; k < outputs; k++)
            fixed_add(&column[k], derivatives[k] * v * power);
    }
}

LANES_INLINE void typed_gradient(enum value_type type, size_t outputs, bool wide,
                                 const int16_t *exponent, const struct row_batch *batch,
                                 const double *derivatives, int64_t *sum) {
    const struct rows *rows = batch->rows;
    for (size_t i = 0; i < batch->count; i++) {
        size_t begin = rows->start[batch->first + i];
        size_t end = rows->start[batch->first + i + 1];
        const double *d = derivatives + i * outputs;
        if (outputs > 1)
            row_gradients(type, outputs, wide, begin, end, rows, exponent, d, sum);
        else
            row_gradient(type, wide, begin, end, rows, exponent, d[0], sum);
    }
}

/* The gradient of a batch, with exponents by column and without. */
LANES_INLINE void gradient_of(enum value_type type, size_t outputs, const int16_t *exponent,
                              const struct row_batch *batch, const double *derivatives,
                              int64_t *sum) {
    bool wide = is_wide(batch, outputs);
    if (exponent && wide)
        typed_gradient(type, outputs, true, exponent, batch, derivatives, sum);
    else if (exponent)
        typed_gradient(type, outputs, false, exponent, batch, derivatives, sum);
    else if (wide)
        typed_gradient(type, outputs, true, NULL, batch, derivatives, sum);
    else
        typed_gradient(type, outputs, false, NULL, batch, derivatives, sum);
}

VECTOR_CLONES
void sparse_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                     const struct row_batch *batch, double *derivatives, int64_t *sum) {
    size_t outputs = shape->outputs;
    if (!scale->exponent) {
        double power = fixed_power(scale->uniform);
        for (size_t i = 0; i < batch->count * outputs; i++)
            derivatives[i] *= power;
    }
    switch (batch->rows->type) {
    case VALUE_ONES:
        gradient_of(VALUE_ONES, outputs, scale->exponent, batch, derivatives, sum);
        break;
    case VALUE_BYTE:
        gradient_of(VALUE_BYTE, outputs, scale->exponent, batch, derivatives, sum);
        break;
    case VALUE_FLOAT:
        gradient_of(VALUE_FLOAT, outputs, scale->exponent, batch, derivatives, sum);
        break;
    case VALUE_DOUBLE:
        gradient_of(VALUE_DOUBLE, outputs, scale->exponent, batch, derivatives, sum);
        break;
    }
}
