/* Messages under way: see small_cluster.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/fuzz/small_cluster.h"

/* 64-byte aligned, as bulk is; never NULL. */
static uint8_t *copy_of(const void *data, size_t length) {
    uint8_t *copy = NULL;
    if (posix_memalign((void **)&copy, 64, length ? length : 1))
        abort();
    if (length)
        memcpy(copy, data, length);
    return copy;
}

struct packet packet_copy(const struct packet *packet) {
    struct packet copy = *packet;
    copy.body = copy_of(packet->body, packet->body_length);
    copy.bulk = copy_of(packet->bulk, packet->bulk_length);
    return copy;
}

void packet_release(struct packet *packet) {
    free(packet->body);
    free(packet->bulk);
}

void packet_post(struct small_cluster *cluster, uint8_t from, uint8_t to,
                 const struct outbox *outbox, const struct envelope *envelope) {
    MEMORY_ROOM(cluster->packets, cluster->packet_count, cluster->packet_capacity);
    cluster->packets[cluster->packet_count++] =
        (struct packet){.from = from,
                        .to = to,
                        .type = envelope->type,
                        .term = envelope->term,
                        .body = copy_of(outbox_body(outbox, envelope), envelope->body_length),
                        .body_length = envelope->body_length,
                        .bulk = copy_of(envelope->bulk.data, envelope->bulk.length),
                        .bulk_length = envelope->bulk.length};
}

struct packet small_cluster_take(struct small_cluster *cluster, size_t number) {
    struct packet *packets = cluster->packets;
    size_t first = 0;
    while (packets[first].from != packets[number].from || packets[first].to != packets[number].to)
        first++;
    struct packet taken = packets[first];
    cluster->packet_count--;
    memmove(packets + first, packets + first + 1,
            (cluster->packet_count - first) * sizeof *packets);
    return taken;
}

void packets_drop(struct small_cluster *cluster, uint8_t a, uint8_t b) {
    size_t kept = 0;
    for (size_t i = 0; i < cluster->packet_count; i++) {
        struct packet *packet = &cluster->packets[i];
        if ((packet->from == a && packet->to == b) || (packet->from == b && packet->to == a))
            packet_release(packet);
        else
            cluster->packets[kept++] = *packet;
    }
    cluster->packet_count = kept;
}
