#define _GNU_SOURCE
#include "wire/connecting.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/thread.h"
#include "wire/channel.h"
#include "wire/place.h"

enum { PLACES_MAX = 8, RETRY_MS = 10 };

/* A name that is being resolved.
 *
 * getaddrinfo() has no time limit and cannot be interrupted; with a dead name server it may take
 * minutes. So it runs in a detached thread that nobody joins: to wait for it would block the loop,
 * or the exit. (pthread_cancel() is no way out: it may leave locks and memory of the C library
 * behind.)
 *
 * The thread and the loop share this struct, each with one reference. Whichever lets go last frees
 * it: the loop when it gives up at the deadline, or the thread when getaddrinfo() returns at last.
 * The thread knows nothing else of the attempt: its struct connecting may be gone by then. */
struct lookup {
    atomic_int holders;
    int ready; /* an eventfd: readable once `settled` */
    char host[PLACE_HOST_BYTES], port[PLACE_PORT_BYTES];
    int failed; /* of getaddrinfo() */
    struct addrinfo *found;
    atomic_bool settled; /* `failed` and `found` are set */
};

struct connecting {
    struct event_base *base;
    char *address;
    const struct tls *tls; /* or NULL */
    connecting_done *done;
    void *context;
    struct event *deadline;
    struct event *awaited;   /* the lookup, the socket, or a moment before the next attempt */
    struct channel *channel; /* of which the handshake is made, or NULL */
    struct lookup *lookup;   /* or NULL */
    struct place places[PLACES_MAX];
    unsigned count, next;
    int descriptor; /* being connected, or −1 */
    int error;      /* errno of the last attempt */
    int timeout_ms;
};

/* ---- names ---- */

static void lookup_drop(struct lookup *lookup) {
    if (!lookup || atomic_fetch_sub(&lookup->holders, 1) > 1)
        return;
    if (lookup->found)
        freeaddrinfo(lookup->found);
    close(lookup->ready);
    free(lookup);
}

static void *look_up(void *context) {
    const uint64_t once = 1;
    struct lookup *lookup = context;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    failpoint(FAILPOINT_name_lookup);
    lookup->failed = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->found);
    if (lookup->failed)
        lookup->found = NULL;
    /* Before the wake-up: the loop, once it has read `settled`, sees both fields. */
    atomic_store(&lookup->settled, true);
    if (write(lookup->ready, &once, sizeof once) < 0)
        abort(); /* the first write to an eventfd cannot fail */
    lookup_drop(lookup);
    return NULL;
}

static int lookup_new(const char *host, const char *port, struct lookup **lookup) {
    pthread_t thread;
    int ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (ready < 0)
        return error_set_errno(ERROR_UNAVAILABLE, "cannot look up %s", host);
    struct lookup *l = memory_new(1, sizeof *l);
    l->ready = ready;
    atomic_init(&l->holders, 2);
    strcpy(l->host, host);
    strcpy(l->port, port);
    int code = thread_start(&thread, look_up, l);
    if (code) {
        atomic_store(&l->holders, 1);
        lookup_drop(l);
        return code;
    }
    pthread_detach(thread);
    *lookup = l;
    return 0;
}

/* ---- the end ---- */

void connecting_free(struct connecting *connecting) {
    if (!connecting)
        return;
    event_free(connecting->deadline);
    event_free(connecting->awaited);
    lookup_drop(connecting->lookup);
    channel_free(connecting->channel);
    if (connecting->descriptor >= 0)
        close(connecting->descriptor);
    free(connecting->address);
    free(connecting);
}

/* Frees before it calls: `done` may begin the next attempt, or free whatever owns this one. */
static void finish(struct connecting *connecting, int code) {
    connecting_done *done = connecting->done;
    void *context = connecting->context;
    struct channel *channel = code ? NULL : connecting->channel;
    if (!code)
        connecting->channel = NULL;
    connecting_free(connecting);
    done(context, code, channel);
}

typedef void handler(evutil_socket_t descriptor, short what, void *context);

static void await(struct connecting *connecting, int descriptor, short what, handler *handle,
                  int delay_ms) {
    struct timeval delay = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
    event_del(connecting->awaited);
    event_assign(connecting->awaited, connecting->base, descriptor, what, handle, connecting);
    event_add(connecting->awaited, delay_ms < 0 ? NULL : &delay);
}

/* ---- the handshake ---- */

static int handshake_failed(const struct connecting *connecting) {
    enum frame_error error = channel_error(connecting->channel);
    const char *address = connecting->address;
    if (!error)
        return error_set(ERROR_PERMISSION,
                         "%s: closed during the handshake of TLS: was it started with --key?",
                         address);
    frame_error_counts[error]++;
    if (error == FRAME_TLS_OTHER_KEY)
        return error_set(ERROR_PERMISSION,
                         "the worker at %s has another key (ours is %s): give both the same file",
                         address, tls_key_name(connecting->tls));
    return error_set(ERROR_PERMISSION, "%s: the handshake of TLS failed: %s", address,
                     frame_error_text(error));
}

static void shake_hands(struct connecting *connecting);

static void on_ready(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    shake_hands(context);
}

static void shake_hands(struct connecting *connecting) {
    struct channel *channel = connecting->channel;
    int state = channel_handshake(channel);
    short what = (short)(channel_unsent(channel) ? EV_READ | EV_WRITE : EV_READ);
    if (state > 0)
        finish(connecting, 0);
    else if (state < 0)
        finish(connecting, handshake_failed(connecting));
    else
        await(connecting, channel_descriptor(channel), what, on_ready, -1);
}

/* The socket is connected. Plain text never leaves this machine. */
static void connected(struct connecting *connecting) {
    bool here = place_is_here(&connecting->places[connecting->next]);
    bool secure = place_names_tls(connecting->address) || !here;
    if (secure && !connecting->tls) {
        finish(connecting,
               error_set(ERROR_PERMISSION,
                         "%s: links to other hosts need a key: give this program --key FILE, with "
                         "the key STATE/key of the job",
                         connecting->address));
        return;
    }
    connecting->channel = secure ? channel_new_client(connecting->descriptor, connecting->tls)
                                 : channel_new(connecting->descriptor);
    connecting->descriptor = -1;
    shake_hands(connecting);
}

/* ---- attempts ---- */

static void attempt_failed(struct connecting *connecting, int error) {
    if (connecting->descriptor >= 0)
        close(connecting->descriptor);
    connecting->descriptor = -1;
    connecting->error = error;
    connecting->next++;
}

static void attempt_next(struct connecting *connecting);

static void on_retry(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    attempt_next(context);
}

static void on_connected(evutil_socket_t descriptor, short what, void *context) {
    (void)what;
    struct connecting *connecting = context;
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length))
        error = errno;
    if (!error) {
        connected(connecting);
        return;
    }
    event_del(connecting->awaited);
    attempt_failed(connecting, error);
    attempt_next(connecting);
}

/* A Unix socket whose backlog is full answers EAGAIN (TCP would wait by itself), and no event tells
 * when there is room. So the same socket is tried again a little later, until the deadline. */
static void attempt_next(struct connecting *connecting) {
    while (connecting->next < connecting->count) {
        const struct place *place = &connecting->places[connecting->next];
        if (connecting->descriptor < 0)
            connecting->descriptor = place_socket(place);
        int descriptor = connecting->descriptor;
        if (descriptor >= 0 &&
            !connect(descriptor, (const struct sockaddr *)&place->address, place->length)) {
            connected(connecting);
            return;
        }
        if (descriptor >= 0 && errno == EINPROGRESS) {
            await(connecting, descriptor, EV_WRITE, on_connected, -1);
            return;
        }
        if (descriptor >= 0 && (errno == EAGAIN || errno == EINTR)) {
            await(connecting, -1, 0, on_retry, RETRY_MS);
            return;
        }
        attempt_failed(connecting, errno);
    }
    finish(connecting, error_set(ERROR_UNAVAILABLE, "%s: cannot connect: %s", connecting->address,
                                 strerror(connecting->error)));
}

static void on_found(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct connecting *connecting = context;
    struct lookup *lookup = connecting->lookup;
    /* Reading `settled` orders the thread's writes before the reads here. */
    bool settled = atomic_load(&lookup->settled);
    assert(settled);
    if (lookup->failed) {
        finish(connecting, error_set(ERROR_UNAVAILABLE, "%s: %s", connecting->address,
                                     gai_strerror(lookup->failed)));
        return;
    }
    for (const struct addrinfo *info = lookup->found; info && connecting->count < PLACES_MAX;
         info = info->ai_next)
        connecting->places[connecting->count++] = place_of_info(info);
    attempt_next(connecting);
}

static int begin_inet(struct connecting *connecting) {
    char host[PLACE_HOST_BYTES], port[PLACE_PORT_BYTES];
    struct addrinfo *found,
        hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    int code = place_split(connecting->address, host, port);
    if (code)
        return code;
    if (getaddrinfo(host, port, &hints, &found) ==
        0) { /* a numeric address: no name server is asked */
        connecting->places[connecting->count++] = place_of_info(found);
        freeaddrinfo(found);
        return 0;
    }
    code = lookup_new(host, port, &connecting->lookup);
    if (!code)
        await(connecting, connecting->lookup->ready, EV_READ, on_found, -1);
    return code;
}

static void on_begin(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct connecting *connecting = context;
    bool is_unix = place_unix_path(connecting->address) != NULL;
    int code = is_unix ? place_of_unix(connecting->address, &connecting->places[0])
                       : begin_inet(connecting);
    connecting->count += is_unix;
    if (code)
        finish(connecting, code);
    else if (connecting->count)
        attempt_next(connecting);
}

static void on_deadline(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct connecting *connecting = context;
    const char *why = connecting->channel ? "the handshake of TLS is not answered"
                      : connecting->count ? "cannot connect: nobody answers"
                                          : "the name is not resolved: the name service is silent";
    finish(connecting, error_set(ERROR_UNAVAILABLE, "%s: %s for %.3g s", connecting->address, why,
                                 connecting->timeout_ms / 1e3));
}

struct connecting *connecting_new(struct event_base *base, const char *address,
                                  const struct tls *tls, int timeout_ms, connecting_done *done,
                                  void *context) {
    struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    struct connecting *connecting = memory_new(1, sizeof *connecting);
    *connecting = (struct connecting){.base = base,
                                      .address = memory_copy_string(address),
                                      .tls = tls,
                                      .done = done,
                                      .context = context,
                                      .descriptor = -1,
                                      .timeout_ms = timeout_ms};
    connecting->deadline = evtimer_new(base, on_deadline, connecting);
    connecting->awaited = event_new(base, -1, 0, on_begin, connecting);
    if (!connecting->deadline || !connecting->awaited)
        abort();
    event_add(connecting->deadline, &timeout);
    event_active(connecting->awaited, EV_TIMEOUT, 0);
    return connecting;
}
