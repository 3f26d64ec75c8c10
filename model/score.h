/* Scoring: predictions and figures of a model on data files, which are streamed, or on packs. */
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
    double log_loss;        /* the same, if it is that */
    double accuracy;        /* classifiers; over all examples */
    double auc;             /* binary: area under the ROC curve, ties count half; exact */
    double rmse;            /* squared: root of the mean squared residual */
    uint64_t unseen_labels; /* labels that training never saw; each counts as wrong */
    uint64_t unseen_features; /* values of features that training never saw; ignored */
    uint64_t unlabelled;      /* examples without a label; counted nowhere else */
};

enum score_format {
    SCORE_PLAIN, /* the probability of the positive class, or the class probabilities in the order
                    of classes separated by blanks, or the value */
    SCORE_JSON, /* {"probability":…}, or {"probabilities":[…],"class":"…"}, or {"value":…} */
};

/* Scores `paths` (NULL-terminated). A line per example with 17 significant digits goes to
 * `predictions` unless it is NULL; `figures` may be NULL. Memory does not grow with the data, but
 * for 8 bytes a labelled example if figures are asked of a binary model (the AUC sorts them).
 * Errors of reading as source_read() has them; ERROR_DATA if a margin overflows, or if a CSV file
 * lacks a column that the model was trained on, or its header gives one another name. */
int score_files(const struct model *model, char *const *paths, const struct source_options *options,
                unsigned threads, FILE *predictions, enum score_format format,
                struct score_figures *figures);

/* Figures over the rows of packs: all of them if `share` is 0, else those that the holdout of that
 * share has (data/holdout.h). The same, bit for bit, as score_files() has of these rows. */
int score_packs(const struct model *model, struct pack *const *packs, uint32_t count, double share,
                struct score_figures *figures);

/* {"examples": …, "loss": …}; members that do not apply are left out, the counts of what was not
 * seen in training if they are 0. A new reference. */
json_t *score_figures_json(const struct score_figures *figures);

/* Reading options as they are stored with a model, what was found out about the files included
 * (source_options_alike()): its details have them as "source". A new reference. */
json_t *score_options_json(const struct source_options *options);

/* The reading options a model was trained with, from its details; those that are not there are the
 * defaults. If neither the label's column nor one to skip was named, the label is the column behind
 * the last feature: so a CSV file without labels is told from one with them. Release with
 * score_options_release(). */
int score_options(const struct model *model, struct source_options *options);
void score_options_release(struct source_options *options);

#endif
