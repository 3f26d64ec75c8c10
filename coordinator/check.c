#include "base/error.h"
#include "coordinator/command.h"
#include "coordinator/job.h"
#include "coordinator/report.h"

static int count_files(const struct job *job, char **patterns, unsigned *count) {
    char **paths;
    *count = 0;
    if (!patterns[0])
        return 0;
    int code = source_paths(job->folder, (const char *const *)patterns, &paths);
    if (code)
        return code;
    while (paths[*count])
        ++*count;
    source_paths_free(paths);
    return 0;
}

int command_check(const struct options *options) {
    struct job *job;
    unsigned data = 0, test = 0;
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = count_files(job, job->data, &data);
    if (!code)
        code = count_files(job, job->test, &test);
    if (!code && options->json) {
        json_t *settings = job_settings(job);
        report_print_json(settings);
        json_decref(settings);
    } else if (!code && !options->quiet) {
        job_print(job);
        printf("# %u data file%s, %u test file%s\n", data, data == 1 ? "" : "s", test,
               test == 1 ? "" : "s");
    }
    job_free(job);
    return code;
}
