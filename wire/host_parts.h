/* The inside of the host (host.h). For host*.c alone. */
#ifndef DML_WIRE_HOST_PARTS_H
#define DML_WIRE_HOST_PARTS_H

#include "base/limits.h"
#include "wire/host.h"
#include "wire/links.h"
#include "wire/tenancy.h"

struct connecting;
struct event;
struct tls;

/* A connection that is being made. */
struct attempt {
    struct host *host;
    struct connecting *connecting; /* or NULL */
};

enum host_event {
    ON_ACCEPT,
    ON_PAUSE,
    ON_WAKE,
    ON_ALARM,
    ON_LOST,
    ON_REST,
    ON_PARENT,
    ON_STRANGER,
    ON_TERM,
    ON_INT,
    EVENTS
};

struct host {
    struct host_options options;
    struct host_role role;
    struct event_base *base;
    struct event *events[EVENTS];
    struct tls *tls; /* or NULL */
    int listener;
    int waker; /* an eventfd */
    char *bound;
    struct links links;
    uint32_t coordinator; /* link, 0 for none */
    uint64_t epoch;       /* the last coordinator's, as is */
    uint32_t reconnect_seconds;
    struct tenancy tenancy;
    int64_t beat_ns; /* when the coordinator was last sent WELCOME or PONG */
    bool leaving;    /* the run is over, and forgotten in a later turn of the loop */
    struct attempt attempts[SHARDS_MAX]; /* by tag */
    int code;
    struct outbox outbox;
};

/* The event happens once after the delay. */
void host_start_timer(struct host *host, enum host_event event, int64_t delay_ns);

/* ---- the run that is served ---- */

/* Ends the worker if no coordinator comes: in the time that it was started with; else, unless its
 * parent is watched, in `otherwise_seconds` (0: never). */
void host_await_coordinator(struct host *host, uint32_t otherwise_seconds);

/* The role welcomed the coordinator on this link. */
void host_coordinator_found(struct host *host, const struct link *link, uint64_t epoch);

/* The connection to the coordinator ended: the worker waits for the next one, or ends. */
void host_coordinator_lost(struct host *host, uint32_t reconnect_seconds, const char *reason);

/* The run is over for this worker, which ends with this code, or forgets the run soon and waits for
 * the next one. */
void host_leave_run(struct host *host, bool stays, int code);

/* Forgets the run now, and waits. Not from within a call of the role. */
void host_rest(struct host *host);

/* Whether a coordinator of another run than the one that is served was refused. It may ask again
 * later. */
bool host_refuses(struct host *host, const struct link *link, const struct message *hello,
                  int64_t now_ns);

#endif
