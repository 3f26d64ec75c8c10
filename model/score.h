/* Scoring: predictions and figures of a model on data files, which are read as a stream, or on
 * packs. */
#ifndef DML_MODEL_SCORE_H
#define DML_MODEL_SCORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/pack.h"
#include "model/model.h"

/* Figures over labelled examples. A figure that does not apply is NaN. */
struct score_figures {
    uint64_t examples;      /* labelled */
    double loss;            /* mean loss of the objective, without L2, over the examples whose label
                               training saw */
    double log_loss;        /* the same, if the objective's loss is the log loss */
    double accuracy;        /* classifiers; over all examples */
    double auc;             /* binary: area under the ROC curve, ties count half; exact */
    double rmse;            /* squared: root of the mean squared residual */
    uint64_t unseen_labels; /* labels that training never saw; each counts as wrong */
    uint64_t unseen_features; /* values of features that training never saw; ignored */
    uint64_t unlabelled;      /* examples without a label; counted nowhere else */
};

enum score_format {
    SCORE_PLAIN, /* the probability of the positive class; or the probability of each class, in the
                    order of the classes, separated by blanks; or the value */
    SCORE_JSON, /* {"probability":…}, or {"probabilities":[…],"class":"…"}, or {"value":…} */
};

/* Scores `paths` (NULL-terminated). Writes a line per example, with 17 significant digits, to
 * `predictions` unless it is NULL; `figures` may be NULL. Memory does not grow with the data, with
 * one exception: figures of a binary model need 8 bytes per labelled example (the AUC sorts the
 * margins). Errors of reading are those of source_read(); ERROR_DATA if a margin overflows, or if a
 * CSV file lacks a column that the model was trained on or its header gives one another name. */
int score_files(const struct model *model, char *const *paths, const struct source_options *options,
                unsigned threads, FILE *predictions, enum score_format format,
                struct score_figures *figures);

/* Figures over the rows of packs: over all rows if `share` is 0, else over the rows that a holdout
 * of that share holds out (data/holdout.h). score_files() computes the same figures, bit for bit,
 * from the same rows. */
int score_packs(const struct model *model, struct pack *const *packs, uint32_t count, double share,
                struct score_figures *figures);

/* {"examples": …, "loss": …}. Figures that do not apply are left out, and so are the counts of
 * unseen labels, unseen features and unlabelled examples if they are 0. A new reference. */
json_t *score_figures_json(const struct score_figures *figures);

/* Reading options as model.json stores them in "source". They include what reading found out about
 * the files (source_options_alike()). A new reference. */
json_t *score_options_json(const struct source_options *options);

/* The reading options that a model was trained with, from its details; options that are missing
 * there have their defaults. If the job named neither the label's column nor a column to skip, the
 * label is the column behind the last feature: this tells a CSV file without labels from one with
 * them. Release with score_options_release(). */
int score_options(const struct model *model, struct source_options *options);
void score_options_release(struct source_options *options);

#endif
