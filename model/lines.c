#include "model/lines.h"

#include <stdlib.h>

#include "base/memory.h"
#include "objective/objective.h"

struct lines {
    const struct model_layout *layout;
    const struct objective *objective;
    FILE *file;
    enum score_format format;
    char **class_json; /* class names quoted, for SCORE_JSON */
};

struct lines *lines_new(const struct model_layout *layout, FILE *file, enum score_format format) {
    struct lines *lines = memory_new(1, sizeof *lines);
    *lines = (struct lines){.layout = layout,
                            .objective = objective_find(layout->objective),
                            .file = file,
                            .format = format};
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

static void write_one(const struct lines *lines, const char *member, double value) {
    if (lines->format == SCORE_JSON)
        fprintf(lines->file, "{\"%s\":%.17g}\n", member, value);
    else
        fprintf(lines->file, "%.17g\n", value);
}

static void write_list(const struct lines *lines, const double *values, size_t best) {
    bool json = lines->format == SCORE_JSON;
    if (json)
        fprintf(lines->file, "{\"%s\":[", lines->objective->prediction);
    for (uint32_t k = 0; k < lines->layout->outputs; k++)
        fprintf(lines->file, "%s%.17g", k == 0 ? "" : json ? "," : " ", values[k]);
    if (json)
        fprintf(lines->file, "],\"class\":%s}", lines->class_json[best]);
    fputc('\n', lines->file);
}

void lines_write(struct lines *lines, double *margins) {
    uint32_t outputs = lines->layout->outputs;
    size_t best = objective_best(outputs, margins);
    if (lines->objective->predict)
        lines->objective->predict(outputs, margins);
    if (lines->objective->output_a_class)
        write_list(lines, margins, best);
    else
        write_one(lines, lines->objective->prediction, margins[0]);
}
