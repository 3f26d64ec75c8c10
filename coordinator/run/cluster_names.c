/* The replicas of the coordinator's shell that names list (coordinator/run/name_watch.h): who is
 * expected in which place, and who is let go. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/run/cluster_parts.h"

/* Answers in a row without an address after which its replica is let go: one answer may be of a
 * server that has not heard of all. */
#define MISSES_MAX 2

static uint32_t first_elastic(const struct cluster *cluster) {
    const struct coordinator_settings *settings = coordinator_settings(cluster->coordinator);
    return settings->shards + settings->replicas_fixed;
}

static bool lists(const struct name_watch *watch, const char *address) {
    const char *item;
    for (uint32_t i = 0; (item = name_watch_item(watch, i)) != NULL; i++)
        if (!strcmp(item, address))
            return true;
    return false;
}

static void let_go_of_missed(struct cluster *cluster) {
    struct coordinator *c = cluster->coordinator;
    for (uint32_t i = first_elastic(cluster); i < coordinator_links(c); i++) {
        struct worker_view worker = coordinator_worker(c, i);
        struct worker_link *link = &cluster->links[i];
        if (worker.vacant || worker.leaving)
            continue;
        link->missed = lists(cluster->names, link->address) ? 0 : link->missed + 1;
        if (link->missed < MISSES_MAX)
            continue;
        log_info("replica %u at %s is not listed any more: it is let go", worker.index,
                 link->address);
        coordinator_let_go(c, i, clock_monotonic_ns(), &cluster->out);
        cluster_after_step(cluster, 0); /* before another one takes its place */
    }
}

/* The link of the replica with this address; else the place where it was last, any that is vacant,
 * or a new one. */
static uint32_t place_for(const struct cluster *cluster, const char *address) {
    const struct coordinator *c = cluster->coordinator;
    const uint32_t links = coordinator_links(c);
    uint32_t found = links;
    for (uint32_t i = links; i-- > coordinator_settings(c)->shards;) {
        const char *there = cluster->options.addresses[i];
        bool same = there && !strcmp(there, address), vacant = coordinator_worker(c, i).vacant;
        if (same && (!vacant || i >= first_elastic(cluster)))
            return i;
        if (vacant)
            found = i;
    }
    return found;
}

static void expect(struct cluster *cluster, const char *address) {
    struct coordinator *c = cluster->coordinator;
    const struct coordinator_settings *settings = coordinator_settings(c);
    const uint32_t place = place_for(cluster, address);
    if (place == settings->shards + settings->replicas_most)
        return; /* there are as many as there may be */
    if (place < coordinator_links(c)) {
        struct worker_view there = coordinator_worker(c, place);
        if (there.leaving)
            coordinator_expect(c, place);
        if (!there.vacant)
            return;
    }
    coordinator_expect(c, place);
    log_info("replica %u is expected at %s", place - settings->shards, address);
    link_expect(cluster, place, address);
}

static void on_answered(void *context) {
    struct cluster *cluster = context;
    const char *item;
    if (cluster->dismissed)
        return;
    let_go_of_missed(cluster);
    for (uint32_t i = 0; (item = name_watch_item(cluster->names, i)) != NULL; i++)
        expect(cluster, item);
}

double elastic_wait_seconds(const struct cluster *cluster) {
    return fmax(cluster->options.wait_seconds,
                coordinator_settings(cluster->coordinator)->reconnect_seconds);
}

void elastic_check(struct cluster *cluster) {
    const struct coordinator *c = cluster->coordinator;
    const int64_t now_ns = clock_monotonic_ns();
    bool any = !cluster->names;
    for (uint32_t i = coordinator_settings(c)->shards; i < coordinator_links(c) && !any; i++)
        any = !coordinator_worker(c, i).vacant;
    if (any || !cluster->nobody_ns)
        cluster->nobody_ns = now_ns;
    if ((double)(now_ns - cluster->nobody_ns) / NS_PER_S <= elastic_wait_seconds(cluster))
        return;
    char *name = name_watch_text(cluster->names);
    cluster_end(cluster, error_set(ERROR_UNAVAILABLE,
                                   "no replica is listed by %s; start replicas, or wait longer for "
                                   "them with --wait; what is durable is kept: run the same "
                                   "command again to go on",
                                   name));
    free(name);
}

void elastic_begin(struct cluster *cluster) {
    if (cluster->options.names)
        cluster->names =
            name_watch_new(cluster->base, cluster->options.names, on_answered, cluster);
}

char *elastic_wait_for(const struct cluster *cluster) {
    const struct coordinator *c = cluster->coordinator;
    for (uint32_t i = coordinator_settings(c)->shards; i < coordinator_links(c); i++)
        if (!coordinator_worker(c, i).vacant)
            return NULL;
    if (!cluster->names)
        return NULL;
    char *name = name_watch_text(cluster->names);
    char *text = memory_format("a replica that is listed by %s", name);
    free(name);
    return text;
}

void elastic_free(struct cluster *cluster) {
    name_watch_free(cluster->names);
    cluster->names = NULL;
}
