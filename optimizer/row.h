/* What an optimizer is: a row of the table in optimizer.c.
 *
 * This folder is a library of pure state machines. It knows no worker, no clock and no vector: the
 * vectors are in registers of the shards, and all that a row sees of them are scalars. It may
 * include base/, the types of evaluations and programs of wire/, and numeric/dense.h.
 *
 * A row is called with an answer, and leaves a request: run this program, and then evaluate at the
 * point that it forms, or bring its scalars, or end the run. The driver (coordinator/driver.h) has
 * the workers do that, and calls again. A row is plain data. Together with its registers that is
 * the whole state of a run: serialize() writes and reads it, and begin() goes on from there. */
#ifndef DML_OPTIMIZER_ROW_H
#define DML_OPTIMIZER_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/limits.h"
#include "optimizer/preconditioner.h"
#include "wire/evaluation.h"
#include "wire/program.h"

/* ---- why a run ends ---- */

/* name, text, whether the run can go on from there (from a limit that was raised), whether it has a
 * model, whether it has converged: came to where the job file wants to stop, and whether it claims
 * to be next to the optimum by that. */
#define REASON_TABLE(X)                                                                            \
    X(REASON_NONE, "", false, false, false, false)                                                 \
    X(REASON_GRADIENT_TOLERANCE, "gradient tolerance", false, true, true, true)                    \
    X(REASON_LOSS_TOLERANCE, "loss tolerance", false, true, true, true)                            \
    X(REASON_STEP_LIMIT, "step limit", true, true, false, false)                                   \
    X(REASON_EPOCH_LIMIT, "epoch limit", true, true, false, false)                                 \
    X(REASON_TIME_LIMIT, "time limit", true, true, false, false)                                   \
    X(REASON_STALLED, "stalled", false, true, false, false)                                        \
    X(REASON_EARLY_STOPPING, "early stopping", false, true, true, false)                           \
    X(REASON_CANCELLED, "cancelled", true, false, false, false)                                    \
    X(REASON_NOT_FINITE, "not finite", false, false, false, false) /* no starting point */

enum reason {
#define X(name, text, resumes, model, converged, optimum) name,
    REASON_TABLE(X)
#undef X
        REASONS
};

const char *reason_text(enum reason reason);
bool reason_can_resume(enum reason reason);
bool reason_has_model(enum reason reason);
bool reason_says_converged(enum reason reason);
bool reason_claims_optimum(enum reason reason);

/* Whether the reason of a text that reason_text() gave can be resumed. */
bool reason_text_can_resume(const char *text);

/* The reason of this text; REASON_NONE if there is none, or the text is NULL. */
enum reason reason_of(const char *text);

/* ---- what is minimised ---- */

/* The examples. Chunks of training come first, those of the holdout after them. */
struct optimizer_data {
    uint32_t chunks, holdout_chunks;
    uint32_t tiles;      /* of all chunks, where replicas compute by strips of columns, as
                            wire/evaluation.h says; else 0 */
    bool upper;          /* there is more of the model above the strips: a network's other layers */
    uint32_t block_rows; /* of each chunk of training, but the last, which may have fewer */
    uint64_t rows;       /* trained on */
    double weight_sum, holdout_weight_sum;
    bool classes; /* predictions are right or wrong: the holdout has an accuracy */
};

/* How far F may be above its minimum is estimated at each accepted point, if the loss is convex:
 *
 *     P is in force       twice ½·gᵀPg and what P hides (HIDDEN), if P can be trusted and is of all
 *                         parameters
 *     else                ten times ½·Σ g_j²/(second·square_j + l2·penalty_j) (GAP in
 *                         wire/program.h): along runs with columns of all kinds ½·Σ was 0.07 to 2.7
 *                         times the true gap. A logarithmic loss that is nearly 0 curves far less
 *                         than its bound: p(1 − p) is below −log p, so F stands for `second` as
 *                         well, without the ten. F still falls, and ten more falls like the last
 *                         ones are taken for the gap if that is more
 *
 * What is not regularised counts with `bias_share` of `second`.
 *
 * Where columns are nearly collinear that sees too little: F curves less than its columns do. Steps
 * show by how much: s·y over s·D·s (METRIC in wire/program.h), with D what GAP divides by; of P,
 * where little columns have between them is lost to rounding, y·P·y over s·y. The least over five
 * steps divides the sum, in place of the ten if that is more. A step may still come that shows
 * less, so a run that waits takes the largest of three estimates in a row, of seven where nothing
 * but pairs tells of the curvature with l1; with a P only where one
 * of the five showed that it has five times the curvature that there is. Steps over working sets
 * are Newton's: what their quadratics say takes the place of the estimates before the last one
 * (working_rest() in optimizer/working.h).
 *
 * F curves by l2 at least, so without biases it is at most ½·Σ g_j²/l2 above its minimum, however
 * collinear columns are, at any point. Where there are more columns than rows that may be hardly
 * more than the gap; then it is the estimate, if P is not in force, and nothing else is asked, nor
 * waited for. Biases move g, too, until they are at their own minimum, by Δ = g_b/c, with c what
 * they curve by: each weight's gradient by the mean of its column where rows curve, times g_b. So
 * the estimate is ½·(√Σ g_j² + m·|g_b|)²/l2 + 10·½·g_b²/c. m is at most the root of `mean_square`,
 * and about |E|x||. */
struct gap_settings {
    bool known;            /* else nothing is estimated */
    double second;         /* what bounds the second derivatives of a row's loss, above 0 */
    double typical_second; /* what they are as a rule; 0: F itself stands for them; infinite: not
                              known */
    double bias_share;     /* of it that biases keep where weights take their place, 0 to 1 */
    double mean_square;    /* of rows, where l2 alone tells the gap; else 0 */
    bool newton;           /* P can be trusted */
    double least;          /* a loss below this counts as this */
    double tolerance;      /* converged: the gap is at most this share of F */
    bool waited_for;       /* a tolerance ends the run only where it has converged, */
    bool asked_for; /* and a level loss only if it stays so: the job says what the gap may be */
};

/* Whether squares of the columns are needed. */
bool gap_by_columns(const struct gap_settings *settings);

/* The gap up to which a point with this F has converged. */
double gap_allowed(const struct gap_settings *settings, double loss);

/* Which errors of the estimates are found at the end (lbfgs_summary.c). */
enum summary_errors {
    SUMMARY_NONE,
    SUMMARY_MODEL,  /* as if the model held: the inverse of second derivatives */
    SUMMARY_ROBUST, /* and besides those that need no more than independent rows */
};

struct optimizer_settings {
    uint32_t memory; /* curvature pairs, 1 … HISTORY_MAX */
    double l1, l2;
    enum summary_errors summary; /* with a block of all parameters, and without l1 */
    bool limited;    /* columns have limits (base/layout.h): bounds, or an l1 of their own */
    bool bounds_gap; /* with l1: the loss and the model allow l1_gap_bound() */
    struct gap_settings gap;
    double bias_scale; /* of H₀ without a preconditioner, see pairs.h; a power of two */
    double loss_unit;  /* what losses, and with them gradients, are multiples of; 0: 1 */
    double gradient_tolerance, loss_tolerance;
    uint64_t steps_max;
    uint32_t patience; /* steps, or epochs, without a better loss on the holdout before the end; 0:
                          no early stopping */
    struct preconditioner_settings preconditioner;
    uint32_t directions; /* of the window of common directions (lbfgs_span.c); 0: there is none */
    uint32_t outputs;    /* K, with a window or in tiles: margins of a row */
    bool weighted;       /* with a window or in tiles: rows have weights */
    bool offsets;        /* with a window or in tiles: rows have offsets */
    bool from_zero;      /* of a linear model: all parameters are 0 at the starting point */
    bool single;         /* losses and gradients are computed in single precision */
    uint32_t tensors;    /* of the layout, if their norms are wanted; else 0 */
};

static inline double optimizer_loss_unit(const struct optimizer_settings *settings) {
    return settings->loss_unit > 0 ? settings->loss_unit : 1;
}

/* Whether steps keep to a box: to the orthant of l1, or to bounds. */
static inline bool settings_boxed(const struct optimizer_settings *settings) {
    return settings->l1 > 0 || settings->limited;
}

/* ---- what is found ---- */

/* What an evaluation found on the holdout. */
struct held {
    double loss;     /* mean, without L2 */
    double accuracy; /* share of its weight that is predicted correctly; NaN without classes */
};

/* |x_t| and |∂F_t| of each tensor t of the layout, scaled as the run is. */
struct tensor_norms {
    uint64_t count; /* 0: they are not measured */
    double point[TENSORS_MAX], gradient[TENSORS_MAX];
};

/* The errors of the estimates at x: their squares are in registers. */
struct summary_found {
    bool made, robust;
    double trace;     /* effective parameters; NaN: second derivatives are not finite */
    uint64_t aliased; /* parameters that follow from others */
};

/* An accepted point. */
struct optimizer_point {
    uint64_t step;
    double loss;         /* F there */
    double gradient_max; /* max|∂F| there; with l1 or bounds of the pseudo-gradient, as everywhere
                            here */
    struct held holdout; /* a loss of infinity if it is not finite */
    uint64_t nonzero;    /* with l1: regularised parameters that are not 0 */
    uint64_t at_bound;   /* with limits: those that are at a bound */
    double gap_bound;    /* F is this much above its minimum at most; NaN: not known */
    double gap_estimate; /* about; NaN: not known */
    struct tensor_norms norms;
};

/* An evaluation that is complete. */
struct evaluation_found {
    const struct evaluation_parts *parts;
    const double *totals; /* as evaluation_first_total() numbers them */
    bool exceeded;        /* a bound was: the totals hold, but there are no sums */
    bool can_hold;        /* … and there are bounds that would not be */
};

/* A total of a part; NaN if the evaluation has no such part. */
double found_total(const struct evaluation_found *found, uint32_t part, uint32_t number);
/* What the part over the holdout has found. */
struct held found_held(const struct evaluation_found *found, uint32_t part,
                       const struct optimizer_data *data);

/* What is held out, from these two sums: of the losses, and of the weight of what is predicted
 * correctly. */
struct held held_of(const double *sums, const struct optimizer_data *data);

/* ---- requests ---- */

enum optimizer_want {
    OPTIMIZER_EVALUATE,  /* run the program (it forms t), evaluate the parts at t: evaluated() */
    OPTIMIZER_CURVATURE, /* run the program, evaluate the curvature of a sample of rows */
    OPTIMIZER_MEASURE,   /* run the program: measured() with its scalars */
    OPTIMIZER_FINISH,    /* run the program (it may be empty), and end the run */
    OPTIMIZER_LOAD,      /* put s of a given pair into t and its y into h, then as MEASURE */
    OPTIMIZER_HAND_OVER, /* to the row that follows: never seen by the driver */
};

/* What is to be told of a call. All of it is for people: a run does not go on from it. */
struct optimizer_report {
    const char *event; /* kind of an event; NULL: none */
    char event_text[256];
    struct {
        const char *outcome; /* of the evaluation that ended; NULL: nothing is to be recorded */
        uint64_t step;       /* that it was for */
        double step_length, loss, slope;
    } evaluation;
    struct {
        bool made;
        uint32_t safeguards; /* bit set of those that fired for it */
        uint64_t step;
        double loss, gradient_max, step_length;
        uint32_t trials, pairs;
        struct held holdout; /* NaN without patience */
    } step;
    struct {
        bool through;
        uint64_t epoch, minibatches, rows;
        double loss, seconds;
        struct held holdout; /* NaN if it is not measured */
    } epoch;
};

struct optimizer_request {
    /* Given with each call. */
    int64_t now_ns;
    double evaluation_seconds;   /* since the last evaluation began */
    struct bytes *program;       /* to append to; a CHECK of folds may be in it */
    const struct listed *listed; /* measured(): what LIST has listed, in any order */
    uint32_t listed_count;

    /* What the row leaves. */
    enum optimizer_want want;
    struct evaluation_parts parts; /* EVALUATE, CURVATURE */
    bool again;                    /* EVALUATE: the last one again, under bounds that hold */
    bool rows;      /* EVALUATE: replicas get the derivatives of rows (D) in place of t */
    bool bounded;   /* EVALUATE: the bound is that of what replicas get, whose elements are */
    double largest; /* no larger than this; else what follows from the evaluations before */
    struct row_sampling sampling; /* CURVATURE */
    uint32_t weight_count;        /* of LISTED, by rising numbers */
    uint64_t weights[WORKING_SET_MAX];
    uint32_t pair; /* LOAD: its number, from 0 for the oldest */
    bool accepted; /* the point of the last evaluation is x now */
    struct optimizer_report report;

    /* HAND_OVER: why the run ends where the next row has measured x (REASON_NONE: it goes on from
     * there), and whether register A holds the diagonal of its H₀. */
    enum reason closes;
    bool scaled;
};

/* Notes an event, whose text is cut to fit. */
void report_event(struct optimizer_report *report, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends t = x. */
void program_return(struct bytes *program);

/* What a checkpoint must hold besides x and g. */
struct optimizer_checkpoint {
    bool best;       /* register best */
    bool sums;       /* register A */
    uint64_t factor; /* the serial number of P; 0: none */
    uint32_t pairs;  /* their slots, oldest first, and serial numbers */
    uint64_t slots[HISTORY_MAX], serials[HISTORY_MAX];
    uint32_t window; /* slots and serial numbers of the directions in the window */
    uint64_t window_slots[DIRECTIONS_MAX], window_serials[DIRECTIONS_MAX];
    bool margins; /* Z, the margins of rows at x */
};

/* ---- the table ---- */

/* How the end came out that was asked for from outside. */
enum optimizer_end {
    END_REQUESTED, /* the request says how */
    END_COMING,    /* the run is ending as it is: nothing has changed */
    END_TOO_EARLY, /* there is no point to end at yet: nothing has changed */
};

struct optimizer_row {
    const char *name;
    /* Its evaluations are many and short: each is redone rather than journalled, is no evaluation
     * in the records, and is shared out at once. */
    bool brief;

    /* The first request; of a state that was read, the one that goes on from there. */
    void (*begin)(void *row, struct optimizer_request *request);
    /* The evaluation that was requested is complete. */
    void (*evaluated)(void *row, const struct evaluation_found *found,
                      struct optimizer_request *request);
    /* The scalars of the program that was requested, merged over the shards. */
    void (*measured)(void *row, const double *scalars, struct optimizer_request *request);
    /* Ends the run for a reason from outside. The answer that the row was waiting for must not be
     * given any more, if it leaves a request. */
    enum optimizer_end (*end)(void *row, enum reason reason, struct optimizer_request *request);

    void (*checkpoint)(const void *row, struct optimizer_checkpoint *checkpoint);
    /* Reads or writes the state; what it is made of, the settings and the data, stays. */
    void (*serialize)(struct codec *codec, void *row);
};

void serialize_held(struct codec *codec, struct held *held);

/* Writes one of `values` numbers from 0 on, or reads and answers it; another fails. */
uint32_t serialize_enum(struct codec *codec, uint32_t number, uint32_t values);

#endif
