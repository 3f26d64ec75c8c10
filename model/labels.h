/* Which class a label in a data file means. Inside model/ only.
 *
 * Labels and class names are compared as numbers if both are numbers ("1", "+1" and "1.0" are the
 * same), else as texts. number_of_text() decides what a number is, here and where the data is read:
 * "inf" and "0x1" are texts. */
#ifndef DML_MODEL_LABELS_H
#define DML_MODEL_LABELS_H

#include <stdint.h>

#include "model/model.h"

#define LABEL_UNSEEN UINT32_MAX

struct labels; /* opaque */

/* The layout's strings must outlive it. */
struct labels *label_table_new(const struct model_layout *layout);
void label_table_free(struct labels *labels); /* harmless on NULL */

/* The class, or LABEL_UNSEEN. `text` is NULL if the label is the number. */
uint32_t label_table_find(const struct labels *labels, double number, const char *text);

/* The class of this table that a class name of another model means, or LABEL_UNSEEN. */
uint32_t label_table_find_name(const struct labels *labels, const char *name);

#endif
