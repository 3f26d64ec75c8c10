/* Predictions as a table that can be joined with others: its columns are cells of the data, such as
 * identifiers, and what the model answers. Inside model/, but for the first three functions. */
#ifndef DML_MODEL_OUTPUT_COLUMNS_H
#define DML_MODEL_OUTPUT_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

#include "model/model.h"
#include "model/score.h"

struct output_columns; /* opaque */

/* Reads a list of names with commas between them; a name with a comma is quoted as in CSV.
 *
 *   label               the predicted class, or the list of classes
 *   probability         of the positive one of two classes; of more, of the predicted class
 *   probability:CLASS   of that class; `probabilities` is one for each class
 *   margin              of a model with one; margin:CLASS of one output, `margins` of each
 *   value               what a model of numbers predicts
 *   column:NAME, NAME   a column of the data, in the first form also where its name is one of these
 *
 * ERROR_USAGE for what the model does not have. The columns refer to the layout. */
int output_columns_parse(const struct model_layout *layout, const char *list,
                         struct output_columns **columns);
void output_columns_free(struct output_columns *columns); /* harmless on NULL */

/* The columns of the data, NULL-terminated: for source_options.carried; NULL if there are none. */
const char *const *output_columns_carried(const struct output_columns *columns);

/* What is known of an example. */
struct output_answer {
    const double *margins;       /* of each output */
    const double *prediction;    /* response_predict() */
    size_t class;                /* that is predicted, unless examples have lists */
    const bool *predicted;       /* of lists: each class */
    const char *const *cells;    /* of the columns of the data; NULL: there are none */
    const double *contributions; /* outputs × columns, if the output has an explainer */
};

void output_columns_write_header(const struct output_columns *columns,
                                 const struct score_output *output);

/* Writes a line of CSV, or an object. */
void output_columns_write(const struct output_columns *columns, const struct score_output *output,
                          const struct output_answer *answer);

/* Writes the row of an example without a prediction: its cells alone, which are NULL if its line
 * could not be read. In that case JSON has null. */
void output_columns_write_bad(const struct output_columns *columns,
                              const struct score_output *output, const char *const *cells);

#endif
