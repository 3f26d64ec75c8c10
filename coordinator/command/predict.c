/* `predict` and `evaluate`: a model applied to data files. */
#define _GNU_SOURCE
#include <assert.h>
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/job/job.h"
#include "model/explain.h"
#include "model/output_columns.h"
#include "data/source/input.h"
#include "model/score.h"

/* A model, and how it was trained to read data. */
struct scoring {
    const struct options *options;
    struct model *model;
    struct source_options reading;
    char **paths; /* of the data */
    struct source_beside beside;
    const char **settings; /* about reading */
    uint32_t settings_count;
    char *library; /* of a plug-in, if it is elsewhere; or NULL */
};

static const char *const property_keys[ROW_NUMBERS] = {
    [ROW_WEIGHT] = "weights", [ROW_OFFSET] = "offsets", [ROW_EXPOSURE] = "exposures"};

/* Finds the files of `what`, "weights" or "labels", that are beside those of the data. */
static int find_beside(const struct scoring *scoring, const char *what, char *const *patterns,
                       char ***paths) {
    uint32_t files = names_count(scoring->paths), count;
    if (!patterns || !*patterns)
        return 0;
    int code = source_paths_all(".", (const char *const *)patterns, paths);
    if (code || (count = names_count(*paths)) == files)
        return code;
    return error_set(ERROR_USAGE,
                     "--set %s: %u file%s of %s for %u file%s of data; allowed: one for each, in "
                     "the same order",
                     what, count, count == 1 ? "" : "s", what, files, files == 1 ? "" : "s");
}

/* Weights come from one place. */
static int check_weights(const struct scoring *scoring) {
    const struct table *table = scoring->model->layout.table;
    bool files = scoring->beside.property[ROW_WEIGHT] != NULL;
    for (uint32_t i = 0; files && table && i < table->columns; i++)
        if (table->column[i].kind == COLUMN_WEIGHT)
            return error_set(ERROR_USAGE,
                             "--set weights: the model takes the weights of rows from a column of "
                             "the data, %s",
                             table->column[i].name ? table->column[i].name : "csv.weight");
    return 0;
}

#define LIBRARY_KEY "plugin.library="

/* Takes `plugin.library` out of the settings, which are about reading otherwise: where the library
 * of the model is, if not where it was. */
static int set_library(struct scoring *scoring) {
    const struct options *options = scoring->options;
    int code = 0;
    scoring->settings = memory_new(options->settings_count, sizeof *scoring->settings);
    for (uint32_t i = 0; i < options->settings_count && !code; i++) {
        const char *setting = options->settings[i];
        if (strncmp(setting, LIBRARY_KEY, strlen(LIBRARY_KEY)) != 0) {
            scoring->settings[scoring->settings_count++] = setting;
            continue;
        }
        free(scoring->library);
        scoring->library = path_absolute(setting + strlen(LIBRARY_KEY));
        code = model_set_library(scoring->model, scoring->library);
    }
    assert(scoring->settings_count <= options->settings_count);
    return code;
}

/* `evaluates`: rows may have weights and labels in files of their own. */
static int scoring_open(const struct options *options, bool evaluates, struct scoring *scoring) {
    struct source_beside patterns = {0};
    *scoring = (struct scoring){.options = options};
    int code = model_open(options->operands[0], &scoring->model);
    if (!code)
        code = score_options(scoring->model, &scoring->reading);
    if (!code)
        code = set_library(scoring);
    if (!code)
        code = job_set_reading(scoring->settings, scoring->settings_count,
                               evaluates ? READING_FOR_EVALUATION : READING_FOR_SCORING,
                               &scoring->reading, &patterns);
    if (!code)
        code = source_paths_given((const char *const *)options->operands + 1,
                                  (size_t)options->operands_count - 1, &scoring->paths);
    for (int i = 0; i < ROW_NUMBERS && !code; i++)
        code = find_beside(scoring, property_keys[i], patterns.property[i],
                           &scoring->beside.property[i]);
    if (!code)
        code = find_beside(scoring, "labels", patterns.labels, &scoring->beside.labels);
    if (!code)
        code = check_weights(scoring);
    if (!code)
        source_find_folders(NULL, scoring->paths, &scoring->reading, false, &scoring->beside);
    source_beside_release(&patterns);
    scoring->reading.streams = true;
    scoring->reading.may_be_empty = true;
    return code;
}

static void scoring_close(struct scoring *scoring) {
    names_free(scoring->paths);
    source_beside_release(&scoring->beside);
    score_options_release(&scoring->reading);
    model_close(scoring->model);
    free(scoring->settings);
    free(scoring->library);
}

/* ---- predict ---- */

/* The one of these options that is given. */
static int find_shown(const struct options *options, enum score_shown *shown) {
    bool columns = options->columns != NULL;
    int given = options->labels + options->probabilities + options->margins + columns;
    *shown = options->labels          ? SCORE_LABELS
             : options->probabilities ? SCORE_PROBABILITIES
             : options->margins       ? SCORE_MARGINS
                                      : SCORE_PREDICTION;
    if (given > 1)
        return error_set(ERROR_USAGE,
                         "`--labels`, `--probabilities`, `--margins` and `--columns` exclude each "
                         "other");
    if (options->explain && given > columns)
        return error_set(ERROR_USAGE, "`--explain` excludes `--labels`, `--probabilities` and "
                                      "`--margins`: name what goes before the contributions in "
                                      "`--columns`, as in --columns label,margins");
    if (options->header && options->json)
        return error_set(ERROR_USAGE, "`--header` and `--json` exclude each other: every object "
                                      "names its members");
    return 0;
}

/* The predictions would replace the data. */
static int check_not_data(const char *output, char *const *paths) {
    struct stat of_output, of_data;
    if (!output || strcmp(output, "-") == 0 || stat(output, &of_output))
        return 0;
    for (; *paths; paths++) {
        int failed =
            source_is_input(*paths) ? fstat(STDIN_FILENO, &of_data) : stat(*paths, &of_data);
        if (!failed && of_data.st_dev == of_output.st_dev && of_data.st_ino == of_output.st_ino)
            return error_set(ERROR_USAGE, "%s is the data: write to another file", output);
    }
    return 0;
}

struct predicting {
    const struct scoring *scoring;
    struct score_output output;
};

static int write_predictions(void *context, FILE *stream) {
    struct predicting *predicting = context;
    const struct scoring *scoring = predicting->scoring;
    predicting->output.file = stream;
    return score_files(scoring->model, scoring->paths, &scoring->beside, &scoring->reading,
                       cpus_usable(), &predicting->output, NULL);
}

#define EXPLAINED_MAX 1000000

/* Prepares contributions, which are written behind columns: the margins, if none are named. */
static int explain(const struct options *options, const struct model *model,
                   struct score_output *output) {
    char *end;
    unsigned long count = strtoul(options->explain, &end, 10);
    if (*options->explain &&
        (!isdigit((unsigned char)*options->explain) || *end || count < 1 || count > EXPLAINED_MAX))
        return error_set(ERROR_USAGE, "`--explain=%s`: allowed is a whole number from 1 to %d",
                         options->explain, EXPLAINED_MAX);
    output->explained = (uint32_t)count;
    return explainer_new(model, &output->explainer);
}

int command_predict(const struct options *options) {
    struct scoring scoring;
    struct output_columns *columns = NULL;
    const char *named = options->columns ? options->columns : options->explain ? "margins" : NULL;
    struct predicting predicting = {
        .scoring = &scoring,
        .output = {.name = options->output, .json = options->json, .header = options->header}};
    int code = find_shown(options, &predicting.output.shown);
    if (code)
        return code;
    signal(SIGPIPE, SIG_DFL); /* `predict … | head` ends without a word */
    code = scoring_open(options, false, &scoring);
    if (!code && options->explain)
        code = explain(options, scoring.model, &predicting.output);
    if (!code && named) {
        code = output_columns_parse(&scoring.model->layout, named, &columns);
        scoring.reading.carried = output_columns_carried(columns);
    }
    predicting.output.columns = columns;
    if (!code)
        code = check_not_data(options->output, scoring.paths);
    scoring.reading.label.optional = true;
    scoring.reading.hands_out_bad = true;
    if (!code)
        code = output_file_write(options->output, write_predictions, &predicting);
    output_columns_free(columns);
    explainer_free(predicting.output.explainer);
    scoring_close(&scoring);
    return code;
}

/* ---- evaluate ---- */

/* Prints the figures as JSON or as tables. */
static int show_figures(const struct score_figures *figures, const struct options *options) {
    json_t *object = score_figures_json(figures);
    if (options->json) {
        json_dumpf(object, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        figures_print(object, stdout);
        if (options->curves)
            curves_print(json_object_get(object, "curves"), stdout);
        if (options->curves && !json_object_get(object, "curves"))
            log_warning("there are no curves: they need a model of two classes, and rows of both");
    }
    json_decref(object);
    if (fflush(stdout))
        return error_set_errno(ERROR_IO, "cannot write the figures");
    return 0;
}

int command_evaluate(const struct options *options) {
    struct scoring scoring;
    struct score_figures figures;
    int code = scoring_open(options, true, &scoring);
    if (!code)
        code = score_files(scoring.model, scoring.paths, &scoring.beside, &scoring.reading,
                           cpus_usable(), NULL, &figures);
    if (!code) {
        const struct model_layout *layout = &scoring.model->layout;
        code = score_check_labels(&figures, source_name(scoring.paths[0]), layout->classes,
                                  layout->class_names);
        if (!code)
            code = show_figures(&figures, options);
        score_figures_release(&figures);
    }
    scoring_close(&scoring);
    return code;
}
