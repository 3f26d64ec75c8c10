/* Sending what a step of the machine asked for. */
#include "coordinator/run/cluster_parts.h"

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
