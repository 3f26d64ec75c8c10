/* What a library is asked: tensors, chunks, predictions. */
#include "plugin/plugin.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "plugin/ask.h"

/* ---- tensors ---- */

static int add_tensor(struct plugin *plugin, const struct plugin_data *data,
                      const struct dml_tensor *given, struct plugin_tensors *tensors) {
    struct layout *layout = &tensors->layout;
    struct layout_tensor tensor = {.rows = given->rows,
                                   .columns = given->columns,
                                   .regularized = given->regularised != 0,
                                   .exponents = LAYOUT_ONE_EXPONENT,
                                   .start = (enum layout_start)given->start,
                                   .bound = given->bound};
    _Static_assert(sizeof tensor.name == sizeof given->name, "the same names fit");
    _Static_assert((int)LAYOUT_START_ZERO == (int)DML_START_ZERO &&
                       (int)LAYOUT_START_UNIFORM == (int)DML_START_UNIFORM &&
                       (int)LAYOUT_START_CONSTANT == (int)DML_START_CONSTANT,
                   "as in the layout");
    memcpy(tensor.name, given->name, sizeof tensor.name);
    tensor.name[sizeof tensor.name - 1] = '\0';
    if (given->start == DML_START_ZERO)
        tensor.bound = 0;
    bool starts = given->start >= DML_START_ZERO && given->start <= DML_START_CONSTANT;
    bool bounded =
        isfinite(tensor.bound) && (given->start != DML_START_UNIFORM || tensor.bound >= 0);
    if (!starts || !bounded)
        return plugin_refuse(plugin, "tensor %u, `%s`, has no start that there is", layout->count,
                             tensor.name);
    if (given->by_feature && given->rows != data->features)
        return plugin_refuse(
            plugin, "tensor %u, `%s`, has %llu rows, but is by feature, and there are %u",
            layout->count, tensor.name, (unsigned long long)given->rows, data->features);
    if (given->by_feature)
        tensors->by_feature |= UINT32_C(1) << layout->count;
    if (tensor.name[0] == '_' || strcmp(tensor.name, "feature_id") == 0)
        return plugin_refuse(plugin,
                             "tensor %u is named `%s`, which means something else in models",
                             layout->count, tensor.name);
    if (!layout_add(layout, &tensor))
        return plugin_refuse(
            plugin,
            "tensor %u, `%s`, of %llu x %llu, cannot be: its name must be one of "
            "its own, of letters, digits and _, and all tensors together must have "
            "at most 2^33 elements",
            layout->count, tensor.name, (unsigned long long)tensor.rows,
            (unsigned long long)tensor.columns);
    return 0;
}

int plugin_tensors(struct plugin *plugin, const struct plugin_data *data, uint64_t seed,
                   struct plugin_tensors *tensors) {
    const struct plugin_request request = {.operation = PLUGIN_TENSORS,
                                           .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    _Static_assert(TENSORS_MAX == DML_TENSORS_MAX, "a bit each");
    *tensors = (struct plugin_tensors){.layout.seed = seed};
    int code = plugin_ask(plugin, &request, "in tensors()", &answer);
    if (code)
        return code;
    if (answer.count < 1 || answer.count > DML_TENSORS_MAX)
        return plugin_refuse(plugin, "tensors() gives %u tensors; allowed: 1 to %d", answer.count,
                             DML_TENSORS_MAX);
    for (uint32_t i = 0; !code && i < answer.count; i++)
        code = add_tensor(plugin, data, &answer.tensor[i], tensors);
    if (!code && layout_parameters(&tensors->layout) == 0)
        code = plugin_refuse(plugin, "tensors() gives no parameters");
    return code;
}

/* The start does not matter to whoever has the parameters. */
static bool same_shapes(const struct layout *a, const struct layout *b) {
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = strcmp(a->tensor[i].name, b->tensor[i].name) == 0 &&
               a->tensor[i].rows == b->tensor[i].rows &&
               a->tensor[i].columns == b->tensor[i].columns;
    return same;
}

int plugin_start_checked(const struct plugin_source *source, const struct plugin_data *data,
                         const struct layout *layout, struct plugin **plugin) {
    struct plugin_tensors tensors;
    const struct layout *found = &tensors.layout;
    int code = plugin_start(source, plugin);
    if (code)
        return code;
    code = plugin_tensors(*plugin, data, layout->seed, &tensors);
    if (!code && !same_shapes(found, layout))
        code =
            plugin_refuse(*plugin,
                          "tensors() gives other tensors, of %llu elements, than for the run or "
                          "the model, which has %llu; they must depend on data and options alone",
                          (unsigned long long)layout_parameters(found),
                          (unsigned long long)layout_parameters(layout));
    if (code) {
        plugin_stop(*plugin);
        *plugin = NULL;
    }
    return code;
}

/* ---- rows ---- */

/* Gives out parts of the shared memory. Nothing lies at its beginning: 0 is NULL. */
static uint64_t part(uint64_t *used, uint64_t count, size_t size) {
    uint64_t at = *used;
    *used += (count * size + 63) / 64 * 64 + 64;
    return at;
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Copies the values of a sparse row, columns rising. A key is a column and, below it, the place of
 * the value in the row. */
static void copy_sparse(const struct rows *rows, uint32_t row, const uint32_t *rank, uint64_t *keys,
                        uint32_t *column, double *value) {
    uint64_t from = rows->start[row], values = rows->start[row + 1] - from;
    bool rising = true;
    for (uint64_t i = 0; i < values; i++) {
        uint32_t j = rows->feature[from + i];
        keys[i] = (uint64_t)(rank ? rank[j] : j) << 32 | i;
        rising &= i == 0 || keys[i] > keys[i - 1];
    }
    if (!rising)
        qsort(keys, values, sizeof *keys, compare_keys);
    for (uint64_t i = 0; i < values; i++) {
        column[i] = (uint32_t)(keys[i] >> 32);
        value[i] = value_at(rows->type, rows->value, from + (uint32_t)keys[i]);
    }
}

static void copy_dense(const struct rows *rows, uint32_t row, const uint32_t *rank, double *value) {
    uint64_t from = (uint64_t)row * rows->features;
    if (rows->type == VALUE_DOUBLE && !rank)
        memcpy(value, (const double *)rows->value + from, rows->features * sizeof *value);
    else
        for (uint32_t j = 0; j < rows->features; j++)
            value[rank ? rank[j] : j] = value_at(rows->type, rows->value, from + j);
}

static bool is_given(const struct rows *rows, uint32_t row, bool weighed) {
    return !weighed || !rows->weight || rows->weight[row] > 0;
}

static uint64_t longest_row(const struct rows *rows) {
    uint64_t longest = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        if (rows->start[i + 1] - rows->start[i] > longest)
            longest = rows->start[i + 1] - rows->start[i];
    return longest;
}

/* Copies the rows, or of weighed ones those whose weight is not 0. */
static void copy_rows(char *memory, struct plugin_request *request, const struct rows *rows,
                      const uint32_t *rank, bool weighed) {
    uint64_t *start = (uint64_t *)(void *)(memory + request->start);
    uint32_t *column = (uint32_t *)(void *)(memory + request->column);
    double *value = (double *)(void *)(memory + request->value);
    double *label = (double *)(void *)(memory + request->label);
    double *weight = (double *)(void *)(memory + request->weight);
    uint64_t *keys = memory_new(rows->dense ? 0 : longest_row(rows), sizeof *keys), used = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (!is_given(rows, i, weighed))
            continue;
        if (rows->dense)
            copy_dense(rows, i, rank, value + used);
        else
            copy_sparse(rows, i, rank, keys, column + used, value + used);
        start[count] = used;
        label[count] = rows->label && !isnan(rows->label[i]) ? rows->label[i] : 0;
        weight[count] = weighed && rows->weight ? rows->weight[i] : 1;
        used += rows->dense ? rows->features : rows->start[i + 1] - rows->start[i];
        count++;
    }
    free(keys);
    start[count] = used;
    request->rows = count;
    if (rows->dense)
        request->start = request->column = 0;
}

/* Puts rows and parameters into the shared memory, with room for so many numbers that come out, and
 * for the gradient if it is asked for. */
static int place(struct plugin *plugin, struct plugin_request *request, const struct rows *rows,
                 const uint32_t *rank, bool weighed, const double *parameters, uint64_t count,
                 uint64_t out, bool gradient) {
    uint64_t used = 64,
             values = rows->dense ? (uint64_t)rows->count * rows->features : rows->values;
    request->start = part(&used, rows->count + 1, sizeof(uint64_t));
    request->column = part(&used, rows->dense ? 0 : values, sizeof(uint32_t));
    request->value = part(&used, values, sizeof(double));
    request->label = part(&used, rows->count, sizeof(double));
    request->weight = part(&used, rows->count, sizeof(double));
    request->out = part(&used, out, sizeof(double));
    request->parameters = part(&used, count, sizeof(double));
    request->gradient = gradient ? part(&used, count, sizeof(double)) : 0;
    int code = plugin_room(plugin, used);
    if (code)
        return code;
    request->bytes = plugin->bytes;
    copy_rows(plugin->memory, request, rows, rank, weighed);
    memcpy(plugin->memory + request->parameters, parameters, count * sizeof *parameters);
    memset(plugin->memory + request->out, 0, out * sizeof(double));
    if (gradient)
        memset(plugin->memory + request->gradient, 0, count * sizeof(double));
    return 0;
}

static const double *doubles_at(const struct plugin *plugin, uint64_t offset) {
    return (const double *)(const void *)(plugin->memory + offset);
}

/* ---- chunks ---- */

/* Which element is not finite; `count` if all are. */
static uint64_t first_wild(const double *elements, uint64_t count) {
    bool wild = false;
    for (uint64_t i = 0; i < count; i++)
        wild |= !(fabs(elements[i]) <= DBL_MAX);
    uint64_t i = 0;
    while (wild && i < count && fabs(elements[i]) <= DBL_MAX)
        i++;
    return wild ? i : count;
}

/* Sums up the losses, and looks at the gradient. */
static int judge_chunk(struct plugin *plugin, const struct plugin_request *request, uint64_t count,
                       struct plugin_result *result) {
    const double *loss = doubles_at(plugin, request->out);
    const double *weight = doubles_at(plugin, request->weight);
    *result = (struct plugin_result){0};
    for (uint32_t i = 0; i < request->rows; i++)
        result->loss += weight[i] * loss[i];
    for (uint32_t i = 0; i < request->rows; i++)
        if (loss[i] == -INFINITY)
            return plugin_refuse(plugin, "the loss of a row is -infinity");
    if (!request->gradient || !isfinite(result->loss))
        return 0;
    const double *gradient = doubles_at(plugin, request->gradient);
    uint64_t wild = first_wild(gradient, count);
    if (wild < count)
        return plugin_refuse(plugin,
                             "element %llu of the gradient of a chunk is %g, though the loss is "
                             "finite; where it is too far out the loss must say so",
                             (unsigned long long)wild, gradient[wild]);
    result->gradient = gradient;
    return 0;
}

int plugin_chunk(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                 const double *parameters, uint64_t count, bool gradient,
                 struct plugin_result *result) {
    struct plugin_request request = {.operation = PLUGIN_CHUNK,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    int code =
        place(plugin, &request, rows, data->rank, true, parameters, count, rows->count, gradient);
    if (!code)
        code = plugin_ask(plugin, &request, "in chunk()", &answer);
    return code ? code : judge_chunk(plugin, &request, count, result);
}

/* ---- predictions ---- */

int plugin_predict(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                   const double *parameters, uint64_t count, double *predictions) {
    struct plugin_request request = {.operation = PLUGIN_PREDICT,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    uint64_t out = (uint64_t)rows->count * data->outputs;
    int code = place(plugin, &request, rows, data->rank, false, parameters, count, out, false);
    request.label = request.weight = 0;
    if (!code)
        code = plugin_ask(plugin, &request, "in predict()", &answer);
    if (!code)
        memcpy(predictions, doubles_at(plugin, request.out), out * sizeof *predictions);
    return code;
}

int plugin_losses(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                  const double *parameters, uint64_t count, double *losses) {
    struct plugin_request request = {.operation = PLUGIN_CHUNK,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    int code =
        place(plugin, &request, rows, data->rank, false, parameters, count, rows->count, false);
    if (!code)
        code = plugin_ask(plugin, &request, "in chunk()", &answer);
    if (!code)
        memcpy(losses, doubles_at(plugin, request.out), rows->count * sizeof *losses);
    return code;
}
