#include "tests/sim/schedule.h"

#include <stdio.h>

#include "tests/cluster/network.h"

static uint64_t between(struct random *random, uint64_t least, uint64_t most) {
    return least + random_below(random, most - least + 1);
}

static int64_t later(int64_t a_ns, int64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

/* Every step, from time to time, or never. */
static int64_t checkpoint_ns(struct random *random) {
    switch (random_below(random, 8)) {
    case 0:
        return 3600 * NS_PER_S;
    case 1:
        return (int64_t)between(random, 20, 500) * NS_PER_MS;
    default:
        return 0;
    }
}

struct cluster_shape schedule_shape(uint64_t seed) {
    struct random random;
    random_init(&random, seed ^ UINT64_C(0x5eed));
    struct cluster_shape shape = {
        .shards = (uint32_t)between(&random, 1, 3),
        .replicas = (uint32_t)between(&random, 1, SIM_REPLICAS_MAX),
        .portion_chunks = random_below(&random, 2) ? (uint32_t)between(&random, 1, 5) : 0,
        .backup_copies = seed % 16 != 3,
        .flush_ms = (uint32_t)between(&random, 0, 60),
        .reconnect_seconds = random_below(&random, 4) ? 30 : 2,
        .checkpoint_ns = checkpoint_ns(&random),
        .launched = random_below(&random, 3) > 0,
        .shared_memory = random_below(&random, 2),
        .delay_ns = (int64_t)between(&random, 20, 2000) * 1000,
        .disk_ns =
            (int64_t)between(&random, 1, 10) * (random_below(&random, 3) ? 4 : 100) * NS_PER_MS,
        .chunk_ns = (int64_t)between(&random, 100, 20000) * 1000,
        .slow = UINT32_MAX,
        .cancels = seed % 4 == 3,
        .dies = seed % 16 == 11,
        .devices = seed % 8 == 6,
        .ahead = seed % 32 == 24,
        .apart = seed % 32 == 26 || seed % 64 == 28 || seed % 64 == 9,
        .rivals = seed % 4 == 1,
        .elastic = seed % 32 == 4 || seed % 32 == 29,
        .odd = UINT32_MAX,
    };
    if (random_below(&random, 3) == 0)
        shape.slow = (uint32_t)random_below(&random, shape.replicas);
    if (shape.elastic) {
        shape.launched = false;
        shape.replicas = (uint32_t)between(&random, 2, SIM_REPLICAS_MAX);
        shape.fixed = (uint32_t)random_below(&random, 2);
        if (random_below(&random, 2))
            shape.odd = shape.replicas - 1;
        if (random_below(&random, 2)) /* replicas come and go within an evaluation */
            shape.chunk_ns = (int64_t)between(&random, 20, 80) * NS_PER_MS;
    }
    if (shape.launched && !shape.rivals && random_below(&random, 3) == 0)
        shape.hosts = (uint32_t)between(&random, 2, SIM_HOSTS_MAX);
    if (seed % 16 == 10) {
        shape.local = true;
        shape.shut = seed % 64 == 10;
        shape.shared_memory = false;
        shape.hosts = 0;
    }
    shape.apart |= seed % 8 == 5 || (shape.hosts && seed % 2 == 0);
    if (shape.rivals)
        shape.launched = false; /* so that a worker outlives what one coordinator does to it */
    if (seed % 4 == 2) {        /* what is being written is to be overwritten */
        shape.disk_ns = (int64_t)between(&random, 200, 4000) * NS_PER_MS;
        shape.chunk_ns = NS_PER_MS / 10;
    }
    /* Else a step that was made durable before the run was cancelled is what it goes on from. */
    if (shape.cancels && (random_below(&random, 2) || shape.dies))
        shape.checkpoint_ns = 3600 * NS_PER_S;
    if (shape.ahead) { /* short evaluations, of which hardly any is journalled */
        shape.chunk_ns = NS_PER_MS / 10;
        shape.checkpoint_ns = 3600 * NS_PER_S;
    }
    if (shape.dies) { /* while the last step is being written and flushes still come */
        shape.disk_ns = NS_PER_S;
        shape.chunk_ns = 20 * NS_PER_MS;
    }
    return shape;
}

/* ---- faults ---- */

static struct process *any_process(struct world *world) {
    return &world->processes[random_below(&world->random, world->process_count)];
}

/* Seldom nobody, often one, sometimes all. */
static uint64_t any_set(struct world *world) {
    uint64_t all = (UINT64_C(1) << world->process_count) - 1;
    if (world_chance(world, 4))
        return all;
    return world_chance(world, 2) ? UINT64_C(1) << any_process(world)->number
                                  : random_next(&world->random) & all;
}

static int64_t at_most_a_minute(int64_t delay_ns) {
    return delay_ns < 60 * NS_PER_S ? delay_ns : 60 * NS_PER_S;
}

static void stop_one(struct world *world, uint64_t what) {
    (void)what;
    process_pause(any_process(world), world->now_ns + world_delay(world, 100 * NS_PER_MS));
}

/* Longer than any time-out. */
static void freeze_one(struct world *world, uint64_t what) {
    (void)what;
    process_pause(any_process(world),
                  world->now_ns + at_most_a_minute(world_delay(world, 10 * NS_PER_S)));
}

static void break_some(struct world *world, uint64_t what) {
    (void)what;
    uint32_t count = network_connections(world->network);
    for (uint32_t tries = 0; count && tries < 10; tries++)
        if (network_break(world->network, (uint32_t)world_between(world, 0, count - 1)))
            return;
}

static void part(struct world *world, uint64_t what) {
    (void)what;
    const struct cluster *cluster = world->context;
    int64_t usual_ns = world_chance(world, 3) ? 15 * NS_PER_S : 200 * NS_PER_MS;
    if (!cluster->shape.launched || cluster->shape.hosts) /* else they share a machine */
        network_part(world->network, any_set(world),
                     world->now_ns + at_most_a_minute(world_delay(world, usual_ns)));
}

static void kill_some(struct world *world, uint64_t what) {
    (void)what;
    uint64_t set = any_set(world);
    for (uint32_t i = 0; i < world->process_count; i++)
        if (set >> i & 1)
            sim_process_end(&world->processes[i], false);
}

/* In the middle of what it does: after some more writes and sends. */
static void kill_midway(struct world *world, uint64_t what) {
    (void)what;
    struct process *process = any_process(world);
    if (process->alive && process->effects_left == UINT64_MAX)
        process->effects_left = world_between(world, 0, world_chance(world, 2) ? 3 : 30);
}

/* The power of all, or only of the machine that the coordinator runs on. */
static void cut_power(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    bool all = world_chance(world, 2);
    for (uint32_t i = 0; i < world->process_count; i++)
        if (all || world->processes[i].role == ROLE_COORDINATOR)
            sim_process_end(&world->processes[i], false);
    virtual_store_power_cut(&cluster->store, &world->random);
    if (all || cluster->shape.apart)
        virtual_disk_power_cut(&cluster->disk, &world->random);
    for (uint32_t i = 0; i < SIM_HOSTS_MAX && all; i++)
        virtual_disk_power_cut(&cluster->own[i], &world->random);
    world_say(world, "the power was cut");
}

static void empty_disks(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    cluster->disk.full = cluster->store.full = false;
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++)
        cluster->own[i].full = false;
    world_say(world, "the disks have room again");
}

static void fill_disk(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    bool *full = world_chance(world, 2) ? &cluster->disk.full : &cluster->store.full;
    if (cluster->shape.apart && world_chance(world, 2))
        full = &cluster->own[random_below(&world->random, SIM_HOSTS_MAX)].full;
    *full = cluster->was_full = true;
    world_say(world, "a disk is full");
    world_call(world, world->now_ns + world_delay(world, 500 * NS_PER_MS), empty_disks, 0);
}

/* The lock is lost while its holder lives, and the command is given again. */
static void take_over(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    struct process *former = cluster_coordinator(cluster), *rival = cluster_rival(cluster);
    if (rival->alive) {
        former = rival;
        rival = cluster_coordinator(cluster);
    }
    if (!former->alive || rival->alive || cluster->ended)
        return;
    world_say(world, "the lock of %s is lost", former->name);
    cluster->was_fenced = true;
    cluster->tally.takeovers++;
    if (world_chance(world, 2))
        process_pause(former, world->now_ns + world_delay(world, 200 * NS_PER_MS));
    if (world_chance(world, 2))
        network_separate(former, NULL);
    virtual_store_crash(&cluster->store);
    sim_process_begin(rival);
}

/* A coordinator that is fenced out and does not know it yet loses replicas, and greets them again.
 */
static void greet_again(struct world *world, uint64_t former) {
    struct cluster *cluster = world->context;
    for (uint32_t i = 0; i < cluster->shape.replicas; i++)
        if (world_chance(world, 2))
            network_separate(&world->processes[former], cluster_replica(cluster, i));
}

static void take_over_and_meet(struct world *world, uint64_t what) {
    struct cluster *cluster = world->context;
    struct process *former = cluster_coordinator(cluster);
    if (!former->alive)
        former = cluster_rival(cluster);
    take_over(world, what);
    world_call(world, world->now_ns + world_delay(world, 50 * NS_PER_MS), greet_again,
               former->number);
}

/* The newest file of some shard. */
static void damage(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    char prefix[32];
    snprintf(prefix, sizeof prefix, "shards/%u/step-",
             (unsigned)random_below(&world->random, cluster->shape.shards));
    if (virtual_disk_damage(&cluster->disk, prefix, &world->random)) {
        cluster->was_damaged = true;
        world_say(world, "the newest %s* is damaged", prefix);
    }
}

/* A shard ends, and so does what lay on its host's disk. Nobody has damaged the coordinator's
 * copies: the run needs no other step. */
static void lose_own_disk(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    const uint32_t shard = (uint32_t)random_below(&world->random, cluster->shape.shards);
    virtual_disk_clear(&cluster->own[cluster->hosts.at[shard]]);
    cluster->tally.disks_lost++;
    world_say(world, "the disk of shard %u is lost", shard);
    sim_process_end(cluster_shard(cluster, shard), false);
}

/* A file of a shard is damaged on the disk of its host, after the coordinator has read it. */
static void damage_own_disk(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    const uint32_t shard = (uint32_t)random_below(&world->random, cluster->shape.shards);
    struct virtual_disk *own = &cluster->own[cluster->hosts.at[shard]];
    char copies[32];
    snprintf(copies, sizeof copies, "shards/%u", (unsigned)shard);
    if (!virtual_disk_has_all(&cluster->disk, copies, own))
        return;
    virtual_disk_damage(own, "own/shards/", &world->random);
    world_say(world, "a file of shard %u is damaged on its host", shard);
    sim_process_end(cluster_shard(cluster, shard), false);
}

/* The coordinator's disk is full while a checkpoint or two are delivered, so that these fail there
 * alone. The next ones refer to their files, and the shard's disk is lost when two were durable. */
static void fill_copies(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    const int64_t full_ns = cluster->shape.disk_ns * (int64_t)world_between(world, 1, 4);
    const int64_t lost_ns = full_ns + cluster->shape.disk_ns * (int64_t)world_between(world, 4, 16);
    cluster->disk.full = cluster->was_full = true;
    world_say(world, "the coordinator's disk is full");
    world_call(world, world->now_ns + full_ns, empty_disks, 0);
    world_call(world, world->now_ns + lost_ns, lose_own_disk, 0);
}

typedef void fault(struct world *world, uint64_t what);

/* What is common comes often. */
static fault *const faults[] = {stop_one,    stop_one,  freeze_one, break_some,  break_some,
                                part,        kill_some, kill_some,  kill_midway, kill_midway,
                                kill_midway, cut_power, fill_disk,  take_over,   take_over};

/* Two coordinators at once: while an evaluation runs, or while the older one is only about to greet
 * workers, which its messages take long to reach. */
static int64_t schedule_rivals(struct cluster *cluster, uint64_t horizon_ns) {
    struct world *world = &cluster->world;
    int64_t last_ns = 0;
    if (world_chance(world, 3)) {
        cluster_coordinator(cluster)->far = true;
        world_call(world, world_delay(world, 10 * cluster->shape.delay_ns), take_over, 0);
    }
    for (uint64_t i = world_between(world, 1, 3); i-- > 0;) {
        int64_t at_ns = (int64_t)world_between(world, 0, horizon_ns);
        world_call(world, at_ns, take_over_and_meet, 0);
        last_ns = later(last_ns, at_ns);
    }
    return last_ns;
}

/* Hosts fail before the run has begun, while it goes on, and while others are down. */
static int64_t schedule_hosts(struct cluster *cluster, uint64_t horizon_ns) {
    struct world *world = &cluster->world;
    int64_t last_ns = 0;
    for (uint64_t i = world_between(world, 1, 5); i-- > 0;) {
        int64_t at_ns =
            world_chance(world, 4) ? 1 : (int64_t)world_between(world, 0, 2 * horizon_ns);
        world_call(world, at_ns, virtual_host_fail, 0);
        last_ns = later(last_ns, at_ns);
    }
    return last_ns;
}

/* The replicas that are there all the time are listed elsewhere. */
static uint64_t any_listed(struct cluster *cluster) {
    const struct cluster_shape *shape = &cluster->shape;
    uint64_t all = ((UINT64_C(1) << shape->replicas) - 1) & ~(uint64_t)shape->fixed;
    return random_next(&cluster->world.random) & all;
}

/* The name lists others, or nobody can tell whom it lists. */
static void scale(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    uint64_t listed = any_listed(cluster);
    if (!listed || world_chance(world, 6))
        cluster->names.failing = true;
    else
        cluster_scale(cluster, listed | cluster->shape.fixed);
}

static void list_again(struct world *world, uint64_t listed) {
    struct cluster *cluster = world->context;
    cluster_scale(cluster, listed | cluster->names.listed | cluster->shape.fixed);
}

/* A replica is gone, and comes back while its evaluation runs, or another one in its place. */
static void replace_one(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    uint64_t listed = cluster->names.listed, other = any_listed(cluster);
    uint32_t one = (uint32_t)random_below(&world->random, cluster->shape.replicas);
    if (one < cluster->shape.fixed || !(listed >> one & 1))
        return;
    cluster->names.listed &= ~(UINT64_C(1) << one);
    sim_process_end(cluster_replica(cluster, one), false);
    world_call(world, world->now_ns + world_delay(world, 200 * NS_PER_MS), list_again,
               other && world_chance(world, 2) ? other : listed);
}

/* At last some replica is there that computes the right bits. */
static void scale_to_one(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    cluster_scale(cluster, any_listed(cluster) | 1);
}

static int64_t schedule_scale(struct cluster *cluster, uint64_t horizon_ns) {
    struct world *world = &cluster->world;
    int64_t last_ns = 0;
    cluster->names.listed = any_listed(cluster) | 1;
    for (uint64_t i = world_between(world, 1, 12); i-- > 0;) {
        int64_t at_ns = (int64_t)world_between(world, 0, horizon_ns);
        world_call(world, at_ns, world_chance(world, 2) ? scale : replace_one, 0);
        last_ns = later(last_ns, at_ns);
    }
    world_call(world, ++last_ns, scale_to_one, 0);
    return last_ns;
}

static void fail_device(struct world *world, uint64_t what) {
    (void)what;
    struct process *process = any_process(world);
    if (process->alive && process->role != ROLE_COORDINATOR)
        world_alarm(process, world->now_ns, ALARM_DEVICE);
}

/* While it waits for shards that write: what it sends then answers flushes. */
static void kill_stopping(struct world *world, uint64_t number) {
    struct process *process = &world->processes[number];
    if (process->alive && process->effects_left == UINT64_MAX)
        process->effects_left = world_between(world, 1, 4);
}

static void cancel(struct world *world, uint64_t what) {
    (void)what;
    const struct cluster *cluster = world->context;
    struct process *process = cluster_coordinator(world->context);
    if (process->alive)
        world_alarm(process, world->now_ns, ALARM_CANCEL);
    if (cluster->shape.dies)
        world_call(world, world->now_ns + world_delay(world, 50 * NS_PER_MS), kill_stopping,
                   process->number);
}

/* An evaluation takes long, so that it and the next are journalled. */
static void run_ahead(struct world *world, uint64_t what) {
    (void)what;
    struct cluster *cluster = world->context;
    cluster->cut_ahead = true;
    for (uint32_t i = 0; i < cluster->shape.replicas; i++)
        process_pause(cluster_replica(cluster, i), world->now_ns + 200 * NS_PER_MS);
}

/* One to `most` of a fault. */
static int64_t schedule_some(struct cluster *cluster, uint64_t horizon_ns, uint64_t most,
                             fault *happens) {
    struct world *world = &cluster->world;
    int64_t last_ns = 0;
    for (uint64_t i = world_between(world, 1, most); i-- > 0;) {
        int64_t at_ns = (int64_t)world_between(world, 0, horizon_ns);
        world_call(world, at_ns, happens, 0);
        last_ns = later(last_ns, at_ns);
    }
    return last_ns;
}

int64_t schedule_faults(struct cluster *cluster, int64_t usual_ns) {
    struct world *world = &cluster->world;
    uint64_t count = world_between(world, 0, 8);
    uint64_t horizon_ns = (uint64_t)usual_ns * (world_chance(world, 2) ? 1 : 3);
    if (world_chance(world, 10))
        world_call(world, (int64_t)world_between(world, 0, horizon_ns), damage, 0);
    if (world_chance(world, 4))
        any_process(world)->far = true;
    int64_t last_ns = 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t at_ns = (int64_t)world_between(world, 0, horizon_ns);
        uint64_t kind = world_between(world, 0, sizeof faults / sizeof *faults - 1);
        world_call(world, at_ns, faults[kind], 0);
        last_ns = later(last_ns, at_ns);
    }
    if (cluster->shape.elastic)
        last_ns = later(last_ns, schedule_scale(cluster, horizon_ns));
    if (cluster->shape.hosts)
        last_ns = later(last_ns, schedule_hosts(cluster, horizon_ns));
    if (cluster->shape.apart) {
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 6, lose_own_disk));
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 4, damage_own_disk));
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 4, fill_copies));
    }
    if (cluster->shape.devices)
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 6, fail_device));
    if (cluster->shape.cancels && (cluster->job->optimizer.directions || cluster->shape.dies))
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 3, cancel));
    if (cluster->shape.ahead)
        last_ns = later(last_ns, schedule_some(cluster, horizon_ns, 6, run_ahead));
    if (cluster->shape.rivals)
        last_ns = later(last_ns, schedule_rivals(cluster, horizon_ns));
    return last_ns;
}
