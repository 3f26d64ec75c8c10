#include "tests/sim/copies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cluster/network.h"

#define FINGERPRINT_OF_ANOTHER "another set"

static const struct set_range head_parts[] = {{0, 24}, {24, 40}};
enum { HEAD_PARTS = 2, HEAD_BYTES = 64 };

static uint8_t byte_at(uint64_t offset) {
    return (uint8_t)((offset + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static uint32_t place_count(const struct job *job) {
    return job->data.chunks + (job->tiles ? set_tiles(&job->data) : 0);
}

static uint64_t total_bytes(const struct job *job) {
    return HEAD_BYTES + (uint64_t)place_count(job) * COPY_PLACE_BYTES_MAX;
}

uint32_t copies_places(const struct job *job, struct set_range *places, uint32_t *heads) {
    const uint32_t count = place_count(job);
    assert(count <= COPY_PLACES_MAX);
    *heads = job->tiles ? job->data.chunks : 0;
    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct set_range){HEAD_BYTES + i * COPY_PLACE_BYTES_MAX, 8 + i % 5 * 10};
    return count;
}

uint8_t *copies_of(struct process *replica) {
    struct cluster *cluster = cluster_of(replica);
    uint8_t **copy = &cluster->copies[replica->index];
    if (!*copy)
        *copy = memory_new(total_bytes(cluster->job), 1);
    return *copy;
}

void copies_damage(struct process *replica) {
    const uint64_t total = total_bytes(cluster_of(replica)->job);
    copies_of(replica)[world_between(replica->world, 0, total - 1)] ^= 1;
}

bool copies_sound(const uint8_t *bytes, struct set_range range) {
    for (uint64_t i = 0; i < range.bytes; i++)
        if (bytes[i] != byte_at(range.offset + i))
            return false;
    return true;
}

struct set_range copies_head_lacks(struct process *replica) {
    for (int i = 0; i < HEAD_PARTS; i++)
        if (!copies_sound(copies_of(replica) + head_parts[i].offset, head_parts[i]))
            return head_parts[i];
    return (struct set_range){0};
}

static void answer(struct process *coordinator, uint32_t link, const struct message *question,
                   const char *fingerprint, bool wrong) {
    const struct message_read_set *asked = &question->read_set;
    uint8_t *bytes = memory_new(asked->bytes, 1);
    struct outbox outbox;
    outbox_init(&outbox);
    for (uint64_t i = 0; i < asked->bytes; i++)
        bytes[i] = byte_at(asked->offset + i);
    if (wrong)
        bytes[world_between(coordinator->world, 0, asked->bytes - 1)] ^= 4;
    struct message message = {.type = MESSAGE_SET_BYTES, .term = question->term};
    message.set_bytes = (struct message_set_bytes){fingerprint, asked->offset,
                                                   total_bytes(cluster_of(coordinator)->job), ""};
    message.bulk = (struct bulk){.data = bytes, .length = asked->bytes};
    outbox_add(&outbox, link, &message);
    if (process_acts(coordinator))
        network_send(coordinator, link, &outbox, &outbox.envelopes[0]);
    outbox_release(&outbox);
    free(bytes);
}

void copies_answer(struct process *coordinator, uint32_t link, const struct message *question) {
    struct world *world = coordinator->world;
    const char *own = question->read_set.fingerprint;
    cluster_of(coordinator)->tally.pieces++;
    if (world_chance(world, 40))
        return;
    if (world_chance(world, 40))
        answer(coordinator, link, question, FINGERPRINT_OF_ANOTHER, true);
    answer(coordinator, link, question, own, world_chance(world, 30));
    if (world_chance(world, 40))
        answer(coordinator, link, question, own, false);
}
