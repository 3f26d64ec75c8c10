/* The rim of a worker process (shard, replica): one loop that listens, numbers the connections,
 * hands each message to the role's state machine and sends what that put into its outbox.
 *
 * The host also knows how a worker lives: it ends with 0 on BYE from its coordinator or SIGTERM,
 * and with ERROR_AGAIN when the coordinator's connection is lost and no other comes within the
 * reconnect_seconds of its HELLO. Whom the role WELCOMEs is the coordinator; one that was it before
 * is REFUSED at once. A PING is answered with PONG, also while the role is busy
 * with work of its own threads; a coordinator that is silent while its connection stands may be
 * paused, and is waited for.
 *
 * Whoever connects is a stranger until the role WELCOMEs or GREETs it, and dropped if that takes
 * too long. When there are too many connections the stranger that came first makes room.
 *
 * One thread: every function is called from the loop's thread, also in the role's calls. */
#ifndef DML_WIRE_HOST_H
#define DML_WIRE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"
#include "wire/outbox.h"

struct event_base;
struct host; /* opaque */

struct host_options {
    const char *listen;
    bool anywhere;      /* may listen beyond this machine */
    const char *folder; /* below which a worker writes; NULL: none was named */
    bool once;          /* do not wait for another coordinator when the first is lost */
    int parent_pid;     /* not 0: end when this is no longer the parent, before any HELLO */
    int log_level;      /* enum log_level */
    int greet_ms;       /* how long one may be a stranger; 0: 10 s */
};

/* Reads the options that all workers share: --listen --anywhere --folder --once --parent-pid
 * --quiet
 * --verbose, and answers --help and --version itself. `summary` is one line about the program.
 * 1: answered, exit with 0. ERROR_USAGE. Both programs' mains begin with it. */
int host_options_read(int argc, char **argv, const char *summary, struct host_options *options);

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
};

/* Listens, and prints "listening on ADDRESS" as a line of standard output.
 * NULL with an error recorded: *code says which. */
struct host *host_new(const struct host_options *options, const struct host_role *role, int *code);
void host_free(struct host *host); /* closes everything; a Unix socket's file goes */

/* Serves until the worker's end; 0 or a negative code. */
int host_run(struct host *host);

/* Begins to connect to `address` and returns; the role's connected() is called with the answer and
 * `tag`, within a few seconds. An attempt of the same tag (< SHARDS_MAX) that goes on is given up.
 * Links close by host_close() or with the host; gone() is not called for host_close(). */
void host_connect(struct host *host, const char *address, uint32_t tag);
void host_close(struct host *host, uint32_t link);

/* From any thread: calls the role's after() soon, in the loop. */
void host_wake(struct host *host);

/* Calls the role's after() once after `delay_ns`; a second call replaces the first; a negative
 * delay cancels it. */
void host_alarm(struct host *host, int64_t delay_ns);

/* Ends the loop after what is queued was sent, as far as the system takes it at once. */
void host_end(struct host *host, int code);

#endif
