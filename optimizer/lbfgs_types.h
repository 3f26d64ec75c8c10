/* The state of L-BFGS: plain data, with a struct for each kind of work between two points.
 *
 * Who only calls L-BFGS reads results here and writes nothing. */
#ifndef DML_OPTIMIZER_LBFGS_TYPES_H
#define DML_OPTIMIZER_LBFGS_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "optimizer/linesearch.h"
#include "optimizer/pairs.h"
#include "optimizer/preconditioner.h"
#include "optimizer/row.h"
#include "optimizer/span.h"
#include "optimizer/window.h"
#include "optimizer/working.h"

/* What kept a step from going wrong; counted, and named in the log. */
#define SAFEGUARD_TABLE(X)                                                                         \
    X(SAFEGUARD_PAIR_SKIPPED, "pair skipped: too little curvature")                                \
    X(SAFEGUARD_PAIRS_DROPPED, "oldest pairs dropped: ill-conditioned history")                    \
    X(SAFEGUARD_HISTORY_RESET, "history reset: not a descent direction")                           \
    X(SAFEGUARD_SEARCH_RETRIED, "line search failed: retried along the negative gradient")         \
    X(SAFEGUARD_TRIAL_NOT_FINITE, "trial not finite: step shrunk")                                 \
    X(SAFEGUARD_DIAGONAL_RAISED, "sampled Hessian not positive definite: diagonal raised")         \
    X(SAFEGUARD_PRECONDITIONER_LEFT, "no descent with the preconditioner: left for now")           \
    X(SAFEGUARD_WORKING_SET_LEFT, "no descent over the working set: a quasi-Newton step instead")

enum safeguard {
#define X(name, text) name,
    SAFEGUARD_TABLE(X)
#undef X
        SAFEGUARDS
};
static_assert(SAFEGUARDS <= 32, "a bit for each of those that fired");
const char *safeguard_text(enum safeguard safeguard);

#define LOSSES_KEPT 10      /* the loss tolerance looks this many steps back */
#define STEEPS_KEPT 5       /* the estimate of the gap, for curvature */
#define COLUMNS_FACTOR 10.0 /* of the gap by columns: see struct gap_settings */
#define GAPS_KEPT 3         /* and for itself; */
#define GAPS_KEPT_BARE 7    /* with l1 and nothing but pairs */
#define GAP_ROUNDED 1e-9    /* of F: no more than rounding */

/* Steps in the span of common directions (lbfgs_span.c), if the settings have any: an evaluation is
 * taken apart into the product of the rows with a direction and the sums of the gradient, and
 * between them F is minimised over the whole window. In tiles there is this without directions,
 * too: then a product is that with a trial point, and `stage`, `point_max` and of `span` `loss` and
 * `derivative` are of it. */
struct common {
    struct window window;
    struct span span; /* of the step under way; `loss` and `derivative` also at the start */
    enum common_stage {
        COMMON_NONE,        /* no evaluation of those below */
        COMMON_LABELS,      /* of the rows, at the beginning of each attempt */
        COMMON_WEIGHTS,     /* of the rows, at the beginning of each attempt */
        COMMON_SIZES,       /* of the rows, at the beginning of each attempt in tiles */
        COMMON_MARGINS,     /* the product with x, or a trial point: Z anew */
        COMMON_PRODUCT,     /* that with the newest direction */
        COMMON_HOLDOUT,     /* the loss at t */
        COMMON_TRANSPOSE,   /* the gradient at t, from its margins; until it is measured */
        COMMON_CHECK,       /* loss and gradient at x by an ordinary evaluation, before the end; in
                               tiles the gradient at x, from margins that were made anew */
        COMMON_OFFSETS,     /* as COMMON_WEIGHTS, which it follows; numbers are in stored states */
        COMMON_DERIVATIVES, /* of a network in tiles: losses at Z, and their derivatives by Z */
        COMMON_STAGES
    } stage;
    enum span_answer asked; /* what is measured of the trial under way */
    bool biases_due;        /* their own direction is to enter the window before the first */
    bool margins;           /* Z is the margins at x */
    uint32_t age;           /* steps since Z was made anew */
    enum reason ends;       /* while it is checked: why the run ends, if that holds */
    double point_max;       /* in tiles: of the point of a product, no element is larger */
    bool checked; /* the figures of x are those that follow; else those it was accepted with */
    struct optimizer_point figures;
};

/* The end of a run whose job wants the errors of its estimates (lbfgs_summary.c): Newton's steps
 * with the second derivatives of all rows, then those once more where these have led, their
 * inverse, and the same of scores. */
struct summary {
    bool polishing;     /* P is of all rows at a point where the run would have ended */
    uint32_t polished;  /* steps since then */
    enum reason reason; /* why it would have ended; REASON_NONE: it goes on */
    enum summary_stage {
        SUMMARY_STAGE_NONE,  /* none of the evaluations below */
        SUMMARY_REFRESH,     /* of all rows, for P */
        SUMMARY_INFORMATION, /* second derivatives at the answer, */
        SUMMARY_SCORES,      /* and scores */
    } stage;
    bool again; /* the evaluation, under bounds that hold */
    struct summary_found found;
};

enum lbfgs_phase {
#define PHASE(NAME, name, text) PHASE_##NAME,
#include "optimizer/phases.def"
    PHASES
};

/* Chunks that a part of an evaluation is over. */
enum asked_chunks {
    CHUNKS_TRAINING,
    CHUNKS_HELD,  /* those of the holdout; none where it does not decide the end */
    CHUNKS_ALL,   /* those of training and holdout */
    CHUNKS_TILES, /* the tiles of all of them */
    CHUNKS_UPPER, /* tiles of one more strip: the layers above a network's first */
    CHUNK_RANGES
};

enum held_by { HELD_BY_NONE, HELD_BY_REPLICAS, HELD_BY_SHARDS }; /* who finds the holdout's loss */

#define OWN_NUMBERS 4 /* labels, weights, offsets and sizes */

/* What follows from the settings and the data alone. lbfgs_init() decides it, and nothing of it is
 * stored: whoever reads a state has made the same plan. */
struct lbfgs_plan {
    const struct lbfgs_way *way; /* how a step is computed (lbfgs_evaluations.c) */
    struct chunks {
        uint32_t first, count;
    } chunks[CHUNK_RANGES];
    enum common_stage numbers[OWN_NUMBERS + 1]; /* of rows, that shards get at the beginning of
                                                   each attempt; COMMON_NONE ends the list */
    enum held_by held;
    const struct domain *domain; /* where steps may go */
    bool newton_tells;           /* P, while it is in force, tells the gap */
    unsigned gaps_kept;          /* the largest of so many estimates of the gap counts */
};

struct lbfgs {
    struct optimizer_settings settings;
    struct optimizer_data data;
    struct lbfgs_plan plan;
    struct pairs history;
    struct linesearch search;
    enum reason reason; /* why the run ends; REASON_NONE: it goes on */
    enum reason closes; /* why it ends at the next accepted point; REASON_NONE: it does not */
    enum lbfgs_measuring {
        MEASURING_TRIAL,     /* round A */
        MEASURING_DIRECTION, /* round B */
        MEASURING_FACTOR,    /* of the preconditioner */
        MEASURING_SPAN,      /* a trial in the span of common directions */
        MEASURING_LIST,      /* parameters for a working set */
        MEASURING_SOLVE,     /* the step over it */
        MEASURING_POINT,     /* how large x, or a trial, is, before its margins in tiles */
        MEASURING_SUMMARY,   /* the inverse of second derivatives */
        MEASURING_CHECK,     /* round A of x itself, before the end */
        MEASURINGS
    } measuring;            /* what the scalars to come are of */
    bool started;           /* x has been evaluated */
    bool accepted;          /* t and h are to become x and g with the next program */
    bool scaled;            /* H₀ is γB with the diagonal B of register A, unless there is a P;
                               to be set before the beginning */
    bool steepest;          /* d is −g scaled, not a quasi-Newton direction */
    bool refreshing;        /* a refresh of the preconditioner is under way */
    bool unconditioned;     /* register pg does not hold P·g yet */
    bool leaves_best;       /* x, which is to be left with the next program, is the best point */
    uint64_t step;          /* accepted steps */
    uint64_t evaluations;   /* asked for */
    uint64_t rounds;        /* programs that return scalars */
    uint64_t retries;       /* evaluations beyond the first of a line search */
    double mean_loss;       /* of the trial, without L2 */
    double loss;            /* F at x */
    double gradient_max;    /* max|∂F| at x */
    double gradient_square; /* g·g at x */
    double slope;           /* g·d */
    uint64_t nonzero;       /* at x, as in struct optimizer_point */
    uint64_t moving;   /* with l1 or limits: regularised ones that nothing holds where they are */
    uint64_t at_bound; /* as in struct optimizer_point */
    double gap_bound, gap_estimate; /* as in struct optimizer_point */
    double last_step_length;
    uint32_t last_trials;           /* of the last accepted step */
    double trial_loss, trial_slope; /* of the last trial; NaN if it was not finite */
    double losses[LOSSES_KEPT + 1]; /* F after the last steps, at [step mod (LOSSES_KEPT + 1)] */
    uint64_t settled;               /* steps in a row at whose ends F had settled for good */
    double steepness[STEEPS_KEPT];  /* of the last steps, at [step mod STEEPS_KEPT]; 1: not known */
    double gaps[GAPS_KEPT_BARE];    /* estimates at the last points, at [step mod GAPS_KEPT_BARE] */
    struct held holdout, trial_holdout; /* at x, and at the trial */
    struct tensor_norms norms;          /* at x */
    struct optimizer_point best;        /* on the holdout; with patience, and once started */
    struct common common;
    struct preconditioner preconditioner;
    struct working working;       /* with l1 */
    struct summary summary;       /* if the settings want one */
    struct curvature_found found; /* of the refresh under way, once its evaluation is complete */
    uint64_t safeguards[SAFEGUARDS];
    uint32_t fired; /* bit set of safeguards that fired since the last accepted step */
};

#endif
