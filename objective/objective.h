/* Objectives: the losses of examples, and what follows from a loss alone. shape.h has models of an
 * objective, block.h loss and gradient over blocks of examples, halves.h the two halves of such a
 * pass, second.h second derivatives.
 *
 * The parameters of a model with F features and K outputs are one vector of n doubles, laid out as
 * objective_layout() says: weight[j·K + k] belongs to feature j and output k, bias[k] to output k.
 * K is the number of classes if the objective has an output for each, else 1. An objective of
 * ordered classes has an output between each two, K is one less than the classes, and all outputs
 * share one weight a feature: weight[j], bias[k].
 *
 * Losses are sums over examples here, each times its weight; the mean is taken where the gradient
 * is finished. An example of weight 0 counts for nothing, whatever its values are. L2 is not part
 * of an objective. objective/objectives.def lists the objectives. All that differs between them is
 * in the objective's row, `struct objective`; no code switches on the kind, but what devices
 * call (objective/loss_row.h).
 *
 * Every result is a function of the block and the parameters alone: one thread computes a block, in
 * a fixed order. Sums over blocks are exact (see numeric/exact.h, numeric/fixed.h). */
#ifndef DML_OBJECTIVE_OBJECTIVE_H
#define DML_OBJECTIVE_OBJECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rows.h"
#include "objective/distribution.h"
#include "objective/loss.h"

/* Figures that scoring reports besides the mean loss, as flags. */
enum objective_figure {
    FIGURE_ACCURACY = 1,  /* classes: also precision, recall and F1 */
    FIGURE_AUC = 2,       /* classes: of several, each against the rest; also average precision */
    FIGURE_RMSE = 4,      /* targets: of prediction − target; also MAE and R² */
    FIGURE_LOG_LOSS = 8,  /* the loss is minus the logarithm of the probability of the label; also
                             the Brier score */
    FIGURE_DEVIANCE = 16, /* targets: the loss is half a deviance */
    FIGURE_COVERAGE = 32, /* targets: the share of them that are at most the prediction, and the
                             pinball loss: the first parameter is the quantile */
    FIGURE_RANK = 64,     /* ordered classes: MAE of the class's number */
    FIGURE_LISTS = 128,   /* rows with several classes: accuracy of all, micro and macro means */
};

/* What a value may be: from `least` to `most`. */
struct loss_parameter {
    const char *name;
    const char *initial; /* or "auto": left to the data */
    double least, most;
};

/* The margins of all rows before the first step. */
struct start_margins {
    double least, most; /* the start of the intercept with the row's offset */
    double offset;      /* the largest |offset| */
};

/* A loss, as a function of the K margins of an example and its label (see label_kind). The label of
 * LABEL_LISTS is K numbers here: 1 for the classes that the example has, else 0. */
struct objective {
    const char *name; /* in job files, models and messages */
    enum label_kind labels;
    bool (*label_fits)(double label); /* whether the loss allows this target; NULL: any */
    const char *label_allowed;        /* which targets, for messages */
    bool output_a_class;              /* K is the number of classes, else 1 */
    bool shares_weights;              /* K is one less than the classes, and all outputs have the
                                         same weights. Such a loss must not adapt its bound,
                                         unless the sum of a row's derivatives is never beyond the
                                         largest of them */
    bool parts_outputs;               /* the loss is finite only where the margins of a row fall
                                         from output to output: biases start so */
    bool has_unit;                    /* margins have the unit of the labels */
    bool convex;                      /* the minimum does not depend on the starting point */
    unsigned figures;                 /* objective_figure */

    /* Sets the parameters that are left to the data, and are 0 before; NULL: there are none. A
     * linear model has so many `columns`, the intercept among them; of other families this is
     * infinite. */
    void (*complete)(struct loss_parameters *parameters, const struct label_summary *labels,
                     double columns);

    /* The prediction is e^margin: offsets are averaged in this scale where the start follows from
     * the mean of the labels. */
    bool log_link;

    /* Where the intercept starts; NULL: at 0. Losses of labels that have a unit get it from labels
     * less their offsets, others from the mean of the labels: it is then for rows without. */
    double (*start)(const struct loss_parameters *parameters, const struct label_summary *labels);

    /* The bound on |derivative|, given the largest |label|; NULL: 1. objective_bound() tells the
     * bound on the gradient that follows. If it `adapts`, only the first evaluation, where the
     * margins are within `start`, has this bound. It should not be far too large, as derivatives
     * are rounded to a share of it. Later evaluations take their bound from the derivatives found
     * so far, and one that exceeds its bound is made again. */
    double (*bound)(const struct loss_parameters *parameters, const struct start_margins *start,
                    double label_max_abs);
    bool adapts;

    /* The least bound on |derivative| at all margins; NULL: there is none. A bound that has reached
     * this does not adapt. */
    double (*limit)(const struct loss_parameters *parameters);

    /* Takes rows×K margins, row-major. Writes the loss of each row, and replaces the margins by the
     * derivatives of the loss by them. Where a margin is not finite, the loss is not finite either.
     * `work` has room for rows×K doubles. */
    void (*losses)(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, double *margins, double *loss, double *work);

    /* The second derivatives of the loss of an example by its margins, a positive semidefinite K×K
     * matrix, from the label and what `losses` left in the margins and in `work`. `second` writes
     * the diagonals of rows×K; `second_row` row k of the matrix of one example, NULL if K is always
     * 1. No element is beyond ±second_most; if there is a second_bound(), beyond ±that, which is
     * given the largest |derivative| and |label| of all rows.
     * Where a loss is linear beyond a corner, most rows would have none, and steps that these rows
     * do not resist would be far too long: `second` is then that of the parabola which touches the
     * loss at the margin with the same slope, symmetric about the corner, and is nowhere below it
     * (Hunter and Lange 2000, Quantile regression via an MM algorithm).
     * `second_change`: by which share of itself the mean loss has changed when a preconditioner is
     * to be made anew; 0: 0.05. It is small where rows curve the loss in a sharp corner alone:
     * which rows these are changes while the loss hardly does. `second_constant`: they are the same
     * at all margins. No `second`: the loss has none, and its directions cannot be preconditioned.
     */
    void (*second)(const struct loss_parameters *parameters, size_t rows, size_t outputs,
                   const double *label, const double *derivatives, const double *work,
                   double *diagonal);
    void (*second_row)(size_t outputs, double label, const double *derivatives, size_t k,
                       double *row);
    /* `product` = factor times that matrix S times `of`, K×columns each; NULL: by its rows. */
    void (*second_product)(size_t outputs, double label, const double *derivatives, double factor,
                           size_t columns, const double *of, double *product);
    /* The sums of the rows of that matrix, rows×K, from the derivatives alone, for outputs that
     * share their weights and act on each other. Beside the diagonal it has one element that is not
     * 0, and its mirror image: of the outputs label − 1 and label, minus the product of the sizes
     * of their derivatives. NULL: it is diagonal. */
    void (*second_sums)(size_t rows, size_t outputs, const double *label, const double *derivatives,
                        double *sums);
    /* Makes of the diagonal that `second` has written what it is on average over the labels that a
     * row may have, for the errors of estimates: Fisher's information. NULL: it is that already,
     * as where the link is canonical. */
    void (*expected)(const struct loss_parameters *parameters, size_t rows,
                     const double *derivatives, double *diagonal);
    double second_most;
    double (*second_bound)(const struct loss_parameters *parameters, double derivative_max,
                           double label_max_abs);
    bool second_constant;
    double second_change;

    /* What the second derivative is about, with labels of this unit (objective_unit()) and at the
     * margin of a typical row: what l2 has to be held against. NULL: 1. */
    double (*typical_second)(const struct loss_parameters *parameters, double unit, double margin);

    /* The loss of one example for scoring, accurate also where it is tiny; NULL, with one output:
     * what `losses` finds. Of LABEL_LISTS: of one output, the label being 1 if the example has its
     * class. See objective_loss(). */
    double (*loss)(const struct loss_parameters *parameters, size_t outputs, const double *margins,
                   double label);

    /* The residual up to which a corner of the loss is smoothed; NULL: it has none. */
    double (*smoothed)(const struct loss_parameters *parameters);

    /* NULL: the loss is not half the deviance of a distribution. */
    const struct distribution *distribution;

    /* Turns the margins of one example into objective_predictions() numbers, in place (the link
     * function). NULL: the prediction is the margins themselves. `prediction` is the name of its
     * member in JSON, whose value is a list if there are several classes and not just two. */
    void (*predict)(size_t outputs, double *margins);
    const char *prediction;

    /* The solver_type of LIBLINEAR whose models predict as this objective does: for models with one
     * weight a feature, and for models with a weight for each of more than two classes. NULL: there
     * is none. */
    const char *liblinear, *liblinear_classes;
};

const struct objective *objective_of(enum objective_kind kind);
uint32_t objective_outputs(const struct objective *objective, uint32_t classes);

/* The weights of a feature: K, or 1 that all outputs share. */
uint32_t objective_weights(const struct objective *objective, uint32_t outputs);

/* The numbers of a prediction: K, or one more if these are the probabilities of ordered classes. */
uint32_t objective_predictions(const struct objective *objective, uint32_t outputs);
const char *objective_name(enum objective_kind kind);

/* Find an objective by its name: its kind, or −1; its row, or NULL. */
int objective_from_name(const char *name);
const struct objective *objective_find(const char *name);

/* Parameter `number` of a loss; NULL if it has no more. */
const struct loss_parameter *objective_parameter(enum objective_kind kind, uint32_t number);

struct loss_parameters objective_defaults(enum objective_kind kind);

/* Checks the values: the first parameter whose value is out of range, or NULL. */
const struct loss_parameter *objective_parameter_invalid(enum objective_kind kind,
                                                         const struct loss_parameters *parameters);

/* The index of the largest margin, the first one of equals. */
size_t objective_best(size_t outputs, const double *margins);

/* The predicted class: that of the largest margin; or, where outputs part classes, that before the
 * first margin which is not above 0. */
size_t objective_class(const struct objective *objective, size_t outputs, const double *margins);

/* Whether a model of this objective predicts classes: then there is a share of rows whose
 * prediction is correct. */
bool objective_has_classes(const struct objective *objective);

/* Whether the classes that the margins of an example predict are its own, all of them if it has
 * several. `label` is as losses take it; false without classes. */
bool objective_is_correct(const struct objective *objective, size_t outputs, const double *margins,
                          const double *label);

/* The loss of one example for scoring. */
double objective_loss(const struct objective *objective, const struct loss_parameters *parameters,
                      size_t outputs, const double *margins, double label);

#endif
