#include "shard/factor.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "numeric/dense.h"
#include "numeric/clones.h"
#include "numeric/fixed.h"
#include "shard/scaling.h"

/* ---- memory ---- */

static size_t roots_length(size_t order) {
    return (order + LANES - 1) / LANES * LANES;
}

double *factor_roots(const struct factor *factor) {
    return factor->elements + LANES;
}

double *factor_triangle(const struct factor *factor) {
    return factor_roots(factor) + roots_length(factor->order);
}

size_t factor_bytes(size_t order) {
    return (LANES + roots_length(order) + triangle_row(order)) * sizeof(double);
}

struct factor *factor_new(uint64_t serial, size_t order) {
    struct factor *factor = memory_new(1, sizeof *factor);
    *factor = (struct factor){.serial = serial, .order = order, .holders = 1};
    factor->elements = memory_map(factor_bytes(order));
    return factor;
}

struct factor *factor_hold(struct factor *factor) {
    if (factor)
        factor->holders++;
    return factor;
}

void factor_drop(struct factor *factor) {
    assert(!factor || factor->holders);
    if (!factor || --factor->holders)
        return;
    memory_unmap(factor->elements, factor_bytes(factor->order));
    free(factor->hidden);
    free(factor);
}

/* ---- applying ---- */

void factor_apply(const struct factor *factor, double *out, const double *in) {
    assert(factor && factor->holders);
    const double *roots = factor_roots(factor);
    for (size_t r = 0; r < factor->order; r++)
        out[r] = in[r] / roots[r];
    cholesky_solve(factor->order, factor_triangle(factor), out);
    for (size_t r = 0; r < factor->order; r++)
        out[r] /= roots[r];
}

double factor_curvature(const struct factor_terms *terms, const struct scaling *scaling,
                        size_t element) {
    bool weight = scaling->first + element < scaling->weights;
    return terms->beta + (weight ? terms->gamma * scaling->penalty[element] : 0);
}

/* To every `stride`-th element. */
static void apply_to_output(const struct factor *factor, size_t stride, double *out,
                            const double *in) {
    double element[PRECONDITION_PARAMETERS_MAX];
    for (size_t r = 0; r < factor->order; r++)
        element[r] = in[r * stride];
    factor_apply(factor, element, element);
    for (size_t r = 0; r < factor->order; r++)
        out[r * stride] = element[r];
}

void factor_apply_leading(const struct factor *factor, const struct scaling *scaling, double *out,
                          const double *in) {
    assert(scaling->used);
    const struct factor_terms terms = {.beta = factor->elements[0], .gamma = factor->elements[1]};
    size_t outputs = (size_t)scaling->outputs, block = factor->order * outputs;
    assert(block <= scaling->count);
    for (size_t k = 0; k < outputs && block; k++)
        apply_to_output(factor, outputs, out + k, in + k);
    for (size_t i = block; i < scaling->count; i++)
        out[i] = in[i] / factor_curvature(&terms, scaling, i);
}
