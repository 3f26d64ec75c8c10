/* Finds what each row weighs in the set. */
#include "data/set/weights.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/source/blocks.h"
#include "data/text/number.h"
#include "numeric/exact.h"

/* ---- class weights ---- */

bool class_weight_parse(const char *text, size_t *label_length, double *weight) {
    const char *equals = strrchr(text, '=');
    if (!equals)
        return false;
    const char *number = equals + 1, *end = equals;
    while (*number == ' ')
        number++;
    while (end > text && end[-1] == ' ')
        end--;
    *label_length = (size_t)(end - text);
    return *label_length && number_of_text(number, weight) &&
           property_is_valid(ROW_WEIGHT, *weight);
}

#define CLASSES_LISTED 5 /* in a message */

/* Takes one LABEL = WEIGHT. `given` marks the classes that have theirs. */
static int take_class_weight(struct row_weights *row_weights, const struct labels *labels,
                             const char *text, bool *given) {
    size_t length = 0;
    double weight = 1;
    if (!class_weight_parse(text, &length, &weight))
        return error_set(ERROR_DATA, "\"%s\" is no class weight", text);
    char *label = memory_format("%.*s", (int)length, text), *list = NULL;
    uint32_t i = 0;
    while (i < labels->classes && !label_means(labels, i, label))
        i++;
    int code = 0;
    for (uint32_t k = 0; i == labels->classes && k < labels->classes && k < CLASSES_LISTED; k++) {
        char *before = list;
        list =
            memory_format("%s%s\"%s\"", list ? list : "", list ? ", " : "", labels->class_name[k]);
        free(before);
    }
    if (list)
        code = error_set(ERROR_DATA,
                         "no row that is trained on has the label \"%s\" of class_weight: the "
                         "labels are %s%s",
                         label, list, labels->classes > CLASSES_LISTED ? ", ..." : "");
    else if (given[i])
        code = error_set(ERROR_DATA, "class_weight has two weights for the label \"%s\"",
                         labels->class_name[i]);
    if (!code) {
        row_weights->of_class[i] = weight;
        given[i] = true;
    }
    free(label);
    free(list);
    return code;
}

/* ---- sums over rows ---- */

/* Sums of weights before they are scaled; exact, so that no order of rows matters. */
struct weight_sums {
    struct exact all, held;
    struct exact *of_class; /* of training rows; or NULL */
    uint64_t rows;          /* trained on */
};

static void add_block_weights(const struct row_weights *row_weights, const struct split *split,
                              const struct labels *labels, uint32_t p, uint32_t b,
                              struct weight_sums *sums) {
    assert(p < split->count && b < split->packs[p]->facts->blocks);
    struct pack_rows rows = pack_rows(split->packs[p], b);
    for (uint32_t row = 0; row < rows.rows; row++) {
        enum row_side side = split_side(split, p, b, row);
        if (side == ROW_LEFT_OUT)
            continue;
        double label = label_of_row(labels, p, &rows, row);
        double weight = row_weight_of(row_weights, &rows, row, label);
        exact_add(side == ROW_HELD ? &sums->held : &sums->all, weight);
        if (side == ROW_TRAINED && sums->of_class)
            exact_add(&sums->of_class[(uint32_t)label], weight);
        sums->rows += side == ROW_TRAINED;
    }
}

static void add_weights(const struct row_weights *row_weights, const struct split *split,
                        const struct labels *labels, struct weight_sums *sums) {
    exact_init(&sums->all);
    exact_init(&sums->held);
    sums->rows = 0;
    for (uint32_t i = 0; sums->of_class && i < labels->classes; i++)
        exact_init(&sums->of_class[i]);
    for (uint32_t p = 0; p < split->count; p++)
        for (uint32_t b = 0; b < split->packs[p]->facts->blocks; b++)
            add_block_weights(row_weights, split, labels, p, b, sums);
}

static int balance(struct row_weights *row_weights, const struct split *split,
                   const struct labels *labels) {
    struct weight_sums sums = {.of_class = memory_new(labels->classes, sizeof *sums.of_class)};
    int code = 0;
    add_weights(row_weights, split, labels, &sums);
    double all = exact_value(&sums.all);
    for (uint32_t i = 0; i < labels->classes && !code; i++) {
        double own = exact_value(&sums.of_class[i]);
        row_weights->of_class[i] = all / (labels->classes * own);
        if (!property_is_valid(ROW_WEIGHT, row_weights->of_class[i]))
            code =
                error_set(ERROR_DATA,
                          "class_weight = %s: the rows of the label \"%s\" weigh %g of %g: there "
                          "is no weight that balances them",
                          CLASS_WEIGHT_BALANCED, labels->class_name[i], own, all);
    }
    free(sums.of_class);
    return code;
}

/* ---- both ---- */

static int weigh_classes(struct row_weights *row_weights, const struct split *split,
                         const struct labels *labels, const char *const *class_weight) {
    row_weights->of_class = memory_new(labels->classes, sizeof *row_weights->of_class);
    for (uint32_t i = 0; i < labels->classes; i++)
        row_weights->of_class[i] = 1;
    if (!strcmp(class_weight[0], CLASS_WEIGHT_BALANCED))
        return balance(row_weights, split, labels);
    bool *given = memory_new(labels->classes, sizeof *given);
    int code = 0;
    for (; *class_weight && !code; class_weight++)
        code = take_class_weight(row_weights, labels, *class_weight, given);
    free(given);
    return code;
}

/* Scales weights to a mean from 1 to 2 by a power of two, so that sums are as large beside the
 * values as they are without weights. */
static int scale(struct row_weights *row_weights, const struct split *split,
                 const struct labels *labels) {
    struct weight_sums sums = {0};
    add_weights(row_weights, split, labels, &sums);
    double all = exact_value(&sums.all);
    if (!(all > 0))
        return error_set(ERROR_DATA, "%s: all rows that are trained on have a weight of 0",
                         pack_source(split->packs[0]));
    row_weights->exponent = -ilogb(fmax(all / (double)sums.rows, DBL_MIN));
    add_weights(row_weights, split, labels, &sums);
    row_weights->sum = exact_value(&sums.all);
    row_weights->held_sum = exact_value(&sums.held);
    return 0;
}

int row_weights_find(struct row_weights *row_weights, const struct split *split,
                     const struct labels *labels, const char *const *class_weight) {
    *row_weights = (struct row_weights){0};
    bool of_class = class_weight && *class_weight && labels->classes;
    if (!of_class && !split->weighted)
        return 0;
    int code = of_class ? weigh_classes(row_weights, split, labels, class_weight) : 0;
    if (!code)
        code = scale(row_weights, split, labels);
    /* Unless all rows and classes weigh the same. */
    row_weights->weighted = !code && split->weighted;
    for (uint32_t i = 0; row_weights->of_class && i < labels->classes && !code; i++)
        row_weights->weighted |= row_weights->of_class[i] != row_weights->of_class[0];
    return code;
}

void row_weights_release(struct row_weights *row_weights) {
    free(row_weights->of_class);
    *row_weights = (struct row_weights){0};
}
