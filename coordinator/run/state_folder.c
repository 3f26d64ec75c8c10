#define _GNU_SOURCE

#include "coordinator/run/state_folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "coordinator/status/run_folder.h"

/* Between hosts: Linux's NFS client makes a lock of the whole file's bytes of flock(), which the
 * server keeps, over NFSv4 and over NFSv3 with lockd. Unlike fcntl()'s own such lock it belongs to
 * the open file, so closing another descriptor of the file does not drop it. SMB and Ceph do the
 * same; Lustre does if mounted with -o flock.
 *
 * Why flock() and not a file that exists or not: the system releases it when the process ends,
 * however it ends, and a pid that was given to another process cannot be mistaken for the holder.
 * The file is never removed: a process could lock the old file while another makes and locks a new
 * one. Workers do not inherit the descriptor (O_CLOEXEC), or they would keep the lock after a
 * crash. */

#define TRIES 15
#define TRIES_READ 1500 /* while the holder only reads */
#define BETWEEN_TRIES_MS 20

#define READS "reads"

struct state_holder state_lock_holder(const char *state) {
    struct state_holder holder = {0};
    char text[GUARD_TEXT] = "", host[256] = "", own[256] = "", use[8] = "";
    char *path = path_join(state, "lock");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    free(path);
    if (descriptor >= 0) {
        if (read(descriptor, text, sizeof text - 1) < 0)
            text[0] = '\0';
        close(descriptor);
    }
    (void)gethostname(own, sizeof own - 1);
    (void)sscanf(text, "%d %255s %*s %7s", &holder.pid, host, use);
    holder.reads = strcmp(use, READS) == 0;
    holder.elsewhere = *host && strcmp(host, own);
    snprintf(holder.text, sizeof holder.text, "pid %d%s%s", holder.pid,
             holder.elsewhere ? " on host " : "", holder.elsewhere ? host : "");
    return holder;
}

/* This sleeps, but before there is anything that the loop must serve. */
static int try_lock(const char *state, int descriptor) {
    for (int i = 0; flock(descriptor, LOCK_EX | LOCK_NB); i++) {
        if (errno != EWOULDBLOCK)
            return -1;
        if (i >= (state_lock_holder(state).reads ? TRIES_READ : TRIES)) {
            errno = EWOULDBLOCK;
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_TRIES_MS * 1000000L}, NULL);
    }
    return 0;
}

/* With the lock held. Until this is done, another process that fails to lock reads the holder
 * before, or none, for its message. Written in place: a reader that finds part of it finds another
 * text than its own, too. */
static int write_holder(int descriptor, enum state_use use, const char *path) {
    char text[GUARD_TEXT], host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "%d %s %llu%s\n", (int)getpid(), *host ? host : "?",
                          process_number(), use == STATE_READS ? " " READS : "");
    assert(descriptor >= 0 && length > 0 && (size_t)length < sizeof text);
    if (ftruncate(descriptor, 0))
        return error_set_errno(ERROR_IO, "cannot write %s", path);
    int code = file_write_all(descriptor, text, (size_t)length, path);
    if (!code && filesystem_is_network(path) && fsync(descriptor))
        code = error_set_errno(ERROR_IO, "cannot write %s to disk", path);
    if (!code)
        guard_set(path, text);
    return code;
}

static int refuse_lock(const char *state, const char *path) {
    if (errno == EWOULDBLOCK) {
        struct state_holder holder = state_lock_holder(state);
        if (holder.reads)
            return error_set(ERROR_AGAIN, "%s: %s has been reading it for too long; try again",
                             state, holder.text);
        char *word = shell_word(state);
        int code = error_set(ERROR_AGAIN,
                             "%s: already running, %s; `dml-coordinator status %s`%s tells more",
                             state, holder.text, word, holder.elsewhere ? " there" : "");
        free(word);
        return code;
    }
    bool none = errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK;
    return error_set_errno(ERROR_IO, "cannot lock %s%s", path,
                           none ? " (a state folder needs a file system with locks over hosts: "
                                  "NFSv4, or Lustre mounted with -o flock)"
                                : "");
}

int state_lock(const char *state, enum state_use use, int *descriptor) {
    char *path = memory_format("%s/lock", state);
    int code = 0;
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (opened < 0)
        code = error_set_errno(ERROR_CREATE, "cannot change the state folder %s: its lock, %s",
                               state, path);
    else if (try_lock(state, opened))
        code = refuse_lock(state, path);
    else
        code = write_holder(opened, use, path);
    free(path);
    if (code && opened >= 0)
        close(opened);
    assert(code <= 0 && (code || opened >= 0));
    if (!code)
        *descriptor = opened;
    return code;
}

int state_lock_works(const char *state, int descriptor) {
    char *path = memory_format("%s/lock", state);
    int code = lseek(descriptor, 0, SEEK_SET) ? error_set_errno(ERROR_IO, "cannot write %s", path)
                                              : write_holder(descriptor, STATE_WORKS, path);
    free(path);
    return code;
}

int state_lock_existing(const char *state, enum state_use use, int *descriptor) {
    char *path = path_join(state, "lock");
    int code = access(path, F_OK) && errno == ENOENT ? store_check_existing(state) : 0;
    free(path);
    return code ? code : state_lock(state, use, descriptor);
}

void state_unlock(int descriptor) {
    if (descriptor < 0)
        return;
    guard_clear();
    close(descriptor);
}

bool state_may_write(const char *state) {
    static const char *const names[] = {".", "lock", "dml.db", "dml.db-wal"};
    bool may = true;
    for (size_t i = 0; may && i < sizeof names / sizeof names[0]; i++) {
        char *path = path_join(state, names[i]);
        may = access(path, W_OK) == 0 || (errno != EACCES && errno != EPERM && errno != EROFS);
        free(path);
    }
    return may;
}

bool state_maybe_locked(const char *state) {
    char *path = path_join(state, "lock"), *socket = path_join(state, "control.sock");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool none = descriptor < 0 && errno == ENOENT, held = false, known = none;
    if (descriptor >= 0) {
        held = flock(descriptor, LOCK_SH | LOCK_NB) != 0;
        known = !held || errno == EWOULDBLOCK;
        close(descriptor);
    }
    if (!known)
        held = access(socket, F_OK) == 0;
    free(path);
    free(socket);
    return held;
}

int state_lock_lost(void) {
    return error_set(ERROR_AGAIN, "the state folder's lock was lost; no model was written");
}

/* The errno of the first file that this thread could not remove since the variable was set to 0. */
static _Thread_local int remove_errno;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    /* The guard is asked for each file: a large folder takes a while. */
    if (guard_holds() && remove(path) && !remove_errno)
        remove_errno = errno;
    return 0; /* also if that failed: the other files are removed nevertheless */
}

void folder_remove(const char *folder) {
    nftw(folder, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

bool folder_retire(const char *folder) {
    char *aside = memory_format("%s.tmp.%llu", folder, process_number());
    const char *path = guard_holds() && rename(folder, aside) == 0 ? aside : folder;
    remove_errno = 0;
    folder_remove(path);
    bool gone = access(path, F_OK) != 0;
    if (!gone && remove_errno)
        log_warning("%s cannot be removed: %s", path, strerror(remove_errno));
    else if (!gone)
        log_warning("%s was not removed: another coordinator has taken over the folder", path);
    free(aside);
    errno = remove_errno;
    return gone;
}

/* Those whose names begin so. A folder that is not there has none. */
static int sweep_folder(const char *place, const char *begin) {
    char **names;
    int code = folder_names(place, &names);
    if (code)
        return code;
    for (char **name = names; name && *name; name++) {
        if (!name_is_temporary(*name) || strncmp(*name, begin, strlen(begin)) != 0)
            continue;
        char *path = path_join(place, *name);
        log_info("removing %s, left by a run that was killed", path);
        folder_remove(path);
        free(path);
    }
    names_free(names);
    return 0;
}

int stale_files_remove(const char *state) {
    char *packs = path_join(state, "packs"), *models = path_join(state, "models");
    int code = sweep_folder(packs, "");
    if (!code)
        code = sweep_folder(models, "");
    if (!code) /* commands without the lock may write others there */
        code = sweep_folder(state, "key.");
    free(models);
    free(packs);
    return code;
}

int state_run_next(const char *state, struct store *store, int64_t *number) {
    char **names = NULL, *path = path_join(state, "models");
    int64_t largest = 0; /* 0: there is no model */
    int code = folder_names(path, &names);
    for (char **name = names; !code && *name; name++)
        largest = run_of_folder(*name) > largest ? run_of_folder(*name) : largest;
    names_free(names);
    free(path);
    if (!code)
        code = store_run_next(store, number);
    if (!code && *number <= largest) {
        *number = largest + 1;
        log_warning("%s/models has a model of run %lld that dml.db does not know: this is run %lld",
                    state, (long long)largest, (long long)*number);
    }
    return code;
}
