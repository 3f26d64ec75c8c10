/* What a library is asked: tensors, chunks, predictions. */
#include "plugin/plugin.h"

#include <assert.h>
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
    static_assert(sizeof tensor.name == sizeof given->name, "the same names fit");
    static_assert((int)LAYOUT_START_ZERO == (int)DML_START_ZERO &&
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
            "at most 2^34 elements",
            layout->count, tensor.name, (unsigned long long)tensor.rows,
            (unsigned long long)tensor.columns);
    return 0;
}

int plugin_tensors(struct plugin *plugin, const struct plugin_data *data, uint64_t seed,
                   struct plugin_tensors *tensors) {
    struct plugin_request request = {.operation = PLUGIN_TENSORS,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    static_assert(TENSORS_MAX == DML_TENSORS_MAX, "a bit each");
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

/* The start may differ: whoever asks has parameters already. */
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

/* ---- memory of this process ---- */

/* Replaces an array of `*room` elements, unless it has `count`. */
static void *room_for(void *array, uint64_t *room, uint64_t count, size_t size) {
    if (count <= *room)
        return array;
    free(array);
    *room = count;
    return memory_new(count, size);
}

void plugin_expect(struct plugin *plugin, const struct rows_most *rows, uint64_t gradient) {
    const uint64_t keys = rows->dense ? 0 : rows->values;
    plugin->keys = room_for(plugin->keys, &plugin->keys_room, keys, sizeof *plugin->keys);
    plugin->loss = room_for(plugin->loss, &plugin->losses, rows->count, sizeof *plugin->loss);
    plugin->gradient =
        room_for(plugin->gradient, &plugin->gradients, gradient, sizeof *plugin->gradient);
}

/* ---- rows ---- */

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

/* The rows that are given, and their values. */
static uint32_t count_given(const struct rows *rows, bool weighed, uint64_t *values) {
    uint32_t count = 0;
    *values = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (!is_given(rows, i, weighed))
            continue;
        *values += rows->dense ? rows->features : rows->start[i + 1] - rows->start[i];
        count++;
    }
    return count;
}

/* Copies the rows, or of weighed ones those whose weight is not 0. */
static void copy_rows(char *memory, const struct plugin_request *request, const struct rows *rows,
                      const uint32_t *rank, bool weighed, uint64_t *keys) {
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
    start[count] = used;
    assert(count == request->rows);
}

/* An array of what the library reads. */
struct request_part {
    uint64_t *at, count;
    size_t size;
};

/* Fills what lies between the arrays with NaNs: whoever reads beyond an array gets those, instead
 * of what chance has left there. */
static void fill_gaps(char *memory, const struct request_part *part, size_t parts, uint64_t end) {
    memset(memory, 0xff, *part[0].at);
    for (size_t i = 0; i < parts; i++) {
        uint64_t from = *part[i].at + part[i].count * part[i].size;
        memset(memory + from, 0xff, (i + 1 < parts ? *part[i + 1].at : end) - from);
    }
}

/* Puts rows and parameters where the library reads them, and makes room for `out` numbers a row,
 * and for the gradient if it is asked for. */
static int place(struct plugin *plugin, struct plugin_request *request, const struct rows *rows,
                 const uint32_t *rank, bool weighed, const double *parameters, uint64_t count,
                 uint32_t out, bool gradient) {
    const struct rows_most most = rows_most_of(rows);
    uint64_t values;
    plugin_expect(plugin, &most, gradient ? count : 0);
    request->rows = count_given(rows, weighed, &values);
    assert(request->rows <= plugin->losses && (rows->dense || values <= plugin->keys_room));
    const struct request_part parts[] = {
        {&request->start, (uint64_t)request->rows + 1, sizeof(uint64_t)},
        {&request->column, rows->dense ? 0 : values, sizeof(uint32_t)},
        {&request->value, values, sizeof(double)},
        {&request->label, request->rows, sizeof(double)},
        {&request->weight, request->rows, sizeof(double)},
        {&request->parameters, count, sizeof(double)}};
    /* Sets where each array begins, and returns how many bytes all of them take. Nothing lies at
     * the beginning of the memory, as the offset 0 means NULL. */
    uint64_t used = 64;
    for (size_t i = 0; i < (sizeof parts / sizeof *parts); i++) {
        *parts[i].at = used;
        used += (parts[i].count * parts[i].size + 63) / 64 * 64 + 64;
    }
    int code = plugin_room(plugin, PLUGIN_INPUT, used);
    if (!code)
        code = plugin_write_room(plugin, PLUGIN_OUT, (uint64_t)request->rows * out, &request->out);
    if (!code && gradient)
        code = plugin_write_room(plugin, PLUGIN_GRADIENT, count, &request->gradient);
    if (code)
        return code;
    char *memory = plugin->memory[PLUGIN_INPUT].start;
    copy_rows(memory, request, rows, rank, weighed, plugin->keys);
    memcpy(memory + request->parameters, parameters, count * sizeof *parameters);
    fill_gaps(memory, parts, sizeof parts / sizeof *parts, used);
    if (rows->dense)
        request->start = request->column = 0;
    return 0;
}

/* ---- chunks ---- */

/* The first element that is not finite; `count` if all are. */
static uint64_t first_wild(const double *elements, uint64_t count) {
    bool wild = false;
    for (uint64_t i = 0; i < count; i++)
        wild |= !(fabs(elements[i]) <= DBL_MAX);
    uint64_t i = 0;
    while (wild && i < count && fabs(elements[i]) <= DBL_MAX)
        i++;
    return wild ? i : count;
}

static int take_gradient(struct plugin *plugin, uint64_t count, bool finite_loss,
                         const double **taken) {
    double *gradient = plugin->gradient;
    assert(count <= plugin->gradients);
    int code = plugin_take(plugin, PLUGIN_GRADIENT, "chunk()", count, gradient);
    if (code || !finite_loss)
        return code;
    uint64_t wild = first_wild(gradient, count);
    if (wild < count)
        return plugin_refuse(plugin,
                             "element %llu of the gradient of a chunk is %g, though the loss is "
                             "finite; where it is too far out the loss must say so",
                             (unsigned long long)wild, gradient[wild]);
    *taken = gradient;
    return 0;
}

int plugin_chunk(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                 const double *parameters, uint64_t count, bool gradient,
                 struct plugin_result *result) {
    struct plugin_request request = {.operation = PLUGIN_CHUNK,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    *result = (struct plugin_result){0};
    int code = place(plugin, &request, rows, data->rank, true, parameters, count, 1, gradient);
    if (!code)
        code = plugin_ask(plugin, &request, "in chunk()", &answer);
    if (!code) {
        const char *memory = plugin->memory[PLUGIN_INPUT].start;
        const double *weight = (const double *)(const void *)(memory + request.weight);
        double *loss = plugin->loss;
        code = plugin_take(plugin, PLUGIN_OUT, "chunk()", request.rows, loss);
        for (uint32_t i = 0; i < request.rows && !code; i++) {
            result->loss += weight[i] * loss[i];
            if (loss[i] == -INFINITY)
                code = plugin_refuse(plugin, "the loss of a row is -infinity");
        }
    }
    if (!code && gradient)
        code = take_gradient(plugin, count, isfinite(result->loss), &result->gradient);
    return code;
}

/* ---- predictions ---- */

int plugin_predict(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                   const double *parameters, uint64_t count, double *predictions) {
    struct plugin_request request = {.operation = PLUGIN_PREDICT,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    int code =
        place(plugin, &request, rows, data->rank, false, parameters, count, data->outputs, false);
    request.label = request.weight = 0;
    if (!code)
        code = plugin_ask(plugin, &request, "in predict()", &answer);
    return code ? code
                : plugin_take(plugin, PLUGIN_OUT, "predict()",
                              (uint64_t)rows->count * data->outputs, predictions);
}

int plugin_losses(struct plugin *plugin, const struct plugin_data *data, const struct rows *rows,
                  const double *parameters, uint64_t count, double *losses) {
    struct plugin_request request = {.operation = PLUGIN_CHUNK,
                                     .data = {data->features, data->outputs}};
    struct plugin_answer answer;
    int code = place(plugin, &request, rows, data->rank, false, parameters, count, 1, false);
    if (!code)
        code = plugin_ask(plugin, &request, "in chunk()", &answer);
    return code ? code : plugin_take(plugin, PLUGIN_OUT, "chunk()", rows->count, losses);
}

/* ---- which library it is, as the coordinator tells replicas ---- */

static void put_text(struct bytes *blob, const char *text) {
    bytes_append(blob, text, strlen(text) + 1);
}

void plugin_source_encode(const struct plugin_source *source, struct bytes *blob) {
    put_text(blob, source->library);
    put_text(blob, source->options);
    put_text(blob, source->sha256);
    bytes_put_f64(blob, source->seconds);
}

/* NULL if no text ends within the rest, or it is too long. */
static const char *take_text(struct cursor *cursor) {
    const uint8_t *end = memchr(cursor->at, 0, cursor_left(cursor));
    return end && end - cursor->at < PLUGIN_TEXT_MAX
               ? cursor_take(cursor, (size_t)(end - cursor->at) + 1)
               : NULL;
}

bool plugin_source_decode(const void *blob, size_t length, struct plugin_source *source) {
    struct cursor cursor = cursor_over(blob, length);
    *source = (struct plugin_source){0};
    source->library = take_text(&cursor);
    source->options = source->library ? take_text(&cursor) : NULL;
    source->sha256 = source->options ? take_text(&cursor) : NULL;
    source->seconds = source->sha256 ? cursor_f64(&cursor) : 0;
    return source->sha256 && !cursor.failed && !cursor_left(&cursor) && isfinite(source->seconds) &&
           source->seconds > 0 && source->library[0] == '/';
}
