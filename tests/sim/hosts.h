/* Hosts of the simulated cluster: on which of them each worker runs, and which are down or mute. */
#ifndef DML_TESTS_SIM_HOSTS_H
#define DML_TESTS_SIM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_HOSTS_MAX 4
#define SIM_MUTE_NS (5 * NS_PER_S) /* after which a start on a mute host is given up */

struct cluster;
struct world;

struct virtual_hosts {
    struct {
        int64_t down_until_ns;
        bool mute; /* while it is down: a start there neither fails nor succeeds */
    } items[SIM_HOSTS_MAX];
    uint32_t at[8]; /* the host of each worker, by link */
    uint32_t lost;  /* for good */
};

bool virtual_host_is_down(const struct cluster *cluster, uint32_t host);

/* A host fails, for a while or for good (but one is left), and its workers with it. A mute one
 * only stands still. */
void virtual_host_fail(struct world *world, uint64_t what);

#endif
