/* The optimizer: L-BFGS with a line search, driven one answer at a time; with l1 orthant-wise
 * (orthant.h).
 *
 * It never sees a vector. It asks for an evaluation (run this program, then compute loss and
 * gradient sum at t), for the scalars of a program, or for the end; the caller answers and asks
 * what is next. Two programs that return scalars an accepted step: one measures the trial (round
 * A), one forms the direction (round B).
 *
 * Invariants between calls: register x holds the last accepted point, which has the least loss, g
 * its gradient and, while a preconditioner P is in force, pg the product P·g unless
 * `unconditioned`; a trial that was accepted but not yet put into x is put there by the next
 * program.
 *
 * With early stopping each point also has a loss on the holdout, and the one with the least is the
 * answer: it is x, or it was left behind. The program that leaves it puts it into register best, by
 * changing names: that costs no pass over the vector. Equal losses are not better, so the first of
 * several stays.
 *
 * The struct is plain data: together with the registers it is the whole state of the run. */
#ifndef DML_OPTIMIZER_LBFGS_H
#define DML_OPTIMIZER_LBFGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "optimizer/pairs.h"
#include "optimizer/linesearch.h"
#include "optimizer/preconditioner.h"
#include "optimizer/reason.h"

/* What kept a step from going wrong; counted, and named in the log. */
#define SAFEGUARD_TABLE(X)                                                                         \
    X(SAFEGUARD_PAIR_SKIPPED, "pair skipped: too little curvature")                                \
    X(SAFEGUARD_PAIRS_DROPPED, "oldest pairs dropped: ill-conditioned history")                    \
    X(SAFEGUARD_HISTORY_RESET, "history reset: not a descent direction")                           \
    X(SAFEGUARD_SEARCH_RETRIED, "line search failed: retried along the negative gradient")         \
    X(SAFEGUARD_TRIAL_NOT_FINITE, "trial not finite: step shrunk")                                 \
    X(SAFEGUARD_DIAGONAL_RAISED, "sampled Hessian not positive definite: diagonal raised")         \
    X(SAFEGUARD_PRECONDITIONER_LEFT, "no descent with the preconditioner: left for now")

enum safeguard {
#define X(name, text) name,
    SAFEGUARD_TABLE(X)
#undef X
        SAFEGUARDS
};
const char *safeguard_text(enum safeguard safeguard);

struct optimizer_settings {
    uint32_t memory; /* curvature pairs, 1 … HISTORY_MAX */
    double l1, l2;
    double weight;     /* of the rows trained on: what sums of a gradient are divided by */
    bool bounds_gap;   /* with l1: the loss and the model allow orthant_gap_bound() */
    double bias_scale; /* of H₀ without a preconditioner, see lbfgs.h; a power of two */
    double gradient_tolerance, loss_tolerance;
    uint64_t steps_max;
    uint32_t patience; /* steps without a better loss on the holdout before the end; 0: no early
                          stopping */
    struct preconditioner_settings preconditioner;
    bool single;      /* losses and gradients are computed in single precision */
    uint32_t tensors; /* of the layout, if their norms are wanted; else 0 */
};

/* |x_t| and |∂F_t| of each tensor t of the layout, in the coordinates of the run. */
struct tensor_norms {
    uint64_t count; /* 0: they are not measured */
    double point[TENSORS_MAX], gradient[TENSORS_MAX];
};

/* What an evaluation finds on the holdout. */
struct held {
    double loss;     /* mean, without L2 */
    double accuracy; /* share of its weight that is predicted correctly; NaN without classes */
};

/* An accepted point. */
struct optimizer_point {
    uint64_t step;
    double loss;         /* F there */
    double gradient_max; /* max|∂F| there; with l1 of the pseudo-gradient, as everywhere here */
    struct held holdout; /* a loss of infinity if it is not finite */
    uint64_t nonzero;    /* with l1: regularised parameters that are not 0 */
    double gap_bound;    /* F is this much above its minimum at most; NaN: not known */
    struct tensor_norms norms;
};

enum optimizer_want {
    OPTIMIZER_EVALUATE,  /* run `program` (it forms t), evaluate at t, then optimizer_evaluated() */
    OPTIMIZER_CURVATURE, /* run `program` (it puts x into t), add up the curvature at t over the
                            rows that preconditioner_drawing() says, then optimizer_curved() */
    OPTIMIZER_MEASURE,   /* run `program`, then optimizer_measured() with its scalars */
    OPTIMIZER_FINISH,    /* run `program` (it may be empty); then optimizer_answer() is where
                            optimizer_answer_register() says, and `reason` says why */
};

#define LOSSES_KEPT 10 /* the loss tolerance looks this many steps back */

struct optimizer {
    struct optimizer_settings settings;
    struct pairs history;
    struct linesearch search;
    enum reason reason;
    enum reason closes; /* why the run ends at the next accepted point; REASON_NONE: it goes on */
    enum optimizer_measuring {
        MEASURING_TRIAL,     /* round A */
        MEASURING_DIRECTION, /* round B */
        MEASURING_FACTOR,    /* of the preconditioner */
    } measuring;             /* what the scalars to come are of */
    bool started;            /* x has been evaluated */
    bool accepted;           /* t and h are to become x and g with the next program */
    bool scaled;             /* H₀ is γB with the diagonal B of register A, unless there is a P;
                                to be set before optimizer_start() */
    bool steepest;           /* d is −g scaled, not a quasi-Newton direction */
    bool refreshing;         /* a refresh of the preconditioner is under way */
    bool unconditioned;      /* register pg does not hold P·g yet */
    bool leaves_best;        /* x, which is to be left with the next program, is the best point */
    uint64_t step;           /* accepted steps */
    uint64_t evaluations;    /* asked for */
    uint64_t rounds;         /* programs that return scalars */
    uint64_t retries;        /* evaluations beyond the first of a line search */
    double mean_loss;        /* of the trial, without L2 */
    double loss;             /* F at x */
    double gradient_max;     /* max|∂F| at x */
    double gradient_square;  /* g·g at x */
    double slope;            /* g·d */
    uint64_t nonzero;        /* at x, as in struct optimizer_point */
    double gap_bound;
    double last_step_length;
    uint32_t last_trials;           /* of the last accepted step */
    double trial_loss, trial_slope; /* of the last trial; NaN if it was not finite */
    double losses[LOSSES_KEPT + 1]; /* F after the last steps, at [step mod (LOSSES_KEPT + 1)] */
    struct held holdout, trial_holdout; /* at x, and at the trial */
    struct tensor_norms norms;          /* at x */
    struct optimizer_point best;        /* on the holdout; with patience, and once started */
    struct preconditioner preconditioner;
    struct drawn drawn; /* of the refresh under way, once its evaluation is complete */
    uint64_t safeguards[SAFEGUARDS];
    uint32_t fired; /* bit set of safeguards that fired since the last accepted step */
};

void optimizer_init(struct optimizer *optimizer, const struct optimizer_settings *settings);

/* A curvature pair to start with, oldest first and before optimizer_start(): s is in register t and
 * y in h. Its scalars go to optimizer_loaded(), with its number from 0. A pair that has no
 * curvature is passed over. */
void optimizer_load(struct optimizer *optimizer, struct bytes *program);
void optimizer_loaded(struct optimizer *optimizer, const double *scalars, uint64_t number);

/* Only measures the starting point: the run ends there, for this reason unless there is a better
 * one. Before optimizer_start(). */
void optimizer_close(struct optimizer *optimizer, enum reason reason);

/* The first request. Register x must hold the starting point. Programs are appended to `program`,
 * which the caller cleared. */
enum optimizer_want optimizer_start(struct optimizer *optimizer, struct bytes *program);

/* Takes the mean loss of the evaluation at t over the rows trained on (not finite if the trial is
 * out of reach), and what it found on the holdout (ignored without patience). */
enum optimizer_want optimizer_evaluated(struct optimizer *optimizer, double mean_loss,
                                        struct held held, struct bytes *program);

/* Of an evaluation without sums, because a derivative exceeded the bound: whether its mean loss
 * alone, without penalties, shows that the trial is not the step. If so, optimizer_refused() takes
 * it in place of optimizer_evaluated(); else it must be made again. */
bool optimizer_refuses(const struct optimizer *optimizer, double mean_loss);
enum optimizer_want optimizer_refused(struct optimizer *optimizer, double mean_loss,
                                      struct bytes *program);

/* Takes what the evaluation of the curvature found; a score that is not a number means that there
 * are no sums. */
enum optimizer_want optimizer_curved(struct optimizer *optimizer, const struct drawn *drawn,
                                     struct bytes *program);

/* The scalars of the program asked for, merged over the shards. */
enum optimizer_want optimizer_measured(struct optimizer *optimizer, const double *scalars,
                                       struct bytes *program);

/* Goes on from an accepted point that was stored: x, g and the pairs are in their registers and
 * slots again. The settings may have other limits than before; a limit that was raised does not end
 * the run any more. */
enum optimizer_want optimizer_resume(struct optimizer *optimizer,
                                     const struct optimizer_settings *settings,
                                     struct bytes *program);

/* Ends the run for a reason from outside. The answer that the optimizer was waiting for must not be
 * given any more. */
enum optimizer_want optimizer_stop(struct optimizer *optimizer, enum reason reason,
                                   struct bytes *program);

/* The point that is the answer if the run ends now: the best on the holdout with patience, else
 * x. */
struct optimizer_point optimizer_answer(const struct optimizer *optimizer);

/* The register that holds it (enum vector_register), once the last program has run. */
uint8_t optimizer_answer_register(const struct optimizer *optimizer);

/* The least fall of F in a step, over the last LOSSES_KEPT / 2; 0 before there were LOSSES_KEPT. */
double optimizer_fall(const struct optimizer *optimizer);

/* Whether that is another register than x: then a checkpoint must hold it as well. */
bool optimizer_keeps_best(const struct optimizer *optimizer);

/* The serial number of the factor that a checkpoint must hold; 0: none. A refresh under way is done
 * again after it, so the factor from before is of no use. */
uint64_t optimizer_keeps_factor(const struct optimizer *optimizer);

#endif
