#include "tests/sim/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tests/cluster/network.h"

static void set_up(struct process *process, enum role role, uint32_t index) {
    static const struct behaviour *const behaviours[] = {[ROLE_COORDINATOR] =
                                                             &coordinator_behaviour,
                                                         [ROLE_SHARD] = &shard_behaviour,
                                                         [ROLE_REPLICA] = &replica_behaviour};
    process->role = role;
    process->index = index;
    process->behaviour = behaviours[role];
    snprintf(process->name, sizeof process->name, "%s %u", role_name(role), index);
}

/* ---- starting again ---- */

bool cluster_is_coordinated(struct cluster *cluster) {
    return cluster_coordinator(cluster)->alive || cluster_rival(cluster)->alive;
}

static void begin_again(struct world *world, uint64_t number) {
    struct process *process = &world->processes[number];
    struct cluster *cluster = world->context;
    bool listed = process->role != ROLE_REPLICA || !cluster->shape.elastic ||
                  cluster->names.listed >> process->index & 1;
    bool taken = process->role == ROLE_COORDINATOR && cluster_is_coordinated(cluster);
    if (!process->alive && !cluster->ended && !taken && listed)
        sim_process_begin(process);
}

/* The command is given again, sometimes so late that the workers have given up; workers of somebody
 * else are started again by a supervisor. */
static void after_end(struct process *process) {
    struct world *world = process->world;
    const struct cluster *cluster = world->context;
    bool again = process->role == ROLE_COORDINATOR || !cluster->shape.launched;
    int64_t delay_ns = world_delay(world, 300 * NS_PER_MS);
    if (process->role == ROLE_COORDINATOR && world_chance(world, 6))
        delay_ns += (cluster->shape.reconnect_seconds + 1) * NS_PER_S;
    if (again && !cluster->ended)
        world_call(world, world->now_ns + delay_ns, begin_again, process->number);
}

/* One that is not listed any more is killed at once, or works on until it is let go. */
void cluster_scale(struct cluster *cluster, uint64_t listed) {
    struct world *world = &cluster->world;
    cluster->names.listed = listed;
    cluster->names.failing = false;
    for (uint32_t i = 0; i < cluster->shape.replicas; i++) {
        struct process *replica = cluster_replica(cluster, i);
        if (listed >> i & 1)
            world_call(world, world->now_ns + world_delay(world, 100 * NS_PER_MS), begin_again,
                       replica->number);
        else if (world_chance(world, 2))
            sim_process_end(replica, false);
    }
}

bool cluster_expects(const struct cluster *cluster, int code, const char *text) {
    if (code == ERROR_UNAVAILABLE &&
        (strstr(text, "times, the last time") || strstr(text, "cannot be reached") ||
         strstr(text, "no host is left")))
        return true;
    if (cluster->was_fenced && (strstr(text, "newer coordinator") ||
                                strstr(text, "later coordinator") || code == ERROR_AGAIN))
        return true;
    if (cluster->was_full && strstr(text, "disk is full"))
        return true;
    return (cluster->was_full && code == ERROR_IO) || (cluster->was_damaged && code == ERROR_DATA);
}

struct local_secret cluster_secret(const struct process *shard) {
    struct local_secret secret;
    snprintf(secret.digits, sizeof secret.digits, "%08" PRIx32 "%08" PRIx32 "%016x", shard->number,
             shard->life, 0u);
    return secret;
}

/* ---- life ---- */

void cluster_init(struct cluster *cluster, const struct job *job, const struct cluster_shape *shape,
                  uint64_t seed, bool trace) {
    *cluster = (struct cluster){.job = job, .shape = *shape};
    world_init(&cluster->world, seed, 2 + shape->shards + shape->replicas);
    cluster->world.context = cluster;
    cluster->world.trace = trace;
    cluster->world.ended = after_end;
    network_set(cluster->world.network, shape->delay_ns, shape->shared_memory);
    ledger_init(&cluster->ledger, &cluster->world, job->to_count);
    virtual_disk_init(&cluster->disk);
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++)
        virtual_disk_init(&cluster->own[i]);
    cluster->outcome.model = memory_new(job->parameters, sizeof *cluster->outcome.model);
    cluster->outcome.errors = memory_new(3 * job->parameters, sizeof *cluster->outcome.errors);
    set_up(cluster_coordinator(cluster), ROLE_COORDINATOR, 0);
    set_up(cluster_rival(cluster), ROLE_COORDINATOR, 1);
    const uint32_t hosts = shape->hosts ? shape->hosts : SIM_HOSTS_MAX;
    for (uint32_t i = 0; i < shape->shards + shape->replicas; i++)
        cluster->hosts.at[i] = (i < shape->shards ? i : i - shape->shards) % hosts;
    for (uint32_t i = 0; i < shape->shards; i++)
        set_up(cluster_shard(cluster, i), ROLE_SHARD, i);
    for (uint32_t i = 0; i < SIM_PLACES_MAX; i++)
        cluster->names.at[i] = i < shape->fixed ? i : SIM_NOBODY;
    cluster->names.places = shape->fixed ? shape->fixed : 1;
    for (uint32_t i = 0; i < shape->replicas; i++)
        set_up(cluster_replica(cluster, i), ROLE_REPLICA, i);
}

void cluster_release(struct cluster *cluster) {
    world_release(&cluster->world);
    ledger_release(&cluster->ledger);
    virtual_disk_release(&cluster->disk);
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++)
        virtual_disk_release(&cluster->own[i]);
    virtual_store_release(&cluster->store);
    free(cluster->outcome.model);
    free(cluster->outcome.errors);
    for (int i = 0; i < SIM_REPLICAS_MAX; i++)
        free(cluster->copies[i]);
}

/* A worker that was never greeted waits for ever: it is left out. */
static void check_dismissed(struct cluster *cluster) {
    for (uint32_t i = 0; i < cluster->world.process_count; i++)
        if (cluster->world.processes[i].alive &&
            (cluster->world.processes[i].greeted ||
             cluster->world.processes[i].role == ROLE_COORDINATOR))
            world_fail(&cluster->world, "%s was not dismissed", cluster->world.processes[i].name);
}

void cluster_run(struct cluster *cluster, int64_t limit_ns) {
    struct world *world = &cluster->world;
    for (uint32_t i = world->process_count - 1; i-- > 0;)
        sim_process_begin(&world->processes[i]);
    world_run(world, limit_ns);
    if (!world->failure[0] && !cluster->ended)
        world_fail(world, "the job did not end in %.0f s", (double)world->now_ns / 1e9);
    if (!world->failure[0])
        check_dismissed(cluster);
}
