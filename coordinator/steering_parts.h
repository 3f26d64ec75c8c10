/* The inside of steering, for its parts alone: the files named below, and those that store and show
 * its state. */
#ifndef DML_COORDINATOR_STEERING_PARTS_H
#define DML_COORDINATOR_STEERING_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "coordinator/dispatch/round.h"
#include "coordinator/machine/machine.h"
#include "coordinator/steering.h"
#include "optimizer/downpour.h"

struct steering {
    struct downpour downpour; /* comes before the optimizer */
    struct optimizer optimizer;
    enum optimizer_want want; /* what the program that was sent last is for */
    struct bytes program;     /* the program that was sent last, or is about to be */
    struct round round;
    bool finishing; /* that program is the last of the run */

    struct maxima maxima_at_x; /* of the evaluation that x came from */

    int64_t epoch_started_ns; /* of Downpour, or when it was taken up in its middle */
    uint64_t epoch_taken_up;  /* minibatches that it had then */

    bool loading;    /* the curvature pairs to start with are being loaded */
    uint32_t loaded; /* of them, so far */

    uint32_t read_vector; /* the vector that is being read: 0 is the model, then those of the pairs,
                             the gradient and the Newton step */
    uint64_t read;        /* elements of it that were read */
};

/* ---- steering.c ---- */
/* Sends steering->program under the next number. */
void steering_send_program(struct coordinator *c, struct output *out);
/* Does what the optimizer wants next, with the program that it left in steering->program. */
void steering_follow(struct coordinator *c, enum optimizer_want want, int64_t now_ns,
                     struct output *out);
/* Sends the program, with BEGIN at its end, and begins the evaluation; says whether it is one of a
 * minibatch. */
void steering_begin_evaluation(struct coordinator *c, enum optimizer_want want,
                               struct evaluation_request *request, int64_t now_ns,
                               struct output *out);
/* The chunks of the training rows. */
struct evaluation_part steering_training_part(const struct coordinator_settings *settings,
                                              uint32_t kind);
/* Those of the holdout, for the loss. */
struct evaluation_part steering_holdout_part(const struct coordinator_settings *settings);
/* Sends the program, which forms t if it must, and begins an evaluation of these parts at t. */
void steering_evaluate(struct coordinator *c, const struct evaluation_parts *parts,
                       const struct bounds *bounds, int64_t now_ns, struct output *out);
/* The bounds of an evaluation. They depend on completed evaluations and the data alone: so they are
 * the same however the run went, and so are the bits of the sums. */
struct bounds steering_next_bounds(const struct coordinator *c);
/* The least bounds that hold for `room` times these maxima, which are finite. */
struct bounds steering_bounds_over(const struct coordinator *c, const struct maxima *maxima,
                                   double room);
/* Of an evaluation that exceeded its bounds, with this loss: whether there are some that hold. */
bool steering_can_hold(const struct coordinator *c, double loss);
/* A total of a part; NaN if the evaluation has no such part. */
double steering_total(const struct coordinator *c, uint32_t part, uint32_t number);
/* What the part over the holdout has found. */
struct held steering_held(const struct coordinator *c, uint32_t part);

/* ---- pouring.c: Downpour, while downpour_runs() ---- */
/* The data that it learns from. */
struct downpour_data pouring_data(const struct coordinator_settings *settings);
/* Begins, or goes on from what was restored. */
void pouring_begin(struct coordinator *c, int64_t now_ns, struct output *out);
/* An evaluation is complete, and CHECK is in the program. */
void pouring_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);
/* The scalars of its program are there. */
void pouring_measured(struct coordinator *c, int64_t now_ns, struct output *out);
/* Ends the run at x, also while the optimizer measures where it stopped. */
void pouring_stop(struct coordinator *c, enum reason reason, int64_t now_ns, struct output *out);

/* ---- refreshing.c ---- */
/* Begins an evaluation of the curvature, for the preconditioner. */
void refreshing_begin(struct coordinator *c, int64_t now_ns, struct output *out);
/* It is complete: sends the program that factors it. */
void refreshing_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);
/* The factor is there, or there is none: tells of it. */
void refreshing_factored(const struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- starting.c ---- */
/* A curvature pair has been formed: loads the next one, or starts the optimizer. */
void starting_pair_loaded(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- recording.c ---- */
/* The evaluation that just ended, made for this step with this step length. */
void recording_evaluation(const struct coordinator *c, uint64_t step, double step_length,
                          const char *outcome, int64_t now_ns, struct output *out);
/* The step that was just accepted, and the safeguards that fired for it. */
void recording_step(struct coordinator *c, struct output *out);
/* The epoch of Downpour that is through. */
void recording_epoch(const struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- reading.c ---- */
/* The vector to read next has been formed in its register. */
void reading_formed(struct coordinator *c, struct output *out);

#endif
