/* The inside of the rim (cluster.h): its connections, and its end. For cluster*.c alone. */
#include "coordinator/run/cluster.h"

#include <event2/event.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/memory_limit.h"
#include "coordinator/job/sizing.h"
#include "coordinator/run/awaiting.h"
#include "coordinator/run/slurm.h"
#include "coordinator/run/launch.h"
#include "coordinator/run/loop.h"
#include "wire/connecting.h"
#include "wire/peer.h"

struct event;

/* Everything here runs in the thread of the event loop. Sockets, timers, SIGCHLD and the launcher
 * call it one after the other. */

/* The connection to one worker, over all processes that take that worker's place. */

struct worker_link {
    struct cluster *cluster;
    uint32_t number;
    struct peer *peer;             /* NULL while there is no connection */
    struct connecting *connecting; /* a connection that is being made, or NULL */
    struct event *starter;         /* starts the worker anew and connects */
    char *lost;           /* why the connection ended, if the machine is not told yet; or NULL */
    struct event *teller; /* tells the machine that the connection ended */
};

struct cluster {
    struct event_base *base;
    struct coordinator *coordinator;
    struct cluster_options options;
    struct worker_link *links;
    struct awaiting awaiting; /* workers that someone else starts */
    struct output out;
    struct event *ticker, *limit;
    int64_t guarded_ns;    /* when guard_check() was asked last */
    struct event *drainer; /* carries out what may_wait() at the end of this turn of the loop */
    enum reason stopping;  /* the reason to stop for, REASON_NONE if none */
    struct starving starving;
    bool dismissed;
    int code; /* what the run ends with */
};

/* Sends the messages of the last step. */
void cluster_send(struct cluster *cluster);

#define CONNECT_TIMEOUT_MS 5000
#define TICK_MS 100
#define RETRY_MS 500       /* between attempts to connect to a worker that someone else starts */
#define RETRY_RARE_MS 5000 /* the same, when nobody waits for it any more */
#define GUARD_PAUSE_NS (1 * NS_PER_S)
#define LAST_WORDS_MS 20 /* to wait, after a connection ended, for the end of its process */

static void end(struct cluster *cluster, int code) {
    if (!cluster->code)
        cluster->code = code;
    event_base_loopbreak(cluster->base);
}

/* ---- what a step asked for ---- */

static void start_soon(struct worker_link *link, int64_t delay_ms) {
    struct timeval delay = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
    event_add(link->starter, &delay);
}

/* A worker that is to be started is started in a later turn of the loop, when all records and
 * messages of this step are dealt with; one of a host where and when `hosts` says. One that someone
 * else started may be started again by them: it is waited for. */
static int note_start(struct cluster *cluster, const struct record *record) {
    uint32_t number = record->start.link;
    struct hosts *hosts = cluster->options.hosts;
    if (!cluster->options.launched[number])
        awaiting_begin(&cluster->awaiting, number, clock_monotonic_ns(),
                       coordinator_settings(cluster->coordinator)->reconnect_seconds);
    if (hosts)
        launch_stop(cluster->options.launched[number]); /* the next start may be far off */
    int64_t delay_ms = 0;
    int code = hosts ? hosting_next(hosts, number, record->start.why, &delay_ms) : 0;
    if (!code)
        start_soon(&cluster->links[number], delay_ms);
    return code;
}

/* A worker of our own that serves another run is none of ours: another one takes its place. */
static void note_busy(struct cluster *cluster, uint32_t number, const char *why) {
    bool own = cluster->options.launched[number];
    if (!own) {
        char *text = memory_format("%s: %s", cluster->options.addresses[number], why);
        awaiting_failed(&cluster->awaiting, number, text);
        free(text);
    }
    start_soon(&cluster->links[number], own ? 0 : RETRY_MS);
}

static void note_worker(struct cluster *cluster, uint32_t number) {
    if (!coordinator_worker(cluster->coordinator, number).welcomed)
        return;
    awaiting_came(&cluster->awaiting, number);
    if (cluster->options.hosts)
        hosts_came(cluster->options.hosts, number, clock_monotonic_ns());
}

/* Hands the records of a step on. RECORD_WORKER is committed at once because the next coordinator
 * looks for the worker where this record says. */
static int carry_out(struct cluster *cluster) {
    struct output *out = &cluster->out;
    bool commit = false;
    int code = 0;
    for (uint32_t i = 0; i < out->record_count && !code; i++) {
        const struct record *record = &out->records[i];
        if (record->kind == RECORD_BUSY)
            note_busy(cluster, record->busy, record->note);
        if (record->kind == RECORD_WORKER)
            note_worker(cluster, record->worker.link);
        commit |= record->kind == RECORD_JOURNAL || record->kind == RECORD_ROLL_BACK ||
                  record->kind == RECORD_WORKER;
        code = cluster->options.record(cluster->options.context, cluster->coordinator, out, record);
        if (!code && record->kind == RECORD_START)
            code = note_start(cluster, record);
    }
    if (commit && !code)
        code = cluster->options.commit(cluster->options.context);
    return code;
}

/* A coordinator that was stopped may have been replaced. It finds its sockets full of messages, and
 * must not act on them before it has looked. A tick looks as well, when it commits. */
static int check_guard(struct cluster *cluster) {
    int64_t now_ns = clock_monotonic_ns();
    if (cluster->guarded_ns && now_ns - cluster->guarded_ns < GUARD_PAUSE_NS)
        return 0;
    cluster->guarded_ns = now_ns;
    return guard_check();
}

/* Records first, then messages. A message may have effects in other processes at once; what it
 * relies on must be durable before that, or a coordinator that is killed in between would know less
 * than its workers. */
static void drain(struct cluster *cluster) {
    int code = check_guard(cluster);
    if (!code)
        code = carry_out(cluster);
    if (!code)
        cluster_send(cluster);
    output_clear(&cluster->out);
    enum coordinator_phase phase = coordinator_phase(cluster->coordinator);
    if (code || phase == PHASE_READ || phase == PHASE_STOPPED)
        end(cluster, code);
}

/* Whether the output may wait for that of other messages that are there already: then one commit
 * does for all their verdicts. Records with data that are valid in this step only cannot wait. */
static bool may_wait(const struct output *out) {
    bool journals = false;
    for (uint32_t i = 0; i < out->record_count; i++) {
        enum record_kind kind = out->records[i].kind;
        if (kind != RECORD_JOURNAL && kind != RECORD_PORTION)
            return false;
        journals |= kind == RECORD_JOURNAL;
    }
    return journals;
}

static void on_drain(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    drain(context);
}

static void after_step(struct cluster *cluster, int code) {
    if (!code && cluster->stopping)
        coordinator_stop(cluster->coordinator, cluster->stopping, clock_monotonic_ns(),
                         &cluster->out);
    if (!code && may_wait(&cluster->out)) {
        event_active(cluster->drainer, EV_TIMEOUT, 0); /* behind what is active now */
        return;
    }
    drain(cluster);
    if (code)
        end(cluster, code);
}

/* ---- connections ---- */

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct worker_link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    if (cluster->dismissed)
        return;
    after_step(cluster, coordinator_step(cluster->coordinator, link->number, message,
                                         clock_monotonic_ns(), &cluster->out));
}

/* Tells the machine that the worker is gone, and why. */
static void lose(struct worker_link *link, const char *why, enum ending kind) {
    struct coordinator *c = link->cluster->coordinator;
    struct output *out = &link->cluster->out;
    int64_t now = clock_monotonic_ns();
    bool refused = kind == ENDED_REFUSED;
    int code = kind == ENDED ? coordinator_lost(c, link->number, why, now, out)
                             : coordinator_starved(c, link->number, why, refused, now, out);
    after_step(link->cluster, code);
}

/* The worker is not there, and an error says why: on another host it may be. */
static void fail(struct worker_link *link, int code) {
    if (!link->cluster->options.hosts) {
        end(link->cluster, code);
        return;
    }
    char *why = memory_copy_string(error_text());
    error_clear();
    lose(link, why, ENDED);
    free(why);
}

/* Tells the machine that a connection ended, or how the process did, if that is known by now. */
static void tell_lost(struct worker_link *link) {
    const struct launched *launched = link->cluster->options.launched[link->number];
    bool ended = launched && !launched->adopted && !launched->pid;
    enum ending kind = ENDED;
    char *why = ended ? starving_ending(&link->cluster->starving, launched, &kind)
                      : memory_copy_string(link->lost);
    free(link->lost);
    link->lost = NULL;
    event_del(link->teller);
    lose(link, why, kind);
    free(why);
}

static void on_teller(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    tell_lost(context);
}

/* When a process dies, the system first closes its sockets and then sends SIGCHLD to its parent. So
 * the end of the connection comes first, but "was killed by signal 9" says more than "closed by the
 * other end". The machine is told when SIGCHLD was handled (on_ended), or after LAST_WORDS_MS: the
 * process may live and only have closed the connection. */
static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct worker_link *link = context;
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

static bool any_replica(const struct cluster *cluster) {
    const struct coordinator *c = cluster->coordinator;
    uint32_t i = coordinator_settings(c)->shards;
    while (i < coordinator_links(c) && !coordinator_worker(c, i).welcomed)
        i++;
    return i < coordinator_links(c);
}

static void check_awaited(struct cluster *cluster) {
    int code = awaiting_check(&cluster->awaiting, any_replica(cluster), clock_monotonic_ns());
    if (code)
        end(cluster, code);
}

/* A worker of our own that does not answer has died: the machine has it started anew. A wrong key
 * is told at once: waiting does not help. */
static void not_connected(struct worker_link *link, int code) {
    struct cluster *cluster = link->cluster;
    if (cluster->options.hosts) {
        fail(link, ERROR_UNAVAILABLE);
        return;
    }
    if (cluster->options.launched[link->number]) {
        error_clear();
        lose(link, "it ended before it was connected to", ENDED);
        return;
    }
    if (code == ERROR_PERMISSION && awaiting_is_new(&cluster->awaiting, link->number, error_text()))
        log_warning("%s", error_text());
    awaiting_failed(&cluster->awaiting, link->number, error_text());
    error_clear();
    start_soon(link, awaiting_gave_up(&cluster->awaiting, link->number) ? RETRY_RARE_MS : RETRY_MS);
    check_awaited(cluster);
}

static void on_connected(void *context, int code, struct channel *channel) {
    static const struct peer_callbacks callbacks = {.message = on_message, .closed = on_closed};
    struct worker_link *link = context;
    struct cluster *cluster = link->cluster;
    link->connecting = NULL;
    if (code) {
        not_connected(link, code);
        return;
    }
    link->peer = peer_new(cluster->base, channel, &callbacks, link);
    coordinator_opened(cluster->coordinator, link->number, clock_monotonic_ns(), &cluster->out);
    after_step(cluster, 0);
}

static void connect_link(struct worker_link *link) {
    struct cluster *cluster = link->cluster;
    connecting_free(link->connecting);
    link->connecting = connecting_new(cluster->base, cluster->options.addresses[link->number],
                                      cluster->options.tls, CONNECT_TIMEOUT_MS, on_connected, link);
}

/* ---- workers of our own ---- */

static struct worker_link *link_of(struct cluster *cluster, const struct launched *launched) {
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->options.launched[i] == launched)
            return &cluster->links[i];
    return NULL;
}

static void on_up(void *context, struct launched *launched, int code) {
    struct cluster *cluster = context;
    struct worker_link *link = link_of(cluster, launched);
    if (!link) {
        if (code)
            end(cluster, code);
    } else if (code) {
        fail(link, code);
    } else {
        cluster->options.addresses[link->number] = launched->address;
        connect_link(link);
    }
}

static void on_ended(void *context, struct launched *launched) {
    struct worker_link *link = link_of(context, launched);
    if (link && link->lost)
        tell_lost(link);
}

static int restart(struct worker_link *link, struct launched *launched) {
    struct cluster *cluster = link->cluster;
    struct hosts *hosts = cluster->options.hosts;
    if (hosts)
        hosts_started(hosts, link->number, clock_monotonic_ns());
    int code = launch_restart(cluster->options.launch, launched,
                              hosts ? hosts_of(hosts, link->number) : NULL);
    cluster->options.addresses[link->number] = launched->address;
    return code;
}

/* Starts the worker anew, or connects to it anew. The machine has given the former process up. It
 * may still send or close its connection, so the connection and whatever is known of its end are
 * dropped first: they must not be taken for those of the new process. */
static void on_start(evutil_socket_t descriptor, short events, void *context) {
    struct worker_link *link = context;
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
        connect_link(link);
    if (code)
        fail(link, code);
}

/* The worker is started now, not when it was going to be. */
static void hasten(struct worker_link *link, int64_t now_ns) {
    struct hosts *hosts = link->cluster->options.hosts;
    struct worker_view worker = coordinator_worker(link->cluster->coordinator, link->number);
    const char *before = hosts_of(hosts, link->number)->name;
    hosts_hasten(hosts, link->number, now_ns);
    const char *now = hosts_of(hosts, link->number)->name;
    log_info("%s %u is started on %s at once: %s %s", role_name(worker.role), worker.index, now,
             before, now == before ? "may be back" : "does not answer");
    start_soon(link, 0);
}

/* A shard that all wait for goes where a host answers, and nobody waits for a host that is back. */
static void watch_hosts(struct cluster *cluster) {
    struct hosts *hosts = cluster->options.hosts;
    int64_t now_ns = clock_monotonic_ns();
    uint32_t late;
    hosts_tick(hosts, now_ns);
    while ((late = hosts_late(hosts, now_ns)) != HOSTS_NONE && !cluster->links[late].peer)
        hasten(&cluster->links[late], now_ns);
    if (late != HOSTS_NONE)
        lose(&cluster->links[late], "it does not answer", ENDED);
}

/* ---- timers and signals ---- */

/* A cancelled run stays cancelled: the time limit may pass while the last step is made durable. If
 * it took the place of the cancellation, a second Ctrl-C would count as the first, and a shard that
 * is lost meanwhile would turn the cancelled run into one that ends at its limit, with a model. */
static void stop(struct cluster *cluster, enum reason reason) {
    if (cluster->stopping != REASON_CANCELLED) {
        cluster->stopping = reason;
        after_step(cluster, 0);
    } else if (reason == REASON_CANCELLED) { /* again */
        coordinator_abandon(cluster->coordinator);
        end(cluster, 0);
    }
}

static void on_tick(evutil_socket_t descriptor, short events, void *context) {
    struct cluster *cluster = context;
    (void)descriptor, (void)events;
    if (cluster->options.hosts)
        watch_hosts(cluster);
    int code = cluster->options.tick(cluster->options.context, cluster->coordinator);
    if (!code)
        code = coordinator_tick(cluster->coordinator, clock_monotonic_ns(), &cluster->out);
    after_step(cluster, code);
    if (!code)
        check_awaited(cluster);
}

static void on_limit(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    stop(context, REASON_TIME_LIMIT);
}

void cluster_cancel(struct cluster *cluster) {
    stop(cluster, REASON_CANCELLED);
}

static void add_events(struct cluster *cluster) {
    struct timeval tick = {.tv_usec = TICK_MS * 1000};
    cluster->drainer = evtimer_new(cluster->base, on_drain, cluster);
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

/* It has ended, or could not be started: it is started anew, on a host when that is due. */
static void begin_start(struct worker_link *link) {
    const struct hosts *hosts = link->cluster->options.hosts;
    int64_t now_ns = clock_monotonic_ns();
    int64_t when_ns = hosts ? hosts_due(hosts, link->number) : now_ns;
    start_soon(link, when_ns > now_ns ? (when_ns - now_ns) / NS_PER_MS : 0);
}

/* Connects to all workers that listen. A worker that is being started does not listen yet: on_up()
 * connects to it. */
static void find_workers(struct cluster *cluster) {
    struct launch_callbacks callbacks = {.up = on_up, .ended = on_ended, .context = cluster};
    launch_listen(cluster->options.launch, &callbacks);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        const struct launched *launched = cluster->options.launched[i];
        if (!launched)
            awaiting_begin(&cluster->awaiting, i, clock_monotonic_ns(),
                           cluster->options.wait_seconds);
        if (!launched || (!launched->starting && launch_runs(launched)))
            connect_link(&cluster->links[i]);
        else if (!launched->starting)
            begin_start(&cluster->links[i]);
    }
}

struct cluster *cluster_new(struct event_base *base, struct coordinator *coordinator,
                            const struct cluster_options *options) {
    struct cluster *c = memory_new(1, sizeof *c);
    uint32_t links = coordinator_links(coordinator);
    *c = (struct cluster){.base = base, .coordinator = coordinator, .options = *options};
    c->starving = starving_begin(&options->need);
    c->links = memory_new(links, sizeof *c->links);
    for (uint32_t i = 0; i < links; i++) {
        struct worker_link *link = &c->links[i];
        *link = (struct worker_link){.cluster = c, .number = i};
        link->starter = evtimer_new(base, on_start, link);
        link->teller = evtimer_new(base, on_teller, link);
        if (options->hosts && launch_runs(options->launched[i])) /* nobody could come before this */
            hosts_started(options->hosts, i, clock_monotonic_ns());
    }
    output_init(&c->out);
    awaiting_init(&c->awaiting, options->addresses, coordinator_settings(coordinator)->shards,
                  coordinator_settings(coordinator)->replicas);
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

char *cluster_awaited(const struct cluster *cluster) {
    return cluster->dismissed ? NULL : awaiting_text(&cluster->awaiting);
}

/* Sending what a step of the machine asked for. */

#define MANY_MESSAGES 32 /* of a turn of the loop, from which they are sent together */

/* Whether the shards get many messages at once: those of many verdicts. */
static bool are_many(const struct outbox *messages) {
    bool small = messages->count >= MANY_MESSAGES;
    for (size_t i = 0; i < messages->count && small; i++)
        small = messages->envelopes[i].bulk.length == 0;
    return small;
}

static struct peer *peer_of(const struct cluster *cluster, size_t message) {
    return cluster->links[cluster->out.messages.envelopes[message].to].peer;
}

void cluster_send(struct cluster *cluster) {
    const struct outbox *messages = &cluster->out.messages;
    bool many = are_many(messages);
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

/* How a worker of this machine ended: perhaps for lack of memory. */

struct starving {
    struct memory_need need; /* of the run */
    uint64_t kills;          /* memory_kills() when it was asked last */
};

struct starving starving_begin(const struct memory_need *need);

enum ending {
    ENDED,         /* otherwise */
    ENDED_KILLED,  /* the system has killed a process for want of memory since it was asked last */
    ENDED_REFUSED, /* it was refused memory, and said so by its status */
};

/* How the process ended, to complete "replica 2 …" where memory is why, else "replica 2 was lost:
 * …". Free it. */
char *starving_ending(struct starving *starving, const struct launched *launched,
                      enum ending *kind);

struct starving starving_begin(const struct memory_need *need) {
    return (struct starving){*need, memory_kills()};
}

char *starving_ending(struct starving *starving, const struct launched *launched,
                      enum ending *kind) {
    int status = launched->status;
    uint64_t before = starving->kills;
    bool refused = WIFEXITED(status) && WEXITSTATUS(status) == MEMORY_STATUS;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        starving->kills = memory_kills();
    *kind = refused ? ENDED_REFUSED : starving->kills > before ? ENDED_KILLED : ENDED;
    return *kind == ENDED ? memory_format("it %s", launch_ending(launched))
                          : memory_need_unmet(&starving->need, launched->role == ROLE_SHARD);
}

/* How the rim ends: workers are told to exit, and everything is released. */

#define DISMISS_MS 2000

static bool all_sent(const void *context) {
    const struct cluster *cluster = context;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer && peer_queued(cluster->links[i].peer))
            return false;
    return true;
}

/* From here on nothing is asked of the machine and no worker is started. Connections stay open, so
 * that BYE can be sent; what arrives on them is ignored. */
static void come_to_rest(struct cluster *cluster) {
    cluster->dismissed = true;
    launch_listen(cluster->options.launch, NULL);
    output_clear(&cluster->out); /* messages whose records were not carried out */
    event_del(cluster->drainer);
    event_del(cluster->ticker);
    if (cluster->limit)
        event_del(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_del(link->starter);
        event_del(link->teller);
        connecting_free(link->connecting);
        link->connecting = NULL;
    }
}

void cluster_dismiss(struct cluster *cluster, const char *why, bool again) {
    if (cluster->dismissed)
        return;
    come_to_rest(cluster);
    coordinator_dismiss(cluster->coordinator, why, again, &cluster->out);
    cluster_send(cluster);
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
    event_drop(cluster->drainer);
    event_drop(cluster->ticker);
    event_drop(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_drop(link->starter);
        event_drop(link->teller);
        connecting_free(link->connecting);
        peer_free(link->peer);
        free(link->lost);
    }
    free(cluster->links);
    awaiting_release(&cluster->awaiting);
    output_release(&cluster->out);
    free(cluster);
}
