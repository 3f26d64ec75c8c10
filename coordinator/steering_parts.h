/* The inside of steering, for its parts alone: the files named below, and those that store and show
 * its state. */
#ifndef DML_COORDINATOR_STEERING_PARTS_H
#define DML_COORDINATOR_STEERING_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/bytes.h"
#include "optimizer/downpour.h"
#include "coordinator/machine/machine.h"
#include "coordinator/dispatch/plan.h"
#include "coordinator/dispatch/round.h"
#include "coordinator/dispatch/commit.h"
#include "coordinator/steering.h"
#include "numeric/exact.h"

/* Chunks that a replica was handed and that are not all counted. */
struct handed {
    struct run run;
    int64_t at_ns;
    bool backed_up; /* another replica has a copy */
    bool trial;     /* to see how fast it is now: who has nothing left to do copies it at once */
};

/* What a replica has to do, and how fast it does it. */
struct workload {
    bool told;         /* of the evaluation that runs */
    bool idle;         /* will not ask for more: was told to rest, or given a portion marked LAST */
    uint64_t portions; /* handed out to it, over the run */
    uint64_t chunks;   /* counted from it, over the run */
    double chunks_per_ns;  /* of its last flush; 0: not known */
    double before;         /* of the one before */
    uint32_t passed_over;  /* evaluations in a row to which it could add nothing in time */
    double delivery_ns;    /* of its last flush: from the end of computing to the verdict */
    uint32_t slow_flushes; /* in a row, the last one included: it was much slower than others */
    struct handed *handed;
    uint32_t handed_count, handed_capacity;
};

/* The evaluation that runs, or ran last. */
struct evaluating {
    uint32_t number; /* of this attempt, from 1 */
    bool running;
    bool exceeded; /* some derivative was beyond the bound */
    bool shared;   /* several replicas may have the same chunks in hand */
    struct evaluation_parts parts;
    struct bounds bounds;             /* of the curvature, on a row's part */
    struct objective_drawing drawing; /* of the curvature */
    struct maxima maxima;
    int64_t started_ns;
    struct totals totals; /* over the chunks counted */
};

struct steering {
    struct downpour downpour; /* comes before the optimizer */
    struct optimizer optimizer;
    enum optimizer_want want; /* what the program that was sent last is for */
    struct bytes program;     /* the program that was sent last, or is about to be */
    struct round round;
    bool finishing; /* that program is the last of the run */

    uint64_t evaluations; /* made in all, redone ones included */
    struct evaluating evaluation;
    struct plan plan;
    struct verdicts verdicts;
    struct maxima maxima_at_x; /* of the evaluation that x came from */

    struct workload *workloads; /* [replicas] */
    uint32_t replicas;
    uint64_t backup_copies;
    int64_t looked_ns; /* when portions worth copying were last looked for */
    bool rate_known;
    double rate;        /* of all replicas that are ready, chunks a ns */
    double delivery_ns; /* that a flush is expected to take at most */
    double expected_ns; /* that the evaluation takes if all keep their speed; 0: not known */

    int64_t epoch_started_ns; /* of Downpour, or when it was taken up in its middle */
    uint64_t epoch_taken_up;  /* minibatches that it had then */

    bool loading;    /* the curvature pairs to start with are being loaded */
    uint32_t loaded; /* of them, so far */

    uint32_t read_vector; /* the vector that is being read: 0 is the model, then those of the pairs,
                             the gradient and the Newton step */
    uint64_t read;        /* elements of it that were read */
};

/* Of the replica on this link. */
static inline struct workload *workload_of(const struct coordinator *c, uint32_t link) {
    return &c->steering->workloads[link - c->settings.shards];
}

/* ---- steering.c ---- */
/* Sends steering->program under the next number. */
void steering_send_program(struct coordinator *c, struct output *out);
/* Does what the optimizer wants next, with the program that it left in steering->program. */
void steering_follow(struct coordinator *c, enum optimizer_want want, int64_t now_ns,
                     struct output *out);
/* Sends the program, with BEGIN at its end, and begins the evaluation that `evaluation` describes.
 */
void steering_begin_evaluation(struct coordinator *c, enum optimizer_want want, int64_t now_ns,
                               struct output *out);
/* The chunks of the training rows. */
struct evaluation_part steering_training_part(const struct coordinator_settings *settings,
                                              uint32_t kind);
/* Those of the holdout, for the loss. */
struct evaluation_part steering_holdout_part(const struct coordinator_settings *settings);
/* Sends the program, which forms t if it must, and begins an evaluation of these parts at t. */
void steering_evaluate(struct coordinator *c, const struct evaluation_parts *parts,
                       const struct bounds *bounds, int64_t now_ns, struct output *out);
/* The evaluation that ran is complete. */
void steering_evaluated(struct coordinator *c, int64_t now_ns, struct output *out);
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

/* ---- evaluating.c ---- */
/* Hands out the evaluation whose number, parts and bound are set. */
void evaluating_begin(struct coordinator *c, int64_t now_ns, struct output *out);
void evaluating_abandon(struct coordinator *c);
/* Tells the replica of the evaluation, unless it was told. */
void evaluating_tell(struct coordinator *c, uint32_t link, struct output *out);
/* Counts what the journal says is counted, and has it folded by shards that have not yet. */
void evaluating_rejoin(struct coordinator *c, int64_t now_ns, struct output *out);
/* Whether this is the evaluation that runs, or ran last. */
bool evaluating_is_last(const struct coordinator *c, uint32_t attempt, uint32_t evaluation);
/* Whether this is the evaluation that runs. */
bool evaluating_is_current(const struct coordinator *c, uint32_t attempt, uint32_t evaluation);
/* Ends the evaluation if all is counted, and folded as far as must be. */
void evaluating_end_if_complete(struct coordinator *c, int64_t now_ns, struct output *out);

/* ---- flushes.c ---- */
/* Counts the flushes in c->recovery.rejoined and sends FOLD for each. */
void flushes_rejoin(struct coordinator *c, struct output *out);

/* ---- handing.c ---- */
/* Hands out a minibatch: at once if it is short, and not to those that would be late. */
void handing_begin(struct coordinator *c, int64_t now_ns, struct output *out);
/* Gives the replica its next portion, or sends it to rest. */
void handing_give(struct coordinator *c, uint32_t link, int64_t now_ns, struct output *out);
/* Gives replicas that are free what came back, or a copy of what takes another one long. */
void handing_wake_idle(struct coordinator *c, int64_t now_ns, struct output *out);
/* What the replica was handed is forgotten: what is counted; what these runs cover; all. */
void handing_forget_counted(struct workload *workload, const struct plan *plan);
void handing_forget(struct workload *workload, const struct run_list *runs);
void handing_clear(struct workload *workload);

/* Whether one of the runs has all chunks of this one. */
bool handing_covers(const struct run_list *runs, struct run run);

/* ---- copying.c ---- */
/* A replica is slow if others are faster by more than this factor. */
#define COPYING_SLOW_FACTOR 2.0
/* Whether it is time to look for portions worth copying, and there may be any. */
bool copying_may_look(struct coordinator *c, int64_t now_ns);
/* What others have in hand and the replica should copy; NULL if nothing is worth it. A portion is
 * copied once. */
struct handed *copying_worth(const struct coordinator *c, uint32_t link, int64_t now_ns);
/* Whether what this replica is handed now may be copied although it does not fall silent. */
bool copying_expects(const struct coordinator *c, uint32_t link);
/* The rate at which the replica computed the flush that was just counted. */
void copying_note_rate(struct coordinator *c, uint32_t link, double chunks_per_ns);
/* A flush with these chunks, which the replica was handed, is accepted now. */
void copying_note_delivery(struct workload *workload, const struct run_list *runs, int64_t now_ns);
/* An evaluation begins: what its flushes will take follows from those of the last one. */
void copying_expect_delivery(struct coordinator *c);
/* Another process has taken its place. */
void copying_forget_rate(struct workload *workload);

/* ---- recording.c ---- */
/* The evaluation that just ended, made for this step with this step length. */
void recording_evaluation(const struct coordinator *c, uint64_t step, double step_length,
                          const char *outcome, int64_t now_ns, struct output *out);
/* The step that was just accepted, and the safeguards that fired for it. */
void recording_step(struct coordinator *c, struct output *out);
/* The epoch of Downpour that is through. */
void recording_epoch(const struct coordinator *c, int64_t now_ns, struct output *out);
/* The portions of a flush that was counted; nothing for minibatches, which are too many. */
void recording_portions(const struct coordinator *c, const struct message_flushed *flushed,
                        struct output *out);

/* ---- reading.c ---- */
/* The vector to read next has been formed in its register. */
void reading_formed(struct coordinator *c, struct output *out);

#endif
