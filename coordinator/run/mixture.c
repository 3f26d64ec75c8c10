#include "coordinator/run/mixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Chunks that rows of the sample are taken from, evenly spread: rows often come in some order. */
#define SAMPLE_CHUNKS 64

void mixture_release(struct mixture *mixture) {
    kronecker_work_free(mixture->work);
    kronecker_free(mixture->kronecker);
    free(mixture->factors);
    free(mixture->start);
    free(mixture->model);
    *mixture = (struct mixture){0};
}

static int draw(struct kronecker_sample *sample, struct set *set) {
    const struct set_info *info = set_info(set);
    uint64_t chunks = info->chunks - info->holdout_chunks;
    uint64_t taken = chunks < SAMPLE_CHUNKS ? chunks : SAMPLE_CHUNKS;
    for (uint64_t i = 0; i < taken; i++) {
        struct rows rows;
        int code = set_chunk(set, (uint32_t)(i * chunks / taken), &rows);
        if (code)
            return code;
        kronecker_sample_add(sample, &rows, (uint32_t)(KRONECKER_ROWS / taken));
    }
    return 0;
}

int mixture_find(struct mixture *mixture, const struct objective_shape *shape, struct set *set,
                 const struct coordinate *columns, const double *start) {
    mixture_release(mixture);
    struct layout layout = objective_layout(shape);
    uint64_t n = layout_parameters(&layout);
    struct kronecker_sample *sample = kronecker_sample_new(shape, columns);
    int code = draw(sample, set);
    if (!code) {
        mixture->start = memory_new(n, sizeof *mixture->start);
        layout_start(&layout, 0, n, mixture->start);
        mixture->factors = kronecker_find(sample, mixture->start);
        mixture->count = kronecker_size(&layout);
        mixture->kronecker = kronecker_new(&layout, mixture->factors);
        mixture->work = kronecker_work_new(mixture->kronecker);
        if (start)
            memcpy(mixture->start, start, n * sizeof *start);
        kronecker_enter(mixture->kronecker, mixture->work, mixture->start);
    }
    kronecker_sample_free(sample);
    return code;
}

const double *mixture_take(struct mixture *mixture, uint64_t parameters, uint64_t first,
                           uint64_t count, const double *values) {
    if (!mixture->model)
        mixture->model = memory_new(parameters, sizeof *mixture->model);
    memcpy(mixture->model + first, values, count * sizeof *values);
    if (first + count < parameters)
        return NULL;
    kronecker_turn(mixture->kronecker, mixture->work, mixture->model);
    return mixture->model;
}
