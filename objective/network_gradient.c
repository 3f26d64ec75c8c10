/* The gradient of a chunk of a network: rounded to fixed point, and scaled by Kronecker factors. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "numeric/fixed.h"
#include "numeric/vector.h"
#include "objective/kronecker.h"
#include "objective/network.h"

/* The elements of a tensor that have one base exponent: a row, or all of it. */
struct stretch {
    size_t at, count; /* elements of the chunk's gradient of this tensor */
    uint64_t element; /* of the whole vector, where it begins */
    double power;     /* 2^(base exponent) */
};

static struct stretch stretch_of(const struct network_scratch *scratch,
                                 const struct objective_scale *scale, uint32_t t, size_t row) {
    const struct layout_tensor *tensor = &scratch->layout.tensor[t];
    if (tensor->exponents == LAYOUT_ONE_EXPONENT)
        return (struct stretch){0, tensor->rows * tensor->columns, tensor->first,
                                scale_of(scale, tensor->first_exponent)};
    size_t column = scratch->dense ? row : scratch->column[row];
    return (struct stretch){row * tensor->columns, tensor->columns,
                            tensor->first + column * tensor->columns,
                            scale_of(scale, tensor->first_exponent + column)};
}

/* How many stretches a tensor has: one, or of W1 one a row. */
static size_t stretches_of(const struct network_scratch *scratch, uint32_t t) {
    bool one = scratch->layout.tensor[t].exponents == LAYOUT_ONE_EXPONENT;
    return one ? 1 : network_first_rows(scratch);
}

/* Elements of a tensor's gradient, if they are doubles; else NULL. */
static const double *as_doubles(const struct network_scratch *scratch, uint32_t t, size_t at) {
    if (scratch->kronecker_gradient)
        return scratch->kronecker_gradient + scratch->layout.tensor[t].first + at;
    return scratch->kernels == &network_double ? (const double *)scratch->gradient[t] + at : NULL;
}

static const float *as_floats(const struct network_scratch *scratch, uint32_t t, size_t at) {
    return (const float *)scratch->gradient[t] + at;
}

typedef int32_t size_lanes __attribute__((vector_size(32)));
enum { SIZES = sizeof(size_lanes) / sizeof(float) };

/* vector_max_abs() of floats: without their sign, they are ordered as the integers of their bits.
 */
VECTOR_CLONES
static double floats_max_abs(size_t n, const float *a) {
    size_lanes most = {0};
    size_t i = 0;
    for (; i < n; i += SIZES) {
        size_lanes bits = {0};
        if (i + SIZES <= n)
            memcpy(&bits, a + i, sizeof bits);
        else
            memcpy(&bits, a + i, (n - i) * sizeof *a);
        bits &= INT32_MAX;
        size_lanes larger = bits > most;
        most = (bits & larger) | (most & ~larger);
    }
    int32_t largest = 0;
    for (size_t k = 0; k < SIZES; k++)
        largest = most[k] > largest ? most[k] : largest;
    float size;
    memcpy(&size, &largest, sizeof size);
    return isfinite(size) ? (double)size : INFINITY;
}

double gradient_max_abs(size_t n, const double *gradient) {
    double largest = 0;
    for (size_t i = 0; i < n; i += BLOCK_ELEMENTS) {
        size_t left = n - i;
        double most = vector_max_abs(left < BLOCK_ELEMENTS ? left : BLOCK_ELEMENTS, gradient + i);
        largest = most > largest ? most : largest;
    }
    return largest;
}

struct maxima network_maxima(const struct network_scratch *scratch,
                             const struct objective_scale *scale) {
    struct maxima maxima = {.count = scratch->layout.count};
    double share = scale_of(scale, layout_exponents(&scratch->layout) - 1);
    for (uint32_t t = 0; t < maxima.count; t++) {
        for (size_t i = 0; i < stretches_of(scratch, t); i++) {
            struct stretch stretch = stretch_of(scratch, scale, t, i);
            const double *gradient = as_doubles(scratch, t, stretch.at);
            double most = gradient
                              ? gradient_max_abs(stretch.count, gradient)
                              : floats_max_abs(stretch.count, as_floats(scratch, t, stretch.at));
            most *= stretch.power;
            maxima.value[t] = most > maxima.value[t] ? most : maxima.value[t];
        }
        maxima.value[t] /= share;
    }
    return maxima;
}

VECTOR_CLONES
void gradient_add(size_t n, const double *gradient, double power, double inverse, int64_t *sum) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes scaled;
        memcpy(&scaled, gradient + i, sizeof scaled);
        scaled = scaled * power * inverse;
        fixed_add_half(sum + i, &scaled);
    }
    for (; i < n; i++)
        fixed_add(&sum[i], gradient[i] * power * inverse);
}

/* Adds a gradient of floats. */
VECTOR_CLONES
static void floats_add(size_t n, const float *gradient, double power, double inverse,
                       int64_t *sum) {
    size_t i = 0;
    for (; i + HALF <= n; i += HALF) {
        half_lanes scaled;
        load_values(VALUE_FLOAT, &scaled, gradient, i);
        scaled = scaled * power * inverse;
        fixed_add_half(sum + i, &scaled);
    }
    for (; i < n; i++)
        fixed_add(&sum[i], (double)gradient[i] * power * inverse);
}

void network_add(const struct network_scratch *scratch, const struct objective_scale *scale,
                 int64_t *sum) {
    for (uint32_t t = 0; t < scratch->layout.count; t++) {
        double inverse = fixed_power(-bounds_exponent(&scale->bounds, t));
        for (size_t s = 0; s < stretches_of(scratch, t); s++) {
            struct stretch stretch = stretch_of(scratch, scale, t, s);
            const double *gradient = as_doubles(scratch, t, stretch.at);
            if (gradient)
                gradient_add(stretch.count, gradient, stretch.power, inverse,
                             sum + stretch.element);
            else
                floats_add(stretch.count, as_floats(scratch, t, stretch.at), stretch.power, inverse,
                           sum + stretch.element);
        }
    }
}

/* ---- scaled by Kronecker factors ---- */

static void copy_tensor(const struct network_scratch *scratch, uint32_t t, size_t at, size_t n,
                        double *to) {
    const char *from = (const char *)scratch->gradient[t] + at * scratch->kernels->size;
    if (n)
        scratch->kernels->widen(n, from, to);
}

/* All tensors, as the layout has them; of sparse rows, columns without values have 0. */
static void gather(struct network_scratch *scratch, double *vector) {
    const struct layout *layout = &scratch->layout;
    size_t width = scratch->width[1], features = scratch->width[0];
    for (uint32_t t = scratch->dense ? 0 : 1; t < layout->count; t++)
        copy_tensor(scratch, t, 0, layout->tensor[t].rows * layout->tensor[t].columns,
                    vector + layout->tensor[t].first);
    if (scratch->dense)
        return;
    memset(vector, 0, features * width * sizeof *vector);
    for (size_t c = 0; c < scratch->columns; c++)
        copy_tensor(scratch, 0, c * width, width, vector + scratch->column[c] * width);
}

void network_kronecker_gradient(struct network_scratch *scratch,
                                const struct objective_change *change, double weight,
                                struct objective_result *result) {
    size_t n = layout_parameters(&scratch->layout);
    assert(scratch->kronecker_gradient && scratch->kronecker_work);
    gather(scratch, scratch->kronecker_gradient);
    /* By weights of columns as they are, to weights of shifted and scaled ones: base/layout.h. */
    size_t width = scratch->width[1];
    const double *bias =
        scratch->kronecker_gradient + scratch->layout.tensor[scratch->layers].first;
    for (size_t j = 0; j < scratch->width[0]; j++)
        for (size_t k = 0; k < width; k++)
            scratch->kronecker_gradient[j * width + k] =
                change->columns[j].scale *
                (scratch->kronecker_gradient[j * width + k] - change->columns[j].mean * bias[k]);
    for (size_t i = 0; i < n; i++)
        scratch->kronecker_gradient[i] += weight * change->pull[i];
    kronecker_apply(change->kronecker, scratch->kronecker_work, scratch->kronecker_gradient);
    result->loss += weight * change->penalty;
}
