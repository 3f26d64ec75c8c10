/* Which class a label in a data file means. Inside model/ only.
 *
 * Labels and class names are compared as numbers if both are numbers ("1" is "+1" is "1.0"), else
 * as texts. What a number is, number_of_text() says, here as where the data is read: "inf" and
 * "0x1" are texts. */
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

/* The class that a class name of another model means. */
uint32_t label_table_find_name(const struct labels *labels, const char *name);

#endif
