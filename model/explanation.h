/* How contributions of columns are written (model/explain.h), behind the columns of a line of CSV
 * or the members of an object. Inside model/ only. */
#ifndef DML_MODEL_EXPLANATION_H
#define DML_MODEL_EXPLANATION_H

#include "model/model.h"
#include "model/score.h"

/* Adds the names of the columns to a line of CSV that has some. */
void explanation_write_header(const struct model_layout *layout, const struct score_output *output);

/* Adds the contributions to the margins of a row, as explainer_row() has them; NULL: the row has
 * none, and its cells are empty. */
void explanation_write(const struct model_layout *layout, const struct score_output *output,
                       const double *contributions);

#endif
