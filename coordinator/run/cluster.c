#include "coordinator/run/cluster.h"

#include <event2/event.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/peer.h"

#define CONNECT_TIMEOUT_MS 5000
#define TICK_MS 100
#define RETRY_MS 500 /* between attempts to connect to a worker that someone else started */

struct link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer;     /* NULL while there is no connection */
    struct event *starter; /* starts the worker anew and connects */
    int64_t give_up_ns;    /* when a worker of someone else's counts as lost for good */
};

struct cluster {
    struct event_base *base;
    struct coordinator *coordinator;
    struct cluster_options options;
    struct link *links;
    struct output out;
    struct event *ticker, *limit, *interrupt, *terminate, *child;
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
    after_step(cluster, coordinator_step(cluster->coordinator, link->number, message,
                                         clock_monotonic_ns(), &cluster->out));
}

/* How it ended says more than that its connection closed. */
static const char *reason_of_loss(const struct link *link, const char *reason) {
    static char text[160];
    struct launched *launched = link->cluster->options.launched[link->number];
    int64_t deadline_ns = clock_monotonic_ns() + 20 * NS_PER_MS;
    if (!launched || launched->adopted)
        return reason;
    while (launched->pid && clock_monotonic_ns() < deadline_ns)
        if (!launch_reap(link->cluster->options.launch))
            usleep(1000);
    if (launched->pid)
        return reason;
    snprintf(text, sizeof text, "it %s", launch_ending(launched));
    return text;
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    link->peer = NULL;
    if (cluster->dismissed)
        return;
    after_step(cluster,
               coordinator_lost(cluster->coordinator, link->number, reason_of_loss(link, reason),
                                clock_monotonic_ns(), &cluster->out));
}

static int connect_link(struct link *link) {
    static const struct peer_callbacks callbacks = {.message = on_message, .closed = on_closed};
    struct cluster *cluster = link->cluster;
    int descriptor;
    int code =
        address_connect(cluster->options.addresses[link->number], CONNECT_TIMEOUT_MS, &descriptor);
    if (code)
        return code;
    link->peer = peer_new(cluster->base, descriptor, &callbacks, link);
    coordinator_opened(cluster->coordinator, link->number, clock_monotonic_ns(), &cluster->out);
    return 0;
}

/* One that was started here may have ended meanwhile: it counts as lost. */
static int connect_started(struct link *link) {
    struct cluster *cluster = link->cluster;
    if (!connect_link(link))
        return 0;
    error_clear();
    return coordinator_lost(cluster->coordinator, link->number,
                            "it ended before it was connected to", clock_monotonic_ns(),
                            &cluster->out);
}

/* ---- starting anew ---- */

static int start_here(struct link *link, struct launched *launched) {
    struct cluster *cluster = link->cluster;
    int code = launch_restart(cluster->options.launch, launched);
    cluster->options.addresses[link->number] = launched->address;
    return code ? code : connect_started(link);
}

/* Someone else starts it again, in time or not. */
static int connect_again(struct link *link) {
    int64_t now_ns = clock_monotonic_ns();
    if (!link->give_up_ns)
        link->give_up_ns =
            now_ns + coordinator_settings(link->cluster->coordinator)->reconnect_seconds * NS_PER_S;
    int code = connect_link(link);
    if (!code || now_ns > link->give_up_ns)
        return code;
    error_clear();
    start_soon(link, RETRY_MS);
    return 0;
}

static void on_start(evutil_socket_t descriptor, short events, void *context) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    struct launched *launched = cluster->options.launched[link->number];
    (void)descriptor;
    (void)events;
    if (link->peer) {
        peer_free(link->peer); /* it was silent: whatever it says now is of no use */
        link->peer = NULL;
    }
    int code = launched ? start_here(link, launched) : connect_again(link);
    if (code)
        end(cluster, code);
    else
        drain(cluster);
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

static void on_signal(evutil_socket_t number, short events, void *context) {
    (void)events;
    log_info("%s: stopping", number == SIGINT ? "interrupted" : "terminated");
    cluster_cancel(context);
}

/* The end of a worker shows at its connection; here it is only taken note of. */
static void on_child(evutil_socket_t number, short events, void *context) {
    struct cluster *cluster = context;
    (void)number;
    (void)events;
    while (launch_reap(cluster->options.launch))
        continue;
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
    cluster->interrupt = evsignal_new(cluster->base, SIGINT, on_signal, cluster);
    cluster->terminate = evsignal_new(cluster->base, SIGTERM, on_signal, cluster);
    cluster->child = evsignal_new(cluster->base, SIGCHLD, on_child, cluster);
    event_add(cluster->interrupt, NULL);
    event_add(cluster->terminate, NULL);
    event_add(cluster->child, NULL);
}

/* ---- life ---- */

/* Who is not there counts as lost at once, and is started by the machine's asking. */
static int find_workers(struct cluster *cluster) {
    int code = 0;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator) && !code; i++) {
        struct link *link = &cluster->links[i];
        code = cluster->options.launched[i] ? connect_started(link) : connect_link(link);
    }
    return code;
}

int cluster_new(struct event_base *base, struct coordinator *coordinator,
                const struct cluster_options *options, struct cluster **cluster) {
    struct cluster *c = memory_new(1, sizeof *c);
    uint32_t links = coordinator_links(coordinator);
    *c = (struct cluster){.base = base, .coordinator = coordinator, .options = *options};
    c->links = memory_new(links, sizeof *c->links);
    for (uint32_t i = 0; i < links; i++) {
        struct link *link = &c->links[i];
        *link = (struct link){.cluster = c, .number = i};
        link->starter = evtimer_new(base, on_start, link);
    }
    output_init(&c->out);
    coordinator_begin(coordinator, clock_monotonic_ns(), &c->out);
    int code = find_workers(c);
    if (code) {
        cluster_free(c);
        return code;
    }
    add_events(c);
    *cluster = c;
    return 0;
}

int cluster_run(struct cluster *cluster) {
    drain(cluster);
    if (!cluster->code && coordinator_phase(cluster->coordinator) != PHASE_STOPPED)
        event_base_dispatch(cluster->base);
    event_del(cluster->interrupt); /* nobody would look at it before the workers are dismissed */
    event_del(cluster->terminate);
    return cluster->code;
}

static size_t queued(const struct cluster *cluster) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer)
            bytes += peer_queued(cluster->links[i].peer);
    return bytes;
}

void cluster_dismiss(struct cluster *cluster, const char *why) {
    int64_t deadline_ns = clock_monotonic_ns() + 2 * NS_PER_S;
    cluster->dismissed = true;
    coordinator_dismiss(cluster->coordinator, why, &cluster->out);
    send_messages(cluster);
    output_clear(&cluster->out);
    while (queued(cluster) && clock_monotonic_ns() < deadline_ns)
        event_base_loop(cluster->base, EVLOOP_ONCE);
}

static void event_drop(struct event *event) {
    if (event)
        event_free(event);
}

void cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    event_drop(cluster->ticker);
    event_drop(cluster->limit);
    event_drop(cluster->interrupt);
    event_drop(cluster->terminate);
    event_drop(cluster->child);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        event_drop(cluster->links[i].starter);
        if (cluster->links[i].peer)
            peer_free(cluster->links[i].peer);
    }
    free(cluster->links);
    output_release(&cluster->out);
    free(cluster);
}
