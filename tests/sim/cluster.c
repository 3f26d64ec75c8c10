#include "tests/sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/sim/network.h"

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

void cluster_init(struct cluster *cluster, const struct job *job, const struct cluster_shape *shape,
                  uint64_t seed, bool trace) {
    *cluster = (struct cluster){.job = job, .shape = *shape};
    world_init(&cluster->world, seed, 1 + shape->shards + shape->replicas);
    cluster->world.context = cluster;
    cluster->world.trace = trace;
    network_set(cluster->world.network, shape->delay_ns, shape->shared_memory);
    ledger_init(&cluster->ledger, &cluster->world, job->data.chunks);
    cluster->outcome.model = memory_new(job->parameters, sizeof *cluster->outcome.model);
    set_up(cluster_coordinator(cluster), ROLE_COORDINATOR, 0);
    for (uint32_t i = 0; i < shape->shards; i++)
        set_up(cluster_shard(cluster, i), ROLE_SHARD, i);
    for (uint32_t i = 0; i < shape->replicas; i++)
        set_up(cluster_replica(cluster, i), ROLE_REPLICA, i);
}

void cluster_release(struct cluster *cluster) {
    world_release(&cluster->world);
    ledger_release(&cluster->ledger);
    free(cluster->outcome.model);
}

static void check_dismissed(struct cluster *cluster) {
    for (uint32_t i = 0; i < cluster->world.process_count; i++)
        if (cluster->world.processes[i].alive)
            world_fail(&cluster->world, "%s was not dismissed", cluster->world.processes[i].name);
}

void cluster_run(struct cluster *cluster, int64_t limit_ns) {
    struct world *world = &cluster->world;
    for (uint32_t i = world->process_count; i-- > 0;)
        process_begin(&world->processes[i]);
    world_run(world, limit_ns);
    if (!world->failure[0] && !cluster->ended)
        world_fail(world, "the job did not end in %.0f s", (double)world->now_ns / 1e9);
    if (!world->failure[0])
        check_dismissed(cluster);
}
