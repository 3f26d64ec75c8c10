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

/* Writes the line of an example with these margins. */
void lines_write(struct lines *lines, const double *margins);

/* Writes the line of an example that could not be read. */
void lines_write_bad(const struct lines *lines);

#endif
