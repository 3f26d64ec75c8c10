/* What outlives a process and how the run goes on from it: attempts, durable steps, the journal.
 *
 * An attempt is what happens between two roll-backs; whatever belongs to another one is ignored. A
 * durable step is a state of the machine whose vectors every shard has in a file. The journal holds
 * the state with the program that was sent last, and the verdicts since. From it a later
 * coordinator goes on in the middle of an evaluation, if the shards still live. */
#ifndef DML_COORDINATOR_RECOVERY_H
#define DML_COORDINATOR_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "coordinator/membership.h"

struct durable_step {
    uint64_t step;
    struct bytes state;
    uint64_t digests[SHARDS_MAX];
};

/* A checkpoint that the shards are writing. */
struct sealing {
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
    uint32_t attempt;
    struct durable_step durable[2]; /* newest first */
    uint32_t durable_count;
    bool restoring; /* from durable[0]; else from the start */
    struct sealing sealing;
    int64_t sealed_ns; /* when the last checkpoint began */

    bool journalling;         /* evaluations are long enough for it */
    bool journalled;          /* the program that was sent last is in the journal */
    struct bytes verdict_log; /* accepted verdicts of this evaluation: u32 length, entry, … */
    struct bytes rejoined;    /* the same, out of the journal, until the shards have agreed */
};

/* What the store kept of a run that is resumed; durability.c. ERROR_DATA if the newest durable step
 * is of a run of another shape. */
int recovery_take_saved(struct coordinator *c, const struct store_saved *saved);
void recovery_release(struct coordinator *c);

/* ---- recovery.c: going back, and taking up a run ---- */

handler on_holding;

/* The first attempt, or the one after those that the store knows. */
void recovery_begin(struct coordinator *c, struct output *out);
/* Back to the newest durable step, or to the start, under the next attempt. */
void recovery_roll_back(struct coordinator *c, const char *why, struct output *out);

/* ---- durability.c: the journal and durable steps ---- */

handler on_checkpointed;

/* A program is about to be sent. It is journalled if evaluations are, and if it is `whole`: if it
 * needs nothing that is sent beside it. */
void durability_journal_program(struct coordinator *c, bool whole, struct output *out);
/* An encoded verdict on a flush that was accepted. */
void durability_journal_verdict(struct coordinator *c, const struct bytes *verdict,
                                struct output *out);
/* The evaluation that runs turned out to be long: this one and those that follow are journalled. */
void durability_journal_from_now(struct coordinator *c, struct output *out);
/* Evaluations are short again: programs from the next one on are not journalled. What the journal
 * has is then of an earlier program than the shards have run, which tells the next coordinator that
 * it cannot go on from there. */
void durability_journal_no_more(struct coordinator *c);

void durability_checkpoint_if_due(struct coordinator *c, int64_t now_ns, struct output *out);
/* Makes the last step durable if the run can be resumed, and then ends as its reason demands. */
void durability_seal(struct coordinator *c, int64_t now_ns, struct output *out);

#endif
