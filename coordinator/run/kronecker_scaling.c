#include "coordinator/run/kronecker_scaling.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Chunks that rows of the sample are taken from, evenly spread: rows often come in some order. */
#define SAMPLE_CHUNKS 64

void kronecker_scaling_release(struct kronecker_scaling *scaling) {
    kronecker_work_free(scaling->work);
    kronecker_free(scaling->kronecker);
    free(scaling->factors);
    free(scaling->start);
    free(scaling->model);
    *scaling = (struct kronecker_scaling){0};
}

int kronecker_scaling_find(struct kronecker_scaling *scaling, const struct objective_shape *shape,
                           struct set *set, const struct column_scaling *columns,
                           const double *start) {
    kronecker_scaling_release(scaling);
    struct layout layout = objective_layout(shape);
    uint64_t n = layout_parameters(&layout);
    struct kronecker_sample *sample = kronecker_sample_new(shape, columns);
    const uint32_t chunks = set_training_chunks(set_info(set));
    const uint64_t taken = chunks < SAMPLE_CHUNKS ? chunks : SAMPLE_CHUNKS;
    int code = 0;
    assert(taken > 0);
    for (uint64_t i = 0; i < taken && !code; i++) {
        struct rows rows;
        code = set_chunk(set, (uint32_t)(i * chunks / taken), &rows);
        if (!code)
            kronecker_sample_add(sample, &rows, (uint32_t)(KRONECKER_ROWS / taken));
    }
    if (!code) {
        scaling->start = memory_new(n, sizeof *scaling->start);
        layout_start(&layout, 0, n, scaling->start);
        scaling->factors = kronecker_find(sample, scaling->start);
        scaling->count = kronecker_size(&layout);
        scaling->kronecker = kronecker_new(&layout, scaling->factors);
        scaling->work = kronecker_work_new(scaling->kronecker);
        if (start)
            memcpy(scaling->start, start, n * sizeof *start);
        kronecker_apply_inverse(scaling->kronecker, scaling->work, scaling->start);
    }
    kronecker_sample_free(sample);
    return code;
}

const double *kronecker_scaling_take(struct kronecker_scaling *scaling, uint64_t parameters,
                                     uint64_t first, uint64_t count, const double *values) {
    assert(scaling->kronecker && first <= parameters && count <= parameters - first);
    if (!scaling->model)
        scaling->model = memory_new(parameters, sizeof *scaling->model);
    memcpy(scaling->model + first, values, count * sizeof *values);
    if (first + count < parameters)
        return NULL;
    kronecker_apply(scaling->kronecker, scaling->work, scaling->model);
    return scaling->model;
}
