/* Writes models for other programs: LIBLINEAR's model file, a table, JSON, ONNX. See
 * doc/FORMATS.md. */
#ifndef DML_MODEL_EXPORT_H
#define DML_MODEL_EXPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/model.h"

/* LIBLINEAR's file has a line for each index up to the largest. A model whose file would be larger
 * than this is refused. */
#define EXPORT_LIBLINEAR_BYTES_MAX (UINT64_C(1) << 30)

enum export_format { EXPORT_LIBLINEAR, EXPORT_TSV, EXPORT_JSON, EXPORT_ONNX };

/* The formats' names in the order of the enum, NULL-terminated. */
extern const char *const export_format_names[];

/* Whether the model can be written in this format, and its heaviest weights be listed: ERROR_DATA
 * says why not, as of networks. Logs what the file will lack:
 * probabilities, labels that are not integers, or what is made of the margins (model/response.h).
 */
int export_check(const struct model *model, enum export_format format);

/* Writes a model that export_check() accepted; numbers have 17 significant digits. `deviation` has
 * the standard deviation of each of the model's features, NaN where it is not known, or is NULL.
 * The caller finds errors of writing with ferror(). */
int export_write(const struct model *model, enum export_format format, const double *deviation,
                 FILE *file);

/* Writes for people the `count` ≥ 1 weights of each output that are largest without their sign,
 * with the names of their features, and the intercept; with deviations, beside each what a
 * deviation of its feature adds. */
void export_write_top(const struct model *model, size_t count, const double *deviation, FILE *file);

/* The largest weights as JSON, for at most so many outputs: [{class, intercept, weights: [{feature,
 * weight, deviation}], by_deviation: [{feature, weight, deviation}]}]. `class` is the one that
 * positive weights speak for, null for numbers; `intercept` is null without one; `by_deviation` has
 * the weights that are largest times the deviation of their feature. Without deviations there is
 * none of these. A new reference; NULL for networks. */
json_t *export_top_json(const struct model *model, size_t count, uint32_t outputs_most,
                        const double *deviation);

#endif
