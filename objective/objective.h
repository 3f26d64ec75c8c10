/* Objectives: loss and gradient of a model over blocks of examples.
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

#include "base/bounds.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/rows.h"
#include "objective/distribution.h"
#include "objective/loss.h"
#include "plugin/plugin.h"

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
    /* The diagonal as `second`, of what it is on average over the labels that a row may have, for
     * the errors of estimates: Fisher's information. NULL: `second`, which is that where the link
     * is canonical. */
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

enum activation { ACTIVATION_TANH, ACTIVATION_RELU, ACTIVATION_GELU, ACTIVATIONS };

/* The precision of products and activations. Losses are always in double. */
enum precision { PRECISION_DOUBLE, PRECISION_FLOAT, PRECISIONS };

/* The hidden layers between features and outputs. A unit is the activation of its bias plus the
 * weighted sum of what comes in; outputs are margins, without an activation. With L layers, the
 * hidden ones and the outputs, the parameters are the tensors
 *
 *   W1 … WL   in × out   regularised; W1 has an exponent a row (a feature), the others one each
 *   b1 … bL   1 × out    not regularised; one exponent each
 *
 * A network always has biases. If outputs share their weights, WL has one column, and bL as many as
 * there are outputs. At the start weights are even in ±√(6/(in + out)) (Glorot and Bengio 2010,
 * Understanding the difficulty of training deep feedforward neural networks), of relu in ±√(6/in)
 * (He et al. 2015, Delving deep into rectifiers); biases are 0, those of the outputs `start`. */
struct network {
    uint32_t layers; /* hidden ones; 0: the model is linear, and the rest means nothing */
    uint32_t units[NETWORK_LAYERS_MAX];
    enum activation activation;
    enum precision precision;
    uint64_t seed;  /* of the start */
    double unit;    /* the outputs are multiplied by it while the network is trained: about the
                       deviation of the labels. 0 stands for 1 */
    bool kronecker; /* trained in a scaling with Kronecker factors (objective/kronecker.h): then
                       W1 has one exponent, as all others have */
};

/* A plug-in, which computes in place of a loss. */
struct objective_plugin {
    struct plugin_source source;
    struct plugin_tensors tensors;
    const uint32_t *rank; /* of each column of the rows: its place among the features by rising id,
                             which is the column that the plug-in sees; NULL: the same */
};

struct objective_shape {
    enum objective_kind kind;
    uint64_t features; /* F; of what is computed on, such as a strip, at most FEATURES_MAX */
    uint32_t outputs;  /* K */
    bool intercept;
    double start;                  /* of the intercept, before the first step */
    struct offset_summary offsets; /* of the rows; only where a run is planned, else zeros */
    struct loss_parameters loss;
    struct network network;
    const struct objective_plugin *plugin; /* or NULL; then the kind is that of its row */
};

/* The columns of the rows that are computed on: whole ones, or those of a strip. */
static inline uint32_t objective_columns(const struct objective_shape *shape) {
    assert(shape->features <= FEATURES_MAX);
    return (uint32_t)shape->features;
}

/* Names, in job files and models; and back, or −1. */
const char *activation_name(enum activation activation);
int activation_from_name(const char *name);
const char *precision_name(enum precision precision);
int precision_from_name(const char *name);

/* The row that a plug-in has in the table: labels, figures and predictions, but no losses. */
enum objective_kind objective_of_plugin(const struct plugin_description *description);

/* The layout of the parameters; it has no tensors if there are more parameters than the limits
 * allow. */
struct layout objective_layout(const struct objective_shape *shape);
uint64_t objective_parameters(const struct objective_shape *shape); /* n */

/* The bounds on what a row's value is multiplied by in the gradient, and in the second derivatives:
 * those on the derivatives of a loss by its margins, times the number of margins that share a
 * weight. */
double objective_bound(const struct objective_shape *shape, double label_max_abs);
/* The first where no derivative is larger than `derivative_max`. Of losses that adapt the sum of
 * those of a row is not larger either. */
double objective_bound_of(const struct objective_shape *shape, double derivative_max);
bool objective_bound_adapts(const struct objective_shape *shape, double label_max_abs);
double objective_second_bound(const struct objective_shape *shape, double derivative_max,
                              double label_max_abs);

/* Reads off a layout what it says of the shape: outputs, intercept, start, and of a network its
 * layers, units and seed. Kind, activation and precision must be set before. Of a layout that is
 * not this program's, objective_layout() then makes another one. */
void objective_read_layout(struct objective_shape *shape, const struct layout *layout);

static inline double network_unit(const struct network *network) {
    return network->unit > 0 ? network->unit : 1;
}

/* The unit for labels such as these, about 2.3 deviations; 1 for losses whose labels have none. */
double objective_unit(const struct objective *objective, const struct label_summary *labels);

/* What the second derivative of a row's loss by its margin is about, given the labels; 1 without
 * labels. An l2 that is a share of it is as strong in whatever unit the labels are. */
double objective_typical_second(const struct objective_shape *shape,
                                const struct label_summary *labels);

/* The unit of a network's losses. l2 and tolerances that are meant for labels of deviation 1 must
 * be multiplied by it. 1 for other models. */
double objective_loss_unit(const struct objective_shape *shape);

/* What the weights of a linear model are multiples of in columns of size 1, and what their
 * gradients are: both follow the unit of the labels. Weights of other models are about 1, and
 * gradients have the unit of the losses. */
double objective_weight_unit(const struct objective_shape *shape,
                             const struct label_summary *labels);
double objective_gradient_unit(const struct objective_shape *shape,
                               const struct label_summary *labels);

/* What the outputs are multiplied by while the model is trained: 1, but of networks. */
static inline double objective_output_unit(const struct objective_shape *shape) {
    return network_unit(&shape->network);
}

/* The plug-in that computes in place of a loss, for the process that shall run it; NULL: none. */
const struct plugin_source *objective_source(const struct objective_shape *shape);

/* Sets what the loss and the family leave to the data: parameters of the loss, the start of the
 * intercept, which is for rows with these offsets, and the unit of a network's outputs. */
void objective_complete(struct objective_shape *shape, const struct label_summary *labels,
                        const struct offset_summary *offsets);

/* What offsets add to the margin of a typical row, and that margin before the first step. */
double objective_typical_offset(const struct objective_shape *shape);
double objective_typical_margin(const struct objective_shape *shape);

/* The intercept of a model of targets such as these that has no other column, about. Networks start
 * there whatever the loss is: else all their units would first learn the mean of the labels. */
double objective_null_intercept(const struct objective_shape *shape,
                                const struct label_summary *labels);

/* Multiplies by `factor` those of the elements [first, first + count) of a network's vector that
 * lead to the outputs. */
void objective_scale_outputs(const struct layout *layout, double factor, uint64_t first,
                             uint64_t count, double *elements);

/* Whether it is the layout of a network whose `kronecker` is set. */
bool objective_is_kronecker(const struct layout *layout);

/* The base exponents of all parameters, as the layout numbers them, from those of the data's
 * columns and the intercept; free() them. A linear model has the same ones. In a network a chunk's
 * gradient is rounded as a whole: with c = ⌈log₂ chunks⌉ those of W1 are e_j − 1 − c, and all
 * others 61 − c, as is that of W1 if it has but one. */
int16_t *objective_exponents(const struct objective_shape *shape, const int16_t *columns,
                             uint64_t chunks);

/* The bounds of a run's first evaluation, over `chunks` chunks of rows that weigh `weight`
 * together. For a network they are a guess: if the evaluation exceeds it, its maxima tell better
 * bounds. */
struct bounds objective_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                     double weight, uint64_t chunks);

/* How the gradient of a network is scaled whose `kronecker` is set, and l2 for it: shards cannot
 * add l2, as no single shard knows a weight. */
struct kronecker;
struct objective_change {
    const struct kronecker *kronecker;
    const struct column_scaling *columns; /* [features] */
    const double *pull;                   /* [n]: l2·penalty·weight, of biases 0 */
    double penalty;                       /* l2/2·Σ penalty·weight² */
};

/* How one evaluation converts the gradient to fixed point. */
struct objective_scale {
    const struct objective_change *change; /* of such a network; NULL: the gradient is by the
                                              parameters themselves. A chunk adds pull and penalty
                                              times the weight of its rows */
    const int16_t *exponent; /* base exponents as the layout numbers them: one per feature, then
                                that of the bias; NULL: `uniform` for all */
    int uniform;
    struct bounds bounds; /* of a linear model one, 2^b: |derivative| ≤ 2^b, not weighted; of a
                             network one a tensor: see the maxima */
};

struct objective_result {
    double loss; /* Σ weight·loss over the block; not finite if the point is too far out */

    /* For a linear model one maximum: the largest |derivative| over the block, not weighted. Of a
     * network one a tensor: the largest |g|·2^(e − s) over its elements g of the block's gradient,
     * e being the base exponent of each, and s that of the last bias. +infinity if a value is NaN;
     * all if the loss is not finite. */
    struct maxima maxima;

    bool exceeded;  /* a maximum is beyond its bound: `sum` may hold a part of this block, and must
                       be discarded */
    double correct; /* weight of the rows that are predicted correctly; 0 if there is a `sum` */
};

/* Scratch memory of one thread. */
struct objective_scratch; /* opaque */
struct objective_scratch *objective_scratch_new(const struct objective_shape *shape);

/* Promises that all calls until the next one of this have the same parameters, those of the point
 * of this number: what is prepared from them for one block serves the others. 0, as at first: each
 * call may have other parameters. */
void objective_scratch_at(struct objective_scratch *scratch, uint64_t point);

/* A point of a linear model in the scaling of a run (base/layout.h): a weight is an element times
 * the scale of its column. */
struct scaled_point {
    const struct column_scaling *columns; /* [features]; NULL: points are weights and biases */
    const double *bias;                   /* [outputs]: not those of the point */
};

/* Says that the parameters of all calls from now on are of this kind, whose rows are sparse. What
 * comes out is the same to the bit as for the weights and biases. */
void objective_scratch_scaled(struct objective_scratch *scratch, struct scaled_point scaled);

void objective_scratch_free(struct objective_scratch *scratch);

/* Loss and gradient of one block at `parameters` (n doubles). The gradient is added to `sum`
 * (n int64_t, 64-byte aligned). Once a bound is exceeded, only the loss and the maxima are
 * computed; with sum == NULL, these and `correct`; with scale == NULL as well, no maxima. Fails
 * only for a plug-in. */
int objective_block(const struct objective_shape *shape, const struct objective_scale *scale,
                    const struct rows *rows, const double *parameters, int64_t *sum,
                    struct objective_scratch *scratch, struct objective_result *result);

/* The margins of all rows, rows×K, row-major, as objective_block() finds them. Labels and weights
 * are not looked at. */
int objective_margins(const struct objective_shape *shape, const struct rows *rows,
                      const double *parameters, struct objective_scratch *scratch, double *margins);

/* The loss of each row, as if it weighed 1, where it does not follow from the margins. */
bool objective_has_losses(const struct objective_shape *shape);
int objective_losses(const struct objective_shape *shape, const struct rows *rows,
                     const double *parameters, struct objective_scratch *scratch, double *losses);

/* ---- the two halves of a pass ----
 *
 * Of a linear model with losses of one label a row, a gradient is made of two products with the
 * rows: margins q = X·p, and g = Xᵀ·d from their derivatives d. What lies between needs no rows.
 *
 * Vectors of rows travel as sums do. An element is 0 before, and the one chunk that has its row
 * adds the bits of a double to it, modulo 2^64: so what is counted once comes out as it was. The
 * tiles of a row each add an integer. `sum`
 * begins at the first row of the block and has rows×K elements, row-major. */

/* Whether the shape has these; else no function below may be called. */
bool objective_has_products(const struct objective_shape *shape);

/* Whether its models can be computed in strips of columns: linear models by these products, and
 * networks, whose first layer is a linear model with an output for each of its units. */
bool objective_has_strips(const struct objective_shape *shape);

/* The model of one strip of columns, layout_strip(): that of the data of a tile. Its parameters,
 * sums and exponents are those of the whole from its first element, or column, on. That of a
 * network is of its first layer, without biases: its margins are what the first layer adds up. */
struct objective_shape objective_strip(const struct objective_shape *shape, uint32_t columns,
                                       uint32_t number);

/* Adds the bits of the margins that objective_block() finds at `parameters`, a point or a direction
 * of n doubles. `scale` may be NULL, and *result says nothing.
 *
 * Of a tile (rows->size), adds what its columns have of each margin, as numeric/fixed.h says: a
 * function of the tile and the point alone. No element of the point may be beyond 2^P, the bound of
 * `scale`. If a part shows that one is, or is not finite, the product is exceeded, and the maximum
 * is the largest |part|·2^−size of such. With sum == NULL only these are found. */
void objective_product(const struct objective_shape *shape, const struct objective_scale *scale,
                       const struct rows *rows, const double *parameters, int64_t *sum,
                       struct objective_scratch *scratch, struct objective_result *result);

/* Adds to `sum`, n elements, the gradient that follows from `derivatives` by the margins, rows×K
 * and not weighted. With those that objective_block() finds at a point, sums, maxima and `exceeded`
 * are what it finds there, to the bit; there is no loss. With sum == NULL only the maxima. */
void objective_transpose(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *derivatives, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result);

/* What lies above the strips of a network, layout_upper(): the network without features. */
struct objective_shape objective_upper(const struct objective_shape *shape);

/* Where it is computed: with its parameters, and with the first layer's margins of the rows,
 * without biases: rows×units, row-major. */
struct upper_point {
    const double *parameters, *margins;
};

/* The second half of a pass over a network, of shape objective_upper(): both go through all layers
 * above the first. `scale` has the bounds of the whole network, and the exponents of the upper
 * tensors from the first on. Maxima are those of the chunk's gradient as objective_block() has
 * them, with that of the first tensor only where it is said. The loss is the result's.
 *
 * objective_derivatives() adds the bits of the derivatives of the row's loss by those margins, not
 * weighted, to `sum`, rows×units. The maximum of the first tensor is the largest of them, under
 * which the transpose of the first layer holds its bound.
 *
 * objective_upper_gradient() adds the gradient by the upper parameters to `sum`: where the margins
 * are those of objective_block(), what that adds. With sum == NULL nothing is added.
 *
 * objective_upper_loss() has the loss alone, and the weight of the rows predicted correctly. */
void objective_derivatives(const struct objective_shape *shape, const struct objective_scale *scale,
                           const struct rows *rows, const struct upper_point *point, int64_t *sum,
                           struct objective_scratch *scratch, struct objective_result *result);
void objective_upper_gradient(const struct objective_shape *shape,
                              const struct objective_scale *scale, const struct rows *rows,
                              const struct upper_point *point, int64_t *sum,
                              struct objective_scratch *scratch, struct objective_result *result);
void objective_upper_loss(const struct objective_shape *shape, const struct rows *rows,
                          const struct upper_point *point, struct objective_scratch *scratch,
                          struct objective_result *result);

/* Add the bits of the label of each row, as losses take it, of its weight, or of its size in a
 * tile, to the first of the row's K elements. */
void objective_add_labels(const struct objective_shape *shape, const struct rows *rows,
                          int64_t *sum);
void objective_add_offsets(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum);
void objective_add_weights(const struct objective_shape *shape, const struct rows *rows,
                           int64_t *sum);
void objective_add_sizes(const struct objective_shape *shape, const struct rows *rows,
                         int64_t *sum);

/* ---- curvature ---- */

/* The mean over the outputs of the second derivative of a row's loss by its own margin, where all
 * margins are 0; of a loss that has them whatever its label is. */
double objective_second_at_zero(const struct objective_shape *shape);

/* How second derivatives sample rows: by `sampling` row i of chunk c counts if u(dice, c, i) <
 * chance, with the weight 1/chance, so that the weighted sum is on average that over all rows:
 *
 *   chance = min(1, floor + rate · trace · leverage)
 *
 * where u is even in [0, 1) and depends on nothing else, trace is that of the row's second
 * derivatives, and leverage is examples·w·Σ_j |x_j|·2^(e_j − 62) over its stored values and the
 * intercept, w its own weight: about its share in the sums w·|x| of its columns, times `examples`.
 * Where weights of one output are listed, values in other columns do not count.
 * A row of weight 0 is not sampled. */
enum objective_seconds {
    SECONDS_SAMPLED,  /* as below */
    SECONDS_EXPECTED, /* `expected` of struct objective */
    SECONDS_SCORES,   /* w·g_k·g_k', with the row's own weight w once more, and derivatives g */
};

struct objective_sample {
    enum objective_seconds seconds; /* which S */
    const int16_t *exponent; /* base exponents as the layout numbers them, one a feature and then
                                that of the bias, also where the gradient has a uniform one */
    uint64_t examples;       /* over which they were chosen */
    uint32_t columns;        /* of the block: the first so many features */
    bool shared; /* outputs with weights of their own have one matrix, of a second derivative that
                    is the same for all rows: objective_second_at_zero() */
    const struct weight_list *list; /* these weights are the block instead, at most `columns` of
                                       them, and all biases; NULL: the first */
    int derivative_exponent;        /* b: no second derivative is beyond floor·2^b */
    struct row_sampling sampling;
};

struct objective_hessian {
    double trace_leverage; /* Σ trace·leverage over all rows of the block */
    double trace;          /* Σ w·trace over all rows */
    uint64_t sampled;      /* rows that were sampled */
    uint64_t terms;        /* added to the triangle */
    double largest;        /* SECONDS_SCORES: w·g_k² over all rows; what b must hold */
    bool exceeded;         /* b is too small, or a second derivative not finite: the triangle may
                              hold a part of this block, and must be discarded */
};

/* Adds the second derivatives by the parameters of the block, summed over the sampled rows of chunk
 * `number`, to the lower triangle of the n×n matrix: n(n + 1)/2 int64_t, element (r, c) with r ≥ c
 * at r(r + 1)/2 + c. Its parameters are those of a model of the first `columns` features, intercept
 * included: they alone count as values of a row, but in its leverage. A row adds, for parameters r
 * of column j and output k, and c of l and k',
 *
 *   rint(w · weight · S_kk' · x_j · x_l · 2^(e_j + e_l − 62 − b))
 *
 * whose sum is below 2⁶², as Σ √w·|x_j|·2^e_j is. Each term is rounded, so that no order matters.
 * One matrix that outputs share is that of a model of one output, and S is the same number for all
 * rows. Where the softmax is concerned that is Böhning's bound of the second derivatives but for a
 * factor ("Multinomial logistic regression algorithm", 1992), and does not depend on the point.
 * With triangle == NULL only the totals are found. */
void objective_curvature(const struct objective_shape *shape, const struct objective_sample *sample,
                         const struct rows *rows, uint32_t number, const double *parameters,
                         int64_t *triangle, struct objective_scratch *scratch,
                         struct objective_hessian *hessian);

/* A hash of the gradients and curvature of every kind, and of networks, over a fixed data set. All
 * replicas of a run must have the same. */
uint64_t objective_proof(void);

/* A proof of the losses and their derivatives alone, for processes that have margins of rows and no
 * data: of all kinds with one label a row. */
uint64_t objective_proof_losses(void);

/* Why a device does not compute this (a constant), or NULL if it does. `curvature`: the run asks
 * for second derivatives, too. */
const char *objective_device_cannot(const struct objective_shape *shape, bool curvature);

#endif
