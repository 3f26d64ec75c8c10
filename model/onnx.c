#include "config.h"

#include "model/onnx.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/memory.h"
#include "model/family.h"
#include "model/offsets.h"
#include "model/onnx_file.h"
#include "model/onnx_response.h"
#include "model/onnx_sums.h"

int onnx_check(const struct model *model) {
    if (!model_family(&model->layout)->graph_margins)
        return error_set(ERROR_DATA,
                         "%s: ONNX cannot say what a %s computes: use `dml-coordinator predict`",
                         model->folder, model_family(&model->layout)->family->name);
    return onnx_check_rows(model);
}

struct exporter {
    const struct model *model;
    struct onnx_graph *graph;
};

static const char *node(const struct exporter *e, const char *op, const char *x, const char *y) {
    return onnx_node(e->graph, op, x, y, NULL);
}

/* Offsets and the logarithms of exposures are added to every margin. */
static const char *add_property(const struct exporter *e, enum row_property property,
                                const char *margins) {
    static const char *const names[ROW_PROPERTIES] = {
        [ROW_OFFSET] = "offset", [ROW_EXPOSURE] = "exposure"};
    const struct model_layout *layout = &e->model->layout;
    const struct table *table = layout->table;
    char label[COLUMN_LABEL_TEXT];
    if (!layout->needs[property])
        return margins;
    enum column_kind kind = property == ROW_OFFSET ? COLUMN_OFFSET : COLUMN_EXPOSURE;
    uint32_t column = table ? table_find_kind(table, kind) : 0;
    bool in_table = table && column < table->columns;
    const char *input = onnx_input(
        e->graph, in_table ? table_label(table, column, label) : names[property], ONNX_DOUBLE, 0);
    if (property == ROW_EXPOSURE)
        input = node(e, "Log", input, NULL);
    return node(e, "Add", margins, onnx_as_column(e->graph, input));
}

/* ---- the whole ---- */

static void describe(const struct exporter *e) {
    const struct model_layout *layout = &e->model->layout;
    const json_t *hash = json_object_get(e->model->details, "model_sha256");
    onnx_describe(e->graph, "objective", layout->objective);
    if (json_is_string(hash))
        onnx_describe(e->graph, "model_sha256", json_string_value(hash));
    if (!layout->table) {
        /* Which feature each column of the matrix of features is. */
        struct bytes list;
        char id[24];
        bytes_init(&list);
        for (uint64_t j = 0; j < layout->features; j++) {
            int length = snprintf(id, sizeof id, "%s%llu", j ? "," : "",
                                  (unsigned long long)layout->feature_id[j]);
            bytes_append(&list, id, (size_t)length);
        }
        bytes_put_u8(&list, 0);
        onnx_describe(e->graph, "feature_ids", (const char *)list.data);
        bytes_release(&list);
    }
}

static int build(const struct exporter *e) {
    const struct first_weights weights = first_weights_of(e->model);
    const char *margins;
    int code = onnx_add_sums(e->graph, &weights, &margins);
    if (code)
        return code;
    margins = model_family(&e->model->layout)->graph_margins(e->graph, e->model, margins);
    margins = add_property(e, ROW_OFFSET, margins);
    margins = add_property(e, ROW_EXPOSURE, margins);
    onnx_add_response(e->graph, &e->model->layout, margins);
    describe(e);
    return onnx_check_room(e->graph, 0); /* layers of networks and names of classes count, too */
}

int onnx_export(const struct model *model, FILE *file) {
    const struct exporter exporter = {.model = model, .graph = onnx_new()};
    int code = build(&exporter);
    if (!code)
        onnx_write(exporter.graph, PACKAGE_VERSION, file);
    onnx_free(exporter.graph);
    return code;
}
