#include "coordinator/run/active_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* The column of a weight. */
static uint64_t column_of_weight(const struct active_bounds_settings *settings, uint64_t element) {
    return element / settings->layout->tensor[0].columns;
}

static double scale_of(const struct active_bounds_settings *settings, uint64_t element) {
    return settings->scaling ? settings->scaling[column_of_weight(settings, element)].scale : 1;
}

void active_bounds_take_point(struct active_bounds *active,
                              const struct active_bounds_settings *settings, uint64_t first,
                              uint64_t count, const double *values) {
    const struct layout_tensor *tensor = &settings->layout->tensor[0];
    const uint64_t weights = tensor->rows * tensor->columns;
    if (!first)
        active->count = active->next = active->known = 0;
    assert(!active->count || active->items[active->count - 1].element < first);
    for (uint64_t i = 0; i < count && first + i < weights; i++) {
        const struct column_limit *limit = &settings->limits[column_of_weight(settings, first + i)];
        if (values[i] > limit->low && values[i] < limit->high)
            continue;
        MEMORY_ROOM(active->items, active->count, active->capacity);
        active->items[active->count++] =
            (struct active_bound){.element = first + i, .point = values[i], .multiplier = NAN};
    }
}

void active_bounds_take_gradient(struct active_bounds *active,
                                 const struct active_bounds_settings *settings, uint64_t first,
                                 uint64_t count, const double *values) {
    for (; active->next < active->count; active->next++) {
        struct active_bound *bound = &active->items[active->next];
        assert(bound->element >= first);
        if (bound->element - first >= count)
            break;
        /* By the weight as it is: a step of it is 1/scale of one of the scaled weight. Where l1
         * makes a kink at the bound, the side beyond it counts. */
        const struct column_limit *limit =
            &settings->limits[column_of_weight(settings, bound->element)];
        const double gradient = values[bound->element - first], x = bound->point;
        const double l1 = settings->l1 * limit->lasso;
        double below = gradient + (x > 0 ? l1 : -l1), above = gradient + (x >= 0 ? l1 : -l1);
        double falls = fmax(x <= limit->low ? below : 0, x >= limit->high ? -above : 0);
        bound->multiplier = fmax(falls, 0) / scale_of(settings, bound->element);
    }
    assert(active->next <= active->count);
    active->known = active->next == active->count;
}

/* ---- what is told of them ---- */

static int by_multiplier(const void *left, const void *right) {
    const struct active_bound *a = left, *b = right;
    if (a->multiplier != b->multiplier && !isnan(a->multiplier) && !isnan(b->multiplier))
        return a->multiplier > b->multiplier ? -1 : 1;
    return a->element < b->element ? -1 : a->element > b->element;
}

static json_t *bound_json(const struct active_bounds_settings *settings,
                          const struct set_info *data, const struct active_bound *bound) {
    uint64_t column = column_of_weight(settings, bound->element);
    const struct column_limit *limit = &settings->limits[column];
    bool low = bound->point <= limit->low, high = bound->point >= limit->high;
    assert(low || high);
    bool named = data->feature_names && *data->feature_names[column];
    char *id = named ? memory_copy_string(data->feature_names[column])
                     : memory_format("%llu", (unsigned long long)data->feature_id[column]);
    json_t *object = json_pack("{s:o, s:s, s:f}", "feature", text_to_json(id), "at",
                               low && high ? "both"
                               : low       ? "low"
                                           : "high",
                               "bound", bound->point * scale_of(settings, bound->element));
    free(id);
    uint64_t outputs = settings->layout->tensor[0].columns;
    if (outputs > 1)
        json_object_set_new(object, "output", json_integer((json_int_t)(bound->element % outputs)));
    json_object_set_new(object, "multiplier",
                        isnan(bound->multiplier) ? json_null() : json_real(bound->multiplier));
    return object;
}

json_t *active_bounds_json(const struct active_bounds *active,
                           const struct active_bounds_settings *settings,
                           const struct set_info *data) {
    struct active_bound *sorted = memory_new(active->count, sizeof *sorted);
    json_t *list = json_array();
    if (active->count)
        memcpy(sorted, active->items, active->count * sizeof *sorted);
    qsort(sorted, active->count, sizeof *sorted, by_multiplier);
    for (size_t i = 0; i < active->count && i < ACTIVE_BOUNDS_LISTED; i++)
        json_array_append_new(list, bound_json(settings, data, &sorted[i]));
    free(sorted);
    return json_pack("{s:I, s:o}", "count", (json_int_t)active->count, "weights", list);
}

void active_bounds_release(struct active_bounds *active) {
    free(active->items);
    *active = (struct active_bounds){0};
}
