/* From the sums of what features bring to the margins, as a graph: functions of the rows of
 * model/families.c. Inside model/ only, but for what library/ has in their place. */
#ifndef DML_MODEL_ONNX_MARGINS_H
#define DML_MODEL_ONNX_MARGINS_H

#include "model/model.h"
#include "model/onnx_file.h"

/* `sums` are a matrix, and so are the margins: a column an output. */
const char *onnx_linear_margins(struct onnx_graph *graph, const struct model *model,
                                const char *sums);
const char *onnx_network_margins(struct onnx_graph *graph, const struct model *model,
                                 const char *sums);

#endif
