/* Models on disk: STATE/models/RUN/model.safetensors (parameters and feature ids) and model.json
 * (what it is, settings, data, figures). Format: see doc/FORMATS.md.
 *
 * model/ writes and reads models, and scores rows with them. It may touch rows of files, packs and
 * samples (data/), objectives and plug-ins, and knows no runs. */
#ifndef DML_MODEL_MODEL_H
#define DML_MODEL_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/column_order.h"
#include "base/layout.h"
#include "base/process.h"
#include "data/source/source.h"
#include "data/table/table.h"
#include "objective/shape.h"

/* The version of both files. It is raised when an older reader would read a newer model wrongly; a
 * model that needs nothing new is then still written as the older version. Models of older versions
 * are read for ever. */
#define MODEL_FORMAT_VERSION 1
#define MODEL_FORMAT "dml" /* the member `format` of both files */

/* Features of an earlier model that the data no longer has. A new model keeps them, besides the
 * features of the run that wrote it. */
struct model_kept {
    uint64_t features;
    const uint64_t *feature_id; /* rising */
    const double *weight;       /* model_rows() × features, row-major: of a network those of each
                                   unit of the first layer */
    const char *const *names;   /* or NULL */
};

/* The library that a plug-in's model was trained with, and is scored with. The texts must outlive
 * it. */
struct model_plugin {
    const char *name; /* that it has given itself */
    struct objective_plugin own;
};

/* What a model is; enough to score data with it. `feature_id` and `feature_names` are indexed by
 * column, as the run numbers the columns; `original_order` lists the columns by rising original
 * id. */
struct model_layout {
    const char *objective; /* its name, for objective_find() */
    struct loss_parameters loss;
    uint32_t outputs;       /* K */
    bool shared;            /* all outputs have the same weights: a model of ordered classes */
    bool intercept;         /* a network always has biases */
    struct network network; /* zeroed: a linear model. The seed means nothing here */
    const struct model_plugin *plugin;  /* or NULL */
    uint64_t features;                  /* F */
    const uint64_t *feature_id;         /* F original ids, all different */
    struct column_order original_order; /* F columns; none: they are in that order already */
    const char *const *feature_names;   /* F, or NULL */
    uint32_t classes;                   /* 0 for targets */
    const char *const *class_names;     /* `classes`; of two, the second is the positive one */
    char separator;                     /* a row has a list of classes; this parts them; else 0 */
    const struct model_kept *kept;      /* for writing: features to keep besides, or NULL */
    const struct response *response; /* what is made of the margins (model/response.h), or NULL */
    const double *idf;  /* F: what a word weighs, 0 of other features; NULL: the table has no words
                           that are weighed (data/table/table.h) */
    bool keeps_means;   /* for writing: model_writer_means() will give the means of the features */
    const double *mean; /* F: of a model that was read, the mean of each feature over the training
                           rows; NULL: the model does not have them */
    bool needs[ROW_PROPERTIES]; /* of offsets and exposures: each row has one. They are a column of
                                   the table, or else in a file beside the data */
    const struct table *table;  /* how tables are prepared (model.json: `preparation`), or NULL:
                                   not from tables */
};

/* The weights of a feature. */
uint32_t model_rows(const struct model_layout *layout);

/* The run's parameter vector: its tensors, and how many elements it has. */
struct layout model_tensors(const struct model_layout *layout);
uint64_t model_parameters(const struct model_layout *layout);

/* What model.json says of hidden layers: {layers, activation, precision}; null without any. A new
 * reference. */
json_t *model_network_json(const struct network *network);

/* ---- writing: slices in, files out, bounded memory ---- */

struct model_writer; /* opaque */
struct model;

/* The name of a third file, which training may put beside the two. */
#define MODEL_CURVATURE "curvature"

/* Starts a model beside its final place, in FOLDER.tmp.PID. Gives model.safetensors its full size
 * at once, so that a full disk is an error here and not later. Makes the folders above. The layout
 * must outlive the writer. ERROR_CREATE, ERROR_PERMISSION or ERROR_IO; then nothing is left. */
int model_writer_new(const char *folder, const struct model_layout *layout,
                     struct model_writer **writer);

/* Takes parameters [first, first+count) of the run's vector, each exactly once, in any order. −0
 * becomes +0. ERROR_INTERNAL for one that is not finite. */
int model_writer_slice(struct model_writer *writer, uint64_t first, uint64_t count,
                       const double *values);

/* Puts all parameters in place of those that came, before the model is hashed or finished. */
int model_writer_replace(struct model_writer *writer, const double *values);

/* Takes the means of the run's columns over the training rows, F in all, before the model is
 * hashed: of a layout that keeps them. Kept features have 0, as the rows lack them. */
void model_writer_means(struct model_writer *writer, const double *means);

/* The SHA-256 of the parameters as little-endian float64 in the order of original ids, class by
 * class, each class's intercept last; of weights that outputs share, all intercepts last; of a
 * network as its layout has them: W1, whose rows are in the order of original ids, …, WL, b1, …,
 * bL. ERROR_INTERNAL unless all slices are in. */
int model_writer_hash(struct model_writer *writer, char text[SHA256_TEXT]);

/* Shows the model before it is published, so that it can be scored. The view has no details, must
 * not be closed, and is valid as long as the writer is. ERROR_INTERNAL unless all slices are in. */
int model_writer_view(struct model_writer *writer, struct model *view);

/* Writes model.json beside the tensors and fsyncs both: model_writer_folder() is a model then.
 * `details`, an object or NULL, is merged into model.json and stays the caller's. */
int model_writer_finish(struct model_writer *writer, const json_t *details);

/* Publishes it, after that if it was not done yet: the folder appears whole or not at all, and
 * replaces a folder of that name. Frees the writer in any case; a failure leaves nothing behind. */
int model_writer_publish(struct model_writer *writer, const json_t *details);

/* The folder that holds the files until they are published. */
const char *model_writer_folder(const struct model_writer *writer);

/* Puts a model that was finished, and shall not be published, at `folder`, in place of one that was
 * put there before. Frees the writer in any case. */
int model_writer_set_aside(struct model_writer *writer, const char *folder);

/* Removes what was written and frees the writer; harmless on NULL. */
void model_writer_discard(struct model_writer *writer);

/* Writes a copy of a model that was read, with other details: members of `changes` replace those of
 * model.json, and a null removes one. The parameters, the curvature and the summary are the same,
 * to the byte. Published as model_writer_publish() does; a failure leaves nothing behind. */
int model_copy(const struct model *model, const char *folder, const json_t *changes);

/* Points `current` in `models_folder` (a symbolic link, replaced by rename) at `name`. */
int model_set_current(const char *models_folder, const char *name);

/* ---- reading ---- */

struct model {
    struct model_layout layout;  /* columns by rising original id: original_order is none */
    const double *weight;        /* linear: model_rows()×F, row-major, mapped; else NULL */
    const double *bias;          /* linear: K, mapped, or NULL */
    const double *vector;        /* model_parameters() as model_tensors() has them, mapped; linear:
                                    NULL */
    json_t *details;             /* the whole of model.json; owns the layout's strings */
    char *folder;                /* that its files are in; owned */
    struct table *table;         /* the layout's; owned */
    struct response *response;   /* the layout's, or NULL; owned */
    struct model_plugin library; /* the layout's, if it has one */
    char *program;               /* that is asked for it; owned */
    char sha256[SHA256_TEXT];    /* of its parameters, as in model.json */
    const void *mapping;
    size_t mapping_bytes;
};

/* Opens the model at `path`: a model folder, a model.safetensors, or a state folder, which stands
 * for its models/current. ERROR_DATA unless it is a whole model of a version that this program
 * knows. */
int model_open(const char *path, struct model **model);
/* Opens a model as model_open() does; `share` is threads_share(), or NULL where no thread may be
 * started. */
int model_open_by(const char *path, parts_function *share, struct model **model);
void model_close(struct model *model); /* harmless on NULL */

/* The library of a plug-in's model is found there, not where it was in training. The text must
 * outlive the model. ERROR_USAGE if the model is none of a plug-in. */
int model_set_library(struct model *model, const char *library);

/* The parameter that is an element of the vector that the model was trained as: model_tensors() of
 * its layout. */
double model_parameter(const struct model *model, const struct layout *vector, uint64_t element);

/* ---- a model as a starting point ---- */

/* Whether a run of this layout can start from the model: ERROR_DATA says why not, as in "its
 * objective is …". These must be the same in both: the objective; whether there is an intercept;
 * the hidden layers and their activation; both classes where there are two; all classes, if they
 * are ordered; the names of features that both sides name; how texts become ids. */
int model_fits(const struct model *model, const struct model_layout *layout);

/* For each parameter of a run of the layout `after`: the number of the same parameter in a run of
 * the layout `before`, or MODEL_UNMATCHED. Parameters are numbered as in slices. Release the
 * result, of model_parameters(after) elements, with memory_unmap(). */
#define MODEL_UNMATCHED UINT64_MAX
uint64_t *model_match(const struct model_layout *before, const struct model_layout *after);

/* Writes the model's parameters into the run's vector of model_parameters() elements; 0 for
 * features and classes that the model lacks: in a network what leads from a feature to the first
 * layer, and what leads from the last one to a class. Features are matched by id, classes by name.
 */
void model_spread(const struct model *model, const struct model_layout *layout, double *parameters);

/* Counts the model's features that the layout lacks. Writes their places in the model to ranks[]
 * unless it is NULL. */
uint64_t model_vanished(const struct model *model, const struct model_layout *layout,
                        uint64_t *ranks);

/* Writes the weights of these features for the layout's outputs: model_rows() × count, row-major.
 */
void model_vanished_weights(const struct model *model, const struct model_layout *layout,
                            const uint64_t *ranks, uint64_t count, double *weight);

#endif
