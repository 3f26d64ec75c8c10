/* The terms of rows: features of a model, by their ranks, and what multiplies their weights. Inside
 * model/ only. */
#ifndef DML_MODEL_TERMS_H
#define DML_MODEL_TERMS_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory has none. Release with terms_release(). */
struct terms {
    size_t count, room;
    uint32_t *feature;
    double *value;
};

void terms_add(struct terms *terms, uint64_t feature, double value);
void terms_append(struct terms *terms, const struct terms *others);
void terms_release(struct terms *terms);

#endif
