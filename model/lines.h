/* One line an example: how predictions are written. Inside model/ only. */
#ifndef DML_MODEL_LINES_H
#define DML_MODEL_LINES_H

#include "model/score.h"

struct lines; /* opaque */

struct lines *lines_new(const struct model_layout *layout, FILE *file, enum score_format format);
void lines_free(struct lines *lines); /* harmless on NULL */

/* Writes the line of an example with these margins, which are overwritten. What goes wrong with
 * the file shows in ferror(). */
void lines_write(struct lines *lines, double *margins);

#endif
