/* `predict` and `evaluate`: a model applied to data files. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/error.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/command/figures_print.h"
#include "coordinator/job/job.h"
#include "model/score.h"

/* Scores the data files that the operands name behind the model. */
static int score_operands(const struct options *options, bool label_optional, FILE *predictions,
                          struct score_figures *figures) {
    struct model *model;
    int code = model_open(options->operands[0], &model);
    if (code)
        return code;
    struct source_options reading;
    code = score_options(model, &reading);
    if (!code)
        code = job_set_reading(options->settings, options->settings_count, &reading);
    if (!code) {
        reading.label_optional = label_optional;
        size_t files = (size_t)options->operands_count - 1;
        char **paths = memory_new(files + 1, sizeof *paths);
        memcpy(paths, options->operands + 1, files * sizeof *paths);
        code = score_files(model, paths, &reading, cpus_usable(), predictions,
                           options->json ? SCORE_JSON : SCORE_PLAIN, figures);
        free(paths);
    }
    if (!code && figures) {
        code = score_check_labels(figures, options->operands[1], model->layout.classes,
                                  model->layout.class_names);
        if (code)
            score_figures_release(figures);
    }
    score_options_release(&reading);
    model_close(model);
    return code;
}

int command_predict(const struct options *options) {
    return score_operands(options, true, stdout, NULL);
}

/* Prints the figures as JSON or as tables. */
static int show_figures(const struct score_figures *figures, bool json) {
    json_t *object = score_figures_json(figures);
    if (json) {
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        figures_print(object, stdout);
    }
    json_decref(object);
    if (fflush(stdout))
        return error_set_errno(ERROR_IO, "cannot write the figures");
    return 0;
}

int command_evaluate(const struct options *options) {
    struct score_figures figures;
    int code = score_operands(options, false, NULL, &figures);
    if (code)
        return code;
    code = show_figures(&figures, options->json);
    score_figures_release(&figures);
    return code;
}
