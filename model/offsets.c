#include "model/offsets.h"

#include <string.h>

#include "base/error.h"

static const struct {
    const char *name, *files; /* as keys of a job have it */
    enum column_kind kind;
} rules[ROW_NUMBERS] = {
    [ROW_OFFSET] = {"offset", "offsets", COLUMN_OFFSET},
    [ROW_EXPOSURE] = {"exposure", "exposures", COLUMN_EXPOSURE},
};

bool offsets_needed(const struct model_layout *layout) {
    return layout->needs[ROW_OFFSET] || layout->needs[ROW_EXPOSURE];
}

/* ---- model.json ---- */

json_t *offsets_json(const struct model_layout *layout) {
    json_t *names = json_array();
    for (int i = ROW_OFFSET; i < ROW_NUMBERS; i++)
        if (layout->needs[i])
            json_array_append_new(names, json_string(rules[i].name));
    return names;
}

static int read_name(const char *name, const char *path, struct model_layout *layout) {
    for (int i = ROW_OFFSET; i < ROW_NUMBERS; i++)
        if (strcmp(name, rules[i].name) == 0) {
            layout->needs[i] = true;
            return 0;
        }
    return error_set(ERROR_DATA,
                     "%s: \"offsets\" lists \"%.40s\", which this program does not know; use the "
                     "program that wrote it",
                     path, name);
}

int offsets_read(const json_t *all, const char *path, struct model_layout *layout) {
    const json_t *name;
    size_t i;
    int code = 0;
    json_array_foreach(json_object_get(all, "offsets"), i, name) {
        if (!code)
            code = read_name(json_is_string(name) ? json_string_value(name) : "", path, layout);
    }
    return code;
}

/* ---- the rows that are scored ---- */

/* The column of the model's table that has it, as text; NULL: none. */
static const char *column_of(const struct model_layout *layout, enum row_property property,
                             char text[COLUMN_TEXT]) {
    const struct table *table = layout->table;
    uint32_t column = table ? table_find_kind(table, rules[property].kind) : 0;
    return table && column < table->columns ? table_describe(table, column, text) : NULL;
}

bool offsets_needed_beside(const struct model_layout *layout, enum row_property property) {
    char text[COLUMN_TEXT];
    return layout->needs[property] && !column_of(layout, property, text);
}

static int check_option(const struct model_layout *layout, const char *path,
                        const struct source_options *options, enum row_property property) {
    const char *name = rules[property].name, *files = rules[property].files;
    bool file = options->property.file[property] != NULL;
    bool given = file || options->property.column[property];
    char text[COLUMN_TEXT];
    const char *column = column_of(layout, property, text);
    if (given && !layout->needs[property])
        return error_set(ERROR_USAGE,
                         "--set %s: the model was trained on rows without an %s; leave it out",
                         file ? files : name, name);
    if (file && column)
        return error_set(ERROR_USAGE,
                         "--set %s: the model takes the %s of rows from a column of the data, %s",
                         files, name, column);
    if (layout->needs[property] && !column && !given)
        return error_set(ERROR_USAGE,
                         "%s: the model was trained with an %s for each row, in a file beside the "
                         "data; give one for these rows with --set %s=FILE",
                         path, name, files);
    return 0;
}

int offsets_check_options(const struct model_layout *layout, const char *path,
                          const struct source_options *options) {
    int code = check_option(layout, path, options, ROW_OFFSET);
    return code ? code : check_option(layout, path, options, ROW_EXPOSURE);
}

int offsets_check_pack(const struct model_layout *layout, const char *path,
                       const struct source_report *report) {
    for (int i = ROW_OFFSET; i < ROW_NUMBERS; i++) {
        const struct table *table = report->table;
        bool there = *report->property[i].hash ||
                     (table && table_find_kind(table, rules[i].kind) < table->columns);
        if (layout->needs[i] && !there)
            return error_set(ERROR_DATA,
                             "%s: the model was trained with an %s for each row, and this data was "
                             "read without; set the key `%s` or `%s`",
                             path, rules[i].name, rules[i].name, rules[i].files);
    }
    return 0;
}
