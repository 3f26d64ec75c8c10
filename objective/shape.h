/* The shape of a model: its kind, features and outputs, and the layers of a network; and what
 * follows from a shape and the labels: the layout of the parameters, bounds, units, exponents, the
 * start. */
#ifndef DML_OBJECTIVE_SHAPE_H
#define DML_OBJECTIVE_SHAPE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/layout.h"
#include "base/limits.h"
#include "objective/loss.h"
#include "objective/objective.h"
#include "plugin/plugin.h"

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

/* An activation, in one precision and the other. `back` takes gradients by units to gradients by
 * sums, given the units or, where slopes do not follow from these, the sums; `out` may be
 * `gradient`. */
struct activation_row {
    const char *name;
    bool back_takes_sums;
    void (*forward)(size_t n, double *units, const double *sums);
    void (*back)(size_t n, double *out, const double *gradient, const double *at);
    void (*forward_float)(size_t n, float *units, const float *sums);
    void (*back_float)(size_t n, float *out, const float *gradient, const float *at);
};
extern const struct activation_row activation_rows[ACTIVATIONS];

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

/* Why a device does not compute this (a constant), or NULL if it does. `curvature`: the run asks
 * for second derivatives, too. */
const char *objective_device_cannot(const struct objective_shape *shape, bool curvature);

#endif
