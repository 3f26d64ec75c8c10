/* Models on disk: STATE/models/RUN/model.safetensors (weight, bias, feature ids) and model.json
 * (what it is, settings, data, figures). Format: see doc/FORMATS.md.
 */
#ifndef DML_MODEL_MODEL_H
#define DML_MODEL_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/layout.h"

/* The version of both files, raised when an older reader could not read a newer one. */
#define MODEL_FORMAT_VERSION 1

/* Features that a model has besides those of the run that wrote it: of an earlier model, and gone
 * from the data since. */
struct model_kept {
    uint64_t features;
    const uint64_t *feature_id; /* rising */
    const double *weight;       /* outputs × features, row-major */
    const char *const *names;   /* or NULL */
};

/* What a model is; enough to score data with it. `feature_id` and `feature_names` go by column as
 * the run numbers them; `original_order` lists the columns by rising original id. */
struct model_layout {
    const char *objective; /* its name: objective_find() has the row */
    uint32_t outputs;      /* K */
    bool intercept;
    uint64_t features;                /* F */
    const uint64_t *feature_id;       /* F original ids, all different */
    const uint32_t *original_order;   /* F columns, or NULL: they are in that order already */
    const char *const *feature_names; /* F, or NULL */
    uint32_t classes;                 /* 0 for targets */
    const char *const *class_names;   /* `classes`; the positive one of two is the second */
    const struct model_kept *kept;    /* for writing: these as well; NULL: none */
};

/* The run's vector: its tensors, and its elements. */
static inline struct layout model_tensors(const struct model_layout *layout) {
    return layout_linear(layout->features, layout->outputs, layout->intercept);
}
uint64_t model_parameters(const struct model_layout *layout);

/* ---- writing: slices in, files out, bounded memory ---- */

struct model_writer; /* opaque */

/* A third file that who trains may put beside the two. */
#define MODEL_CURVATURE "curvature"

/* Starts a model beside its final place: FOLDER.tmp.PID/model.safetensors, at its full size, so
 * that a full disk shows here. Makes the folders above. The layout must outlive the writer.
 * ERROR_CREATE, ERROR_PERMISSION or ERROR_IO, with nothing left behind. */
int model_writer_new(const char *folder, const struct model_layout *layout,
                     struct model_writer **writer);

/* Takes parameters [first, first+count) of the run's vector, each exactly once, in any order. −0
 * becomes +0. ERROR_INTERNAL for one that is not finite. */
int model_writer_slice(struct model_writer *writer, uint64_t first, uint64_t count,
                       const double *values);

/* The SHA-256 of the parameters as little-endian float64 in the order of original ids, class by
 * class, each class's intercept last. ERROR_INTERNAL unless all slices are in. */
int model_writer_hash(struct model_writer *writer, char text[SHA256_TEXT]);

/* The model as it stands before it is published, for scoring: a view without details, which needs
 * no closing and is valid as long as the writer is. ERROR_INTERNAL unless all slices are in. */
struct model;
int model_writer_view(struct model_writer *writer, struct model *view);

/* Writes model.json beside (`details`, an object or NULL, is merged into it; not consumed), fsyncs
 * and publishes both: the folder appears whole or not at all; one that is there is replaced. Frees
 * the writer, also on failure, and then nothing is left behind. */
int model_writer_publish(struct model_writer *writer, const json_t *details);

/* Where the files are until they are published. */
const char *model_writer_folder(const struct model_writer *writer);

/* Drops what was written; harmless on NULL. */
void model_writer_discard(struct model_writer *writer);

/* Points MODELS_FOLDER/current (a symbolic link, replaced by rename) at `name`. */
int model_set_current(const char *models_folder, const char *name);

/* ---- reading ---- */

struct model {
    struct model_layout layout; /* columns by rising original id: original_order is NULL */
    const double *weight;       /* K×F, row-major, mapped */
    const double *bias;         /* K, mapped, or NULL */
    json_t *details;            /* the whole of model.json; layout's strings belong to it */
    char *folder;               /* of its files; owned */
    char sha256[SHA256_TEXT];   /* of its parameters, as in model.json */
    const void *mapping;
    size_t mapping_bytes;
};

/* `path` is a model folder, a model.safetensors, or a state folder (its models/current). ERROR_DATA
 * for anything that is not a whole model of a version that is known here. */
int model_open(const char *path, struct model **model);
void model_close(struct model *model); /* harmless on NULL */

/* ---- a model as a starting point ---- */

/* Whether a run of this layout can start from the model: ERROR_DATA says what is in the way, as in
 * "its objective is …". Objective and intercept must be the same, of two classes both, and names
 * of features that both name. */
int model_fits(const struct model *model, const struct model_layout *layout);

/* For each parameter of a run of the layout `after` (numbered as in slices), which parameter of one
 * of the layout `before` it was, or MODEL_UNMATCHED. Release with memory_unmap(). */
#define MODEL_UNMATCHED UINT64_MAX
uint64_t *model_match(const struct model_layout *before, const struct model_layout *after);

/* The model's parameters as the run's vector, of model_parameters(); 0 for features and classes
 * that the model lacks. Features are matched by id, classes by name. */
void model_spread(const struct model *model, const struct model_layout *layout, double *parameters);

/* How many of the model's features the layout lacks, and in ranks[] (may be NULL) which. */
uint64_t model_vanished(const struct model *model, const struct model_layout *layout,
                        uint64_t *ranks);

/* Their weights for the layout's outputs: outputs × count, row-major. */
void model_vanished_weights(const struct model *model, const struct model_layout *layout,
                            const uint64_t *ranks, uint64_t count, double *weight);

#endif
