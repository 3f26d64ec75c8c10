#define _GNU_SOURCE
#include "coordinator/run/launch_ways.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "coordinator/run/sockets.h"

#define UNIX "unix:"

char *launch_program_here(enum role role) {
    return process_beside(launch_program(role));
}

/* Removes the file of a worker's socket. If an earlier coordinator made its folder, that goes with
 * the last file in it. */
static void remove_socket(const struct launch *launch, const char *address) {
    if (!address || strncmp(address, UNIX, strlen(UNIX)) != 0)
        return;
    const char *path = address + strlen(UNIX);
    char *folder = path_folder(path);
    unlink(path);
    if (!launch->folder || strcmp(folder, launch->folder))
        rmdir(folder);
    free(folder);
}

/* Every start has its own address. At the former address, others could still reach the former
 * process, which may take a while to die. */
int launch_local_place(struct launch *launch, struct launched *worker) {
    int code = launch->folder ? 0 : sockets_make(launch->state, &launch->folder);
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

void launch_local_sweep(const struct launch *launch) {
    const char **addresses = memory_new(launch->count, sizeof *addresses);
    for (uint32_t i = 0; i < launch->count; i++)
        addresses[i] = launch->workers[i]->address;
    sockets_sweep(launch->state, addresses, launch->count);
    free(addresses);
}

void launch_local_clear(const struct launch *launch) {
    for (uint32_t i = 0; i < launch->count; i++)
        remove_socket(launch, launch->workers[i]->address);
    if (launch->folder)
        rmdir(launch->folder);
}
