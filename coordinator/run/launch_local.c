/* Workers of this machine, and the private folder in which they have their sockets. It lies where
 * paths are short, not in the state folder, and has a name that the next coordinator of the same
 * state recognises: a coordinator that is killed leaves it. */
#define _GNU_SOURCE

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "coordinator/run/launch_ways.h"

#define UNIX "unix:"

/* ---- folders of sockets ---- */

/* The path of a socket of this machine; NULL for another address, or none. */
static const char *socket_path(const char *address) {
    bool here = address && strncmp(address, UNIX, strlen(UNIX)) == 0;
    return here ? address + strlen(UNIX) : NULL;
}

static const char *parent(void) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temporary = getenv("TMPDIR");
    return runtime && *runtime ? runtime : temporary && *temporary ? temporary : "/tmp";
}

/* How the names of this state's folders begin. Device and inode, so that a copy of the state folder
 * has others and does not touch the sockets of the original. */
static char *prefix_of(const char *state) {
    struct stat status = {0};
    (void)stat(state, &status);
    return memory_format("dml-%llx-%llx-", (unsigned long long)status.st_dev,
                         (unsigned long long)status.st_ino);
}

/* Makes a folder for the coordinator that works in `state`, below XDG_RUNTIME_DIR, TMPDIR or /tmp;
 * 0700. Free it. ERROR_CREATE. */
static int make_folder(const char *state, char **folder) {
    char *prefix = prefix_of(state);
    *folder = memory_format("%s/%sXXXXXX", parent(), prefix);
    free(prefix);
    if (mkdtemp(*folder))
        return 0;
    int code =
        error_set_errno(ERROR_CREATE, "cannot make a private folder %s for sockets", *folder);
    free(*folder);
    *folder = NULL;
    return code;
}

bool launch_is_of_state(const char *state, const char *address) {
    const char *path = socket_path(address);
    if (!path)
        return false;
    char *prefix = prefix_of(state), *folder = path_folder(path);
    const char *slash = strrchr(folder, '/');
    const char *name = slash ? slash + 1 : folder;
    bool ours = strncmp(name, prefix, strlen(prefix)) == 0;
    free(folder);
    free(prefix);
    return ours;
}

static bool is_in_use(const struct launch *launch, const char *path) {
    for (uint32_t i = 0; i < launch->count; i++) {
        const char *used = socket_path(launch->workers[i]->address);
        if (used && strcmp(used, path) == 0)
            return true;
    }
    return false;
}

/* /tmp belongs to all: another user may have made a folder, or a link, of such a name. */
static bool is_own_folder(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static void sweep_folder(const struct launch *launch, const char *folder) {
    char **names;
    if (!is_own_folder(folder) || folder_names(folder, &names)) {
        error_clear();
        return;
    }
    for (char **name = names; *name; name++) {
        char *path = path_join(folder, *name);
        if (!is_in_use(launch, path))
            unlink(path);
        free(path);
    }
    names_free(names);
    if (rmdir(folder) == 0)
        log_debug("removed %s, left by a coordinator that was killed", folder);
}

void launch_local_sweep(const struct launch *launch) {
    char **names, *prefix = prefix_of(launch->state);
    if (folder_names(parent(), &names))
        error_clear();
    for (char **name = names; name && *name; name++)
        if (strncmp(*name, prefix, strlen(prefix)) == 0) {
            char *folder = path_join(parent(), *name);
            sweep_folder(launch, folder);
            free(folder);
        }
    names_free(names);
    free(prefix);
}

/* Removes the file of a worker's socket. If an earlier coordinator made its folder, that goes with
 * the last file in it. */
static void remove_socket(const struct launch *launch, const char *address) {
    const char *path = socket_path(address);
    if (!path)
        return;
    char *folder = path_folder(path);
    unlink(path);
    if (!launch->folder || strcmp(folder, launch->folder))
        rmdir(folder);
    free(folder);
}

void launch_local_clear(const struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++)
        remove_socket(launch, launch->workers[i]->address);
    if (launch->folder)
        rmdir(launch->folder);
}

/* ---- processes ---- */

char *launch_program_here(enum role role) {
    return process_beside(launch_program(role));
}

/* Every start has its own address. At the former address, others could still reach the former
 * process, which may take a while to die. */
int launch_local_place(struct launch *launch, struct launched *worker) {
    int code = launch->folder ? 0 : make_folder(launch->state, &launch->folder);
    if (code)
        return code;
    remove_socket(launch, worker->address);
    free(worker->address);
    worker->address = memory_format(UNIX "%s/%s-%u.%u", launch->folder, role_name(worker->role),
                                    worker->index, worker->starts++);
    return 0;
}

int launch_local_start(const struct launch *launch, struct launched *worker, int output) {
    char parent[16], *program = launch_program_here(worker->role);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *arguments[] = {
        program, "--listen", worker->address, "--parent-pid", parent, (char *)launch->verbosity,
        NULL};
    errno = launch_spawn(launch, arguments, output, -1, false, &worker->pid);
    int code =
        errno
            ? error_set_errno(ERROR_UNAVAILABLE,
                              "cannot start %s %u (is %s installed beside dml-coordinator?)",
                              role_name(worker->role), worker->index, launch_program(worker->role))
            : 0;
    free(program);
    return code;
}
