#include "model/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "objective/objective.h"

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
    putc('"', file);
    for (; *name; name++) {
        if (*name == '"')
            putc('"', file);
        putc(*name, file);
    }
    putc('"', file);
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

/* In JSON with the predicted class, unless it is this. */
#define NO_CLASS SIZE_MAX

static void write_classes(const struct lines *lines) {
    bool json = lines->output->json, first = true;
    FILE *file = lines->output->file;
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
}

/* The predicted class, or all that are. */
static void write_answer(const struct lines *lines, size_t class) {
    FILE *file = lines->output->file;
    if (lines->layout->separator)
        write_classes(lines);
    else if (lines->output->json)
        fprintf(file, "\"class\":%s", lines->class_json[class]);
    else
        fputs(lines->layout->class_names[class], file);
}

static void write_list(const struct lines *lines, const char *member, const double *values,
                       uint32_t count, size_t class) {
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

static void write_label(const struct lines *lines, size_t class) {
    bool json = lines->output->json;
    FILE *file = lines->output->file;
    if (json)
        putc('{', file);
    write_answer(lines, class);
    fputs(json ? "}\n" : "\n", file);
}

static void write_margins(const struct lines *lines, const double *margins) {
    if (lists_classes(lines))
        write_list(lines, "margins", margins, lines->layout->outputs, NO_CLASS);
    else
        write_one(lines, "margin", margins[0]);
}

/* The probability of the other of two classes is that of the opposite margin: so it keeps its
 * digits where it is small. */
static void write_two(const struct lines *lines, double margin, size_t class) {
    double chances[] = {-margin, margin};
    lines->objective->predict(1, &chances[0]);
    lines->objective->predict(1, &chances[1]);
    write_list(lines, "probabilities", chances, 2, class);
}

static void write_prediction(struct lines *lines, const double *margins, size_t class) {
    uint32_t outputs = lines->layout->outputs;
    if (lines->output->shown == SCORE_PROBABILITIES && is_binary(lines)) {
        write_two(lines, margins[0], class);
        return;
    }
    double *prediction = lines->prediction;
    memcpy(prediction, margins, outputs * sizeof *prediction);
    if (lines->objective->predict)
        lines->objective->predict(outputs, prediction);
    if (lists_classes(lines))
        write_list(lines, lines->objective->prediction, prediction,
                   objective_predictions(lines->objective, outputs), class);
    else
        write_one(lines, lines->objective->prediction, prediction[0]);
}

void lines_write(struct lines *lines, const double *margins) {
    size_t class = objective_class(lines->objective, lines->layout->outputs, margins);
    for (uint32_t k = 0; lines->layout->separator && k < lines->layout->outputs; k++)
        lines->predicted[k] = margins[k] > 0;
    if (lines->output->shown == SCORE_LABELS)
        write_label(lines, class);
    else if (lines->output->shown == SCORE_MARGINS)
        write_margins(lines, margins);
    else
        write_prediction(lines, margins, class);
}

void lines_write_bad(const struct lines *lines) {
    fputs(lines->output->json ? "null\n" : "\n", lines->output->file);
}
