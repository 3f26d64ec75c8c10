/* The workers of a run by link: their incarnations, and whether they are there.
 *
 * An incarnation is issued once, to one process, and says in which epoch that was. A member that is
 * lost gets another at once, so that nothing the former process says counts any more. */
#ifndef DML_COORDINATOR_MEMBERSHIP_H
#define DML_COORDINATOR_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/output.h"
#include "wire/message.h"

struct coordinator;

typedef int handler(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out);

struct member {
    enum role role;
    uint32_t index;
    uint64_t incarnation;
    bool connected, welcomed;
    bool introduced; /* replica: has been told of the data and of the shards */
    bool ready;      /* set up for this attempt; shard: restored too */
    uint32_t restarts;
    int64_t heard_ns; /* when it last said something */
    uint32_t pid, threads;
    char host[64];
    char device[128];   /* what it computes on, of its last READY; "": not known */
    bool device_failed; /* with `device` auto it is set up with the CPU from now on */
};

struct membership {
    struct member *members; /* [shards + replicas], by link */
    uint64_t incarnations;  /* issued in this epoch */
    uint64_t proof[3];      /* by role: the proof that all must match; 0: none yet */
    int64_t pinged_ns;
    uint64_t pings;

    /* Failures of a plug-in since the program before this was sent. */
    uint64_t failed_program;
    uint32_t plugin_failures;

    /* And workers that were killed for want of memory since then. */
    uint64_t starved_program;
    uint32_t starved;
};

void membership_init(struct coordinator *c);
void membership_release(struct coordinator *c);

/* ---- messages to members ---- */

/* Sends to one link, with the epoch filled in. */
void send_to(const struct coordinator *c, uint32_t link, struct message message,
             struct output *out);
/* To all of a role that are connected. What the others miss, they learn when they are set up. */
void send_to_shards(const struct coordinator *c, struct message message, struct output *out);
void send_to_replicas(const struct coordinator *c, struct message message, struct output *out);

/* ---- who is there ---- */

handler on_welcome;

/* The worker serves another run: it is to be greeted again later. */
void membership_put_off(struct coordinator *c, uint32_t link, const char *why, struct output *out);

/* Pings all, once a second. */
void membership_ping(struct coordinator *c, int64_t now_ns, struct output *out);
/* Members that were silent for too long are lost. Answers as coordinator_lost(). */
int membership_lose_silent(struct coordinator *c, int64_t now_ns, struct output *out);
/* All count as heard just now, since it was this process that did not run. */
void membership_forgive_silence(struct coordinator *c, int64_t now_ns);

/* ---- setup.c: telling members what they work on, restoring shards ---- */

handler on_ready, on_restored;

/* Takes what a worker says that it computes on. */
void note_device(struct coordinator *c, uint32_t link, const char *device, struct output *out);

/* Sets up every worker for this attempt; shards from the durable step if c->recovery.restoring. */
void setup_begin(struct coordinator *c, struct output *out);
void setup_shard(const struct coordinator *c, uint32_t link, struct output *out);
/* If all shards are there, tells of the data and of them all replicas that have not been told. */
void setup_replicas(struct coordinator *c, struct output *out);
/* Replicas are to be told of the shards anew. */
void setup_forget_replicas(struct coordinator *c);
void setup_start_if_complete(struct coordinator *c, int64_t now_ns, struct output *out);
/* Sends a shard its range of a vector of [parameters] elements, for a register and before the next
 * program. The vector must stay valid until the outbox was drained. */
void setup_send_vector(const struct coordinator *c, uint32_t link, uint8_t register_,
                       const double *vector, struct output *out);

#endif
