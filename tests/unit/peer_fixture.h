/* Two ends of a connection, with what came over it; or one, and the bare socket of the other. */
#ifndef DML_TESTS_UNIT_PEER_FIXTURE_H
#define DML_TESTS_UNIT_PEER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/peer.h"
#include "wire/bulk.h"

/* One end of a connection, and what came over it. */
struct end {
    struct peer *peer;
    unsigned messages;
    enum message_type last;
    uint64_t term;
    double first_element;
    size_t bulk_length;
    const void *bulk_data;
    bool keep;
    struct kept_bulk kept;
    char reason[200];
    bool answer; /* a BYE to each message */
    bool leave;  /* frees the peer in the message call */
};

static void on_message(void *context, struct peer *peer, const struct message *message) {
    struct end *end = context;
    end->messages++;
    end->last = message->type;
    end->term = message->term;
    end->bulk_length = message->bulk.length;
    end->bulk_data = message->bulk.data;
    if (message->bulk.length)
        memcpy(&end->first_element, message->bulk.data, sizeof end->first_element);
    if (end->keep && message->bulk.length)
        bulk_keep(&message->bulk, &end->kept);
    if (end->answer)
        peer_send(peer, &(struct message){.type = MESSAGE_BYE});
    if (end->leave) {
        peer_free(peer);
        end->peer = NULL;
    }
}

static void on_closed(void *context, struct peer *peer, const char *reason) {
    (void)peer;
    struct end *end = context;
    snprintf(end->reason, sizeof end->reason, "%s", reason);
    end->peer = NULL;
}

static const struct peer_callbacks callbacks = {on_message, on_closed};

struct pair {
    struct event_base *base;
    struct end a, b;
    int raw; /* instead of a: an end without a peer */
};

static void pair_init(struct pair *pair, bool raw) {
    int ends[2];
    *pair = (struct pair){.base = event_base_new(), .raw = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    pair->b.peer = peer_new(pair->base, channel_new(ends[1]), &callbacks, &pair->b);
    if (raw)
        pair->raw = ends[0];
    else
        pair->a.peer = peer_new(pair->base, channel_new(ends[0]), &callbacks, &pair->a);
}

static void pair_release(struct pair *pair) {
    peer_free(pair->a.peer);
    peer_free(pair->b.peer);
    if (pair->raw >= 0)
        close(pair->raw);
    kept_bulk_release(&pair->b.kept);
    event_base_free(pair->base);
}

static void turn(struct pair *pair) {
    for (unsigned i = 0; i < 200; i++)
        event_base_loop(pair->base, EVLOOP_NONBLOCK);
}

#endif
