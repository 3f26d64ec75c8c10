#include "coordinator/run/gradient.h"

#include <stdlib.h>

#include "base/error.h"
#include "coordinator/job/job.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/state_folder.h"
#include "plugin/plugin.h"

/* Enough for every kind of row, and few enough for a question in no time. */
#define ROWS_MOST 100

/* The first rows of a chunk. */
static void shorten(struct rows *rows) {
    if (rows->count <= ROWS_MOST)
        return;
    rows->count = ROWS_MOST;
    rows->values = rows->dense ? (uint64_t)rows->count * rows->features : rows->start[rows->count];
}

static json_t *describe(const struct plugin_gradient *gradient, const struct layout *layout,
                        const struct rows *rows) {
    struct layout_place place = layout_locate(layout, gradient->element);
    return json_pack("{s:I, s:I, s:I, s:{s:I, s:s, s:I, s:I, s:f, s:f}}", "rows",
                     (json_int_t)rows->count, "parameters", (json_int_t)layout_parameters(layout),
                     "checked", (json_int_t)gradient->checked, "worst", "element",
                     (json_int_t)gradient->element, "tensor", place.tensor->name, "row",
                     (json_int_t)place.row, "column", (json_int_t)place.column, "gradient",
                     gradient->given, "difference", gradient->difference);
}

static int compare(const struct job *job, struct set *set, json_t **found) {
    const struct set_info *info = set_info(set);
    const struct plugin_source source = job_plugin_source(job);
    uint32_t *rank = set_ranks(info);
    const struct plugin_data data = {
        .features = info->features,
        .outputs = objective_outputs(objective_of(job->objective), info->classes),
        .rank = rank};
    struct plugin_tensors tensors;
    struct plugin_gradient gradient;
    struct plugin *plugin = NULL;
    struct rows rows;
    int code = set_chunk(set, (uint32_t)(job->plugin.seed % set_training_chunks(info)), &rows);
    if (!code)
        code = plugin_start(&source, &plugin);
    if (!code)
        code = plugin_tensors(plugin, &data, job->plugin.seed, &tensors);
    if (!code) {
        shorten(&rows);
        code = plugin_check_gradient(plugin, &data, &rows, &tensors.layout, &gradient);
    }
    if (!code)
        *found = describe(&gradient, &tensors.layout, &rows);
    plugin_stop(plugin);
    free(rank);
    return code;
}

int gradient_check(const struct job *job, json_t **found) {
    struct dataset data = {0};
    int lock = -1;
    if (!job_is_plugin(job))
        return error_set(ERROR_USAGE,
                         "%s: `--gradient` is for plug-ins, and the objective is `%s`, whose "
                         "gradient dml's own tests check",
                         job->file, objective_name(job->objective));
    int code = dataset_make_state(job);
    if (!code)
        code = state_lock(job->state, &lock);
    if (!code)
        code = dataset_open(job, NULL, &data);
    if (!code)
        code = compare(job, data.set, found);
    dataset_release(&data);
    state_unlock(lock);
    return code;
}
