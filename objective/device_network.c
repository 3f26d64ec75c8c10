#include "objective/device_network.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "objective/device_columns.h"
#include "objective/device_network_kernels.h"

#undef KERNEL
#define KERNEL(name, threads, shared, phases) extern const struct kernel kernel_##name;
#include "objective/device_network_kernels.def"
#undef KERNEL

#define ITEMS_A_BLOCK 1024 /* that its threads go over, where items are small */
#define PARTS_MOST 4096    /* of a chunk */

_Static_assert(NETWORK_TENSORS_MAX == TENSORS_MAX, "a bound a tensor");
_Static_assert(ACTIVATION_TANH == NETWORK_TANH && ACTIVATION_RELU == NETWORK_RELU &&
                   ACTIVATION_GELU == NETWORK_GELU,
               "kernels have the same activations");

/* Memory that grows. */
struct room {
    void *memory;
    uint64_t bytes;
};

struct device_network {
    struct device *device;
    struct objective_shape shape;
    struct layout layout;
    bool narrow, dense;
    size_t size;                            /* of a real */
    uint32_t layers;                        /* L, with that of the outputs */
    uint32_t width[NETWORK_LAYERS_MAX + 2]; /* as in struct network_scratch */

    const double *parameters;
    struct room rounded; /* the same as floats, of a narrow network */

    /* Of the chunks of a pass. */
    struct room units[NETWORK_LAYERS_MAX], sums[NETWORK_LAYERS_MAX]; /* as in network_scratch */
    struct room error[2];
    struct room first;    /* sparse: the gradients of W1, a row a column that a chunk has */
    struct room gradient; /* of each chunk those of all tensors; sparse: but W1 */
    struct room chunks, maxima, holds;
    uint32_t columns_most; /* of a chunk */
    uint64_t columns;      /* of all */

    struct device_columns *lister; /* NULL if all rows are dense */
};

static int make_room(struct device_network *network, struct room *room, uint64_t bytes) {
    if (bytes <= room->bytes)
        return 0;
    device_delete(network->device, room->memory);
    room->memory = NULL;
    room->bytes = 0;
    int error = device_new(network->device, bytes, &room->memory);
    if (!error)
        room->bytes = bytes;
    return error;
}

static void take_shape(struct device_network *network, const struct objective_shape *shape) {
    network->shape = *shape;
    network->layout = objective_layout(shape);
    network->narrow = shape->network.precision == PRECISION_FLOAT;
    network->size = network->narrow ? sizeof(float) : sizeof(double);
    network->layers = shape->network.layers + 1;
    network->width[0] = shape->features;
    for (uint32_t l = 1; l <= network->layers; l++)
        network->width[l] = (uint32_t)network->layout.tensor[l - 1].columns;
}

int device_network_new(struct device *device, const struct objective_shape *shape, bool dense,
                       struct device_network **out) {
    struct device_network *network = memory_new(1, sizeof *network);
    network->device = device;
    network->dense = dense;
    take_shape(network, shape);
    network->lister = dense ? NULL : device_columns_new(shape->features);
    *out = network;
    if (!network->narrow)
        return 0;
    int error =
        make_room(network, &network->rounded, layout_parameters(&network->layout) * sizeof(float));
    if (error) {
        device_network_free(network);
        *out = NULL;
    }
    return error;
}

void device_network_free(struct device_network *network) {
    if (!network)
        return;
    struct room *rooms[] = {&network->rounded, &network->error[0], &network->error[1],
                            &network->first,   &network->gradient, &network->chunks,
                            &network->maxima,  &network->holds};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        device_delete(network->device, rooms[i]->memory);
    for (size_t l = 0; l < NETWORK_LAYERS_MAX; l++) {
        device_delete(network->device, network->units[l].memory);
        device_delete(network->device, network->sums[l].memory);
    }
    device_columns_free(network->lister);
    free(network);
}

/* ---- memory ---- */

static bool keeps_sums(const struct device_network *network) {
    return network->shape.network.activation == ACTIVATION_GELU;
}

/* The first element of a chunk's gradient that is in `gradient`. */
static uint64_t first_element(const struct device_network *network) {
    return network->dense ? 0 : network->layout.tensor[1].first;
}

static uint64_t stride_of(const struct device_network *network) {
    return layout_parameters(&network->layout) - first_element(network);
}

/* The widths of the layers whose errors are in error[i]. */
static uint64_t widest(const struct device_network *network, uint32_t i) {
    uint32_t most = 0;
    for (uint32_t l = 1; l <= network->layers; l++)
        if (l % 2 == i && network->width[l] > most)
            most = network->width[l];
    return most;
}

struct device_network_room device_network_room(const struct objective_shape *shape, bool dense) {
    struct device_network network = {.dense = dense};
    take_shape(&network, shape);
    struct device_network_room room = {
        .fixed = network.narrow ? layout_parameters(&network.layout) * sizeof(float) : 0,
        .row = (widest(&network, 0) + widest(&network, 1)) * network.size,
        .chunk = stride_of(&network) * network.size + network.layout.count * sizeof(uint64_t) +
                 sizeof(struct network_chunk) + sizeof(uint32_t),
        .column = dense ? 0 : network.width[1] * network.size,
    };
    for (uint32_t l = 1; l < network.layers; l++)
        room.row += network.width[l] * network.size * (keeps_sums(&network) ? 2 : 1);
    return room;
}

static int room_for_units(struct device_network *network, uint64_t rows) {
    int error = 0;
    for (uint32_t l = 1; !error && l < network->layers; l++) {
        uint64_t bytes = rows * network->width[l] * network->size;
        error = make_room(network, &network->units[l - 1], bytes);
        if (!error && keeps_sums(network))
            error = make_room(network, &network->sums[l - 1], bytes);
    }
    return error;
}

static int room_for_gradient(struct device_network *network, const struct device_pass *pass) {
    uint64_t size = network->size;
    int error = 0;
    for (uint32_t i = 0; !error && i < 2; i++)
        error = make_room(network, &network->error[i], pass->rows * widest(network, i) * size);
    if (!error)
        error = make_room(network, &network->gradient, pass->count * stride_of(network) * size);
    if (!error && !network->dense)
        error = make_room(network, &network->first, network->columns * network->width[1] * size);
    if (!error)
        error = make_room(network, &network->maxima,
                          pass->count * network->layout.count * sizeof(uint64_t));
    if (!error)
        error = make_room(network, &network->holds, pass->count * sizeof(uint32_t));
    return error;
}

/* ---- chunks ---- */

static bool weighs(const struct rows *rows) {
    if (!rows->weight)
        return rows->count > 0;
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->weight[i] != 0)
            return true;
    return false;
}

struct device_network_chunk device_network_list(struct device_network *network,
                                                const struct rows *rows, const void **list,
                                                size_t *bytes) {
    struct device_network_chunk chunk = {.weighs = weighs(rows)};
    *list = NULL;
    *bytes = 0;
    if (!rows->dense)
        *list = device_columns_list(network->lister, rows, &chunk.columns, bytes);
    return chunk;
}

/* Where the parts of a list are on the device. */
static struct network_chunk on_device(const struct device_network_chunk *chunk, uint64_t before) {
    struct network_chunk there = {
        .first_column = before, .columns = chunk->columns, .weighs = chunk->weighs};
    if (chunk->list) {
        there.column = chunk->list;
        there.start = there.column + chunk->columns;
        there.value = there.start + chunk->columns + 1;
    }
    return there;
}

static int take_chunks(struct device_network *network, const struct device_pass *pass,
                       const struct device_network_chunk *chunks) {
    uint64_t bytes = pass->count * sizeof(struct network_chunk);
    struct network_chunk *there = memory_new(pass->count, sizeof *there);
    network->columns = network->columns_most = 0;
    for (uint32_t c = 0; c < pass->count; c++) {
        there[c] = on_device(&chunks[c], network->columns);
        network->columns += chunks[c].columns;
        if (chunks[c].columns > network->columns_most)
            network->columns_most = chunks[c].columns;
    }
    int error = make_room(network, &network->chunks, bytes);
    if (!error)
        error = device_put(network->device, QUEUE_COMPUTE, network->chunks.memory, there, bytes);
    free(there);
    return error;
}

/* ---- launches ---- */

static int launch(struct device_network *network, const struct device_pass *pass,
                  const struct kernel *kernel, uint64_t blocks_each, const void *arguments) {
    return device_launch(network->device, QUEUE_COMPUTE, kernel, pass->count * blocks_each,
                         arguments);
}

/* Parts of a chunk with so many items. */
static uint32_t parts_of(uint64_t items) {
    uint64_t parts = (items + ITEMS_A_BLOCK - 1) / ITEMS_A_BLOCK;
    return (uint32_t)(parts < 1 ? 1 : parts > PARTS_MOST ? PARTS_MOST : parts);
}

static struct network_group group_of(const struct device_network *network,
                                     const struct device_pass *pass, uint64_t blocks_each) {
    return (struct network_group){.chunks = pass->chunks,
                                  .networks = network->chunks.memory,
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

int device_network_point(struct device_network *network, const double *parameters) {
    uint64_t n = layout_parameters(&network->layout);
    struct network_convert_arguments arguments = {parameters, network->rounded.memory, n};
    network->parameters = parameters;
    if (!network->narrow)
        return 0;
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_convert, parts_of(n),
                         &arguments);
}

/* ---- forward ---- */

/* Layer l, from 1. */
static int layer_forward(struct device_network *network, const struct device_pass *pass,
                         uint32_t l) {
    uint32_t in = network->width[l - 1], out = network->width[l];
    bool last = l == network->layers, sparse = l == 1 && !network->dense;
    uint64_t parts =
        sparse ? parts_of((uint64_t)pass->rows_most * out) : network_tiles(pass->rows_most, out);
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

int device_network_margins(struct device_network *network, const struct device_pass *pass,
                           const struct device_network_chunk *chunks) {
    int error = take_chunks(network, pass, chunks);
    if (!error)
        error = room_for_units(network, pass->rows);
    for (uint32_t l = 1; !error && l <= network->layers; l++)
        error = layer_forward(network, pass, l);
    return error;
}

/* ---- backward ---- */

static int last_error(struct device_network *network, const struct device_pass *pass) {
    uint32_t last = network->layers, out = network->width[last];
    uint32_t parts = parts_of((uint64_t)pass->rows_most * out);
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
    uint64_t element = which->first - first_element(network);
    return (struct network_gradient_arguments){.group = group_of(network, pass, parts),
                                               .scale = scale_for(network, pass),
                                               .out = (uint32_t)which->columns,
                                               .rows_most = pass->rows_most,
                                               .gradient = (char *)network->gradient.memory +
                                                           element * network->size,
                                               .stride = stride_of(network),
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

static int weight_gradient(struct device_network *network, const struct device_pass *pass,
                           uint32_t l) {
    uint64_t tiles = network_tiles(network->width[l - 1], network->width[l]);
    struct network_gradient_arguments arguments = gradient_of(network, pass, l - 1, tiles);
    arguments.from = l == 1 ? NULL : network->units[l - 2].memory;
    arguments.in = network->width[l - 1];
    arguments.error = network->error[l % 2].memory;
    return launch(network, pass, &kernel_network_gradient, tiles, &arguments);
}

static int sparse_gradient(struct device_network *network, const struct device_pass *pass) {
    uint32_t parts = parts_of((uint64_t)network->columns_most * network->width[1]);
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
    if (l == 1 && !network->dense)
        return sparse_gradient(network, pass);
    return weight_gradient(network, pass, l);
}

/* ---- to fixed point ---- */

static int judge(struct device_network *network, const struct device_pass *pass, const double *loss,
                 const struct bounds *bounds) {
    struct network_judge_arguments arguments = {.group = group_of(network, pass, 1),
                                                .scale = scale_for(network, pass),
                                                .share = layout_exponents(&network->layout) - 1,
                                                .loss = loss,
                                                .holds = network->holds.memory};
    for (uint32_t t = 0; t < network->layout.count; t++)
        arguments.bound[t] = fixed_power(bounds_exponent(bounds, t));
    uint32_t threads = kernel_network_judge.threads;
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_judge,
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
                                              .stride = stride_of(network),
                                              .first = first_element(network),
                                              .end = layout_parameters(&network->layout),
                                              .sum = pass->sum};
    for (uint32_t t = 0; t < network->layout.count; t++)
        arguments.tensors[t] = tensor_of(network, bounds, t);
    return device_launch(network->device, QUEUE_COMPUTE, &kernel_network_add,
                         parts_of(stride_of(network)), &arguments);
}

static int add_first(struct device_network *network, const struct device_pass *pass,
                     const struct bounds *bounds) {
    uint32_t parts = parts_of((uint64_t)network->columns_most * network->width[1]);
    const struct network_add_first_arguments arguments = {.group = group_of(network, pass, parts),
                                                          .scale = scale_for(network, pass),
                                                          .tensor = tensor_of(network, bounds, 0),
                                                          .holds = network->holds.memory,
                                                          .gradient = network->first.memory,
                                                          .sum = pass->sum};
    return launch(network, pass, &kernel_network_add_first, parts, &arguments);
}

int device_network_gradient(struct device_network *network, const struct device_pass *pass,
                            const double *loss, const struct bounds *bounds) {
    int error = room_for_gradient(network, pass);
    if (!error)
        error = device_fill(network->device, QUEUE_COMPUTE, network->maxima.memory, 0,
                            pass->count * network->layout.count * sizeof(uint64_t));
    for (uint32_t l = network->layers; !error && l >= 1; l--)
        error = layer_backward(network, pass, l);
    if (!error)
        error = judge(network, pass, loss, bounds);
    if (!error && pass->sum)
        error = add(network, pass, bounds);
    if (!error && pass->sum && !network->dense)
        error = add_first(network, pass, bounds);
    return error;
}

int device_network_results(struct device_network *network, const struct device_pass *pass,
                           const struct bounds *bounds, struct objective_result *const *results) {
    uint32_t tensors = network->layout.count;
    double *maxima = memory_new((size_t)pass->count * tensors, sizeof *maxima);
    int error = device_get(network->device, QUEUE_COMPUTE, maxima, network->maxima.memory,
                           (size_t)pass->count * tensors * sizeof *maxima);
    for (uint32_t c = 0; !error && c < pass->count; c++) {
        results[c]->maxima.count = tensors;
        memcpy(results[c]->maxima.value, maxima + (size_t)c * tensors, tensors * sizeof *maxima);
        results[c]->exceeded = maxima_exceed(&results[c]->maxima, bounds);
    }
    free(maxima);
    return error;
}
