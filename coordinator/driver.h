/* The driver: between the optimizer, which asks, and the workers, who compute.
 *
 * It knows programs, evaluations and checkpoints, and nothing of how the optimizer finds its steps:
 * it carries out the requests of optimizer/row.h, one at a time, and gives back what came of them.
 * Only what is read at the end (driver_read.c) is of L-BFGS, in which every run ends.
 * It may use the optimizer, dispatch/ and the machine. Membership and recovery use only what stands
 * here. A "program" is one for the shards. */
#ifndef DML_COORDINATOR_DRIVER_H
#define DML_COORDINATOR_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "coordinator/dispatch/round.h"
#include "coordinator/machine/machine.h"
#include "optimizer/optimizer.h"

struct codec;

struct driver {
    struct optimizer optimizer;
    enum optimizer_want want; /* what the program that was sent last is for */
    struct bytes program;     /* the program that was sent last, or is about to be */
    struct round round;
    bool finishing;            /* no program but those that read the model follows */
    struct maxima maxima_at_x; /* of the evaluation that x came from */

    bool read_gradient;   /* that at the model is being read, after it */
    uint32_t read_vector; /* the vector that is being read: 0 is the model, then the errors of its
                             estimates, if there are any, and those of the pairs */
    uint64_t read;        /* elements of it that were read */
};

struct driver *driver_new(const struct coordinator_settings *settings);
void driver_free(struct driver *driver);

/* Messages from shards: the scalars of a program, a slice of the model. */
handler on_result, on_slice;

/* ---- beginning ---- */

/* All workers are set up: begins, or goes on from what was restored. */
void driver_start(struct coordinator *c, int64_t now_ns, struct output *out);

/* Number of the program that goes out next in this attempt. */
uint64_t driver_next_program(const struct coordinator *c);

/* Whether the run is of a network in tiles: layers lie above those that have strips. */
bool coordinator_has_upper(const struct coordinator_settings *settings);

/* How many chunks, from the first on, evaluations may ask for. */
uint32_t driver_chunks(const struct coordinator *c);

/* The evaluation that ran is complete. */
void driver_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- going back, and going on ---- */

/* Forgets the program that runs: answers to it no longer count. */
void driver_forget(struct coordinator *c);
/* Sets the optimizer back to the start of the run. */
void driver_reset(struct coordinator *c);

/* Whether the state that was read holds a program: else there is nothing to go on from. */
bool driver_has_program(const struct coordinator *c);
/* Whether the shard can go on from that program: it has run it, or the one before. */
bool driver_fits(const struct coordinator *c, const struct message_holding *holding);
/* Sends the program again and goes on from the decisions in c->recovery.rejoined. */
void driver_rejoin(struct coordinator *c, int64_t now_ns, struct output *out);

/* Its part of the machine's record, and that of dispatch. */
void driver_serialize(struct codec *codec, struct coordinator *c);

/* ---- ending ---- */

/* Ends the run at the last accepted point. False if there is none yet: then nothing has changed. */
bool driver_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out);
/* Reads the model, slice by slice, and what is kept with it: PHASE_READING, then PHASE_READ. */
void driver_read(struct coordinator *c, struct output *out);

/* ---- for the sources of the driver ---- */

/* Sends driver->program under the next number. */
void driver_send_program(struct coordinator *c, struct output *out);
/* driver_read.c: asks for the next slice of the vector that is read, which is in its register. */
void driver_ask_slice(struct coordinator *c, struct output *out);

#endif
