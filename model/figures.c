#include "model/figures.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/labels.h"
#include "numeric/exact.h"

/* A growing list of margins. */
struct list {
    double *at;
    size_t count, capacity;
};

struct figures {
    const struct model_layout *layout;
    struct labels *labels; /* classifiers */
    struct exact loss;
    uint64_t counted; /* examples in `loss` */
    uint64_t correct, unseen, unlabelled;
    struct list negative, positive; /* binary: the margins of each class, for the AUC */
};

double figures_loss_binary(double margin, bool positive) {
    double m = positive ? margin : -margin;
    return log1p(exp(-fabs(m))) + (m < 0 ? -m : 0);
}

uint32_t figures_best_class(const double *margins, uint32_t classes) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < classes; k++)
        if (margins[k] > margins[best])
            best = k;
    return best;
}

double figures_loss_classes(const double *margins, uint32_t classes, uint32_t label) {
    uint32_t best = figures_best_class(margins, classes);
    double rest = 0;
    for (uint32_t k = 0; k < classes; k++)
        if (k != best)
            rest += exp(margins[k] - margins[best]);
    return (margins[best] - margins[label]) + log1p(rest);
}

struct figures *figures_new(const struct model_layout *layout) {
    struct figures *figures = memory_new(1, sizeof *figures);
    figures->layout = layout;
    if (layout->classes)
        figures->labels = label_table_new(layout);
    exact_init(&figures->loss);
    return figures;
}

void figures_free(struct figures *figures) {
    if (!figures)
        return;
    label_table_free(figures->labels);
    free(figures->negative.at);
    free(figures->positive.at);
    free(figures);
}

static void append(struct list *list, double value) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 1024;
        list->at = memory_resize(list->at, list->capacity, sizeof *list->at);
    }
    list->at[list->count++] = value;
}

static void count(struct figures *figures, double loss, bool correct) {
    exact_add(&figures->loss, loss);
    figures->counted++;
    figures->correct += correct;
}

static void count_class(struct figures *figures, const double *margins, uint32_t class) {
    uint32_t outputs = figures->layout->outputs;
    if (class == LABEL_UNSEEN) {
        figures->unseen++;
    } else if (outputs == 1) {
        append(class ? &figures->positive : &figures->negative, margins[0]);
        count(figures, figures_loss_binary(margins[0], class == 1), (margins[0] > 0) == class);
    } else {
        count(figures, figures_loss_classes(margins, outputs, class),
              figures_best_class(margins, outputs) == class);
    }
}

void figures_add(struct figures *figures, const double *margins, double label, const char *text) {
    if (!text && isnan(label)) {
        figures->unlabelled++;
    } else if (figures->labels) {
        count_class(figures, margins, label_table_find(figures->labels, label, text));
    } else if (text) {
        figures->unseen++; /* no number: nothing to compare with */
    } else {
        double residual = margins[0] - label;
        count(figures, 0.5 * residual * residual, false);
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of (positive, negative) pairs in which the positive has the larger margin, counting
 * ties half: counted in halves, in integers, along both sorted lists. */
static double auc_of(struct list *negative, struct list *positive) {
    if (!negative->count || !positive->count)
        return NAN;
    qsort(negative->at, negative->count, sizeof(double), compare);
    qsort(positive->at, positive->count, sizeof(double), compare);
    uint64_t halves = 0;
    size_t below = 0, not_above = 0;
    for (size_t i = 0; i < positive->count; i++) {
        while (below < negative->count && negative->at[below] < positive->at[i])
            below++;
        while (not_above < negative->count && negative->at[not_above] <= positive->at[i])
            not_above++;
        halves += below + not_above;
    }
    return (double)halves / (2 * (double)negative->count * (double)positive->count);
}

void figures_finish(struct figures *figures, struct score_figures *result) {
    uint64_t examples = figures->counted + figures->unseen;
    double loss = figures->counted ? exact_value(&figures->loss) / (double)figures->counted : NAN;
    bool classifier = figures->labels != NULL;
    *result = (struct score_figures){
        .examples = examples,
        .loss = loss,
        .accuracy = classifier && examples ? (double)figures->correct / (double)examples : NAN,
        .auc = auc_of(&figures->negative, &figures->positive),
        .rmse = classifier ? NAN : sqrt(2 * loss),
        .unseen_labels = figures->unseen,
        .unlabelled = figures->unlabelled,
    };
}
