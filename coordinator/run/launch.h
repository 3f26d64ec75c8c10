/* Starting workers: on this machine, as processes with sockets in a private folder; or on hosts, by
 * a command such as ssh. No function waits except launch_release(), which turns the event loop
 * meanwhile. */
#ifndef DML_COORDINATOR_RUN_LAUNCH_H
#define DML_COORDINATOR_RUN_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "coordinator/machine/hosts.h"
#include "wire/message.h"

struct event;
struct event_base;
struct launch;

struct launched {
    struct launch *launch;
    enum role role;
    uint32_t index;
    const struct hosts_entry *host; /* that it is started on; NULL: here */
    pid_t pid;     /* 0: not running, as far as we know; on a host: of the command here */
    bool adopted;  /* started by an earlier coordinator, so no child of this process */
    bool starting; /* it runs, but has not said yet that it listens */
    int status;    /* of waitpid(), once it has ended */
    char *address; /* owned; here: from its start on; on a host: when it listens */
    uint32_t starts, tries;
    int output;         /* while it is starting: the read end of its standard output; else −1 */
    struct event *line; /* waits for its first line, on `output` */
    struct event *deadline; /* until when that line must come */
    char said[4096];        /* on its standard output, while it is starting: the end of it */
    size_t said_length;
    size_t said_bytes; /* in all */
    bool by_path;      /* on a host: its program is looked for on the PATH there */
    off_t log_start;   /* on a host: where its log had ended when it was started */
};

/* Called from the loop. */
struct launch_callbacks {
    /* Code 0: a worker listens. ERROR_UNAVAILABLE: it does not, and error_text() says why. */
    void (*up)(void *context, struct launched *worker, int code);
    /* A worker that listened has ended: launch_ending() says how. */
    void (*ended)(void *context, struct launched *worker);
    void *context;
};

struct launch {
    struct event_base *base;
    struct launch_callbacks callbacks;
    char *folder;          /* 0700, removed by launch_release(); owned; made when needed */
    const char *state;     /* the state folder; this process holds its lock */
    const char *verbosity; /* "--quiet", "--verbose" or NULL: passed on */
    struct {
        char *prefix; /* the key `launch`, or its default; owned */
        char *state;  /* the state folder's path from the root, on every host; owned */
    } remote;
    struct launched **workers; /* each stays where it is */
    uint32_t count;
    bool restarted;      /* some worker was started anew */
    int64_t up_ns;       /* when all of them listened for the first time; 0: not yet */
    int failed;          /* a worker could not be started while nobody was to be called; or 0 */
    char *why;           /* and why; owned */
    struct event *child; /* SIGCHLD */
    pid_t *killed;       /* processes that were replaced and may not be dead yet; owned */
    uint32_t killed_count;
};

/* Starts no worker yet. Nobody is called until launch_listen(). */
void launch_init(struct launch *launch, struct event_base *base, const char *state,
                 const char *verbosity);

/* Sets whom to call from now on; NULL: nobody. */
void launch_listen(struct launch *launch, const struct launch_callbacks *callbacks);

/* How workers are started on hosts. `prefix` fits the key `launch`. */
void launch_set_remote(struct launch *launch, const char *prefix, const char *state);

/* Whether a worker listens at `address` that a coordinator of this state started here. A copy of a
 * state folder names workers of the original: it is not their state. */
bool launch_is_of_state(const char *state, const char *address);

/* The worker is to be started on this host, which outlives the launcher. Before it is adopted or
 * started. */
void launch_place(struct launch *launch, enum role role, uint32_t index,
                  const struct hosts_entry *host);

/* A worker that an earlier coordinator started may still be at this address. Only before the first
 * launch_start(). Of a worker that is named twice the last address counts. The process of a worker
 * on a host is never touched. */
void launch_adopt(struct launch *launch, enum role role, uint32_t index, pid_t pid,
                  const char *address);

/* Sees to it that there are that many workers: starts those that do not run, from the programs
 * beside this one, else from the PATH. Those here write to this process's standard error, and each
 * has its address when this returns; those on hosts write to STATE/log. up() is called later. May
 * be called again, with the same numbers or larger ones, until somebody is connected to the
 * workers. ERROR_UNAVAILABLE, also if one that an earlier call started ended before it listened;
 * ERROR_CREATE. */
int launch_start(struct launch *launch, uint32_t shards, uint32_t replicas);

/* The run has ended, and its workers wait for the next one. Those that an earlier coordinator
 * started do not: nobody would see them end. */
void launch_rest(struct launch *launch);

/* Whether there are exactly so many workers, running or not. */
bool launch_has(const struct launch *launch, uint32_t shards, uint32_t replicas);

/* Whether the worker's process lives, as far as we know. */
bool launch_runs(const struct launched *worker);

/* NULL if there is no such worker. */
struct launched *launch_find(const struct launch *launch, enum role role, uint32_t index);

/* Kills the worker, if it runs. It is not started again until launch_restart(). */
void launch_stop(struct launched *worker);

/* Kills the worker, if it runs, and starts it anew: on that host, or here (NULL) at another
 * address. Otherwise as launch_start(). On a host, the process may live on where it cannot be
 * reached: incarnations tell it from its successor. */
int launch_restart(struct launch *launch, struct launched *worker, const struct hosts_entry *host);

/* How a worker ended, in words: "was killed by signal 9 (Killed)". Valid until the next call. */
const char *launch_ending(const struct launched *worker);

/* Forgets all workers and leaves them running: another coordinator has taken them over. */
void launch_abandon(struct launch *launch);

/* For a process that is about to end: sends SIGTERM to the workers, kills those that have not ended
 * two seconds later, and removes their sockets and folder. Does not turn the loop. */
void launch_leave(struct launch *launch);

/* Waits up to `grace_ms` for the workers to exit by themselves, then terminates and at last kills
 * them; removes the folder. Turns the loop meanwhile. Harmless on a zeroed struct. */
void launch_release(struct launch *launch, int grace_ms);

#endif
