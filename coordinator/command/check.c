#include "base/error.h"
#include "coordinator/command/command.h"
#include "coordinator/run/dataset.h"
#include "coordinator/job/job.h"
#include "coordinator/status/report.h"

static void print_count(const char *before, char *const *paths, const char *kind) {
    unsigned count = 0;
    while (paths[count])
        count++;
    printf("%s%u %s file%s", before, count, kind, count == 1 ? "" : "s");
}

static void print_counts(const struct dataset_paths *paths) {
    print_count("# ", paths->data, "data");
    print_count(", ", paths->test, "test");
    if (paths->holdout[0])
        print_count(", ", paths->holdout, "holdout");
    putchar('\n');
}

int command_check(const struct options *options) {
    struct job *job;
    struct dataset_paths paths;
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = dataset_find(job, &paths);
    if (!code && options->json) {
        json_t *settings = job_settings(job);
        report_print_json(settings);
        json_decref(settings);
    } else if (!code) {
        job_print(job);
        print_counts(&paths);
    }
    dataset_paths_release(&paths);
    job_free(job);
    return code;
}
