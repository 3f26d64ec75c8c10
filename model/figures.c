#include "model/figures.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/text/number.h"
#include "model/classes.h"
#include "model/curves.h"
#include "model/response.h"
#include "model/ranking.h"
#include "numeric/exact.h"
#include "objective/objective.h"

/* ---- how far predicted numbers are from their targets ---- */

struct residuals {
    struct weight_sum all, covered; /* covered: the target is at most the prediction */
    double quantile;
    struct exact half_squares, above, below; /* the last two: of |residual| by its sign */
    struct exact targets, target_squares;    /* weighted, without rounding */
};

/* `quantile` is that of the pinball loss. */
static struct residuals *residuals_new(double quantile) {
    struct residuals *residuals = memory_new(1, sizeof *residuals);
    residuals->quantile = quantile;
    exact_init(&residuals->half_squares);
    exact_init(&residuals->above);
    exact_init(&residuals->below);
    exact_init(&residuals->targets);
    exact_init(&residuals->target_squares);
    return residuals;
}

static void residuals_free(struct residuals *residuals) {
    if (!residuals)
        return;
    weight_sum_release(&residuals->all);
    weight_sum_release(&residuals->covered);
    free(residuals);
}

/* The mean of equal targets may be off by its last bit. Their spread is then not quite 0, but a
 * smaller share of the sum of their squares than this. */
#define EQUAL 1e-30

/* a·b as two doubles whose sum it is. */
static void split_product(double a, double b, double *high, double *low) {
    *high = a * b;
    *low = fma(a, b, -*high);
}

static void add_product(struct exact *sum, double a, double b) {
    double high, low;
    split_product(a, b, &high, &low);
    exact_add(sum, high);
    exact_add(sum, low);
}

static void residuals_add(struct residuals *residuals, double prediction, double target,
                          double weight) {
    assert(weight >= 0);
    double residual = prediction - target, high, low;
    weight_sum_add(&residuals->all, weight);
    if (target <= prediction)
        weight_sum_add(&residuals->covered, weight);
    exact_add(&residuals->half_squares, weight * (0.5 * residual * residual));
    exact_add(residual > 0 ? &residuals->above : &residuals->below, weight * fabs(residual));
    split_product(weight, target, &high, &low);
    exact_add(&residuals->targets, high);
    exact_add(&residuals->targets, low);
    add_product(&residuals->target_squares, high, target);
    add_product(&residuals->target_squares, low, target);
}

/* Σ w (y − c)² with c the mean of y, as Σ w y² − 2c Σ w y + c² Σ w. The terms are large and cancel,
 * so they are added without rounding, and each sum counts with what its double leaves out. */
static double spread(const struct residuals *residuals) {
    double weights_low, weights = weight_sum_split(&residuals->all, &weights_low);
    double sum = exact_value(&residuals->targets), mean = sum / weights, high, low;
    struct exact rest = residuals->targets, total = residuals->target_squares;
    exact_add(&rest, -sum);
    add_product(&total, -2 * mean, sum);
    add_product(&total, -2 * mean, exact_value(&rest));
    split_product(mean, mean, &high, &low);
    add_product(&total, high, weights);
    add_product(&total, low, weights);
    add_product(&total, high, weights_low);
    return exact_value(&total);
}

/* Sets rmse, mae, r2, pinball and coverage. r2 stays NaN if all targets are equal. */
static void residuals_finish(const struct residuals *residuals, struct score_figures *result) {
    double weights = weight_sum_value(&residuals->all);
    if (!(weights > 0))
        return;
    double half_squares = exact_value(&residuals->half_squares);
    result->rmse = sqrt(2 * (half_squares / weights));
    double above = exact_value(&residuals->above), below = exact_value(&residuals->below);
    result->mae = (above + below) / weights;
    result->pinball = ((1 - residuals->quantile) * above + residuals->quantile * below) / weights;
    result->coverage = weight_sum_value(&residuals->covered) / weights;
    double around_mean = spread(residuals);
    if (around_mean > EQUAL * exact_value(&residuals->target_squares))
        result->r2 = 1 - 2 * half_squares / around_mean;
}

/* ---- figures of all kinds ---- */

/* Labels that training never saw are collected for messages from so many examples at most. */
#define UNSEEN_LOOKED_AT 1000

struct figures {
    const struct model_layout *layout;
    const struct objective *objective;
    enum figures_kind kind;
    double *prediction, *shifted; /* of one example */
    struct weight_sum all;        /* examples in `loss` */
    struct exact loss;
    struct exact log_loss; /* of calibrated probabilities; else it is the loss */
    uint64_t examples, unseen, unlabelled;
    char unseen_few[sizeof((struct score_figures *)0)->unseen];
    bool weighted;
    bool is_given; /* the loss of the next example, or NaN where its label has none */
    double given;

    struct listed *listed; /* of lists of classes, else NULL, as the next two of one class */
    struct class_table *labels;
    struct confusion *confusion;
    struct ranking *ranking; /* if the objective has figures of it */
    struct exact brier;
    struct reliability *reliability; /* of two classes with probabilities, else NULL */
    struct exact rank_error;         /* of ordered classes: Σ weight·|predicted − class| */

    struct residuals *residuals; /* of numbers, else NULL */
};

struct figures *figures_new(const struct model_layout *layout, enum figures_kind kind) {
    struct figures *figures = memory_new(1, sizeof *figures);
    figures->layout = layout;
    figures->kind = kind;
    figures->objective = objective_find(layout->objective);
    figures->prediction =
        memory_new(objective_predictions(figures->objective, layout->outputs), sizeof(double));
    figures->shifted = memory_new(layout->outputs, sizeof(double));
    exact_init(&figures->loss);
    exact_init(&figures->log_loss);
    exact_init(&figures->brier);
    exact_init(&figures->rank_error);
    enum label_kind labels = figures->objective->labels;
    if (labels == LABEL_LISTS)
        figures->listed = listed_new(layout);
    else if (labels != LABEL_TARGET)
        figures->labels = class_table_new(layout);
    if (kind == FIGURES_LABELS)
        return figures;
    if (kind == FIGURES_MARGINS) {
        figures->ranking = ranking_new(layout->outputs, RANKING_BYTES_MAX);
        return figures;
    }
    if (labels == LABEL_TARGET)
        figures->residuals = residuals_new(layout->loss.value[0]);
    else if (figures->labels)
        figures->confusion = confusion_new(layout->classes, true);
    if (figures->objective->figures & FIGURE_AUC)
        figures->ranking = ranking_new(layout->outputs, RANKING_BYTES_MAX);
    if (labels == LABEL_BINARY && (figures->objective->figures & FIGURE_LOG_LOSS))
        figures->reliability = reliability_new();
    return figures;
}

void figures_free(struct figures *figures) {
    if (!figures)
        return;
    listed_free(figures->listed);
    class_table_free(figures->labels);
    confusion_free(figures->confusion);
    ranking_free(figures->ranking);
    reliability_free(figures->reliability);
    residuals_free(figures->residuals);
    weight_sum_release(&figures->all);
    free(figures->prediction);
    free(figures->shifted);
    free(figures);
}

static const double *predict(struct figures *figures, const double *margins) {
    response_predict(figures->objective, figures->layout, margins, figures->prediction);
    return figures->prediction;
}

static bool is_calibrated(const struct figures *figures) {
    return figures->layout->response && response_is_calibrated(figures->layout->response);
}

static void add_loss(struct figures *figures, const double *margins, double label, double weight) {
    size_t outputs = figures->layout->outputs;
    margins = response_shifted(figures->layout, margins, figures->shifted);
    weight_sum_add(&figures->all, weight);
    if (weight > 0) /* else the label may be one that the loss does not allow */
        exact_add(&figures->loss,
                  weight * (figures->is_given
                                ? figures->given
                                : objective_loss(figures->objective, &figures->layout->loss,
                                                 outputs, margins, label)));
}

double figures_label(const struct figures *figures, double label, const char *text) {
    if (!figures->labels)
        return label;
    uint32_t class =
        text || !isnan(label) ? class_table_find(figures->labels, label, text) : LABEL_UNSEEN;
    return class == LABEL_UNSEEN ? (double)NAN : (double)class;
}

void figures_give_loss(struct figures *figures, double loss) {
    figures->is_given = true;
    figures->given = loss;
}

/* The squared distance of the predicted probabilities to the outcome: 1 for the class of the label,
 * 0 for the others. */
static double brier(size_t chances, const double *chance, uint32_t class) {
    if (chances == 1)
        return (chance[0] - class) * (chance[0] - class);
    double sum = 0;
    for (size_t k = 0; k < chances; k++)
        sum += (chance[k] - (k == class)) * (chance[k] - (k == class));
    return sum;
}

/* One output is ranked by its margin, which has more digits than a probability close to 1. Several
 * are ranked by their predictions: margins of different examples have no common zero there. */
static void count_class(struct figures *figures, const double *margins, uint32_t class,
                        double weight) {
    size_t chances = objective_predictions(figures->objective, figures->layout->outputs);
    bool several = figures->objective->output_a_class;
    const double *prediction = predict(figures, margins);
    uint32_t answer = response_class(figures->objective, figures->layout, margins, prediction);
    confusion_add(figures->confusion, class, answer, weight);
    if (class == LABEL_UNSEEN)
        return;
    add_loss(figures, margins, class, weight);
    if (is_calibrated(figures))
        exact_add(&figures->log_loss,
                  weight * response_log_loss(figures->layout, margins, class, figures->shifted));
    if (figures->objective->figures & FIGURE_LOG_LOSS)
        exact_add(&figures->brier, weight * brier(chances, prediction, class));
    if (figures->reliability)
        reliability_add(figures->reliability, prediction[0], class == 1, weight);
    exact_add(&figures->rank_error, weight * fabs((double)answer - (double)class));
    if (figures->ranking)
        ranking_add(figures->ranking, several ? prediction : margins, class, weight);
}

/* Counts a label that training never saw, and adds it to those for messages if it is new there and
 * there is room. */
static void note_unseen(struct figures *figures, double label, const char *text) {
    char digits[NUMBER_TEXT], *few = figures->unseen_few, *name;
    size_t length = strlen(few);
    figures->unseen++;
    if (figures->unseen > UNSEEN_LOOKED_AT)
        return;
    number_format(label, digits);
    name = memory_format("%s\"%.40s\"", length ? ", " : "", text ? text : digits);
    bool there = strstr(few, name + (length ? strlen(", ") : 0));
    if (!there && length + strlen(name) < sizeof figures->unseen_few)
        strcpy(few + length, name);
    free(name);
}

/* The loss of lists is the sum of those of classes. */
static void count_list(struct figures *figures, const double *margins, const char *list,
                       double weight) {
    assert(list);
    bool unseen;
    const double *has = listed_read(figures->listed, list, &unseen);
    if (unseen)
        note_unseen(figures, NAN, list);
    if (figures->kind == FIGURES_LABELS)
        return;
    if (figures->kind == FIGURES_MARGINS) {
        ranking_add_listed(figures->ranking, margins, has, weight);
        return;
    }
    double loss = 0;
    const double *prediction = predict(figures, margins);
    for (uint32_t k = 0; k < figures->layout->outputs; k++)
        loss += objective_loss(figures->objective, &figures->layout->loss, 1, &margins[k], has[k]);
    weight_sum_add(&figures->all, weight);
    exact_add(&figures->loss, weight * loss);
    listed_add(figures->listed, margins, prediction, unseen, weight);
    ranking_add_listed(figures->ranking, prediction, has, weight);
}

void figures_add(struct figures *figures, const double *margins, double label, const char *text,
                 double weight) {
    assert(margins && weight >= 0);
    if (!figures->labels && !figures->listed && !isnan(label))
        text = NULL; /* a code is a number where numbers are predicted */
    if (!text && isnan(label)) {
        figures->unlabelled++;
        return;
    }
    figures->examples++;
    figures->weighted |= weight != 1;
    if (figures->listed) {
        count_list(figures, margins, text, weight);
        return;
    }
    /* A text is no label that was seen where the model predicts a number. */
    uint32_t class = figures->labels ? class_table_find(figures->labels, label, text)
                     : text          ? LABEL_UNSEEN
                                     : 0;
    if (class == LABEL_UNSEEN)
        note_unseen(figures, label, text);
    if (figures->kind == FIGURES_MARGINS && class != LABEL_UNSEEN)
        ranking_add(figures->ranking, margins, class, weight);
    if (figures->confusion) {
        count_class(figures, margins, class, weight);
    } else if (figures->residuals && !text) {
        add_loss(figures, margins, label, weight);
        residuals_add(figures->residuals, predict(figures, margins)[0], label, weight);
    }
}

/* ---- the end ---- */

struct ranking *figures_take_ranking(struct figures *figures) {
    struct ranking *ranking = figures->ranking;
    assert(figures->kind == FIGURES_MARGINS);
    figures->ranking = NULL;
    return ranking;
}

static double mean(const struct figures *figures, const struct exact *sum) {
    double weights = weight_sum_value(&figures->all);
    return weights > 0 ? exact_value(sum) / weights : NAN;
}

/* Sums up one-vs-rest figures over classes. */
struct macro {
    double auc, average_precision;
    uint32_t aucs, precisions;
};

/* Adds what each class of several has, and their means. */
static void finish_ranking(const struct figures *figures, json_t *classes,
                           struct score_figures *result) {
    assert(figures->ranking);
    struct macro macro = {0};
    uint32_t outputs = figures->layout->outputs;
    for (uint32_t k = 0; k < outputs; k++) {
        struct ranked ranked = ranking_of(figures->ranking, k);
        if (!isnan(ranked.auc)) {
            macro.auc += ranked.auc;
            macro.aucs++;
        }
        if (!isnan(ranked.average_precision)) {
            macro.average_precision += ranked.average_precision;
            macro.precisions++;
        }
        json_t *class = outputs > 1 ? json_array_get(classes, k) : NULL;
        if (!class)
            continue;
        json_object_set_new(class, "auc", number_json(ranked.auc));
        json_object_set_new(class, "average_precision", number_json(ranked.average_precision));
    }
    result->auc = macro.aucs ? macro.auc / macro.aucs : NAN;
    result->average_precision = macro.precisions ? macro.average_precision / macro.precisions : NAN;
}

/* The curves of a model of two classes; NULL if they are not defined. */
static json_t *finish_curves(const struct figures *figures, struct score_figures *result) {
    if (figures->reliability)
        result->calibration_error = reliability_error(figures->reliability);
    if (figures->objective->labels != LABEL_BINARY || !figures->ranking)
        return NULL;
    uint64_t count;
    struct ranked_score *scores = ranking_scores(figures->ranking, 0, &count);
    struct ranking_point all = ranking_all(scores, count);
    bool both = all.positives > 0 && all.predicted > all.positives;
    for (uint64_t i = 0; i < count; i++)
        scores[i].score =
            response_probability(figures->objective, figures->layout, 0, scores[i].score);
    json_t *curves = both ? curves_json(scores, count) : NULL;
    if (both && ranking_is_binned(figures->ranking))
        json_object_set_new(curves, "binned", json_true());
    if (both && figures->reliability)
        json_object_set_new(curves, "reliability", reliability_json(figures->reliability));
    free(scores);
    return curves;
}

static void finish_classes(const struct figures *figures, struct score_figures *result) {
    const struct model_layout *layout = figures->layout;
    json_t *classes = json_array();
    for (uint32_t k = 0; k < layout->classes && layout->classes <= SCORE_LISTED_CLASSES; k++)
        json_array_append_new(
            classes, figures->listed
                         ? listed_class_json(figures->listed, k)
                         : confusion_class_json(figures->confusion, k, layout->class_names[k]));
    if (figures->listed)
        listed_finish(figures->listed, result);
    else
        confusion_finish(figures->confusion, figures->objective->labels == LABEL_BINARY, result);
    if (figures->ranking && !ranking_overflowed(figures->ranking))
        finish_ranking(figures, classes, result);
    else if (figures->ranking)
        log_warning("auc and average_precision are left out: they need the scores of all examples "
                    "at once, and these are more than %u MiB",
                    (unsigned)(RANKING_BYTES_MAX >> 20));
    if (figures->objective->figures & FIGURE_LOG_LOSS) {
        result->log_loss =
            is_calibrated(figures) ? mean(figures, &figures->log_loss) : result->loss;
        result->brier = mean(figures, &figures->brier);
    }
    if (figures->objective->figures & FIGURE_RANK)
        result->mae = mean(figures, &figures->rank_error);
    json_t *matrix = figures->confusion ? confusion_matrix_json(figures->confusion) : NULL;
    result->classes = json_pack("{s:o, s:o*, s:o*}", "classes", classes, "confusion", matrix,
                                "curves", finish_curves(figures, result));
}

void figures_finish(struct figures *figures, struct score_figures *result) {
    *result = score_no_figures();
    result->objective = figures->objective;
    result->examples = figures->examples;
    result->unseen_labels = figures->unseen;
    memcpy(result->unseen, figures->unseen_few, sizeof result->unseen);
    result->unlabelled = figures->unlabelled;
    if (figures->kind != FIGURES_ALL)
        return;
    result->loss = mean(figures, &figures->loss);
    result->threshold = figures->layout->outputs == 1
                            ? response_threshold(figures->objective, figures->layout, 0)
                            : (double)NAN;
    if (figures->weighted)
        result->weight = weight_sum_value(&figures->all);
    if (figures->labels || figures->listed)
        finish_classes(figures, result);
    else
        residuals_finish(figures->residuals, result);
    if (figures->objective->figures & FIGURE_DEVIANCE)
        result->deviance = result->loss;
}
