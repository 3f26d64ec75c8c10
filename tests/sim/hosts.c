#include "tests/sim/hosts.h"

#include "tests/sim/cluster.h"

bool virtual_host_is_down(const struct cluster *cluster, uint32_t host) {
    return cluster->hosts.items[host].down_until_ns > cluster->world.now_ns;
}

static int64_t until(struct world *world) {
    int64_t usual_ns = world_chance(world, 2) ? 2 * NS_PER_S : 40 * NS_PER_S;
    int64_t delay_ns = world_delay(world, usual_ns);
    return world->now_ns + (delay_ns < 100 * NS_PER_S ? delay_ns : 100 * NS_PER_S);
}

/* A host that comes back may have lost its disk, or what was not safe on it yet. */
static void lose_disk(struct cluster *cluster, uint32_t host, bool stands_still) {
    struct world *world = &cluster->world;
    if (!cluster->shape.apart || stands_still)
        return;
    if (world_chance(world, 2)) {
        virtual_disk_power_cut(&cluster->own[host], &world->random);
        return;
    }
    virtual_disk_clear(&cluster->own[host]);
    cluster->tally.disks_lost++;
    world_say(world, "and its disk is lost");
}

void virtual_host_fail(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    struct virtual_hosts *hosts = &cluster->hosts;
    uint32_t host = (uint32_t)world_between(world, 0, cluster->shape.hosts - 1);
    if (virtual_host_is_down(cluster, host))
        return;
    bool for_good = hosts->lost + 1 < cluster->shape.hosts && world_chance(world, 2);
    hosts->lost += for_good;
    hosts->items[host].down_until_ns = for_good ? NEVER_NS : until(world);
    hosts->items[host].mute = world_chance(world, 2);
    cluster->tally.hosts_failed++;
    world_say(world, "host %u is %s%s", host, hosts->items[host].mute ? "mute" : "down",
              for_good ? " for good" : "");
    lose_disk(cluster, host, hosts->items[host].mute && !for_good);
    for (uint32_t i = 0; i < cluster->shape.shards + cluster->shape.replicas; i++) {
        if (hosts->at[i] != host)
            continue;
        if (hosts->items[host].mute && !for_good)
            process_pause(cluster_worker(cluster, i), hosts->items[host].down_until_ns);
        else
            sim_process_end(cluster_worker(cluster, i), false);
    }
}
