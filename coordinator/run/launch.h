/* Starting workers on this machine: processes with sockets in a private folder. Nothing here waits
 * but launch_release(), and that turns the event loop meanwhile. */
#ifndef DML_COORDINATOR_RUN_LAUNCH_H
#define DML_COORDINATOR_RUN_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/message.h"

struct event;
struct event_base;
struct launch;

struct launched {
    struct launch *launch;
    enum role role;
    uint32_t index;
    pid_t pid;     /* 0: not running, as far as is known */
    bool adopted;  /* started by an earlier coordinator: not a child of this process */
    bool starting; /* it runs, and has not said yet that it listens */
    int status;    /* of waitpid(), once it has ended */
    char *address; /* "unix:PATH"; owned; NULL before its first start */
    uint32_t starts, tries;
    int output;             /* read end of its standard output while it is starting; or −1 */
    struct event *line;     /* its first line, on `output` */
    struct event *deadline; /* for that line */
};

/* Called from the loop. */
struct launch_callbacks {
    /* A worker listens; or it will not, and error_text() says why: ERROR_UNAVAILABLE. */
    void (*up)(void *context, struct launched *worker, int code);
    /* A worker that listened has ended: launch_ending() says how. */
    void (*ended)(void *context, struct launched *worker);
    void *context;
};

struct launch {
    struct event_base *base;
    struct launch_callbacks callbacks;
    char *folder;             /* 0700, removed by launch_release(); owned; made when needed */
    const char *state;        /* the state folder, whose lock is held */
    const char *verbosity;    /* "--quiet", "--verbose" or NULL: passed on */
    struct launched *workers; /* shards first */
    uint32_t count;
    bool restarted;      /* some worker was started anew */
    int64_t up_ns;       /* when all of them listened for the first time; 0: not yet */
    struct event *child; /* SIGCHLD */
    pid_t *killed;       /* replaced by others, and perhaps not gone yet; owned */
    uint32_t killed_count;
};

/* Makes room for that many workers; none runs. What happens to them later is told to nobody until
 * launch_listen(). */
void launch_init(struct launch *launch, struct event_base *base, uint32_t shards, uint32_t replicas,
                 const char *state, const char *verbosity);

/* Who is told what from now on; NULL: nobody. */
void launch_listen(struct launch *launch, const struct launch_callbacks *callbacks);

/* A worker that an earlier coordinator started may still be at this address. */
void launch_adopt(struct launched *worker, pid_t pid, const char *address);

/* Starts all that do not run, from the programs beside this one (else on the PATH). They write to
 * this standard error. Each has its address now, and is `up` later. ERROR_UNAVAILABLE or
 * ERROR_CREATE. */
int launch_start(struct launch *launch);

/* Ends the worker, if it runs, and starts it anew, at another address. As launch_start(). */
int launch_restart(struct launch *launch, struct launched *worker);

/* How a worker ended, in words: "was killed by signal 9 (Killed)". Valid until the next call. */
const char *launch_ending(const struct launched *worker);

/* Forgets all workers and leaves them running: they are another's now. */
void launch_abandon(struct launch *launch);

/* Has the workers end and removes their folder, at once: this process is about to end. */
void launch_leave(struct launch *launch);

/* Waits up to `grace_ms` for the workers to exit by themselves, then terminates and at last kills
 * them; removes the folder. Turns the loop meanwhile. Harmless on a zeroed struct. */
void launch_release(struct launch *launch, int grace_ms);

#endif
