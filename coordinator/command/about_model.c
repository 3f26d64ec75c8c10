#include "coordinator/command/about_model.h"

#include "base/error.h"
#include "coordinator/run/sets.h"
#include "model/export.h"
#include "model/importance.h"
#include "model/summary_table.h"

#define WEIGHTS_MOST 20 /* of an output */
#define OUTPUTS_MOST 40
#define COLUMNS_MOST 100

void about_model_read(const char *path, struct about_model *about) {
    const struct summary_view view = {.level = SUMMARY_LEVEL};
    struct importance importance = {0};
    struct model *model;
    json_t *summary = NULL;
    *about = (struct about_model){0};
    if (model_open(path, &model)) {
        error_clear();
        return;
    }
    /* What the rows say that the model was trained on; nothing if these are gone, or damaged. */
    struct set *set = sets_find_of_model(model);
    if (set && importance_find(set, model, &importance))
        importance_release(&importance);
    set_close(set);
    about->heaviest = export_top_json(model, WEIGHTS_MOST, OUTPUTS_MOST, importance.deviation);
    if (model->weight && !summary_read(model, &summary) && summary &&
        summary_table(model, summary, &view, &about->summary))
        about->summary = NULL;
    json_decref(summary);
    if (importance.count)
        about->importance = importance_json(&importance, COLUMNS_MOST);
    importance_release(&importance);
    model_close(model);
    error_clear();
}

void about_model_release(struct about_model *about) {
    json_decref(about->heaviest);
    json_decref(about->summary);
    json_decref(about->importance);
    *about = (struct about_model){0};
}
