/* How the work is steered: what the workers compute, and what comes of it.
 *
 * Membership and recovery use only what stands here: another way to steer can provide the same
 * functions. This one runs the optimizer of optimizer.h on evaluations of all data at one
 * point. A "program" is one for the shards. */
#ifndef DML_COORDINATOR_STEERING_H
#define DML_COORDINATOR_STEERING_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/machine/machine.h"
#include "optimizer/lbfgs.h"

struct coordinator_settings;
struct codec;

struct steering;
struct steering *steering_new(const struct coordinator_settings *settings);
void steering_free(struct steering *steering);

/* Messages from shards: the scalars of a program, a slice of the model. */
handler on_result, on_slice;

/* ---- beginning ---- */

/* All workers are set up: begins, or goes on from what was restored. */
void steering_start(struct coordinator *c, int64_t now_ns, struct output *out);

/* Number of the program that goes out next in this attempt. */
uint64_t steering_next_program(const struct coordinator *c);

/* ---- evaluations ---- */

/* Of how many chunks, from the first on, evaluations may ask for. */
uint32_t steering_chunks(const struct coordinator_settings *settings);
/* The evaluation that ran is complete. */
void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- going back, and going on ---- */

/* Forgets the program and the evaluation that run: answers to them no longer count. */
void steering_forget(struct coordinator *c);
/* Sets the optimizer back to the start of the run. */
void steering_reset(struct coordinator *c);

/* Whether the state that was read holds a program: else there is nothing to go on from. */
bool steering_has_program(const struct coordinator *c);
/* Whether the shard can go on from that program: it has run it, or the one before. */
bool steering_fits(const struct coordinator *c, const struct message_holding *holding);
/* Sends the program again and goes on from the verdicts in c->recovery.rejoined. */
void steering_rejoin(struct coordinator *c, int64_t now_ns, struct output *out);

/* Its part of the machine's record (state.h). */
void steering_code(struct codec *codec, struct coordinator *c);

/* ---- durable steps ---- */

/* The number that a checkpoint has: steps of Downpour and accepted steps after it. */
uint64_t steering_step(const struct coordinator *c);
/* What has been recorded: epochs of Downpour, and the last accepted step. */
struct steering_progress {
    uint64_t epochs, step;
};
struct steering_progress steering_progress(const struct coordinator *c);
/* Which vectors a checkpoint holds: fills in `best`, `slots` and `serials`, whose items go into the
 * arrays, [HISTORY_MAX] each. */
void steering_describe_checkpoint(const struct coordinator *c, struct message_checkpoint *message,
                                  uint64_t *slots, uint64_t *serials);

/* ---- ending ---- */

/* REASON_NONE while the run goes on. */
enum reason steering_reason(const struct coordinator *c);
/* Ends the run at the last accepted point. False if there is none yet: then nothing has changed. */
bool steering_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out);
/* Whether the last program of the run was sent. */
bool steering_is_finishing(const struct coordinator *c);
/* Ends the run as cancelled, without another program. */
void steering_cancel(struct coordinator *c);
/* Reads the model, slice by slice, and what is kept with it: PHASE_READING, then PHASE_READ. */
void steering_read(struct coordinator *c, struct output *out);

#endif
