/* Objectives that are plug-ins: their rows of the table, and their chunks. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "numeric/fixed.h"
#include "numeric/vector.h"
#include "objective/parts.h"

/* What the probabilities of a plug-in are made of, and its figures, is the same as of these losses.
 */
static void logistic_link(size_t outputs, double *margins) {
    objective_logistic.predict(outputs, margins);
}

static void softmax_link(size_t outputs, double *margins) {
    objective_softmax.predict(outputs, margins);
}

const struct objective objective_plugin_value = {
    .name = "plugin_value",
    .labels = LABEL_TARGET,
    .figures = FIGURE_RMSE,
    .prediction = "value",
};

const struct objective objective_plugin_score = {
    .name = "plugin_score",
    .labels = LABEL_BINARY,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .prediction = "margin",
};

const struct objective objective_plugin_margin = {
    .name = "plugin_margin",
    .labels = LABEL_BINARY,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .predict = logistic_link,
    .prediction = "probability",
};

const struct objective objective_plugin_scores = {
    .name = "plugin_scores",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC,
    .prediction = "margins",
};

const struct objective objective_plugin_margins = {
    .name = "plugin_margins",
    .labels = LABEL_CLASSES,
    .output_a_class = true,
    .figures = FIGURE_ACCURACY | FIGURE_AUC | FIGURE_LOG_LOSS,
    .predict = softmax_link,
    .prediction = "probabilities",
};

enum objective_kind objective_of_plugin(const struct plugin_description *description) {
    bool score = description->prediction == PLUGIN_SCORE;
    if (description->labels == LABEL_TARGET)
        return OBJECTIVE_PLUGIN_VALUE;
    if (description->labels == LABEL_BINARY)
        return score ? OBJECTIVE_PLUGIN_SCORE : OBJECTIVE_PLUGIN_MARGIN;
    return score ? OBJECTIVE_PLUGIN_SCORES : OBJECTIVE_PLUGIN_MARGINS;
}

/* ---- the shape ---- */

static struct layout plugin_layout(const struct objective_shape *shape) {
    return shape->plugin->tensors.layout;
}

static int plugin_exponent(const struct objective_shape *shape, const int16_t *columns, int share,
                           uint64_t number) {
    (void)shape, (void)columns, (void)number;
    return share;
}

/* Nothing is known of a plug-in's derivatives: the bounds follow from the weight of a chunk. */
static struct bounds plugin_first_bounds(const struct objective_shape *shape, double label_max_abs,
                                         double chunk) {
    struct bounds bounds = {.count = shape->plugin->tensors.layout.count};
    (void)label_max_abs;
    for (uint32_t t = 0; t < bounds.count; t++)
        bounds.exponent[t] = fixed_derivative_exponent(fmin(FIRST_ROOM * chunk, DBL_MAX));
    return bounds;
}

static uint64_t plugin_width(const struct objective_shape *shape) {
    return shape->outputs;
}

static const char *plugin_device_cannot(const struct objective_shape *shape) {
    (void)shape;
    return "plug-ins are computed by the CPU";
}

/* ---- chunks ---- */

static struct objective_scratch *plugin_scratch_new(const struct objective_shape *shape) {
    (void)shape;
    return memory_new(1, sizeof(struct objective_scratch));
}

static struct plugin_data data_of(const struct objective_shape *shape) {
    return (struct plugin_data){.features = objective_columns(shape),
                                .outputs = shape->outputs,
                                .rank = shape->plugin->rank};
}

/* Starts the process with the library in it when it is first needed. */
static int plugin_prepare(const struct objective_shape *shape, const struct objective_need *need,
                          struct objective_scratch *scratch) {
    const struct layout *layout = &shape->plugin->tensors.layout;
    struct plugin_data data = data_of(shape);
    int code = scratch->plugin
                   ? 0
                   : plugin_start_checked(&shape->plugin->source, &data, layout, &scratch->plugin);
    if (code)
        return code;
    plugin_expect(scratch->plugin, &need->rows, need->gradient ? layout_parameters(layout) : 0);
    const size_t margins = (size_t)need->rows.count * shape->outputs;
    if (margins > scratch->plugin_margins) {
        free(scratch->margins);
        scratch->margins = memory_new(margins, sizeof *scratch->margins);
        scratch->plugin_margins = margins;
    }
    return 0;
}

/* All tensors have one exponent each, so a maximum is that of the elements as they are. */
static void take_gradient(const struct layout *layout, const struct objective_scale *scale,
                          const double *gradient, int64_t *sum, struct objective_result *result) {
    assert(gradient && scale);
    for (uint32_t t = 0; t < layout->count; t++) {
        const struct layout_tensor *tensor = &layout->tensor[t];
        result->maxima.value[t] =
            gradient_max_abs(tensor->rows * tensor->columns, gradient + tensor->first);
    }
    result->exceeded = maxima_exceed(&result->maxima, &scale->bounds);
    for (uint32_t t = 0; t < layout->count && sum && !result->exceeded; t++) {
        const struct layout_tensor *tensor = &layout->tensor[t];
        gradient_add(tensor->rows * tensor->columns, gradient + tensor->first,
                     scale_of(scale, tensor->first_exponent),
                     fixed_power(-bounds_exponent(&scale->bounds, t)), sum + tensor->first);
    }
}

static int plugin_margins(const struct objective_shape *shape, const struct rows *rows,
                          const double *parameters, struct objective_scratch *scratch,
                          double *margins) {
    struct plugin_data data = data_of(shape);
    return plugin_predict(scratch->plugin, &data, rows, parameters,
                          layout_parameters(&shape->plugin->tensors.layout), margins);
}

/* The weight of the rows that are predicted correctly. */
static int find_correct(const struct objective_shape *shape, const struct rows *rows,
                        const double *parameters, struct objective_scratch *scratch,
                        double *correct) {
    const struct objective *objective = objective_of(shape->kind);
    if (objective->labels == LABEL_TARGET)
        return 0;
    double *margins = scratch->margins;
    assert((size_t)rows->count * shape->outputs <= scratch->plugin_margins);
    int code = plugin_margins(shape, rows, parameters, scratch, margins);
    for (uint32_t i = 0; i < rows->count && !code; i++)
        if (objective_is_correct(objective, shape->outputs, margins + (size_t)i * shape->outputs,
                                 &rows->label[i]))
            *correct += weight_at(rows, i);
    return code;
}

static int plugin_block(const struct objective_shape *shape, const struct objective_scale *scale,
                        const struct rows *rows, const double *parameters, int64_t *sum,
                        struct objective_scratch *scratch, struct objective_result *result) {
    const struct layout *layout = &shape->plugin->tensors.layout;
    struct plugin_data data = data_of(shape);
    struct plugin_result found;
    *result = (struct objective_result){.maxima = {.count = layout->count}};
    int code = plugin_chunk(scratch->plugin, &data, rows, parameters, layout_parameters(layout),
                            scale != NULL, &found);
    if (code)
        return code;
    result->loss = found.loss;
    if (found.gradient)
        take_gradient(layout, scale, found.gradient, sum, result);
    for (uint32_t t = 0; t < layout->count && !isfinite(found.loss); t++)
        result->maxima.value[t] = INFINITY;
    result->exceeded |= !isfinite(found.loss);
    return scale ? 0 : find_correct(shape, rows, parameters, scratch, &result->correct);
}

static int plugin_losses_of_rows(const struct objective_shape *shape, const struct rows *rows,
                                 const double *parameters, struct objective_scratch *scratch,
                                 double *losses) {
    struct plugin_data data = data_of(shape);
    return plugin_losses(scratch->plugin, &data, rows, parameters,
                         layout_parameters(&shape->plugin->tensors.layout), losses);
}

static const struct family_compute plugin_compute = {
    .scratch_new = plugin_scratch_new,
    .prepare = plugin_prepare,
    .block = plugin_block,
    .margins = plugin_margins,
    .losses = plugin_losses_of_rows,
};

const struct family family_plugin = {
    .name = "plug-in",
    .rounds_chunks = true,
    .own_tensors = true,
    .thread_vectors = 5, /* one, and parameters and gradient of its process, mapped and copied */
    .layout = plugin_layout,
    .exponent = plugin_exponent,
    .first_bounds = plugin_first_bounds,
    .width = plugin_width,
    .device_cannot = plugin_device_cannot,
    .compute = &plugin_compute,
};
