/* Starting workers on this machine: processes with sockets in a private folder. */
#ifndef DML_COORDINATOR_RUN_LAUNCH_H
#define DML_COORDINATOR_RUN_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/message.h"

struct launched {
    enum role role;
    uint32_t index;
    pid_t pid;    /* 0: not running, as far as is known */
    bool adopted; /* started by an earlier coordinator: not a child of this process */
    int status;   /* of waitpid(), once it has ended */
    int output;   /* read end of its standard output, until it has said where it listens; or −1 */
    char *address; /* "unix:PATH"; owned; NULL before its first start */
    uint32_t starts;
};

struct launch {
    char *folder;             /* 0700, removed by launch_release(); owned; made when needed */
    const char *verbosity;    /* "--quiet", "--verbose" or NULL: passed on */
    struct launched *workers; /* shards first */
    uint32_t count;
};

/* Makes room for that many workers; none runs. */
void launch_init(struct launch *launch, uint32_t shards, uint32_t replicas, const char *verbosity);

/* A worker that an earlier coordinator started may still be at this address. */
void launch_adopt(struct launched *worker, pid_t pid, const char *address);

/* Starts all that do not run, from the programs beside this one (else on the PATH), and waits until
 * they listen. They write to this standard error. ERROR_UNAVAILABLE or ERROR_CREATE. */
int launch_start(struct launch *launch);

/* Ends the worker, if it runs, and starts it anew, at another address. As launch_start(). */
int launch_restart(struct launch *launch, struct launched *worker);

/* Notes workers that have ended, without waiting. Returns one whose end was not noted before, or
 * NULL. */
struct launched *launch_reap(struct launch *launch);

/* How a worker ended, in words: "was killed by signal 9 (Killed)". Valid until the next call. */
const char *launch_ending(const struct launched *worker);

/* Forgets all workers and leaves them running: they are another's now. */
void launch_abandon(struct launch *launch);

/* Waits up to `grace_ms` for the workers to exit by themselves, then terminates and at last kills
 * them; removes the folder. Harmless on a zeroed struct. */
void launch_release(struct launch *launch, int grace_ms);

#endif
