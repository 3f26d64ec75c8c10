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
    if (!code)
        return 0;
    char *why = memory_copy_string(error_text());
    error_clear();
    error_set(code, "%s: key `%s`: %s", job->file, key, why);
    free(why);
    return code;
}

static int find(const struct job *job, const char *key, char *const *patterns, char ***paths) {
    return find_by(source_paths, job, key, patterns, paths);
}

/* The files of weights for the files of `of`. One of them may serve several. */
static int find_weights(const struct job *job, const char *key, char *const *patterns,
                        const char *of, char *const *files, char ***paths) {
    int code = find_by(source_paths_all, job, key, patterns, paths);
    unsigned count = code ? 0 : count_paths(*paths), wanted = count_paths(files);
    if (code || !count || count == wanted)
        return code;
    return error_set(ERROR_CONFIG,
                     "%s: key `%s`: %u file%s of weights for %u file%s of `%s`; allowed: one for "
                     "each, in the same order",
                     job->file, key, count, count == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s",
                     of);
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
        code = find_weights(job, "weights", job->weights, "data", paths->data, &paths->weights);
    if (!code)
        code = find_weights(job, "test_weights", job->test_weights, "test", paths->test,
                            &paths->test_weights);
    if (!code)
        code = find_weights(job, "holdout_weights", job->holdout_weights, "holdout", paths->holdout,
                            &paths->holdout_weights);
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
    source_paths_free(paths->weights);
    source_paths_free(paths->test_weights);
    source_paths_free(paths->holdout_weights);
    *paths = (struct dataset_paths){0};
}
