#include "shard/covariance.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/dense.h"

size_t covariance_triangle_bytes(size_t order) {
    return triangle_row(order) * sizeof(double);
}

void covariance_free(struct covariance *covariance) {
    if (!covariance)
        return;
    free(covariance->element);
    free(covariance->root);
    free(covariance->by);
    free(covariance->aliased);
    memory_unmap(covariance->triangle, covariance_triangle_bytes(covariance->order));
    free(covariance);
}

struct covariance *covariance_new(const struct layout *layout, size_t order) {
    struct covariance *covariance = memory_new(1, sizeof *covariance);
    covariance->order = order;
    covariance->element = memory_new(order, sizeof *covariance->element);
    covariance->root = memory_new(order, sizeof *covariance->root);
    covariance->by = memory_new(order, sizeof *covariance->by);
    covariance->aliased = memory_new(order, sizeof *covariance->aliased);
    covariance->triangle = memory_map(covariance_triangle_bytes(order));
    /* Biases are what follows the weights of columns. */
    uint64_t outputs = layout->tensor[0].columns, weights = layout->tensor[0].rows * outputs;
    size_t row = 0;
    for (uint64_t i = covariance->order; i-- > weights;)
        covariance->element[row++] = (uint32_t)i;
    for (uint64_t column = 0; column < weights; column += outputs)
        for (uint64_t k = outputs; k-- > 0;)
            covariance->element[row++] = (uint32_t)(column + k);
    assert(row == covariance->order);
    return covariance;
}
