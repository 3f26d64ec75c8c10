/* What rows of a file bring to the first sums of a model, as a graph: the margins of a linear
 * model, or the sums of a network's first layer, without biases. Inside model/ only. */
#ifndef DML_MODEL_ONNX_SUMS_H
#define DML_MODEL_ONNX_SUMS_H

#include <stdint.h>

#include "model/model.h"
#include "model/onnx_file.h"

/* The weights that lead from a feature to these sums. */
struct first_weights {
    const struct model_layout *layout;
    const double *weight;
    uint32_t width;          /* of the sums */
    uint64_t feature_stride; /* between those of a feature and of the next, */
    uint64_t output_stride;  /* and between those of a sum and of the next */
};
struct first_weights first_weights_of(const struct model *model);

/* ERROR_DATA says what a graph cannot do: read dates, find words, hash texts, hold as many
 * combinations as a cross has, or be as large as the model. */
int onnx_check_rows(const struct model *model);

/* ERROR_DATA: the graph would become too large by so many numbers more. */
int onnx_check_room(const struct onnx_graph *graph, uint64_t doubles);

/* Adds inputs for rows, and what is made of them: *sums is a matrix of `width` columns. The inputs
 * of a model of a table are its columns by name, doubles where NaN is missing, or texts as the
 * table has them; of other models one matrix, `features`, whose columns are the features by rising
 * id. ERROR_DATA if the graph becomes too large. Warns of texts that it does not know. */
int onnx_add_sums(struct onnx_graph *graph, const struct first_weights *weights, const char **sums);

#endif
