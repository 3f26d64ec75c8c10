/* The files that a job names. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/dataset.h"

static unsigned count_paths(char *const *paths) {
    unsigned count = 0;
    while (paths[count])
        count++;
    return count;
}

static int find_by(int (*search)(const char *, const char *const *, char ***),
                   const struct job *job, const char *key, char *const *patterns, char ***paths) {
    if (!patterns[0]) {
        *paths = memory_new(1, sizeof **paths);
        return 0;
    }
    int code = search(job->folder, (const char *const *)patterns, paths);
    return code ? job_refuse_key(job, key, code) : 0;
}

static int find(const struct job *job, const char *key, char *const *patterns, char ***paths) {
    return find_by(source_paths, job, key, patterns, paths);
}

/* The files of `what` for the files of `of`. One of them may serve several. */
static int find_all(const struct job *job, const char *what, const char *key, char *const *patterns,
                    const char *of, char *const *files, char ***paths) {
    int code = find_by(source_paths_all, job, key, patterns, paths);
    unsigned count = code ? 0 : count_paths(*paths), wanted = count_paths(files);
    if (code || !count || count == wanted)
        return code;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: %u file%s of %s for %u file%s of `%s`; allowed: one for "
                     "each, in the same order",
                     job->file, key, count, count == 1 ? "" : "s", what, wanted,
                     wanted == 1 ? "" : "s", of);
}

static int find_beside(const struct job *job, struct dataset_paths *paths) {
    const struct {
        const char *what, *key;
        char *const *patterns;
        const char *of;
        char *const *files;
        char ***paths;
    } lists[] = {
        {"weights", "weights", job->weights, "data", paths->data, &paths->beside_data.weights},
        {"weights", "test_weights", job->test_weights, "test", paths->test,
         &paths->beside_test.weights},
        {"weights", "holdout_weights", job->holdout_weights, "holdout", paths->holdout,
         &paths->beside_holdout.weights},
        {"labels", "labels", job->labels, "data", paths->data, &paths->beside_data.labels},
        {"labels", "test_labels", job->test_labels, "test", paths->test,
         &paths->beside_test.labels},
        {"labels", "holdout_labels", job->holdout_labels, "holdout", paths->holdout,
         &paths->beside_holdout.labels},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !code; i++)
        code = find_all(job, lists[i].what, lists[i].key, lists[i].patterns, lists[i].of,
                        lists[i].files, lists[i].paths);
    return code;
}

/* A file that is trained on cannot judge the model, so it is refused as holdout. As test data it is
 * only warned of: its figures decide nothing. */
static int check_apart(const struct job *job, const struct dataset_paths *paths) {
    const char *trained;
    const char *both = source_paths_shared(paths->holdout, paths->data, &trained);
    if (both)
        return error_set(ERROR_CONFIG,
                         "%s: key `holdout`: %s is one of the files of `data`, too%s%s; allowed: "
                         "files that are not trained on",
                         job->file, both, strcmp(both, trained) ? ", as " : "",
                         strcmp(both, trained) ? trained : "");
    both = source_paths_shared(paths->test, paths->data, &trained);
    if (both)
        log_warning("%s: key `test`: %s is one of the files of `data`, too: figures on rows that "
                    "were trained on say little about others",
                    job->file, both);
    return 0;
}

/* Standard input can be read once. */
static int check_input(const struct job *job, const struct dataset_paths *paths) {
    char *const *lists[] = {paths->data, paths->test, paths->holdout};
    unsigned inputs = 0;
    for (int i = 0; i < 3; i++)
        for (char *const *path = lists[i]; path && *path; path++)
            inputs += source_is_input(*path);
    if (inputs < 2)
        return 0;
    return error_set(ERROR_CONFIG,
                     "%s: `-`, standard input, stands %u times in `data`, `test` and `holdout`; "
                     "allowed: once",
                     job->file, inputs);
}

int dataset_find(const struct job *job, struct dataset_paths *paths) {
    *paths = (struct dataset_paths){0};
    int code = find(job, "data", job->data, &paths->data);
    if (!code)
        code = find(job, "test", job->test, &paths->test);
    if (!code)
        code = find(job, "holdout", job_holdout_paths(job), &paths->holdout);
    if (!code)
        code = find_beside(job, paths);
    if (!code)
        code = check_input(job, paths);
    if (!code)
        code = check_apart(job, paths);
    return code;
}

void dataset_paths_release(struct dataset_paths *paths) {
    source_paths_free(paths->data);
    source_paths_free(paths->test);
    source_paths_free(paths->holdout);
    source_beside_release(&paths->beside_data);
    source_beside_release(&paths->beside_test);
    source_beside_release(&paths->beside_holdout);
    *paths = (struct dataset_paths){0};
}
