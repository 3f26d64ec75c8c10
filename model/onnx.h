/* A model as a graph of ONNX, in double. See doc/FORMATS.md. Inside model/ only. */
#ifndef DML_MODEL_ONNX_H
#define DML_MODEL_ONNX_H

#include <stdio.h>

#include "model/model.h"

/* Whether a graph can say what the model does: ERROR_DATA says why not. */
int onnx_check(const struct model *model);

/* Writes a model that onnx_check() accepted. ERROR_DATA if it is too large; then nothing was
 * written. The caller finds errors of writing with ferror(). */
int onnx_export(const struct model *model, FILE *file);

#endif
