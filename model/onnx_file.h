/* A graph of ONNX, written piece by piece: the messages of onnx.proto3 that a model needs, in the
 * wire format of protocol buffers. Inside model/ only.
 *
 * Operators are those of opset 17 and of ai.onnx.ml 3, in double. A value is named by a text that
 * the graph owns. Tensors are row-major; a matrix of 0 columns stands for a vector of `rows`. */
#ifndef DML_MODEL_ONNX_FILE_H
#define DML_MODEL_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Protocol buffers have no message of 2 GiB; what stands around the parts of a graph is less than a
 * page. */
#define ONNX_BYTES_MAX ((UINT64_C(2) << 30) - 4096)

struct onnx_graph; /* opaque */

/* As TensorProto.DataType numbers them. */
enum onnx_type { ONNX_INT64 = 7, ONNX_STRING = 8, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };

struct onnx_graph *onnx_new(void);
void onnx_free(struct onnx_graph *graph); /* harmless on NULL */

/* The bytes so far: nobody adds a tensor that would lead beyond ONNX_BYTES_MAX. */
uint64_t onnx_bytes(const struct onnx_graph *graph);

/* What is given for each row: a vector, or with `columns` a matrix. Where another input or an
 * output has the name, it becomes "column NAME 2". */
const char *onnx_input(struct onnx_graph *graph, const char *name, enum onnx_type type,
                       uint64_t columns);

/* The names of what the model answers, and what that is: also a vector or a matrix. */
#define ONNX_LABEL "label"
#define ONNX_LABELS "labels"
#define ONNX_MARGINS "margins"
#define ONNX_PROBABILITIES "probabilities"
#define ONNX_VALUE "value"
void onnx_output(struct onnx_graph *graph, const char *name, const char *value, enum onnx_type type,
                 uint64_t columns);

/* Says something about the model. */
void onnx_describe(struct onnx_graph *graph, const char *key, const char *text);

/* ---- tensors ---- */

const char *onnx_doubles(struct onnx_graph *graph, const double *values, uint64_t rows,
                         uint64_t columns);
const char *onnx_double(struct onnx_graph *graph, double value);
const char *onnx_int64s(struct onnx_graph *graph, const int64_t *values, uint64_t rows);
const char *onnx_int64(struct onnx_graph *graph, int64_t value); /* a vector of one */
const char *onnx_strings(struct onnx_graph *graph, const char *const *texts, uint64_t rows);

/* ---- nodes ---- */

/* The result of an operator; of inputs that are NULL there are fewer. */
const char *onnx_node(struct onnx_graph *graph, const char *op, const char *a, const char *b,
                      const char *c);

/* Adds a node of one input, with an attribute that is a number: "axis" or "to". */
const char *onnx_node_with(struct onnx_graph *graph, const char *op, const char *a,
                           const char *attribute, int64_t value);

const char *onnx_cast(struct onnx_graph *graph, const char *value, enum onnx_type type);

/* Matrices beside each other. */
const char *onnx_concat(struct onnx_graph *graph, const char *const *values, uint32_t count);

/* A vector as a matrix of one column, and column `number` of a matrix as one. */
const char *onnx_as_column(struct onnx_graph *graph, const char *vector);
const char *onnx_column(struct onnx_graph *graph, const char *matrix, uint32_t number);

/* The number of each text of a vector in the list, and of any other text `otherwise`. */
const char *onnx_encode(struct onnx_graph *graph, const char *vector, const char *const *texts,
                        const int64_t *number, uint64_t count, int64_t otherwise);

/* Ends the graph and writes the file. The caller finds errors of writing with ferror(). */
void onnx_write(struct onnx_graph *graph, const char *version, FILE *file);

#endif
