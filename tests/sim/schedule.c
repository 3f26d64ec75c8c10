#include "tests/sim/schedule.h"

#include "tests/sim/network.h"

static uint64_t between(struct random *random, uint64_t least, uint64_t most) {
    return least + random_below(random, most - least + 1);
}

struct cluster_shape schedule_shape(uint64_t seed) {
    struct random random;
    random_init(&random, seed ^ UINT64_C(0x5eed));
    struct cluster_shape shape = {
        .shards = (uint32_t)between(&random, 1, 3),
        .replicas = (uint32_t)between(&random, 1, SIM_REPLICAS_MAX),
        .portion_chunks = random_below(&random, 2) ? (uint32_t)between(&random, 1, 5) : 0,
        .flush_ms = (uint32_t)between(&random, 0, 60),
        .reconnect_seconds = 30,
        .shared_memory = random_below(&random, 2),
        .delay_ns = (int64_t)between(&random, 20, 2000) * 1000,
        .chunk_ns = (int64_t)between(&random, 100, 20000) * 1000,
        .slow = UINT32_MAX,
    };
    if (random_below(&random, 3) == 0)
        shape.slow = (uint32_t)random_below(&random, shape.replicas);
    return shape;
}

/* ---- faults ---- */

static struct process *any_process(struct world *world) {
    return &world->processes[random_below(&world->random, world->process_count)];
}

static void pause(struct world *world, uint64_t what) {
    (void)what;
    process_pause(any_process(world), world->now_ns + world_delay(world, 100 * NS_PER_MS));
}

/* Some connection between a replica and a shard. */
static void break_some(struct world *world, uint64_t what) {
    (void)what;
    uint32_t count = network_connections(world->network);
    uint32_t links = world->process_count - 1;
    if (count > links)
        network_break(world->network, (uint32_t)world_between(world, links, count - 1));
}

int64_t schedule_faults(struct cluster *cluster, uint64_t seed, int64_t usual_ns) {
    static void (*const faults[])(struct world * world, uint64_t what) = {pause, break_some};
    struct world *world = &cluster->world;
    uint64_t count = world_between(world, 0, 6);
    int64_t last_ns = 0;
    (void)seed;
    for (uint64_t i = 0; i < count; i++) {
        int64_t at_ns = (int64_t)world_between(world, 0, (uint64_t)usual_ns * 5 / 4);
        uint64_t kind = world_between(world, 0, sizeof faults / sizeof *faults - 1);
        world_call(world, at_ns, faults[kind], i);
        last_ns = at_ns > last_ns ? at_ns : last_ns;
    }
    return last_ns;
}
