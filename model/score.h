/* Scoring: predictions and figures of a model on data files, streamed with bounded memory. */
#ifndef DML_MODEL_SCORE_H
#define DML_MODEL_SCORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/source.h"
#include "model/model.h"

/* Figures over labelled examples. A figure that does not apply is NaN. */
struct score_figures {
    uint64_t examples;
    double loss;              /* mean loss of the objective, without L2; log loss for classifiers */
    double accuracy;          /* classifiers */
    double auc;               /* binary: area under the ROC curve, ties count half; exact */
    double rmse;              /* squared */
    uint64_t unseen_labels;   /* labels that training never saw; each counts as wrong */
    uint64_t unseen_features; /* values of features that training never saw; ignored */
    uint64_t unlabelled;      /* examples without a label; counted nowhere else */
};

/* Scores `paths` (NULL-terminated). A line per example goes to `predictions` unless it is NULL:
 * the probability of the positive class, or the class probabilities separated by blanks, or the
 * value; 17 significant digits. `figures` may be NULL. */
int score_files(const struct model *model, char *const *paths, const struct source_options *options,
                unsigned threads, FILE *predictions, struct score_figures *figures);

/* The reading options a model was trained with, from its details (label column and so on); the
 * strings belong to the model. Call score_options_release() for the arrays. */
int score_options(const struct model *model, struct source_options *options);
void score_options_release(struct source_options *options);

/* {"examples": …, "loss": …}; members that do not apply are left out. */
json_t *score_figures_json(const struct score_figures *figures);

#endif
