/* The phases of L-BFGS, and what their files share.
 *
 * A phase is what is under way between two accepted points: a line of phases.def, with a row in a
 * file of its own and a struct of its own in lbfgs_types.h. An answer goes to the phase that waits
 * for it, and a trial to the phase whose step it is. doc/OPTIMIZERS.md says how to add one. */
#ifndef DML_OPTIMIZER_LBFGS_PHASE_H
#define DML_OPTIMIZER_LBFGS_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "optimizer/lbfgs_programs.h"
#include "optimizer/lbfgs_types.h"

typedef enum optimizer_want phase_evaluated(struct lbfgs *o, const struct evaluation_found *found,
                                            struct optimizer_request *request);
typedef enum optimizer_want phase_measured(struct lbfgs *o, const double *scalars,
                                           struct optimizer_request *request);

/* A member that a phase has no use for is NULL. */
struct phase {
    /* Whether it comes next at an accepted point; and its beginning, for a phase of directions from
     * x along −g or by the pairs, as `steepest` says. */
    bool (*due)(const struct lbfgs *o);
    enum optimizer_want (*begin)(struct lbfgs *o, struct bytes *program);
    /* Whether an end for this reason waits for it; and its beginning then. */
    bool (*awaited)(const struct lbfgs *o, enum reason reason);
    enum optimizer_want (*conclude)(struct lbfgs *o, enum reason reason, struct bytes *program);

    /* Whether the evaluation under way is one of its own, by what is stored; NULL: for its scalars
     * alone, or all others may be its own (struct lbfgs_plan). */
    bool (*evaluates)(const struct lbfgs *o);
    /* What it evaluates, and what follows its evaluations, and the scalars of its programs. */
    void (*request)(const struct lbfgs *o, struct optimizer_request *request);
    phase_evaluated *evaluated;
    phase_measured *measured[MEASURINGS];

    /* For phases that make steps: whether the step under way is one of its own (NULL: all others
     * may be, as `evaluates`). `finite`: loss and slope are. */
    bool (*steps)(const struct lbfgs *o);
    bool leaves_orthant; /* its trials keep to bounds alone */
    bool tries_once;     /* a trial that is not accepted is the last along its direction */
    enum linesearch_answer (*check_trial)(struct lbfgs *o, const struct measured *m, bool finite);
    /* Its direction is of no use, or no trial along it was accepted. */
    enum optimizer_want (*failed)(struct lbfgs *o, enum safeguard safeguard, struct bytes *program);
    /* What follows its accepted points. */
    enum optimizer_want (*follows)(struct lbfgs *o, struct bytes *program);

    /* A step of any phase was accepted, and F fell by so much. */
    void (*accepted)(struct lbfgs *o, double fall);

    /* For phases whose evaluations are those of trials along a direction: evaluates t, which the
     * program forms. */
    enum optimizer_want (*try)(struct lbfgs *o, struct bytes *program);

    /* For phases of directions: the evaluation of the starting point; what F falls by along the
     * step, by the slope at x; and a trial became x. */
    bool along_line; /* a step is along one direction: it has a slope */
    enum optimizer_want (*start)(struct lbfgs *o, struct bytes *program);
    bool (*within_step)(const struct lbfgs *o); /* a step has begun that has to be made before an
                                                   end; NULL: there is no such step */
    double (*fall)(const struct lbfgs *o);
    void (*stepped)(struct lbfgs *o);

    /* Lets what was under way begin again after a state was read; and writes or reads the struct of
     * the phase in a stored state. */
    void (*resume)(struct lbfgs *o);
    void (*serialize)(struct codec *codec, struct lbfgs *o);
};

#define PHASE(NAME, name, text) extern const struct phase name##_phase;
#include "optimizer/phases.def"

/* ---- lbfgs.c: the table, and decisions at points ---- */

/* Asks for an evaluation, or for the scalars of a program. */
enum optimizer_want lbfgs_evaluate(struct lbfgs *o);
enum optimizer_want lbfgs_measure(struct lbfgs *o, enum lbfgs_measuring what);

/* The phase whose step is under way. */
const struct phase *lbfgs_stepping(const struct lbfgs *o);

/* The structs of all phases, in the order of the table. */
void lbfgs_serialize_phases(struct codec *codec, struct lbfgs *o);

/* Counts a safeguard, and notes it for the step under way. */
void lbfgs_fire(struct lbfgs *o, enum safeguard safeguard);

/* Reports the evaluation that just ended, made for this step with this step length; the step that
 * was just accepted, and the safeguards that fired for it. */
void lbfgs_report(struct optimizer_report *report, const struct lbfgs *before, const char *outcome,
                  double loss, double slope);
void lbfgs_report_step(struct optimizer_report *report, struct lbfgs *o);

/* Ends the run at x; or that after what an end for this reason waits for. */
enum optimizer_want lbfgs_finish(struct lbfgs *o, enum reason reason, struct bytes *program);
enum optimizer_want lbfgs_end_for(struct lbfgs *o, enum reason reason, struct bytes *program);

/* Goes on from x: as the phase of the step says; to the end if there is a reason, or to what is
 * due; to the phase that is due; with a direction of the pairs, or of steepest descent where there
 * are none; with that of steepest descent. */
enum optimizer_want lbfgs_leave(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_end_or_go_on(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_go_on(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_step_from(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_steepest(struct lbfgs *o, struct bytes *program);

/* The evaluation of the starting point. */
enum optimizer_want lbfgs_start_trial(struct lbfgs *o, struct bytes *program);

/* What follows a trial that was measured, one whose loss or gradient is not finite, and one that
 * was not accepted. */
enum optimizer_want lbfgs_tried(struct lbfgs *o, const struct measured *m, struct bytes *program);
enum optimizer_want lbfgs_not_finite(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_rejected(struct lbfgs *o, enum linesearch_answer answer,
                                   struct bytes *program);

/* What follows where the direction is of no use: what the phase of the step says; and for a
 * direction of the pairs one without them, then one without the preconditioner. */
enum optimizer_want lbfgs_fail(struct lbfgs *o, enum safeguard safeguard, struct bytes *program);
enum optimizer_want lbfgs_retry(struct lbfgs *o, enum safeguard safeguard, struct bytes *program);

/* Keeps what the trial has on the holdout; a loss that is no number counts as infinite. */
void lbfgs_take_held(struct lbfgs *o, struct held held);

/* ---- lbfgs_search.c: trials along a direction ---- */

/* Evaluates t = x + search.step·d. */
enum optimizer_want lbfgs_try(struct lbfgs *o, struct bytes *program);

/* The first trial along d, with o->slope. */
enum optimizer_want lbfgs_search_along(struct lbfgs *o, double first_step, struct bytes *program);

/* Round A: finishes the gradient at t, and measures all that may be needed; and takes that. */
enum optimizer_want lbfgs_measure_trial(struct lbfgs *o, struct bytes *program);
enum optimizer_want lbfgs_trial_measured(struct lbfgs *o, const double *scalars,
                                         struct optimizer_request *request);

/* Whether the mean loss alone shows that a trial is not the step, as it is a lower bound of F; and
 * what follows then. */
bool lbfgs_refuses(const struct lbfgs *o, double mean_loss);
enum optimizer_want lbfgs_refused(struct lbfgs *o, double mean_loss, struct bytes *program);

/* Differences of F at x up to this are rounding. */
double lbfgs_noise(const struct lbfgs *o);

/* The first step along −g, where no curvature is known: that of a loss in its unit with a curvature
 * of 1, but of length 1 at most. */
double lbfgs_steepest_step(const struct lbfgs *o);

/* ---- lbfgs_evaluations.c: what is evaluated ---- */

/* How a step is computed, by the form in which replicas have the rows, and with common directions
 * or without. A member that a way has no use for is NULL. */
struct lbfgs_way {
    const struct phase *directions; /* whose directions a run follows where nothing else is due */
    const struct phase *trials;     /* whose evaluations are those of trial points */
    const struct asked *asked;      /* what is evaluated, by stage */
    const struct span_products *products; /* how common directions have theirs with the rows */
    /* What finds the losses of a trial by its margins. */
    enum optimizer_want (*losses)(struct lbfgs *o, struct bytes *program);
    enum held_by held;                      /* where the holdout decides the end */
    enum common_stage numbers[OWN_NUMBERS]; /* of rows, that shards need where rows have them */
};

/* Fills in what a plan says of evaluations. */
void lbfgs_plan_evaluations(struct lbfgs_plan *plan, const struct optimizer_settings *settings,
                            const struct optimizer_data *data);

/* Asks for the evaluation of a stage, which is then under way. */
enum optimizer_want lbfgs_evaluate_stage(struct lbfgs *o, enum common_stage stage);

/* The parts of the evaluation of the stage under way, and what belongs to its request; that of
 * second derivatives, over the rows that are trained on. */
void lbfgs_request(const struct lbfgs *o, struct optimizer_request *request);
void lbfgs_request_hessian(const struct lbfgs *o, enum kind_hessian hessian,
                           struct optimizer_request *request);

/* What is reported of the stage under way; NULL: that depends on what is found. */
const char *lbfgs_outcome(const struct lbfgs *o);

/* ---- lbfgs_gap.c: how far F is above its minimum ---- */

/* Of a trial, which is a step from x or a point by itself: how many scalars tell the gap; yields
 * them, by the register of the gradient that steps follow; and takes them into `gap` and
 * `steepness` of what else was measured. */
uint32_t gap_scalars(const struct lbfgs *o, bool step);
void gap_add(const struct lbfgs *o, uint8_t gradient, bool step, struct bytes *program);
void gap_take(const struct lbfgs *o, const double *scalars, bool step, struct measured *measured);

/* Whether P tells the gap, and is of where F was so much larger than this loss that it no longer
 * does. */
bool gap_is_outdated(const struct lbfgs *o, double loss);

/* Keeps what an accepted point says of the gap, for the estimates of the next ones. */
void lbfgs_note_gap(struct lbfgs *o, const struct measured *measured);

/* What F at a trial is above the minimum, by what was measured. */
double lbfgs_gap_estimate(const struct lbfgs *o, const struct measured *measured);

/* The run ends at x, as no step leads to a lower loss. */
void lbfgs_take_last_gap(struct lbfgs *o);

/* ---- lbfgs_state.c ---- */

/* x, with the figures that it was accepted with. */
struct optimizer_point lbfgs_point(const struct lbfgs *o);

/* Keeps F at an accepted point, for what the loss tolerance compares it with. */
void lbfgs_note_loss(struct lbfgs *o);

/* Why the run ends at x: by a tolerance or a limit; REASON_NONE: it goes on. */
enum reason lbfgs_reason_to_end(const struct lbfgs *o);

/* Whether x is within a tolerance, and P of where F was so much larger that it says nothing of the
 * gap: it is made anew before the run ends. */
bool lbfgs_ends_outdated(const struct lbfgs *o);

/* Whether the run would do otherwise if it went on from x: second derivatives of the step under way
 * have been counted, a step was given up, or P was made anew at x so that it would end there. So it
 * is ended from outside where its next step is made. */
bool lbfgs_has_tried(const struct lbfgs *o);

/* Those of the row in optimizer.c: see struct optimizer_row. */
void lbfgs_checkpoint(const void *row, struct optimizer_checkpoint *checkpoint);
void lbfgs_serialize(struct codec *codec, void *row);
void lbfgs_serialize_point(struct codec *codec, struct optimizer_point *point, uint32_t tensors);

/* ---- lbfgs_rows.c: vectors of rows ---- */

/* Gives the shards what they lack of the rows, and goes on: from x, or to the starting point. */
enum optimizer_want rows_begin(struct lbfgs *o, struct bytes *program);

/* Takes what was evaluated into a vector of rows. */
void rows_add_take(struct bytes *program, enum row_vector vector, uint16_t slot);

/* Where shards find the loss on the holdout: asks for it beside that of the other rows, and takes
 * it; answers how many scalars it has, or 0. */
void rows_add_held(const struct lbfgs *o, struct bytes *program);
uint32_t rows_take_held(struct lbfgs *o, const double *scalars);

/* ---- lbfgs_products.c: trials in tiles ---- */

/* Finds the losses of a trial by its margins: on the shards, or by an evaluation of a network. */
enum optimizer_want products_losses(struct lbfgs *o, struct bytes *program);
enum optimizer_want products_derivatives(struct lbfgs *o, struct bytes *program);

/* ---- lbfgs_span.c: steps in the span of common directions ---- */

/* How products with the rows are found: whole rows, or tiles. */
extern const struct span_products span_of_rows, span_in_tiles;

/* ---- lbfgs_refresh.c: the preconditioner ---- */

/* A refresh of P at x, and a step from there. */
enum optimizer_want lbfgs_refresh(struct lbfgs *o, struct bytes *program);

/* Keeps the totals of an evaluation of second derivatives in o->found, and reports it. If one was
 * not a number, the score is none and there are no sums. */
void lbfgs_take_curvature(struct lbfgs *o, const struct evaluation_found *found,
                          struct optimizer_request *request);

/* ---- lbfgs_summary.c: the errors of estimates, and Newton's steps before ---- */

/* P of all rows is there, or there is none. */
enum optimizer_want summary_refreshed(struct lbfgs *o, struct bytes *program);

#endif
