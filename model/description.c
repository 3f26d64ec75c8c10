#include "model/description.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/response.h"
#include "model/family.h"
#include "model/offsets.h"
#include "model/score.h"
#include "objective/objective.h"
#include "objective/shape.h"

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

json_t *description_json(const struct model_layout *layout, uint64_t features, const char *sha256,
                         const json_t *details) {
    json_t *all = json_pack("{s:s, s:i, s:s, s:I, s:b, s:I, s:s}", "format", MODEL_FORMAT,
                            "format_version", MODEL_FORMAT_VERSION, "objective", layout->objective,
                            "outputs", (json_int_t)layout->outputs, "intercept", layout->intercept,
                            "features", (json_int_t)features, "model_sha256", sha256);
    /* NULL if the loss has no parameters. */
    int kind = objective_from_name(layout->objective);
    const struct loss_parameter *parameter;
    json_t *parameters = NULL;
    for (uint32_t i = 0;
         kind >= 0 && (parameter = objective_parameter((enum objective_kind)kind, i)); i++) {
        parameters = parameters ? parameters : json_object();
        json_object_set_new(parameters, parameter->name, json_real(layout->loss.value[i]));
    }
    if (parameters)
        json_object_set_new(all, "objective_parameters", parameters);
    if (model_family(layout)->describe)
        model_family(layout)->describe(layout, all);
    if (layout->classes) {
        json_t *names = json_array();
        for (uint32_t i = 0; i < layout->classes; i++)
            json_array_append_new(names, text_to_json(layout->class_names[i]));
        json_object_set_new(all, "classes", names);
    }
    if (layout->separator)
        json_object_set_new(all, "separator", json_stringn(&layout->separator, 1));
    if (layout->feature_names)
        json_object_set_new(all, "feature_names", description_feature_names(layout, features));
    if (offsets_needed(layout))
        json_object_set_new(all, "offsets", offsets_json(layout));
    if (layout->table)
        json_object_set_new(all, "preparation", table_json(layout->table));
    if (layout->response)
        response_describe(layout->response, all);
    if (details)
        json_object_update_missing(all, (json_t *)details);
    return all;
}

/* ---- how training data was read, so that other data is read the same way ---- */

static const char *const header_names[] = {
    [CSV_HEADER_AUTO] = "auto", [CSV_HEADER_YES] = "yes", [CSV_HEADER_NO] = "no"};

json_t *score_options_json(const struct source_options *options) {
    json_t *object = json_pack("{s:s, s:s}", "format", source_format_names[options->format],
                               "header", header_names[options->syntax.header]);
    if (options->label.column)
        json_object_set_new(object, "label", text_to_json(options->label.column));
    if (options->syntax.delimiter)
        json_object_set_new(object, "delimiter", json_string(options->syntax.delimiter));
    if (options->syntax.decimal)
        json_object_set_new(object, "decimal", json_string(options->syntax.decimal));
    if (options->syntax.quote)
        json_object_set_new(object, "quote",
                            json_string(source_quote_names[options->syntax.quote]));
    if (options->syntax.comment)
        json_object_set_new(object, "comment", json_string(options->syntax.comment));
    if (options->folders.which)
        json_object_set_new(object, "folders",
                            json_string(source_folders_names[options->folders.which]));
    json_t *skip = json_array();
    for (const char *const *name = options->table.skip; name && *name; name++)
        json_array_append_new(skip, text_to_json(*name));
    json_object_set_new(object, "skip", skip);
    if (options->table.columns)
        json_object_set_new(object, "columns", json_integer(options->table.columns));
    return object;
}

static char *read_text(const json_t *source, const char *member) {
    const char *text = json_string_value(json_object_get(source, member));
    return text && *text ? memory_copy_string(text) : NULL;
}

/* The index of a member's text in a table of names; 0 if there is no such member. */
static int find_name(const json_t *source, const char *member, const char *const *names,
                     size_t count, size_t *found) {
    const json_t *value = json_object_get(source, member);
    *found = 0;
    if (!value)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (json_is_string(value) && strcmp(names[i], json_string_value(value)) == 0) {
            *found = i;
            return 0;
        }
    return error_set(ERROR_DATA,
                     "model.json: \"%s\" of \"source\" has a value that this program does not "
                     "know; use the program that wrote it",
                     member);
}

static int read_skip(const json_t *array, struct source_options *options) {
    size_t count = json_array_size(array);
    if (!count)
        return 0;
    const char **skip = memory_new(count + 1, sizeof *skip);
    options->table.skip = skip;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(array, i));
        if (!name)
            return error_set(ERROR_DATA, "model.json: \"skip\" of \"source\" must list texts");
        skip[i] = memory_copy_string(name);
    }
    return 0;
}

/* The label's column; NULL means the last column of the file. */
static char *read_label(const json_t *source, const struct model_layout *layout,
                        const struct source_options *options) {
    const char *label = json_string_value(json_object_get(source, "label"));
    if (layout->table)
        return NULL; /* the table tells it */
    if (label)
        return memory_copy_string(label);
    if (options->table.skip || !layout->features)
        return NULL;
    uint64_t last = layout->feature_id[layout->features - 1];
    return memory_format("%llu", (unsigned long long)last + 1);
}

int score_options(const struct model *model, struct source_options *options) {
    const json_t *source = json_object_get(model->details, "source");
    size_t format, header, quote = CSV_QUOTE_AUTO, folders = CSV_FOLDERS_AUTO;
    *options = (struct source_options){0};
    int code = find_name(source, "format", source_format_names, FORMATS, &format);
    if (!code)
        code = find_name(source, "header", header_names, CSV_HEADER_NO + 1, &header);
    if (!code)
        code = find_name(source, "quote", source_quote_names, CSV_QUOTES, &quote);
    if (!code)
        code = find_name(source, "folders", source_folders_names, CSV_FOLDERS, &folders);
    if (!code)
        code = read_skip(json_object_get(source, "skip"), options);
    if (code) {
        score_options_release(options);
        return code;
    }
    options->format = (enum source_format)format;
    options->syntax.header = (enum csv_header)header;
    options->syntax.delimiter = read_text(source, "delimiter");
    options->syntax.decimal = read_text(source, "decimal");
    options->syntax.quote = (enum csv_quote)quote;
    options->folders.which = (enum csv_folders)folders;
    options->syntax.comment = read_text(source, "comment");
    json_int_t columns = json_integer_value(json_object_get(source, "columns"));
    options->label.separator = model->layout.separator;
    options->table.known = model->layout.table;
    options->table.by_model = true;
    options->table.numbers_only = !options->table.known;
    options->table.columns = columns > 0 && columns <= UINT32_MAX ? (uint32_t)columns : 0;
    options->label.column = read_label(source, &model->layout, options);
    return 0;
}

void score_options_release(struct source_options *options) {
    for (const char *const *name = options->table.skip; name && *name; name++)
        free((void *)*name);
    free((void *)options->table.skip);
    free((void *)options->label.column);
    free((void *)options->syntax.delimiter);
    free((void *)options->syntax.decimal);
    free((void *)options->syntax.comment);
    *options = (struct source_options){0};
}

/* ---- checksums ---- */

/* The hash of the content, not of its layout on the page: members are sorted, blanks are left out,
 * numbers have 17 digits. The member that holds this hash is not part of it. */
static void hash_json(const json_t *all, char text[SHA256_TEXT]) {
    json_t *rest = json_copy((json_t *)all);
    json_object_del(rest, CHECKSUM_JSON);
    char *canonical = json_dumps(rest, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(17));
    sha256_of(canonical, strlen(canonical), text);
    free(canonical);
    json_decref(rest);
}

void checksum_add_own(json_t *all) {
    char text[SHA256_TEXT];
    hash_json(all, text);
    json_object_set_new(all, CHECKSUM_JSON, json_string(text));
}

void checksum_add(json_t *all, const char *of_tensors) {
    json_object_set_new(all, CHECKSUM_TENSORS, json_string(of_tensors));
    checksum_add_own(all);
}

/* A file that was edited by hand may lack the member. */
static bool differs(const json_t *all, const char *member, const char *found) {
    const json_t *stored = json_object_get(all, member);
    return stored && (!json_is_string(stored) || strcmp(json_string_value(stored), found));
}

int checksum_check_own(const json_t *all, const char *path) {
    char text[SHA256_TEXT];
    hash_json(all, text);
    if (differs(all, CHECKSUM_JSON, text))
        return error_set(ERROR_DATA,
                         "%s is damaged, or was edited: it does not have the hash that it gives as "
                         "`" CHECKSUM_JSON "`; if it was edited, take that member out",
                         path);
    return 0;
}

int checksum_check(const json_t *all, const char *json_path, const char *of_tensors,
                   const char *tensors_path) {
    int code = checksum_check_own(all, json_path);
    if (!code && differs(all, CHECKSUM_TENSORS, of_tensors))
        return error_set(
            ERROR_DATA,
            "%s is damaged, or was changed: it does not have the hash in %s; if it was "
            "changed, take `" CHECKSUM_TENSORS "`, `" CHECKSUM_JSON
            "` and `model_sha256` out there",
            tensors_path, json_path);
    return code;
}
