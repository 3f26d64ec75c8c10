#include "objective/network.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/special.h"
#include "objective/kronecker.h"

/* Units and margins of a batch: with their derivatives they fill a share of the last cache.
 * Products are slow over few rows, so wide networks get more memory instead. */
#define BATCH_UNITS (1 << 19)
#define ROWS_LEAST 16
#define ROWS_MOST 1024

/* ---- the shape ---- */

#define ACTIVATION(name, takes_sums)                                                               \
    {                                                                                              \
#name, takes_sums, activation_##name, activation_##name##_back, activation_##name##_float, \
            activation_##name##_back_float                                                         \
    }
const struct activation_row activation_rows[ACTIVATIONS] = {
    [ACTIVATION_TANH] = ACTIVATION(tanh, false),
    [ACTIVATION_RELU] = ACTIVATION(relu, false),
    [ACTIVATION_GELU] = ACTIVATION(gelu, true),
};
static const char *const precisions[PRECISIONS] = {"double", "float"};

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *activation_name(enum activation activation) {
    return activation_rows[activation].name;
}

int activation_from_name(const char *name) {
    for (int i = 0; i < ACTIVATIONS; i++)
        if (strcmp(activation_rows[i].name, name) == 0)
            return i;
    return -1;
}

const char *precision_name(enum precision precision) {
    return precisions[precision];
}

int precision_from_name(const char *name) {
    return find(precisions, PRECISIONS, name);
}

/* The outputs of layer `number`, from 1; those of layer 0 are the features. */
static uint64_t layer_width(const struct objective_shape *shape, uint32_t number) {
    const struct network *network = &shape->network;
    if (number == 0)
        return shape->features;
    if (number <= network->layers)
        return network->units[number - 1];
    return objective_weights(objective_of(shape->kind), shape->outputs);
}

static bool add_weight(struct layout *layout, const struct objective_shape *shape,
                       uint32_t number) {
    uint64_t in = layer_width(shape, number - 1), out = layer_width(shape, number);
    uint64_t fans = shape->network.activation == ACTIVATION_RELU ? in : in + out;
    struct layout_tensor tensor = {
        .rows = in,
        .columns = out,
        .regularized = true,
        .exponents =
            number == 1 && !shape->network.kronecker ? LAYOUT_EXPONENT_A_ROW : LAYOUT_ONE_EXPONENT,
        .start = LAYOUT_START_UNIFORM,
        .bound = sqrt(6 / (double)(fans ? fans : 1)),
    };
    snprintf(tensor.name, sizeof tensor.name, "W%u", number);
    return layout_add(layout, &tensor);
}

static struct layout network_layout(const struct objective_shape *shape) {
    struct layout layout = {.seed = shape->network.seed};
    uint32_t layers = shape->network.layers + 1;
    bool fits = shape->intercept && shape->network.layers <= NETWORK_LAYERS_MAX &&
                shape->features <= FEATURES_MAX;
    for (uint32_t i = 1; fits && i <= layers; i++)
        fits = add_weight(&layout, shape, i);
    for (uint32_t i = 1; fits && i <= layers; i++) {
        bool last = i > shape->network.layers;
        struct layout_tensor tensor = {
            .rows = 1,
            .columns = last ? shape->outputs : layer_width(shape, i),
            .exponents = LAYOUT_ONE_EXPONENT,
        };
        if (last && shape->start != 0) {
            tensor.start = LAYOUT_START_CONSTANT;
            tensor.bound = shape->start / network_unit(&shape->network);
        }
        snprintf(tensor.name, sizeof tensor.name, "b%u", i);
        fits = layout_add(&layout, &tensor);
    }
    return fits ? layout : (struct layout){0};
}

static bool is_network(const struct layout *layout) {
    return layout->count >= 4 && strcmp(layout->tensor[0].name, "W1") == 0;
}

bool objective_is_kronecker(const struct layout *layout) {
    return is_network(layout) && layout->tensor[0].exponents == LAYOUT_ONE_EXPONENT;
}

/* Half of the tensors are weights, and the last of these leads to the outputs. A blob may say any
 * width: if one does not fit 32 bits, objective_layout() makes another layout, and the blob is
 * refused. */
static bool network_read_layout(struct objective_shape *shape, const struct layout *layout) {
    uint32_t layers = layout->count / 2;
    struct network *network = &shape->network;
    if (!is_network(layout))
        return false;
    memset(network->units, 0, sizeof network->units);
    network->layers = layers - 1;
    network->seed = layout->seed;
    network->kronecker = objective_is_kronecker(layout);
    for (uint32_t i = 0; i + 1 < layers; i++)
        network->units[i] = (uint32_t)layout->tensor[i].columns;
    const struct layout_tensor *last = &layout->tensor[layout->count - 1];
    shape->outputs = (uint32_t)last->columns;
    shape->intercept = true;
    shape->start = last->bound * network_unit(network);
    return true;
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

/* A network learns labels whose deviation is about 0.6 fastest. */
#define UNIT_SHARE 0.7

static void network_complete(struct objective_shape *shape, const struct label_summary *labels) {
    const struct objective *objective = objective_of(shape->kind);
    shape->network.unit =
        objective->has_unit && labels ? UNIT_SHARE * objective_unit(objective, labels) : 1;
}

/* W1 has an exponent a column, which follows from the column's sums, unless it has but one. */
static int network_exponent(const struct objective_shape *shape, const int16_t *columns, int share,
                            uint64_t number) {
    bool by_column = !shape->network.kronecker && number < shape->features;
    return by_column ? share + columns[number] - 62 : share;
}

static struct bounds network_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                          double chunk) {
    double derivative = objective_bound(shape, label_max_abs);
    int each = fixed_derivative_exponent(fmin(FIRST_ROOM * derivative * chunk, DBL_MAX));
    struct bounds bounds = {.count = 2 * (shape->network.layers + 1)};
    for (uint32_t t = 0; t < bounds.count; t++)
        bounds.exponent[t] = each;
    /* The exponents of W1 are relative to the columns' sums, so its bound needs no weight. */
    if (!shape->network.kronecker)
        bounds.exponent[0] = fixed_derivative_exponent(fmin(FIRST_ROOM * derivative, DBL_MAX));
    return bounds;
}

static uint64_t network_width(const struct objective_shape *shape) {
    return shape->network.units[0];
}

/* As one of any loss that has a weight for each output: its losses are not asked for. */
static struct objective_shape network_first_layer(const struct objective_shape *shape) {
    return (struct objective_shape){
        .kind = OBJECTIVE_SQUARED, .features = shape->features, .outputs = shape->network.units[0]};
}

static const char *network_device_cannot(const struct objective_shape *shape) {
    return shape->network.kronecker
               ? "networks with the Kronecker preconditioner are computed by the CPU"
               : NULL;
}

/* ---- scratch memory ---- */

static uint32_t network_batch_rows(const struct objective_shape *shape, bool dense) {
    (void)dense;
    size_t units = shape->outputs;
    for (uint32_t l = 0; l < shape->network.layers; l++)
        units += shape->network.units[l];
    assert(units > 0);
    size_t rows = BATCH_UNITS / units;
    return (uint32_t)(rows < ROWS_LEAST ? ROWS_LEAST : rows > ROWS_MOST ? ROWS_MOST : rows);
}

static void make_layers(struct network_scratch *scratch) {
    size_t size = scratch->kernels->size, rows = scratch->batch_rows, widest = 0;
    for (uint32_t l = 1; l <= scratch->layers; l++) {
        size_t width = scratch->width[l];
        scratch->units[l - 1] = memory_new(rows * width, size);
        if (activation_rows[scratch->activation].back_takes_sums && l < scratch->layers)
            scratch->sums[l - 1] = memory_new(rows * width, size);
        widest = width > widest ? width : widest;
    }
    for (size_t i = 0; i < 2; i++)
        scratch->error[i] = memory_new(rows * widest, size);
    for (uint32_t t = 1; t < scratch->layout.count; t++) {
        const struct layout_tensor *tensor = &scratch->layout.tensor[t];
        scratch->gradient[t] = memory_new(tensor->rows * tensor->columns, size);
    }
}

static struct objective_scratch *network_scratch_new(const struct objective_shape *shape) {
    struct network_scratch *scratch = memory_new(1, sizeof *scratch);
    bool narrow = shape->network.precision == PRECISION_FLOAT;
    scratch->kernels = narrow ? &network_float : &network_double;
    scratch->layout = objective_layout(shape);
    scratch->activation = shape->network.activation;
    scratch->layers = shape->network.layers + 1;
    scratch->outputs = shape->outputs;
    for (uint32_t l = 1; l <= scratch->layers; l++)
        scratch->width[l] = scratch->layout.tensor[l - 1].columns;
    scratch->width[0] = shape->features;
    scratch->batch_rows = network_batch_rows(shape, true);
    make_layers(scratch);
    scratch->matrix = matrix_scratch_new();
    struct objective_scratch *whole = batch_scratch_new(shape, scratch->batch_rows);
    whole->network = scratch;
    return whole;
}

/* Replaces *array, whose elements of `size` bytes need not be kept, by one of at least `count`
 * elements that are 0, unless it has so many. */
static void make_room(void **array, size_t *capacity, size_t count, size_t size) {
    if (count <= *capacity)
        return;
    free(*array);
    *array = memory_new(count, size);
    *capacity = count;
}

/* What a chunk of sparse rows has by its columns: no more of them than it has values. */
static void make_columns(struct network_scratch *scratch, const struct rows_most *rows) {
    if (!scratch->number)
        scratch->number = memory_new(scratch->width[0], sizeof *scratch->number);
    if (rows->values <= scratch->values)
        return;
    free(scratch->column);
    free(scratch->place);
    scratch->column = memory_new(rows->values, sizeof *scratch->column);
    scratch->place = memory_new(rows->values, sizeof *scratch->place);
    scratch->values = rows->values;
}

/* Layers above the first have no features: to them rows are dense, without values. */
static int network_prepare(const struct objective_shape *shape, const struct objective_need *need,
                           struct objective_scratch *whole) {
    struct network_scratch *scratch = whole->network;
    const struct rows_most *rows = &need->rows;
    const size_t size = scratch->kernels->size, n = layout_parameters(&scratch->layout);
    const bool narrow = scratch->kernels == &network_float, sparse = !rows->dense;
    const size_t batch_rows = rows->count < scratch->batch_rows ? rows->count : scratch->batch_rows;
    const size_t first = sparse && rows->values < shape->features ? rows->values : shape->features;
    if (sparse)
        make_columns(scratch, rows);
    if (need->gradient)
        make_room(&scratch->gradient[0], &scratch->first_elements, first * scratch->width[1], size);
    if (narrow && sparse)
        make_room(&scratch->used, &scratch->used_elements, first * scratch->width[1], size);
    if (narrow && !scratch->rounded)
        scratch->rounded = memory_new(n, sizeof(float));
    if (shape->features && rows->types != 1U << scratch->kernels->type)
        make_room(&scratch->input, &scratch->input_values,
                  sparse ? rows->values : batch_rows * shape->features, size);
    if (!shape->features && !scratch->first_error)
        scratch->first_error =
            memory_new(scratch->batch_rows * scratch->width[1], sizeof *scratch->first_error);
    if (need->change && !scratch->kronecker_gradient) {
        scratch->kronecker_gradient = memory_new(n, sizeof *scratch->kronecker_gradient);
        scratch->kronecker_work = kronecker_work_new(need->change->kronecker);
    }
    return 0;
}

void network_scratch_free(struct network_scratch *scratch) {
    if (!scratch)
        return;
    for (uint32_t l = 0; l < scratch->layers; l++)
        free(scratch->units[l]);
    for (uint32_t l = 0; l + 1 < scratch->layers; l++)
        free(scratch->sums[l]);
    for (uint32_t t = 0; t < scratch->layout.count; t++)
        free(scratch->gradient[t]);
    for (size_t i = 0; i < 2; i++)
        free(scratch->error[i]);
    free(scratch->first_error);
    free(scratch->rounded);
    free(scratch->input);
    free(scratch->column);
    free(scratch->place);
    free(scratch->number);
    free(scratch->used);
    free(scratch->kronecker_gradient);
    kronecker_work_free(scratch->kronecker_work);
    matrix_scratch_free(scratch->matrix);
    free(scratch);
}

/* ---- a chunk ---- */

/* Numbers the columns that the chunk has values in. */
static void find_columns(struct network_scratch *scratch, const struct rows *rows) {
    size_t values = rows->start[rows->count];
    assert(scratch->number && values <= scratch->values);
    scratch->columns = 0;
    for (size_t v = 0; v < values; v++) {
        uint32_t feature = rows->feature[v];
        if (!scratch->number[feature]) {
            scratch->column[scratch->columns] = feature;
            scratch->number[feature] = ++scratch->columns;
        }
        scratch->place[v] = scratch->number[feature] - 1;
    }
    for (uint32_t c = 0; c < scratch->columns; c++)
        scratch->number[scratch->column[c]] = 0;
}

size_t network_first_rows(const struct network_scratch *scratch) {
    return scratch->dense ? scratch->width[0] : scratch->columns;
}

/* The parameters from element `first` on as reals. */
static const void *as_reals(struct network_scratch *scratch, const double *parameters,
                            uint64_t first) {
    if (scratch->kernels == &network_double)
        return parameters + first;
    return (const float *)scratch->rounded + first;
}

static void take_parameters(struct network_scratch *scratch, const double *parameters) {
    const struct network_kernels *kernels = scratch->kernels;
    const struct layout *layout = &scratch->layout;
    size_t n = layout_parameters(layout);
    uint64_t skipped = scratch->dense ? 0 : layout->tensor[1].first;
    bool is_rounded = scratch->point && scratch->rounded_point == scratch->point &&
                      scratch->rounded_from <= skipped; /* as floats, at this point */
    if (kernels == &network_float && !is_rounded) {
        kernels->convert(n - skipped, parameters + skipped, (float *)scratch->rounded + skipped);
        scratch->rounded_point = scratch->point;
        scratch->rounded_from = skipped;
    }
    for (uint32_t l = 0; l < scratch->layers; l++) {
        scratch->weight[l] = as_reals(scratch, parameters, layout->tensor[l].first);
        scratch->bias[l] = as_reals(scratch, parameters, layout->tensor[scratch->layers + l].first);
    }
}

/* The rows of W1 that sparse values are multiplied by: where they are, or as floats. */
static void take_first_rows(struct network_scratch *scratch, const struct rows *rows,
                            const double *parameters) {
    size_t width = scratch->width[1];
    scratch->weight_row = rows->feature;
    if (scratch->kernels == &network_double)
        return;
    assert(scratch->columns * width <= scratch->used_elements);
    for (uint32_t c = 0; c < scratch->columns; c++)
        scratch->kernels->convert(width, parameters + scratch->column[c] * width,
                                  (float *)scratch->used + c * width);
    scratch->weight[0] = scratch->used;
    scratch->weight_row = scratch->place;
}

/* Values from number `begin` on as reals: where they are, or converted. */
static void take_values(struct network_scratch *scratch, const struct rows *rows, size_t begin,
                        size_t values) {
    const struct network_kernels *kernels = scratch->kernels;
    if (rows->type == kernels->type) {
        scratch->from = (const char *)rows->value + begin * kernels->size;
        return;
    }
    assert(values <= scratch->input_values);
    kernels->read(rows, begin, values, scratch->input);
    scratch->from = scratch->input;
}

static void begin(struct network_scratch *scratch, const struct rows *rows,
                  const double *parameters) {
    scratch->given = NULL;
    scratch->dense = rows->dense;
    if (!rows->dense)
        find_columns(scratch, rows);
    take_parameters(scratch, parameters);
    if (rows->dense)
        return;
    take_first_rows(scratch, rows, parameters);
    take_values(scratch, rows, 0, rows->start[rows->count]);
}

static void forward(struct network_scratch *scratch, const struct row_batch *batch,
                    double *margins) {
    if (scratch->dense && !scratch->given)
        take_values(scratch, batch->rows, (size_t)batch->first * batch->rows->features,
                    (size_t)batch->count * batch->rows->features);
    scratch->kernels->forward(scratch, batch, margins);
}

/* Values and units of a row of weight 0 may be infinite: times a derivative of 0 that is NaN. */
static void clear_row(struct network_scratch *scratch, const struct row_batch *batch, size_t i) {
    size_t size = scratch->kernels->size, from = i * scratch->width[0], values = scratch->width[0];
    if (!scratch->dense) {
        from = batch->rows->start[batch->first + i];
        values = batch->rows->start[batch->first + i + 1] - from;
    }
    if (values && scratch->from == scratch->input)
        memset((char *)scratch->input + from * size, 0, values * size);
    for (uint32_t l = 1; l <= scratch->layers; l++) {
        size_t bytes = scratch->width[l] * size;
        memset((char *)scratch->units[l - 1] + i * bytes, 0, bytes);
        if (l < scratch->layers && scratch->sums[l - 1])
            memset((char *)scratch->sums[l - 1] + i * bytes, 0, bytes);
    }
}

static void weigh(struct objective_scratch *scratch, const struct row_batch *batch,
                  size_t outputs) {
    if (!batch->rows->weight)
        return;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->rows->weight[batch->first + i] == 0)
            clear_row(scratch->network, batch, i);
    batch_weigh_derivatives(batch, outputs, scratch->margins);
}

/* Multiplies by the unit: outputs become margins in the unit of the labels, and derivatives by
 * these derivatives by the outputs. */
static void scale_all(size_t n, double *values, double unit) {
    for (size_t i = 0; unit != 1 && i < n; i++)
        values[i] *= unit;
}

/* The losses of a batch, added to the result, and the derivatives in the scratch's margins. */
static void batch_forward(const struct objective_shape *shape, const struct row_batch *batch,
                          struct objective_scratch *scratch, bool checks,
                          struct objective_result *result) {
    size_t margins = batch->count * shape->outputs;
    forward(scratch->network, batch, scratch->margins);
    scale_all(margins, scratch->margins, network_unit(&shape->network));
    batch_losses(shape, batch, scratch, checks ? &result->correct : NULL);
    scale_all(margins, scratch->margins, network_unit(&shape->network));
    if (batch->rows->weight)
        batch_weigh_losses(batch, shape->outputs, scratch);
    for (size_t i = 0; i < batch->count; i++)
        result->loss += scratch->loss[i];
}

static double weight_of(const struct rows *rows) {
    double weight = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        weight += weight_at(rows, i);
    return weight;
}

static void finish(struct network_scratch *scratch, const struct objective_scale *scale,
                   double weight, int64_t *sum, struct objective_result *result) {
    if (scale->change)
        network_kronecker_gradient(scratch, scale->change, weight, result);
    result->maxima = network_maxima(scratch, scale);
    for (uint32_t t = 0; !isfinite(result->loss) && t < result->maxima.count; t++)
        result->maxima.value[t] = INFINITY;
    result->exceeded = maxima_exceed(&result->maxima, &scale->bounds);
    if (sum && !result->exceeded)
        network_add(scratch, scale, sum);
}

static void clear_gradient(struct network_scratch *network) {
    size_t size = network->kernels->size, first = network_first_rows(network);
    assert(first * network->width[1] <= network->first_elements);
    if (first)
        memset(network->gradient[0], 0, first * network->width[1] * size);
    for (uint32_t t = 1; t < network->layout.count; t++) {
        const struct layout_tensor *tensor = &network->layout.tensor[t];
        memset(network->gradient[t], 0, tensor->rows * tensor->columns * size);
    }
}

static int network_block(const struct objective_shape *shape, const struct objective_scale *scale,
                         const struct rows *rows, const double *parameters, int64_t *sum,
                         struct objective_scratch *scratch, struct objective_result *result) {
    struct network_scratch *network = scratch->network;
    *result = (struct objective_result){.maxima.count = scale ? network->layout.count : 0};
    double weight = weight_of(rows);
    if (weight == 0)
        return 0;
    network->point = scratch->point;
    begin(network, rows, parameters);
    if (scale)
        clear_gradient(network);
    for (uint32_t first = 0; first < rows->count; first += network->batch_rows) {
        struct row_batch batch = batch_at(rows, first, network->batch_rows);
        batch_forward(shape, &batch, scratch, !sum, result);
        if (!scale || !isfinite(result->loss))
            continue;
        weigh(scratch, &batch, shape->outputs);
        network->kernels->backward(network, &batch, scratch->margins);
    }
    if (scale)
        finish(network, scale, weight, sum, result);
    return 0;
}

/* ---- the layers above the first ---- */

/* The derivatives by the first layer's margins, as doubles, and the largest. A row's weight is
 * taken out of them: the transpose multiplies by it, as that of any model does. */
static double *take_errors(struct network_scratch *scratch, const struct row_batch *batch,
                           double *largest) {
    size_t width = scratch->width[1], n = batch->count * width;
    double *error = scratch->first_error;
    assert(error && batch->count <= scratch->batch_rows);
    scratch->kernels->widen(n, scratch->error[1], error);
    for (size_t i = 0; batch->rows->weight && i < batch->count; i++) {
        double weight = weight_at(batch->rows, batch->first + i);
        for (size_t k = i * width; k < (i + 1) * width; k++)
            error[k] = weight > 0 ? error[k] / weight : 0;
    }
    double most = gradient_max_abs(n, error);
    *largest = most > *largest ? most : *largest;
    return error;
}

static void network_upper(const struct objective_shape *shape, const struct objective_scale *scale,
                          const struct rows *rows, const struct upper_point *point,
                          const struct upper_sums *sums, struct objective_scratch *scratch,
                          struct objective_result *result) {
    struct network_scratch *network = scratch->network;
    double weight = weight_of(rows), largest = 0;
    assert(point->parameters && point->margins);
    *result = (struct objective_result){.maxima.count = network->layout.count};
    if (weight == 0)
        return;
    network->point = scratch->point;
    /* There are no features: so dense rows, of no values. */
    network->given = point->margins;
    network->dense = true;
    take_parameters(network, point->parameters);
    if (scale)
        clear_gradient(network);
    for (uint32_t first = 0; first < rows->count; first += network->batch_rows) {
        struct row_batch batch = batch_at(rows, first, network->batch_rows);
        batch_forward(shape, &batch, scratch, !scale, result);
        if (!scale || !isfinite(result->loss))
            continue;
        weigh(scratch, &batch, shape->outputs);
        network->kernels->backward(network, &batch, scratch->margins);
        if (sums->of_rows) {
            size_t width = network->width[1], n = batch.count * width;
            const double *error = take_errors(network, &batch, &largest);
            for (size_t i = 0; sums->derivatives && isfinite(largest) && i < n; i++)
                add_bits(&sums->derivatives[batch.first * width + i], error[i]);
        }
    }
    if (!scale)
        return;
    finish(network, scale, weight, sums->gradient, result);
    if (sums->of_rows && largest > result->maxima.value[0])
        result->maxima.value[0] = largest;
    result->exceeded = maxima_exceed(&result->maxima, &scale->bounds);
}

static int network_margins(const struct objective_shape *shape, const struct rows *rows,
                           const double *parameters, struct objective_scratch *scratch,
                           double *margins) {
    struct network_scratch *network = scratch->network;
    network->point = scratch->point;
    begin(network, rows, parameters);
    for (uint32_t first = 0; first < rows->count; first += network->batch_rows) {
        struct row_batch batch = batch_at(rows, first, network->batch_rows);
        forward(network, &batch, margins + (size_t)first * shape->outputs);
    }
    return 0;
}

static const struct family_compute network_compute = {
    .scratch_new = network_scratch_new,
    .prepare = network_prepare,
    .batch_rows = network_batch_rows,
    .block = network_block,
    .margins = network_margins,
    .upper = network_upper,
};

const struct family family_network = {
    .name = "network",
    .rounds_chunks = true,
    .unit_values = true,
    .path_dependent = true,
    .thread_vectors = 2,
    .layout = network_layout,
    .read_layout = network_read_layout,
    .complete = network_complete,
    .exponent = network_exponent,
    .first_bounds = network_first_bounds,
    .first_layer = network_first_layer,
    .width = network_width,
    .device_cannot = network_device_cannot,
    .compute = &network_compute,
};
