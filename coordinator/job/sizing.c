#include "coordinator/job/sizing.h"

#include "base/error.h"
#include "base/limits.h"

#define PARAMETERS_WORTH_A_SHARD (UINT64_C(1) << 18) /* 2 MB: fewer cost more in messages */

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The longest history for which the pass over the history costs no more than the pass over the
 * data: see doc/ARCHITECTURE.md. */
static uint32_t history_auto(const struct set_info *data, uint64_t parameters) {
    uint64_t most = parameters < HISTORY_AUTO_MAX ? parameters : HISTORY_AUTO_MAX;
    uint64_t pairs = 2 * data->values / (data->features ? data->features : 1);
    if (pairs < HISTORY_AUTO_MIN)
        pairs = HISTORY_AUTO_MIN;
    if (pairs > most)
        pairs = most;
    return pairs ? (uint32_t)pairs : 1;
}

static uint32_t shards_auto(uint64_t parameters, uint32_t cpus) {
    uint64_t worthwhile = parameters / PARAMETERS_WORTH_A_SHARD;
    uint32_t most = least(cpus, SHARDS_MAX);
    if (worthwhile < 1)
        return 1;
    return worthwhile < most ? (uint32_t)worthwhile : most;
}

/* As few as can have a thread a CPU. On one host, the threads of one replica share the point, and
 * their sums go to the shards as one; each further replica would have its own. */
static uint32_t replicas_auto(uint32_t cpus) {
    return cpus ? (cpus - 1) / THREADS_MAX + 1 : 1;
}

static uint32_t length_of(char *const *list) {
    uint32_t length = 0;
    while (list && list[length])
        length++;
    return length;
}

/* The number of addresses; without addresses the number in the job, else the automatic one. */
static int count_workers(const char *key, uint32_t wanted, char *const *addresses,
                         uint32_t automatic, uint32_t *count) {
    uint32_t given = length_of(addresses);
    if (given && wanted && wanted != given)
        return error_set(ERROR_CONFIG, "key `%s` is %u, but there are %u addresses; leave `%s` out",
                         key, wanted, given, key);
    *count = given ? given : wanted ? wanted : automatic;
    return 0;
}

int sizing_of(const struct job *job, const struct set_info *data, uint64_t parameters,
              uint32_t cpus, struct sizing *sizing) {
    sizing->history = job->history ? job->history : history_auto(data, parameters);
    int code = count_workers("shards", job->shards, job->shard_addresses,
                             shards_auto(parameters, cpus), &sizing->shards);
    if (!code)
        code = count_workers("replicas", job->replicas, job->replica_addresses, replicas_auto(cpus),
                             &sizing->replicas);
    if (code)
        return code;
    sizing->threads = job->threads;
    if (!sizing->threads && !length_of(job->replica_addresses)) {
        uint32_t share = cpus / sizing->replicas;
        sizing->threads = share ? least(share, THREADS_MAX) : 1;
    }
    return 0;
}
