/* How predictions are written: one line an example. Inside model/ only. */
#ifndef DML_MODEL_OUTPUT_H
#define DML_MODEL_OUTPUT_H

#include "model/score.h"

struct lines; /* opaque */

/* `output` must suit the layout: score_check_output(). Both must outlive the lines. */
struct lines *lines_new(const struct model_layout *layout, const struct score_output *output);
void lines_free(struct lines *lines); /* harmless on NULL */

/* Writes the names of the columns, if the output has such a line. What goes wrong with the file
 * shows in ferror(), here and below. */
void lines_write_header(const struct lines *lines);

/* Writes the line of an example with these margins, and what columns contribute to them if the
 * output has an explainer. `cells` are those that go along with it: those
 * of output_columns_carried(). */
void lines_write(struct lines *lines, const double *margins, const double *contributions,
                 const char *const *cells);

/* Writes the line of an example that has no prediction; of one that could not be read `cells` is
 * NULL. */
void lines_write_bad(const struct lines *lines, const char *const *cells);

#endif
