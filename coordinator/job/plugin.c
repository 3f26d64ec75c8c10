#include "coordinator/job/plugin.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"

struct plugin_source job_plugin_source(const struct job *job) {
    const struct job_plugin *plugin = &job->plugin;
    return (struct plugin_source){.program = plugin->program,
                                  .library = plugin->path,
                                  .options = plugin->options ? plugin->options : "",
                                  .sha256 = plugin->sha256 ? plugin->sha256 : "",
                                  .seconds = plugin->seconds};
}

/* The same error, of this key. */
static int refuse(const struct job *job, const char *key, int code) {
    char *why = memory_copy_string(error_text());
    error_clear();
    code = error_set(code, "%s: key `%s`: %s", job->file, key, why);
    free(why);
    return code;
}

static char *find_library(const struct job *job) {
    char *path = path_join(job->folder, job->plugin.library), *absolute = path_absolute(path);
    free(path);
    return absolute;
}

int job_complete_plugin(struct job *job) {
    struct job_plugin *own = &job->plugin;
    struct plugin *plugin = NULL;
    if (!job_is_plugin(job))
        return 0;
    if (!own->library)
        return error_set(
            ERROR_CONFIG,
            "%s: key `plugin.library`: missing; allowed: the path of a shared library, "
            "see dml-objective(3)",
            job->file);
    own->path = find_library(job);
    own->program = process_beside("dml-replica");
    const struct plugin_source source = job_plugin_source(job);
    int code = plugin_start(&source, &plugin);
    if (code)
        return refuse(job, "plugin.library", code);
    own->description = *plugin_description(plugin);
    plugin_stop(plugin);
    job->objective = objective_of_plugin(&own->description);
    free(own->sha256);
    own->sha256 = memory_copy_string(own->description.sha256);
    return 0;
}

int job_check_plugin(const struct job *job) {
    if (!job_is_plugin(job))
        return 0;
    if (!job->intercept)
        return error_set(
            ERROR_CONFIG,
            "%s: key `intercept`: a plug-in has the parameters that it chooses; allowed: "
            "true",
            job->file);
    if (job->standardise)
        return error_set(
            ERROR_CONFIG,
            "%s: key `standardise`: a plug-in sees columns as they are; allowed: false", job->file);
    if (job->precondition == PRECONDITION_BLOCK || job->precondition == PRECONDITION_DIAGONAL)
        return error_set(ERROR_CONFIG,
                         "%s: key `precondition`: nothing is known of the Hessian of a plug-in; "
                         "allowed: auto, none",
                         job->file);
    return 0;
}
