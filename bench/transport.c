/* How fast bulk gets from one process to another by each way. A child sends messages with 16 MiB of
 * bulk, two of them under way, and the parent adds up what it gets, as a shard does. Ways take
 * turns. Prints the most GB a second of each, because the machine may be shared. */
#define _GNU_SOURCE
#include <event2/event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "wire/address.h"
#include "wire/peer.h"
#include "wire/bulk.h"

enum { AHEAD = 2, /* messages under way */ TIMES = 40, TURNS = 5 };
#define BULK_BYTES (UINT64_C(16) << 20)

static const char *const ways[] = {"shared memory", "Unix socket", "TCP", "TLS"};
enum { WAYS = sizeof ways / sizeof *ways };

struct end {
    struct event_base *base;
    struct peer *peer;
    struct segment *segment; /* of the sender */
    uint64_t elements, left, received;
    double sum;
    bool shared;
};

static void send_next(struct end *end) {
    struct message message = {.type = MESSAGE_SLICE,
                              .slice = {.count = end->elements},
                              .bulk = {.data = end->segment->start,
                                       .length = end->elements * sizeof(double),
                                       .segment = end->shared ? end->segment : NULL}};
    if (end->left) {
        end->left--;
        peer_send(end->peer, &message);
    }
}

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct end *end = context;
    if (message->type == MESSAGE_PONG) {
        send_next(end);
        return;
    }
    const double *elements = message->bulk.data;
    for (uint64_t i = 0; i < end->elements; i++)
        end->sum += elements[i];
    end->received++;
    peer_send(peer, &(struct message){.type = MESSAGE_PONG});
    if (!--end->left)
        event_base_loopbreak(end->base);
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    struct end *end = context;
    (void)peer, (void)reason;
    event_base_loopbreak(end->base);
}

static void open_end(struct end *end, struct channel *channel) {
    static const struct peer_callbacks callbacks = {on_message, on_closed};
    end->base = event_base_new();
    end->peer = peer_new(end->base, channel, &callbacks, end);
}

/* Two connected sockets. */
static void connect_pair(bool local, int ends[2]) {
    int listener;
    char *bound;
    if (local) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
            abort();
        return;
    }
    if (address_listen("127.0.0.1:0", &listener, &bound))
        abort();
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    (void)getsockname(listener, (struct sockaddr *)&address, &length);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (struct sockaddr *)&address, length))
        abort();
    evutil_make_socket_nonblocking(ends[0]);
    while ((ends[1] = address_accept(listener)) < 0)
        ;
    close(listener);
    free(bound);
}

static struct channel *open_channel(const char *way, int descriptor, bool client) {
    static const struct key key = {.name = "0123456789abcdef"};
    struct tls *tls;
    if (strcmp(way, "TLS"))
        return channel_new(descriptor);
    if (tls_new(&key, &tls))
        abort();
    struct channel *channel = channel_new_tls(descriptor, tls, client);
    while (channel_handshake(channel) == 0)
        usleep(100);
    return channel;
}

static void send_all(const char *way, int descriptor, struct end *end) {
    end->shared = !strcmp(way, "shared memory");
    end->segment = segment_new(end->elements * sizeof(double));
    memset(end->segment->start, 1, end->elements * sizeof(double));
    open_end(end, open_channel(way, descriptor, true));
    for (unsigned i = 0; i < AHEAD; i++)
        send_next(end);
    event_base_dispatch(end->base);
}

/* GB a second. */
static double measure(const char *way) {
    int ends[2];
    struct end end = {.elements = BULK_BYTES / sizeof(double), .left = TIMES + 1};
    connect_pair(strcmp(way, "TLS") && strcmp(way, "TCP"), ends);
    if (!fork()) {
        close(ends[1]);
        send_all(way, ends[0], &end);
        _exit(0);
    }
    close(ends[0]);
    open_end(&end, open_channel(way, ends[1], false));
    while (!end.received) /* the first one warms up */
        event_base_loop(end.base, EVLOOP_ONCE);
    int64_t start_ns = clock_monotonic_ns();
    event_base_dispatch(end.base);
    double seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    peer_free(end.peer);
    event_base_free(end.base);
    wait(NULL);
    if (end.received != TIMES + 1)
        abort();
    return (double)(BULK_BYTES * TIMES) / seconds / 1e9;
}

int main(void) {
    double most[WAYS] = {0};
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < WAYS; i++)
            most[i] = fmax(most[i], measure(ways[i]));
    for (size_t i = 0; i < WAYS; i++)
        printf("%-14s %6.2f GB/s\n", ways[i], most[i]);
    return 0;
}
