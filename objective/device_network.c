#include "objective/device_pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/device_chunks.h"
#include "objective/device_network_kernels.h"

#define ITEMS_A_BLOCK 1024 /* that its threads go over, where items are small */

_Static_assert(NETWORK_STRIP <= NETWORK_SPREAD, "k moves a row within a thread's spread only");
_Static_assert(NETWORK_TENSORS_MAX == TENSORS_MAX, "a bound a tensor");
_Static_assert(ACTIVATION_TANH == NETWORK_TANH && ACTIVATION_RELU == NETWORK_RELU &&
                   ACTIVATION_GELU == NETWORK_GELU,
               "kernels have the same activations");

/* A shape, and memory for the units and gradients of a pass. */
struct device_network {
    struct device *device;
    struct objective_shape shape;
    struct layout layout;
    bool narrow;
    size_t size;                            /* of a real */
    uint32_t layers;                        /* L, with that of the outputs */
    uint32_t width[NETWORK_LAYERS_MAX + 2]; /* as in struct network_scratch */

    const double *parameters;
    struct device_room rounded; /* the parameters as floats, of a narrow network */

    /* What the chunks of a pass need. */
    struct device_room units[NETWORK_LAYERS_MAX], sums[NETWORK_LAYERS_MAX]; /* as there */
    struct device_room error[2];
    struct device_room first;    /* sparse: the gradients of W1, a row a column that a chunk has */
    struct device_room gradient; /* of each chunk those of all tensors; sparse: but W1 */
    struct device_room maxima, holds;
    double *maxima_here;
};

static void take_shape(struct device_network *network, const struct objective_shape *shape) {
    network->shape = *shape;
    network->layout = objective_layout(shape);
    network->narrow = shape->network.precision == PRECISION_FLOAT;
    network->size = network->narrow ? sizeof(float) : sizeof(double);
    network->layers = shape->network.layers + 1;
    network->width[0] = objective_columns(shape);
    for (uint32_t l = 1; l <= network->layers; l++)
        network->width[l] = (uint32_t)network->layout.tensor[l - 1].columns;
}

static int reserve(struct device_network *network, struct device_room *room, uint64_t bytes) {
    return device_room_reserve(network->device, room, bytes);
}

static void network_close(void *own) {
    struct device_network *network = own;
    if (!network)
        return;
    struct device_room *rooms[] = {&network->rounded, &network->error[0], &network->error[1],
                                   &network->first,   &network->gradient, &network->maxima,
                                   &network->holds};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        device_room_release(network->device, rooms[i]);
    for (size_t l = 0; l < NETWORK_LAYERS_MAX; l++) {
        device_room_release(network->device, &network->units[l]);
        device_room_release(network->device, &network->sums[l]);
    }
    free(network->maxima_here);
    free(network);
}

static int network_open(struct device *device, const struct objective_shape *shape, void **own) {
    struct device_network *network = memory_new(1, sizeof *network);
    network->device = device;
    take_shape(network, shape);
    *own = network;
    if (!network->narrow)
        return 0;
    uint64_t n = layout_parameters(&network->layout);
    int error = reserve(network, &network->rounded, n * sizeof(float));
    if (error) {
        network_close(network);
        *own = NULL;
    }
    return error;
}

/* ---- memory ---- */

static bool keeps_sums(const struct device_network *network) {
    return activation_rows[network->shape.network.activation].back_takes_sums;
}

/* The first element of a chunk's gradient that is in `gradient`. */
static uint64_t first_element(const struct device_network *network, bool dense) {
    return dense ? 0 : network->layout.tensor[1].first;
}

/* The elements of a chunk's gradient that are. */
static uint64_t stride_of(const struct device_network *network, bool dense) {
    return layout_parameters(&network->layout) - first_element(network, dense);
}

/* The widest of the layers whose errors are in error[i]. */
static uint64_t widest(const struct device_network *network, uint32_t i) {
    uint32_t most = 0;
    for (uint32_t l = 1; l <= network->layers; l++)
        if (l % 2 == i && network->width[l] > most)
            most = network->width[l];
    return most;
}

static struct device_costs network_costs(const struct objective_shape *shape) {
    struct device_network network = {0};
    take_shape(&network, shape);
    uint64_t each = network.layout.count * sizeof(uint64_t) + sizeof(uint32_t);
    struct device_costs costs = {
        .fixed = network.narrow ? layout_parameters(&network.layout) * sizeof(float) : 0,
        .row = (widest(&network, 0) + widest(&network, 1)) * network.size,
        .dense_chunk = stride_of(&network, true) * network.size + each,
        .sparse_chunk = stride_of(&network, false) * network.size + each,
        .column = network.width[1] * network.size,
    };
    for (uint32_t l = 1; l < network.layers; l++)
        costs.row += network.width[l] * network.size * (keeps_sums(&network) ? 2 : 1);
    return costs;
}

static int room_for_gradient(struct device_network *network, const struct device_pass *pass) {
    const uint64_t size = network->size, count = pass->count;
    const struct {
        struct device_room *room;
        uint64_t bytes;
    } rooms[] = {
        {&network->error[0], pass->rows * widest(network, 0) * size},
        {&network->error[1], pass->rows * widest(network, 1) * size},
        {&network->gradient, count * stride_of(network, pass->dense) * size},
        {&network->first, pass->dense ? 0 : pass->columns * network->width[1] * size},
        {&network->maxima, count * network->layout.count * sizeof(uint64_t)},
        {&network->holds, count * sizeof(uint32_t)},
    };
    int error = 0;
    network->maxima_here = memory_resize(network->maxima_here, count * network->layout.count,
                                         sizeof *network->maxima_here);
    for (size_t i = 0; !error && i < sizeof rooms / sizeof *rooms; i++)
        error = reserve(network, rooms[i].room, rooms[i].bytes);
    return error;
}

/* ---- launches ---- */

static int launch(struct device_network *network, const struct device_pass *pass,
                  const struct kernel *kernel, uint64_t blocks_each, const void *arguments) {
    return device_launch(network->device, QUEUE_COMPUTE, kernel, pass->count * blocks_each,
                         arguments);
}

static struct network_group group_of(const struct device_network *network,
                                     const struct device_pass *pass, uint64_t blocks_each) {
    return (struct network_group){.chunks = pass->chunks,
                                  .count = pass->count,
                                  .blocks_each = (uint32_t)blocks_each,
                                  .narrow = network->narrow};
}

static struct network_scale scale_for(const struct device_network *network,
                                      const struct device_pass *pass) {
    return (struct network_scale){.exponent = pass->exponent,
                                  .uniform = pass->uniform,
                                  .tensors = network->layout.count,
                                  .maxima = network->maxima.memory};
}

/* The parameters of a tensor as reals. */
static const void *reals_of(const struct device_network *network, uint32_t tensor) {
    uint64_t first = network->layout.tensor[tensor].first;
    if (!network->narrow)
        return network->parameters + first;
    return (const float *)network->rounded.memory + first;
}

static int network_point(void *own, const double *parameters) {
    struct device_network *network = own;
    uint64_t n = layout_parameters(&network->layout);
    struct network_convert_arguments arguments = {parameters, network->rounded.memory, n};
    network->parameters = parameters;
    if (!network->narrow)
        return 0;
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_convert,
                         device_pass_blocks(n, ITEMS_A_BLOCK), &arguments);
}

/* ---- forward ---- */

/* Layer l, from 1. */
static int layer_forward(struct device_network *network, const struct device_pass *pass,
                         uint32_t l) {
    uint32_t in = network->width[l - 1], out = network->width[l];
    assert(l >= 1 && l <= network->layers);
    bool last = l == network->layers, sparse = l == 1 && !pass->dense;
    uint64_t parts = sparse ? device_pass_blocks((uint64_t)pass->rows_most * out, ITEMS_A_BLOCK)
                            : network_tiles(pass->rows_most, out);
    const struct network_sparse_layer_arguments arguments = {
        .layer = {.group = group_of(network, pass, parts),
                  .from = l == 1 ? NULL : network->units[l - 2].memory,
                  .in = in,
                  .out = out,
                  .weight = reals_of(network, l - 1),
                  .bias = reals_of(network, network->layers + l - 1),
                  .activation = (uint32_t)network->shape.network.activation,
                  .sums = last ? NULL : network->sums[l - 1].memory,
                  .units = last ? NULL : network->units[l - 1].memory,
                  .outputs = network->shape.outputs,
                  .unit = network_unit(&network->shape.network),
                  .margins = pass->margins}};
    if (sparse)
        return launch(network, pass, &kernel_network_sparse_layer, parts, &arguments);
    return launch(network, pass, &kernel_network_layer, parts, &arguments.layer);
}

static int network_margins(void *own, const struct device_pass *pass) {
    struct device_network *network = own;
    int error = 0;
    for (uint32_t l = 1; !error && l < network->layers; l++) {
        uint64_t bytes = pass->rows * network->width[l] * network->size;
        error = reserve(network, &network->units[l - 1], bytes);
        if (!error && keeps_sums(network))
            error = reserve(network, &network->sums[l - 1], bytes);
    }
    for (uint32_t l = 1; !error && l <= network->layers; l++)
        error = layer_forward(network, pass, l);
    return error;
}

/* ---- backward ---- */

static int last_error(struct device_network *network, const struct device_pass *pass) {
    uint32_t last = network->layers, out = network->width[last];
    uint32_t parts = device_pass_blocks((uint64_t)pass->rows_most * out, ITEMS_A_BLOCK);
    const struct network_last_error_arguments arguments = {
        .group = group_of(network, pass, parts),
        .derivatives = pass->margins,
        .unit = network_unit(&network->shape.network),
        .outputs = network->shape.outputs,
        .out = out,
        .error = network->error[last % 2].memory};
    return launch(network, pass, &kernel_network_last_error, parts, &arguments);
}

/* From the error of layer l + 1 to that of layer l. */
static int error_back(struct device_network *network, const struct device_pass *pass, uint32_t l) {
    uint64_t tiles = network_tiles(pass->rows_most, network->width[l]);
    assert(l >= 1 && l < network->layers);
    const struct network_error_arguments arguments = {
        .group = group_of(network, pass, tiles),
        .above = network->error[(l + 1) % 2].memory,
        .weight = reals_of(network, l),
        .in = network->width[l],
        .out = network->width[l + 1],
        .activation = (uint32_t)network->shape.network.activation,
        .units = keeps_sums(network) ? network->sums[l - 1].memory : network->units[l - 1].memory,
        .error = network->error[l % 2].memory};
    return launch(network, pass, &kernel_network_error, tiles, &arguments);
}

/* What the kernels of gradients ask of a tensor in `gradient`. */
static struct network_gradient_arguments gradient_of(const struct device_network *network,
                                                     const struct device_pass *pass,
                                                     uint32_t tensor, uint64_t parts) {
    const struct layout_tensor *which = &network->layout.tensor[tensor];
    assert(which->first >= first_element(network, pass->dense));
    uint64_t element = which->first - first_element(network, pass->dense);
    return (struct network_gradient_arguments){.group = group_of(network, pass, parts),
                                               .scale = scale_for(network, pass),
                                               .out = (uint32_t)which->columns,
                                               .rows_most = pass->rows_most,
                                               .gradient = (char *)network->gradient.memory +
                                                           element * network->size,
                                               .stride = stride_of(network, pass->dense),
                                               .tensor = tensor,
                                               .first_exponent = which->first_exponent,
                                               .by_row = which->exponents == LAYOUT_EXPONENT_A_ROW};
}

static int bias_gradient(struct device_network *network, const struct device_pass *pass,
                         uint32_t l) {
    bool last = l == network->layers;
    uint32_t tensor = network->layers + l - 1;
    struct network_bias_arguments arguments;
    uint64_t parts = (network->layout.tensor[tensor].columns + kernel_network_bias.threads - 1) /
                     kernel_network_bias.threads;
    arguments.gradient = gradient_of(network, pass, tensor, parts);
    arguments.gradient.error = last ? NULL : network->error[l % 2].memory;
    arguments.gradient.derivatives = pass->margins;
    return launch(network, pass, &kernel_network_bias, parts, &arguments);
}

static int sparse_gradient(struct device_network *network, const struct device_pass *pass) {
    uint32_t parts =
        device_pass_blocks((uint64_t)pass->columns_most * network->width[1], ITEMS_A_BLOCK);
    struct network_sparse_gradient_arguments arguments;
    arguments.gradient = gradient_of(network, pass, 1, parts);
    arguments.gradient.out = network->width[1];
    arguments.gradient.gradient = network->first.memory;
    arguments.gradient.tensor = 0;
    arguments.gradient.first_exponent = network->layout.tensor[0].first_exponent;
    arguments.gradient.by_row = true;
    arguments.gradient.error = network->error[1].memory;
    return launch(network, pass, &kernel_network_sparse_gradient, parts, &arguments);
}

static int layer_backward(struct device_network *network, const struct device_pass *pass,
                          uint32_t l) {
    int error = l == network->layers ? last_error(network, pass) : error_back(network, pass, l);
    if (!error)
        error = bias_gradient(network, pass, l);
    if (error)
        return error;
    if (l == 1 && !pass->dense)
        return sparse_gradient(network, pass);
    uint64_t tiles = network_tiles(network->width[l - 1], network->width[l]);
    struct network_gradient_arguments arguments = gradient_of(network, pass, l - 1, tiles);
    arguments.from = l == 1 ? NULL : network->units[l - 2].memory;
    arguments.in = network->width[l - 1];
    arguments.error = network->error[l % 2].memory;
    return launch(network, pass, &kernel_network_gradient, tiles, &arguments);
}

/* ---- to fixed point ---- */

static int check(struct device_network *network, const struct device_pass *pass,
                 const struct bounds *bounds) {
    struct network_check_arguments arguments = {.group = group_of(network, pass, 1),
                                                .scale = scale_for(network, pass),
                                                .share = layout_exponents(&network->layout) - 1,
                                                .loss = pass->chunk_loss,
                                                .holds = network->holds.memory};
    for (uint32_t t = 0; t < network->layout.count; t++)
        arguments.bound[t] = fixed_power(bounds_exponent(bounds, t));
    uint32_t threads = kernel_network_check.threads;
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_check,
                         (pass->count + threads - 1) / threads, &arguments);
}

static struct network_tensor tensor_of(const struct device_network *network,
                                       const struct bounds *bounds, uint32_t t) {
    const struct layout_tensor *tensor = &network->layout.tensor[t];
    return (struct network_tensor){.end = tensor->first + tensor->rows * tensor->columns,
                                   .first = tensor->first,
                                   .first_exponent = tensor->first_exponent,
                                   .columns = tensor->columns,
                                   .by_row = tensor->exponents == LAYOUT_EXPONENT_A_ROW,
                                   .inverse = fixed_power(-bounds_exponent(bounds, t))};
}

static int add(struct device_network *network, const struct device_pass *pass,
               const struct bounds *bounds) {
    struct network_add_arguments arguments = {.group = group_of(network, pass, 1),
                                              .scale = scale_for(network, pass),
                                              .holds = network->holds.memory,
                                              .gradient = network->gradient.memory,
                                              .stride = stride_of(network, pass->dense),
                                              .first = first_element(network, pass->dense),
                                              .end = layout_parameters(&network->layout),
                                              .sum = pass->sum};
    for (uint32_t t = 0; t < network->layout.count; t++)
        arguments.tensors[t] = tensor_of(network, bounds, t);
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_add,
                         device_pass_blocks(stride_of(network, pass->dense), ITEMS_A_BLOCK),
                         &arguments);
}

static int network_gradient(void *own, const struct device_pass *pass,
                            const struct bounds *bounds) {
    struct device_network *network = own;
    int error = room_for_gradient(network, pass);
    if (!error)
        error = device_fill(network->device, QUEUE_COMPUTE, network->maxima.memory, 0,
                            pass->count * network->layout.count * sizeof(uint64_t));
    for (uint32_t l = network->layers; !error && l >= 1; l--)
        error = layer_backward(network, pass, l);
    if (!error)
        error = check(network, pass, bounds);
    if (!error && pass->sum)
        error = add(network, pass, bounds);
    if (!error && pass->sum && !pass->dense) {
        uint32_t parts =
            device_pass_blocks((uint64_t)pass->columns_most * network->width[1], ITEMS_A_BLOCK);
        const struct network_add_first_arguments arguments = {
            .group = group_of(network, pass, parts),
            .scale = scale_for(network, pass),
            .tensor = tensor_of(network, bounds, 0),
            .holds = network->holds.memory,
            .gradient = network->first.memory,
            .sum = pass->sum};
        error = launch(network, pass, &kernel_network_add_first, parts, &arguments);
    }
    return error;
}

static int network_maxima(void *own, uint32_t count, struct maxima *maxima) {
    struct device_network *network = own;
    uint32_t tensors = network->layout.count;
    size_t each = tensors * sizeof(double);
    int error = device_get(network->device, QUEUE_COMPUTE, network->maxima_here,
                           network->maxima.memory, count * each);
    for (uint32_t c = 0; !error && c < count; c++) {
        maxima[c].count = tensors;
        memcpy(maxima[c].value, network->maxima_here + (size_t)c * tensors, each);
    }
    return error;
}

const struct device_family device_family_network = {
    .family = &family_network,
    .lists_columns = true,
    .open = network_open,
    .close = network_close,
    .costs = network_costs,
    .point = network_point,
    .margins = network_margins,
    .gradient = network_gradient,
    .maxima = network_maxima,
};
