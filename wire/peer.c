#define _GNU_SOURCE
#include "wire/peer.h"

#include <assert.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/memory.h"
#include "wire/transfer.h"

enum {
    MESSAGES_A_TURN = 64, /* handed out before other peers have their turn */
    PATIENCE_MS = 30000,  /* how long the rest of a frame may take to go on */
    /* The connection is lost if data is unacknowledged for so long. TCP sends a packet again after
     * 0.2, 0.6, 1.4 and 3 s: of those that lose one packet in 20 each way, few lose five in a row.
     */
    TCP_SILENCE_MS = 5000,
    TCP_IDLE_SECONDS = 1, /* before a silent connection is probed */
    TCP_PROBE_SECONDS = 1,
    TCP_PROBES = TCP_SILENCE_MS / 1000 - TCP_IDLE_SECONDS, /* as long in all */
};

static_assert(TCP_SILENCE_MS < SILENCE_MS, "a cut is told from a worker that is silent");
static_assert(TCP_PROBES > 0, "a silent connection is probed");

struct peer {
    struct channel *channel; /* owned */
    struct event *readable, *writable;
    struct inlet inlet;
    struct outlet outlet;
    struct bytes scratch; /* bodies on their way out */
    struct peer_callbacks callbacks;
    void *context;
    struct timeval patience;
    bool impatient; /* `readable` has a time limit */
    bool calling;   /* a callback runs */
    bool freed;     /* peer_free() was called in that callback: it is freed when that returns */
};

static void tune_tcp(int descriptor) {
    const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_SILENCE_MS},
        {IPPROTO_TCP, TCP_KEEPIDLE, TCP_IDLE_SECONDS},
        {IPPROTO_TCP, TCP_KEEPINTVL, TCP_PROBE_SECONDS},
        {IPPROTO_TCP, TCP_KEEPCNT, TCP_PROBES},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        (void)setsockopt(descriptor, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

static void destroy(struct peer *peer) {
    event_free(peer->readable);
    event_free(peer->writable);
    inlet_release(&peer->inlet);
    outlet_release(&peer->outlet);
    bytes_release(&peer->scratch);
    channel_free(peer->channel);
    free(peer);
}

static void close_peer(struct peer *peer, const char *reason) {
    assert(!peer->calling && !peer->freed);
    peer->calling = true;
    peer->callbacks.closed(peer->context, peer, reason);
    destroy(peer);
}

/* Hands out messages, `limit` at most. Returns whether the peer is still there. */
static bool hand_out(struct peer *peer, unsigned limit) {
    enum inlet_state state = INLET_MESSAGE;
    assert(!peer->calling && !peer->freed);
    peer->calling = true;
    for (unsigned i = 0; i < limit && state == INLET_MESSAGE && !peer->freed; i++) {
        struct message message;
        state = inlet_next(&peer->inlet, &message);
        if (state != INLET_MESSAGE)
            break;
        if (message.type == MESSAGE_HELLO)
            failpoint_identify(message.hello.index);
        failpoint_receive(message.type);
        peer->callbacks.message(peer->context, peer, &message);
    }
    peer->calling = false;
    if (peer->freed) {
        destroy(peer);
        return false;
    }
    if (state == INLET_CLOSED || state == INLET_BAD) {
        assert(peer->inlet.why);
        if (peer->inlet.stranger && *peer->inlet.other_version) {
            /* Any version finds the version in this header, and learns why it is dropped. */
            struct message refusal = {.type = MESSAGE_REFUSED};
            refusal.refused.reason = peer->inlet.other_version;
            peer_send(peer, &refusal);
        }
        close_peer(peer, peer->inlet.why);
        return false;
    }
    return true;
}

/* If this process itself was stopped (SIGSTOP, a debugger), it goes on with the time limit reached
 * and bytes waiting. So the time limit counts only if nothing can be read. */
static void on_readable(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor;
    struct peer *peer = context;
    uint64_t received = peer->inlet.received;
    if (!hand_out(peer, MESSAGES_A_TURN))
        return;
    if (what & EV_TIMEOUT && inlet_within_frame(&peer->inlet) && peer->inlet.received == received) {
        frame_error_counts[FRAME_SLOW]++;
        close_peer(peer, frame_error_text(FRAME_SLOW));
        return;
    }
    /* While a frame is incomplete, its next part must come in time. */
    bool within = inlet_within_frame(&peer->inlet);
    if (within && !peer->impatient)
        event_add(peer->readable, &peer->patience); /* begins anew with each event */
    else if (!within && peer->impatient)
        event_remove_timer(peer->readable);
    peer->impatient = within;
    if (inlet_pending(&peer->inlet))
        event_active(peer->readable, EV_READ, 0);
    if (channel_unsent(peer->channel)) /* of the handshake */
        event_add(peer->writable, NULL);
}

/* Waits for room to write while something is queued. A failure is handled in a later turn of the
 * loop: peer_send() is called from within steps that must not see the peer disappear. */
static void after_sending(struct peer *peer) {
    if (peer->freed || peer->outlet.held)
        return;
    assert(!peer->outlet.error || !peer->outlet.first); /* a failure gives up what is queued */
    if (peer->outlet.error)
        event_active(peer->writable, EV_WRITE, 0);
    else if (outlet_waits(&peer->outlet))
        event_add(peer->writable, NULL);
    else
        event_del(peer->writable);
}

/* If sending fails because the other end has closed, its last messages may still be unread, such as
 * the reason why it refused us. They are handed out before the end of the connection is. */
static void on_writable(evutil_socket_t descriptor, short what, void *context) {
    (void)descriptor, (void)what;
    struct peer *peer = context;
    assert(!peer->calling && !peer->freed);
    outlet_flush(&peer->outlet);
    if (!peer->outlet.error)
        after_sending(peer);
    else if (hand_out(peer, UINT32_MAX))
        close_peer(peer, strerror(peer->outlet.error));
}

static struct peer *make_peer(struct event_base *base, struct channel *channel,
                              const struct peer_callbacks *callbacks, void *context,
                              bool stranger) {
    assert(callbacks->message && callbacks->closed);
    struct peer *peer = memory_new(1, sizeof *peer);
    int descriptor = channel_descriptor(channel);
    if (!channel_is_local(channel))
        tune_tcp(descriptor);
    peer->channel = channel;
    peer->callbacks = *callbacks;
    peer->context = context;
    peer_set_patience(peer, PATIENCE_MS);
    inlet_init(&peer->inlet, channel, stranger);
    outlet_init(&peer->outlet, channel);
    bytes_init(&peer->scratch);
    peer->readable = event_new(base, descriptor, EV_READ | EV_PERSIST, on_readable, peer);
    peer->writable = event_new(base, descriptor, EV_WRITE | EV_PERSIST, on_writable, peer);
    if (!peer->readable || !peer->writable || event_add(peer->readable, NULL)) {
        fprintf(stderr, "dml: the event loop takes no more connections\n");
        abort();
    }
    return peer;
}

struct peer *peer_new(struct event_base *base, struct channel *channel,
                      const struct peer_callbacks *callbacks, void *context) {
    return make_peer(base, channel, callbacks, context, false);
}

struct peer *peer_new_stranger(struct event_base *base, struct channel *channel,
                               const struct peer_callbacks *callbacks, void *context) {
    return make_peer(base, channel, callbacks, context, true);
}

void peer_trust(struct peer *peer) {
    inlet_trust(&peer->inlet);
}

void peer_set_patience(struct peer *peer, int patience_ms) {
    assert(patience_ms > 0);
    peer->patience =
        (struct timeval){.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
}

void peer_free(struct peer *peer) {
    if (!peer)
        return;
    assert(!peer->freed);
    peer->freed = true;
    if (peer->calling) {
        event_del(peer->readable);
        event_del(peer->writable);
    } else {
        destroy(peer);
    }
}

void peer_send(struct peer *peer, const struct message *message) {
    failpoint_send(message->type);
    bytes_clear(&peer->scratch);
    message_encode(message, &peer->scratch);
    outlet_send(&peer->outlet, message->type, message->term, peer->scratch.data,
                peer->scratch.length, &message->bulk);
    after_sending(peer);
}

void peer_send_envelope(struct peer *peer, const struct outbox *outbox,
                        const struct envelope *envelope) {
    failpoint_send(envelope->type);
    outlet_send(&peer->outlet, envelope->type, envelope->term, outbox_body(outbox, envelope),
                envelope->body_length, &envelope->bulk);
    after_sending(peer);
}

void peer_hold(struct peer *peer) {
    peer->outlet.held = true;
}

void peer_let_go(struct peer *peer) {
    if (!peer->outlet.held)
        return;
    peer->outlet.held = false;
    outlet_flush(&peer->outlet);
    after_sending(peer);
}

size_t peer_queued(const struct peer *peer) {
    return peer->outlet.queued + channel_unsent(peer->channel);
}

const struct failpoint_row message_failpoints[MESSAGE_FAILPOINTS] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields)                                     \
    [FAILPOINT_send_##NAME - FAILPOINTS] = {"send_" #NAME, FAILPOINT_PLACE, text},                 \
                             [FAILPOINT_receive_##NAME -                                           \
                                 FAILPOINTS] = {"receive_" #NAME, FAILPOINT_PLACE, text},
#include "wire/messages.def"
};
static_assert((int)MESSAGE_FAILPOINTS_END <= (int)FAILPOINTS_MAX, "visits are counted for all");

void failpoint_send(enum message_type type) {
    static const unsigned of_type[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) [number] = FAILPOINT_send_##NAME,
#include "wire/messages.def"
    };
    failpoint(of_type[type]);
}

void failpoint_receive(enum message_type type) {
    static const unsigned of_type[] = {
#define MESSAGE(NAME, name, number, limit, bulk, text, fields) [number] = FAILPOINT_receive_##NAME,
#include "wire/messages.def"
    };
    failpoint(of_type[type]);
}
