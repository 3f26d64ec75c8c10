#include "coordinator/run/preview.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/resources.h"
#include "base/error.h"
#include "base/memory.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/family.h"
#include "coordinator/job/host_list.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/state_folder.h"
#include "device/find.h"
#include "plugin/plugin.h"

/* ---- the model and its memory ---- */

int shape_of_data(const struct job *job, const struct set_info *info,
                  struct objective_shape *shape) {
    const struct job_family *family = job_family(job);
    *shape = job_shape(job);
    shape->features = info->features;
    shape->outputs = objective_outputs(objective_of(job->objective), info->classes);
    objective_complete(shape, info->targets, &info->offsets);
    return family->choose_scaling ? family->choose_scaling(job, shape) : 0;
}

int need_of_data(const struct job *job, const struct set_info *info, struct memory_need *need) {
    struct objective_shape shape;
    struct preconditioner_settings preconditioner;
    struct sizing sizing = {0};
    *need = (struct memory_need){0};
    bool unknown = job_family(job)->family->own_tensors;
    int code = unknown ? 0 : shape_of_data(job, info, &shape);
    if (code || unknown)
        return code;
    struct layout layout = objective_layout(&shape);
    uint64_t parameters = layout_parameters(&layout);
    if (!parameters)
        return 0; /* a run says that these are too many */
    code = sizing_precondition(job, info, &shape, &preconditioner);
    if (!code)
        code = sizing_of(job, info, parameters, cpus_usable(), &sizing);
    if (!code)
        sizing_directions(job, info, &shape, preconditioner.form, &sizing);
    if (!code)
        *need = memory_need_of(job, parameters, &sizing, sizing_block(&shape, &preconditioner));
    return code;
}

/* ---- devices ---- */

static struct device_choice choice_of(const struct job *job) {
    struct device_choice choice = {CHOICE_AUTO, -1};
    device_choice_read(job->device, &choice);
    return choice;
}

static const char *cannot(const struct job *job) {
    struct objective_shape shape = job_shape(job);
    shape.network.kronecker = job->precondition == PRECONDITION_KRONECKER;
    return objective_device_cannot(&shape, job->precondition == PRECONDITION_BLOCK);
}

/* Whether this machine is one that workers of the job are started on. */
static bool any_here(const struct job *job) {
    return !host_list_is_given(job) && (!job->shard_addresses[0] || !job->replica_addresses[0]);
}

int devices_check(const struct job *job) {
    struct device_choice choice = choice_of(job);
    struct device_found found;
    const char *why = cannot(job);
    if (choice.kind == CHOICE_AUTO || choice.kind == CHOICE_CPU)
        return 0;
    if (why)
        return error_set(ERROR_CONFIG,
                         "%s: key `device`: %s; allowed here: cpu, or auto, which takes a GPU for "
                         "what that can compute",
                         job->file, why);
    int code = any_here(job) ? device_find(&choice, 0, &found) : 0;
    if (!code)
        return 0;
    char *text = memory_copy_string(error_text());
    error_clear();
    error_set(code, "%s: key `device`: %s", job->file, text);
    free(text);
    return code;
}

/* Why workers of a role compute on the CPU although a device was asked for; NULL: they need not. */
static const char *only_cpu(const struct job *job, bool replica) {
    if (replica)
        return job_inverts(job) ? "errors of estimates are found there" : NULL;
    bool limited = job_has_bounds(job) || (job_has_penalties(job) && job->l1.value > 0);
    return limited ? "limits of columns are kept there" : NULL;
}

static void print_role(const char *role, const struct device_choice *choice, const char *why,
                       bool here, FILE *out) {
    struct device_found found;
    char *unchecked = NULL;
    fprintf(out, "# %s compute on ", role);
    if (choice->kind == CHOICE_CPU || (why && choice->kind == CHOICE_AUTO))
        fprintf(out, "the CPU%s%s\n", why ? ": " : "", why ? why : "");
    else if (choice->kind == CHOICE_EMULATED)
        fputs("an emulated device: slow, for tests\n", out);
    else if (choice->kind == CHOICE_CUDA && choice->number < 0)
        fputs("GPUs, each the next one of its host's\n", out);
    else if (choice->kind == CHOICE_CUDA)
        fprintf(out, "GPU cuda:%d of its host\n", choice->number);
    else if (here && (unchecked = device_find_auto(0, &found)))
        fprintf(out, "the CPU%s%s\n", found.any ? ": " : "", found.any ? unchecked : "");
    else
        fputs("a GPU where a checked one is and the data is large enough to pay, else the CPU\n",
              out);
    free(unchecked);
}

void devices_print(const struct job *job, FILE *out) {
    struct device_choice choice = choice_of(job);
    bool here = any_here(job);
    if (here) {
        char *text = NULL;
        size_t length;
        FILE *list = open_memstream(&text, &length);
        if (!list)
            abort(); /* it fails only without memory */
        device_list(list);
        fclose(list);
        for (char *line = text, *end; *line && (end = strchr(line, '\n')); line = end + 1)
            fprintf(out, "# this machine: %.*s\n", (int)(end - line), line);
        free(text);
    } else {
        fputs("# workers are on other hosts: `dml-replica --devices` there lists their GPUs\n",
              out);
    }
    for (int replica = 0; replica < 2; replica++) {
        const char *only = only_cpu(job, replica), *why = replica ? cannot(job) : NULL;
        const struct device_choice cpu = {CHOICE_CPU, -1};
        char **addresses = replica ? job->replica_addresses : job->shard_addresses;
        print_role(replica ? "replicas" : "shards", only ? &cpu : &choice, only ? only : why,
                   here && !addresses[0], out);
    }
}

/* ---- the gradient of a plug-in ---- */

/* Enough for every kind of row, and few enough for a question in no time. */
#define ROWS_MOST 100

static int compare(const struct job *job, struct set *set, json_t **found) {
    const struct set_info *info = set_info(set);
    const struct plugin_source source = job_plugin_source(job);
    uint32_t *rank = set_ranks(info);
    const struct plugin_data data = {
        .features = (uint32_t)info->features, /* of whole rows */
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
        if (rows.count > ROWS_MOST) { /* the first rows of the chunk */
            rows.count = ROWS_MOST;
            rows.values = rows.dense ? (uint64_t)rows.count * rows.features : rows.start[ROWS_MOST];
        }
        code = plugin_check_gradient(plugin, &data, &rows, &tensors.layout, &gradient);
    }
    if (!code) {
        assert(gradient.element < layout_parameters(&tensors.layout));
        struct layout_place place = layout_locate(&tensors.layout, gradient.element);
        *found = json_pack("{s:I, s:I, s:I, s:{s:I, s:s, s:I, s:I, s:f, s:f}}", "rows",
                           (json_int_t)rows.count, "parameters",
                           (json_int_t)layout_parameters(&tensors.layout), "checked",
                           (json_int_t)gradient.checked, "worst", "element",
                           (json_int_t)gradient.element, "tensor", place.tensor->name, "row",
                           (json_int_t)place.row, "column", (json_int_t)place.column, "gradient",
                           gradient.given, "difference", gradient.difference);
    }
    plugin_stop(plugin);
    free(rank);
    return code;
}

int gradient_check(const struct job *job, json_t **found) {
    struct dataset data = {0};
    int lock = -1;
    if (job_family(job)->family != &family_plugin)
        return error_set(ERROR_USAGE,
                         "%s: `--gradient` is for plug-ins, and the objective is `%s`, whose "
                         "gradient dml's own tests check",
                         job->file, objective_name(job->objective));
    int code = dataset_make_state(job);
    if (!code)
        code = state_lock(job->state, STATE_WORKS, &lock);
    if (!code)
        code = dataset_open(job, NULL, &data);
    if (!code)
        code = compare(job, data.set, found);
    dataset_release(&data);
    state_unlock(lock);
    return code;
}
