/* Stores with a model how its training data was read, so that other data is read the same way. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/score.h"
#include "base/text.h"

static const char *const header_names[] = {
    [CSV_HEADER_AUTO] = "auto", [CSV_HEADER_YES] = "yes", [CSV_HEADER_NO] = "no"};
#define COUNT(table) (sizeof table / sizeof table[0])

json_t *score_options_json(const struct source_options *options) {
    json_t *object = json_pack("{s:s, s:s}", "format", source_format_names[options->format],
                               "header", header_names[options->header]);
    if (options->label)
        json_object_set_new(object, "label", text_to_json(options->label));
    if (options->delimiter)
        json_object_set_new(object, "delimiter", json_string(options->delimiter));
    if (options->decimal)
        json_object_set_new(object, "decimal", json_string(options->decimal));
    json_t *skip = json_array();
    for (const char *const *name = options->skip; name && *name; name++)
        json_array_append_new(skip, text_to_json(*name));
    json_object_set_new(object, "skip", skip);
    if (options->columns)
        json_object_set_new(object, "columns", json_integer(options->columns));
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
    options->skip = skip;
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
    if (options->skip || !layout->features)
        return NULL;
    uint64_t last = layout->feature_id[layout->features - 1];
    return memory_format("%llu", (unsigned long long)last + 1);
}

int score_options(const struct model *model, struct source_options *options) {
    const json_t *source = json_object_get(model->details, "source");
    size_t format, header;
    *options = (struct source_options){0};
    int code = find_name(source, "format", source_format_names, FORMATS, &format);
    if (!code)
        code = find_name(source, "header", header_names, COUNT(header_names), &header);
    if (!code)
        code = read_skip(json_object_get(source, "skip"), options);
    if (code) {
        score_options_release(options);
        return code;
    }
    options->format = (enum source_format)format;
    options->header = (enum csv_header)header;
    options->delimiter = read_text(source, "delimiter");
    options->decimal = read_text(source, "decimal");
    json_int_t columns = json_integer_value(json_object_get(source, "columns"));
    options->separator = model->layout.separator;
    options->table = model->layout.table;
    options->numbers_only = !options->table;
    options->columns = columns > 0 && columns <= UINT32_MAX ? (uint32_t)columns : 0;
    options->label = read_label(source, &model->layout, options);
    return 0;
}

void score_options_release(struct source_options *options) {
    for (const char *const *name = options->skip; name && *name; name++)
        free((void *)*name);
    free((void *)options->skip);
    free((void *)options->label);
    free((void *)options->delimiter);
    free((void *)options->decimal);
    *options = (struct source_options){0};
}
