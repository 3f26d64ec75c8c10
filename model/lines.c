#include "model/lines.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/figures.h"

struct lines {
    const struct model_layout *layout;
    FILE *file;
    enum score_format format;
    char **class_json; /* class names quoted, for SCORE_JSON */
};

struct lines *lines_new(const struct model_layout *layout, FILE *file, enum score_format format) {
    struct lines *lines = memory_new(1, sizeof *lines);
    *lines = (struct lines){.layout = layout, .file = file, .format = format};
    lines->class_json = memory_new(layout->classes, sizeof *lines->class_json);
    for (uint32_t k = 0; format == SCORE_JSON && k < layout->classes; k++) {
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
    free(lines);
}

/* 1 / (1 + e^−m) without overflow. */
static double probability_of(double margin) {
    double e = exp(-fabs(margin));
    return (margin >= 0 ? 1 : e) / (1 + e);
}

static void to_probabilities(double *margins, uint32_t classes) {
    double largest = margins[figures_best_class(margins, classes)], sum = 0;
    for (uint32_t k = 0; k < classes; k++) {
        margins[k] = exp(margins[k] - largest);
        sum += margins[k];
    }
    for (uint32_t k = 0; k < classes; k++)
        margins[k] /= sum;
}

static void write_one(const struct lines *lines, const char *member, double value) {
    if (lines->format == SCORE_JSON)
        fprintf(lines->file, "{\"%s\":%.17g}\n", member, value);
    else
        fprintf(lines->file, "%.17g\n", value);
}

static void write_classes(const struct lines *lines, double *margins) {
    uint32_t classes = lines->layout->outputs;
    uint32_t best = figures_best_class(margins, classes);
    bool json = lines->format == SCORE_JSON;
    to_probabilities(margins, classes);
    if (json)
        fputs("{\"probabilities\":[", lines->file);
    for (uint32_t k = 0; k < classes; k++)
        fprintf(lines->file, "%s%.17g", k == 0 ? "" : json ? "," : " ", margins[k]);
    if (json)
        fprintf(lines->file, "],\"class\":%s}", lines->class_json[best]);
    fputc('\n', lines->file);
}

void lines_write(struct lines *lines, double *margins) {
    if (lines->layout->outputs > 1)
        write_classes(lines, margins);
    else if (lines->layout->classes)
        write_one(lines, "probability", probability_of(margins[0]));
    else
        write_one(lines, "value", margins[0]);
}
