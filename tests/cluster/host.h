/* What wire/host.c is for a real worker: sends its messages, and ends it on BYE or when no
 * coordinator comes in time. */
#ifndef DML_TESTS_CLUSTER_HOST_H
#define DML_TESTS_CLUSTER_HOST_H

#include "tests/cluster/world.h"
#include "wire/message.h"

/* Alarms with numbers from here on are the host's, those below are the role's. */
#define HOST_ALARMS (UINT64_C(1) << 32)

struct worker_host {
    struct outbox out;
    uint32_t coordinator; /* link, 0 for none */
    uint64_t term;        /* the last coordinator's */
    uint32_t reconnect_seconds;
    uint64_t waits; /* times that a coordinator was lost or found */
};

void worker_host_init(struct worker_host *host);
void worker_host_release(struct worker_host *host);

/* Sends what is in `out`, until the process dies. */
void worker_host_drain(struct process *process, struct worker_host *host);

/* True if the message is the host's affair, not the role's. */
bool worker_host_takes(struct process *process, struct worker_host *host, uint32_t link,
                       const struct message *message);

/* After the role has had it and its answers were sent. The process may end. */
void worker_host_message(struct process *process, struct worker_host *host, uint32_t link,
                         const struct message *message);
void worker_host_gone(struct process *process, struct worker_host *host, uint32_t link);
void worker_host_alarm(struct process *process, struct worker_host *host, uint64_t which);

#endif
