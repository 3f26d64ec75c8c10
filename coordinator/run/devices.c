#include "coordinator/run/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/job/host_list.h"
#include "coordinator/job/job.h"
#include "device/find.h"
#include "objective/on_device.h"

static struct device_choice choice_of(const struct job *job) {
    struct device_choice choice = {CHOICE_AUTO, -1};
    device_choice_read(job->device, &choice);
    return choice;
}

/* What is there of the shape before the data is read is enough to ask. */
static const char *cannot(const struct job *job) {
    struct objective_plugin plugin = {0};
    struct objective_shape shape = {.kind = job->objective,
                                    .network = job_network(job),
                                    .plugin = job_is_plugin(job) ? &plugin : NULL};
    shape.network.mixed = job->precondition == PRECONDITION_KRONECKER;
    return objective_device_cannot(&shape, job->precondition == PRECONDITION_BLOCK);
}

/* Whether this machine is one that workers of the job are started on. */
static bool any_here(const struct job *job) {
    return !host_list_is_given(job) && (!job->shard_addresses[0] || !job->replica_addresses[0]);
}

static int refuse(const struct job *job, int code, const char *why) {
    return error_set(code, "%s: key `device`: %s", job->file, why);
}

int devices_check(const struct job *job) {
    struct device_choice choice = choice_of(job);
    struct device_found found;
    const char *why = cannot(job);
    if (choice.kind == CHOICE_AUTO || choice.kind == CHOICE_CPU)
        return 0;
    if (why) {
        char *text = memory_format("%s; allowed here: cpu, or auto, which takes a GPU for what "
                                   "that can compute",
                                   why);
        refuse(job, ERROR_CONFIG, text);
        free(text);
        return ERROR_CONFIG;
    }
    int code = any_here(job) ? device_find(&choice, 0, &found) : 0;
    if (code) {
        char *text = memory_copy_string(error_text());
        error_clear();
        refuse(job, code, text);
        free(text);
    }
    return code;
}

/* ---- for people ---- */

static void print_gpus(FILE *out) {
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
}

static void print_gpu(const struct device_choice *choice, FILE *out) {
    if (choice->number < 0)
        fputs("GPUs, each the next one of its host's\n", out);
    else
        fprintf(out, "GPU cuda:%d of its host\n", choice->number);
}

static void print_role(const char *role, const struct device_choice *choice, const char *why,
                       bool here, FILE *out) {
    const char *none;
    fprintf(out, "# %s compute on ", role);
    if (choice->kind == CHOICE_CPU || (why && choice->kind == CHOICE_AUTO))
        fprintf(out, "the CPU%s%s\n", why ? ": " : "", why ? why : "");
    else if (choice->kind == CHOICE_EMULATED)
        fputs("an emulated device: slow, for tests\n", out);
    else if (choice->kind == CHOICE_CUDA)
        print_gpu(choice, out);
    else if (here && !device_count(DEVICE_CUDA, &none))
        fputs("the CPU\n", out);
    else
        fputs("a GPU where there is one and the data is large enough to pay, else the CPU\n", out);
}

void devices_print(const struct job *job, FILE *out) {
    struct device_choice choice = choice_of(job);
    bool here = any_here(job);
    if (here)
        print_gpus(out);
    else
        fputs("# workers are on other hosts: `dml-replica --devices` there lists their GPUs\n",
              out);
    print_role("shards", &choice, NULL, here && !job->shard_addresses[0], out);
    print_role("replicas", &choice, cannot(job), here && !job->replica_addresses[0], out);
}
