/* The heaviest weights, for people. */
#include <math.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/export.h"

struct heavy {
    double size, weight; /* size: |weight| */
    uint64_t feature;
};

static int compare(const void *a, const void *b) {
    const struct heavy *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->feature > y->feature) - (x->feature < y->feature);
}

/* Lists up to `count` weights of an output that are not 0, the heaviest first; free *heavy. Each
 * time that twice as many are listed, the lighter half goes. Returns how many there are. */
static size_t find_heavy(const struct model *model, uint32_t output, size_t count,
                         struct heavy **heavy) {
    uint64_t features = model->layout.features;
    const double *weight = model->weight + output * features;
    size_t found = 0, most = features < count ? (size_t)features : count;
    *heavy = memory_new(2 * most + 1, sizeof **heavy);
    for (uint64_t j = 0; j < features; j++) {
        if (weight[j] == 0)
            continue;
        (*heavy)[found++] = (struct heavy){.size = fabs(weight[j]), .weight = weight[j], j};
        if (found < 2 * most)
            continue;
        qsort(*heavy, found, sizeof **heavy, compare);
        found = most;
    }
    qsort(*heavy, found, sizeof **heavy, compare);
    return found < most ? found : most;
}

/* ---- for people ---- */

static void put_name(const struct model_layout *layout, uint64_t feature, FILE *file) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    if (*name)
        escape_put(name, file);
    else
        fprintf(file, "%llu", (unsigned long long)layout->feature_id[feature]);
}

/* Which way a weight speaks. */
static void put_heading(const struct model_layout *layout, uint32_t output, FILE *file) {
    if (model_rows(layout) > 1) {
        fprintf(file, "%sclass ", output ? "\n" : "");
        escape_put(layout->class_names[output], file);
        putc('\n', file);
    } else if (layout->classes > 1) {
        fputs("towards class ", file);
        escape_put(layout->class_names[layout->classes - 1], file);
        fputs("; negative ones towards ", file);
        escape_put(layout->class_names[0], file);
        putc('\n', file);
    }
}

static void put_weight(const struct heavy *heavy, const double *deviation, FILE *file) {
    fprintf(file, "%14.6g  ", heavy->weight);
    if (deviation && isfinite(deviation[heavy->feature]))
        fprintf(file, "%12.4g  ", heavy->weight * deviation[heavy->feature]);
    else if (deviation)
        fprintf(file, "%12s  ", "");
}

/* That of ordered classes is of being in the class or in a higher one. */
static void put_intercepts(const struct model *model, uint32_t output, const char *indent,
                           FILE *file) {
    const struct model_layout *layout = &model->layout;
    if (model->bias && !layout->shared)
        fprintf(file, "%14.6g  %s(intercept)\n", model->bias[output], indent);
    for (uint32_t k = 0; layout->shared && k < layout->outputs; k++) {
        fprintf(file, "%14.6g  %s(intercept >= ", model->bias[k], indent);
        escape_put(layout->class_names[k + 1], file);
        fputs(")\n", file);
    }
}

void export_write_top(const struct model *model, size_t count, const double *deviation,
                      FILE *file) {
    const struct model_layout *layout = &model->layout;
    if (deviation)
        fputs("        weight  of deviation  feature\n", file);
    for (uint32_t k = 0; k < model_rows(layout); k++) {
        struct heavy *heavy;
        size_t found = find_heavy(model, k, count, &heavy);
        put_heading(layout, k, file);
        for (size_t i = 0; i < found; i++) {
            put_weight(&heavy[i], deviation, file);
            put_name(layout, heavy[i].feature, file);
            putc('\n', file);
        }
        put_intercepts(model, k, deviation ? "              " : "", file);
        free(heavy);
    }
}

/* ---- JSON ---- */

static json_t *name_json(const struct model_layout *layout, uint64_t feature) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    return *name ? text_to_json(name) : json_integer((json_int_t)layout->feature_id[feature]);
}

static json_t *class_json(const struct model_layout *layout, uint32_t output) {
    if (!layout->classes)
        return json_null();
    return text_to_json(layout->class_names[model_rows(layout) > 1 ? output : layout->classes - 1]);
}

static json_t *weights_json(const struct model *model, uint32_t output, size_t count) {
    struct heavy *heavy;
    size_t found = find_heavy(model, output, count, &heavy);
    json_t *weights = json_array();
    for (size_t i = 0; i < found; i++)
        json_array_append_new(weights, json_pack("{s:o, s:f}", "feature",
                                                 name_json(&model->layout, heavy[i].feature),
                                                 "weight", heavy[i].weight));
    free(heavy);
    return weights;
}

/* Null for ordered classes, which have several. */
static json_t *intercept_json(const struct model *model, uint32_t output) {
    return model->bias && !model->layout.shared ? json_real(model->bias[output]) : json_null();
}

json_t *export_top_json(const struct model *model, size_t count, uint32_t outputs_most) {
    const struct model_layout *layout = &model->layout;
    if (model->network)
        return NULL;
    json_t *outputs = json_array();
    for (uint32_t k = 0; k < model_rows(layout) && k < outputs_most; k++)
        json_array_append_new(outputs, json_pack("{s:o, s:o, s:o}", "class", class_json(layout, k),
                                                 "intercept", intercept_json(model, k), "weights",
                                                 weights_json(model, k, count)));
    return outputs;
}
