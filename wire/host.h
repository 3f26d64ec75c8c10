/* The I/O shell of a worker process (shard, replica): one loop that listens, numbers the
 * connections, hands each message to the role's state machine and sends what that put into its
 * outbox.
 *
 * The host also decides when a worker ends: with 0 on BYE from its coordinator, on SIGTERM or
 * SIGHUP, and with ERROR_AGAIN when the connection to the coordinator is lost and no other
 * coordinator comes within the reconnect_seconds of the last HELLO. The coordinator is whoever the
 * role WELCOMEd last; the one before is REFUSED at once. The host answers PING with PONG, also
 * while threads of the role compute; while the role itself is at work, heartbeat() sends it. It
 * waits for a coordinator that is silent while its connection stands: that process may be paused.
 *
 * With `stay` the worker does not end then: it forgets the run, and waits for the next coordinator,
 * of any run. While it serves one, that of another is REFUSED as busy, and may ask again. A BYE
 * that says `again` has the same effect, but the worker ends if the next coordinator does not come
 * in time, or if its parent is gone.
 *
 * Whoever connects is a stranger until the role WELCOMEs or GREETs it. A stranger is dropped if
 * that takes too long. When there are too many connections, the oldest stranger is dropped.
 *
 * One thread: all functions but host_wake() are called from the loop's thread, also from within the
 * role's callbacks. */
#ifndef DML_WIRE_HOST_H
#define DML_WIRE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct host; /* opaque */

#define KEY_OF_INPUT "-" /* the key comes by standard input, which is closed then */

struct host_options {
    const char *listen;
    const char *key;    /* file; KEY_OF_INPUT; or NULL: then Unix sockets only */
    const char *local;  /* secret of a socket for this host, beside the address; NULL, "": none */
    const char *folder; /* below which a worker writes; NULL: none was named */
    const char *device; /* as device/find.h reads it: instead of the job's; or NULL */
    bool once;          /* do not wait for another coordinator when the first is lost */
    bool stay;          /* serve one run after the other */
    int parent_pid;     /* not 0: end when this is no longer the parent, while no run is served */
    int hello_seconds;  /* not 0: the same when no HELLO has come within this time */
    int log_level;      /* enum log_level */
    int greet_ms;       /* how long a connection may stay a stranger; 0: 10 s */
};

/* Reads the options that all workers share: --listen --key --folder --device
 * --once --stay --parent-pid --hello-seconds --quiet --verbose, and answers --help and --version
 * itself. `summary` is one line about the program. Returns 1 if it answered: the program then exits
 * with 0. ERROR_USAGE. */
int host_options_read(int argc, char **argv, const char *summary, struct host_options *options);

/* The worker's own folder on this host, from the root: --folder, or else folder_of_user(). For
 * files of a run whose state folder it does not see. Free *folder. ERROR_CREATE, ERROR_PERMISSION.
 */
int host_own_folder(const struct host_options *options, char **folder);

/* Whether this host has the coordinator's state folder at the path that its HELLO names: the lock
 * there has the coordinator's text. "" is a folder of this machine. */
bool host_sees_state(void *context, const char *state, const char *holder);

/* main() of a worker, after process_begin(): reads the options and calls `serve` with them, unless
 * they were answered here. `role` is its name in logs and failpoints. 0, or an error whose text is
 * recorded. */
int host_main(int argc, char **argv, const char *role, const char *summary,
              int (*serve)(const struct host_options *options));

/* The role's state machine. Links number connections: from 1 up, never used again. */
struct host_role {
    void *state;
    void (*message)(void *state, uint32_t from, const struct message *message, int64_t now_ns,
                    struct outbox *out);
    void (*gone)(void *state, uint32_t link, int64_t now_ns, struct outbox *out);
    /* Answers host_connect(): a link that stands; or 0 and an error, whose text error_text() has.
     * NULL for a role that never connects. */
    void (*connected)(void *state, uint32_t tag, uint32_t link, int code, struct outbox *out);
    /* After a call of the above and after host_wake(), before the outbox is sent: the place to
     * connect, to start and to collect work. May be NULL. */
    void (*after)(void *state, int64_t now_ns, struct outbox *out);
    /* The worker stays, and its run is over: releases everything of it. What was sent, connected or
     * asked for is forgotten by the host. */
    void (*forget)(void *state);
};

/* Reads the key, listens, and prints "listening ADDRESS" as a line on standard output.
 * NULL after an error, with its code in *code. */
struct host *host_new(const struct host_options *options, const struct host_role *role, int *code);
void host_free(struct host *host); /* closes everything and removes the file of a Unix socket */

/* Serves until the worker's end; 0 or a negative code. */
int host_run(struct host *host);

/* Begins to connect to `address` and returns. The role's connected() is called with the result and
 * `tag` (< SHARDS_MAX) within a few seconds. An unfinished attempt with the same tag is given up.
 * host_close() closes a link without calling gone(). */
void host_connect(struct host *host, const char *address, uint32_t tag);
void host_close(struct host *host, uint32_t link);

/* From any thread: calls the role's after() soon, in the loop. */
void host_wake(struct host *host);

/* Calls the role's after() once after `delay_ns`; a second call replaces the first; a negative
 * delay cancels it. */
void host_alarm(struct host *host, int64_t delay_ns);

/* Ends host_run() after this turn of the loop, with this code. Messages that the system has not
 * taken by then are lost. */
void host_end(struct host *host, int code);

#endif
