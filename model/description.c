#include "model/description.h"

#include "base/text.h"
#include "model/merge.h"
#include "objective/objective.h"

json_t *description_feature_names(const struct model_layout *layout, uint64_t features) {
    json_t *names = json_array();
    struct merge merge = {.layout = layout};
    uint64_t number;
    for (uint64_t r = 0; r < features; r++) {
        bool kept = merge_next_is_kept(&merge, &number);
        const char *const *of = kept ? layout->kept->names : layout->feature_names;
        json_array_append_new(names, text_to_json(of ? of[number] : ""));
    }
    return names;
}

static json_t *class_names_json(const struct model_layout *layout) {
    json_t *names = json_array();
    for (uint32_t i = 0; i < layout->classes; i++)
        json_array_append_new(names, text_to_json(layout->class_names[i]));
    return names;
}

/* NULL if the loss has no parameters. */
static json_t *parameters_json(const struct model_layout *layout) {
    int kind = objective_from_name(layout->objective);
    const struct loss_parameter *parameter;
    json_t *all = NULL;
    for (uint32_t i = 0;
         kind >= 0 && (parameter = objective_parameter((enum objective_kind)kind, i)); i++) {
        all = all ? all : json_object();
        json_object_set_new(all, parameter->name, json_real(layout->loss.value[i]));
    }
    return all;
}

json_t *model_network_json(const struct network *network) {
    json_t *layers = json_array();
    for (uint32_t i = 0; i < network->layers; i++)
        json_array_append_new(layers, json_integer((json_int_t)network->units[i]));
    return json_pack("{s:o, s:s, s:s}", "layers", layers, "activation",
                     activation_name(network->activation), "precision",
                     precision_name(network->precision));
}

/* What the tensors of a plug-in do not say. */
static json_t *plugin_json(const struct model_plugin *plugin) {
    const struct plugin_source *source = &plugin->own.source;
    const struct plugin_tensors *tensors = &plugin->own.tensors;
    json_t *by_feature = json_array();
    for (uint32_t i = 0; i < tensors->layout.count; i++)
        if (tensors->by_feature >> i & 1)
            json_array_append_new(by_feature, json_string(tensors->layout.tensor[i].name));
    return json_pack("{s:o, s:o, s:s, s:o, s:f, s:o}", "name", text_to_json(plugin->name),
                     "library", text_to_json(source->library), "sha256", source->sha256, "options",
                     text_to_json(source->options), "seconds", source->seconds, "by_feature",
                     by_feature);
}

static int format_version(const struct model_layout *layout) {
    if (layout->table)
        return MODEL_FORMAT_VERSION;
    return layout->network.layers || layout->plugin ? MODEL_FORMAT_NETWORK : MODEL_FORMAT_LINEAR;
}

json_t *description_json(const struct model_layout *layout, uint64_t features, const char *sha256,
                         const json_t *details) {
    json_t *all = json_pack("{s:i, s:s, s:I, s:b, s:I, s:s}", "format_version",
                            format_version(layout), "objective", layout->objective, "outputs",
                            (json_int_t)layout->outputs, "intercept", layout->intercept, "features",
                            (json_int_t)features, "model_sha256", sha256);
    json_t *parameters = parameters_json(layout);
    if (parameters)
        json_object_set_new(all, "objective_parameters", parameters);
    if (layout->network.layers)
        json_object_set_new(all, "network", model_network_json(&layout->network));
    if (layout->plugin)
        json_object_set_new(all, "plugin", plugin_json(layout->plugin));
    if (layout->classes)
        json_object_set_new(all, "classes", class_names_json(layout));
    if (layout->separator)
        json_object_set_new(all, "separator", json_stringn(&layout->separator, 1));
    if (layout->feature_names)
        json_object_set_new(all, "feature_names", description_feature_names(layout, features));
    if (layout->table)
        json_object_set_new(all, "preparation", table_json(layout->table));
    if (details)
        json_object_update_missing(all, (json_t *)details);
    return all;
}
