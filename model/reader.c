#define _GNU_SOURCE
#include "model/model.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/response.h"
#include "model/description.h"
#include "model/family.h"
#include "model/offsets.h"
#include "model/tensors.h"
#include "objective/objective.h"
#include "objective/shape.h"

#define JSON_BYTES_MAX (UINT64_C(1) << 32)

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

#define JOB_FILE ".conf"

/* The model.safetensors that `path` stands for, or NULL if there is none. Free the result. */
static char *find_tensors(const char *path) {
    if (is_file(path) && name_ends(path, JOB_FILE))
        return NULL;
    if (is_file(path))
        return memory_copy_string(path);
    static const char *const places[] = {"model.safetensors", "models/current/model.safetensors"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *candidate = path_join(path, places[i]);
        if (is_file(candidate))
            return candidate;
        free(candidate);
    }
    return NULL;
}

/* The folder of a file; where that is a link, as models/current is, what it leads to now: so both
 * files are of one model, whichever becomes live meanwhile. Free the result. */
static char *find_folder(const char *path) {
    char target[PATH_MAX];
    char *folder = path_folder(path);
    ssize_t length = readlink(folder, target, sizeof target);
    if (length <= 0 || (size_t)length == sizeof target)
        return folder;
    target[length] = '\0';
    char *above = path_folder(folder), *found = path_join(above, target);
    free(above);
    free(folder);
    return found;
}

static int read_json(const char *path, json_t **details) {
    char *text;
    size_t length;
    if (!is_file(path))
        return error_set(ERROR_DATA, "%s is missing: a model consists of both files", path);
    int code = file_read(path, JSON_BYTES_MAX, &text, &length);
    if (code)
        return code;
    json_error_t error;
    *details = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!json_is_object(*details))
        return error_set(ERROR_DATA, "%s:%d: not a JSON object: %s", path, error.line, error.text);
    json_int_t version = json_integer_value(json_object_get(*details, "format_version"));
    if (version < 1)
        return error_set(ERROR_DATA, "%s does not describe a model: no format_version", path);
    return tensors_check_version(path, *details, version);
}

/* Lists the strings of an array member. The strings stay part of `details`; the list is the
 * caller's. *names is NULL if there is no such member. */
static int read_names(const json_t *details, const char *member, const char *path,
                      const char *const **names, size_t *count) {
    const json_t *array = json_object_get(details, member);
    *names = NULL;
    *count = 0;
    if (!array)
        return 0;
    *count = json_array_size(array);
    const char **list = memory_new(*count, sizeof *list);
    *names = list;
    for (size_t i = 0; i < *count; i++) {
        list[i] = json_string_value(json_array_get(array, i));
        if (!list[i])
            return error_set(ERROR_DATA, "%s: entry %zu of %s is not a text", path, i + 1, member);
    }
    return 0;
}

static bool has_classes(const struct objective *objective, size_t classes) {
    switch (objective->labels) {
    case LABEL_BINARY:
        return classes == 2;
    case LABEL_CLASSES:
    case LABEL_LISTS:
        return classes >= 1;
    case LABEL_ORDERED:
        return classes >= 2;
    case LABEL_TARGET:
        break;
    }
    return classes == 0;
}

/* Whether weights are shared as the objective shares them; the layout was read off the tensors. */
static bool shares_as(const struct model_layout *layout, const struct objective *objective) {
    if (!objective->shares_weights)
        return !layout->shared;
    return layout->intercept && (layout->shared || layout->outputs == 1);
}

static int check_objective(const char *path, struct model_layout *layout, size_t classes) {
    const struct objective *objective = objective_find(layout->objective);
    if (!objective)
        return error_set(ERROR_DATA,
                         "%s: this program does not know the objective `%s`; use the program that "
                         "wrote it",
                         path, layout->objective);
    if (!has_classes(objective, classes) || !shares_as(layout, objective) ||
        layout->outputs != objective_outputs(objective, (uint32_t)classes))
        return error_set(ERROR_DATA, "%s: a model for %s cannot have %u outputs and %zu classes",
                         path, layout->objective, layout->outputs, classes);
    if ((objective->labels == LABEL_LISTS) != (layout->separator != 0))
        return error_set(ERROR_DATA, "%s: a model for %s must%s have a `separator`", path,
                         layout->objective, layout->separator ? " not" : "");
    layout->shared = objective->shares_weights;
    return 0;
}

/* The parameters of the loss. */
static int read_parameters(const char *path, struct model *model) {
    enum objective_kind kind = (enum objective_kind)objective_from_name(model->layout.objective);
    const json_t *all = json_object_get(model->details, "objective_parameters");
    const struct loss_parameter *parameter;
    for (uint32_t i = 0; (parameter = objective_parameter(kind, i)); i++) {
        const json_t *value = json_object_get(all, parameter->name);
        model->layout.loss.value[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    parameter = objective_parameter_invalid(kind, &model->layout.loss);
    if (parameter)
        return error_set(ERROR_DATA,
                         "%s: objective_parameters has no `%s` of %s, or one that is not a number "
                         "from %g to %g",
                         path, parameter->name, model->layout.objective, parameter->least,
                         parameter->most);
    return 0;
}

static int read_layout(const char *path, struct model *model) {
    struct model_layout *layout = &model->layout;
    size_t classes, names;
    layout->objective = json_string_value(json_object_get(model->details, "objective"));
    if (!layout->objective)
        return error_set(ERROR_DATA, "%s: no objective", path);
    int code = read_names(model->details, "classes", path, &layout->class_names, &classes);
    if (!code)
        code = read_names(model->details, "feature_names", path, &layout->feature_names, &names);
    if (code)
        return code;
    layout->classes = (uint32_t)classes;
    const char *separator = json_string_value(json_object_get(model->details, "separator"));
    layout->separator = separator ? *separator : 0;
    if (layout->feature_names && names != layout->features)
        return error_set(ERROR_DATA, "%s names %zu features, but the model has %llu", path, names,
                         (unsigned long long)layout->features);
    const struct model_family *family = model_family(layout);
    const struct objective *objective = objective_find(layout->objective);
    if (family->outputs && objective)
        layout->outputs = family->outputs(objective, (uint32_t)classes);
    code = offsets_read(model->details, path, layout);
    if (!code)
        code = check_objective(path, layout, classes);
    if (!code)
        code = family->read(path, model);
    if (!code)
        code = read_parameters(path, model);
    if (!code)
        code = response_read(model->details, path, layout, &model->response);
    layout->response = model->response;
    return code;
}

static int read_table(const char *path, struct model *model) {
    const json_t *object = json_object_get(model->details, "preparation");
    if (!object)
        return 0;
    int code = table_of_json(object, path, &model->table);
    model->layout.table = model->table;
    bool weighs = !code && table_has_texts(model->table) && table_weighs_words(model->table);
    if (weighs && !model->layout.idf)
        code =
            error_set(ERROR_DATA, "%s: its words are weighed, but the tensor idf is missing", path);
    return code;
}

static int map_tensors(const char *path, struct model *model, struct tensors *tensors) {
    int code = file_map(path, &model->mapping, &model->mapping_bytes);
    if (!code)
        code = tensors_parse(path, model->mapping, model->mapping_bytes, tensors);
    if (code)
        return code;
    const uint8_t *file = model->mapping;
    tensors->family->take(file, tensors, model);
    model->layout.feature_id = (const uint64_t *)(file + tensors->feature_id);
    model->layout.features = tensors->features;
    if (tensors->weighs_words)
        model->layout.idf = (const double *)(file + tensors->idf);
    if (tensors->has_means)
        model->layout.mean = (const double *)(file + tensors->mean);
    for (uint64_t j = 1; j < tensors->features; j++)
        if (model->layout.feature_id[j] <= model->layout.feature_id[j - 1])
            return error_set(ERROR_DATA, "%s: the feature ids are not in rising order", path);
    return 0;
}

/* The hash in model.json, if any, shows damage, and two files that do not belong together. */
static int check_parameters(const char *tensors_path, const char *json_path,
                            const struct model *model, const struct tensors *tensors) {
    const char *stored = json_string_value(json_object_get(model->details, "model_sha256"));
    if (stored && strcmp(stored, model->sha256))
        return error_set(ERROR_DATA, "%s is damaged: its parameters do not have the hash in %s",
                         tensors_path, json_path);
    if (!tensors_finite(tensors, model->mapping))
        return error_set(ERROR_DATA, "%s: a parameter is not finite", tensors_path);
    return 0;
}

static int open_files(const char *path, parts_function *share, struct model *model) {
    struct tensors tensors;
    struct tensors_hashes hashes;
    const char *name = strrchr(path, '/');
    char *folder = find_folder(path);
    char *tensors_path = path_join(folder, name ? name + 1 : path);
    char *json_path = path_join(folder, "model.json");
    int code = map_tensors(tensors_path, model, &tensors);
    if (!code)
        code = read_json(json_path, &model->details);
    if (!code)
        code = read_layout(json_path, model);
    if (!code)
        code = read_table(json_path, model);
    if (!code) {
        tensors_hash(&tensors, model->mapping, model->mapping_bytes, share, &hashes);
        memcpy(model->sha256, hashes.parameters, SHA256_TEXT);
        code = check_parameters(tensors_path, json_path, model, &tensors);
    }
    if (!code)
        code = checksum_check(model->details, json_path, hashes.file, tensors_path);
    free(tensors_path);
    free(json_path);
    model->folder = folder;
    return code;
}

/* A state folder without a live model, or with one that somebody removed. */
static int refuse_state(const char *path) {
    char target[PATH_MAX], *link = path_join(path, "models/current");
    ssize_t length = readlink(link, target, sizeof target);
    if (length > 0)
        error_set(ERROR_DATA,
                  "%s leads to %.*s, which holds no model any more: `dml-coordinator jobs` tells "
                  "of the runs, of which `publish` makes another one live",
                  link, (int)length, target);
    else
        error_set(ERROR_DATA,
                  "%s holds no model yet, or no longer: `dml-coordinator jobs` tells of its runs",
                  path);
    free(link);
    return ERROR_DATA;
}

/* Where there is no model: whoever gives a job, or its file, means the state folder beside it. */
static int refuse_path(const char *path) {
    static const char *const models[] = {".state", ".safetensors", NULL};
    if (access(path, F_OK) && errno == ENOENT)
        return error_set(ERROR_DATA, "cannot open %s: %s%s", path, strerror(ENOENT),
                         file_suggestion(path, models));
    size_t length = strlen(path) - (name_ends(path, JOB_FILE) ? strlen(JOB_FILE) : 0);
    char *state = memory_format("%.*s.state", (int)length, path),
         *record = path_join(path, "dml.db");
    char *meant = find_tensors(state);
    if (is_file(record))
        refuse_state(path);
    else
        error_set(ERROR_DATA,
                  "%s holds no model: give a model.safetensors, its folder, or a state folder with "
                  "models/current%s%s%s",
                  path, meant ? "; did you mean `" : "", meant ? state : "", meant ? "`?" : "");
    free(meant);
    free(record);
    free(state);
    return ERROR_DATA;
}

/* Whether something of a model may be there that this user must not look at. */
static bool is_barred(const char *path) {
    static const char *const places[] = {"", "model.safetensors",
                                         "models/current/model.safetensors"};
    bool barred = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !barred; i++) {
        struct stat status;
        char *candidate = *places[i] ? path_join(path, places[i]) : memory_copy_string(path);
        barred = stat(candidate, &status) != 0 && errno == EACCES;
        free(candidate);
    }
    return barred;
}

int model_open(const char *path, struct model **result) {
    return model_open_by(path, NULL, result);
}

int model_open_by(const char *path, parts_function *share, struct model **result) {
    char *tensors_path = find_tensors(path);
    if (!tensors_path && is_barred(path))
        return error_set(ERROR_PERMISSION,
                         "cannot read the model in %s: permission denied; its owner can allow it "
                         "with chmod -R go+rX %s",
                         path, path);
    if (!tensors_path)
        return refuse_path(path);
    struct model *model = memory_new(1, sizeof *model);
    int code = open_files(tensors_path, share, model);
    free(tensors_path);
    if (code) {
        model_close(model);
        return code;
    }
    *result = model;
    return 0;
}

void model_close(struct model *model) {
    if (!model)
        return;
    free(model->folder);
    free((void *)model->layout.class_names);
    free((void *)model->layout.feature_names);
    table_free(model->table);
    response_free(model->response);
    free(model->program);
    json_decref(model->details);
    memory_unmap((void *)model->mapping, model->mapping_bytes);
    free(model);
}

int model_set_library(struct model *model, const char *library) {
    if (!model_family(&model->layout)->family->own_tensors)
        return error_set(ERROR_USAGE, "--set plugin.library: %s is no model of a plug-in",
                         model->folder);
    model->library.own.source.library = library;
    return 0;
}
