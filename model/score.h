/* Scoring: predictions and figures of a model on data files, which are read as a stream, or on
 * packs. */
#ifndef DML_MODEL_SCORE_H
#define DML_MODEL_SCORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "data/pack/pack.h"
#include "data/set/holdout.h"
#include "data/source/paths.h"
#include "model/model.h"

/* No confusion matrix is kept of more classes than the first number; more than the second are not
 * listed one by one. */
#define SCORE_MATRIX_CLASSES 100
#define SCORE_LISTED_CLASSES 1000

struct objective;
struct output_columns; /* model/output_columns.h */

/* Figures over labelled examples, weighted by the examples' weights. A figure that does not apply,
 * or is not defined, is NaN. Release with score_figures_release(); a copy is a second view of the
 * same and is not released. */
struct score_figures {
    const struct objective *objective; /* which figures apply; NULL: those that are finite */
    uint64_t examples;                 /* labelled */
    double weight; /* the sum of the weights of the examples in `loss`; NaN if all weigh 1 */
    double loss;   /* mean loss of the objective, without L2, over the examples whose label training
                      saw; with the correction for class weights, without calibration */

    /* Classifiers. Accuracy is over all examples; an example with several classes must have all
     * right. The macro figures are means over the classes that occur as a label or as a prediction;
     * what is undefined counts as 0 there. AUC and average precision of several classes are the
     * means of each against the rest, over those that have them (see model/ranking.h). Brier is the
     * mean squared distance of probability and outcome, summed over the classes if there are
     * several. */
    double threshold; /* of two classes: the probability from which on the positive one is
                         predicted; NaN: that is where the margin is above 0, and it is 0.5 */
    double
        log_loss; /* of the probabilities: the loss, if it is that, and they are not calibrated */
    double accuracy;
    double precision, recall, f1; /* of the positive one of two classes */
    double macro_precision, macro_recall, macro_f1;
    double micro_precision, micro_recall, micro_f1; /* of examples with several classes, over all */
    double hamming; /* of these: the share of wrong answers over all examples and classes */
    double auc, average_precision;
    double brier;
    double calibration_error; /* of two classes: see model/curves.h */

    /* Numbers. */
    double rmse, mae; /* of prediction − target; mae also of the numbers of ordered classes */
    double r2;        /* 1 − squared residuals / squared distances of the targets to their mean */
    double deviance;  /* mean half deviance */
    double pinball; /* mean of τ·(target − prediction), or else (1 − τ)·(prediction − target) */
    double coverage; /* the share of targets that are at most the prediction */

    uint64_t unseen_labels;   /* labels that training never saw; each counts as wrong */
    char unseen[96];          /* the first few of them, in quotes, for messages */
    uint64_t unseen_features; /* values of features that training never saw; ignored */
    uint64_t unlabelled;      /* examples without a label; counted nowhere else */
    json_t *classes; /* {classes: [{class, examples, precision, recall, f1, …}], confusion: [[…]],
                        curves: {thresholds, gains, points, reliability}},
                        as score_figures_json() has them; NULL: none */
};

/* A figure of score_figures, for whoever treats all alike. */
struct score_figure {
    const char *name; /* in JSON, in conditions of the gate and for people */
    size_t offset;    /* of its double */
    enum score_better { SCORE_LOWER, SCORE_HIGHER, SCORE_NEITHER } better;
    double most;      /* that it can be */
    unsigned flag;    /* enum objective_figure: any of these makes objectives have it; 0: all do */
    bool two_classes; /* only those with two classes, of which one is the positive */
};

extern const struct score_figure score_figure_table[];
extern const size_t score_figure_count;

/* The figure of that name, or NULL. */
const struct score_figure *score_figure_find(const char *name);

/* "; did you mean `auc`?", or "", of a name that no figure has. Valid until the next call. */
const char *score_figure_suggestion(const char *name);

/* The names of all figures that an objective has, "loss, rmse"; with `directed` only of those that
 * are better lower, or better higher. Free it. */
char *score_figure_names(const struct objective *objective, bool directed);

double score_figure_value(const struct score_figures *figures, const struct score_figure *figure);
bool score_figure_suits(const struct score_figure *figure, const struct objective *objective);

struct score_figures score_no_figures(void); /* none applies */
void score_figures_release(struct score_figures *figures);

/* What is predicted for an example, and how it is written. */
enum score_shown {
    SCORE_PREDICTION, /* the probability of the positive class; or the probability of each class; or
                         the value; or the margin: as the objective has it */
    SCORE_LABELS,     /* the predicted class, or the list of those that are predicted */
    SCORE_PROBABILITIES, /* of each class, also of two */
    SCORE_MARGINS,       /* of each output */
};

/* With `columns` a line of CSV an example, or with `json` an object, of these columns. Else a line
 * an example: numbers with 17 significant digits, separated by blanks, in the order of the
 * classes; or with `json` an object, such as {"probability":…}, {"probabilities":[…],"class":"…"},
 * {"class":"…"} or {"margin":…}; where an example can have several classes, "classes":[…]. A row
 * that is skipped has an empty line, in JSON null. */
struct score_output {
    FILE *file;
    const char *name; /* of the file, for messages; or NULL */
    enum score_shown shown;
    bool json;
    bool header;                          /* a line with the names of the columns comes first */
    const struct output_columns *columns; /* or NULL: `shown` */
    struct explainer *explainer; /* with `columns`: contributions follow them, in JSON by falling
                                    size (model/explain.h); or NULL */
    uint32_t explained; /* for each margin so many of the largest, and the sum of the rest; 0: all
                           columns */
};

/* ERROR_USAGE if models of this layout have no such predictions. */
int score_check_output(const struct model_layout *layout, const struct score_output *output);

/* Scores `paths` (NULL-terminated), with the files beside them, which may be NULL. Writes
 * predictions unless `output` is NULL; `figures` may be NULL. Memory does not grow with the data,
 * with one exception: figures of a classifier hold the scores of all labelled examples, up to 2 GiB
 * (see model/ranking.h). Errors of reading are those of source_read(); ERROR_DATA for a row
 * whose margin overflows, beyond the bad lines that are allowed, or if a CSV file lacks a column
 * that the model was trained on or its header gives one another name; ERROR_USAGE of
 * score_check_output().
 */
int score_files(const struct model *model, char *const *paths, const struct source_beside *beside,
                const struct source_options *options, unsigned threads,
                const struct score_output *output, struct score_figures *figures);

/* Figures over the rows of packs: over all rows if `pick` is NULL, else over those that
 * it picks. score_files() computes the same figures, bit for bit,
 * from the same rows. */
int score_packs(const struct model *model, struct pack *const *packs, uint32_t count,
                const struct holdout_pick *pick, struct score_figures *figures);

/* The margins of labelled rows, ranked: *ranking is the caller's (model/ranking.h, ranking_free()).
 */
struct ranking;
int score_margins(const struct model *model, struct pack *const *packs, uint32_t count,
                  const struct holdout_pick *pick, struct ranking **ranking);

/* Only examples and their labels, without any figure: for trying whether packs can be scored. */
int score_labels(const struct model *model, struct pack *const *packs, uint32_t count,
                 struct score_figures *figures);

/* {"examples": …, "loss": …}. Figures that do not apply are left out; those that apply and are not
 * defined are null. Counts of unseen labels, unseen features and unlabelled examples are left out
 * if they are 0, and so is the weight if all examples weigh 1. A new reference. */
json_t *score_figures_json(const struct score_figures *figures);

/* ERROR_DATA if no example has a label, or if training saw none of the labels: then the data is of
 * another kind. `where` begins the message: "job.conf: key `test`: more.csv". `class_names` are
 * `classes`; 0: the model predicts numbers. */
int score_check_labels(const struct score_figures *figures, const char *where, uint32_t classes,
                       const char *const *class_names);

/* Reading options as model.json stores them in "source". They include what reading found out about
 * the files (source_options_alike()). A new reference. */
json_t *score_options_json(const struct source_options *options);

/* The reading options that a model was trained with, from its details; options that are missing
 * there have their defaults. If the job named neither the label's column nor a column to skip, the
 * label is the column after the last feature: this tells a CSV file without labels from one with
 * them. Release with score_options_release(). */
int score_options(const struct model *model, struct source_options *options);
void score_options_release(struct source_options *options);

#endif
