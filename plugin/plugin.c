/* What a library is asked: tensors, chunks, predictions. */
#include "plugin/plugin.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "plugin/ask.h"

/* ---- tensors ---- */

static int add_tensor(struct plugin *plugin, const struct dml_tensor *given,
                      struct layout *layout) {
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

int plugin_layout(struct plugin *plugin, const struct plugin_data *data, uint64_t seed,
                  struct layout *layout) {
    const struct plugin_request request = {.operation = PLUGIN_TENSORS,
                                           .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    *layout = (struct layout){.seed = seed};
    int code = plugin_ask(plugin, &request, "in tensors()", &answer);
    if (code)
        return code;
    if (answer.count < 1 || answer.count > DML_TENSORS_MAX)
        return plugin_refuse(plugin, "tensors() gives %u tensors; allowed: 1 to %d", answer.count,
                             DML_TENSORS_MAX);
    for (uint32_t i = 0; !code && i < answer.count; i++)
        code = add_tensor(plugin, &answer.tensor[i], layout);
    if (!code && layout_parameters(layout) == 0)
        code = plugin_refuse(plugin, "tensors() gives no parameters");
    return code;
}

/* ---- rows ---- */

/* Gives out parts of the shared memory. Nothing lies at its beginning: 0 is NULL. */
static uint64_t part(uint64_t *used, uint64_t count, size_t size) {
    uint64_t at = *used;
    *used += (count * size + 63) / 64 * 64 + 64;
    return at;
}

static void copy_values(const struct rows *rows, uint64_t from, uint64_t count, double *to) {
    if (rows->type == VALUE_DOUBLE)
        memcpy(to, (const double *)rows->value + from, count * sizeof *to);
    else
        for (uint64_t i = 0; i < count; i++)
            to[i] = value_at(rows->type, rows->value, from + i);
}

static bool is_given(const struct rows *rows, uint32_t row, bool weighed) {
    return !weighed || !rows->weight || rows->weight[row] > 0;
}

/* Copies the rows, or of weighed ones those whose weight is not 0. */
static void copy_rows(char *memory, struct plugin_request *request, const struct rows *rows,
                      bool weighed) {
    uint64_t *start = (uint64_t *)(void *)(memory + request->start);
    uint32_t *column = (uint32_t *)(void *)(memory + request->column);
    double *value = (double *)(void *)(memory + request->value);
    double *label = (double *)(void *)(memory + request->label);
    double *weight = (double *)(void *)(memory + request->weight);
    uint64_t used = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (!is_given(rows, i, weighed))
            continue;
        uint64_t from = rows->dense ? (uint64_t)i * rows->features : rows->start[i];
        uint64_t values = rows->dense ? rows->features : rows->start[i + 1] - rows->start[i];
        copy_values(rows, from, values, value + used);
        if (!rows->dense && values)
            memcpy(column + used, rows->feature + from, values * sizeof *column);
        start[count] = used;
        label[count] = rows->label && !isnan(rows->label[i]) ? rows->label[i] : 0;
        weight[count] = weighed && rows->weight ? rows->weight[i] : 1;
        used += values;
        count++;
    }
    start[count] = used;
    request->rows = count;
    if (rows->dense)
        request->start = request->column = 0;
}

/* Puts rows and parameters into the shared memory, with room for so many numbers that come out, and
 * for the gradient if it is asked for. */
static int place(struct plugin *plugin, struct plugin_request *request, const struct rows *rows,
                 bool weighed, const double *parameters, uint64_t count, uint64_t out,
                 bool gradient) {
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
    copy_rows(plugin->memory, request, rows, weighed);
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
static int judge_chunk(struct plugin *plugin, const struct plugin_request *request, uint32_t number,
                       uint64_t count, struct plugin_result *result) {
    const double *loss = doubles_at(plugin, request->out);
    const double *weight = doubles_at(plugin, request->weight);
    *result = (struct plugin_result){0};
    for (uint32_t i = 0; i < request->rows; i++)
        result->loss += weight[i] * loss[i];
    for (uint32_t i = 0; i < request->rows; i++)
        if (loss[i] == -INFINITY)
            return plugin_refuse(plugin, "the loss of a row of chunk %u is -infinity", number);
    if (!request->gradient || !isfinite(result->loss))
        return 0;
    const double *gradient = doubles_at(plugin, request->gradient);
    uint64_t wild = first_wild(gradient, count);
    if (wild < count)
        return plugin_refuse(plugin,
                             "element %llu of the gradient of chunk %u is %g, though the loss is "
                             "finite; where it is too far out the loss must say so",
                             (unsigned long long)wild, number, gradient[wild]);
    result->gradient = gradient;
    return 0;
}

int plugin_chunk(struct plugin *plugin, const struct plugin_data *data, uint32_t number,
                 const struct rows *rows, const double *parameters, uint64_t count, bool gradient,
                 struct plugin_result *result) {
    struct plugin_request request = {.operation = PLUGIN_CHUNK,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    char doing[64];
    snprintf(doing, sizeof doing, "in chunk %u", number);
    int code = place(plugin, &request, rows, true, parameters, count, rows->count, gradient);
    if (!code)
        code = plugin_ask(plugin, &request, doing, &answer);
    return code ? code : judge_chunk(plugin, &request, number, count, result);
}

/* ---- predictions ---- */

int plugin_predict(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                   const double *parameters, uint64_t count, double *predictions, double *losses) {
    struct plugin_request request = {.operation = PLUGIN_PREDICT,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    uint64_t out = (uint64_t)rows->count * data->outputs;
    int code = place(plugin, &request, rows, false, parameters, count, out, false);
    uint64_t label = request.label, weight = request.weight;
    request.label = request.weight = 0;
    if (!code)
        code = plugin_ask(plugin, &request, "in predict()", &answer);
    if (code)
        return code;
    memcpy(predictions, doubles_at(plugin, request.out), out * sizeof *predictions);
    if (!losses)
        return 0;
    request.operation = PLUGIN_CHUNK; /* the room for predictions holds a loss a row */
    request.label = label;
    request.weight = weight;
    code = plugin_ask(plugin, &request, "in chunk() while the rows were scored", &answer);
    if (!code)
        memcpy(losses, doubles_at(plugin, request.out), rows->count * sizeof *losses);
    return code;
}
