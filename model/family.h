/* How models of a family (objective/family.h) are stored and read, and when a run starts from one.
 * The rows are in model/families.c. Inside model/ and library/ only. */
#ifndef DML_MODEL_FAMILY_H
#define DML_MODEL_FAMILY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "objective/family.h"

struct tensors;
struct onnx_graph;

struct model_family {
    const struct family *family;

    bool stores_vector; /* a file has the run's vector as it is, but for the order of features; else
                           weights output by output */

    /* ---- the layout ---- */

    uint32_t (*rows)(const struct model_layout *layout);         /* model_rows() */
    struct layout (*tensors)(const struct model_layout *layout); /* model_tensors() */

    /* Bit t: the rows of tensor t are features. NULL: those of the first tensor are. */
    uint32_t (*by_feature)(const struct model_layout *layout);

    /* ---- model.safetensors ---- */

    /* Finds the tensors in a file of `length` bytes, whose header ends at `data`, and sets
     * *tensors but for the place of feature_id. ERROR_DATA names `path`. */
    int (*place)(const char *path, const json_t *header, size_t data, size_t length,
                 struct tensors *tensors);

    /* Takes from the mapped file what the tensors say of a model. */
    void (*take)(const uint8_t *file, const struct tensors *tensors, struct model *model);

    /* ---- model.json: what the tensors do not say ---- */

    void (*describe)(const struct model_layout *layout, json_t *all); /* NULL: nothing */

    /* The number of outputs, for so many classes; NULL: the tensors say it. */
    uint32_t (*outputs)(const struct objective *objective, uint32_t classes);

    /* ERROR_DATA names `path`. */
    int (*read)(const char *path, struct model *model);

    /* ---- ONNX ---- */

    /* Adds to a graph what leads from the sums of the first tensor, without biases, to the margins:
     * model/onnx_margins.h. NULL: no graph can say it. */
    const char *(*graph_margins)(struct onnx_graph *graph, const struct model *model,
                                 const char *sums);

    /* ---- starting from a model ---- */

    /* Its part of model_fits(); the objective is the same, so that both are plug-ins or none is. */
    int (*fits)(const struct model_layout *old, const struct model_layout *layout);
};

const struct model_family *model_family(const struct model_layout *layout);
const struct model_family *model_family_of_header(const json_t *header);

uint32_t model_by_feature(const struct model_layout *layout);

/* Precision included, which is the one that it was trained in. */
struct objective_shape model_shape(const struct model_layout *layout);

#endif
