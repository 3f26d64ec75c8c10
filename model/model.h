/* Models on disk: STATE/models/RUN/model.safetensors (weight, bias, feature ids) and model.json
 * (what it is, settings, data, figures). Format: see doc/FORMATS.md.
 *
 * weight is outputs×features, row-major, features by rising original id; bias has `outputs`
 * elements (absent without an intercept); feature_id is u64. */
#ifndef DML_MODEL_MODEL_H
#define DML_MODEL_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* What a model is; enough to score data with it. Strings and arrays as noted. */
struct model_layout {
    const char *objective; /* "logistic", "squared", "softmax" */
    uint32_t outputs;      /* K; 1 unless softmax */
    bool intercept;
    uint64_t features;                  /* F */
    const uint64_t *feature_id;         /* F original ids, by column as the run numbers them */
    const uint32_t *original_order;     /* F columns by rising original id */
    const char *const *feature_names;   /* by column, or NULL */
    uint32_t classes;                   /* 0 for targets */
    const char *const *class_names;     /* `classes` */
};

/* ---- writing: slices in, files out, bounded memory ---- */

struct model_writer; /* opaque */

/* Starts FOLDER/model.safetensors; makes the folder. The layout must outlive the writer. */
int model_writer_new(const char *folder, const struct model_layout *layout,
                     struct model_writer **writer);

/* Takes parameters [first, first+count) of the run's vector (parameter j·K + k: column j, output k;
 * the intercept's last), each exactly once, in any order. −0 becomes +0. */
int model_writer_slice(struct model_writer *writer, uint64_t first, uint64_t count,
                       const double *values);

/* The SHA-256 of the parameters as little-endian float64 in the order of original ids, class by
 * class, each class's intercept last. Call when all slices are in. */
int model_writer_hash(struct model_writer *writer, char text[SHA256_TEXT]);

/* Writes model.json beside (`details` is merged into it; not consumed), fsyncs and publishes both:
 * the folder appears whole or not at all. Frees the writer, also on failure. */
int model_writer_publish(struct model_writer *writer, const json_t *details);
void model_writer_discard(struct model_writer *writer);

/* Points FOLDER/current (a symbolic link, replaced by rename) at `name`. */
int model_set_current(const char *models_folder, const char *name);

/* ---- reading ---- */

struct model {
    struct model_layout layout; /* original order: original_order is the identity; owned */
    const double *weight;       /* K×F, mapped */
    const double *bias;         /* K, or NULL */
    json_t *details;            /* the whole of model.json */
    void *owned;                /* opaque */
};

/* `path` is a model folder, a model.safetensors, or a state folder (its models/current). */
int model_open(const char *path, struct model **model);
void model_close(struct model *model);

#endif
