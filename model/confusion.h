/* Which classes are predicted for which: accuracy, precision, recall and F1. Inside model/ only. */
#ifndef DML_MODEL_CONFUSION_H
#define DML_MODEL_CONFUSION_H

#include "model/score.h"

struct confusion; /* opaque */

/* The matrix itself is kept, if it is wanted, for up to SCORE_MATRIX_CLASSES classes. */
struct confusion *confusion_new(uint32_t classes, bool matrix);
void confusion_free(struct confusion *confusion); /* harmless on NULL */

/* Counts an example of a class, or of LABEL_UNSEEN, for which `answer` was predicted. */
void confusion_add(struct confusion *confusion, uint32_t class, uint32_t answer, double weight);

/* Sets accuracy and the macro figures; if `binary`, those of class 1, too. An example whose label
 * training never saw makes its prediction wrong: it lowers accuracy, and precision of the class
 * that was predicted. */
void confusion_finish(const struct confusion *confusion, bool binary, struct score_figures *result);

/* The same where an example can have any number of classes: whether it has this one, and whether
 * that was predicted. Sets the micro and macro figures, and `hamming` to the weight of what is
 * wrong. */
void confusion_note(struct confusion *confusion, uint32_t class, bool has, bool predicted,
                    double weight);
void confusion_finish_notes(const struct confusion *confusion, struct score_figures *result);

/* {class, examples, precision, recall, f1} of one class; null where a figure is not defined. A new
 * reference. */
json_t *confusion_class_json(const struct confusion *confusion, uint32_t class, const char *name);

/* A list of rows, one a class as the data has it, of a number for each class as predicted; NULL if
 * the matrix is not kept. A new reference. */
json_t *confusion_matrix_json(const struct confusion *confusion);

#endif
