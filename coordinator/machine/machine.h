/* The inside of the coordinator's state machine, for the sources of this room and for the driver
 * alone: who works, what outlives a process, and the whole that holds both. The room may use
 * dispatch/ and the optimizer; nothing here knows of sockets, clocks or files. */
#ifndef DML_COORDINATOR_MACHINE_MACHINE_H
#define DML_COORDINATOR_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "coordinator/dispatch/dispatch.h"
#include "coordinator/dispatch/output.h"
#include "coordinator/machine/coordinator.h"
#include "wire/message.h"

struct driver; /* coordinator/driver.h */

/* ---- what the machine consists of ---- */

/* The workers of a run by link: their incarnations, and whether they are there.
 *
 * An incarnation is issued once, to one process, and says in which term that was. A member that is
 * lost gets another at once, so that nothing the former process says counts any more. */

struct membership {
    uint64_t incarnations; /* issued in this term */
    uint64_t proof[3];     /* by role: the proof that all must match; 0: none yet */
    int64_t pinged_ns;
    uint64_t pings;

    /* Failures of a plug-in since the program before this was sent. */
    uint64_t failed_program;
    uint32_t plugin_failures;

    /* And workers that were killed for want of memory since then. */
    uint64_t starved_program;
    uint32_t starved;
};

/* An attempt is what happens between two roll-backs; whatever belongs to another one is ignored. A
 * durable step is a state of the machine whose vectors every shard has in a file. The journal holds
 * the state with the program that was sent last, and the verdicts since. From it a later
 * coordinator goes on in the middle of an evaluation, if the shards still live. */

struct durable_step {
    uint64_t step;
    struct bytes state;
    uint64_t digests[SHARDS_MAX];
};

/* A checkpoint that the shards are writing. */
struct pending_checkpoint {
    bool running;
    uint64_t step;
    struct bytes state;
    uint32_t missing; /* shards that have not answered */
    bool done[SHARDS_MAX];
    uint64_t digests[SHARDS_MAX];
    int failure;   /* what a shard could not write it for; 0: none failed so far */
    char why[256]; /* with a failure: which shard, and its words */
};

struct recovery {
    struct durable_step durable[2]; /* newest first */
    uint32_t durable_count;
    bool restoring; /* from durable[0]; else from the start */
    struct pending_checkpoint pending;
    int64_t checkpoint_began_ns; /* when the last checkpoint began */

    bool journalling;      /* evaluations are long enough for it */
    struct bytes rejoined; /* as dispatch.log: out of the journal, until the shards have agreed */
};

struct coordinator {
    struct coordinator_settings settings;
    enum coordinator_phase phase;
    uint64_t parameters;
    struct roster roster;
    struct membership membership;
    struct recovery recovery;
    struct dispatch dispatch;
    struct driver *driver;
    bool fenced;
    uint64_t stale; /* messages ignored */
    int64_t ticked_ns;
};

/* Handles a message of a member; returns 0, or the error that ends the run. */
typedef int handler(struct coordinator *c, uint32_t link, const struct message *message,
                    int64_t now_ns, struct output *out);

/* ---- membership.c ---- */

void membership_init(struct coordinator *c);
void membership_release(struct coordinator *c);

handler on_welcome;

/* The worker serves another run: it is to be greeted again later. */
void membership_put_off(struct coordinator *c, uint32_t link, const char *why, struct output *out);

/* Whether another replica works, so that the run can do without this worker. */
bool membership_is_dispensable(const struct coordinator *c, const struct member *worker);

/* Lets replicas go that are leaving, unless an evaluation runs or no other replica is ready. */
void membership_release_leaving(struct coordinator *c, int64_t now_ns, struct output *out);

/* Pings all, once a second. */
void membership_ping(struct coordinator *c, int64_t now_ns, struct output *out);
/* Members that were silent for too long are lost. Returns what coordinator_lost() does. */
int membership_lose_silent(struct coordinator *c, int64_t now_ns, struct output *out);
/* Counts all members as heard just now: it was this process that did not run. */
void membership_forgive_silence(struct coordinator *c, int64_t now_ns);

/* ---- setup.c: telling members what they work on, restoring shards ---- */

handler on_ready, on_restored;

/* Notes the device that a worker says it computes on. */
void note_device(struct coordinator *c, uint32_t link, const char *device, struct output *out);

/* Sets up every worker for this attempt; shards from the durable step if c->recovery.restoring. */
void setup_begin(struct coordinator *c, struct output *out);
void setup_shard(const struct coordinator *c, uint32_t link, struct output *out);
/* If all shards are there, tells of the data and of them all replicas that have not been told. */
void setup_replicas(struct coordinator *c, struct output *out);

/* How many threads a replica is told to compute with; 0: as many as it has processors. */
uint32_t setup_replica_threads(const struct coordinator *c, uint32_t link);
/* Replicas are to be told of the shards anew. */
void setup_forget_replicas(struct coordinator *c);
void setup_start_if_complete(struct coordinator *c, int64_t now_ns, struct output *out);
/* Sends a shard its range of a vector of [parameters] elements, for a register and before the next
 * program. The vector must stay valid until the outbox was drained. */
void setup_send_vector(const struct coordinator *c, uint32_t link, uint8_t register_,
                       const double *vector, struct output *out);

/* ---- recovery.c ---- */

/* What the store kept of a run that is resumed. ERROR_DATA if the newest durable step
 * is of a run of another shape. */
int recovery_take_saved(struct coordinator *c, const struct store_saved *saved);
void recovery_release(struct coordinator *c);

handler on_holding;

/* The first attempt, or the one after those that the store knows. */
void recovery_begin(struct coordinator *c, struct output *out);
/* Back to the newest durable step, or to the start, under the next attempt. */
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out);

handler on_checkpointed;

/* A program is about to be sent. It is journalled if evaluations are, and if it is `whole`: if it
 * needs nothing that is sent beside it. */
void recovery_journal_program(struct coordinator *c, bool whole, struct output *out);
/* The evaluation that runs turned out to be long: this one and those that follow are journalled. */
void recovery_journal_from_now(struct coordinator *c, struct output *out);
/* Evaluations are short again: programs from the next one on are not journalled. What the journal
 * has is then of an earlier program than the shards have run, which tells the next coordinator that
 * it cannot go on from there. */
void recovery_journal_no_more(struct coordinator *c);

/* Asks all shards for a checkpoint of x if the last one is long enough ago and none is under way.
 */
void recovery_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out);
/* Makes the last step durable if the run can be resumed, and then ends as its reason demands. */
void recovery_final_checkpoint(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- state.c ----
 *
 * The coordinator's whole state as one versioned, checksummed record: what it journals before it
 * sends a program, and what it commits with a durable step.
 *
 * The version is raised when a field is added, changed or removed. A record of another version is
 * refused, before anything is changed: a run ends with the program that began it. */

#define STATE_VERSION 1

/* Appends the record. */
void state_encode(const struct coordinator *coordinator, struct bytes *out);

/* Takes the record over: everything but the settings, the links and what is running. False if it is
 * damaged, of another version or of a run of another shape; then nothing has changed. */
bool state_decode(struct coordinator *coordinator, const void *data, size_t length);

/* Whether state_decode() would take it. Changes nothing. */
bool state_fits(struct coordinator *coordinator, const void *data, size_t length);

/* ERROR_UNAVAILABLE, with what to do, if the record is whole but of another version. `run` is whose
 * it is. */
int state_check_version(const void *data, size_t length, int64_t run);

#endif
