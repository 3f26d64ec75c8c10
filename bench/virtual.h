/* Processes on hosts that are joined by a network, under one virtual clock, for bench/efficiency.c.
 * Nothing fails here, and nothing is lost: tests/sim is for that.
 *
 * A process handles one message or alarm after the other, each after the time that it costs. A host
 * sends and receives with the same bandwidth, both at once; between two hosts there is a latency,
 * and no other limit. Processes of one host share memory: bulk between them costs nothing. */
#ifndef DML_BENCH_VIRTUAL_H
#define DML_BENCH_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct virtual_process;

struct virtual_role {
    /* What a message or an alarm costs the process, in ns, and what it does after that time. */
    double (*cost)(struct virtual_process *process, const struct message *message);
    void (*message)(struct virtual_process *process, uint32_t from, const struct message *message);
    void (*alarm)(struct virtual_process *process, uint64_t what);
};

struct virtual_host {
    double sending_ns, receiving_ns; /* until when it does so */
    double received;                 /* bytes */
};

struct virtual_process {
    const struct virtual_role *role;
    uint32_t number, host;
    void *state;
    struct outbox out;
    double occupied_ns;                 /* until when it handles what has come */
    double worked_ns;                   /* for how long it has done so, in all */
    struct virtual_item *first, **last; /* what has come and waits */
    bool serving;
};

struct virtual_network {
    double bytes_a_ns, latency_ns;
    double now_ns;
    struct virtual_process *processes;
    struct virtual_host *hosts;
    uint64_t messages;
    /* Bytes that the bulk of a message stands for. */
    double (*bulk_bytes)(const struct envelope *envelope);
    struct virtual_event *events;
    uint32_t event_count, event_capacity;
    uint64_t events_made;
    bool over;
};

extern struct virtual_network network;

void virtual_init(uint32_t processes, uint32_t hosts);
void virtual_release(void);

/* Sends what is in the outbox: envelope.to is the number of a process. */
void virtual_send(struct virtual_process *process);

void virtual_alarm(struct virtual_process *process, double at_ns, uint64_t what);

/* The process is busy for so long with what it does now. */
void virtual_spend(struct virtual_process *process, double ns);

/* Until network.over, or nothing is left. */
void virtual_run(void);

#endif
