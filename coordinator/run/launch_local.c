/* Workers of this machine, and the private folder in which they have their sockets. It lies where
 * paths are short, not in the state folder, and has a name that the next coordinator of the same
 * state recognises: a coordinator that is killed leaves it. */
#define _GNU_SOURCE

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/loop.h"
#include "base/process.h"
#include "coordinator/run/launch_ways.h"

#define UNIX "unix:"
#define SOCKET_PATH_MAX sizeof((struct sockaddr_un *)0)->sun_path

/* ---- folders of sockets ---- */

/* The path of a socket of this machine; NULL for another address, or none. */
static const char *socket_path(const char *address) {
    bool here = address && strncmp(address, UNIX, strlen(UNIX)) == 0;
    return here ? address + strlen(UNIX) : NULL;
}

/* Where folders of sockets may lie, in the order in which they are tried; NULL or "" is none. A run
 * must not end because the first is of no use: sudo and cron leave the XDG_RUNTIME_DIR of another
 * user in the environment, and a TMPDIR may be too long for the path of a socket. */
enum { PLACES = 3 };

static void find_places(const char *places[PLACES]) {
    places[0] = getenv("XDG_RUNTIME_DIR");
    places[1] = getenv("TMPDIR");
    places[2] = "/tmp";
}

/* How the names of this state's folders begin. Device and inode, so that a copy of the state folder
 * has others and does not touch the sockets of the original. */
static char *prefix_of(const char *state) {
    struct stat status = {0};
    (void)stat(state, &status);
    return memory_format("dml-%llx-%llx-", (unsigned long long)status.st_dev,
                         (unsigned long long)status.st_ino);
}

/* The longest name of a socket in the folder. */
#define SOCKET_NAME_MAX sizeof "/replica-4294967295.4294967295"

static_assert(SOCKET_NAME_MAX < SOCKET_PATH_MAX, "a folder has room before it");

/* A folder of 0700 in this place; NULL with errno set. Free it. */
static char *make_folder_in(const char *place, const char *prefix) {
    struct stat status;
    char *folder = memory_format("%s/%sXXXXXX", place, prefix);
    bool runtime = place == getenv("XDG_RUNTIME_DIR");
    if (strlen(folder) + SOCKET_NAME_MAX > SOCKET_PATH_MAX)
        errno = ENAMETOOLONG;
    else if (runtime && stat(place, &status) == 0 && status.st_uid != geteuid())
        errno = EACCES; /* it goes when its user logs out, even if root may write it */
    else if (mkdtemp(folder))
        return folder;
    free(folder);
    return NULL;
}

/* Makes a folder for the coordinator that works in `state`, in the first place that takes it. Free
 * it. ERROR_CREATE. */
static int make_folder(const char *state, char **folder) {
    const char *places[PLACES];
    char *prefix = prefix_of(state);
    *folder = NULL;
    find_places(places);
    for (int i = 0; i < PLACES && !*folder; i++) {
        if (!places[i] || !*places[i])
            continue;
        *folder = make_folder_in(places[i], prefix);
        if (!*folder && i + 1 < PLACES)
            log_debug("no sockets below %s: %s", places[i], strerror(errno));
    }
    free(prefix);
    return *folder
               ? 0
               : error_set_errno(ERROR_CREATE,
                                 "cannot make a private folder for the sockets of workers below "
                                 "XDG_RUNTIME_DIR, TMPDIR or /tmp; set TMPDIR to a folder with a "
                                 "short path that you may write: /tmp");
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

static void sweep_folder(const struct launch *launch, const char *folder) {
    struct stat status;
    char **names;
    /* /tmp belongs to all: another user may have made a folder, or a link, of such a name. */
    bool ours =
        lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
    if (!ours || folder_names(folder, &names)) {
        error_clear();
        return;
    }
    for (char **name = names; *name; name++) {
        char *path = path_join(folder, *name);
        bool used = false;
        for (uint32_t i = 0; i < launch->count; i++) {
            const char *own = socket_path(launch->workers[i]->address);
            used |= own && strcmp(own, path) == 0;
        }
        if (!used)
            unlink(path);
        free(path);
    }
    names_free(names);
    if (rmdir(folder) == 0)
        log_debug("removed %s, left by a coordinator that was killed", folder);
}

void launch_local_sweep(const struct launch *launch) {
    const char *places[PLACES];
    char *prefix = prefix_of(launch->state);
    find_places(places);
    for (int i = 0; i < PLACES; i++) {
        char **names = NULL;
        if (!places[i] || !*places[i])
            continue;
        if (folder_names(places[i], &names))
            error_clear();
        for (char **name = names; name && *name; name++)
            if (strncmp(*name, prefix, strlen(prefix)) == 0) {
                char *folder = path_join(places[i], *name);
                sweep_folder(launch, folder);
                free(folder);
            }
        names_free(names);
    }
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
    assert(!worker->host && !worker->pid);
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
    assert(!worker->host && worker->address);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *arguments[] = {
        program, "--listen", worker->address, "--parent-pid", parent, (char *)launch->verbosity,
        NULL};
    const struct loop_child how = {.output = output, .errors = -1};
    errno = launch_spawn(launch, arguments, &how, &worker->pid);
    int code =
        errno
            ? error_set_errno(ERROR_UNAVAILABLE,
                              "cannot start %s %u (is %s installed beside dml-coordinator?)",
                              role_name(worker->role), worker->index, launch_program(worker->role))
            : 0;
    free(program);
    return code;
}
