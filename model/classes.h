/* Classes of rows: which one a label means, and how many are predicted right, by exact sums of the
 * rows' weights. Inside model/ only. */
#ifndef DML_MODEL_CLASSES_H
#define DML_MODEL_CLASSES_H

#include <stdint.h>

#include "model/model.h"
#include "model/score.h"
#include "model/weight_sum.h"

/* ---- which class a label in a data file means ----
 *
 * Labels and class names are compared as numbers if both are numbers ("1", "+1" and "1.0" are the
 * same) and no codes, as "007" is (data/text/number.h), else as texts. number_of_text() decides
 * what a number is, here and where the data is read: "inf" and "0x1" are texts. */

#define LABEL_UNSEEN UINT32_MAX

struct class_table; /* opaque */

/* The layout's strings must outlive it. */
struct class_table *class_table_new(const struct model_layout *layout);
void class_table_free(struct class_table *table); /* harmless on NULL */

/* The class, or LABEL_UNSEEN. `text` is NULL if the label is the number; else the number is NaN, or
 * what the text is if that is a code. */
uint32_t class_table_find(const struct class_table *table, double number, const char *text);

/* The class of this table that a class name of another model means, or LABEL_UNSEEN. */
uint32_t class_table_find_name(const struct class_table *table, const char *name);

/* ---- which classes are predicted for which: accuracy, precision, recall and F1 ---- */

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

/* {class, examples, precision, recall, f1} of one class; null where a figure is not defined. A new
 * reference. */
json_t *confusion_class_json(const struct confusion *confusion, uint32_t class, const char *name);

/* A list of rows, one a class as the data has it, of a number for each class as predicted; NULL if
 * the matrix is not kept. A new reference. */
json_t *confusion_matrix_json(const struct confusion *confusion);

/* ---- rows that have any number of classes: their labels as lists, and how many are right ---- */

struct listed; /* opaque */

/* The layout must outlive it. */
struct listed *listed_new(const struct model_layout *layout);
void listed_free(struct listed *listed); /* harmless on NULL */

/* Reads a label: 1 for each class that it names, else 0; valid until the next call. *unseen: it
 * names one that training never saw. */
const double *listed_read(struct listed *listed, const char *label, bool *unseen);

/* Counts the example whose label was read last, with these margins and probabilities. `unseen`: no
 * prediction is right as a whole. */
void listed_add(struct listed *listed, const double *margins, const double *prediction, bool unseen,
                double weight);

/* Sets accuracy (of whole lists), hamming, and the micro and macro figures. */
void listed_finish(const struct listed *listed, struct score_figures *result);

/* As confusion_class_json(). */
json_t *listed_class_json(const struct listed *listed, uint32_t class);

#endif
