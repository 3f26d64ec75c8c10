/* The row of L-BFGS, with a line search (Nocedal and Wright, "Numerical optimization", 2006,
 * algorithm 7.5, with the directions of pairs.h); with l1 orthant-wise (linesearch.h).
 *
 * An accepted step takes an evaluation and two programs that return scalars: one measures the trial
 * (round A), one forms the next direction (round B). With common directions (lbfgs_span.c) a step
 * takes a product and its transpose, and more rounds between them in place of the line search. In
 * tiles without them each evaluation is a product and its transpose (lbfgs_products.c).
 *
 * Invariants between calls: register x holds the last accepted point, which has the least loss, g
 * its gradient and, while a preconditioner P is in force, pg the product P·g unless
 * `unconditioned`; a trial that was accepted but not yet put into x is put there by the next
 * program.
 *
 * With early stopping each point also has a loss on the holdout, and the one with the least is the
 * answer: it is x, or it was left behind. The program that leaves it puts it into register best, by
 * changing names: that costs no pass over the vector. Equal losses are not better, so the first of
 * several stays. */
#ifndef DML_OPTIMIZER_LBFGS_H
#define DML_OPTIMIZER_LBFGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
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
        COMMON_WEIGHTS,     /* likewise */
        COMMON_SIZES,       /* likewise, in tiles */
        COMMON_MARGINS,     /* the product with x, or a trial point: Z anew */
        COMMON_PRODUCT,     /* that with the newest direction */
        COMMON_HOLDOUT,     /* the loss at t */
        COMMON_TRANSPOSE,   /* the gradient at t, from its margins; until it is measured */
        COMMON_CHECK,       /* loss and gradient at x by an ordinary evaluation, before the end; in
                               tiles the gradient at x, from margins that were made anew */
        COMMON_OFFSETS,     /* as COMMON_WEIGHTS, which it follows; numbers are in stored states */
        COMMON_DERIVATIVES, /* of a network in tiles: losses at Z, and their derivatives by Z */
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

struct lbfgs {
    struct optimizer_settings settings;
    struct optimizer_data data;
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
    } measuring;             /* what the scalars to come are of */
    bool started;            /* x has been evaluated */
    bool accepted;           /* t and h are to become x and g with the next program */
    bool scaled;             /* H₀ is γB with the diagonal B of register A, unless there is a P;
                                to be set before the beginning */
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

extern const struct optimizer_row lbfgs_row; /* of a struct lbfgs */

void lbfgs_init(struct lbfgs *lbfgs, const struct optimizer_settings *settings,
                const struct optimizer_data *data);

/* A curvature pair to start with, oldest first and before the beginning: s is in register t and y
 * in h. Its scalars go to lbfgs_loaded(), with its number from 0. A pair that has no curvature is
 * passed over. */
void lbfgs_load(struct lbfgs *lbfgs, struct bytes *program);
void lbfgs_loaded(struct lbfgs *lbfgs, const double *scalars, uint64_t number);

/* The point that is the answer if the run ends now: the best on the holdout with patience, else
 * x. */
struct optimizer_point lbfgs_answer(const struct lbfgs *lbfgs);

/* The register that holds it (enum vector_register), once the last program has run. */
uint8_t lbfgs_answer_register(const struct lbfgs *lbfgs);

/* Whether the gap at x, by estimate, is as small as a run that has converged must have it. True if
 * it is not known. */
bool lbfgs_has_converged(const struct lbfgs *lbfgs);

/* The least fall of F in a step, over the last LOSSES_KEPT / 2; 0 before there were LOSSES_KEPT. */
double lbfgs_fall(const struct lbfgs *lbfgs);

/* ---- for the sources of the row ---- */

/* ---- lbfgs.c ---- */

struct measured;

/* Whether steps keep to an orthant, or to bounds. */
static inline bool lbfgs_has_orthants(const struct lbfgs *o) {
    return settings_orthants(&o->settings);
}

/* Whether evaluations are taken apart into products, so that shards have vectors of rows. */
static inline bool lbfgs_by_rows(const struct lbfgs *o) {
    return o->settings.directions > 0 || o->data.tiles > 0;
}

/* Counts a safeguard, and notes it for the step under way. */
void lbfgs_fire(struct lbfgs *o, enum safeguard safeguard);

/* Ends the run at x. */
enum optimizer_want lbfgs_finish(struct lbfgs *o, enum reason reason, struct bytes *program);

/* Goes on from x: to the end if there is a reason, or as without one. */
enum optimizer_want lbfgs_leave(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_go_on(struct lbfgs *o, struct bytes *program);

/* The evaluation of the starting point. */
enum optimizer_want lbfgs_start_trial(struct lbfgs *o, struct bytes *program);

/* What follows a trial whose loss or gradient is not finite; whether the mean loss alone shows that
 * a trial is not the step, as it is a lower bound of F; and what follows then. */
enum optimizer_want lbfgs_not_finite(struct lbfgs *o, struct bytes *program);
bool lbfgs_refuses(const struct lbfgs *o, double mean_loss);
enum optimizer_want lbfgs_refused(struct lbfgs *o, double mean_loss, struct bytes *program);

/* Where the direction is of no use. */
enum optimizer_want lbfgs_retry(struct lbfgs *o, enum safeguard safeguard, struct bytes *program);

/* Round A: finishes the gradient at t, and measures all that may be needed. */
enum optimizer_want lbfgs_measure_trial(struct lbfgs *o, struct bytes *program);

/* Differences of F at x up to this are rounding. */
double lbfgs_noise(const struct lbfgs *o);

/* The first step along −g, where no curvature is known: that of a loss in its unit with a curvature
 * of 1, but of length 1 at most. */
double lbfgs_steepest_step(const struct lbfgs *o);

/* Keeps what the trial has on the holdout; a loss that is no number counts as infinite. */
void lbfgs_take_held(struct lbfgs *o, struct held held);

/* Keeps F at an accepted point, for what the loss tolerance compares it with. */
void lbfgs_note_loss(struct lbfgs *o);

/* Keeps what an accepted point says of the gap, for the estimates of the next ones. */
void lbfgs_note_gap(struct lbfgs *o, const struct measured *measured);

/* What F at a trial is above the minimum, by what was measured. */
double lbfgs_gap_estimate(const struct lbfgs *o, const struct measured *measured);

/* The run ends at x, as no step leads to a lower loss. */
void lbfgs_take_last_gap(struct lbfgs *o);

/* ---- lbfgs_report.c ---- */

/* The evaluation that just ended, made for this step with this step length. */
void lbfgs_report(struct optimizer_report *report, const struct lbfgs *before, const char *outcome,
                  double loss, double slope);

/* The step that was just accepted, and the safeguards that fired for it; a factor that is there, or
 * that there is none; a step over a working set; the errors of estimates. */
void lbfgs_report_step(struct optimizer_report *report, struct lbfgs *o);
void lbfgs_report_factor(struct optimizer_request *request, const struct lbfgs *o);
void lbfgs_report_working(struct optimizer_request *request, const struct lbfgs *o);
void lbfgs_report_summary(struct optimizer_request *request, const struct lbfgs *o,
                          const double *scalars);

/* ---- lbfgs_span.c: steps in the span of common directions ---- */

/* Asks for the evaluation of a stage, or for the scalars of a program. */
enum optimizer_want common_evaluate(struct lbfgs *o, enum common_stage stage);
enum optimizer_want common_measure(struct lbfgs *o, enum lbfgs_measuring what);

/* Whether there are common directions. */
bool common_runs(const struct lbfgs *o);

/* Whether a search has begun whose step is not made: until then the second derivatives that were
 * kept are those of a point on the way, and at last Z is that of t, which is not x yet. */
bool common_is_within_step(const struct lbfgs *o);

/* The beginning of an attempt: labels and weights of the rows. This and the next one also in tiles
 * without directions. */
enum optimizer_want common_begin(struct lbfgs *o, struct bytes *program);
enum optimizer_want common_resume(struct lbfgs *o, struct bytes *program);

/* Forms the next direction, steepest or not as `steepest` says, and measures it; before that Z is
 * made anew if it must be. */
enum optimizer_want common_direction(struct lbfgs *o, struct bytes *program);

/* In tiles with early stopping: asks for the losses of held-out rows beside those of the others,
 * and takes them; answers how many scalars these were, or 0. */
void common_add_held(const struct lbfgs *o, struct bytes *program);
uint32_t common_take_held(struct lbfgs *o, const double *scalars);

/* In tiles: x is measured, and its margins follow. */
enum optimizer_want common_point_measured(struct lbfgs *o, double largest, struct bytes *program);

/* Whether an end for this reason is to be checked by an evaluation at x that takes nothing from
 * former margins, and that. */
bool common_must_check(const struct lbfgs *o, enum reason reason);
enum optimizer_want common_check(struct lbfgs *o, enum reason reason, struct bytes *program);

/* What follows what was measured at x by the check. */
enum optimizer_want common_checked(struct lbfgs *o, const struct measured *m,
                                   struct bytes *program);

/* A trial became x. */
void common_stepped(struct lbfgs *o);

/* The parts of the evaluation of the stage, and what belongs to the request. */
void common_request(const struct lbfgs *o, struct optimizer_request *request);

/* What follows an evaluation, or the scalars of a direction or a trial. */
enum optimizer_want common_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                     struct optimizer_request *request);
enum optimizer_want common_direction_measured(struct lbfgs *o, const double *scalars,
                                              struct bytes *program);
enum optimizer_want common_searched(struct lbfgs *o, const double *scalars, struct bytes *program);

/* ---- lbfgs_products.c: evaluations by a product and its transpose, in tiles ---- */

/* Whether there are such: in tiles without common directions. */
bool products_run(const struct lbfgs *o);

/* Evaluates t, which the program forms: its size, its margins, the loss and the largest derivative,
 * the gradient. */
enum optimizer_want products_trial(struct lbfgs *o, struct bytes *program);
enum optimizer_want products_point_measured(struct lbfgs *o, double largest, struct bytes *program);
enum optimizer_want products_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                       struct optimizer_request *request);
enum optimizer_want products_measured(struct lbfgs *o, const double *scalars,
                                      struct bytes *program);

/* ---- lbfgs_state.c ---- */

/* Why the run ends at x: by a tolerance or a limit; REASON_NONE: it goes on. */
enum reason lbfgs_reason_to_end(const struct lbfgs *o);

/* Whether x is within a tolerance, and P of where F was so much larger that it says nothing of the
 * gap: it is made anew before the run ends. */
bool lbfgs_ends_outdated(const struct lbfgs *o);

/* Whether the run would do otherwise if it went on from x: second derivatives of the step under way
 * have been counted, a step was given up, or P was made anew at x so that it would end there. So it
 * is ended from outside where its next step is made. */
bool lbfgs_has_tried(const struct lbfgs *o);

/* Those of its row in optimizer.c: see struct optimizer_row. */
void lbfgs_checkpoint(const void *row, struct optimizer_checkpoint *checkpoint);
void lbfgs_serialize(struct codec *codec, void *row);

/* ---- lbfgs.c ---- */

/* A step along a direction of the pairs, or of steepest descent. */
enum optimizer_want lbfgs_step_from(struct lbfgs *o, struct bytes *program);

/* The first trial along d, with o->slope. */
enum optimizer_want lbfgs_search_along(struct lbfgs *o, double first_step, struct bytes *program);

/* ---- lbfgs_working.c ---- */

/* Whether the next step is over a working set; and such a step, from one answer to the next. */
bool working_runs(const struct lbfgs *o);
enum optimizer_want working_begin(struct lbfgs *o, struct bytes *program);
enum optimizer_want working_listed(struct lbfgs *o, const struct listed *listed, uint32_t count,
                                   struct bytes *program);
enum optimizer_want working_evaluated(struct lbfgs *o, struct bytes *program);
enum optimizer_want working_solved(struct lbfgs *o, const double *step, struct bytes *program);

/* A trial along it, or along any other direction, was accepted, and F fell by so much. */
void working_accepted(struct lbfgs *o, double fall);

/* No trial along it was accepted. */
enum optimizer_want working_rejected(struct lbfgs *o, struct bytes *program);

/* The parts of the evaluation of second derivatives. */
void working_request(const struct lbfgs *o, struct optimizer_request *request);

/* ---- lbfgs_summary.c ---- */

/* Whether an end for this reason waits for the errors of estimates; and the way there. */
bool summary_runs(const struct lbfgs *o, enum reason reason);
enum optimizer_want summary_begin(struct lbfgs *o, enum reason reason, struct bytes *program);

/* P of all rows is there, or there is none. */
enum optimizer_want summary_refreshed(struct lbfgs *o, struct bytes *program);

/* While `polishing`: whether a trial is closer to the optimum than x, what follows it once it is x,
 * and what follows where no step leads on. */
bool summary_falls(const struct lbfgs *o, const struct measured *m);
enum optimizer_want summary_stepped(struct lbfgs *o, struct bytes *program);
enum optimizer_want summary_ends(struct lbfgs *o, struct bytes *program);

/* The scalars of its program. */
enum { SUMMARY_TRACE, SUMMARY_ALIASED };

/* Whether second derivatives of an evaluation are for the summary, and what follows those; `void_`:
 * a bound was exceeded. */
bool summary_evaluates(const struct lbfgs *o);
enum optimizer_want summary_evaluated(struct lbfgs *o, bool void_, struct bytes *program);
enum optimizer_want summary_measured(struct lbfgs *o, const double *scalars, struct bytes *program);

/* The parts of the evaluation. */
void summary_request(const struct lbfgs *o, struct optimizer_request *request);

/* Of a state that was read: what was under way begins again. */
void summary_resume(struct lbfgs *o);
void summary_serialize(struct codec *codec, struct summary *summary);

/* ---- lbfgs.c ---- */

/* A refresh of P at x, and a step from there. */
enum optimizer_want lbfgs_refresh(struct lbfgs *o, struct bytes *program);

/* ---- lbfgs_programs.c ----
 *
 * The programs, piece by piece, and where their scalars stand. With l1 the pseudo-gradient takes
 * the gradient's place: qg at x, which each direction forms anew, and qh at t. */

/* a = 0. */
void programs_zero(struct bytes *program, uint8_t a);

/* Puts an accepted trial into x, g and pg, and x into best if it is that; changes names only. */
void programs_acceptance(struct lbfgs *o, struct bytes *program);

/* t = x + search.step·d, before an evaluation; with l1 within the orthant of x. */
void programs_trial(const struct lbfgs *o, struct bytes *program);

/* d, and pg = P·g if that is not there yet; what it has of the biases alone, if that is due. Yields
 * nothing. */
void programs_direction(struct lbfgs *o, struct bytes *program);

/* Forms the pseudo-gradient at x, and lists parameters for a working set; then finds the step over
 * the chosen ones. */
void programs_list(const struct lbfgs *o, struct bytes *program, uint32_t limit);
void programs_solve(const struct lbfgs *o, struct bytes *program);

/* The errors of estimates of the sums into d, and the restated estimates into h; robust errors into
 * ph. */
void programs_covariance(const struct lbfgs *o, struct bytes *program);
void programs_sandwich(const struct lbfgs *o, struct bytes *program);

/* Yields the slope of F along d. */
void programs_slope(const struct lbfgs *o, struct bytes *program);

/* Forms the candidate pair of t and h as differences to the registers x and g, and yields the
 * products of every pair, the candidate last, with h and with the candidate's y. */
void programs_pair(const struct lbfgs *o, struct bytes *program, uint8_t x, uint8_t g);

/* Finishes the gradient at t, and yields all that may be needed of the trial. */
void programs_measures(const struct lbfgs *o, struct bytes *program);

/* Whether the gap is told by P: by one of all parameters, as beyond a heavy block it is rough. */
bool programs_newton_tells(const struct lbfgs *o);

/* Whether it is told by l2 alone: struct gap_settings. */
bool programs_l2_tells(const struct lbfgs *o);

/* What programs_measures() yielded. */
struct measured {
    double loss;        /* F at t */
    double slope;       /* along d at t, by the same; NaN if a component is not finite */
    double square, max; /* of the gradient there; with l1 of the pseudo-gradient */
    const struct pairs_products *products; /* of the pairs and the candidate; NULL if none were
                                              asked for */
    struct tensor_norms norms;             /* of the tensors, at t */
    double gap;       /* the sums of struct gap_settings at t, times their factors */
    double steepness; /* s·y over s·D·s for the D that they divide by; 1: not known */
    /* the rest with l1 or limits only; s = t − x */
    double falls, ends;        /* the slopes of F along s, at x and at t; NaN as above */
    double step_square;        /* s·s */
    uint64_t nonzero;          /* regularised parameters at t that are not 0, */
    uint64_t moving, at_bound; /* that nothing holds where they are, and that are at a bound */
    double gap_bound;          /* F(t) is this much above the minimum at most; NaN: not known */
};
struct measured programs_measured(const struct lbfgs *o, const double *scalars);

#endif
