#include "coordinator/run/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

/* Why flock() and not a file that exists or not: the system releases it when the process ends,
 * however it ends, and a pid that was given to another process cannot be mistaken for the holder.
 * The file is never removed: a process could lock the old file while another makes and locks a new
 * one. Workers do not inherit the descriptor (O_CLOEXEC), or they would keep the lock after a
 * crash. */

#define TRIES 15
#define BETWEEN_TRIES_MS 20

int state_lock_pid(const char *state) {
    char text[16] = "";
    char *path = path_join(state, "lock");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (descriptor < 0)
        return 0;
    if (read(descriptor, text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(descriptor);
    return atoi(text);
}

/* This sleeps, but before there is anything that the loop must serve. */
static int try_lock(int descriptor) {
    for (int i = 0; flock(descriptor, LOCK_EX | LOCK_NB); i++) {
        if (errno != EWOULDBLOCK || i == TRIES)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_TRIES_MS * 1000000L}, NULL);
    }
    return 0;
}

/* With the lock held. Until this is done, another process that fails to lock reads the pid of the
 * holder before, or none: the pid is for its message only. */
static int write_pid(int descriptor, const char *path) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(descriptor, 0))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    return file_write_all(descriptor, text, (size_t)length, path);
}

int state_lock(const char *state, int *descriptor) {
    char *path = memory_format("%s/lock", state);
    int code = 0;
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (opened < 0)
        code = error_set_errno(ERROR_CREATE, "cannot open %s", path);
    else if (try_lock(opened))
        code =
            errno == EWOULDBLOCK
                ? error_set(ERROR_AGAIN,
                            "%s: already running, pid %d; `dml-coordinator status %s` tells more",
                            state, state_lock_pid(state), state)
                : error_set_errno(ERROR_IO, "cannot lock %s", path);
    else
        code = write_pid(opened, path);
    free(path);
    if (code && opened >= 0)
        close(opened);
    if (!code)
        *descriptor = opened;
    return code;
}

int state_lock_lost(void) {
    return error_set(ERROR_AGAIN, "the state folder's lock was lost; no model was written");
}
