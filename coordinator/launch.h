/* Starting workers on this machine: processes with sockets in a private folder. */
#ifndef DML_COORDINATOR_LAUNCH_H
#define DML_COORDINATOR_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/message.h"

struct launched {
    enum role role;
    uint32_t index;
    pid_t pid;     /* 0 once it has ended */
    int status;    /* of waitpid(), once it has ended */
    int output;    /* read end of its standard output, until it has said where it listens */
    char *address; /* "unix:PATH"; owned */
};

struct launch {
    char *folder;             /* 0700, removed by launch_release(); owned */
    struct launched *workers; /* shards first */
    uint32_t count;
};

/* Starts `shards` and `replicas` workers of the programs beside this one (else on the PATH) and
 * waits until all listen. They write to this standard error; `verbosity` is "--quiet", "--verbose"
 * or NULL. ERROR_UNAVAILABLE, ERROR_CREATE; then nothing is left running. */
int launch_start(struct launch *launch, uint32_t shards, uint32_t replicas, const char *verbosity);

/* Notes workers that have ended, without waiting. Returns one whose end was not noted before, or
 * NULL. */
struct launched *launch_reap(struct launch *launch);

/* How a worker ended, in words: "was killed by signal 9 (Killed)". Valid until the next call. */
const char *launch_ending(const struct launched *worker);

/* Waits up to `grace_ms` for the workers to exit by themselves, then terminates and at last kills
 * them; removes the folder. Harmless on a zeroed struct. */
void launch_release(struct launch *launch, int grace_ms);

#endif
