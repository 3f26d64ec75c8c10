#define _GNU_SOURCE
#include "plugin/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

/* A library is not larger. */
#define LIBRARY_BYTES_MAX (INT64_C(1) << 30)

static int copy(const char *path, int from, int to, struct sha256 *sha) {
    char piece[65536];
    ssize_t count;
    while ((count = read(from, piece, sizeof piece)) > 0) {
        sha256_add(sha, piece, (size_t)count);
        int code = file_write_all(to, piece, (size_t)count, "the copy of a plug-in");
        if (code)
            return code;
    }
    return count < 0 ? error_set_errno(ERROR_CONFIG, "plug-in %s: cannot be read", path) : 0;
}

static int copy_hashed(const char *path, int to, char text[SHA256_TEXT]) {
    struct stat status;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* nobody waits for a FIFO */
    int code = 0;
    if (from < 0 || fstat(from, &status))
        code = error_set_errno(ERROR_CONFIG, "plug-in %s: cannot be opened", path);
    else if (!S_ISREG(status.st_mode) || status.st_size > LIBRARY_BYTES_MAX)
        code = error_set(ERROR_CONFIG, "plug-in %s: is no file that could be a library", path);
    struct sha256 *sha = sha256_new();
    if (!code)
        code = copy(path, from, to, sha);
    sha256_finish(sha, text);
    if (from >= 0)
        close(from);
    return code;
}

static int check_hash(const char *path, const char *wanted, const char *found) {
    if (!*wanted || strcmp(wanted, found) == 0)
        return 0;
    return error_set(
        ERROR_CONFIG,
        "plug-in %s: is another file than that of the run or model: its SHA-256 is "
        "%s, where %s is expected; put that file there (predict and evaluate also take "
        "--set plugin.library=PATH), or train again",
        path, found, wanted);
}

/* Its own text, without the path of the copy. */
static const char *loader_text(const char *copy) {
    const char *text = dlerror();
    if (text && strncmp(text, copy, strlen(copy)) == 0 &&
        strncmp(text + strlen(copy), ": ", 2) == 0)
        return text + strlen(copy) + 2;
    return text ? text : "no reason was given";
}

static int check_sizes(const char *path, const struct dml_objective *objective) {
    static const uint32_t head[] = {DML_OBJECTIVE_HEAD};
    if (objective->version != DML_OBJECTIVE_VERSION)
        return error_set(
            ERROR_CONFIG,
            "plug-in %s: was built with version %u of dml/objective.h, and this dml has "
            "version %d; build it again with this one",
            path, (unsigned)objective->version, DML_OBJECTIVE_VERSION);
    if (memcmp(objective, head, sizeof head) != 0)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: its structs have other sizes than those of dml/objective.h; "
                         "begin dml_objective with DML_OBJECTIVE_HEAD, and build for this machine",
                         path);
    if (!objective->name || !*objective->name || !objective->open || !objective->tensors ||
        !objective->chunk || !objective->predict)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: dml_objective lacks its name or one of its functions", path);
    return 0;
}

int library_load(const char *path, const char *sha256, struct library *library) {
    char copy[32];
    *library = (struct library){0};
    int memory = memfd_create("plug-in", MFD_CLOEXEC);
    if (memory < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "plug-in %s: there is no memory for it", path);
    int code = copy_hashed(path, memory, library->sha256);
    if (!code)
        code = check_hash(path, sha256, library->sha256);
    snprintf(copy, sizeof copy, "/proc/self/fd/%d", memory);
    void *handle = code ? NULL : dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    if (!code && !handle)
        code = error_set(ERROR_CONFIG, "plug-in %s: cannot be loaded: %s", path, loader_text(copy));
    close(memory);
    if (code)
        return code;
    library->objective = dlsym(handle, "dml_objective");
    if (!library->objective)
        return error_set(ERROR_CONFIG,
                         "plug-in %s: does not export `dml_objective`; define it as "
                         "dml-objective(3) says",
                         path);
    return check_sizes(path, library->objective);
}

int library_open(const char *path, const char *options, struct library *library) {
    char text[DML_ERROR_BYTES] = "";
    int code = library->objective->open(options, &library->form, &library->state, text);
    text[sizeof text - 1] = '\0';
    if (code)
        return error_set(ERROR_CONFIG, "plug-in %s (%s): does not take the options \"%s\": %s",
                         path, library->objective->name, options,
                         *text ? text : "it does not say why");
    return 0;
}
