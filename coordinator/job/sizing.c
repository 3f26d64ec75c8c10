#include "coordinator/job/sizing.h"

#include "base/cpus.h"
#include "base/error.h"
#include "base/limits.h"

#define REPLICAS_AUTO 2
#define SHARDS_AUTO_MAX 4
#define BLOCKS_WORTH_A_SHARD 4 /* with fewer a second shard costs more messages than it saves */

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

static uint32_t shards_auto(uint64_t parameters) {
    uint64_t worthwhile = parameters / ((uint64_t)BLOCK_ELEMENTS * BLOCKS_WORTH_A_SHARD);
    uint32_t most = least(cpus_usable(), SHARDS_AUTO_MAX);
    if (worthwhile < 1)
        return 1;
    return worthwhile < most ? (uint32_t)worthwhile : most;
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
              struct sizing *sizing) {
    uint32_t cpus = cpus_usable();
    sizing->history = job->history ? job->history : history_auto(data, parameters);
    int code = count_workers("shards", job->shards, job->shard_addresses, shards_auto(parameters),
                             &sizing->shards);
    if (!code)
        code = count_workers("replicas", job->replicas, job->replica_addresses,
                             least(cpus, REPLICAS_AUTO), &sizing->replicas);
    if (code)
        return code;
    sizing->threads = job->threads;
    if (!sizing->threads && !length_of(job->replica_addresses)) {
        uint32_t share = cpus / sizing->replicas;
        sizing->threads = share ? share : 1;
    }
    return 0;
}
