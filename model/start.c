/* A model as the starting point of a run that numbers features and classes in its own way. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/labels.h"
#include "model/model.h"
#include "model/text.h"

/* ---- classes ---- */

/* The model's class of each of the layout's, or LABEL_UNSEEN. Free it. */
static uint32_t *match_classes(const struct model *model, const struct model_layout *layout) {
    struct labels *known = label_table_new(&model->layout);
    uint32_t *match = memory_new(layout->classes, sizeof *match);
    for (uint32_t i = 0; i < layout->classes; i++) {
        const char *name = layout->class_names[i];
        char *end;
        double number = strtod(name, &end);
        bool is_number = end > name && !*end;
        match[i] = label_table_find(known, number, is_number ? NULL : name);
    }
    label_table_free(known);
    return match;
}

/* Of two classes there is one row of weights: it means the same only if they are the same two. */
static bool same_two_classes(const struct model *model, const struct model_layout *layout) {
    uint32_t *match = match_classes(model, layout);
    bool same = match[0] == 0 && match[1] == 1;
    free(match);
    return same;
}

/* ---- features: both sides by rising original id ---- */

struct walk {
    const struct model *model;
    const struct model_layout *layout;
    uint64_t old, new; /* how many of each side were passed */
};

enum side { SIDE_NONE, SIDE_OLD, SIDE_NEW, SIDE_BOTH };

static uint32_t column_at(const struct model_layout *layout, uint64_t rank) {
    return layout->original_order ? layout->original_order[rank] : (uint32_t)rank;
}

/* Who has the next feature; *rank is its row in the model, *column the layout's. */
static enum side next_feature(struct walk *walk, uint64_t *rank, uint64_t *column) {
    bool old = walk->old < walk->model->layout.features, new = walk->new < walk->layout->features;
    if (!old && !new)
        return SIDE_NONE;
    *rank = walk->old;
    *column = new ? column_at(walk->layout, walk->new) : 0;
    uint64_t old_id = old ? walk->model->layout.feature_id[*rank] : UINT64_MAX;
    uint64_t new_id = new ? walk->layout->feature_id[*column] : UINT64_MAX;
    walk->old += old_id <= new_id;
    walk->new += new_id <= old_id;
    return old_id == new_id ? SIDE_BOTH : old_id < new_id ? SIDE_OLD : SIDE_NEW;
}

static bool same_text(const char *stored, const char *name) {
    json_t *text = text_to_json(name);
    bool same = strcmp(stored, json_string_value(text)) == 0;
    json_decref(text);
    return same;
}

/* Where both have names, one id is one name: a column more in a table shifts those behind it. */
static int check_names(const struct model *model, const struct model_layout *layout) {
    struct walk walk = {.model = model, .layout = layout};
    uint64_t rank, column;
    enum side side;
    if (!model->layout.feature_names || !layout->feature_names)
        return 0;
    while ((side = next_feature(&walk, &rank, &column)) != SIDE_NONE) {
        const char *stored = model->layout.feature_names[rank];
        const char *name = layout->feature_names[column];
        if (side == SIDE_BOTH && !same_text(stored, name))
            return error_set(ERROR_DATA, "column %llu was `%s` and is `%s` in the data",
                             (unsigned long long)model->layout.feature_id[rank], stored, name);
    }
    return 0;
}

int model_fits(const struct model *model, const struct model_layout *layout) {
    const struct model_layout *old = &model->layout;
    if (strcmp(old->objective, layout->objective))
        return error_set(ERROR_DATA, "its objective is %s, not %s", old->objective,
                         layout->objective);
    if (old->intercept != layout->intercept)
        return error_set(ERROR_DATA, "it has %s intercept, and the job %s",
                         old->intercept ? "an" : "no", layout->intercept ? "one" : "none");
    if (layout->classes == 2 && layout->outputs == 1 && !same_two_classes(model, layout))
        return error_set(ERROR_DATA, "its classes are `%s` and `%s`, the data's `%s` and `%s`",
                         old->class_names[0], old->class_names[1], layout->class_names[0],
                         layout->class_names[1]);
    return check_names(model, layout);
}

/* ---- parameters ---- */

/* The model's output that is the layout's output k, or LABEL_UNSEEN. */
static uint32_t output_of(const uint32_t *match, const struct model_layout *layout, uint32_t k) {
    return layout->outputs > 1 ? match[k] : 0;
}

void model_spread(const struct model *model, const struct model_layout *layout,
                  double *parameters) {
    struct walk walk = {.model = model, .layout = layout};
    uint32_t outputs = layout->outputs, *match = match_classes(model, layout);
    uint64_t rank, column;
    enum side side;
    while ((side = next_feature(&walk, &rank, &column)) != SIDE_NONE)
        for (uint32_t k = 0; k < outputs && side != SIDE_OLD; k++) {
            uint32_t old = output_of(match, layout, k);
            bool known = side == SIDE_BOTH && old != LABEL_UNSEEN;
            parameters[column * outputs + k] =
                known ? model->weight[old * model->layout.features + rank] : 0;
        }
    for (uint32_t k = 0; k < outputs && layout->intercept; k++) {
        uint32_t old = output_of(match, layout, k);
        parameters[layout->features * outputs + k] = old == LABEL_UNSEEN ? 0 : model->bias[old];
    }
    free(match);
}

uint64_t model_vanished(const struct model *model, const struct model_layout *layout,
                        uint64_t *ranks) {
    struct walk walk = {.model = model, .layout = layout};
    uint64_t rank, column, count = 0;
    enum side side;
    while ((side = next_feature(&walk, &rank, &column)) != SIDE_NONE) {
        if (side != SIDE_OLD)
            continue;
        if (ranks)
            ranks[count] = rank;
        count++;
    }
    return count;
}

void model_vanished_weights(const struct model *model, const struct model_layout *layout,
                            const uint64_t *ranks, uint64_t count, double *weight) {
    uint32_t *match = match_classes(model, layout);
    for (uint32_t k = 0; k < layout->outputs; k++) {
        uint32_t old = output_of(match, layout, k);
        for (uint64_t i = 0; i < count; i++)
            weight[k * count + i] =
                old == LABEL_UNSEEN ? 0 : model->weight[old * model->layout.features + ranks[i]];
    }
    free(match);
}
