/* What a model is, as JSON. */
#include <math.h>

#include "base/text.h"
#include "data/text/date.h"
#include "library/opened.h"
#include "model/offsets.h"
#include "model/response.h"

static const char *const kind_names[] = {
    [DML_NUMBER] = "number", [DML_CATEGORY] = "category", [DML_TEXT] = "text",
    [DML_DATE] = "date",     [DML_OFFSET] = "offset",     [DML_EXPOSURE] = "exposure"};

/* {name, kind, place}: the place in the file that was trained on, from 0; null: it had none. Of
 * durations {unit}, too: how many a second has. */
static json_t *columns_json(const struct dml_model *model) {
    const struct table *table = model->model->layout.table;
    json_t *columns = json_array();
    for (uint32_t i = 0; i < model->columns; i++) {
        const struct table_column *column = &table->column[model->column[i].number];
        json_t *place =
            column->place == COLUMN_NOWHERE ? json_null() : json_integer((json_int_t)column->place);
        json_array_append_new(columns,
                              json_pack("{s:s?, s:s, s:o}", "name", column->name, "kind",
                                        kind_names[model->column[i].kind], "place", place));
        if (column->unit)
            json_object_set_new(json_array_get(columns, i), "unit", json_integer(column->unit));
    }
    return columns;
}

/* Describes the files beside the data that rows need. */
static json_t *beside_json(const struct dml_model *model) {
    const struct model_layout *layout = &model->model->layout;
    json_t *names = json_array();
    if (offsets_needed_beside(layout, ROW_OFFSET))
        json_array_append_new(names, json_string("offset"));
    if (offsets_needed_beside(layout, ROW_EXPOSURE))
        json_array_append_new(names, json_string("exposure"));
    return names;
}

char *description_text(const struct dml_model *model) {
    const struct model_layout *layout = &model->model->layout;
    json_t *classes = json_array();
    for (size_t i = 0; i < dml_model_classes(model); i++)
        json_array_append_new(classes, json_string(dml_model_class(model, i)));
    json_t *thresholds = json_array();
    for (size_t k = 0; k < dml_model_margins(model); k++)
        if (!isnan(dml_model_threshold(model, k)))
            json_array_append_new(thresholds, json_real(dml_model_threshold(model, k)));
    json_t *all = json_pack(
        "{s:i, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
        "format_version", dml_model_format_version(model), "objective", layout->objective,
        "predicts", model->objective->prediction, "sha256", model->model->sha256, "table",
        layout->table != NULL, "features", (json_int_t)layout->features, "margins",
        (json_int_t)dml_model_margins(model), "values", (json_int_t)dml_model_values(model),
        "probabilities", (json_int_t)dml_model_probabilities(model), "labels",
        (json_int_t)dml_model_labels(model), "classes", classes, "thresholds", thresholds,
        "columns", columns_json(model), "beside", beside_json(model), "network",
        model_network_json(&layout->network));
    if (layout->table && table_has_dates(layout->table))
        json_object_set_new(
            all, "date_format",
            json_string(layout->table->date_format ? layout->table->date_format : DATE_FORMAT_ISO));
    if (layout->separator)
        json_object_set_new(all, "separator", json_stringn(&layout->separator, 1));
    if (layout->response)
        response_summarise(layout->response, all);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}
