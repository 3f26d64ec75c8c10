#include "coordinator/run/cluster.h"

#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/loop.h"
#include "wire/connecting.h"
#include "wire/peer.h"

#define CONNECT_TIMEOUT_MS 5000
#define TICK_MS 100
#define DISMISS_MS 2000
#define RETRY_MS 500     /* between attempts to connect to a worker that someone else started */
#define LAST_WORDS_MS 20 /* from the end of a connection to that of its process, if it ended */

struct link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer;             /* NULL while there is no connection */
    struct connecting *connecting; /* one is being made; or NULL */
    struct event *starter;         /* starts the worker anew and connects */
    bool met;                      /* there was a connection once */
    int64_t give_up_ns;            /* when a worker of someone else's counts as lost for good */
    char *lost;                    /* why its connection ended, not told yet; or NULL */
    struct event *teller;          /* tells it */
};

struct cluster {
    struct event_base *base;
    struct coordinator *coordinator;
    struct cluster_options options;
    struct link *links;
    struct output out;
    struct event *ticker, *limit;
    enum reason stopping; /* the reason to stop for, REASON_NONE if none */
    bool dismissed;
    int code; /* what the run ends with */
};

static void end(struct cluster *cluster, int code) {
    if (!cluster->code)
        cluster->code = code;
    event_base_loopbreak(cluster->base);
}

/* ---- what a step asked for ---- */

static void start_soon(struct link *link, int delay_ms) {
    struct timeval delay = {.tv_usec = delay_ms * 1000};
    event_add(link->starter, &delay);
}

static int carry_out(struct cluster *cluster) {
    struct output *out = &cluster->out;
    bool commit = false;
    int code = 0;
    for (uint32_t i = 0; i < out->record_count && !code; i++) {
        const struct record *record = &out->records[i];
        if (record->kind == RECORD_START) {
            struct link *link = &cluster->links[record->start];
            link->give_up_ns = 0;
            start_soon(link, 0);
        }
        commit |= record->kind == RECORD_JOURNAL || record->kind == RECORD_ROLL_BACK ||
                  record->kind == RECORD_WORKER; /* where a next coordinator finds it */
        code = cluster->options.record(cluster->options.context, cluster->coordinator, out, record);
    }
    if (commit && !code)
        code = cluster->options.commit(cluster->options.context);
    return code;
}

static void send_messages(struct cluster *cluster) {
    const struct outbox *messages = &cluster->out.messages;
    for (size_t i = 0; i < messages->count; i++) {
        const struct envelope *envelope = &messages->envelopes[i];
        struct peer *peer = cluster->links[envelope->to].peer;
        if (peer)
            peer_send_envelope(peer, messages, envelope);
    }
}

/* Records first: what they make durable must be so before messages have effects. */
static void drain(struct cluster *cluster) {
    int code = carry_out(cluster);
    if (!code)
        send_messages(cluster);
    output_clear(&cluster->out);
    enum coordinator_phase phase = coordinator_phase(cluster->coordinator);
    if (code || phase == PHASE_READ || phase == PHASE_STOPPED)
        end(cluster, code);
}

static void after_step(struct cluster *cluster, int code) {
    if (!code && cluster->stopping)
        coordinator_stop(cluster->coordinator, cluster->stopping, clock_monotonic_ns(),
                         &cluster->out);
    drain(cluster);
    if (code)
        end(cluster, code);
}

/* ---- connections ---- */

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    if (cluster->dismissed)
        return;
    after_step(cluster, coordinator_step(cluster->coordinator, link->number, message,
                                         clock_monotonic_ns(), &cluster->out));
}

/* The worker is gone, as `why` says. */
static void lose(struct link *link, const char *why) {
    struct cluster *cluster = link->cluster;
    after_step(cluster, coordinator_lost(cluster->coordinator, link->number, why,
                                         clock_monotonic_ns(), &cluster->out));
}

/* Tells that the connection ended, and how its process did if that is known by now. */
static void tell_lost(struct link *link) {
    const struct launched *launched = link->cluster->options.launched[link->number];
    bool ended = launched && !launched->adopted && !launched->pid;
    char *why = link->lost;
    link->lost = NULL;
    event_del(link->teller);
    if (ended) {
        free(why);
        why = memory_format("it %s", launch_ending(launched));
    }
    lose(link, why);
    free(why);
}

static void on_teller(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    tell_lost(context);
}

/* How a process ended says more than that its connection closed, and is known a moment later: its
 * sockets are closed before its parent hears of it. */
static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct link *link = context;
    const struct launched *launched = link->cluster->options.launched[link->number];
    struct timeval moment = {.tv_usec = LAST_WORDS_MS * 1000};
    (void)peer;
    link->peer = NULL;
    if (link->cluster->dismissed)
        return;
    link->lost = memory_copy_string(reason);
    if (launched && !launched->adopted && launched->pid)
        event_add(link->teller, &moment);
    else
        tell_lost(link);
}

/* Someone else starts it again, in time or not; but an address where nobody was ever met may be
 * wrong. */
static void not_connected(struct link *link, int code) {
    struct cluster *cluster = link->cluster;
    if (cluster->options.launched[link->number]) {
        error_clear();
        lose(link, "it ended before it was connected to");
    } else if (link->met && clock_monotonic_ns() <= link->give_up_ns) {
        error_clear();
        start_soon(link, RETRY_MS);
    } else {
        end(cluster, code);
    }
}

static void on_connected(void *context, int code, int descriptor) {
    static const struct peer_callbacks callbacks = {.message = on_message, .closed = on_closed};
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    link->connecting = NULL;
    if (code) {
        not_connected(link, code);
        return;
    }
    link->met = true;
    link->peer = peer_new(cluster->base, descriptor, &callbacks, link);
    coordinator_opened(cluster->coordinator, link->number, clock_monotonic_ns(), &cluster->out);
    after_step(cluster, 0);
}

static void connect_link(struct link *link) {
    struct cluster *cluster = link->cluster;
    connecting_free(link->connecting);
    link->connecting = connecting_new(cluster->base, cluster->options.addresses[link->number],
                                      CONNECT_TIMEOUT_MS, on_connected, link);
}

/* ---- workers of our own ---- */

static struct link *link_of(struct cluster *cluster, const struct launched *launched) {
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->options.launched[i] == launched)
            return &cluster->links[i];
    return NULL;
}

static void on_up(void *context, struct launched *launched, int code) {
    struct cluster *cluster = context;
    struct link *link = link_of(cluster, launched);
    if (code)
        end(cluster, code);
    else if (link) {
        cluster->options.addresses[link->number] = launched->address;
        connect_link(link);
    }
}

static void on_ended(void *context, struct launched *launched) {
    struct link *link = link_of(context, launched);
    if (link && link->lost)
        tell_lost(link);
}

static int restart(struct link *link, struct launched *launched) {
    struct cluster *cluster = link->cluster;
    int code = launch_restart(cluster->options.launch, launched);
    cluster->options.addresses[link->number] = launched->address;
    return code;
}

static void connect_again(struct link *link) {
    if (!link->give_up_ns)
        link->give_up_ns =
            clock_monotonic_ns() +
            coordinator_settings(link->cluster->coordinator)->reconnect_seconds * NS_PER_S;
    connect_link(link);
}

/* Whoever was silent may speak now, or close: that is of no use any more. */
static void on_start(evutil_socket_t descriptor, short events, void *context) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    struct launched *launched = cluster->options.launched[link->number];
    int code = 0;
    (void)descriptor, (void)events;
    event_del(link->teller);
    free(link->lost);
    link->lost = NULL;
    peer_free(link->peer);
    link->peer = NULL;
    connecting_free(link->connecting);
    link->connecting = NULL;
    if (launched)
        code = restart(link, launched);
    else
        connect_again(link);
    if (code)
        end(cluster, code);
}

/* ---- timers and signals ---- */

static void stop(struct cluster *cluster, enum reason reason) {
    bool again = cluster->stopping == REASON_CANCELLED && reason == REASON_CANCELLED;
    cluster->stopping = reason;
    if (again) {
        coordinator_abandon(cluster->coordinator);
        end(cluster, 0);
        return;
    }
    after_step(cluster, 0);
}

static void on_tick(evutil_socket_t descriptor, short events, void *context) {
    struct cluster *cluster = context;
    (void)descriptor;
    (void)events;
    int code = cluster->options.tick(cluster->options.context, cluster->coordinator);
    if (!code)
        code = coordinator_tick(cluster->coordinator, clock_monotonic_ns(), &cluster->out);
    after_step(cluster, code);
}

static void on_limit(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor;
    (void)events;
    stop(context, REASON_TIME_LIMIT);
}

void cluster_cancel(struct cluster *cluster) {
    stop(cluster, REASON_CANCELLED);
}

static void add_events(struct cluster *cluster) {
    struct timeval tick = {.tv_usec = TICK_MS * 1000};
    cluster->ticker = event_new(cluster->base, -1, EV_PERSIST, on_tick, cluster);
    event_add(cluster->ticker, &tick);
    if (isfinite(cluster->options.seconds_max)) {
        double seconds = fmin(fmax(cluster->options.seconds_max, 0), 1e9);
        struct timeval limit = {.tv_sec = (time_t)seconds,
                                .tv_usec = (suseconds_t)(fmod(seconds, 1) * 1e6)};
        cluster->limit = evtimer_new(cluster->base, on_limit, cluster);
        event_add(cluster->limit, &limit);
    }
}

/* ---- life ---- */

/* One that is being started is connected to once it listens. */
static void find_workers(struct cluster *cluster) {
    struct launch_callbacks callbacks = {.up = on_up, .ended = on_ended, .context = cluster};
    launch_listen(cluster->options.launch, &callbacks);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        const struct launched *launched = cluster->options.launched[i];
        if (!launched || !launched->starting)
            connect_link(&cluster->links[i]);
    }
}

struct cluster *cluster_new(struct event_base *base, struct coordinator *coordinator,
                            const struct cluster_options *options) {
    struct cluster *c = memory_new(1, sizeof *c);
    uint32_t links = coordinator_links(coordinator);
    *c = (struct cluster){.base = base, .coordinator = coordinator, .options = *options};
    c->links = memory_new(links, sizeof *c->links);
    for (uint32_t i = 0; i < links; i++) {
        struct link *link = &c->links[i];
        *link = (struct link){.cluster = c, .number = i};
        link->starter = evtimer_new(base, on_start, link);
        link->teller = evtimer_new(base, on_teller, link);
    }
    output_init(&c->out);
    coordinator_begin(coordinator, clock_monotonic_ns(), &c->out);
    find_workers(c);
    add_events(c);
    return c;
}

int cluster_run(struct cluster *cluster) {
    drain(cluster);
    if (!cluster->code && coordinator_phase(cluster->coordinator) != PHASE_STOPPED)
        event_base_dispatch(cluster->base);
    return cluster->code;
}

static bool all_sent(const void *context) {
    const struct cluster *cluster = context;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer && peer_queued(cluster->links[i].peer))
            return false;
    return true;
}

/* From here on nothing is asked of the machine, and no worker is started. */
static void come_to_rest(struct cluster *cluster) {
    cluster->dismissed = true;
    launch_listen(cluster->options.launch, NULL);
    event_del(cluster->ticker);
    if (cluster->limit)
        event_del(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct link *link = &cluster->links[i];
        event_del(link->starter);
        event_del(link->teller);
        connecting_free(link->connecting);
        link->connecting = NULL;
    }
}

void cluster_dismiss(struct cluster *cluster, const char *why) {
    if (cluster->dismissed)
        return;
    come_to_rest(cluster);
    coordinator_dismiss(cluster->coordinator, why, &cluster->out);
    send_messages(cluster);
    output_clear(&cluster->out);
    loop_until(cluster->base, DISMISS_MS, all_sent, cluster);
}

static void event_drop(struct event *event) {
    if (event)
        event_free(event);
}

void cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    launch_listen(cluster->options.launch, NULL);
    event_drop(cluster->ticker);
    event_drop(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct link *link = &cluster->links[i];
        event_drop(link->starter);
        event_drop(link->teller);
        connecting_free(link->connecting);
        peer_free(link->peer);
        free(link->lost);
    }
    free(cluster->links);
    output_release(&cluster->out);
    free(cluster);
}
