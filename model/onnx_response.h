/* From margins to what a model answers, as a graph. Inside model/ only. */
#ifndef DML_MODEL_ONNX_RESPONSE_H
#define DML_MODEL_ONNX_RESPONSE_H

#include "model/model.h"
#include "model/onnx_file.h"

/* Adds the outputs for `margins`, a matrix of a column an output of the model: ONNX_MARGINS; of
 * numbers ONNX_VALUE, a vector; of classes ONNX_LABEL, a vector of texts, or where a row can have
 * several ONNX_LABELS, a matrix of bools; and ONNX_PROBABILITIES where the model has such. They are
 * what `predict` says: with the correction for class weights, calibrated, labels by thresholds. */
void onnx_add_response(struct onnx_graph *graph, const struct model_layout *layout,
                       const char *margins);

#endif
