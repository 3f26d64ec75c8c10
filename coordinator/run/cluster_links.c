/* The connections of the coordinator's shell, and the processes at their other ends: connecting,
 * losing, starting anew, on this machine or on hosts. */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/resources.h"
#include "coordinator/run/cluster_parts.h"
#include "coordinator/run/host_lookup.h"
#include "wire/frame.h"

#define CONNECT_TIMEOUT_MS 5000
#define RETRY_MS 500       /* between attempts to connect to a worker that someone else starts */
#define RETRY_RARE_MS 5000 /* between attempts where nobody waits for the worker */
#define RESTART_MS 50      /* between two starts of our own that came to nothing; doubles */
#define RESTART_RARE_MS 60000
#define LEFT_MS 1000 /* to send a replica that has left what is under way, and to hear it close */
#define LAST_WORDS_MS 20 /* to wait, after a connection ended, for the end of its process */

static void start_soon(struct worker_link *link, int64_t delay_ms) {
    struct timeval delay = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
    event_add(link->starter, &delay);
}

/* ---- what the machine asked for ---- */

/* How long to wait before a worker that was lost is started or connected to again. One that was at
 * work is replaced at once. One that was there and did not greet would not do so now either: it may
 * be of another version, while programs are replaced on disk. So pauses grow. */
static int64_t pause_ms(const struct worker_link *link) {
    const bool own = link->cluster->options.launched[link->number];
    const int64_t most = own ? RESTART_RARE_MS : RETRY_RARE_MS;
    const uint32_t before = link->ungreeted - own; /* the first start of our own follows at once */
    int64_t pause = own ? RESTART_MS : RETRY_MS;
    if (link->ungreeted <= own)
        return 0;
    for (uint32_t i = 1; i < before && pause < most; i++)
        pause *= 2;
    return pause < most ? pause : most;
}

/* Why a worker that others started is not there although something listens at its address. */
static void note_useless(struct worker_link *link, const char *why) {
    struct cluster *cluster = link->cluster;
    char *text = memory_format("%s: %s", cluster->options.addresses[link->number], why);
    missing_failed(&cluster->missing, link->number, text);
    free(text);
}

/* A worker that is to be started is started in a later turn of the loop, when all records and
 * messages of this step are dealt with; one of a host where and when `hosts` says. One that someone
 * else started may be started again by them: it is waited for. */
int link_note_start(struct worker_link *link, const struct record *record) {
    const struct cluster *cluster = link->cluster;
    struct launched *launched = cluster->options.launched[link->number];
    struct hosts *hosts = cluster->options.hosts;
    const bool refused = !record->start.met && link->peer && !launched; /* by us or by it */
    assert(record->kind == RECORD_START && record->start.link == link->number);
    if (refused) {
        link->ungreeted++;
        note_useless(link, record->start.why);
    }
    if (!launched)
        missing_begin(&link->cluster->missing, link->number, clock_monotonic_ns(),
                      link->address
                          ? elastic_wait_seconds(cluster)
                          : coordinator_settings(cluster->coordinator)->reconnect_seconds);
    if (hosts)
        launch_stop(launched); /* the next start may be far off */
    int64_t delay_ms = hosts ? 0 : pause_ms(link);
    int code = hosts ? hosts_next_start(hosts, link->number, record->start.why, &delay_ms) : 0;
    if (!code)
        start_soon(link, delay_ms);
    return code;
}

/* A worker of our own that serves another run is none of ours: another one takes its place. */
void link_note_busy(struct worker_link *link, const char *why) {
    bool own = link->cluster->options.launched[link->number];
    if (!own)
        note_useless(link, why);
    start_soon(link, own ? 0 : RETRY_MS);
}

void link_note_left(struct worker_link *link) {
    link->left = true;
    link->missed = 0;
    missing_came(&link->cluster->missing, link->number); /* nobody waits for it */
    set_service_forget(&link->cluster->sets, link->number);
    dial_free(link->dial);
    link->dial = NULL;
    start_soon(link, LEFT_MS);
}

void link_note_worker(struct worker_link *link) {
    struct cluster *cluster = link->cluster;
    if (!coordinator_worker(cluster->coordinator, link->number).welcomed)
        return;
    link->came = true;
    link->ungreeted = 0;
    missing_came(&cluster->missing, link->number);
    if (cluster->options.hosts)
        hosts_worker_up(cluster->options.hosts, link->number, clock_monotonic_ns());
}

/* ---- how workers are lost ---- */

enum process_end {
    ENDED,        /* otherwise */
    ENDED_KILLED, /* the system has killed a process for lack of memory since the last end */
    ENDED_REFUSED_MEMORY, /* it was refused memory, and said so by its status */
};

/* Tells the machine that the worker is gone, and why. */
static void lose(struct worker_link *link, const char *why, enum process_end end) {
    struct coordinator *c = link->cluster->coordinator;
    struct output *out = &link->cluster->out;
    int64_t now = clock_monotonic_ns();
    bool refused = end == ENDED_REFUSED_MEMORY;
    if (link->cluster->copier)
        copier_lost(link->cluster->copier, link->number);
    if (!coordinator_worker(c, link->number).welcomed) {
        link->ungreeted++;
        if (!link->cluster->options.launched[link->number])
            note_useless(link, why);
    }
    int code = end == ENDED ? coordinator_lost(c, link->number, why, now, out)
                            : coordinator_starved(c, link->number, why, refused, now, out);
    cluster_after_step(link->cluster, code);
}

/* The worker is not there, and an error says why: on another host it may be. Here it may be later,
 * if it once was there: its program may just be replaced on disk. */
static void lose_by_error(struct worker_link *link, int code) {
    if (!link->cluster->options.hosts && !link->came) {
        cluster_end(link->cluster, code);
        return;
    }
    char *why = memory_copy_string(error_text());
    error_clear();
    lose(link, why, ENDED);
    free(why);
}

/* Tells the machine that a connection ended, or how the process did, if that is known by now: to
 * complete "replica 2 …" where memory is why, else "replica 2 was lost: …". The system does not say
 * which process it killed for lack of memory, but counts them. */
static void report_lost(struct worker_link *link) {
    struct cluster *cluster = link->cluster;
    const struct launched *launched = cluster->options.launched[link->number];
    enum process_end end = ENDED;
    char *why = link->lost;
    assert(link->lost && !link->peer);
    link->lost = NULL;
    if (launched && !launched->adopted && !launched->pid) {
        const int status = launched->status;
        const uint64_t before = cluster->kills;
        bool refused = WIFEXITED(status) && WEXITSTATUS(status) == MEMORY_STATUS;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            cluster->kills = memory_kills();
        end = refused ? ENDED_REFUSED_MEMORY : cluster->kills > before ? ENDED_KILLED : ENDED;
        free(why);
        why = end == ENDED
                  ? memory_format("it %s", launch_ending(launched))
                  : memory_need_unmet(&cluster->options.need, launched->role == ROLE_SHARD);
    }
    event_del(link->teller);
    lose(link, why, end);
    free(why);
}

static void on_teller(evutil_socket_t descriptor, short events, void *context) {
    (void)descriptor, (void)events;
    report_lost(context);
}

/* When a process dies, the system first closes its sockets and then sends SIGCHLD to its parent. So
 * the end of the connection comes first, but "was killed by signal 9" says more than "closed by the
 * other end". The machine is told when SIGCHLD was handled (on_ended), or after LAST_WORDS_MS: the
 * process may live and only have closed the connection. */
static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct worker_link *link = context;
    const struct launched *launched = link->cluster->options.launched[link->number];
    struct timeval moment = {.tv_usec = LAST_WORDS_MS * 1000};
    assert(peer == link->peer && !link->lost);
    link->peer = NULL;
    set_service_forget(&link->cluster->sets, link->number);
    if (link->cluster->dismissed || link->left)
        return;
    /* A worker of an older version, which does not know how to say so, just closes it. */
    if (!coordinator_worker(link->cluster->coordinator, link->number).welcomed &&
        (!strcmp(reason, FRAME_CLOSED) || !strcmp(reason, strerror(ECONNRESET))))
        reason = "it closed the connection before it greeted, as another version of dml does";
    link->lost = memory_copy_string(reason);
    if (launched && !launched->adopted && launched->pid)
        event_add(link->teller, &moment);
    else
        report_lost(link);
}

void links_check_missing(struct cluster *cluster) {
    const struct coordinator *c = cluster->coordinator;
    uint32_t replica = coordinator_settings(c)->shards;
    while (replica < coordinator_links(c) && !coordinator_worker(c, replica).welcomed)
        replica++;
    int code =
        missing_check(&cluster->missing, replica < coordinator_links(c), clock_monotonic_ns());
    if (code)
        cluster_end(cluster, code);
}

/* ---- connecting ---- */

/* ---- a set by messages ---- */

#define ANSWERS_QUEUED_MAX (4 * SET_PIECE_BYTES_MAX) /* bytes of one worker */
#define SERVE_AGAIN_MS 5 /* where nobody who asks has taken the answers before */

static bool takes_answers(const void *context, uint32_t link) {
    const struct cluster *cluster = context;
    const struct peer *peer = cluster->links[link].peer;
    return peer && peer_queued(peer) < ANSWERS_QUEUED_MAX;
}

static void on_serve(evutil_socket_t descriptor, short events, void *context) {
    struct cluster *cluster = context;
    struct message answer;
    uint32_t link;
    (void)descriptor, (void)events;
    if (set_service_answer(&cluster->sets, takes_answers, cluster, &link, &answer)) {
        answer.term = coordinator_settings(cluster->coordinator)->term;
        peer_send(cluster->links[link].peer, &answer);
    }
    const struct timeval now = {0}, later = {.tv_usec = SERVE_AGAIN_MS * 1000};
    bool more = cluster->sets.count > 0, anybody = false;
    for (uint32_t i = 0; i < cluster->sets.count && !anybody; i++)
        anybody = takes_answers(cluster, cluster->sets.questions[i].link);
    if (more)
        event_add(cluster->server, anybody ? &now : &later);
}

/* A replica of this term asks; one of another is fenced out, or is about to hear of this one. */
static void ask_for_set(struct worker_link *link, const struct message *message) {
    struct cluster *cluster = link->cluster;
    const struct worker_view worker = coordinator_worker(cluster->coordinator, link->number);
    if (worker.role != ROLE_REPLICA || !worker.welcomed ||
        message->term != coordinator_settings(cluster->coordinator)->term)
        return;
    set_service_ask(&cluster->sets, link->number, &message->read_set);
    if (!event_pending(cluster->server, EV_TIMEOUT, NULL))
        event_add(cluster->server, &(struct timeval){0});
}

static void on_worker_message(void *context, struct peer *peer, const struct message *message) {
    struct worker_link *link = context;
    struct cluster *cluster = link->cluster;
    (void)peer;
    if (cluster->dismissed)
        return;
    if (message->type == MESSAGE_READ_SET) {
        ask_for_set(link, message);
        return;
    }
    if (cluster->copier)
        message = copier_take(cluster->copier, link->number, message);
    cluster_after_step(cluster, message
                                    ? coordinator_step(cluster->coordinator, link->number, message,
                                                       clock_monotonic_ns(), &cluster->out)
                                    : 0);
}

/* A worker of our own that does not answer has died: the machine has it started anew. A wrong key
 * is told at once: waiting does not help. */
static void not_connected(struct worker_link *link, int code) {
    struct cluster *cluster = link->cluster;
    if (cluster->options.hosts) {
        lose_by_error(link, ERROR_UNAVAILABLE);
        return;
    }
    if (cluster->options.launched[link->number]) {
        error_clear();
        lose(link, "it ended before it was connected to", ENDED);
        return;
    }
    if (code == ERROR_PERMISSION && missing_is_new(&cluster->missing, link->number, error_text()))
        log_warning("%s", error_text());
    missing_failed(&cluster->missing, link->number, error_text());
    error_clear();
    start_soon(link, missing_gave_up(&cluster->missing, link->number) ? RETRY_RARE_MS : RETRY_MS);
    links_check_missing(cluster);
}

static void on_connected(void *context, int code, struct channel *channel) {
    static const struct peer_callbacks callbacks = {.message = on_worker_message,
                                                    .closed = on_closed};
    struct worker_link *link = context;
    struct cluster *cluster = link->cluster;
    link->dial = NULL;
    if (code) {
        not_connected(link, code);
        return;
    }
    link->peer = peer_new(cluster->base, channel, &callbacks, link);
    coordinator_opened(cluster->coordinator, link->number, clock_monotonic_ns(), &cluster->out);
    cluster_after_step(cluster, 0);
}

static void connect_link(struct worker_link *link) {
    struct cluster *cluster = link->cluster;
    assert(!link->peer);
    dial_free(link->dial);
    link->dial = dial_new(cluster->base, cluster->options.addresses[link->number],
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
            cluster_end(cluster, code);
    } else if (code) {
        lose_by_error(link, code);
    } else {
        cluster->options.addresses[link->number] = launched->address;
        connect_link(link);
    }
}

static void on_ended(void *context, struct launched *launched) {
    struct worker_link *link = link_of(context, launched);
    if (link && link->lost)
        report_lost(link);
}

/* The machine has given the former process up. It may still send or close its connection, so the
 * connection and whatever is known of its end are dropped: they must not be taken for those of the
 * next process. */
static void drop_connection(struct worker_link *link) {
    event_del(link->teller);
    free(link->lost);
    link->lost = NULL;
    peer_free(link->peer);
    link->peer = NULL;
    set_service_forget(&link->cluster->sets, link->number);
    dial_free(link->dial);
    link->dial = NULL;
}

/* Starts the worker anew, or connects to it anew; or the connection of one that has left ends. */
static void on_start(evutil_socket_t descriptor, short events, void *context) {
    struct worker_link *link = context;
    struct cluster *cluster = link->cluster;
    struct launched *launched = cluster->options.launched[link->number];
    struct hosts *hosts = cluster->options.hosts;
    (void)descriptor, (void)events;
    drop_connection(link);
    if (link->left)
        return;
    if (!launched) {
        connect_link(link);
        return;
    }
    if (hosts)
        hosts_started(hosts, link->number, clock_monotonic_ns());
    int code = launch_restart(cluster->options.launch, launched,
                              hosts ? hosts_of(hosts, link->number) : NULL);
    cluster->options.addresses[link->number] = launched->address;
    if (code)
        lose_by_error(link, code);
}

/* A shard that all wait for goes where a host answers, and nobody waits for a host that is back:
 * workers there are started now, not when they were going to be. */
void links_watch_hosts(struct cluster *cluster) {
    struct hosts *hosts = cluster->options.hosts;
    int64_t now_ns = clock_monotonic_ns();
    uint32_t late;
    hosts_tick(hosts, now_ns);
    while ((late = hosts_late(hosts, now_ns)) != HOSTS_NONE && !cluster->links[late].peer) {
        struct worker_view worker = coordinator_worker(cluster->coordinator, late);
        const char *before = hosts_of(hosts, late)->name;
        hosts_start_now(hosts, late, now_ns);
        const char *now = hosts_of(hosts, late)->name;
        log_info("%s %u is started on %s at once: %s %s", role_name(worker.role), worker.index, now,
                 before, now == before ? "may be back" : "does not answer");
        start_soon(&cluster->links[late], 0);
    }
    if (late != HOSTS_NONE)
        lose(&cluster->links[late], "it does not answer", ENDED);
}

/* ---- life ---- */

static void link_init(struct cluster *cluster, uint32_t number) {
    struct worker_link *link = &cluster->links[number];
    *link = (struct worker_link){.cluster = cluster, .number = number};
    link->starter = evtimer_new(cluster->base, on_start, link);
    link->teller = evtimer_new(cluster->base, on_teller, link);
}

/* Its connection, if it has one, is that of the replica that was there before. */
void link_expect(struct cluster *cluster, uint32_t number, const char *address) {
    struct worker_link *link = &cluster->links[number];
    if (!link->cluster)
        link_init(cluster, number);
    event_del(link->starter);
    drop_connection(link);
    link->left = link->came = false;
    link->ungreeted = link->missed = 0;
    char *before = link->address;
    link->address = memory_copy_string(address);
    cluster->options.addresses[number] = link->address;
    free(before);
    missing_begin(&cluster->missing, number, clock_monotonic_ns(), elastic_wait_seconds(cluster));
    connect_link(link);
}

void links_begin(struct cluster *cluster) {
    const struct cluster_options *options = &cluster->options;
    const struct coordinator_settings *settings = coordinator_settings(cluster->coordinator);
    uint32_t links = coordinator_links(cluster->coordinator);
    uint32_t most = settings->shards + settings->replicas_most;
    assert(!cluster->links && links > 0);
    cluster->links = memory_new(most > links ? most : links, sizeof *cluster->links);
    set_service_init(&cluster->sets, options->set);
    cluster->server = evtimer_new(cluster->base, on_serve, cluster);
    for (uint32_t i = 0; i < links; i++) {
        link_init(cluster, i);
        if (options->hosts && launch_runs(options->launched[i])) /* nobody could come before this */
            hosts_started(options->hosts, i, clock_monotonic_ns());
    }
    launch_listen(options->launch,
                  &(struct launch_callbacks){.up = on_up, .ended = on_ended, .context = cluster});
    for (uint32_t i = 0; i < links; i++) {
        const struct launched *launched = options->launched[i];
        int64_t now_ns = clock_monotonic_ns();
        if (coordinator_worker(cluster->coordinator, i).vacant)
            continue;
        if (!launched)
            missing_begin(&cluster->missing, i, now_ns, options->wait_seconds);
        if (launched && launched->starting)
            continue; /* on_up() connects to it */
        if (!launched || launch_runs(launched)) {
            connect_link(&cluster->links[i]);
        } else { /* it has ended, or could not be started; on a host a start may be due later */
            int64_t when_ns = options->hosts ? hosts_due(options->hosts, i) : now_ns;
            start_soon(&cluster->links[i], when_ns > now_ns ? (when_ns - now_ns) / NS_PER_MS : 0);
        }
    }
}

void links_rest(struct cluster *cluster) {
    launch_listen(cluster->options.launch, NULL);
    event_del(cluster->server);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_del(link->starter);
        event_del(link->teller);
        dial_free(link->dial);
        link->dial = NULL;
    }
}

void links_free(struct cluster *cluster) {
    links_rest(cluster);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_free(link->starter);
        event_free(link->teller);
        peer_free(link->peer);
        free(link->lost);
        if (link->address)
            cluster->options.addresses[i] = NULL;
        free(link->address);
    }
    event_free(cluster->server);
    set_service_release(&cluster->sets);
    free(cluster->links);
}
