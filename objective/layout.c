/* What the parameters of a shape are: their layout and base exponents. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/objective.h"

/* Labels in units beyond 2^±this have units of their own to worry about. */
#define UNIT_EXPONENT_MAX 200

static const char *const activations[ACTIVATIONS] = {"tanh", "relu", "gelu"};
static const char *const precisions[PRECISIONS] = {"double", "float"};

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *activation_name(enum activation activation) {
    return activations[activation];
}

int activation_from_name(const char *name) {
    return find(activations, ACTIVATIONS, name);
}

const char *precision_name(enum precision precision) {
    return precisions[precision];
}

int precision_from_name(const char *name) {
    return find(precisions, PRECISIONS, name);
}

/* ---- linear models ---- */

static struct layout linear_layout(const struct objective_shape *shape) {
    uint32_t weights = objective_weights(objective_of(shape->kind), shape->outputs);
    struct layout layout =
        layout_linear_of(shape->features, weights, shape->intercept ? shape->outputs : 0);
    if (shape->intercept && shape->start != 0 && layout.count) {
        struct layout_tensor *bias = &layout.tensor[layout.count - 1];
        bias->start = LAYOUT_START_CONSTANT;
        bias->bound = shape->start;
    }
    return layout;
}

static void read_linear(struct objective_shape *shape, const struct layout *layout) {
    const struct layout_tensor *weight = layout_find(layout, TENSOR_WEIGHT);
    const struct layout_tensor *bias = layout_find(layout, TENSOR_BIAS);
    bool shares = objective_of(shape->kind)->shares_weights;
    const struct layout_tensor *outputs = shares ? bias : weight;
    shape->outputs = outputs ? (uint32_t)outputs->columns : 0;
    shape->intercept = bias != NULL;
    shape->start = bias ? bias->bound : 0;
    shape->network.layers = 0;
}

/* ---- networks ---- */

/* The outputs of layer `number`, from 1; those of layer 0 are the features. */
static uint64_t layer_width(const struct objective_shape *shape, uint32_t number) {
    const struct network *network = &shape->network;
    if (number == 0)
        return shape->features;
    if (number <= network->layers)
        return network->units[number - 1];
    return objective_weights(objective_of(shape->kind), shape->outputs);
}

static double weight_bound(enum activation activation, uint64_t in, uint64_t out) {
    uint64_t fans = activation == ACTIVATION_RELU ? in : in + out;
    return sqrt(6 / (double)(fans ? fans : 1));
}

static bool add_weight(struct layout *layout, const struct objective_shape *shape,
                       uint32_t number) {
    uint64_t in = layer_width(shape, number - 1), out = layer_width(shape, number);
    struct layout_tensor tensor = {
        .rows = in,
        .columns = out,
        .regularized = true,
        .exponents =
            number == 1 && !shape->network.mixed ? LAYOUT_EXPONENT_A_ROW : LAYOUT_ONE_EXPONENT,
        .start = LAYOUT_START_UNIFORM,
        .bound = weight_bound(shape->network.activation, in, out),
    };
    snprintf(tensor.name, sizeof tensor.name, "W%u", number);
    return layout_add(layout, &tensor);
}

static bool add_bias(struct layout *layout, const struct objective_shape *shape, uint32_t number) {
    bool last = number > shape->network.layers;
    struct layout_tensor tensor = {
        .rows = 1,
        .columns = last ? shape->outputs : layer_width(shape, number),
        .exponents = LAYOUT_ONE_EXPONENT,
    };
    if (last && shape->start != 0) {
        tensor.start = LAYOUT_START_CONSTANT;
        tensor.bound = shape->start / network_unit(&shape->network);
    }
    snprintf(tensor.name, sizeof tensor.name, "b%u", number);
    return layout_add(layout, &tensor);
}

static struct layout network_layout(const struct objective_shape *shape) {
    struct layout layout = {.seed = shape->network.seed};
    uint32_t layers = shape->network.layers + 1;
    bool fits = shape->intercept && shape->network.layers <= NETWORK_LAYERS_MAX;
    for (uint32_t i = 1; fits && i <= layers; i++)
        fits = add_weight(&layout, shape, i);
    for (uint32_t i = 1; fits && i <= layers; i++)
        fits = add_bias(&layout, shape, i);
    return fits ? layout : (struct layout){0};
}

static bool is_network(const struct layout *layout) {
    return layout->count >= 4 && strcmp(layout->tensor[0].name, "W1") == 0;
}

bool objective_is_mixed(const struct layout *layout) {
    return is_network(layout) && layout->tensor[0].exponents == LAYOUT_ONE_EXPONENT;
}

/* Half of the tensors are weights, and the last of them leads to the outputs. Widths may be
 * anything that a blob says: what does not fit 32 bits is no network that objective_layout() makes.
 */
static void read_network(struct objective_shape *shape, const struct layout *layout) {
    uint32_t layers = layout->count / 2;
    struct network *network = &shape->network;
    memset(network->units, 0, sizeof network->units);
    network->layers = layers - 1;
    network->seed = layout->seed;
    network->mixed = objective_is_mixed(layout);
    for (uint32_t i = 0; i + 1 < layers; i++)
        network->units[i] = (uint32_t)layout->tensor[i].columns;
    const struct layout_tensor *last = &layout->tensor[layout->count - 1];
    shape->outputs = (uint32_t)last->columns;
    shape->intercept = true;
    shape->start = last->bound * network_unit(network);
}

/* The spread of three quarters of the labels, which is about twice the deviation; else all of it.
 */
double objective_unit(const struct objective *objective, const struct label_summary *labels) {
    const size_t last = LABEL_QUANTILES - 1;
    if (!objective->unit_power || !labels)
        return 1;
    double spread = labels->quantile[last - last / 8] - labels->quantile[last / 8];
    if (!(spread > 0))
        spread = labels->quantile[last] - labels->quantile[0];
    int exponent;
    bool sound = isnormal(spread) && (frexp(spread, &exponent), abs(exponent) <= UNIT_EXPONENT_MAX);
    return sound ? ldexp(1, exponent - 1) : 1;
}

double objective_loss_unit(const struct objective *objective, const struct network *network) {
    double unit = 1;
    for (unsigned i = 0; i < objective->unit_power; i++)
        unit *= network_unit(network);
    return unit;
}

void objective_scale_outputs(const struct layout *layout, double factor, uint64_t first,
                             uint64_t count, double *elements) {
    if (factor == 1)
        return;
    for (uint32_t t = layout->count / 2 - 1; t < layout->count; t += layout->count / 2) {
        const struct layout_tensor *tensor = &layout->tensor[t];
        uint64_t end = tensor->first + tensor->rows * tensor->columns;
        for (uint64_t i = 0; i < count; i++)
            if (first + i >= tensor->first && first + i < end)
                elements[i] *= factor;
    }
}

/* ---- both ---- */

struct layout objective_layout(const struct objective_shape *shape) {
    if (shape->plugin)
        return shape->plugin->tensors.layout;
    return shape->network.layers ? network_layout(shape) : linear_layout(shape);
}

uint64_t objective_parameters(const struct objective_shape *shape) {
    struct layout layout = objective_layout(shape);
    return layout_parameters(&layout);
}

void objective_read_layout(struct objective_shape *shape, const struct layout *layout) {
    if (is_network(layout))
        read_network(shape, layout);
    else
        read_linear(shape, layout);
}

bool objective_rounds_chunks(const struct objective_shape *shape) {
    return shape->network.layers || shape->plugin;
}

static int ceil_log2(uint64_t n) {
    int log = 0;
    while (log < 63 && UINT64_C(1) << log < n)
        log++;
    return log;
}

int16_t *objective_exponents(const struct objective_shape *shape, const int16_t *columns,
                             uint64_t chunks) {
    struct layout layout = objective_layout(shape);
    uint64_t count = layout_exponents(&layout);
    bool network = shape->network.layers > 0, by_column = network && !shape->network.mixed;
    bool rounds_once = objective_rounds_chunks(shape);
    int16_t *exponents = memory_new(count, sizeof *exponents);
    int share = 61 - ceil_log2(chunks); /* so that terms of all chunks stay below 2⁶² */
    for (uint64_t i = 0; i < count; i++) {
        int exponent = rounds_once ? share : columns[i];
        if (by_column && i < shape->features)
            exponent += columns[i] - 62;
        exponents[i] = (int16_t)(exponent < FIXED_EXPONENT_MIN ? FIXED_EXPONENT_MIN : exponent);
    }
    return exponents;
}

/* Rounding of the first evaluation is a share of these bounds, and exceeding one costs a pass: so
 * there is room for larger activations and derivatives than units of size 1 have. */
#define FIRST_ROOM 16

/* Nothing is known of a plug-in but how much a chunk weighs. */
static struct bounds plugin_first_bounds(const struct objective_shape *shape, double weight,
                                         uint64_t chunks) {
    double chunk = weight / (double)(chunks ? chunks : 1);
    struct bounds bounds = {.count = shape->plugin->tensors.layout.count};
    for (uint32_t t = 0; t < bounds.count; t++)
        bounds.exponent[t] =
            fixed_derivative_exponent(fmin(FIRST_ROOM * (chunk > 1 ? chunk : 1), DBL_MAX));
    return bounds;
}

struct bounds objective_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                     double weight, uint64_t chunks) {
    if (shape->plugin)
        return plugin_first_bounds(shape, weight, chunks);
    double derivative = objective_bound(shape, label_max_abs);
    if (!shape->network.layers)
        return bounds_of_one(fixed_derivative_exponent(derivative));
    double chunk = weight / (double)(chunks ? chunks : 1);
    if (!(chunk > 1))
        chunk = 1;
    int each = fixed_derivative_exponent(fmin(FIRST_ROOM * derivative * chunk, DBL_MAX));
    struct bounds bounds = {.count = 2 * (shape->network.layers + 1)};
    for (uint32_t t = 0; t < bounds.count; t++)
        bounds.exponent[t] = each;
    /* What a chunk adds to W1 counts in shares of all that its columns hold. */
    if (!shape->network.mixed)
        bounds.exponent[0] = fixed_derivative_exponent(fmin(FIRST_ROOM * derivative, DBL_MAX));
    return bounds;
}
