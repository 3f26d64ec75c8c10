/* `summary`: estimates with their errors, and the statistics of the fit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/command/summary_print.h"
#include "coordinator/run/state_folder.h"
#include "coordinator/status/run_folder.h"
#include "data/text/number.h"

/* Reads the options into what is shown. */
static int read_view(const struct options *options, struct summary_view *view) {
    const char *robust = options->robust, *level = options->level;
    view->only = options->only;
    view->level = SUMMARY_LEVEL;
    if (level && (!number_of_text(level, &view->level) || !(view->level > 0 && view->level < 1)))
        return error_set(ERROR_USAGE,
                         "`--level %s`: allowed is a number between 0 and 1, such as 0.95", level);
    if ((robust != NULL) + (options->cluster != NULL) + options->bayesian > 1)
        return error_set(ERROR_USAGE,
                         "`--bayesian`, `--robust` and `--cluster` exclude each other");
    if (robust && *robust && strcmp(robust, "HC0") != 0 && strcmp(robust, "HC1") != 0)
        return error_set(ERROR_USAGE, "`--robust=%s`: allowed are HC0 and HC1", robust);
    view->errors = options->cluster             ? SUMMARY_KIND_CLUSTER
                   : options->bayesian          ? SUMMARY_KIND_BAYESIAN
                   : !robust                    ? SUMMARY_KIND_MODEL
                   : strcmp(robust, "HC1") == 0 ? SUMMARY_KIND_HC1
                                                : SUMMARY_KIND_HC0;
    return 0;
}

/* The newest model beside that of `folder` that has a summary; NULL: there is none. */
static char *find_summary_beside(const char *folder) {
    char *models = path_folder(folder), **names = NULL, *found = NULL;
    int64_t newest = 0;
    if (folder_names(models, &names))
        error_clear();
    for (char **name = names; name && *name; name++) {
        char *model = path_join(models, *name), *file = path_join(model, MODEL_SUMMARY);
        int64_t run = run_of_folder(*name);
        if (run > newest && access(file, R_OK) == 0) {
            free(found);
            found = memory_copy_string(model);
            newest = run;
        }
        free(file);
        free(model);
    }
    names_free(names);
    free(models);
    return found;
}

/* A run that was asked for a summary may have been kept without becoming live. */
static int refuse_without(const char *folder) {
    char *other = find_summary_beside(folder), *word = shell_word(other ? other : folder);
    if (other)
        error_set(ERROR_USAGE,
                  "%s has no summary, because its job did not set `summary`. Another run has one: "
                  "dml-coordinator summary %s",
                  folder, word);
    else
        error_set(ERROR_USAGE,
                  "%s has no summary, because its job did not set `summary`. Put `summary = model` "
                  "into the job file, or `summary = robust`, and train again; `run JOBFILE --start "
                  "%s --set summary=model --set max_steps=0 --fresh` changes no parameter, and "
                  "takes a few passes over the data",
                  folder, word);
    free(word);
    free(other);
    return ERROR_USAGE;
}

/* Why a model can have no summary, or how it gets one. */
static int refuse_model(const struct model *model) {
    const json_t *result = json_object_get(model->details, "result");
    const json_t *l1 = json_object_get(result, "l1");
    if (!model->weight)
        return error_set(ERROR_USAGE,
                         "%s: only linear models have a summary: what a weight of a network adds "
                         "depends on all others",
                         model->folder);
    if (json_number_value(l1) > 0)
        return error_set(
            ERROR_USAGE,
            "%s: this model was trained with l1 = %g, which chose its columns: errors that ignore "
            "this choice would be too small, and effects significant too often. Train again with "
            "the chosen columns and l1 = 0, preferably on other rows",
            model->folder, json_number_value(l1));
    return refuse_without(model->folder);
}

static int show(const struct options *options, const struct model *model, const json_t *summary,
                const struct summary_view *view) {
    /* The errors of clusters are those of the column that the run was given. */
    const json_t *clusters = json_object_get(json_object_get(summary, "covariance"), "clusters");
    const char *known = json_string_value(json_object_get(clusters, "column"));
    json_t *table;
    if (options->cluster && known && strcmp(known, options->cluster) != 0)
        return error_set(ERROR_USAGE,
                         "`--cluster %s`: this run computed errors only for clusters of \"%s\"",
                         options->cluster, known);
    int code = summary_table(model, summary, view, &table);
    if (code)
        return code;
    if (options->json)
        report_print_json(table);
    else
        summary_print(table, stdout, terminal_colors(1));
    json_decref(table);
    return 0;
}

int command_summary(const struct options *options) {
    struct summary_view view = {0};
    struct model *model = NULL;
    json_t *summary = NULL;
    int code = read_view(options, &view);
    if (!code)
        code = model_open(options->operands[0], &model);
    if (!code && model->weight)
        code = summary_read(model, &summary);
    if (!code)
        code = summary ? show(options, model, summary, &view) : refuse_model(model);
    json_decref(summary);
    model_close(model);
    return code;
}
