#include "model/compare.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static bool same_names(const char *const *a, const char *const *b, uint64_t count) {
    for (uint64_t i = 0; a && b && i < count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return !a == !b;
}

const char *compare_obstacle(const struct model *a, const struct model *b) {
    const struct model_layout *x = &a->layout, *y = &b->layout;
    if (!a->weight || !b->weight)
        return "only linear models have a weight for each column";
    if (x->outputs != y->outputs || x->shared != y->shared || x->classes != y->classes ||
        !same_names(x->class_names, y->class_names, x->classes))
        return "they have different classes";
    if (x->features != y->features || !same_names(x->feature_names, y->feature_names, x->features))
        return "they have different columns";
    for (uint64_t j = 0; j < x->features; j++)
        if (x->feature_id[j] != y->feature_id[j])
            return "they have different columns";
    return NULL;
}

struct difference {
    double size; /* that differences are ordered by */
    uint64_t feature;
    uint32_t output;
    double a, b;
};

struct comparison {
    const struct model_layout *layout;
    const double *deviation;
    size_t most, count;         /* of `largest` */
    struct difference *largest; /* by falling size; of equal ones the first that was found */
    uint64_t weights, differ;
};

static void compare_one(struct comparison *all, uint64_t feature, uint32_t output, double a,
                        double b, double scale) {
    all->weights++;
    if (a == b)
        return;
    all->differ++;
    const struct difference found = {fabs(a - b) * scale, feature, output, a, b};
    size_t at = all->count < all->most ? all->count++ : all->most;
    for (; at && all->largest[at - 1].size < found.size; at--)
        if (at < all->most)
            all->largest[at] = all->largest[at - 1];
    if (at < all->most)
        all->largest[at] = found;
}

static json_t *difference_json(const struct comparison *all, const struct difference *one) {
    const struct model_layout *layout = all->layout;
    const bool intercept = one->feature == layout->features;
    char id[32] = "(intercept)";
    if (!intercept)
        snprintf(id, sizeof id, "%llu", (unsigned long long)layout->feature_id[one->feature]);
    const char *name =
        intercept || !layout->feature_names ? "" : layout->feature_names[one->feature];
    /* Ordered classes share the weights, and each but the first has an intercept. */
    const uint32_t class = one->output + (layout->shared ? 1 : 0);
    const bool has_class = layout->shared ? intercept : layout->outputs > 1;
    return json_pack("{s:o, s:o, s:[f, f], s:o}", "feature", text_to_json(*name ? name : id),
                     "class", has_class ? text_to_json(layout->class_names[class]) : json_null(),
                     "weights", one->a, one->b, "deviation",
                     intercept || !all->deviation ? json_null()
                                                  : number_json(all->deviation[one->feature]));
}

json_t *compare_weights(const struct model *a, const struct model *b, const double *deviation,
                        size_t most) {
    const struct model_layout *layout = &a->layout;
    assert(!compare_obstacle(a, b) && most > 0);
    struct comparison all = {.layout = layout,
                             .deviation = deviation,
                             .most = most,
                             .largest = memory_new(most, sizeof *all.largest)};
    for (uint32_t k = 0; k < model_rows(layout); k++)
        for (uint64_t j = 0; j < layout->features; j++) {
            const uint64_t at = k * layout->features + j;
            const double scale = deviation && isfinite(deviation[j]) ? deviation[j] : !deviation;
            compare_one(&all, j, k, a->weight[at], b->weight[at], scale);
        }
    for (uint32_t k = 0; a->bias && b->bias && k < layout->outputs; k++)
        compare_one(&all, layout->features, k, a->bias[k], b->bias[k], !deviation);
    json_t *largest = json_array();
    for (size_t i = 0; i < all.count; i++)
        json_array_append_new(largest, difference_json(&all, &all.largest[i]));
    free(all.largest);
    return json_pack("{s:I, s:I, s:s, s:o}", "weights", (json_int_t)all.weights, "differ",
                     (json_int_t)all.differ, "by", deviation ? "deviation" : "weight", "largest",
                     largest);
}
