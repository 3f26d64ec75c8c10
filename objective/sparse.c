#include <string.h>

#include "numeric/fixed.h"
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

/* Four sums, since one would wait for each addition; the order depends on the row alone. */
INLINE double row_margin(enum value_type type, size_t begin, size_t end, const uint32_t *feature,
                         const void *value, const double *x) {
    double sum[4] = {0, 0, 0, 0};
    size_t i = begin;
    for (; i + 4 <= end; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += value_at(type, value, i + k) * x[feature[i + k]];
    for (; i < end; i++)
        sum[0] += value_at(type, value, i) * x[feature[i]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

INLINE void row_margins(enum value_type type, size_t outputs, size_t begin, size_t end,
                        const uint32_t *feature, const void *value, const double *x, double *m) {
    memset(m, 0, outputs * sizeof *m);
    for (size_t i = begin; i < end; i++) {
        const double v = value_at(type, value, i);
        const double *column = x + (size_t)feature[i] * outputs;
        for (size_t k = 0; k < outputs; k++)
            m[k] += v * column[k];
    }
}

INLINE void typed_margins(enum value_type type, size_t outputs, const struct batch *batch,
                          const double *x, double *margins) {
    const struct rows *rows = batch->rows;
    for (size_t i = 0; i < batch->count; i++) {
        size_t begin = rows->start[batch->first + i];
        size_t end = rows->start[batch->first + i + 1];
        if (outputs == 1)
            margins[i] = row_margin(type, begin, end, rows->feature, rows->value, x);
        else
            row_margins(type, outputs, begin, end, rows->feature, rows->value, x,
                        margins + i * outputs);
    }
}

void sparse_margins(const struct objective_shape *shape, const struct batch *batch,
                    const double *parameters, double *margins) {
    switch (batch->rows->type) {
    case VALUE_ONES:
        typed_margins(VALUE_ONES, shape->outputs, batch, parameters, margins);
        break;
    case VALUE_FLOAT:
        typed_margins(VALUE_FLOAT, shape->outputs, batch, parameters, margins);
        break;
    case VALUE_DOUBLE:
        typed_margins(VALUE_DOUBLE, shape->outputs, batch, parameters, margins);
        break;
    }
}

/* One exponent for all: it is in the derivatives already. Where all values are 1 too, so is the
 * rounding: `terms` holds what each output of the row adds. */
INLINE void row_uniform(enum value_type type, size_t outputs, size_t begin, size_t end,
                        const struct rows *rows, const double *derivatives, int64_t *terms,
                        int64_t *sum) {
    if (type == VALUE_ONES)
        for (size_t k = 0; k < outputs; k++)
            terms[k] = fixed_term(derivatives[k]);
    for (size_t i = begin; i < end; i++) {
        const double v = value_at(type, rows->value, i);
        int64_t *column = sum + (size_t)rows->feature[i] * outputs;
        for (size_t k = 0; k < outputs; k++)
            fixed_add_term(&column[k],
                           type == VALUE_ONES ? terms[k] : fixed_term(derivatives[k] * v));
    }
}

INLINE void row_by_column(enum value_type type, size_t outputs, size_t begin, size_t end,
                          const struct rows *rows, const int16_t *exponent,
                          const double *derivatives, int64_t *sum) {
    for (size_t i = begin; i < end; i++) {
        const double v = value_at(type, rows->value, i);
        const double power = fixed_power(exponent[rows->feature[i]]);
        int64_t *column = sum + (size_t)rows->feature[i] * outputs;
        for (size_t k = 0; k < outputs; k++)
            fixed_add(&column[k], derivatives[k] * v * power);
    }
}

INLINE void typed_gradient(enum value_type type, size_t outputs, const int16_t *exponent,
                           const struct batch *batch, const double *derivatives, int64_t *terms,
                           int64_t *sum) {
    const struct rows *rows = batch->rows;
    for (size_t i = 0; i < batch->count; i++) {
        size_t begin = rows->start[batch->first + i];
        size_t end = rows->start[batch->first + i + 1];
        const double *d = derivatives + i * outputs;
        if (exponent)
            row_by_column(type, outputs, begin, end, rows, exponent, d, sum);
        else
            row_uniform(type, outputs, begin, end, rows, d, terms, sum);
    }
}

/* A copy of the loops for K = 1, where the loop over outputs goes away. */
INLINE void gradient_of(enum value_type type, size_t outputs, const int16_t *exponent,
                        const struct batch *batch, const double *derivatives, int64_t *terms,
                        int64_t *sum) {
    if (outputs == 1)
        typed_gradient(type, 1, exponent, batch, derivatives, terms, sum);
    else
        typed_gradient(type, outputs, exponent, batch, derivatives, terms, sum);
}

void sparse_gradient(const struct objective_shape *shape, const struct objective_scale *scale,
                     const struct batch *batch, double *derivatives, int64_t *sum,
                     struct objective_scratch *scratch) {
    size_t outputs = shape->outputs;
    if (!scale->exponent) {
        double power = fixed_power(scale->uniform);
        for (size_t i = 0; i < batch->count * outputs; i++)
            derivatives[i] *= power;
    }
    switch (batch->rows->type) {
    case VALUE_ONES:
        gradient_of(VALUE_ONES, outputs, scale->exponent, batch, derivatives, scratch->terms, sum);
        break;
    case VALUE_FLOAT:
        gradient_of(VALUE_FLOAT, outputs, scale->exponent, batch, derivatives, scratch->terms, sum);
        break;
    case VALUE_DOUBLE:
        gradient_of(VALUE_DOUBLE, outputs, scale->exponent, batch, derivatives, scratch->terms,
                    sum);
        break;
    }
}
