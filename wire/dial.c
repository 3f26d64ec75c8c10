#define _GNU_SOURCE
#include "wire/address.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "wire/channel.h"
#include "wire/lookup.h"

enum {
    ENDPOINTS_MAX = 8, /* of one name: those behind are not tried */
    RETRY_MS = 10,     /* while the backlog of a Unix socket is full */
};

struct dial {
    struct event_base *base;
    char *address;
    const struct tls *tls; /* or NULL */
    dial_done *done;
    void *context;
    struct event *deadline;
    struct event *awaited; /* the lookup, the socket, or a moment before the next attempt */
    void (*next_step)(struct dial *dial); /* what is done when it happens */
    struct channel *channel;              /* of which the handshake is made, or NULL */
    struct lookup *lookup;                /* or NULL */
    struct endpoint endpoints[ENDPOINTS_MAX];
    unsigned count, next;
    int descriptor; /* being connected, or −1 */
    int error;      /* errno of the last attempt */
    int timeout_ms;
};

/* ---- the end ---- */

void dial_free(struct dial *dial) {
    if (!dial)
        return;
    event_free(dial->deadline);
    event_free(dial->awaited);
    lookup_drop(dial->lookup);
    channel_free(dial->channel);
    if (dial->descriptor >= 0)
        close(dial->descriptor);
    free(dial->address);
    free(dial);
}

/* Frees before it calls: `done` may begin the next attempt, or free whatever owns this one. */
static void finish(struct dial *dial, int code) {
    dial_done *done = dial->done;
    void *context = dial->context;
    struct channel *channel = code ? NULL : dial->channel;
    assert(code < 0 || (!code && channel));
    if (!code)
        dial->channel = NULL;
    dial_free(dial);
    done(context, code, channel);
}

static void on_awaited(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct dial *dial = context;
    dial->next_step(dial);
}

/* Takes the next step when the descriptor is ready, or the delay is over (below 0: there is none).
 * What was waited for before is forgotten. */
static void await(struct dial *dial, int descriptor, short what,
                  void (*next_step)(struct dial *dial), int delay_ms) {
    struct timeval delay = {.tv_sec = delay_ms / 1000, .tv_usec = delay_ms % 1000 * 1000};
    assert(descriptor >= 0 || delay_ms >= 0);
    dial->next_step = next_step;
    event_del(dial->awaited);
    event_assign(dial->awaited, dial->base, descriptor, what, on_awaited, dial);
    event_add(dial->awaited, delay_ms < 0 ? NULL : &delay);
}

/* ---- the handshake ---- */

static int handshake_failed(const struct dial *dial) {
    enum frame_error error = channel_error(dial->channel);
    const char *address = dial->address;
    assert(error < FRAME_ERRORS);
    if (!error)
        return error_set(ERROR_PERMISSION,
                         "%s: closed during the handshake of TLS: is a worker there?", address);
    frame_error_counts[error]++;
    if (error == FRAME_TLS_OTHER_KEY)
        return error_set(ERROR_PERMISSION,
                         "the worker at %s has another key (ours is %s): give both the same file",
                         address, tls_key_name(dial->tls));
    return error_set(ERROR_PERMISSION, "%s: the handshake of TLS failed: %s", address,
                     frame_error_text(error));
}

static void shake_hands(struct dial *dial) {
    struct channel *channel = dial->channel;
    assert(channel && dial->descriptor < 0);
    int state = channel_handshake(channel);
    short what = (short)(channel_unsent(channel) ? EV_READ | EV_WRITE : EV_READ);
    if (state > 0)
        finish(dial, 0);
    else if (state < 0)
        finish(dial, handshake_failed(dial));
    else
        await(dial, channel_descriptor(channel), what, shake_hands, -1);
}

static void connected(struct dial *dial) {
    assert(!dial->channel && dial->descriptor >= 0);
    /* Anybody on the host may take a name without a file once it is free. */
    const char *path = endpoint_unix_path(dial->address);
    if (path && *path == '@' && !address_is_of_this_user(dial->descriptor)) {
        finish(dial, error_set(ERROR_PERMISSION, "%s: a process of another user is there",
                               dial->address));
        return;
    }
    dial->channel = address_is_unix(dial->address)
                        ? channel_new(dial->descriptor)
                        : channel_new_tls(dial->descriptor, dial->tls, true);
    dial->descriptor = -1;
    shake_hands(dial);
}

/* ---- attempts ---- */

static void attempt_failed(struct dial *dial, int error) {
    assert(error && dial->next < dial->count);
    if (dial->descriptor >= 0)
        close(dial->descriptor);
    dial->descriptor = -1;
    dial->error = error;
    dial->next++;
}

static void attempt_next(struct dial *dial);

/* The socket is connected, or says why not. */
static void attempt_ended(struct dial *dial) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(dial->descriptor, SOL_SOCKET, SO_ERROR, &error, &length))
        error = errno;
    if (!error) {
        connected(dial);
        return;
    }
    event_del(dial->awaited);
    attempt_failed(dial, error);
    attempt_next(dial);
}

/* A Unix socket whose backlog is full answers EAGAIN (TCP would wait by itself), and no event tells
 * when there is room. So the same socket is tried again a little later, until the deadline. */
static void attempt_next(struct dial *dial) {
    assert(dial->count <= ENDPOINTS_MAX && !dial->channel);
    while (dial->next < dial->count) {
        const struct endpoint *endpoint = &dial->endpoints[dial->next];
        if (dial->descriptor < 0)
            dial->descriptor = endpoint_socket(endpoint);
        int descriptor = dial->descriptor;
        if (descriptor >= 0 &&
            !connect(descriptor, (const struct sockaddr *)&endpoint->address, endpoint->length)) {
            connected(dial);
            return;
        }
        if (descriptor >= 0 && errno == EINPROGRESS) {
            await(dial, descriptor, EV_WRITE, attempt_ended, -1);
            return;
        }
        if (descriptor >= 0 && (errno == EAGAIN || errno == EINTR)) {
            await(dial, -1, 0, attempt_next, RETRY_MS);
            return;
        }
        attempt_failed(dial, errno);
    }
    finish(dial, error_set(ERROR_UNAVAILABLE, "%s: cannot connect: %s", dial->address,
                           strerror(dial->error)));
}

static void name_resolved(struct dial *dial) {
    struct lookup *lookup = dial->lookup;
    /* Reading `settled` orders the thread's writes before the reads here. */
    bool settled = atomic_load(&lookup->settled);
    assert(settled && !dial->count);
    if (lookup->failed) {
        finish(dial,
               error_set(ERROR_UNAVAILABLE, "%s: %s", dial->address, gai_strerror(lookup->failed)));
        return;
    }
    for (const struct addrinfo *info = lookup->found; info && dial->count < ENDPOINTS_MAX;
         info = info->ai_next)
        dial->endpoints[dial->count++] = endpoint_of_info(info);
    attempt_next(dial);
}

static int begin_inet(struct dial *dial) {
    char host[ENDPOINT_HOST_BYTES], port[ENDPOINT_PORT_BYTES];
    struct addrinfo *found,
        hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    int code = endpoint_split(dial->address, host, port);
    if (code)
        return code;
    if (!dial->tls)
        return error_set(ERROR_PERMISSION,
                         "%s: links to other hosts need a key: give this program --key FILE, with "
                         "the key STATE/key of the job",
                         dial->address);
    if (!getaddrinfo(host, port, &hints, &found)) { /* a number: no name server is asked */
        dial->endpoints[dial->count++] = endpoint_of_info(found);
        freeaddrinfo(found);
        return 0;
    }
    code = lookup_new(host, port, &dial->lookup);
    if (!code)
        await(dial, dial->lookup->ready, EV_READ, name_resolved, -1);
    return code;
}

static void begin(struct dial *dial) {
    bool is_unix = address_is_unix(dial->address);
    assert(!dial->count && !dial->lookup);
    int code = is_unix ? endpoint_of_unix(dial->address, &dial->endpoints[0]) : begin_inet(dial);
    dial->count += is_unix;
    if (code)
        finish(dial, code);
    else if (dial->count)
        attempt_next(dial);
}

static void on_deadline(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct dial *dial = context;
    const char *why = dial->channel ? "the handshake of TLS is not answered"
                      : dial->count ? "cannot connect: nobody answers"
                                    : "the name is not resolved: the name service is silent";
    finish(dial, error_set(ERROR_UNAVAILABLE, "%s: %s for %.3g s", dial->address, why,
                           dial->timeout_ms / 1e3));
}

struct dial *dial_new(struct event_base *base, const char *address, const struct tls *tls,
                      int timeout_ms, dial_done *done, void *context) {
    struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    assert(timeout_ms > 0 && done);
    struct dial *dial = memory_new(1, sizeof *dial);
    *dial = (struct dial){.base = base,
                          .address = memory_copy_string(address),
                          .tls = tls,
                          .done = done,
                          .context = context,
                          .next_step = begin,
                          .descriptor = -1,
                          .timeout_ms = timeout_ms};
    dial->deadline = evtimer_new(base, on_deadline, dial);
    dial->awaited = event_new(base, -1, 0, on_awaited, dial);
    if (!dial->deadline || !dial->awaited)
        abort();
    event_add(dial->deadline, &timeout);
    event_active(dial->awaited, EV_TIMEOUT, 0);
    return dial;
}
