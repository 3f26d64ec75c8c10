/* What the sources of L-BFGS share. */
#ifndef DML_OPTIMIZER_LBFGS_INTERNAL_H
#define DML_OPTIMIZER_LBFGS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "optimizer/lbfgs_types.h"
#include "optimizer/lbfgs_programs.h"

/* ---- lbfgs.c ---- */

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

#endif
