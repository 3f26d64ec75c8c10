#include "coordinator/machine/hosts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/mutant.h"

#define SOON_NS (200 * NS_PER_MS) /* after a first failure */
#define LATER_NS NS_PER_S         /* after the next two; then twice as long each time, */
#define LATER_DOUBLINGS_MAX 4     /* up to 16 seconds */
#define RETRY_NS (30 * NS_PER_S)  /* of a host that is set aside, at first; then twice as long, */
#define RETRY_DOUBLINGS_MAX 4     /* up to 8 minutes */
#define STEADY_NS (30 * NS_PER_S) /* a worker that works for as long is forgiven its failures */
#define LOST_NS (HOSTS_LOST_SECONDS * NS_PER_S)

/* A shard is started elsewhere if its start takes this long and another host has answered. Its own
 * host may only be slow, so that is no failure; but all others wait for a shard. */
#define SHARD_START_TIMEOUT_NS (4 * NS_PER_S)

/* ---- life ---- */

static_assert(HOSTS_FAILURES_MAX < UINT8_MAX, "failures are counted in bytes");
static_assert(LATER_DOUBLINGS_MAX < 32 && RETRY_DOUBLINGS_MAX < 32, "pauses do not overflow");

void hosts_add(struct hosts *hosts, const char *name, const char *address, uint32_t threads) {
    assert(!hosts->workers && hosts_find(hosts, name) == HOSTS_NONE);
    assert(hosts->count < HOSTS_NONE);
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
    free(hosts->failures);
    *hosts = (struct hosts){0};
}

uint32_t hosts_find(const struct hosts *hosts, const char *name) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (strcasecmp(hosts->items[i].name, name) == 0)
            return i;
    return HOSTS_NONE;
}

static bool is_shard(const struct hosts *hosts, uint32_t worker) {
    assert(worker < hosts->shards + hosts->replicas);
    return worker < hosts->shards;
}

static uint32_t workers_count(const struct hosts *hosts) {
    return hosts->shards + hosts->replicas;
}

/* Shards are spread over the hosts in order, and so are replicas. */
static uint32_t home_host(const struct hosts *hosts, uint32_t worker) {
    assert(hosts->count > 0);
    return (is_shard(hosts, worker) ? worker : worker - hosts->shards) % hosts->count;
}

/* How many of the workers [first, end) are placed on a host. */
static uint32_t count_placed(const struct hosts *hosts, uint32_t host, uint32_t first,
                             uint32_t end) {
    assert(host < hosts->count && first <= end);
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++)
        count += hosts->workers[i].host == host;
    return count;
}

static uint32_t replicas_on(const struct hosts *hosts, uint32_t host) {
    return count_placed(hosts, host, hosts->shards, workers_count(hosts));
}

/* Replicas of one host share the threads that it gives. */
static void share_threads(struct hosts *hosts, uint32_t number) {
    assert(number < hosts->count);
    uint32_t sharing = replicas_on(hosts, number), threads = hosts->items[number].threads;
    uint32_t share = !threads || !sharing ? 0 : threads > sharing ? threads / sharing : 1;
    assert(share <= threads);
    for (uint32_t i = 0; i < hosts->replicas; i++)
        if (hosts->workers[hosts->shards + i].host == number)
            hosts->threads[i] = share;
}

void hosts_begin(struct hosts *hosts, uint32_t shards, uint32_t replicas) {
    assert(hosts->count > 0 && shards > 0 && replicas > 0 && !hosts->workers);
    hosts->shards = shards;
    hosts->replicas = replicas;
    hosts->workers = memory_new(shards + replicas, sizeof *hosts->workers);
    hosts->threads = memory_new(replicas, sizeof *hosts->threads);
    hosts->failures = memory_new((size_t)(shards + replicas) * hosts->count, 1);
    hosts->lost_ns = INT64_MAX;
    for (uint32_t i = 0; i < shards + replicas; i++)
        hosts->workers[i] = (struct hosts_worker){
            .host = home_host(hosts, i), .failures = hosts->failures + (size_t)i * hosts->count};
    for (uint32_t i = 0; i < hosts->count; i++)
        share_threads(hosts, i);
}

bool hosts_adopt(struct hosts *hosts, uint32_t worker, uint32_t host, int64_t now_ns) {
    assert(worker < workers_count(hosts) && host < hosts->count);
    if (!is_shard(hosts, worker) && host != home_host(hosts, worker))
        return false;
    hosts->workers[worker].host = host;
    hosts->workers[worker].since_ns = now_ns;
    hosts->met = true;
    return true;
}

/* ---- what it answers ---- */

const struct hosts_entry *hosts_of(const struct hosts *hosts, uint32_t worker) {
    assert(worker < workers_count(hosts) && hosts->workers[worker].host < hosts->count);
    return &hosts->items[hosts->workers[worker].host];
}

enum hosts_state hosts_state(const struct hosts_entry *host) {
    assert(!host->aside || !host->up);
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
    assert((unsigned)state < sizeof texts / sizeof texts[0]);
    return texts[state];
}

uint32_t hosts_changed(struct hosts *hosts) {
    for (uint32_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].changed) {
            hosts->items[i].changed = false;
            return i;
        }
    return HOSTS_NONE;
}

/* ---- failures ---- */

/* Sets `up` and `failures` of a host from what is known of its workers. */
static void recount_host(struct hosts *hosts, uint32_t number) {
    assert(number < hosts->count);
    struct hosts_entry *host = &hosts->items[number];
    uint32_t up = host->up, failures = host->failures;
    host->up = host->failures = 0;
    for (uint32_t i = 0; i < workers_count(hosts); i++) {
        const struct hosts_worker *worker = &hosts->workers[i];
        if (worker->host != number)
            continue;
        host->up += worker->up;
        if (worker->failures[number] > host->failures)
            host->failures = worker->failures[number];
    }
    host->changed |= host->up != up || host->failures != failures;
    assert(host->up <= workers_count(hosts) && (!host->aside || !host->up));
}

/* Whether a worker avoids this host. */
static bool avoids(const struct hosts_worker *worker, uint32_t host) {
    return worker->failures[host] >= HOSTS_FAILURES_MAX;
}

/* ---- hosts that are set aside ---- */

static bool is_due(const struct hosts_entry *host, int64_t now_ns) {
    assert(host->aside);
    return now_ns >= host->retry_ns;
}

/* A host that fails all its workers at once has failed once: what fails there before it is due is
 * of the same outage. */
static void set_aside(struct hosts *hosts, struct hosts_entry *host, int64_t now_ns) {
    assert(!host->up && host->retries <= RETRY_DOUBLINGS_MAX);
    if (host->aside && !is_due(host, now_ns))
        return;
    host->aside = true;
    host->retry_ns = now_ns + (RETRY_NS << host->retries);
    host->retries += host->retries < RETRY_DOUBLINGS_MAX;
    hosts->lost = true;
    for (uint32_t i = 0; i < hosts->count; i++)
        hosts->lost &= hosts->items[i].aside;
    if (hosts->lost && hosts->lost_ns == INT64_MAX)
        hosts->lost_ns = now_ns;
    assert(host->retry_ns > now_ns);
}

/* A host is back. If all were lost, the others may be back as well. That workers failed there is
 * forgotten: it was the host that had failed. */
static void readmit_host(struct hosts *hosts, uint32_t number, int64_t now_ns) {
    struct hosts_entry *host = &hosts->items[number];
    assert(host->aside && number < hosts->count);
    host->aside = false;
    host->changed = true;
    for (uint32_t i = 0; i < hosts->count; i++) {
        if (i != number && !hosts->lost)
            continue;
        for (uint32_t j = 0; j < workers_count(hosts); j++) {
            struct hosts_worker *worker = &hosts->workers[j];
            worker->failures[i] = 0;
            if (worker->host == i)
                worker->tries = 0;
        }
        recount_host(hosts, i);
        hosts->items[i].retry_ns = now_ns;
        hosts->items[i].retries = 0;
    }
    hosts->lost = false;
}

/* ---- places ---- */

static void move_worker(struct hosts *hosts, uint32_t worker, uint32_t to) {
    struct hosts_worker *at = &hosts->workers[worker];
    uint32_t from = at->host;
    assert(worker < workers_count(hosts) && to < hosts->count);
    if (from == to)
        return;
    at->host = to;
    at->up = false;
    recount_host(hosts, from);
    recount_host(hosts, to);
    share_threads(hosts, from);
    share_threads(hosts, to);
    assert(!at->up && at->host == to);
}

/* A failure on a host where nobody is up counts more: the host itself may have failed. */
static uint32_t weighed_failures(const struct hosts *hosts, uint32_t worker, uint32_t host) {
    uint32_t failures = hosts->workers[worker].failures[host];
    assert(host < hosts->count);
    return hosts->items[host].up ? failures : HOSTS_FAILURES_MAX * failures;
}

/* Whether host a is better for a shard than b. */
static bool is_better(const struct hosts *hosts, uint32_t shard, uint32_t a, uint32_t b) {
    assert(a < hosts->count && b < hosts->count && a != b);
    const struct hosts_worker *worker = &hosts->workers[shard];
    const struct hosts_entry *one = &hosts->items[a], *other = &hosts->items[b];
    bool good = one->up && !avoids(worker, a), other_good = other->up && !avoids(worker, b);
    uint32_t weighed = weighed_failures(hosts, shard, a);
    uint32_t other_weighed = weighed_failures(hosts, shard, b);
    if (good != other_good)
        return good;
    if (weighed != other_weighed)
        return weighed < other_weighed;
    if (!one->up != !other->up)
        return one->up;
    if (one->aside != other->aside)
        return other->aside;
    if (one->failures != other->failures)
        return one->failures < other->failures;
    return count_placed(hosts, a, 0, hosts->shards) < count_placed(hosts, b, 0, hosts->shards);
}

/* The best host for a shard, from the one after its own on; itself last. Hosts that are set aside
 * count once they are due, or if there is no other. */
static uint32_t best_host(const struct hosts *hosts, uint32_t shard, int64_t now_ns) {
    uint32_t best = HOSTS_NONE, own = hosts->workers[shard].host;
    assert(is_shard(hosts, shard) && own < hosts->count);
    for (uint32_t i = 1; i <= hosts->count; i++) {
        uint32_t number = (own + i) % hosts->count;
        const struct hosts_entry *host = &hosts->items[number];
        bool open = !host->aside || is_due(host, now_ns) || hosts->lost;
        if (open && (best == HOSTS_NONE || is_better(hosts, shard, number, best)))
            best = number;
    }
    assert(best == HOSTS_NONE || best < hosts->count);
    return best;
}

/* A host that has no replica and that this one does not avoid; HOSTS_NONE. */
static uint32_t spare_host(const struct hosts *hosts, uint32_t replica) {
    assert(!is_shard(hosts, replica));
    for (uint32_t i = 0; i < hosts->count; i++)
        if (!hosts->items[i].aside && !avoids(&hosts->workers[replica], i) &&
            !replicas_on(hosts, i))
            return i;
    return HOSTS_NONE;
}

/* Where the worker is started next. A host that answers keeps its worker, until that has failed
 * there too often. */
static uint32_t next_host(const struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    const struct hosts_worker *at = &hosts->workers[worker];
    const struct hosts_entry *host = &hosts->items[at->host];
    bool shard = is_shard(hosts, worker);
    bool leaves = avoids(at, at->host) || (shard ? !host->up : host->aside);
    uint32_t to = !leaves || mutant(HOST_KEPT) ? HOSTS_NONE
                  : shard                      ? best_host(hosts, worker, now_ns)
                                               : spare_host(hosts, worker);
    assert(to == HOSTS_NONE || to < hosts->count);
    return to == HOSTS_NONE ? at->host : to;
}

/* ---- times ---- */

/* Whether the run cannot go on without this worker: a shard, or the last replica that is up or may
 * be soon. */
static bool is_needed(const struct hosts *hosts, uint32_t worker) {
    assert(hosts->replicas > 0);
    if (is_shard(hosts, worker))
        return true;
    for (uint32_t i = hosts->shards; i < workers_count(hosts); i++) {
        const struct hosts_worker *other = &hosts->workers[i];
        bool hopeful = !hosts_of(hosts, i)->aside && !avoids(other, other->host);
        if (i != worker && (other->up || hopeful))
            return false;
    }
    return true;
}

static int64_t doubled_ns(int64_t pause_ns, uint32_t times, uint32_t times_max) {
    assert(pause_ns > 0 && pause_ns <= INT64_MAX >> times_max);
    return pause_ns << (times < times_max ? times : times_max);
}

/* The pause before the next start, after so many failures. */
static int64_t pause_ns(uint32_t failures) {
    if (failures < 2)
        return failures ? SOON_NS : 0;
    return doubled_ns(LATER_NS, failures < 3 ? 0 : failures - 3, LATER_DOUBLINGS_MAX);
}

/* Whether it avoids its host, and failed too often there and where others live. */
static bool is_exhausted(const struct hosts *hosts, uint32_t worker) {
    const struct hosts_worker *at = &hosts->workers[worker];
    uint32_t sum = 0;
    assert(at->host < hosts->count);
    for (uint32_t i = 0; i < hosts->count; i++)
        if (i == at->host || hosts->items[i].up)
            sum += at->failures[i];
    return !at->up && avoids(at, at->host) && sum >= HOSTS_TRIES_MAX;
}

/* Whether the run cannot go on: without this shard, or any replica. */
static bool is_hopeless(const struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    assert(!hosts->lost || hosts->lost_ns != INT64_MAX);
    if (hosts->lost)
        return !hosts->met || now_ns - hosts->lost_ns >= LOST_NS;
    uint32_t first = is_shard(hosts, worker) ? worker : hosts->shards;
    uint32_t end = is_shard(hosts, worker) ? worker + 1 : workers_count(hosts);
    assert(first < end);
    while (first < end && is_exhausted(hosts, first))
        first++;
    return first == end;
}

/* When the worker is started on its host, to which it may just have moved. Where others live, a
 * shard comes up at once. */
static int64_t next_start_ns(const struct hosts *hosts, uint32_t worker, bool moved,
                             int64_t now_ns) {
    const struct hosts_worker *at = &hosts->workers[worker];
    const struct hosts_entry *host = hosts_of(hosts, worker);
    uint32_t failures = at->failures[at->host];
    assert(!at->up && at->tries > 0);
    if (is_hopeless(hosts, worker, now_ns))
        return INT64_MAX;
    if (moved && !failures && (host->up || !is_shard(hosts, worker)))
        return now_ns;
    if (hosts->lost || (is_needed(hosts, worker) && !is_exhausted(hosts, worker)))
        return now_ns + pause_ns(at->tries - moved);
    if (host->aside)
        return host->retry_ns;
    if (avoids(at, at->host))
        return now_ns + doubled_ns(RETRY_NS, failures - HOSTS_FAILURES_MAX, RETRY_DOUBLINGS_MAX);
    return now_ns + pause_ns(at->tries);
}

/* ---- what happens ---- */

void hosts_started(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    assert(worker < workers_count(hosts));
    if (!hosts->workers[worker].up)
        hosts->workers[worker].since_ns = now_ns;
}

/* The first that comes up on a host that was set aside must show that it stays. */
void hosts_worker_up(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    assert(worker < workers_count(hosts));
    struct hosts_worker *at = &hosts->workers[worker];
    if (hosts->items[at->host].aside) {
        readmit_host(hosts, at->host, now_ns);
        at->failures[at->host] = HOSTS_FAILURES_MAX - 1;
        assert(!avoids(at, at->host));
    }
    hosts->met = true;
    if (!at->up)
        at->since_ns = now_ns;
    at->up = true;
    at->tries = 0;
    recount_host(hosts, at->host);
    assert(hosts->items[at->host].up > 0 && !hosts->items[at->host].aside);
}

int64_t hosts_failed(struct hosts *hosts, uint32_t worker, const char *why, int64_t now_ns) {
    struct hosts_worker *at = &hosts->workers[worker];
    struct hosts_entry *host = &hosts->items[at->host];
    assert(worker < workers_count(hosts));
    at->up = false;
    if (at->failures[at->host] < UINT8_MAX)
        at->failures[at->host]++;
    at->tries++;
    host->failed++;
    host->changed = true;
    snprintf(host->why, sizeof host->why, "%s", why);
    recount_host(hosts, at->host);
    if (host->aside || (!host->up && avoids(at, at->host)))
        set_aside(hosts, host, now_ns);
    uint32_t to = next_host(hosts, worker, now_ns);
    bool moved = to != at->host;
    move_worker(hosts, worker, to);
    at->alone = !hosts->items[to].up;
    at->since_ns = next_start_ns(hosts, worker, moved, now_ns);
    assert(!at->up && at->host == to);
    return at->since_ns;
}

/* ---- time ---- */

void hosts_tick(struct hosts *hosts, int64_t now_ns) {
    for (uint32_t i = 0; i < workers_count(hosts); i++) {
        struct hosts_worker *worker = &hosts->workers[i];
        if (!worker->up || now_ns - worker->since_ns < STEADY_NS)
            continue;
        hosts->lost_ns = INT64_MAX;
        bool any = false;
        for (uint32_t j = 0; j < hosts->count; j++) {
            any |= worker->failures[j] > 0;
            worker->failures[j] = 0;
        }
        if (any)
            recount_host(hosts, worker->host);
    }
}

/* Whether a shard that is not up should be started elsewhere: its start waits or takes long on a
 * host where nobody is up, and another host has answered. */
static bool is_late_shard(const struct hosts *hosts, uint32_t shard, int64_t now_ns) {
    assert(is_shard(hosts, shard) && !hosts->workers[shard].up);
    const struct hosts_worker *at = &hosts->workers[shard];
    bool starts = at->since_ns <= now_ns;
    if (hosts_of(hosts, shard)->up || (starts && now_ns - at->since_ns < SHARD_START_TIMEOUT_NS))
        return false;
    uint32_t best = best_host(hosts, shard, now_ns);
    return best != HOSTS_NONE && hosts->items[best].up && !avoids(at, best) && !mutant(HOST_KEPT);
}

/* A worker waits in vain, too, and should be started earlier than was decided, if on its host
 * another one has come up since, or the host, which is set aside, is due. */
uint32_t hosts_late(const struct hosts *hosts, int64_t now_ns) {
    for (uint32_t i = 0; i < workers_count(hosts); i++) {
        const struct hosts_worker *at = &hosts->workers[i];
        const struct hosts_entry *host = hosts_of(hosts, i);
        if (at->up)
            continue;
        bool waits = at->since_ns > now_ns && at->alone;
        if (waits && (host->aside ? is_due(host, now_ns) : host->up))
            return i;
        if (is_shard(hosts, i) && is_late_shard(hosts, i, now_ns))
            return i;
    }
    return HOSTS_NONE;
}

void hosts_start_now(struct hosts *hosts, uint32_t worker, int64_t now_ns) {
    assert(worker < workers_count(hosts) && !hosts->workers[worker].up);
    if (is_shard(hosts, worker) && !hosts_of(hosts, worker)->up)
        move_worker(hosts, worker, best_host(hosts, worker, now_ns));
    hosts->workers[worker].since_ns = now_ns;
}

/* ---- one run after the other ---- */

void hosts_begin_next_run(struct hosts *hosts) {
    assert(hosts->workers && hosts->count > 0);
    for (uint32_t i = 0; i < hosts->count; i++)
        hosts->items[i].changed = true;
}

void hosts_worker_left(struct hosts *hosts, uint32_t worker) {
    assert(worker < workers_count(hosts));
    hosts->workers[worker].up = false;
    recount_host(hosts, hosts->workers[worker].host);
}

int64_t hosts_due(const struct hosts *hosts, uint32_t worker) {
    assert(worker < workers_count(hosts));
    return hosts->workers[worker].since_ns;
}
