/* How the rim ends: workers are told to exit, and everything is released. */
#include "coordinator/run/cluster_parts.h"

#include <event2/event.h>
#include <stdlib.h>

#include "coordinator/run/loop.h"

#define DISMISS_MS 2000

static bool all_sent(const void *context) {
    const struct cluster *cluster = context;
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++)
        if (cluster->links[i].peer && peer_queued(cluster->links[i].peer))
            return false;
    return true;
}

/* From here on nothing is asked of the machine and no worker is started. Connections stay open, so
 * that BYE can be sent; what arrives on them is ignored. */
static void come_to_rest(struct cluster *cluster) {
    cluster->dismissed = true;
    launch_listen(cluster->options.launch, NULL);
    output_clear(&cluster->out); /* messages whose records were not carried out */
    event_del(cluster->drainer);
    event_del(cluster->ticker);
    if (cluster->limit)
        event_del(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_del(link->starter);
        event_del(link->teller);
        connecting_free(link->connecting);
        link->connecting = NULL;
    }
}

void cluster_dismiss(struct cluster *cluster, const char *why, bool again) {
    if (cluster->dismissed)
        return;
    come_to_rest(cluster);
    coordinator_dismiss(cluster->coordinator, why, again, &cluster->out);
    cluster_send(cluster);
    output_clear(&cluster->out);
    loop_until(cluster->base, DISMISS_MS, all_sent, cluster);
}

static void event_drop(struct event *event) {
    if (event)
        event_free(event);
}

void cluster_free(struct cluster *cluster) {
    if (!cluster)
        return;
    launch_listen(cluster->options.launch, NULL);
    event_drop(cluster->drainer);
    event_drop(cluster->ticker);
    event_drop(cluster->limit);
    for (uint32_t i = 0; i < coordinator_links(cluster->coordinator); i++) {
        struct worker_link *link = &cluster->links[i];
        event_drop(link->starter);
        event_drop(link->teller);
        connecting_free(link->connecting);
        peer_free(link->peer);
        free(link->lost);
    }
    free(cluster->links);
    awaiting_release(&cluster->awaiting);
    output_release(&cluster->out);
    free(cluster);
}
