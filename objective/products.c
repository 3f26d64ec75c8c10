/* The two halves of a pass over linear models: X·p and Xᵀ·d, and what else is kept by rows. */
#include <assert.h>

#include "objective/parts.h"

bool objective_has_products(const struct objective_shape *shape) {
    return family_of(shape)->compute->product && objective_of(shape->kind)->labels != LABEL_LISTS;
}

bool objective_has_strips(const struct objective_shape *shape) {
    const struct family *family = family_of(shape);
    return family->first_layer ? !shape->network.kronecker : objective_has_products(shape);
}

struct objective_shape objective_upper(const struct objective_shape *shape) {
    struct objective_shape upper = *shape;
    upper.features = 0;
    return upper;
}

struct objective_shape objective_strip(const struct objective_shape *shape, uint32_t columns,
                                       uint32_t number) {
    const struct family *family = family_of(shape);
    struct objective_shape strip =
        columns && family->first_layer ? family->first_layer(shape) : *shape;
    uint64_t first = (uint64_t)number * columns;
    if (!columns)
        return strip;
    assert(first < shape->features);
    bool last = first + columns >= shape->features;
    strip.features = last ? shape->features - first : columns;
    strip.intercept = strip.intercept && last;
    return strip;
}

void objective_derivatives(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct rows *rows, const struct upper_point *point, int64_t *sum,
                           struct objective_scratch *scratch, struct objective_result *result) {
    const struct upper_sums sums = {.derivatives = sum, .of_rows = true};
    assert(family_of(shape)->compute->upper && !scale->change);
    prepare_for(shape, rows, NULL, true, scratch);
    family_of(shape)->compute->upper(shape, scale, rows, point, &sums, scratch, result);
}

void objective_upper_gradient(const struct objective_shape *shape,
                              const struct objective_scale *scale, const struct rows *rows,
                              const struct upper_point *point, int64_t *sum,
                              struct objective_scratch *scratch, struct objective_result *result) {
    const struct upper_sums sums = {.gradient = sum};
    assert(family_of(shape)->compute->upper && !scale->change);
    prepare_for(shape, rows, NULL, true, scratch);
    family_of(shape)->compute->upper(shape, scale, rows, point, &sums, scratch, result);
}

void objective_upper_loss(const struct objective_shape *shape, const struct rows *rows,
                          const struct upper_point *point, struct objective_scratch *scratch,
                          struct objective_result *result) {
    const struct upper_sums sums = {0};
    assert(family_of(shape)->compute->upper);
    prepare_for(shape, rows, NULL, false, scratch);
    family_of(shape)->compute->upper(shape, NULL, rows, point, &sums, scratch, result);
}

void objective_product(const struct objective_shape *shape, const struct objective_scale *scale,
                       const struct rows *rows, const double *parameters, int64_t *sum,
                       struct objective_scratch *scratch, struct objective_result *result) {
    assert(objective_has_products(shape) && (scale || !rows->size));
    prepare_for(shape, rows, NULL, false, scratch);
    family_of(shape)->compute->product(shape, scale, rows, parameters, sum, scratch, result);
}

void objective_transpose(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *derivatives, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result) {
    assert(objective_has_products(shape) && !scale->change);
    prepare_for(shape, rows, NULL, true, scratch);
    family_of(shape)->compute->transpose(shape, scale, rows, derivatives, sum, scratch, result);
}

void objective_add_labels(const struct objective_shape *shape, const struct rows *rows,
                          int64_t *sum) {
    assert(objective_has_products(shape));
    for (size_t i = 0; i < rows->count; i++)
        add_bits(&sum[i * shape->outputs], rows->label[i]);
}

void objective_add_sizes(const struct objective_shape *shape, const struct rows *rows,
                         int64_t *sum) {
    assert(rows->size);
    for (size_t i = 0; i < rows->count; i++)
        add_bits(&sum[i * shape->outputs], rows->size[i]);
}

void objective_add_offsets(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum) {
    for (size_t i = 0; i < rows->count; i++)
        add_bits(&sum[i * shape->outputs], offset_at(rows, i));
}

void objective_add_weights(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum) {
    for (size_t i = 0; i < rows->count; i++)
        add_bits(&sum[i * shape->outputs], weight_at(rows, i));
}
