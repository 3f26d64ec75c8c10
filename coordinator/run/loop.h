/* The event loop of a command, which answers whoever asks from the taking of the lock to the end.
 * What takes long runs beside it: in a thread, or as a child. The code that waits for it stays
 * sequential, and the loop turns meanwhile: a run's workers, its status server and signals are
 * served from there.
 *
 * Ctrl-C and SIGTERM are taken by `stop` if there is one. Otherwise they end the process at once,
 * with a message and the status of a run that was told to stop: what is on the disk holds at every
 * instant, so the same command goes on from there. */
#ifndef DML_COORDINATOR_RUN_LOOP_H
#define DML_COORDINATOR_RUN_LOOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "coordinator/status/stage.h"

struct event;
struct event_base;

struct loop {
    struct event_base *base;
    struct event *signals[2];
    bool ignored[2];              /* whoever started the process has it ignore that signal */
    enum stage stage;             /* what is being done */
    pid_t child;                  /* a command that is waited for, or 0: it is ended with us */
    void (*stop)(void *context);  /* asks what goes on to end, or NULL */
    void (*leave)(void *context); /* removes what is not to outlive the process, or NULL */
    void *context;
};

/* From now on signals are taken when the loop turns. ERROR_UNAVAILABLE. */
int loop_open(struct loop *loop);
void loop_close(struct loop *loop); /* harmless on a zeroed struct */

/* Serves whoever has come, and a signal too, without waiting: between two steps of code that does
 * not wait for anything. */
void loop_poll(struct loop *loop);

/* As a signal would: `why` is "cancelled", say. */
void loop_stop(struct loop *loop, int signal, const char *why);

/* Runs work(context) in a thread and turns the loop until it has ended. Answers what it did; its
 * error_text() is this thread's then. The work may use nothing that handlers of the loop use: not
 * the store, above all. Not from within a handler. */
int loop_beside(struct loop *loop, enum stage stage, int (*work)(void *context), void *context);

/* Turns the loop until the child has ended; the status is that of waitpid(). */
int loop_wait(struct loop *loop, enum stage stage, pid_t child, int *status);

/* Turns a loop until `done` holds or the time is over. An error that is recorded stays what it is.
 */
void loop_until(struct event_base *base, int timeout_ms, bool (*done)(const void *context),
                const void *context);

#endif
