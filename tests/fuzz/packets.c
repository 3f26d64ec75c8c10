/* Messages under way: see small_cluster.h. */
#include <string.h>

#include "base/memory.h"
#include "tests/fuzz/small_cluster.h"

void packet_post(struct small_cluster *cluster, uint8_t from, uint8_t to,
                 const struct outbox *outbox, const struct envelope *envelope) {
    MEMORY_ROOM(cluster->packets, cluster->packet_count, cluster->packet_capacity);
    cluster->packets[cluster->packet_count++] =
        (struct packet){.from = from, .to = to, .parcel = parcel_pack(outbox, envelope, false)};
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
            parcel_release(&packet->parcel);
        else
            cluster->packets[kept++] = *packet;
    }
    cluster->packet_count = kept;
}
