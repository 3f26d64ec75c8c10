/* The heaviest weights, for people. */
#include <math.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/export.h"

struct heavy {
    double size; /* |weight| */
    uint64_t feature;
};

static int compare(const void *a, const void *b) {
    const struct heavy *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return (x->feature > y->feature) - (x->feature < y->feature);
}

/* Fills `heavy`, of room for 2·count, with up to `count` of the weights that are not 0, the
 * heaviest first. Each time it is full, the lighter half goes. Returns how many there are. */
static size_t find_heavy(const double *weight, uint64_t features, size_t count,
                         struct heavy *heavy) {
    size_t found = 0;
    for (uint64_t j = 0; j < features; j++) {
        if (weight[j] == 0)
            continue;
        heavy[found++] = (struct heavy){fabs(weight[j]), j};
        if (found < 2 * count)
            continue;
        qsort(heavy, found, sizeof *heavy, compare);
        found = count;
    }
    qsort(heavy, found, sizeof *heavy, compare);
    return found < count ? found : count;
}

static void put_name(const struct model_layout *layout, uint64_t feature, FILE *file) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    if (*name)
        escape_put(name, file);
    else
        fprintf(file, "%llu", (unsigned long long)layout->feature_id[feature]);
}

/* Which way a weight speaks. */
static void put_heading(const struct model_layout *layout, uint32_t output, FILE *file) {
    if (layout->outputs > 1) {
        fprintf(file, "%sclass ", output ? "\n" : "");
        escape_put(layout->class_names[output], file);
        putc('\n', file);
    } else if (layout->classes == 2) {
        fputs("towards class ", file);
        escape_put(layout->class_names[1], file);
        fputs("; negative ones towards ", file);
        escape_put(layout->class_names[0], file);
        putc('\n', file);
    }
}

void export_write_top(const struct model *model, size_t count, FILE *file) {
    const struct model_layout *layout = &model->layout;
    uint64_t most = layout->features < count ? layout->features : count;
    struct heavy *heavy = memory_new(2 * (size_t)most + 1, sizeof *heavy);
    for (uint32_t k = 0; k < layout->outputs; k++) {
        const double *weight = model->weight + k * layout->features;
        size_t found = find_heavy(weight, layout->features, (size_t)most, heavy);
        put_heading(layout, k, file);
        for (size_t i = 0; i < found; i++) {
            fprintf(file, "%14.6g  ", weight[heavy[i].feature]);
            put_name(layout, heavy[i].feature, file);
            putc('\n', file);
        }
        if (model->bias)
            fprintf(file, "%14.6g  (intercept)\n", model->bias[k]);
    }
    free(heavy);
}

/* ---- JSON ---- */

static json_t *name_json(const struct model_layout *layout, uint64_t feature) {
    const char *name = layout->feature_names ? layout->feature_names[feature] : "";
    return *name ? text_to_json(name) : json_integer((json_int_t)layout->feature_id[feature]);
}

static json_t *class_json(const struct model_layout *layout, uint32_t output) {
    if (!layout->classes)
        return json_null();
    return text_to_json(layout->class_names[layout->outputs > 1 ? output : layout->classes - 1]);
}

json_t *export_top_json(const struct model *model, size_t count, uint32_t outputs_most) {
    const struct model_layout *layout = &model->layout;
    uint64_t most = layout->features < count ? layout->features : count;
    struct heavy *heavy = memory_new(2 * (size_t)most + 1, sizeof *heavy);
    json_t *outputs = json_array();
    for (uint32_t k = 0; k < layout->outputs && k < outputs_most; k++) {
        const double *weight = model->weight + k * layout->features;
        size_t found = find_heavy(weight, layout->features, (size_t)most, heavy);
        json_t *weights = json_array();
        for (size_t i = 0; i < found; i++)
            json_array_append_new(weights, json_pack("{s:o, s:f}", "feature",
                                                     name_json(layout, heavy[i].feature), "weight",
                                                     weight[heavy[i].feature]));
        json_array_append_new(
            outputs,
            json_pack("{s:o, s:o, s:o}", "class", class_json(layout, k), "intercept",
                      model->bias ? json_real(model->bias[k]) : json_null(), "weights", weights));
    }
    free(heavy);
    return outputs;
}
