/* Drives the real state machines of all roles. Some messages are odd, lost, repeated or sent to the
 * wrong role. The machines must survive every message that passes the check of its fields, and the
 * messages that they send must pass that check, too.
 *
 * An input is a course of events. With files as arguments: replays those. Without: replays the
 * corpus and inputs drawn from seeds, as many as DML_FUZZ in the environment says. libFuzzer's
 * program is made by `make fuzz`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/fuzz/odd_message.h"
#include "tests/fuzz/small_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* The most parameters that a set-up may ask for here. The check of fields accepts as many as the
 * largest machine could hold, and the roles would reserve memory for them. */
#define PARAMETERS_SMALL (UINT64_C(1) << 16)

enum { REMEMBERED = 16 };

/* The messages sent last, which are sent again later, also to others. */
struct memory {
    struct packet packets[REMEMBERED];
    size_t count;
};

static void remember(struct memory *memory, const struct packet *packet) {
    struct packet *place = &memory->packets[memory->count++ % REMEMBERED];
    parcel_release(&place->parcel);
    *place = *packet;
    place->parcel = parcel_copy(&packet->parcel);
}

static bool is_small(const struct message *message) {
    struct blob blob;
    struct layout layout;
    if (message->type == MESSAGE_SHARD_SETUP)
        blob = message->shard_setup.layout;
    else if (message->type == MESSAGE_REPLICA_SETUP)
        blob = message->replica_setup.layout;
    else
        return true;
    return layout_decode(blob.data, blob.length, &layout) ||
           layout_parameters(&layout) <= PARAMETERS_SMALL;
}

/* A message that a role has sent must pass the check of its fields. */
static void assert_sound(struct packet *packet) {
    struct message message = parcel_message(&packet->parcel);
    const char *fault = message_fault(&message);
    if (!fault)
        return;
    fprintf(stderr, "a role sent %s: %s\n", message_name(message.type), fault);
    abort();
}

static void hand_over(struct small_cluster *cluster, struct packet *packet, bool odd,
                      struct draw *draw) {
    struct message message = parcel_message(&packet->parcel);
    if (odd)
        odd_message(&message, packet->parcel.bulk, draw);
    if (message_fault(&message))
        small_cluster_break(cluster, packet->from, packet->to); /* as wire/transfer.c does */
    else if (is_small(&message))
        small_cluster_give(cluster, packet->from, packet->to, &message);
}

static void deliver(struct small_cluster *cluster, struct memory *memory, bool odd,
                    struct draw *draw) {
    size_t waiting = cluster->packet_count < 256 ? cluster->packet_count : 256;
    struct packet packet =
        small_cluster_take(cluster, waiting > 1 ? draw_below(draw, (uint32_t)waiting) : 0);
    assert_sound(&packet);
    remember(memory, &packet);
    hand_over(cluster, &packet, odd, draw);
    parcel_release(&packet.parcel);
}

/* Sends an earlier message again, mostly from and to other nodes. */
static void repeat(struct small_cluster *cluster, const struct memory *memory, struct draw *draw) {
    size_t known = memory->count < REMEMBERED ? memory->count : REMEMBERED;
    if (!known)
        return;
    struct packet packet = memory->packets[draw_below(draw, (uint32_t)known)];
    packet.parcel = parcel_copy(&packet.parcel);
    if (draw_below(draw, 4)) {
        packet.from = (uint8_t)draw_below(draw, NODES);
        packet.to = (uint8_t)draw_below(draw, NODES);
    }
    packet.parcel.term += draw_below(draw, 8) == 1;
    if (packet.to != COORDINATOR || packet.from != COORDINATOR)
        hand_over(cluster, &packet, draw_below(draw, 2), draw);
    parcel_release(&packet.parcel);
}

static void disturb(struct small_cluster *cluster, struct draw *draw) {
    switch (draw_below(draw, 6)) {
    case 0:
        small_cluster_next_coordinator(cluster);
        break;
    case 1:
        cluster->disk.full = !cluster->disk.full;
        break;
    case 2:
        cluster->store.full = draw_below(draw, 8) == 0;
        break;
    default:
        small_cluster_break(cluster, (uint8_t)draw_below(draw, NODES),
                            (uint8_t)draw_below(draw, NODES));
    }
}

/* `rate` of 256 messages are odd, and as many are repeated. */
static void one_event(struct small_cluster *cluster, struct memory *memory, uint32_t rate,
                      struct draw *draw) {
    uint32_t event = draw_byte(draw);
    if (event == 255)
        disturb(cluster, draw);
    else if (event >= 253)
        small_cluster_tick(cluster, (int64_t)draw_byte(draw) << draw_below(draw, 28));
    else if (event >= 230)
        small_cluster_work(cluster);
    else if (event >= 230 - rate)
        repeat(cluster, memory, draw);
    else if (cluster->packet_count)
        deliver(cluster, memory, event < rate, draw);
    else if (!small_cluster_work(cluster))
        small_cluster_tick(cluster, 2000000);
}

/* Over all inputs. */
static struct cluster_counts counts;

static void add_counts(const struct cluster_counts *more) {
    counts.messages += more->messages;
    counts.steps += more->steps;
    counts.common += more->common;
    counts.epochs += more->epochs;
    counts.durable += more->durable;
    counts.coordinators += more->coordinators;
    counts.workers += more->workers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct draw draw = {data, length};
    struct small_cluster cluster;
    struct memory memory = {0};
    uint8_t flags = draw_byte(&draw);
    bool directions = (flags & 192) == 192 && (flags & 6) != 6;
    small_cluster_init(&cluster, &(struct cluster_options){.uniform = flags & 1,
                                                           .keeps_best = flags & 2,
                                                           .starts = (flags & 6) == 4,
                                                           .pours = (flags & 6) == 6,
                                                           .squared = flags & 8,
                                                           .sparse = !directions && flags & 64,
                                                           .network = !directions && flags & 128,
                                                           .directions = directions});
    while (draw.left)
        one_event(&cluster, &memory, 1u << (flags >> 4 & 3), &draw);
    for (size_t i = 0; i < REMEMBERED; i++)
        parcel_release(&memory.packets[i].parcel);
    add_counts(&cluster.counts);
    small_cluster_release(&cluster);
    return 0;
}

#ifndef LIBFUZZER
#include "tests/fuzz/corpus.h"

enum { INPUTS = 100, INPUT_BYTES = 8192 };

int main(int argc, char **argv) {
    int status;
    if (feed_named(argc, argv, &status))
        return status;
    printf("1..2\n");
    uint64_t inputs = feed_inputs(INPUTS, INPUT_BYTES);
    printf("ok 1 - the roles survive odd messages\n");
    printf("# %llu inputs: %llu messages, %llu steps, %llu with directions, %llu epochs, %llu "
           "durable, "
           "%llu coordinators, %llu workers\n",
           (unsigned long long)inputs, (unsigned long long)counts.messages,
           (unsigned long long)counts.steps, (unsigned long long)counts.common,
           (unsigned long long)counts.epochs, (unsigned long long)counts.durable,
           (unsigned long long)counts.coordinators, (unsigned long long)counts.workers);
    unsigned files = feed_corpus("corpus-roles");
    printf("%s 2 - the roles survive the corpus # %u files\n", files ? "ok" : "not ok", files);
    return files ? 0 : 1;
}

#endif
