#include "model/figures.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/labels.h"
#include "numeric/exact.h"
#include "objective/objective.h"

/* A growing list of margins. */
struct list {
    double *at;
    size_t count, capacity;
};

struct figures {
    const struct model_layout *layout;
    const struct objective *objective;
    struct labels *labels; /* classifiers */
    struct exact loss;
    struct exact squares; /* halves of the squared residuals, for the RMSE */
    uint64_t counted;     /* examples in `loss` */
    uint64_t correct, unseen, unlabelled;
    struct list negative, positive; /* binary: the margins of each class, for the AUC */
};

struct figures *figures_new(const struct model_layout *layout) {
    struct figures *figures = memory_new(1, sizeof *figures);
    figures->layout = layout;
    figures->objective = objective_find(layout->objective);
    if (figures->objective->labels != LABEL_TARGET)
        figures->labels = label_table_new(layout);
    exact_init(&figures->loss);
    exact_init(&figures->squares);
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
    MEMORY_ROOM(list->at, list->count, list->capacity);
    list->at[list->count++] = value;
}

static void count(struct figures *figures, const double *margins, double label) {
    size_t outputs = figures->layout->outputs;
    exact_add(&figures->loss, figures->objective->loss(outputs, margins, label));
    figures->counted++;
}

static void count_class(struct figures *figures, const double *margins, uint32_t class) {
    size_t outputs = figures->layout->outputs;
    if (class == LABEL_UNSEEN) {
        figures->unseen++;
        return;
    }
    count(figures, margins, class);
    bool largest = figures->objective->output_a_class;
    size_t answer = largest ? objective_best(outputs, margins) : margins[0] > 0;
    figures->correct += answer == class;
    if (figures->objective->figures & FIGURE_AUC)
        append(class ? &figures->positive : &figures->negative, margins[0]);
}

static void count_target(struct figures *figures, const double *margins, double target) {
    double residual = margins[0] - target;
    count(figures, margins, target);
    exact_add(&figures->squares, 0.5 * residual * residual);
}

void figures_add(struct figures *figures, const double *margins, double label, const char *text) {
    if (!text && isnan(label))
        figures->unlabelled++;
    else if (figures->labels)
        count_class(figures, margins, label_table_find(figures->labels, label, text));
    else if (text)
        figures->unseen++; /* a text where the model predicts a number */
    else
        count_target(figures, margins, label);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The share of (positive, negative) pairs in which the positive has the larger margin; a tie counts
 * half. The count is exact: it is an integer number of halves, found in one pass over both sorted
 * lists. */
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

static double mean(const struct figures *figures, const struct exact *sum) {
    return figures->counted ? exact_value(sum) / (double)figures->counted : NAN;
}

void figures_finish(struct figures *figures, struct score_figures *result) {
    uint64_t examples = figures->counted + figures->unseen;
    unsigned shown = figures->objective->figures;
    *result = (struct score_figures){
        .examples = examples,
        .loss = mean(figures, &figures->loss),
        .log_loss = shown & FIGURE_LOG_LOSS ? mean(figures, &figures->loss) : NAN,
        .accuracy =
            shown & FIGURE_ACCURACY && examples ? (double)figures->correct / (double)examples : NAN,
        .auc = auc_of(&figures->negative, &figures->positive),
        .rmse = shown & FIGURE_RMSE ? sqrt(2 * mean(figures, &figures->squares)) : NAN,
        .unseen_labels = figures->unseen,
        .unlabelled = figures->unlabelled,
    };
}
