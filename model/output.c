#include "model/output.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/cell.h"
#include "model/output_columns.h"
#include "model/response.h"
#include "model/score.h"
#include "objective/objective.h"

/* ---- predictions: one line an example ---- */

struct lines {
    const struct model_layout *layout;
    const struct objective *objective;
    const struct score_output *output;
    char **class_json;  /* class names quoted, for JSON */
    bool *predicted;    /* of an example with a list of classes: each class; else not used */
    double *prediction; /* of an example */
};

/* Whether there are two classes with one margin for both, of which one is the positive. */
static bool is_binary(const struct lines *lines) {
    return lines->objective->labels == LABEL_BINARY;
}

/* Whether a prediction is a number for each class. */
static bool lists_classes(const struct lines *lines) {
    return lines->layout->classes && !is_binary(lines);
}

int score_check_output(const struct model_layout *layout, const struct score_output *output) {
    const struct objective *objective = objective_find(layout->objective);
    bool classes = objective->labels != LABEL_TARGET;
    bool chances = classes && objective->predict;
    if (output->shown == SCORE_LABELS && !classes)
        return error_set(ERROR_USAGE,
                         "the model predicts numbers and has no labels (objective %s): leave out "
                         "`--labels`",
                         layout->objective);
    if (output->shown == SCORE_PROBABILITIES && !chances)
        return error_set(ERROR_USAGE,
                         "the model has no probabilities (objective %s): leave out "
                         "`--probabilities`%s",
                         layout->objective, classes ? ", or take `--labels` or `--margins`" : "");
    return 0;
}

struct lines *lines_new(const struct model_layout *layout, const struct score_output *output) {
    struct lines *lines = memory_new(1, sizeof *lines);
    *lines = (struct lines){
        .layout = layout, .objective = objective_find(layout->objective), .output = output};
    lines->class_json = memory_new(layout->classes, sizeof *lines->class_json);
    lines->predicted = memory_new(layout->classes, sizeof *lines->predicted);
    lines->prediction = memory_new(objective_predictions(lines->objective, layout->outputs),
                                   sizeof *lines->prediction);
    for (uint32_t k = 0; output->json && k < layout->classes; k++) {
        json_t *name = json_string(layout->class_names[k]);
        lines->class_json[k] = json_dumps(name, JSON_ENCODE_ANY);
        json_decref(name);
    }
    return lines;
}

void lines_free(struct lines *lines) {
    if (!lines)
        return;
    for (uint32_t k = 0; k < lines->layout->classes; k++)
        free(lines->class_json[k]);
    free(lines->class_json);
    free(lines->predicted);
    free(lines->prediction);
    free(lines);
}

/* ---- the header ---- */

/* Columns are separated by blanks. A name with a blank or a quote is quoted, and quotes in it are
 * doubled, as in CSV. */
static void write_name(const char *name, FILE *file) {
    if (*name && !strpbrk(name, " \t\"")) {
        fputs(name, file);
        return;
    }
    output_write_quoted(name, file);
}

static void write_class_names(const struct lines *lines, uint32_t first) {
    for (uint32_t k = first; k < lines->layout->classes; k++) {
        if (k > first)
            putc(' ', lines->output->file);
        write_name(lines->layout->class_names[k], lines->output->file);
    }
}

void lines_write_header(const struct lines *lines) {
    enum score_shown shown = lines->output->shown;
    FILE *file = lines->output->file;
    if (!lines->output->header)
        return;
    if (lines->output->columns) {
        output_columns_write_header(lines->output->columns, lines->output);
        return;
    }
    if (shown == SCORE_LABELS)
        fputs(lines->layout->separator ? "classes" : "class", file);
    else if (shown == SCORE_MARGINS && lines->layout->shared)
        write_class_names(lines, 1); /* a margin of being in that class, or a higher one */
    else if (shown == SCORE_PROBABILITIES || lists_classes(lines))
        write_class_names(lines, 0);
    else
        fputs(shown == SCORE_MARGINS ? "margin" : lines->objective->prediction, file);
    putc('\n', file);
}

/* ---- examples ---- */

static void write_one(const struct lines *lines, const char *member, double value) {
    if (lines->output->json)
        fprintf(lines->output->file, "{\"%s\":%.17g}\n", member, value);
    else
        fprintf(lines->output->file, "%.17g\n", value);
}

/* In JSON write_list() adds the predicted class, unless `class` is this. */
#define NO_CLASS SIZE_MAX

/* The predicted class, or all that are. */
static void write_answer(const struct lines *lines, size_t class) {
    assert(lines->layout->separator || class < lines->layout->classes);
    FILE *file = lines->output->file;
    if (lines->layout->separator) {
        bool json = lines->output->json, first = true;
        fputs(json ? "\"classes\":[" : "", file);
        for (uint32_t k = 0; k < lines->layout->classes; k++) {
            if (!lines->predicted[k])
                continue;
            if (!first)
                putc(json ? ',' : lines->layout->separator, file);
            fputs(json ? lines->class_json[k] : lines->layout->class_names[k], file);
            first = false;
        }
        fputs(json ? "]" : "", file);
    } else if (lines->output->json)
        fprintf(file, "\"class\":%s", lines->class_json[class]);
    else
        fputs(lines->layout->class_names[class], file);
}

static void write_list(const struct lines *lines, const char *member, const double *values,
                       uint32_t count, size_t class) {
    assert(count > 0);
    bool json = lines->output->json;
    FILE *file = lines->output->file;
    if (json)
        fprintf(file, "{\"%s\":[", member);
    for (uint32_t k = 0; k < count; k++)
        fprintf(file, "%s%.17g", k == 0 ? "" : json ? "," : " ", values[k]);
    if (json)
        putc(']', file);
    if (json && class != NO_CLASS) {
        putc(',', file);
        write_answer(lines, class);
    }
    fputs(json ? "}\n" : "\n", file);
}

static void write_prediction(const struct lines *lines, const double *margins, size_t class) {
    uint32_t outputs = lines->layout->outputs;
    if (lines->output->shown == SCORE_PROBABILITIES && is_binary(lines)) {
        double chances[2];
        response_both(lines->objective, lines->layout, margins[0], chances);
        write_list(lines, "probabilities", chances, 2, class);
        return;
    }
    if (lists_classes(lines))
        write_list(lines, lines->objective->prediction, lines->prediction,
                   objective_predictions(lines->objective, outputs), class);
    else
        write_one(lines, lines->objective->prediction, lines->prediction[0]);
}

void lines_write(struct lines *lines, const double *margins, const double *contributions,
                 const char *const *cells) {
    const struct model_layout *layout = lines->layout;
    if (!lines->output->columns && lines->output->shown == SCORE_MARGINS) {
        if (lists_classes(lines))
            write_list(lines, "margins", margins, lines->layout->outputs, NO_CLASS);
        else
            write_one(lines, "margin", margins[0]);
        return;
    }
    response_predict(lines->objective, layout, margins, lines->prediction);
    size_t class = response_class(lines->objective, layout, margins, lines->prediction);
    for (uint32_t k = 0; layout->separator && k < layout->outputs; k++)
        lines->predicted[k] = response_has_class(layout, k, margins[k], lines->prediction[k]);
    if (lines->output->columns)
        output_columns_write(lines->output->columns, lines->output,
                             &(struct output_answer){margins, lines->prediction, class,
                                                     lines->predicted, cells, contributions});
    else if (lines->output->shown == SCORE_LABELS) {
        bool json = lines->output->json;
        FILE *file = lines->output->file;
        if (json)
            putc('{', file);
        write_answer(lines, class);
        fputs(json ? "}\n" : "\n", file);
    } else
        write_prediction(lines, margins, class);
}

void lines_write_bad(const struct lines *lines, const char *const *cells) {
    if (lines->output->columns)
        output_columns_write_bad(lines->output->columns, lines->output, cells);
    else
        fputs(lines->output->json ? "null\n" : "\n", lines->output->file);
}

/* ---- the table of figures, and figures for programs ---- */

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
    FIGURE(calibration_error, SCORE_LOWER, 1,         FIGURE_LOG_LOSS, true),
    FIGURE(rmse,              SCORE_LOWER,  INFINITY, FIGURE_RMSE, false),
    FIGURE(mae,               SCORE_LOWER,  INFINITY, FIGURE_RMSE | FIGURE_RANK, false),
    FIGURE(r2,                SCORE_HIGHER, 1,        FIGURE_RMSE, false),
    FIGURE(deviance,          SCORE_LOWER,  INFINITY, FIGURE_DEVIANCE, false),
    FIGURE(pinball,           SCORE_LOWER,  INFINITY, FIGURE_COVERAGE, false),
    FIGURE(coverage,          SCORE_NEITHER, 1,       FIGURE_COVERAGE, false),
};
/* clang-format on */

const size_t score_figure_count = sizeof score_figure_table / sizeof score_figure_table[0];

const struct score_figure *score_figure_find(const char *name) {
    for (size_t i = 0; i < score_figure_count; i++)
        if (strcmp(score_figure_table[i].name, name) == 0)
            return &score_figure_table[i];
    return NULL;
}

const char *score_figure_suggestion(const char *name) {
    struct nearest nearest = {.text = name};
    for (size_t i = 0; i < score_figure_count; i++)
        nearest_offer(&nearest, score_figure_table[i].name);
    return nearest_suggestion(&nearest, "");
}

char *score_figure_names(const struct objective *objective, bool directed) {
    char *list = memory_copy_string("");
    for (size_t i = 0; i < score_figure_count; i++) {
        const struct score_figure *figure = &score_figure_table[i];
        if (!score_figure_suits(figure, objective) || (directed && figure->better == SCORE_NEITHER))
            continue;
        char *longer = memory_format("%s%s%s", list, *list ? ", " : "", figure->name);
        free(list);
        list = longer;
    }
    return list;
}

double score_figure_value(const struct score_figures *figures, const struct score_figure *figure) {
    return *(const double *)((const char *)figures + figure->offset);
}

bool score_figure_suits(const struct score_figure *figure, const struct objective *objective) {
    bool has = !figure->flag || (objective->figures & figure->flag);
    return has && !(figure->two_classes && objective->labels != LABEL_BINARY);
}

struct score_figures score_no_figures(void) {
    struct score_figures figures = {.weight = NAN, .threshold = NAN};
    for (size_t i = 0; i < score_figure_count; i++)
        *(double *)((char *)&figures + score_figure_table[i].offset) = NAN;
    return figures;
}

void score_figures_release(struct score_figures *figures) {
    json_decref(figures->classes);
    figures->classes = NULL;
}

static void set_count(json_t *object, const char *name, uint64_t count) {
    if (count)
        json_object_set_new(object, name, json_integer((json_int_t)count));
}

json_t *score_figures_json(const struct score_figures *figures) {
    json_t *object = json_pack("{s:I}", "examples", (json_int_t)figures->examples);
    if (isfinite(figures->weight))
        json_object_set_new(object, "weight", json_real(figures->weight));
    if (isfinite(figures->threshold))
        json_object_set_new(object, "threshold", json_real(figures->threshold));
    for (size_t i = 0; i < score_figure_count; i++) {
        const struct score_figure *figure = &score_figure_table[i];
        double value = score_figure_value(figures, figure);
        const struct objective *objective = figures->objective;
        if (objective ? score_figure_suits(figure, objective) : isfinite(value))
            json_object_set_new(object, figure->name, number_json(value));
    }
    set_count(object, "unseen_labels", figures->unseen_labels);
    set_count(object, "unseen_features", figures->unseen_features);
    set_count(object, "unlabelled", figures->unlabelled);
    if (figures->classes)
        json_object_update(object, figures->classes);
    return object;
}
