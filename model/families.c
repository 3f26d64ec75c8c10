/* The families of models (objective/family.h): the tensors of each in a file, what model.json says
 * besides, and whether a run can start from a model. */
#include "model/onnx_margins.h"
#include "model/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "model/tensors.h"

struct objective_shape model_shape(const struct model_layout *layout) {
    return (struct objective_shape){.kind =
                                        (enum objective_kind)objective_from_name(layout->objective),
                                    .features = layout->features,
                                    .outputs = layout->outputs,
                                    .intercept = layout->intercept,
                                    .loss = layout->loss,
                                    .network = layout->network,
                                    .plugin = layout->plugin ? &layout->plugin->own : NULL};
}

/* ---- hidden layers, of which linear models have none ---- */

json_t *model_network_json(const struct network *network) {
    if (!network->layers)
        return json_null();
    json_t *layers = json_array();
    for (uint32_t i = 0; i < network->layers; i++)
        json_array_append_new(layers, json_integer((json_int_t)network->units[i]));
    return json_pack("{s:o, s:s, s:s}", "layers", layers, "activation",
                     activation_name(network->activation), "precision",
                     precision_name(network->precision));
}

/* Reads `network`, whose layers must be those of the tensors; linear models have none. */
static int read_network(const char *path, struct model *model) {
    struct network *network = &model->layout.network;
    const json_t *member = json_object_get(model->details, "network");
    const char *activation = json_string_value(json_object_get(member, "activation"));
    const char *precision = json_string_value(json_object_get(member, "precision"));
    int kind = activation ? activation_from_name(activation) : -1;
    int type = precision ? precision_from_name(precision) : -1;
    /* Whether the member `network` has the layers of the tensors; linear models have no such
     * member. */
    const json_t *layers = json_object_get(member, "layers");
    bool same = json_array_size(layers) == network->layers && !member == !network->layers;
    for (uint32_t i = 0; i < network->layers && same; i++)
        same = json_integer_value(json_array_get(layers, i)) == (json_int_t)network->units[i];
    if (!same)
        return error_set(ERROR_DATA, "%s: `network` does not have the layers of the tensors", path);
    if (network->layers && (kind < 0 || type < 0))
        return error_set(ERROR_DATA,
                         "%s: this program does not know the %s `%s`; use the program that wrote "
                         "it",
                         path, kind < 0 ? "activation" : "precision",
                         kind < 0    ? activation ? activation : ""
                         : precision ? precision
                                     : "");
    if (network->layers) {
        network->activation = (enum activation)kind;
        network->precision = (enum precision)type;
    }
    return 0;
}

/* As `layers` in a job; free it. */
static char *layers_text(const struct network *network) {
    char *list = memory_copy_string("");
    for (uint32_t i = 0; i < network->layers; i++) {
        char *more = memory_format("%s%s%u", list, i ? ", " : "", network->units[i]);
        free(list);
        list = more;
    }
    char *text = network->layers ? memory_format("hidden layers { %s } of %s", list,
                                                 activation_name(network->activation))
                                 : memory_copy_string("no hidden layers");
    free(list);
    return text;
}

static int fits_network(const struct model_layout *before, const struct model_layout *layout) {
    const struct network *old = &before->network, *network = &layout->network;
    bool same =
        old->layers == network->layers && (!old->layers || old->activation == network->activation);
    for (uint32_t i = 0; i < old->layers && same; i++)
        same = old->units[i] == network->units[i];
    if (same)
        return 0;
    char *had = layers_text(old), *has = layers_text(network);
    int code = error_set(ERROR_DATA, "it has %s, and the job %s", had, has);
    free(had);
    free(has);
    return code;
}

/* ---- linear models ---- */

static uint32_t linear_rows(const struct model_layout *layout) {
    return layout->shared ? 1 : layout->outputs;
}

static struct layout linear_tensors(const struct model_layout *layout) {
    return layout_linear_of(layout->features, linear_rows(layout),
                            layout->intercept ? layout->outputs : 0);
}

static int check_shapes(const char *path, const struct described *weight,
                        const struct described *bias) {
    uint64_t k = weight->dimension[0], f = weight->dimension[1];
    if (weight->dimensions != 2 || k < 1 || k > CLASSES_MAX || f > PARAMETERS_MAX ||
        f * k > PARAMETERS_MAX)
        return error_set(ERROR_DATA, "%s: tensor weight is not of shape [outputs, features]", path);
    if (bias && (bias->dimensions != 1 || bias->dimension[0] < 1 ||
                 bias->dimension[0] > CLASSES_MAX || (k > 1 && bias->dimension[0] != k)))
        return error_set(ERROR_DATA, "%s: tensor bias is not of shape [%llu]", path,
                         (unsigned long long)k);
    return 0;
}

static int place_linear(const char *path, const json_t *header, size_t data, size_t length,
                        struct tensors *tensors) {
    struct described weight, bias;
    bool intercept = json_object_get(header, TENSOR_BIAS) != NULL;
    if (!tensors_described(header, TENSOR_WEIGHT, &weight) ||
        (intercept && !tensors_described(header, TENSOR_BIAS, &bias)))
        return error_set(ERROR_DATA, "%s lacks a well-formed weight or bias", path);
    int code = check_shapes(path, &weight, intercept ? &bias : NULL);
    if (code)
        return code;
    uint64_t k = weight.dimension[0], f = weight.dimension[1];
    uint64_t biases = intercept ? bias.dimension[0] : 0;
    *tensors = (struct tensors){
        .rows = (uint32_t)k, .biases = (uint32_t)biases, .features = f, .bytes = length};
    code =
        tensors_place(path, data, length, TENSOR_WEIGHT, &weight, "F64", k * f, &tensors->weight);
    if (!code && intercept)
        code = tensors_place(path, data, length, TENSOR_BIAS, &bias, "F64", biases, &tensors->bias);
    return code;
}

static void take_linear(const uint8_t *file, const struct tensors *tensors, struct model *model) {
    model->weight = (const double *)(file + tensors->weight);
    model->bias = tensors->biases ? (const double *)(file + tensors->bias) : NULL;
    model->layout.shared = tensors->biases > tensors->rows;
    model->layout.outputs = model->layout.shared ? tensors->biases : tensors->rows;
    model->layout.intercept = tensors->biases > 0;
}

static const struct model_family linear = {
    .family = &family_linear,
    .rows = linear_rows,
    .tensors = linear_tensors,
    .place = place_linear,
    .take = take_linear,
    .read = read_network,
    .fits = fits_network,
    .graph_margins = onnx_linear_margins,
};

/* ---- networks ---- */

static uint32_t network_rows(const struct model_layout *layout) {
    return layout->network.units[0];
}

static struct layout network_tensors(const struct model_layout *layout) {
    const struct objective_shape shape = model_shape(layout);
    return objective_from_name(layout->objective) < 0 ? (struct layout){0}
                                                      : objective_layout(&shape);
}

static void describe_network(const struct model_layout *layout, json_t *all) {
    json_object_set_new(all, "network", model_network_json(&layout->network));
}

static struct layout_tensor named(char kind, uint32_t layer) {
    struct layout_tensor tensor = {0};
    snprintf(tensor.name, sizeof tensor.name, "%c%u", kind, layer);
    return tensor;
}

/* Adds a tensor as the header describes it; `in` is how many rows it must have, or NULL. */
static bool read_tensor(const json_t *header, struct layout_tensor tensor, const uint64_t *in,
                        struct layout *network) {
    struct described found;
    bool matrix = tensors_is_matrix(&tensor);
    if (!tensors_described(header, tensor.name, &found) || found.dimensions != (matrix ? 2 : 1))
        return false;
    tensor.rows = matrix ? found.dimension[0] : 1;
    tensor.columns = found.dimension[matrix];
    return (!in || tensor.rows == *in) && tensor.columns <= UINT32_MAX &&
           layout_add(network, &tensor);
}

/* Reads the shapes: weights, each of which takes what the one before it gives, and then a bias for
 * each. How many biases the outputs have is up to the objective. */
static bool read_layers(const json_t *header, struct layout *network) {
    uint32_t layers = 0;
    while (layers <= NETWORK_LAYERS_MAX && json_object_get(header, named('W', layers + 1).name)) {
        const uint64_t *in = layers ? &network->tensor[layers - 1].columns : NULL;
        if (!read_tensor(header, named('W', layers + 1), in, network))
            return false;
        layers++;
    }
    for (uint32_t i = 0; i < layers; i++) {
        const struct layout_tensor *weight = &network->tensor[i];
        const struct layout_tensor *bias = &network->tensor[layers + i];
        if (!read_tensor(header, named('b', i + 1), NULL, network) ||
            (i + 1 < layers && bias->columns != weight->columns))
            return false;
    }
    return layers > 1 && network->tensor[0].rows <= FEATURES_MAX &&
           network->tensor[2 * layers - 1].columns <= CLASSES_MAX;
}

static int place_network(const char *path, const json_t *header, size_t data, size_t length,
                         struct tensors *tensors) {
    *tensors = (struct tensors){.bytes = length};
    if (!read_layers(header, &tensors->vector))
        return error_set(ERROR_DATA,
                         "%s: the shapes of W1, W2, … and b1, b2, … are not those of the layers of "
                         "a network",
                         path);
    tensors->features = tensors->vector.tensor[0].rows;
    return tensors_place_vector(path, header, data, length, tensors);
}

static void take_network(const uint8_t *file, const struct tensors *tensors, struct model *model) {
    struct network *network = &model->layout.network;
    uint32_t layers = tensors->vector.count / 2;
    const struct layout_tensor *weight = tensors->vector.tensor;
    model->vector = (const double *)(file + tensors->weight);
    network->layers = layers - 1;
    for (uint32_t i = 0; i < network->layers; i++)
        network->units[i] = (uint32_t)weight[i].columns;
    model->layout.outputs = (uint32_t)weight[2 * layers - 1].columns;
    model->layout.shared = model->layout.outputs > weight[layers - 1].columns;
    model->layout.intercept = true;
}

static const struct model_family network = {
    .family = &family_network,
    .stores_vector = true,
    .rows = network_rows,
    .tensors = network_tensors,
    .place = place_network,
    .take = take_network,
    .describe = describe_network,
    .read = read_network,
    .fits = fits_network,
    .graph_margins = onnx_network_margins,
};

/* ---- plug-ins ---- */

static struct layout own_tensors(const struct model_layout *layout) {
    return layout->plugin->own.tensors.layout;
}

static uint32_t own_by_feature(const struct model_layout *layout) {
    return layout->plugin->own.tensors.by_feature;
}

#define FEATURE_ID "feature_id"

/* The tensors of a plug-in may have any names. They lie one after the other, feature_id last. */
static bool read_own(const json_t *header, struct layout *own) {
    const char *name;
    json_t *entry;
    json_object_foreach((json_t *)header, name, entry) {
        struct layout_tensor tensor = {0};
        struct described found;
        if (strcmp(name, "__metadata__") == 0 || strcmp(name, FEATURE_ID) == 0)
            continue;
        if (strlen(name) >= sizeof tensor.name || !tensors_described(header, name, &found) ||
            found.dimensions != 2)
            return false;
        strcpy(tensor.name, name);
        tensor.rows = found.dimension[0];
        tensor.columns = found.dimension[1];
        if (!layout_add(own, &tensor))
            return false;
    }
    return own->count > 0;
}

static int place_own(const char *path, const json_t *header, size_t data, size_t length,
                     struct tensors *tensors) {
    struct described feature_id;
    *tensors = (struct tensors){.bytes = length, .matrices = true};
    if (!read_own(header, &tensors->vector) ||
        !tensors_described(header, FEATURE_ID, &feature_id) || feature_id.dimensions != 1)
        return error_set(ERROR_DATA,
                         "%s: the tensors of a plug-in must be matrices, and feature_id a vector",
                         path);
    tensors->features = feature_id.dimension[0];
    return tensors_place_vector(path, header, data, length, tensors);
}

static void take_plugin(const uint8_t *file, const struct tensors *tensors, struct model *model) {
    model->vector = (const double *)(file + tensors->weight);
    model->library.own.tensors.layout = tensors->vector;
    model->layout.plugin = &model->library;
    model->layout.intercept = true;
}

static void describe_plugin(const struct model_layout *layout, json_t *all) {
    const struct model_plugin *plugin = layout->plugin;
    const struct plugin_source *source = &plugin->own.source;
    const struct plugin_tensors *tensors = &plugin->own.tensors;
    json_t *by_feature = json_array();
    for (uint32_t i = 0; i < tensors->layout.count; i++)
        if (tensors->by_feature >> i & 1)
            json_array_append_new(by_feature, json_string(tensors->layout.tensor[i].name));
    json_t *member = json_pack("{s:o, s:o, s:s, s:o, s:f, s:o}", "name", text_to_json(plugin->name),
                               "library", text_to_json(source->library), "sha256", source->sha256,
                               "options", text_to_json(source->options), "seconds", source->seconds,
                               "by_feature", by_feature);
    json_object_set_new(all, "plugin", member);
}

static const char *text_of(const json_t *object, const char *member) {
    return json_string_value(json_object_get(object, member));
}

static bool has_tensor(const json_t *names, const char *name) {
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = json_string_value(json_array_get(names, i));
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static int read_plugin(const char *path, struct model *model) {
    const json_t *member = json_object_get(model->details, "plugin");
    struct plugin_source *source = &model->library.own.source;
    struct plugin_tensors *tensors = &model->library.own.tensors;
    int code = read_network(path, model); /* makes sure that there are no layers */
    if (code)
        return code;
    model->program = process_beside("dml-replica");
    *source =
        (struct plugin_source){.program = model->program,
                               .library = text_of(member, "library"),
                               .options = text_of(member, "options"),
                               .sha256 = text_of(member, "sha256"),
                               .seconds = json_number_value(json_object_get(member, "seconds"))};
    model->library.name = text_of(member, "name");
    if (!source->library || !source->options || !source->sha256 || !model->library.name ||
        !(source->seconds > 0))
        return error_set(ERROR_DATA,
                         "%s: `plugin` lacks its name, library, sha256, options or seconds", path);
    for (uint32_t i = 0; i < tensors->layout.count; i++)
        if (has_tensor(json_object_get(member, "by_feature"), tensors->layout.tensor[i].name))
            tensors->by_feature |= UINT32_C(1) << i;
    return 0;
}

/* Tensors of the same names and shapes, but for the rows of features. */
static bool same_tensors(const struct plugin_tensors *old, const struct plugin_tensors *tensors) {
    bool same =
        old->layout.count == tensors->layout.count && old->by_feature == tensors->by_feature;
    for (uint32_t i = 0; same && i < tensors->layout.count; i++) {
        const struct layout_tensor *a = &old->layout.tensor[i], *b = &tensors->layout.tensor[i];
        bool rows = a->rows == b->rows || (tensors->by_feature >> i & 1);
        same = strcmp(a->name, b->name) == 0 && rows && a->columns == b->columns;
    }
    return same;
}

static int fits_plugin(const struct model_layout *old, const struct model_layout *layout) {
    const struct model_plugin *had = old->plugin, *has = layout->plugin;
    if (old->outputs != layout->outputs)
        return error_set(ERROR_DATA, "it has %u classes, and the data has %u", old->classes,
                         layout->classes);
    return same_tensors(&had->own.tensors, &has->own.tensors)
               ? 0
               : error_set(ERROR_DATA, "its plug-in (%s) had other tensors than the job's (%s)",
                           had->name, has->name);
}

static const struct model_family plugin = {
    .family = &family_plugin,
    .stores_vector = true,
    .rows = linear_rows,
    .tensors = own_tensors,
    .by_feature = own_by_feature,
    .place = place_own,
    .take = take_plugin,
    .describe = describe_plugin,
    .outputs = objective_outputs,
    .read = read_plugin,
    .fits = fits_plugin,
};

/* ---- all ---- */

const struct model_family *model_family(const struct model_layout *layout) {
    return layout->plugin ? &plugin : layout->network.layers ? &network : &linear;
}

const struct model_family *model_family_of_header(const json_t *header) {
    const json_t *metadata = json_object_get(header, "__metadata__");
    const char *objective = json_string_value(json_object_get(metadata, "objective"));
    bool own = objective && strncmp(objective, "plugin_", strlen("plugin_")) == 0;
    return own ? &plugin : json_object_get(header, "W1") ? &network : &linear;
}

uint32_t model_rows(const struct model_layout *layout) {
    return model_family(layout)->rows(layout);
}

uint32_t model_by_feature(const struct model_layout *layout) {
    const struct model_family *family = model_family(layout);
    return family->by_feature ? family->by_feature(layout) : 1;
}

struct layout model_tensors(const struct model_layout *layout) {
    return model_family(layout)->tensors(layout);
}

uint64_t model_parameters(const struct model_layout *layout) {
    struct layout vector = model_tensors(layout);
    return layout_parameters(&vector);
}
