#include "tests/unit/network_fixture.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "numeric/fixed.h"

const struct net_format net_formats[NET_FORMATS] = {
    {true, VALUE_DOUBLE}, {true, VALUE_FLOAT}, {true, VALUE_ONES}, {false, VALUE_DOUBLE},
    {false, VALUE_FLOAT}, {false, VALUE_ONES}, {true, VALUE_BYTE}, {false, VALUE_BYTE}};

static double label_of(const struct objective_shape *shape, struct random *random) {
    switch (objective_of(shape->kind)->labels) {
    case LABEL_BINARY:
        return (double)random_below(random, 2);
    case LABEL_CLASSES:
        return (double)random_below(random, shape->outputs);
    case LABEL_ORDERED:
        return (double)random_below(random, shape->outputs + 1);
    case LABEL_LISTS:
        return (double)random_below(random, CANNED_LISTS);
    case LABEL_TARGET:
        break;
    }
    return 0.25 + 2 * random_unit(random);
}

static void fill_row(struct net *net, uint32_t i, struct random *random) {
    uint32_t v = net->start[i];
    for (uint32_t j = 0; j < net->shape.features; j++) {
        if (!net->rows.dense && random_below(random, 2))
            continue;
        float value = (float)(4 * random_unit(random) - 2);
        net->feature[v] = j;
        net->narrow[v] = value;
        net->byte[v] = (uint8_t)(v % 3);
        net->wide[v] = net->rows.type == VALUE_ONES    ? 1
                       : net->rows.type == VALUE_BYTE  ? net->byte[v]
                       : net->rows.type == VALUE_FLOAT ? value
                                                       : value * (1 + 0x1p-40);
        v++;
    }
    net->start[i + 1] = v;
    net->label[i] = label_of(&net->shape, random);
    net->weight[i] = 1;
}

void net_measure(struct net *net) {
    double absolute[NET_FEATURES_MAX] = {0};
    uint64_t count[NET_FEATURES_MAX] = {0};
    int16_t column[NET_FEATURES_MAX + 1] = {0};
    for (uint32_t i = 0; i < net->rows.count; i++)
        for (uint32_t v = net->start[i]; v < net->start[i + 1]; v++) {
            absolute[net->feature[v]] += fixed_weight(net->weight[i]) * fabs(net->wide[v]);
            count[net->feature[v]]++;
        }
    for (uint32_t j = 0; j < net->shape.features; j++)
        column[j] = (int16_t)fixed_exponent(absolute[j], count[j]);
    free(net->exponent);
    net->exponent = objective_exponents(&net->shape, column, 1);
}

struct net *net_new(struct objective_shape shape, uint32_t rows, bool dense, enum value_type type,
                    uint64_t seed) {
    struct net *net = memory_new(1, sizeof *net);
    struct random random;
    random_init(&random, seed);
    net->shape = shape;
    net->layout = objective_layout(&shape);
    net->n = layout_parameters(&net->layout);
    assert(net->n && net->n <= NET_PARAMETERS_MAX && shape.features <= NET_FEATURES_MAX);
    canned_list(shape.outputs, net->list_start, net->list_class);
    net->lists = (struct label_lists){CANNED_LISTS, net->list_start, net->list_class};
    net->rows = (struct rows){
        .count = rows, .features = objective_columns(&shape), .dense = dense, .type = type};
    for (uint32_t i = 0; i < rows; i++)
        fill_row(net, i, &random);
    net->rows.values = net->start[rows];
    net->rows.start = dense ? NULL : net->start;
    net->rows.feature = dense ? NULL : net->feature;
    net->rows.value = type == VALUE_ONES    ? NULL
                      : type == VALUE_BYTE  ? (const void *)net->byte
                      : type == VALUE_FLOAT ? (const void *)net->narrow
                                            : net->wide;
    net->rows.label = net->label;
    net->rows.lists = objective_of(shape.kind)->labels == LABEL_LISTS ? &net->lists : NULL;
    layout_start(&net->layout, 0, net->n, net->parameters);
    uint64_t biases = net->layout.tensor[net->layout.count / 2].first;
    for (uint64_t i = biases; i < net->n; i++)
        net->parameters[i] = random_unit(&random) - 0.5;
    net_measure(net);
    return net;
}

void net_free(struct net *net) {
    free(net->exponent);
    free(net);
}

struct objective_shape net_shape(enum objective_kind kind, enum activation activation,
                                 enum precision precision) {
    const struct objective *objective = objective_of(kind);
    bool several = objective->output_a_class || objective->shares_weights;
    return (struct objective_shape){.kind = kind,
                                    .features = 5,
                                    .outputs = several ? 3 : 1,
                                    .intercept = true,
                                    .loss = objective_defaults(kind),
                                    .network = {.layers = 2,
                                                .units = {4, 3},
                                                .activation = activation,
                                                .precision = precision,
                                                .seed = 5}};
}

/* ---- in extended precision, from the definitions ---- */

static long double activation_of(enum activation activation, long double x) {
    if (activation == ACTIVATION_TANH)
        return tanhl(x);
    if (activation == ACTIVATION_RELU)
        return x > 0 ? x : 0;
    long double root = sqrtl(2 / acosl(-1));
    return x / 2 * (1 + tanhl(root * (x + 0.044715L * x * x * x)));
}

/* The sums that layer l gets from `below`. */
static void layer(const struct net *net, const long double *parameters, uint32_t l,
                  const long double *below, long double *sums) {
    const struct layout_tensor *weight = &net->layout.tensor[l - 1];
    const struct layout_tensor *bias = &net->layout.tensor[net->layout.count / 2 + l - 1];
    for (uint64_t k = 0; k < bias->columns; k++) {
        uint64_t column = weight->columns == bias->columns ? k : 0;
        sums[k] = parameters[bias->first + k];
        for (uint64_t j = 0; j < weight->rows; j++)
            sums[k] += below[j] * parameters[weight->first + j * weight->columns + column];
    }
}

long double net_row_loss(const struct net *net, const long double *parameters, uint32_t i) {
    uint32_t layers = net->layout.count / 2;
    long double at[2][NET_FEATURES_MAX] = {{0}};
    for (uint32_t v = net->start[i]; v < net->start[i + 1]; v++)
        at[0][net->feature[v]] = net->wide[v];
    for (uint32_t l = 1; l <= layers; l++) {
        layer(net, parameters, l, at[(l - 1) % 2], at[l % 2]);
        for (uint32_t k = 0; l < layers && k < NET_FEATURES_MAX; k++)
            at[l % 2][k] = activation_of(net->shape.network.activation, at[l % 2][k]);
    }
    return canned_loss(&net->shape, net->label[i], at[layers % 2]);
}

long double net_loss(const struct net *net, const long double *parameters) {
    long double loss = 0;
    for (uint32_t i = 0; i < net->rows.count; i++)
        if (net->weight[i] > 0)
            loss += net->weight[i] * net_row_loss(net, parameters, i);
    return loss;
}

/* ---- what is tested ---- */

struct objective_result net_block(const struct net *net, const struct bounds *bounds,
                                  int64_t *sum) {
    struct objective_scale scale = {.exponent = net->exponent, .bounds = *bounds};
    struct objective_scratch *scratch = objective_scratch_new(&net->shape);
    struct objective_result result;
    const struct objective_need need = {.rows = rows_most_of(&net->rows), .gradient = true};
    objective_prepare(&net->shape, &need, scratch);
    memory_forbid();
    objective_block(&net->shape, &scale, &net->rows, net->parameters, sum, scratch, &result);
    memory_allow();
    objective_scratch_free(scratch);
    return result;
}

struct bounds net_bounds(const struct maxima *maxima) {
    struct bounds bounds = {.count = maxima->count};
    for (uint32_t t = 0; t < maxima->count; t++)
        bounds.exponent[t] = fixed_derivative_exponent(maxima->value[t]);
    return bounds;
}

struct objective_result net_gradient(const struct net *net, double *gradient) {
    struct bounds bounds = {.count = net->layout.count};
    struct objective_result found = net_block(net, &bounds, NULL);
    bounds = net_bounds(&found.maxima);
    int64_t *sum = memory_new(net->n, sizeof *sum);
    struct objective_result result = net_block(net, &bounds, sum);
    assert(!result.exceeded);
    for (uint64_t i = 0; i < net->n; i++) {
        struct layout_place place = layout_locate(&net->layout, i);
        int base = net->exponent[layout_exponent_of(&net->layout, i)];
        int bound = bounds.exponent[place.tensor - net->layout.tensor];
        gradient[i] = ldexp((double)sum[i], bound - base);
    }
    free(sum);
    return result;
}
