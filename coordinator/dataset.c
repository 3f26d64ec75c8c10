#define _GNU_SOURCE
#include "coordinator/dataset.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/sweep.h"

enum label_kind dataset_labels(enum objective_kind objective) {
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

unsigned dataset_threads(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    unsigned count = (unsigned)CPU_COUNT(&set);
    return count < THREADS_MAX ? count : THREADS_MAX;
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

static int pack_one(const struct job *job, const char *folder, const char *path,
                    struct pack **pack) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    int code = pack_of_source(folder, path, &job->source, dataset_threads(), pack, &made);
    if (code)
        return code;
    if (!made) {
        log_info("%s: unchanged, its pack is used again", path);
        return 0;
    }
    log_info("%s: packed in %.2f s", path, seconds_since(start));
    return 0;
}

static int merge(const struct job *job, const char *folder, struct pack **packs, uint32_t count,
                 struct set **set) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    int code = set_of_packs(folder, packs, count, dataset_labels(job->objective), job->positive,
                            dataset_threads(), set, &made);
    if (!code && made)
        log_info("merged %u pack%s in %.2f s into %s", count, count == 1 ? "" : "s",
                 seconds_since(start), set_path(*set));
    return code;
}

static int pack_and_merge(const struct job *job, const char *folder, char **paths,
                          struct set **set) {
    uint32_t count = 0, opened = 0;
    while (paths[count])
        count++;
    struct pack **packs = memory_new(count, sizeof *packs);
    int code = 0;
    while (!code && opened < count) {
        code = pack_one(job, folder, paths[opened], &packs[opened]);
        if (!code)
            opened++;
    }
    if (!code)
        code = merge(job, folder, packs, count, set);
    while (opened)
        pack_close(packs[--opened]);
    free(packs);
    return code;
}

int dataset_open(const struct job *job, struct set **set, double *seconds) {
    int64_t start = clock_monotonic_ns();
    char **paths = NULL;
    char *folder = memory_format("%s/packs", job->state);
    int code = source_paths(job->folder, (const char *const *)job->data, &paths);
    if (!code)
        code = dataset_make_state(job);
    if (!code)
        code = folder_make(folder, 0700);
    state_sweep(job->state);
    if (!code)
        code = pack_and_merge(job, folder, paths, set);
    *seconds = seconds_since(start);
    source_paths_free(paths);
    free(folder);
    return code;
}
