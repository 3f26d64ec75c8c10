#include "coordinator/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"

#define SOON_NS (200 * NS_PER_MS) /* after a first failure */
#define LATER_NS NS_PER_S         /* after further ones */
#define RETRY_NS (30 * NS_PER_S)  /* of a host that is set aside, at first; then twice as long */
#define DOUBLINGS_MAX 4           /* up to 8 minutes */
#define STEADY_NS (30 * NS_PER_S) /* a worker that works for as long is forgiven its failures */

/* A shard is started elsewhere if its start takes this long and another host has answered. Its own
 * host may only be slow, so that is no failure; but all others wait for a shard. */
#define PATIENCE_NS (4 * NS_PER_S)

/* ---- life ---- */

void hosts_add(struct hosts *hosts, const char *name, const char *address, uint32_t threads) {
    hosts->items = memory_resize(hosts->items, hosts->count + 1, sizeof *hosts->items);
    hosts->items[hosts->count++] =
        (struct hosts_entry){.name = memory_copy_string(name),
                             .address = memory_copy_string(address ? address : name),
                             .threads = threads,
                             .changed = true};
}

void hosts_release(struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++) {
        free(hosts->items[i].name);
        free(hosts->items[i].address);
    }
    free(hosts->items);
    free(hosts->workers);
    free(hosts->threads);
    *hosts = (struct hosts){0};
}

uint32_t hosts_find(const struct hosts *hosts, const char *name) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (strcasecmp(hosts->items[i].name, name) == 0)
            return i;
    return HOSTS_NONE;
}

static bool is_shard(const struct hosts *hosts, uint32_t worker) {
    return worker < hosts->shards;
}

static uint32_t workers_count(const struct hosts *hosts) {
    return hosts->shards + hosts->replicas;
}

/* Shards are spread over the hosts in order, and so are replicas. */
static uint32_t home(const struct hosts *hosts, uint32_t worker) {
    return (is_shard(hosts, worker) ? worker : worker - hosts->shards) % hosts->count;
}

/* How many of the workers [first, end) are placed on a host. */
static uint32_t placed(const struct hosts *hosts, uint32_t host, uint32_t first, uint32_t end) {
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++)
        count += hosts->workers[i].host == host;
    return count;
}

static uint32_t replicas_on(const struct hosts *hosts, uint32_t host) {
    return placed(hosts, host, hosts->shards, workers_count(hosts));
}

/* Replicas of one host share the threads that it gives. */
static void share_threads(struct hosts *hosts, uint32_t number) {
    uint32_t sharing = replicas_on(hosts, number), threads = hosts->items[number].threads;
    uint32_t share = !threads || !sharing ? 0 : threads > sharing ? threads / sharing : 1;
    for (uint32_t i = 0; i < hosts->replicas; i++)
        if (hosts->workers[hosts->shards + i].host == number)
            hosts->threads[i] = share;
}

void hosts_begin(struct hosts *hosts, uint32_t shards, uint32_t replicas) {
    hosts->shards = shards;
    hosts->replicas = replicas;
    hosts->workers = memory_new(shards + replicas, sizeof *hosts->workers);
    hosts->threads = memory_new(replicas, sizeof *hosts->threads);
    for (uint32_t i = 0; i < shards + replicas; i++)
        hosts->workers[i].host = home(hosts, i);
    for (uint32_t i = 0; i < hosts->count; i++)
        share_threads(hosts, i);
}

bool hosts_adopt(struct hosts *hosts, uint32_t worker, uint32_t host, int64_t now_ns) {
    if (!is_shard(hosts, worker) && host != home(hosts, worker))
        return false;
    hosts->workers[worker].host = host;
    hosts->workers[worker].since_ns = now_ns;
    return true;
}

/* ---- what it answers ---- */

const struct hosts_entry *hosts_of(const struct hosts *hosts, uint32_t worker) {
    return &hosts->items[hosts->workers[worker].host];
}

enum hosts_state hosts_state(const struct hosts_entry *host) {
    return host->aside      ? HOSTS_SET_ASIDE
           : host->up       ? HOSTS_UP
           : host->failures ? HOSTS_FAILING
                            : HOSTS_STARTING;
}

const char *hosts_state_text(enum hosts_state state) {
    static const char *const texts[] = {[HOSTS_STARTING] = "starting",
                                        [HOSTS_UP] = "up",
                                        [HOSTS_FAILING] = "failing",
                                        [HOSTS_SET_ASIDE] = "set aside"};
    return texts[state];
}

bool hosts_lost(const struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!hosts->items[i].aside || hosts->items[i].up)
            return false;
    return true;
}

uint32_t hosts_changed(struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].changed) {
            hosts->items[i].changed = false;
            return i;
        }
    return HOSTS_NONE;
}

/* ---- what happens ---- */

/* Counts anew what concerns the workers of a host. */
static void recount(struct hosts *hosts, uint32_t number) {
    struct hosts_entry *host = &hosts->items[number];
    uint32_t up = host->up, failures = host->failures;
    host->up = host->failures = 0;
    for (uint32_t i = 0; i < workers_count(hosts); i++) {
        const struct hosts_worker *worker = &hosts->workers[i];
        if (worker->host != number)
            continue;
        host->up += worker->up;
        if (worker->failures > host->failures)
            host->failures = worker->failures;
    }
    host->changed |= host->up != up || host->failures != failures;
}

void hosts_started(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    hosts->workers[worker].since_ns = now_ns;
}

void hosts_came(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    struct hosts_worker *at = &hosts->workers[worker];
    struct hosts_entry *host = &hosts->items[at->host];
    host->changed |= host->aside;
    host->aside = false;
    host->retries = 0;
    at->up = true;
    at->tries = 0;
    at->since_ns = now_ns;
    recount(hosts, at->host);
}

static void move(struct hosts *hosts, uint32_t worker, uint32_t to) {
    struct hosts_worker *at = &hosts->workers[worker];
    uint32_t from = at->host;
    if (from == to)
        return;
    *at = (struct hosts_worker){.host = to, .tries = at->tries};
    recount(hosts, from);
    recount(hosts, to);
    share_threads(hosts, from);
    share_threads(hosts, to);
}

/* Whether host a is better for a shard than b. */
static bool is_better(const struct hosts *hosts, uint32_t a, uint32_t b) {
    const struct hosts_entry *one = &hosts->items[a], *other = &hosts->items[b];
    if (!one->up != !other->up)
        return one->up;
    if (one->failures != other->failures)
        return one->failures < other->failures;
    return placed(hosts, a, 0, hosts->shards) < placed(hosts, b, 0, hosts->shards);
}

/* The best host for a shard, from the one behind its own on; itself last. Hosts that are set aside
 * do not count. HOSTS_NONE. */
static uint32_t best_host(const struct hosts *hosts, uint32_t shard) {
    uint32_t best = HOSTS_NONE, own = hosts->workers[shard].host;
    for (uint32_t i = 1; i <= hosts->count; i++) {
        uint32_t number = (own + i) % hosts->count;
        if (!hosts->items[number].aside && (best == HOSTS_NONE || is_better(hosts, number, best)))
            best = number;
    }
    return best;
}

/* A host that has no replica and is not set aside. */
static uint32_t spare_host(const struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!hosts->items[i].aside && !replicas_on(hosts, i))
            return i;
    return HOSTS_NONE;
}

/* Whether the run cannot go on without this worker: a shard, or the last replica. */
static bool is_needed(const struct hosts *hosts, uint32_t worker) {
    if (is_shard(hosts, worker))
        return true;
    for (uint32_t i = hosts->shards; i < workers_count(hosts); i++)
        if (i != worker && (hosts->workers[i].up || !hosts_of(hosts, i)->aside))
            return false;
    return true;
}

/* Before the next start, after so many failures. */
static int64_t pause_ns(uint32_t failures) {
    return failures > 1 ? LATER_NS : failures ? SOON_NS : 0;
}

/* A host that answers keeps its worker, until that has failed there too often. */
static int64_t place(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    struct hosts_worker *at = &hosts->workers[worker];
    const struct hosts_entry *host = &hosts->items[at->host];
    bool shard = is_shard(hosts, worker);
    if (host->aside || (shard && !host->up)) {
        uint32_t to = shard ? best_host(hosts, worker) : spare_host(hosts);
        if (to != HOSTS_NONE && to != at->host && !mutant(HOST_KEPT)) {
            move(hosts, worker, to);
            return now_ns + (hosts->items[to].up || !shard ? 0 : pause_ns(at->tries - 1));
        }
    }
    if (!host->aside)
        return now_ns + pause_ns(at->tries);
    if (!is_needed(hosts, worker))
        return host->retry_ns;
    return at->failures < HOSTS_LAST_TRIES_MAX && !hosts_lost(hosts) ? now_ns + LATER_NS
                                                                     : INT64_MAX;
}

int64_t hosts_failed(struct hosts *hosts, uint32_t worker, const char *why, int64_t now_ns) {
    struct hosts_worker *at = &hosts->workers[worker];
    struct hosts_entry *host = &hosts->items[at->host];
    at->up = false;
    at->failures++;
    at->tries++;
    host->failed++;
    host->changed = true;
    snprintf(host->why, sizeof host->why, "%s", why);
    recount(hosts, at->host);
    host->aside |= at->failures >= HOSTS_FAILURES_MAX;
    if (host->aside) {
        host->retry_ns = now_ns + (RETRY_NS << host->retries);
        host->retries += host->retries < DOUBLINGS_MAX;
    }
    int64_t when_ns = hosts_lost(hosts) ? INT64_MAX : place(hosts, worker, now_ns);
    at->since_ns = when_ns;
    return when_ns;
}

/* ---- time ---- */

void hosts_tick(struct hosts *hosts, int64_t now_ns) {
    for (uint32_t i = 0; i < workers_count(hosts); i++) {
        struct hosts_worker *worker = &hosts->workers[i];
        if (!worker->up || !worker->failures || now_ns - worker->since_ns < STEADY_NS)
            continue;
        worker->failures = 0;
        recount(hosts, worker->host);
    }
}

uint32_t hosts_late(const struct hosts *hosts, int64_t now_ns) {
    for (uint32_t i = 0; i < hosts->shards; i++) {
        const struct hosts_worker *shard = &hosts->workers[i];
        if (shard->up || hosts_of(hosts, i)->up || now_ns - shard->since_ns < PATIENCE_NS)
            continue;
        uint32_t best = best_host(hosts, i);
        if (best != HOSTS_NONE && hosts->items[best].up && !mutant(HOST_KEPT))
            return i;
    }
    return HOSTS_NONE;
}

void hosts_elsewhere(struct hosts *hosts, uint32_t shard, int64_t now_ns) {
    move(hosts, shard, best_host(hosts, shard));
    hosts->workers[shard].since_ns = now_ns;
}
