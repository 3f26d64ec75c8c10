/* The inside of the host (wire/host.h), for host*.c alone. */
#ifndef DML_WIRE_HOST_PARTS_H
#define DML_WIRE_HOST_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "wire/host.h"

struct host;
struct peer;

struct link {
    struct host *host;
    uint32_t number;            /* from 1 up, never used again */
    uint32_t reconnect_seconds; /* as its HELLO said */
    char *run;                  /* as its HELLO said; owned; NULL before that */
    struct peer *peer;          /* the host's to free */
    bool stranger;              /* neither WELCOMEd nor GREETed yet */
    bool nearby;                /* it came by the socket for others of this host */
    int64_t opened_ns;
};

/* The connections by their numbers. All zero: none. */
struct links {
    struct link **items; /* by rising number, so the first is the oldest; owned */
    size_t count, capacity;
    uint32_t last_number;
};

/* Adds a link with the next number; the rest of it is zero. It is valid until links_forget(). */
struct link *links_add(struct links *links);

/* NULL if there is no link of that number (any more). */
struct link *links_find(const struct links *links, uint32_t number);

/* The stranger that has been connected for longest, or NULL. */
struct link *links_first_stranger(const struct links *links);

/* Takes a link out and frees it, but not its peer. */
void links_forget(struct links *links, struct link *link);

/* Frees the list, which must be empty. */
void links_release(struct links *links);

/* The run that a worker serves: one at a time. All zero: none. */
struct tenancy {
    char *run;        /* as HELLO names it; owned */
    int64_t until_ns; /* not 0: its coordinator is lost, and the tenancy ends at this time */
};

/* A coordinator has come: of a new run, or a later one of the same run. */
void tenancy_begin(struct tenancy *tenancy, const char *run);
void tenancy_end(struct tenancy *tenancy);

/* Why a coordinator of `run` must wait, and until when. NULL if it need not. Free it. */
char *tenancy_objection(const struct tenancy *tenancy, const char *run, int64_t now_ns);

struct dial;
struct event;
struct tls;

/* A connection that is being made. */
struct attempt {
    struct host *host;
    struct dial *dial; /* or NULL */
};

enum host_event {
    ON_ACCEPT,
    ON_NEARBY, /* accept likewise, of the socket for others of this host */
    ON_PAUSE,  /* since descriptors ran out: accept again */
    ON_WAKE,
    ON_ALARM,
    ON_LOST,     /* no coordinator came in time */
    ON_REST,     /* the run is over: forget it */
    ON_PARENT,   /* is the parent still there? */
    ON_STRANGER, /* the oldest stranger was silent for too long */
    ON_TERM,
    ON_INT,
    ON_HUP,
    EVENTS
};

struct host {
    struct host_options options;
    struct host_role role;
    struct event_base *base;
    struct event *events[EVENTS];
    struct tls *tls; /* or NULL */
    int listener;
    int nearby; /* listens for others of this host; −1: none */
    int waker;  /* an eventfd */
    char *bound;
    struct links links;
    uint32_t coordinator; /* link, 0 for none */
    uint64_t term;        /* the last coordinator's, as is */
    uint32_t reconnect_seconds;
    struct tenancy tenancy;
    int64_t beat_ns; /* when the coordinator was last sent WELCOME or PONG */
    bool leaving;    /* the run is over, and will be forgotten in a later turn of the loop */
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
void host_coordinator_found(struct host *host, const struct link *link, uint64_t term);

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
