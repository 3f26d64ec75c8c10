#include "coordinator/job/need.h"

#include "base/memory.h"
#include "base/memory_limit.h"

/* A program with its libraries and threads, and nothing to do. */
#define BASE_BYTES 40e6

/* Vectors of the range in a shard: x, t, g, h, d, the sum, a message under way, what a checkpoint
 * copies and what the pairs are made of; and what each replica here sends, which it maps. */
#define SHARD_VECTORS 15
#define VECTORS_A_REPLICA 1

/* In a replica: the point, as three that it maps of shards, its sums, and one each thread; a
 * network or a plug-in has another one a thread. */
#define REPLICA_MAPPED 4
#define REPLICA_VECTORS 1

/* Of a plug-in's process: parameters and gradient, which the replica maps and copies, too. */
#define PLUGIN_VECTORS 4

static double shard_need(const struct job *job, double parameters, const struct sizing *sizing) {
    double range = parameters / sizing->shards;
    double vectors = SHARD_VECTORS + VECTORS_A_REPLICA * sizing->replicas;
    vectors += job->early_stopping ? 1 : 0;
    vectors += job->l1.value > 0 ? 2 : 0;
    vectors += job_pours(job) ? 1 : 0;
    return range * (sizeof(double) * vectors +
                    2.0 * (sizing->history + 2) * (double)history_size(job->history_type));
}

static double replica_vectors(const struct job *job, uint32_t threads) {
    double each = job_is_plugin(job) ? 1 + PLUGIN_VECTORS : job_is_network(job) ? 2 : 1;
    return REPLICA_VECTORS + each * threads;
}

struct memory_need memory_need_of(const struct job *job, uint64_t parameters,
                                  const struct sizing *sizing, bool block) {
    double count = (double)parameters, triangle = 0;
    uint32_t threads = sizing->threads ? sizing->threads : 1;
    if (block)
        triangle = count * (count + 1) / 2 * sizeof(double);
    double replica = replica_vectors(job, threads) * count * sizeof(double) +
                     triangle * (1 + threads) + BASE_BYTES;
    struct memory_need need = {
        .coordinator = BASE_BYTES + 2 * count * sizeof(double),
        .shard = BASE_BYTES + shard_need(job, count, sizing) + 3 * triangle,
        .replica = replica + REPLICA_MAPPED * count * sizeof(double),
        .shards = sizing->shards,
        .replicas = sizing->replicas,
    };
    need.all = need.coordinator + need.shard * need.shards + replica * need.replicas;
    return need;
}

static double most(const struct memory_need *need) {
    double worker = need->shard > need->replica ? need->shard : need->replica;
    return need->coordinator > worker ? need->coordinator : worker;
}

char *memory_need_exceeds(const struct memory_need *need) {
    struct memory_limit one = memory_limit_of_process(), all = memory_limit_of_all();
    if (most(need) > one.bytes)
        return memory_format("one process needs about %s, and %s (%s) are allowed",
                             memory_words(most(need)), memory_words(one.bytes), one.set);
    if (need->all > all.bytes)
        return memory_format("all processes need about %s, and %s (%s) are allowed",
                             memory_words(need->all), memory_words(all.bytes), all.set);
    return NULL;
}

char *memory_need_unmet(const struct memory_need *need, bool shard) {
    double own = shard ? need->shard : need->replica;
    struct memory_limit one = memory_limit_of_process(), all = memory_limit_of_all();
    bool alone = one.bytes < all.bytes;
    return memory_format("ended for lack of memory: about %s are needed%s, %s allowed (%s)",
                         memory_words(alone ? own : need->all), alone ? "" : " by all processes",
                         memory_words(alone ? one.bytes : all.bytes), alone ? one.set : all.set);
}
