#define _GNU_SOURCE
#include "wire/host_parts.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/address.h"
#include "wire/frame.h"
#include "wire/key.h"
#include "wire/peer.h"

enum {
    CONNECT_MS = 5000,
    ACCEPT_PAUSE_MS = 100, /* when descriptors run out: the loop would spin otherwise */
    GREET_MS = 10000,
    KEY_MS = 15000,  /* less than the coordinator gives a start, so that it hears why that failed */
    QUIET_MS = 1500, /* PING comes every second: longer means that it waits to be read */
    OTHERS = 256,    /* descriptors besides those of connections */
};

static_assert(CONNECTIONS_MAX > REPLICAS_MAX + 1,
              "a shard has room for all replicas and coordinators");
static_assert(QUIET_MS < SILENCE_MS / 2, "a worker says that it lives before it counts as lost");

/* ---- links ---- */

static void on_message(void *context, struct peer *peer, const struct message *message);
static void on_closed(void *context, struct peer *peer, const char *reason);

static struct link *add_link(struct host *host, struct channel *channel, bool stranger) {
    static const struct peer_callbacks callbacks = {on_message, on_closed};
    struct link *link = links_add(&host->links);
    assert(!stranger || host->links.count <= CONNECTIONS_MAX);
    link->host = host;
    link->stranger = stranger;
    link->opened_ns = clock_monotonic_ns();
    link->peer = stranger ? peer_new_stranger(host->base, channel, &callbacks, link)
                          : peer_new(host->base, channel, &callbacks, link);
    return link;
}

void host_close(struct host *host, uint32_t number) {
    struct link *link = links_find(&host->links, number);
    if (!link)
        return;
    peer_free(link->peer);
    links_forget(&host->links, link);
}

void host_start_timer(struct host *host, enum host_event event, int64_t delay_ns) {
    assert(event < EVENTS && delay_ns >= 0);
    struct timeval delay = {.tv_sec = delay_ns / NS_PER_S, .tv_usec = delay_ns % NS_PER_S / 1000};
    event_add(host->events[event], &delay);
}

/* ---- strangers ---- */

static int64_t greet_ns(const struct host *host) {
    return (host->options.greet_ms ? host->options.greet_ms : GREET_MS) * NS_PER_MS;
}

/* The role was never told of a stranger, so it is not told of the end either. */
static void drop_stranger(struct host *host, const struct link *link, enum frame_error error) {
    assert(link->stranger && link->number != host->coordinator);
    frame_error_counts[error]++;
    log_debug("link %u: %s", link->number, frame_error_text(error));
    host_close(host, link->number);
}

static void on_stranger(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct host *host = context;
    int64_t now_ns = clock_monotonic_ns();
    struct link *link;
    while ((link = links_first_stranger(&host->links)) &&
           link->opened_ns + greet_ns(host) <= now_ns)
        drop_stranger(host, link, FRAME_SILENT);
    if (link)
        host_start_timer(host, ON_STRANGER, link->opened_ns + greet_ns(host) - now_ns);
}

static void take_stranger(struct host *host, int descriptor, bool nearby) {
    struct link *oldest =
        host->links.count >= CONNECTIONS_MAX ? links_first_stranger(&host->links) : NULL;
    if (oldest) {
        drop_stranger(host, oldest, FRAME_CROWDED);
    } else if (host->links.count >= CONNECTIONS_MAX) {
        frame_error_counts[FRAME_CROWDED]++;
        close(descriptor);
        return;
    }
    bool local = nearby || address_is_unix(host->bound);
    assert(local || host->tls); /* host_options_read() refuses TCP without a key */
    add_link(host, local ? channel_new(descriptor) : channel_new_tls(descriptor, host->tls, false),
             true)
        ->nearby = nearby;
    if (!event_pending(host->events[ON_STRANGER], EV_TIMEOUT, NULL))
        host_start_timer(host, ON_STRANGER, greet_ns(host));
}

/* ---- the role ---- */

/* PONG unasked for: a coordinator whose PING waits until long work is done, or behind other
 * messages, hears that the worker is alive. Called in the midst of the role's work. */
static void beat(void *context) {
    struct host *host = context;
    const struct link *link = links_find(&host->links, host->coordinator);
    int64_t now_ns = clock_monotonic_ns();
    if (!link || now_ns - host->beat_ns < QUIET_MS * NS_PER_MS)
        return;
    host->beat_ns = now_ns;
    peer_send(link->peer, &(struct message){.type = MESSAGE_PONG, .term = host->term});
}

static void finish_step(struct host *host, int64_t now_ns) {
    if (host->role.after)
        host->role.after(host->role.state, now_ns, &host->outbox);
    /* Sends what the role has put into its outbox. Messages for links that are gone are lost. */
    for (size_t i = 0; i < host->outbox.count; i++) {
        const struct envelope *envelope = &host->outbox.envelopes[i];
        struct link *link = links_find(&host->links, envelope->to);
        if (!link)
            continue;
        if (envelope->type == MESSAGE_WELCOME)
            host_coordinator_found(host, link, envelope->term);
        if (envelope->type == MESSAGE_WELCOME || envelope->type == MESSAGE_GREETED) {
            link->stranger = false;
            peer_trust(link->peer);
        }
        peer_send_envelope(link->peer, &host->outbox, envelope);
        beat(host); /* safe here: what must wait to be sent was copied */
    }
    outbox_clear(&host->outbox);
    beat(host);
}

static void on_connected(void *context, int code, struct channel *channel) {
    struct attempt *attempt = context;
    struct host *host = attempt->host;
    assert(attempt->dial && !code == (channel != NULL));
    uint32_t link = code ? 0 : add_link(host, channel, false)->number;
    attempt->dial = NULL;
    host->role.connected(host->role.state, (uint32_t)(attempt - host->attempts), link, code,
                         &host->outbox);
    error_clear();
    finish_step(host, clock_monotonic_ns());
}

void host_connect(struct host *host, const char *address, uint32_t tag) {
    assert(tag < SHARDS_MAX && host->role.connected);
    struct attempt *attempt = &host->attempts[tag];
    dial_free(attempt->dial);
    attempt->host = host;
    attempt->dial = dial_new(host->base, address, host->tls, CONNECT_MS, on_connected, attempt);
}

/* Any process of this user can find the socket for others of this host. */
static bool knows_secret(const struct host *host, const struct message *message) {
    return message->type == MESSAGE_GREET && !strcmp(message->greet.local, host->options.local);
}

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct link *link = context;
    struct host *host = link->host;
    assert(peer == link->peer && link == links_find(&host->links, link->number));
    uint32_t from = link->number;
    int64_t now_ns = clock_monotonic_ns();
    log_debug("%s from link %u", message_name(message->type), from);
    if (link->nearby && link->stranger && !knows_secret(host, message)) {
        drop_stranger(host, link, FRAME_STRANGER);
        return;
    }
    if (message->type == MESSAGE_PING) {
        if (from == host->coordinator)
            host->beat_ns = now_ns;
        peer_send(link->peer, &(struct message){.type = MESSAGE_PONG,
                                                .term = message->term,
                                                .pong = {message->ping.number}});
        return;
    }
    if (message->type == MESSAGE_HELLO && host->leaving && link->stranger)
        host_rest(host); /* the next coordinator was faster than the event that ends the run */
    if (message->type == MESSAGE_HELLO && host_refuses(host, link, message, now_ns))
        return;
    if (message->type == MESSAGE_HELLO) {
        link->reconnect_seconds = message->hello.reconnect_seconds;
        free(link->run);
        link->run = memory_copy_string(message->hello.run);
    }
    host->role.message(host->role.state, from, message, now_ns, &host->outbox);
    finish_step(host, now_ns);
    if (message->type == MESSAGE_BYE && from == host->coordinator)
        host_leave_run(host, host->options.stay || (message->bye.again && !host->options.once), 0);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct link *link = context;
    struct host *host = link->host;
    assert(peer == link->peer);
    uint32_t number = link->number, reconnect_seconds = link->reconnect_seconds;
    int64_t now_ns = clock_monotonic_ns();
    log_debug("link %u: %s", number, reason);
    links_forget(&host->links, link);
    if (number == host->coordinator && !host->leaving)
        host_coordinator_lost(host, reconnect_seconds, reason);
    host->role.gone(host->role.state, number, now_ns, &host->outbox);
    finish_step(host, now_ns);
}

/* ---- events ---- */

static void listen_on(struct host *host) {
    event_add(host->events[ON_ACCEPT], NULL);
    if (host->nearby >= 0)
        event_add(host->events[ON_NEARBY], NULL);
}

static void on_accept(evutil_socket_t listener, short what, void *context) {
    (void)what;
    struct host *host = context;
    int descriptor;
    while ((descriptor = address_accept(listener)) >= 0)
        take_stranger(host, descriptor, listener == host->nearby);
    if (errno == EMFILE || errno == ENFILE) {
        error_set_errno(ERROR_UNAVAILABLE, "new connections wait");
        log_warning("%s", error_text());
        error_clear();
        event_del(host->events[ON_ACCEPT]);
        event_del(host->events[ON_NEARBY]);
        host_start_timer(host, ON_PAUSE, ACCEPT_PAUSE_MS * NS_PER_MS);
    }
}

static void on_pause(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    listen_on(context);
}

static void on_wake(evutil_socket_t descriptor, short what, void *context) {
    (void)what;
    uint64_t times;
    if (read(descriptor, &times, sizeof times) < 0)
        return;
    finish_step(context, clock_monotonic_ns());
}

static void on_alarm(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    finish_step(context, clock_monotonic_ns());
}

static void on_rest(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    host_rest(context);
}

static void on_lost(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct host *host = context;
    host_leave_run(host, host->options.stay, error_set(ERROR_AGAIN, "no coordinator came in time"));
}

static void on_parent(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct host *host = context;
    if (getppid() != host->options.parent_pid)
        host_end(host, error_set(ERROR_AGAIN, "the process that started this one is gone"));
}

static void on_signal(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    host_end(context, 0);
}

void host_wake(struct host *host) {
    const uint64_t once = 1;
    if (write(host->waker, &once, sizeof once) < 0)
        return; /* the counter is full, so the loop is going to wake up anyway */
}

void host_alarm(struct host *host, int64_t delay_ns) {
    if (delay_ns < 0)
        event_del(host->events[ON_ALARM]);
    else
        host_start_timer(host, ON_ALARM, delay_ns);
}

void host_end(struct host *host, int code) {
    assert(code <= 0);
    host->code = code;
    event_base_loopexit(host->base, NULL);
}

/* ---- life ---- */

static void make_events(struct host *host) {
    struct event_base *base = host->base;
    host->events[ON_ACCEPT] =
        event_new(base, host->listener, EV_READ | EV_PERSIST, on_accept, host);
    host->events[ON_NEARBY] = event_new(base, host->nearby, EV_READ | EV_PERSIST, on_accept, host);
    host->events[ON_WAKE] = event_new(base, host->waker, EV_READ | EV_PERSIST, on_wake, host);
    host->events[ON_PAUSE] = evtimer_new(base, on_pause, host);
    host->events[ON_ALARM] = evtimer_new(base, on_alarm, host);
    host->events[ON_LOST] = evtimer_new(base, on_lost, host);
    host->events[ON_REST] = evtimer_new(base, on_rest, host);
    host->events[ON_PARENT] = event_new(base, -1, EV_PERSIST, on_parent, host);
    host->events[ON_STRANGER] = evtimer_new(base, on_stranger, host);
    host->events[ON_TERM] = evsignal_new(base, SIGTERM, on_signal, host);
    host->events[ON_INT] = evsignal_new(base, SIGINT, on_signal, host);
    host->events[ON_HUP] = evsignal_new(base, SIGHUP, on_signal, host);
}

/* Ctrl-C goes to all processes of the terminal's foreground group, and so may SIGHUP when the
 * terminal goes. A worker with --parent-pid ignores both: its coordinator gets them as well and
 * decides when the worker ends. Other workers ignore SIGHUP if they were started so (nohup). */
static void start_events(struct host *host) {
    listen_on(host);
    event_add(host->events[ON_WAKE], NULL);
    event_add(host->events[ON_TERM], NULL);
    signal(SIGPIPE, SIG_IGN);
    if (host->options.parent_pid) {
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        process_end_first(); /* a worker is replaced, and its coordinator is not */
    } else {
        event_add(host->events[ON_INT], NULL);
        if (!process_ignores(SIGHUP))
            event_add(host->events[ON_HUP], NULL);
    }
    host_await_coordinator(host, 0);
}

/* Without it all goes through TLS. */
static int listen_nearby(const struct host_options *options) {
    char *bound = NULL;
    int listener = -1;
    if (!options->local || !*options->local)
        return -1;
    char *address = local_address(options->local);
    if (address_listen(address, &listener, &bound)) {
        log_warning("links of this host go through TLS: %s", error_text());
        error_clear();
        listener = -1;
    }
    free(bound);
    free(address);
    return listener;
}

/* Leaves standard input empty: what is opened later must not take its number. */
static int tls_of_input(struct tls **tls) {
    struct key key;
    int code = key_receive(STDIN_FILENO, KEY_MS, &key);
    if (!code)
        code = tls_new(&key, tls);
    key_forget(&key);
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (empty >= 0) {
        (void)dup2(empty, STDIN_FILENO);
        close(empty);
    }
    if (code != ERROR_UNAVAILABLE)
        return code;
    char *why = memory_copy_string(error_text());
    error_clear();
    error_set(code,
              "%s by standard input: the launch command must pass it on (ssh without -n, kubectl "
              "exec -i, srun without --input=none)",
              why);
    free(why);
    return code;
}

static int read_key(const struct host_options *options, struct tls **tls) {
    if (!options->key)
        return 0;
    return strcmp(options->key, KEY_OF_INPUT) ? tls_of_file(options->key, tls) : tls_of_input(tls);
}

/* A coordinator may stop while its workers begin. Then nobody reads the line, and that is no error:
 * the worker is about to be ended. */
struct host *host_new(const struct host_options *options, const struct host_role *role, int *code) {
    int listener;
    char *bound;
    struct tls *tls = NULL;
    process_raise_descriptors(CONNECTIONS_MAX + OTHERS);
    *code = descriptors_check(); /* libevent ends the process if it lacks some */
    if (!*code)
        *code = read_key(options, &tls);
    if (!*code)
        *code = address_listen(options->listen, &listener, &bound);
    if (*code) {
        tls_free(tls);
        return NULL;
    }
    struct host *host = memory_new(1, sizeof *host);
    host->options = *options;
    host->role = *role;
    host->tls = tls;
    host->listener = listener;
    host->nearby = listen_nearby(options);
    host->bound = bound;
    outbox_init(&host->outbox);
    host->base = event_base_new();
    host->waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!host->base || host->waker < 0) {
        *code = error_set_errno(ERROR_UNAVAILABLE, "cannot make an event loop");
        host_free(host);
        return NULL;
    }
    make_events(host);
    start_events(host);
    const char *mark = address_is_unix(bound) ? "" : "tls:";
    (void)!dprintf(STDOUT_FILENO, "listening %s%s\n", mark, bound);
    return host;
}

void host_free(struct host *host) {
    if (!host)
        return;
    while (host->links.count)
        host_close(host, host->links.items[host->links.count - 1]->number);
    links_release(&host->links);
    for (size_t i = 0; i < SHARDS_MAX; i++)
        dial_free(host->attempts[i].dial);
    for (size_t i = 0; i < EVENTS; i++)
        if (host->events[i])
            event_free(host->events[i]);
    if (host->base)
        event_base_free(host->base);
    outbox_release(&host->outbox);
    if (host->waker >= 0)
        close(host->waker);
    close(host->listener);
    if (host->nearby >= 0)
        close(host->nearby);
    if (address_is_unix(host->bound))
        unlink(endpoint_unix_path(host->bound));
    tls_free(host->tls);
    free(host->bound);
    tenancy_end(&host->tenancy);
    free(host);
}

int host_run(struct host *host) {
    assert(host->listener >= 0 && host->role.message && host->role.gone);
    heartbeat_call(beat, host);
    int code = event_base_dispatch(host->base);
    heartbeat_call(NULL, NULL);
    if (code < 0)
        return error_set(ERROR_INTERNAL, "the event loop failed");
    frame_log_dropped();
    return host->code;
}
