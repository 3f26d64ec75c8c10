/* The table of figures, and figures for programs. */
#include <math.h>
#include <stddef.h>

#include "base/text.h"
#include "model/score.h"
#include "objective/objective.h"

#define FIGURE(member, better, most, flag, two_classes)                                            \
    { #member, offsetof(struct score_figures, member), better, most, flag, two_classes }

/* clang-format off */
const struct score_figure score_figure_table[] = {
    FIGURE(loss,              SCORE_LOWER,  INFINITY, 0, false),
    FIGURE(log_loss,          SCORE_LOWER,  INFINITY, FIGURE_LOG_LOSS, false),
    FIGURE(accuracy,          SCORE_HIGHER, 1,        FIGURE_ACCURACY | FIGURE_LISTS, false),
    FIGURE(hamming,           SCORE_LOWER,  1,        FIGURE_LISTS, false),
    FIGURE(micro_precision,   SCORE_HIGHER, 1,        FIGURE_LISTS, false),
    FIGURE(micro_recall,      SCORE_HIGHER, 1,        FIGURE_LISTS, false),
    FIGURE(micro_f1,          SCORE_HIGHER, 1,        FIGURE_LISTS, false),
    FIGURE(precision,         SCORE_HIGHER, 1,        FIGURE_ACCURACY, true),
    FIGURE(recall,            SCORE_HIGHER, 1,        FIGURE_ACCURACY, true),
    FIGURE(f1,                SCORE_HIGHER, 1,        FIGURE_ACCURACY, true),
    FIGURE(macro_precision,   SCORE_HIGHER, 1,        FIGURE_ACCURACY | FIGURE_LISTS, false),
    FIGURE(macro_recall,      SCORE_HIGHER, 1,        FIGURE_ACCURACY | FIGURE_LISTS, false),
    FIGURE(macro_f1,          SCORE_HIGHER, 1,        FIGURE_ACCURACY | FIGURE_LISTS, false),
    FIGURE(auc,               SCORE_HIGHER, 1,        FIGURE_AUC, false),
    FIGURE(average_precision, SCORE_HIGHER, 1,        FIGURE_AUC, false),
    FIGURE(brier,             SCORE_LOWER,  INFINITY, FIGURE_LOG_LOSS, false),
    FIGURE(rmse,              SCORE_LOWER,  INFINITY, FIGURE_RMSE, false),
    FIGURE(mae,               SCORE_LOWER,  INFINITY, FIGURE_RMSE | FIGURE_RANK, false),
    FIGURE(r2,                SCORE_HIGHER, 1,        FIGURE_RMSE, false),
    FIGURE(deviance,          SCORE_LOWER,  INFINITY, FIGURE_DEVIANCE, false),
    FIGURE(pinball,           SCORE_LOWER,  INFINITY, FIGURE_COVERAGE, false),
    FIGURE(coverage,          SCORE_NEITHER, 1,       FIGURE_COVERAGE, false),
};
/* clang-format on */

const size_t score_figure_count = sizeof score_figure_table / sizeof score_figure_table[0];

double score_figure_value(const struct score_figures *figures, const struct score_figure *figure) {
    return *(const double *)((const char *)figures + figure->offset);
}

bool score_figure_suits(const struct score_figure *figure, const struct objective *objective) {
    bool has = !figure->flag || (objective->figures & figure->flag);
    return has && !(figure->two_classes && objective->labels != LABEL_BINARY);
}

struct score_figures score_no_figures(void) {
    struct score_figures figures = {.weight = NAN};
    for (size_t i = 0; i < score_figure_count; i++)
        *(double *)((char *)&figures + score_figure_table[i].offset) = NAN;
    return figures;
}

void score_figures_release(struct score_figures *figures) {
    json_decref(figures->classes);
    figures->classes = NULL;
}

static void set_figure(json_t *object, const struct score_figures *figures,
                       const struct score_figure *figure) {
    double value = score_figure_value(figures, figure);
    const struct objective *objective = figures->objective;
    if (objective ? score_figure_suits(figure, objective) : isfinite(value))
        json_object_set_new(object, figure->name, number_json(value));
}

static void set_count(json_t *object, const char *name, uint64_t count) {
    if (count)
        json_object_set_new(object, name, json_integer((json_int_t)count));
}

json_t *score_figures_json(const struct score_figures *figures) {
    json_t *object = json_pack("{s:I}", "examples", (json_int_t)figures->examples);
    if (isfinite(figures->weight))
        json_object_set_new(object, "weight", json_real(figures->weight));
    for (size_t i = 0; i < score_figure_count; i++)
        set_figure(object, figures, &score_figure_table[i]);
    set_count(object, "unseen_labels", figures->unseen_labels);
    set_count(object, "unseen_features", figures->unseen_features);
    set_count(object, "unlabelled", figures->unlabelled);
    if (figures->classes)
        json_object_update(object, figures->classes);
    return object;
}
