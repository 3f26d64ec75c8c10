#include "coordinator/run/cluster.h"

#include <assert.h>
#include <event2/event.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/run/cluster_parts.h"
#include "coordinator/run/loop.h"

#define TICK_MS 100
#define GUARD_PAUSE_NS (1 * NS_PER_S)
#define DISMISS_MS 2000
#define MANY_MESSAGES 32 /* of a turn of the loop, from which they are sent together */

/* ---- what a step asked for ---- */

void cluster_end(struct cluster *cluster, int code) {
    if (!cluster->code)
        cluster->code = code;
    event_base_loopbreak(cluster->base);
}

/* Hands the records of a step on. RECORD_WORKER is committed at once because the next coordinator
 * looks for the worker where this record says. */
static int carry_out(struct cluster *cluster) {
    struct output *out = &cluster->out;
    bool commit = false;
    int code = 0;
    for (uint32_t i = 0; i < out->record_count && !code; i++) {
        const struct record *record = &out->records[i];
        assert(record->kind != RECORD_WORKER ||
               record->worker.link < coordinator_links(cluster->coordinator));
        if (record->kind == RECORD_BUSY)
            link_note_busy(&cluster->links[record->busy], record->note);
        if (record->kind == RECORD_LEFT)
            link_note_left(&cluster->links[record->left]);
        if (record->kind == RECORD_WORKER)
            link_note_worker(&cluster->links[record->worker.link]);
        commit |= record->kind == RECORD_JOURNAL || record->kind == RECORD_ROLL_BACK ||
                  record->kind == RECORD_WORKER;
        code = cluster->options.record(cluster->options.context, cluster->coordinator, out, record);
        if (!code && record->kind == RECORD_START)
            code = link_note_start(&cluster->links[record->start.link], record);
    }
    if (commit && !code)
        code = cluster->options.commit(cluster->options.context);
    return code;
}

static struct peer *peer_of(const struct cluster *cluster, size_t message) {
    const uint32_t to = cluster->out.messages.envelopes[message].to;
    assert(to < coordinator_links(cluster->coordinator));
    return cluster->links[to].peer;
}

/* A message to a worker that is not connected is dropped: the machine is told of that. */
static void send_messages(const struct cluster *cluster) {
    const struct outbox *messages = &cluster->out.messages;
    /* Whether the shards get many messages at once: those of many verdicts. */
    bool small = messages->count >= MANY_MESSAGES;
    for (size_t i = 0; i < messages->count && small; i++)
        small = messages->envelopes[i].bulk.length == 0;
    bool many = small;
    for (size_t i = 0; i < messages->count; i++) {
        struct peer *peer = peer_of(cluster, i);
        if (peer && many)
            peer_hold(peer);
        if (peer)
            peer_send_envelope(peer, messages, &messages->envelopes[i]);
    }
    for (size_t i = 0; i < messages->count && many; i++) {
        struct peer *peer = peer_of(cluster, i);
        if (peer)
            peer_let_go(peer);
    }
}

/* Records first, then messages. A message may have effects in other processes at once; what it
 * relies on must be durable before that, or a coordinator that is killed in between would know less
 * than its workers.
 *
 * A coordinator that was stopped may have been replaced. It finds its sockets full of messages, and
 * must not act on them before it has looked. A tick looks as well, when it commits. */
static void drain(struct cluster *cluster) {
    const int64_t now_ns = clock_monotonic_ns();
    int code = 0;
    assert(!cluster->dismissed);
    if (!cluster->guarded_ns || now_ns - cluster->guarded_ns >= GUARD_PAUSE_NS) {
        cluster->guarded_ns = now_ns;
        code = guard_check();
    }
    coordinator_end_turn(cluster->coordinator, &cluster->out);
    if (!code)
        code = carry_out(cluster);
    if (!code)
        send_messages(cluster);
    output_clear(&cluster->out);
    enum coordinator_phase phase = coordinator_phase(cluster->coordinator);
    if (code || phase == PHASE_READ || phase == PHASE_STOPPED)
        cluster_end(cluster, code);
}

static void on_drain(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    drain(context);
}

void cluster_after_step(struct cluster *cluster, int code) {
    assert(!cluster->dismissed); /* the machine is asked nothing any more */
    if (!code && cluster->stopping)
        coordinator_stop(cluster->coordinator, cluster->stopping, clock_monotonic_ns(),
                         &cluster->out);
    if (!code && output_may_wait(&cluster->out)) {
        event_active(cluster->drainer, EV_TIMEOUT, 0); /* after what is active now */
        return;
    }
    drain(cluster);
    if (code)
        cluster_end(cluster, code);
}

/* Something of a copy was done: messages are to be sent, and perhaps the machine is to be told. */
static void on_copied(void *context, uint32_t worker, const struct message *message) {
    struct cluster *cluster = context;
    if (cluster->dismissed)
        return;
    cluster_after_step(cluster, message ? coordinator_step(cluster->coordinator, worker, message,
                                                           clock_monotonic_ns(), &cluster->out)
                                        : 0);
}

/* ---- timers and signals ---- */

/* A cancelled run stays cancelled: the time limit may pass while the last step is made durable. If
 * it took the place of the cancellation, a second Ctrl-C would count as the first, and a shard that
 * is lost meanwhile would turn the cancelled run into one that ends at its limit, with a model. */
static void stop(struct cluster *cluster, enum reason reason) {
    if (cluster->stopping != REASON_CANCELLED) {
        cluster->stopping = reason;
        cluster_after_step(cluster, 0);
    } else if (reason == REASON_CANCELLED) { /* again */
        coordinator_abandon(cluster->coordinator);
        cluster_end(cluster, 0);
    }
}

static void on_tick(evutil_socket_t descriptor, short events, void *context) {
    struct cluster *cluster = context;
    (void)descriptor, (void)events;
    if (cluster->options.hosts)
        links_watch_hosts(cluster);
    int code = cluster->options.tick(cluster->options.context, cluster->coordinator);
    if (!code)
        code = coordinator_tick(cluster->coordinator, clock_monotonic_ns(), &cluster->out);
    cluster_after_step(cluster, code);
    if (!code) {
        links_check_missing(cluster);
        elastic_check(cluster);
    }
}

static void on_limit(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    stop(context, REASON_TIME_LIMIT);
}

void cluster_cancel(struct cluster *cluster) {
    stop(cluster, REASON_CANCELLED);
}

/* ---- life ---- */

struct cluster *cluster_new(struct event_base *base, struct coordinator *coordinator,
                            const struct cluster_options *options) {
    struct cluster *c = memory_new(1, sizeof *c);
    const struct timeval tick = {.tv_usec = TICK_MS * 1000};
    assert(options->addresses && options->launched && options->launch);
    assert(options->record && options->commit && options->tick);
    *c = (struct cluster){.base = base, .coordinator = coordinator, .options = *options};
    c->kills = memory_kills();
    output_init(&c->out);
    const struct coordinator_settings *settings = coordinator_settings(coordinator);
    missing_init(&c->missing, options->addresses, settings->shards,
                 settings->replicas_most ? settings->replicas_most : settings->replicas);
    if (*settings->shards_folder)
        c->copier = copier_new(base, settings->shards_folder, settings->term, settings->shards,
                               &c->out.messages,
                               &(struct copier_callbacks){.passed = on_copied, .context = c});
    coordinator_begin(coordinator, clock_monotonic_ns(), &c->out);
    links_begin(c);
    elastic_begin(c);
    c->drainer = evtimer_new(base, on_drain, c);
    c->ticker = event_new(base, -1, EV_PERSIST, on_tick, c);
    event_add(c->ticker, &tick);
    if (isfinite(options->seconds_max)) {
        double seconds = fmin(fmax(options->seconds_max, 0), 1e9);
        struct timeval limit = {.tv_sec = (time_t)seconds,
                                .tv_usec = (suseconds_t)(fmod(seconds, 1) * 1e6)};
        c->limit = evtimer_new(base, on_limit, c);
        event_add(c->limit, &limit);
    }
    return c;
}

int cluster_run(struct cluster *cluster) {
    drain(cluster);
    if (!cluster->code && coordinator_phase(cluster->coordinator) != PHASE_STOPPED)
        event_base_dispatch(cluster->base);
    return cluster->code;
}

char *cluster_waits_for(const struct cluster *cluster) {
    if (cluster->dismissed)
        return NULL;
    char *text = missing_text(&cluster->missing);
    return text ? text : elastic_wait_for(cluster);
}

static bool all_sent(const void *context) {
    const struct cluster *cluster = context;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer && peer_queued(cluster->links[i].peer))
            return false;
    return true;
}

/* From here on nothing is asked of the machine and no worker is started. Connections stay open, so
 * that BYE can be sent; what arrives on them is ignored. */
void cluster_dismiss(struct cluster *cluster, const char *why, bool again) {
    if (cluster->dismissed)
        return;
    cluster->dismissed = true;
    links_rest(cluster);
    elastic_free(cluster);
    output_clear(&cluster->out); /* messages whose records were not carried out */
    event_del(cluster->drainer);
    event_del(cluster->ticker);
    if (cluster->limit)
        event_del(cluster->limit);
    coordinator_dismiss(cluster->coordinator, why, again, &cluster->out);
    send_messages(cluster);
    output_clear(&cluster->out);
    loop_until(cluster->base, DISMISS_MS, all_sent, cluster);
}

void cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    event_free(cluster->drainer);
    event_free(cluster->ticker);
    if (cluster->limit)
        event_free(cluster->limit);
    elastic_free(cluster);
    links_free(cluster);
    copier_free(cluster->copier);
    missing_release(&cluster->missing);
    output_release(&cluster->out);
    free(cluster);
}
