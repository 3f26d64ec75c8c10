/* The event loop of a command. It serves the workers, the control socket, the status server and
 * signals, from when the command has the lock until it ends. Work that takes long runs beside the
 * loop: in a thread, or as a child process. The code that waits for such work stays sequential; the
 * loop turns meanwhile.
 *
 * Ctrl-C, SIGTERM and SIGHUP are handled from the first line of main() on. They call `stop` if
 * there is one. Otherwise they end the process at once, with a message and the exit status of a
 * cancelled run. That is safe because what is on the disk is valid at every instant: the same
 * command goes on from there. */
#ifndef DML_COORDINATOR_RUN_LOOP_H
#define DML_COORDINATOR_RUN_LOOP_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

#include "coordinator/status/live.h"

#define LOOP_SIGNALS 3

struct event;
struct event_base;

struct loop {
    struct event_base *base;
    struct event *signals[LOOP_SIGNALS];
    bool ignored[LOOP_SIGNALS];  /* the process was started with that signal ignored (nohup) */
    enum stage stage;            /* what is being done */
    pid_t child;                 /* that loop_wait() waits for, or 0; its group ends with us */
    void (*stop)(void *context); /* asks the training to end; or NULL */
    /* Removes what shall not outlive the process, and records why that ends; or NULL. */
    void (*leave)(void *context, const char *why);
    void *context;
};

/* Before there is a loop: a signal that the process was not started to ignore ends it at once, as
 * without `stop`. Or, if not `handled`, by the signal: for commands that do not go on. Signals that
 * the process was started with blocked are not blocked any more: whoever wants none to be lost
 * while the system loads the program, when nobody can handle it, starts it so. */
void loop_signals_early(bool handled);

/* From now on signals are handled when the loop turns. ERROR_UNAVAILABLE. */
int loop_open(struct loop *loop);

/* From now on signals come too late: they change nothing. Harmless on a zeroed struct. */
void loop_close(struct loop *loop);

/* Handles the events that are there, signals too, and does not wait. For code that otherwise would
 * not turn the loop for a while. */
void loop_poll(struct loop *loop);

/* As a signal would: `why` is "cancelled", say. */
void loop_stop(struct loop *loop, int signal, const char *why);

/* Runs work(context) in a thread and turns the loop until it has ended. Returns what the work
 * returned; its error_text() is this thread's then. The work must not use anything that handlers of
 * the loop use, above all not the store (loop.c says why). Do not call this from within a handler:
 * the loop does not nest. */
int loop_beside(struct loop *loop, enum stage stage, int (*work)(void *context), void *context);

/* The two halves of loop_beside(), for work that goes on while the caller does something else: what
 * loop_begin() began, loop_finish() must end. */
struct loop_work; /* opaque */
int loop_begin(int (*work)(void *context), void *context, struct loop_work **begun);
int loop_finish(struct loop *loop, struct loop_work *work);

/* How a child is to be started: initialises attributes with these flags (POSIX_SPAWN_…) and such
 * that the child does not inherit our treatment of signals. posix_spawnattr_destroy() releases
 * them. */
void loop_child_attributes(posix_spawnattr_t *attributes, int flags);

/* Where the standard output of a child goes, and its standard error (−1: where ours goes). Its
 * standard input is `input`, or empty if that is 0: ours may be data, or the rest of the script
 * that called us. It leads a session of its own, or only a group, so that Ctrl-C goes to the
 * coordinator alone. */
struct loop_child {
    int input, output, errors;
    bool session;
};

/* Starts `program`, which is looked for in PATH unless it has a slash. Returns 0 or a value of
 * errno. */
int loop_spawn(const char *program, char *const *arguments, char *const *environment,
               const struct loop_child *how, pid_t *child);

/* Turns the loop until the child has ended; *status is that of waitpid(). The child leads a group
 * of its own. A signal that ends this process meanwhile is passed on to the group, which is killed
 * if it does not end within two seconds. Not from within a handler. */
int loop_wait(struct loop *loop, enum stage stage, pid_t child, int *status);

/* Turns a loop until `done` holds or the time is over. A recorded error is kept. */
void loop_until(struct event_base *base, int timeout_ms, bool (*done)(const void *context),
                const void *context);

#endif
