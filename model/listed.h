/* Rows that have any number of classes: their labels as lists, and how many are right. Inside
 * model/ only. */
#ifndef DML_MODEL_LISTED_H
#define DML_MODEL_LISTED_H

#include "model/confusion.h"
#include "model/labels.h"

struct listed; /* opaque */

/* The layout must outlive it. */
struct listed *listed_new(const struct model_layout *layout);
void listed_free(struct listed *listed); /* harmless on NULL */

/* Reads a label: 1 for each class that it names, else 0; valid until the next call. *unseen: it
 * names one that training never saw. */
const double *listed_read(struct listed *listed, const char *label, bool *unseen);

/* Counts the example whose label was read last, with these margins: classes with one above 0 are
 * predicted. `unseen`: no prediction is right as a whole. */
void listed_add(struct listed *listed, const double *margins, bool unseen, double weight);

/* Sets accuracy (of whole lists), hamming, and the micro and macro figures. */
void listed_finish(const struct listed *listed, struct score_figures *result);

/* As confusion_class_json(). */
json_t *listed_class_json(const struct listed *listed, uint32_t class);

#endif
