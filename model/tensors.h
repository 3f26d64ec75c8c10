/* model.safetensors: its header, and where the tensors lie. Inside model/ only.
 *
 * Of a linear model the tensors are weight F64 [outputs, features], features by rising original id,
 * bias F64 [outputs] (absent without an intercept) and feature_id U64 [features]. Outputs that
 * share their weights have one row of them. Of a network they are W1 … WL F64 [in, out], b1 … bL
 * F64 [out], one after the other as its layout has them, and feature_id; W1's rows are features by
 * rising original id. Of a plug-in they are its own, each F64 [rows, columns], and feature_id. */
#ifndef DML_MODEL_TENSORS_H
#define DML_MODEL_TENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/layout.h"
#include "base/hash.h"
#include "base/process.h"

struct model_family;

struct tensors {
    uint32_t rows;   /* of weight */
    uint32_t biases; /* as many as rows, or 0; any number if outputs share one row */
    uint64_t features;
    struct layout vector; /* of the run's vector, if the file has it as it is; else no
                             tensors */
    bool matrices;        /* all tensors of `vector` are, whatever their names */
    bool weighs_words;    /* the file has `idf` */
    bool has_means;       /* the file has `mean` */
    /* Bytes from the start of the file; bias, idf and mean are 0 if there is none. The vector
     * begins at `weight`. */
    size_t weight, bias, feature_id, idf, mean;
    size_t bytes;                      /* of the whole file */
    const struct model_family *family; /* of a file that was parsed */
};

/* Lays out a file: reads `features` of *tensors, `weighs_words`, `has_means`, and `vector` or else
 * `rows` and `biases`, and sets the other members. Returns the first tensors->weight bytes of the
 * file: the header's length and the padded header. Free the result. */
char *tensors_plan(struct tensors *tensors, const char *objective);

/* One tensor as its header describes it. */
struct described {
    const char *type;
    uint64_t dimension[2];
    size_t dimensions;
    uint64_t begin, end; /* bytes from the end of the header */
};

bool tensors_described(const json_t *header, const char *name, struct described *tensor);

/* Whether a tensor of a network is a matrix: weights are, biases are vectors. */
bool tensors_is_matrix(const struct layout_tensor *tensor);

/* Checks a described tensor, whose elements have 8 bytes, and finds its place in the file of
 * `length` bytes, whose header ends at `data`. */
int tensors_place(const char *path, size_t data, size_t length, const char *name,
                  const struct described *tensor, const char *type, uint64_t elements, size_t *at);

/* Finds all tensors of the vector, which follow one another: sets `weight`, the place of the
 * first. */
int tensors_place_vector(const char *path, const json_t *header, size_t data, size_t length,
                         struct tensors *tensors);

/* Whether the member `format` and a version are those of a model that this program reads;
 * ERROR_DATA names both versions and says what to do. */
int tensors_check_version(const char *path, const json_t *members, long long version);

/* Reads and checks the header of a file in memory. ERROR_DATA names `path`. */
int tensors_parse(const char *path, const void *file, size_t length, struct tensors *tensors);

struct tensors_hashes {
    char parameters[SHA256_TEXT]; /* what names a model: see model_writer_hash() */
    char file[SHA256_TEXT];       /* of the whole file */
};

/* Finds both hashes of a file of `length` bytes; `share` does so side by side, unless NULL. */
void tensors_hash(const struct tensors *tensors, const void *file, size_t length,
                  parts_function *share, struct tensors_hashes *hashes);

/* Whether every parameter is finite. */
bool tensors_finite(const struct tensors *tensors, const void *file);

#endif
