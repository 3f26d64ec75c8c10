#define _GNU_SOURCE
#include "coordinator/command/place.h"

#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "coordinator/job/job.h"

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int place_of_operand(const struct options *options, const char *operand, char **state) {
    if (is_folder(operand)) {
        *state = memory_copy_string(operand);
        return 0;
    }
    if (access(operand, F_OK))
        return error_set_errno(ERROR_UNAVAILABLE, "there is no job file or state folder %s",
                               operand);
    return job_read_state(operand, options->settings, options->settings_count, options->state,
                          state);
}

static char **places_here(void) {
    glob_t found;
    size_t count = 0;
    if (glob("*.state", GLOB_ONLYDIR, NULL, &found))
        return memory_new(1, sizeof(char *));
    char **states = memory_new(found.gl_pathc + 1, sizeof *states);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_folder(found.gl_pathv[i]))
            states[count++] = memory_copy_string(found.gl_pathv[i]);
    globfree(&found);
    return states;
}

int places_of(const struct options *options, char ***states) {
    int code = 0, count = options->operands_count;
    char **found;
    if (!count && !options->state) {
        found = places_here();
    } else {
        found = memory_new((size_t)count + 2, sizeof *found);
        for (int i = 0; !code && i < count; i++)
            code = place_of_operand(options, options->operands[i], &found[i]);
        if (!count)
            found[0] = memory_copy_string(options->state);
    }
    for (char **state = found; !code && *state; state++)
        if (!is_folder(*state))
            code = error_set(ERROR_UNAVAILABLE,
                             "%s: there is no such state folder; this job was not run yet", *state);
    if (!code && !found[0])
        code =
            error_set(ERROR_USAGE, "there is no *.state folder in the current folder; name a job "
                                   "file or a state folder");
    if (code)
        places_free(found);
    else
        *states = found;
    return code;
}

void places_free(char **states) {
    for (char **state = states; *state; state++)
        free(*state);
    free(states);
}

int place_of(const struct options *options, char **state) {
    char **states;
    int code = places_of(options, &states);
    if (code)
        return code;
    if (states[1])
        code = error_set(ERROR_USAGE,
                         "there are several state folders in the current folder, such as %s and "
                         "%s; name one",
                         states[0], states[1]);
    else
        *state = memory_copy_string(states[0]);
    places_free(states);
    return code;
}
