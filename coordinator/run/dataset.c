#define _GNU_SOURCE
#include "coordinator/run/dataset.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/sweep.h"

/* The kind of labels that an objective takes. */
static enum label_kind labels_of(enum objective_kind objective) {
    switch (objective) {
    case OBJECTIVE_LOGISTIC:
        return LABEL_BINARY;
    case OBJECTIVE_SOFTMAX:
        return LABEL_CLASSES;
    case OBJECTIVE_SQUARED:
        break;
    }
    return LABEL_TARGET;
}

/* Processors that this process may use. */
static unsigned threads_here(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    unsigned count = (unsigned)CPU_COUNT(&set);
    return count < THREADS_MAX ? count : THREADS_MAX;
}

static int find(const struct job *job, const char *key, char *const *patterns, char ***paths) {
    if (!patterns[0]) {
        *paths = memory_new(1, sizeof **paths);
        return 0;
    }
    int code = source_paths(job->folder, (const char *const *)patterns, paths);
    if (!code)
        return 0;
    char *why = memory_copy_string(error_text());
    error_clear();
    error_set(code, "%s: key `%s`: %s", job->file, key, why);
    free(why);
    return code;
}

/* A file that is trained on cannot judge the model. */
static int check_apart(const struct job *job, const struct dataset_paths *paths) {
    for (char *const *one = paths->data; *one; one++)
        for (char *const *other = paths->holdout; *other; other++)
            if (!strcmp(*one, *other))
                return error_set(ERROR_CONFIG,
                                 "%s: key `holdout`: %s is one of the files of `data`, too; "
                                 "allowed: files that are not trained on",
                                 job->file, *one);
    return 0;
}

int dataset_find(const struct job *job, struct dataset_paths *paths) {
    *paths = (struct dataset_paths){0};
    int code = find(job, "data", job->data, &paths->data);
    if (!code)
        code = find(job, "test", job->test, &paths->test);
    if (!code)
        code = find(job, "holdout", job_holdout_paths(job), &paths->holdout);
    if (!code)
        code = check_apart(job, paths);
    return code;
}

void dataset_paths_release(struct dataset_paths *paths) {
    source_paths_free(paths->data);
    source_paths_free(paths->test);
    source_paths_free(paths->holdout);
    *paths = (struct dataset_paths){0};
}

int dataset_make_state(const struct job *job) {
    int code = folder_make(job->state, 0700);
    if (!code && access(job->state, W_OK | X_OK))
        code = error_set_errno(ERROR_PERMISSION,
                               "cannot write the state folder %s; --state DIR names another",
                               job->state);
    return code;
}

static double seconds_since(int64_t start_ns) {
    return (double)(clock_monotonic_ns() - start_ns) / (double)NS_PER_S;
}

struct pack_list {
    struct pack **packs;
    uint32_t count;
};

static void list_release(struct pack_list *list) {
    while (list->count)
        pack_close(list->packs[--list->count]);
    free(list->packs);
}

static int pack_one(const struct source_options *options, const char *folder, const char *path,
                    struct pack **pack) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    int code = pack_of_source(folder, path, options, threads_here(), pack, &made);
    if (code)
        return code;
    if (!made) {
        log_info("%s: unchanged, its pack is used again", path);
        return 0;
    }
    log_info("%s: packed in %.2f s", path, seconds_since(start));
    return 0;
}

static int pack_all(const struct source_options *options, const char *folder, char *const *paths,
                    struct pack_list *list) {
    uint32_t count = 0;
    while (paths[count])
        count++;
    list->packs = memory_new(count, sizeof(struct pack *));
    int code = 0;
    while (!code && list->count < count) {
        code = pack_one(options, folder, paths[list->count], &list->packs[list->count]);
        if (!code)
            list->count++;
    }
    return code;
}

static int merge(const struct job *job, const char *folder, const struct pack_list *data,
                 const struct pack_list *held_out, struct set **set) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    struct set_options options = {.labels = labels_of(job->objective),
                                  .positive = job->positive,
                                  .holdout = job_holdout_share(job),
                                  .holdout_packs = held_out->packs,
                                  .holdout_count = held_out->count,
                                  .keep_holdout = job->early_stopping > 0,
                                  .threads = threads_here()};
    int code = set_of_packs(folder, data->packs, data->count, &options, set, &made);
    if (!code && made)
        log_info("merged %u pack%s in %.2f s into %s", data->count, data->count == 1 ? "" : "s",
                 seconds_since(start), set_path(*set));
    return code;
}

/* The packs that the holdout is taken from become its own. */
static struct holdout *take_holdout(const struct job *job, struct pack_list *data,
                                    struct pack_list *held_out) {
    double share = job_holdout_share(job);
    struct pack_list *of = share > 0 ? data : held_out;
    if (!of->count)
        return NULL;
    struct holdout *holdout = holdout_new(of->packs, of->count, share);
    of->count = 0;
    return holdout;
}

static void take_sources(const struct pack_list *list, bool held_out,
                         struct dataset_sources *sources) {
    sources->items =
        memory_resize(sources->items, sources->count + list->count, sizeof *sources->items);
    for (uint32_t i = 0; i < list->count; i++) {
        struct dataset_source *source = &sources->items[sources->count++];
        struct source_report report;
        pack_report(list->packs[i], &report);
        *source = (struct dataset_source){.path = memory_copy_string(pack_source(list->packs[i])),
                                          .bytes = report.bytes,
                                          .rows = report.rows,
                                          .held_out = held_out};
        snprintf(source->fingerprint, sizeof source->fingerprint, "%s",
                 pack_fingerprint(list->packs[i]));
        source_report_release(&report);
    }
}

void dataset_sources_release(struct dataset_sources *sources) {
    for (uint32_t i = 0; i < sources->count; i++)
        free(sources->items[i].path);
    free(sources->items);
    *sources = (struct dataset_sources){0};
}

/* Answers what the packs' files were found to be. Lines of one table have the same columns. */
static int find_shape(const struct pack_list *data, struct source_shape *shape) {
    uint32_t columns = 0;
    for (uint32_t i = 0; i < data->count; i++) {
        struct source_report report;
        pack_report(data->packs[i], &report);
        source_shape_add(shape, &report, i == 0);
        uint32_t here = report.columns;
        source_report_release(&report);
        if (columns && here && columns != here)
            return error_set(ERROR_DATA, "%s has %u columns, but the files before it have %u",
                             pack_source(data->packs[i]), here, columns);
        columns = here ? here : columns;
    }
    return 0;
}

static int pack_and_merge(const struct job *job, const char *folder,
                          const struct dataset_paths *paths, struct set **set,
                          struct holdout **holdout, struct dataset_sources *sources) {
    struct pack_list data = {0}, held_out = {0};
    int code = pack_all(&job->source, folder, paths->data, &data);
    if (!code)
        code = find_shape(&data, &sources->shape);
    struct source_options alike = source_options_alike(&job->source, &sources->shape);
    if (!code)
        code = pack_all(&alike, folder, paths->holdout, &held_out);
    if (!code)
        code = merge(job, folder, &data, &held_out, set);
    if (!code) {
        take_sources(&data, false, sources);
        take_sources(&held_out, true, sources);
    }
    *holdout = code ? NULL : take_holdout(job, &data, &held_out);
    if (*holdout)
        code = holdout_check(*holdout, set_info(*set));
    list_release(&data);
    list_release(&held_out);
    return code;
}

int dataset_open(const struct job *job, struct set **set, struct holdout **holdout,
                 struct dataset_sources *sources, double *seconds) {
    int64_t start = clock_monotonic_ns();
    *sources = (struct dataset_sources){0};
    struct dataset_paths paths = {0};
    char *folder = memory_format("%s/packs", job->state);
    int code = dataset_find(job, &paths);
    if (!code)
        code = dataset_make_state(job);
    if (!code)
        code = folder_make(folder, 0700);
    state_sweep(job->state);
    if (!code)
        code = pack_and_merge(job, folder, &paths, set, holdout, sources);
    *seconds = seconds_since(start);
    dataset_paths_release(&paths);
    free(folder);
    return code;
}
