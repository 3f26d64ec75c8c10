/* Second derivatives of canned rows. */
#ifndef DML_TESTS_CURVATURE_FIXTURE_H
#define DML_TESTS_CURVATURE_FIXTURE_H

#include <stdint.h>

#include "base/layout.h"
#include "base/memory.h"
#include "objective/second.h"
#include "tests/unit/canned.h"

/* Of the block of the first columns. */
static inline size_t block_elements(const struct objective_shape *shape, uint32_t columns) {
    const struct layout layout = objective_layout(shape);
    size_t n = layout_block(&layout, columns);
    return n * (n + 1) / 2;
}

static inline size_t triangle_elements(const struct objective_shape *shape) {
    return block_elements(shape, objective_columns(shape));
}

static inline int64_t *new_triangle(const struct objective_shape *shape) {
    return memory_new(triangle_elements(shape), sizeof(int64_t));
}

/* All rows, unless the test says otherwise. */
static inline struct objective_sample sample_of(const struct canned *canned) {
    return (struct objective_sample){.form = &second_sampled,
                                     .exponent = canned->exponent,
                                     .examples = CANNED_ROWS,
                                     .columns = objective_columns(&canned->shape),
                                     .derivative_exponent =
                                         objective_of(canned->shape.kind)->label_fits       ? 8
                                         : objective_of(canned->shape.kind)->shares_weights ? 4
                                                                                            : 1,
                                     .sampling = {.floor = 1}};
}

static inline struct objective_hessian curve(const struct canned *canned,
                                             const struct objective_sample *sample, uint32_t number,
                                             int64_t *triangle) {
    struct objective_hessian hessian;
    struct objective_scratch *scratch = objective_scratch_new(&canned->shape);
    const struct objective_need need = {.rows = rows_most_of(&canned->rows), .sample = sample};
    objective_prepare(&canned->shape, &need, scratch);
    memory_forbid();
    objective_curvature(&canned->shape, sample, &canned->rows, number, canned->parameters, triangle,
                        scratch, &hessian);
    memory_allow();
    objective_scratch_free(scratch);
    return hessian;
}

#endif
