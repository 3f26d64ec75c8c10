/* model.safetensors: its header, and where the tensors lie. Inside model/ only.
 *
 * Of a linear model the tensors are weight F64 [outputs, features], features by rising original id,
 * bias F64 [outputs] (absent without an intercept) and feature_id U64 [features]. Outputs that
 * share their weights have one row of them. Of a network they are W1 … WL F64 [in, out], b1 … bL
 * F64 [out], one behind the other as its layout has them, and feature_id; W1's rows are features by
 * rising original id. Of a plug-in they are its own, each F64 [rows, columns], and feature_id. */
#ifndef DML_MODEL_TENSORS_H
#define DML_MODEL_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/hash.h"

struct tensors {
    uint32_t rows;   /* of weight */
    uint32_t biases; /* as many; or 0; or any number, if there is one row */
    uint64_t features;
    struct layout network;           /* of a network's parameters, or a plug-in's; of a linear model
                                        no tensors */
    bool matrices;                   /* a plug-in's: all of them are matrices */
    size_t weight, bias, feature_id; /* bytes from the start of the file; bias 0 if there is none;
                                        a network's parameters begin at `weight` */
    size_t bytes;                    /* of the whole file */
};

/* Lays out a file: reads `features` of *tensors, and `network` or else `rows` and `biases`, and
 * sets the other members. Returns the first tensors->weight bytes of the file: the header's length
 * and the padded header. Free the result. */
char *tensors_plan(struct tensors *tensors, const char *objective);

/* Reads and checks the header of a file in memory. ERROR_DATA names `path`. */
int tensors_parse(const char *path, const void *file, size_t length, struct tensors *tensors);

/* The hash that names a model: see model_writer_hash(). */
void tensors_hash(const struct tensors *tensors, const void *file, char text[SHA256_TEXT]);

/* Whether every parameter is finite. */
bool tensors_finite(const struct tensors *tensors, const void *file);

#endif
