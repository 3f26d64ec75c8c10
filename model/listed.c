#include "model/listed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/list.h"
#include "data/number.h"
#include "model/weight_sum.h"

struct listed {
    const struct model_layout *layout;
    struct labels *labels;
    struct confusion *confusion;
    double *has; /* of each class: whether the label that was read last names it */
    struct bytes part;
    struct weight_sum all, right; /* examples, and those whose classes are all right */
};

struct listed *listed_new(const struct model_layout *layout) {
    struct listed *listed = memory_new(1, sizeof *listed);
    listed->layout = layout;
    listed->labels = label_table_new(layout);
    listed->confusion = confusion_new(layout->classes, false);
    listed->has = memory_new(layout->classes, sizeof *listed->has);
    bytes_init(&listed->part);
    return listed;
}

void listed_free(struct listed *listed) {
    if (!listed)
        return;
    label_table_free(listed->labels);
    confusion_free(listed->confusion);
    weight_sum_release(&listed->all);
    weight_sum_release(&listed->right);
    bytes_release(&listed->part);
    free(listed->has);
    free(listed);
}

const double *listed_read(struct listed *listed, const char *label, bool *unseen) {
    memset(listed->has, 0, listed->layout->classes * sizeof *listed->has);
    *unseen = false;
    while (list_next(&label, listed->layout->separator, &listed->part)) {
        const char *part = (const char *)listed->part.data;
        double number = 0;
        bool is_number = number_of_text(part, &number);
        uint32_t class = label_table_find(listed->labels, number, is_number ? NULL : part);
        if (class == LABEL_UNSEEN)
            *unseen = true;
        else
            listed->has[class] = 1;
    }
    return listed->has;
}

void listed_add(struct listed *listed, const double *margins, bool unseen, double weight) {
    bool right = !unseen;
    for (uint32_t k = 0; k < listed->layout->classes; k++) {
        bool has = listed->has[k] != 0, predicted = margins[k] > 0;
        confusion_note(listed->confusion, k, has, predicted, weight);
        right &= has == predicted;
    }
    weight_sum_add(&listed->all, weight);
    if (right)
        weight_sum_add(&listed->right, weight);
}

void listed_finish(const struct listed *listed, struct score_figures *result) {
    double all = weight_sum_value(&listed->all);
    confusion_finish_notes(listed->confusion, result);
    result->accuracy = all > 0 ? weight_sum_value(&listed->right) / all : NAN;
    result->hamming = all > 0 ? result->hamming / (all * listed->layout->classes) : NAN;
}

json_t *listed_class_json(const struct listed *listed, uint32_t class) {
    return confusion_class_json(listed->confusion, class, listed->layout->class_names[class]);
}
