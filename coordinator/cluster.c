#include "coordinator/cluster.h"

#include <event2/event.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/peer.h"

#define CONNECT_TIMEOUT_MS 5000
#define TICK_MS 100

struct link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer; /* NULL once it is gone */
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

static const char *worker_text(const struct cluster *cluster, uint32_t link) {
    static char text[64];
    const struct worker *worker = &cluster->coordinator->workers[link];
    snprintf(text, sizeof text, "%s %u", role_name(worker->role), worker->index);
    return text;
}

/* Sends and records what the last step asked for. */
static void drain(struct cluster *cluster) {
    struct output *out = &cluster->out;
    for (size_t i = 0; i < out->messages.count; i++) {
        const struct envelope *envelope = &out->messages.envelopes[i];
        struct peer *peer = cluster->links[envelope->to].peer;
        if (peer)
            peer_send_envelope(peer, &out->messages, envelope);
    }
    int code = 0;
    for (uint32_t i = 0; i < out->record_count && !code; i++)
        code = cluster->options.record(cluster->options.context, cluster->coordinator,
                                       &out->records[i]);
    output_clear(out);
    if (code)
        end(cluster, code);
    else if (cluster->coordinator->phase == PHASE_READ)
        end(cluster, 0);
}

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    int code = coordinator_step(cluster->coordinator, link->number, message, clock_monotonic_ns(),
                                &cluster->out);
    if (cluster->stopping)
        coordinator_stop(cluster->coordinator, cluster->stopping, &cluster->out);
    drain(cluster);
    if (code)
        end(cluster, code);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    link->peer = NULL;
    if (cluster->dismissed)
        return;
    end(cluster, error_set(ERROR_UNAVAILABLE, "lost %s: %s; run the same command again",
                           worker_text(cluster, link->number), reason));
}

/* ---- timers and signals ---- */

static void stop(struct cluster *cluster, enum reason reason) {
    cluster->stopping = reason;
    if (reason == REASON_CANCELLED) {
        /* Nothing is read from the shards: the run is left where it can be taken up. */
        end(cluster, 0);
        return;
    }
    coordinator_stop(cluster->coordinator, reason, &cluster->out);
    drain(cluster);
}

static void on_tick(evutil_socket_t descriptor, short events, void *context) {
    struct cluster *cluster = context;
    (void)descriptor;
    (void)events;
    int code = cluster->options.tick(cluster->options.context, cluster->coordinator);
    if (code)
        end(cluster, code);
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

static void on_child(evutil_socket_t number, short events, void *context) {
    struct cluster *cluster = context;
    (void)number;
    (void)events;
    struct launched *worker = launch_reap(cluster->options.launch);
    if (!worker || cluster->dismissed)
        return;
    end(cluster, error_set(ERROR_UNAVAILABLE, "%s %u %s; run the same command again",
                           role_name(worker->role), worker->index, launch_ending(worker)));
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
    event_add(cluster->interrupt, NULL);
    event_add(cluster->terminate, NULL);
    if (cluster->options.launch) {
        cluster->child = evsignal_new(cluster->base, SIGCHLD, on_child, cluster);
        event_add(cluster->child, NULL);
    }
}

/* ---- life ---- */

static int connect_link(struct cluster *cluster, uint32_t number) {
    static const struct peer_callbacks callbacks = {.message = on_message, .closed = on_closed};
    struct link *link = &cluster->links[number];
    int descriptor;
    *link = (struct link){.cluster = cluster, .number = number};
    int code = address_connect(cluster->options.addresses[number], CONNECT_TIMEOUT_MS, &descriptor);
    if (code)
        return code;
    link->peer = peer_new(cluster->base, descriptor, &callbacks, link);
    coordinator_opened(cluster->coordinator, number, &cluster->out);
    return 0;
}

int cluster_new(struct event_base *base, struct coordinator *coordinator,
                const struct cluster_options *options, struct cluster **cluster) {
    struct cluster *c = memory_new(1, sizeof *c);
    uint32_t links = coordinator_links(coordinator);
    *c = (struct cluster){.base = base, .coordinator = coordinator, .options = *options};
    c->links = memory_new(links, sizeof *c->links);
    output_init(&c->out);
    int code = 0;
    for (uint32_t i = 0; i < links && !code; i++)
        code = connect_link(c, i);
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
    event_base_dispatch(cluster->base);
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
    drain(cluster);
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
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer)
            peer_free(cluster->links[i].peer);
    free(cluster->links);
    output_release(&cluster->out);
    free(cluster);
}
