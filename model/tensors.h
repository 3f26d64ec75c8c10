/* model.safetensors: its header, and where the tensors lie. Inside model/ only.
 *
 * The tensors are weight F64 [outputs, features], features by rising original id, bias F64
 * [outputs] (absent without an intercept) and feature_id U64 [features]. Outputs that share their
 * weights have one row of them. */
#ifndef DML_MODEL_TENSORS_H
#define DML_MODEL_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

struct tensors {
    uint32_t rows;   /* of weight */
    uint32_t biases; /* as many; or 0; or any number, if there is one row */
    uint64_t features;
    size_t weight, bias, feature_id; /* bytes from the start of the file; bias 0 if there is none */
    size_t bytes;                    /* of the whole file */
};

/* Lays out a file: reads `rows`, `biases` and `features` of *tensors and sets the other
 * members. Returns the first tensors->weight bytes of the file: the header's length and the padded
 * header. Free the result. */
char *tensors_plan(struct tensors *tensors, const char *objective);

/* Reads and checks the header of a file in memory. ERROR_DATA names `path`. */
int tensors_parse(const char *path, const void *file, size_t length, struct tensors *tensors);

/* The hash that names a model: see model_writer_hash(). `bias` may be NULL. */
void tensors_hash(const struct tensors *tensors, const double *weight, const double *bias,
                  char text[SHA256_TEXT]);

#endif
