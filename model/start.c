/* Starts a run from a model although the run numbers features and classes differently. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "model/classes.h"
#include "model/description.h"
#include "model/family.h"
#include "base/text.h"

/* ---- classes ---- */

/* For each class of the layout, the same class in the old layout, or LABEL_UNSEEN. Free the
 * result. */
static uint32_t *match_classes(const struct model_layout *old, const struct model_layout *layout) {
    struct class_table *known = class_table_new(old);
    uint32_t *match = memory_new(layout->classes, sizeof *match);
    for (uint32_t i = 0; i < layout->classes; i++)
        match[i] = class_table_find_name(known, layout->class_names[i]);
    class_table_free(known);
    return match;
}

/* Whether the classes are the same, in the same order. */
static bool same_classes(const struct model_layout *old, const struct model_layout *layout) {
    uint32_t *match = match_classes(old, layout);
    bool same = old->classes == layout->classes;
    for (uint32_t i = 0; i < layout->classes && same; i++)
        same = match[i] == i;
    free(match);
    return same;
}

/* Two classes, or ordered ones, share one row of weights, which means the same only if the classes
 * are the same. */
static int check_classes(const struct model_layout *old, const struct model_layout *layout) {
    bool two = layout->classes == 2 && layout->outputs == 1;
    if ((!two && !layout->shared) || same_classes(old, layout))
        return 0;
    if (layout->shared)
        return error_set(ERROR_DATA, "its classes are not those of the data, or in another order");
    return error_set(ERROR_DATA, "its classes are `%s` and `%s`, the data's `%s` and `%s`",
                     old->class_names[0], old->class_names[1], layout->class_names[0],
                     layout->class_names[1]);
}

/* ---- features: both sides by rising original id ---- */

struct feature_walk {
    const struct model_layout *before, *after;
    uint64_t old, new; /* how many of each side were passed */
};

enum side { SIDE_NONE, SIDE_OLD, SIDE_NEW, SIDE_BOTH };

/* Which side has the next feature, and its column on that side. */
static enum side next_feature(struct feature_walk *walk, uint64_t *before, uint64_t *after) {
    bool old = walk->old < walk->before->features, new = walk->new < walk->after->features;
    if (!old && !new)
        return SIDE_NONE;
    *before = old ? merge_column(walk->before, walk->old) : 0;
    *after = new ? merge_column(walk->after, walk->new) : 0;
    uint64_t old_id = old ? walk->before->feature_id[*before] : UINT64_MAX;
    uint64_t new_id = new ? walk->after->feature_id[*after] : UINT64_MAX;
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

/* Where both sides have names, equal ids must have equal names: the columns of a table without the
 * model's order may stand elsewhere. The id of a text says what it means. That of a bin says which
 * of its column it is, and the bins of other data have other names. */
static int check_names(const struct model *model, const struct model_layout *layout) {
    struct feature_walk walk = {.before = &model->layout, .after = layout};
    uint64_t rank, column;
    enum side side;
    if (!model->layout.feature_names || !layout->feature_names)
        return 0;
    while ((side = next_feature(&walk, &rank, &column)) != SIDE_NONE) {
        const char *stored = model->layout.feature_names[rank];
        const char *name = layout->feature_names[column];
        bool numbered = side == SIDE_BOTH && model->layout.feature_id[rank] < FEATURE_HASHED;
        if (numbered && !same_text(stored, name))
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
    int code = model_family(layout)->fits(old, layout);
    if (!code)
        code = check_classes(old, layout);
    return code ? code : check_names(model, layout);
}

/* ---- parameters ---- */

/* Whether the columns of a tensor are outputs that are classes: those of the last weights and of
 * the last biases. Where outputs are no classes, as many are the same. */
static bool columns_are_classes(const struct model_layout *layout, const struct layout *vector,
                                uint32_t tensor) {
    bool last = tensor == (vector->count - 1) / 2 || tensor == vector->count - 1;
    return last && layout->outputs > 1 && !layout->shared &&
           !model_family(layout)->family->own_tensors;
}

/* Fills the places of one row of a tensor. The old row begins at `old`, which is MODEL_UNMATCHED if
 * there was no such row. `classes` has the old column of each; NULL: they are the same. */
static void match_row(const uint32_t *classes, uint64_t old, uint64_t columns, uint64_t *place) {
    for (uint64_t k = 0; k < columns; k++) {
        uint64_t column = classes ? classes[k] : k;
        bool known = old != MODEL_UNMATCHED && (!classes || classes[k] != LABEL_UNSEEN);
        place[k] = known ? old + column : MODEL_UNMATCHED;
    }
}

/* Fills the places of a tensor whose rows are features. `old` is NULL if there was no such tensor.
 */
static void match_features(const uint32_t *classes, const struct model_layout *before,
                           const struct layout_tensor *old, const struct model_layout *after,
                           const struct layout_tensor *tensor, uint64_t *place) {
    struct feature_walk walk = {.before = before, .after = after};
    uint64_t from, to, columns = tensor->columns;
    enum side side;
    while ((side = next_feature(&walk, &from, &to)) != SIDE_NONE)
        if (side != SIDE_OLD)
            match_row(classes,
                      side == SIDE_BOTH && old ? old->first + from * old->columns : MODEL_UNMATCHED,
                      columns, place + tensor->first + to * columns);
}

uint64_t *model_match(const struct model_layout *before, const struct model_layout *after) {
    struct layout vector = model_tensors(after), old_vector = model_tensors(before);
    assert(vector.count > 0);
    uint64_t *place = memory_map(layout_parameters(&vector) * sizeof *place);
    uint32_t *match = match_classes(before, after), by_feature = model_by_feature(after);
    for (uint32_t i = 0; i < vector.count; i++) {
        const struct layout_tensor *tensor = &vector.tensor[i];
        const struct layout_tensor *old = layout_find(&old_vector, tensor->name);
        const uint32_t *classes = columns_are_classes(after, &vector, i) ? match : NULL;
        if (by_feature >> i & 1)
            match_features(classes, before, old, after, tensor, place);
        else {
            /* The rows are not features, so they are the same on both sides. */
            for (uint64_t row = 0; row < tensor->rows; row++)
                match_row(classes, old ? old->first + row * old->columns : MODEL_UNMATCHED,
                          tensor->columns, place + tensor->first + row * tensor->columns);
        }
    }
    free(match);
    return place;
}

/* The file of a linear model stores the weights output by output, the vector feature by feature. */
double model_parameter(const struct model *model, const struct layout *vector, uint64_t element) {
    if (model->vector)
        return model->vector[element];
    struct layout_place place = layout_locate(vector, element);
    if (strcmp(place.tensor->name, TENSOR_BIAS) == 0)
        return model->bias[place.column];
    return model->weight[place.column * model->layout.features + place.row];
}

void model_spread(const struct model *model, const struct model_layout *layout,
                  double *parameters) {
    uint64_t count = model_parameters(layout);
    struct layout old = model_tensors(&model->layout);
    uint64_t *place = model_match(&model->layout, layout);
    for (uint64_t i = 0; i < count; i++)
        parameters[i] = place[i] == MODEL_UNMATCHED ? 0 : model_parameter(model, &old, place[i]);
    memory_unmap(place, count * sizeof *place);
}

uint64_t model_vanished(const struct model *model, const struct model_layout *layout,
                        uint64_t *ranks) {
    struct feature_walk walk = {.before = &model->layout, .after = layout};
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

/* Weight k of a feature, for a run; `classes` as for match_row(). */
static double weight_of(const struct model *model, const uint32_t *classes, uint64_t rank,
                        uint32_t k) {
    assert(rank < model->layout.features);
    if (model->vector)
        return model->vector[rank * model_rows(&model->layout) + k];
    uint32_t old = classes ? classes[k] : k;
    return old == LABEL_UNSEEN ? 0 : model->weight[old * model->layout.features + rank];
}

void model_vanished_weights(const struct model *model, const struct model_layout *layout,
                            const uint64_t *ranks, uint64_t count, double *weight) {
    uint32_t *match = match_classes(&model->layout, layout);
    const struct layout vector = model_tensors(layout);
    const uint32_t *classes = columns_are_classes(layout, &vector, 0) ? match : NULL;
    for (uint32_t k = 0; k < model_rows(layout); k++)
        for (uint64_t i = 0; i < count; i++)
            weight[k * count + i] = weight_of(model, classes, ranks[i], k);
    free(match);
}
