/* The working set of a run with l1: the parameters that a step moves.
 *
 * Most weights are 0 at the minimum, and stay 0 from early on. A step moves the others and those
 * that the gradient would move most, by the minimum of the quadratic with l1 over them alone; the
 * shards have its second derivatives from a sample of the rows (SOLVE in wire/program.h). Each step
 * chooses its set and samples its rows anew, so nothing has to be kept between steps.
 *
 * The struct is plain data, stored with the optimizer. */
#ifndef DML_OPTIMIZER_WORKING_H
#define DML_OPTIMIZER_WORKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/limits.h"
#include "optimizer/preconditioner.h"
#include "wire/listed.h"

struct working {
    enum working_stage {
        WORKING_NONE,      /* no step over a working set is under way */
        WORKING_LISTING,   /* shards list parameters */
        WORKING_CURVATURE, /* the evaluation of second derivatives */
        WORKING_SOLVING,   /* a shard finds the step */
        WORKING_STEP,      /* trials along it */
    } stage;
    bool left;         /* steps like these are too dear: none any more */
    uint32_t failures; /* steps that led nowhere */
    uint32_t growth;   /* how often the sample was doubled: steps led nowhere */
    double density;    /* terms of a sampled row at the last step, as a share of count²; 0: not
                          known yet */
    double damping;    /* of steps, in units of the mean squares of columns */
    double falls[2];   /* of F by the quadratics of the last step and of the one before it; infinite
                          where that tells nothing of what is left */
    uint32_t count;    /* of the set, */
    struct listed items[WORKING_SET_MAX]; /* by rising numbers */
};

/* The beginning, with `w` zeroed. */
void working_init(struct working *w, const struct preconditioner_settings *settings);

/* Whether the next step is over a working set: there are few enough parameters that are not 0, and
 * their second derivatives alone are not too dear. */
bool working_due(const struct working *w, const struct preconditioner *p,
                 const struct preconditioner_settings *settings, uint64_t nonzero);

/* Whether those of the set that was chosen are: with several outputs they may cost as much as the
 * passes since the last ones, and so many at most. */
bool working_is_too_costly(const struct working *w, const struct preconditioner *p,
                           const struct preconditioner_settings *settings);

/* How many parameters may come to those that are not 0: half as many, three quarters in the first
 * steps, which are damped, a quarter in a run that starts from a model; as many with several
 * outputs. */
uint32_t working_limit(const struct working *w, const struct preconditioner_settings *settings,
                       uint64_t nonzero);

/* Chooses the set from what the shards have listed, in any order: what nothing holds where it is,
 * and the `limit` others with the largest excess of the gradient. */
void working_choose(struct working *w, const struct listed *listed, uint32_t count, uint32_t limit);

/* The weights of the set, by rising numbers; how many there are. */
uint32_t working_weights(const struct working *w, uint64_t *weights);

/* How rows are sampled for its second derivatives. */
struct row_sampling working_sampling(const struct working *w, const struct preconditioner *p,
                                     const struct preconditioner_settings *settings);

/* What is added to second derivatives, as a share of columns' mean squares. Where all rows that
 * have a column are fitted it hardly curves, and an undamped step would be far too long. */
double working_damping(const struct working *w);

/* What F changes by along the whole step, by its slope and the change of the penalty: below 0 for a
 * step that helps. NaN if the step is not finite. F is convex: it falls along no other. */
double working_promise(const struct working *w, const double *step, double l1);

/* Appends t… = 0 but for the step: SCATTER into register `a`. */
void working_scatter(const struct working *w, const double *step, uint8_t a, struct bytes *program);

/* A step of this length was accepted, of which the whole one had this promise, and F fell by
 * `fall`; or it led nowhere. */
void working_stepped(struct working *w, double length, double promise, double fall);
void working_failed(struct working *w);

/* A step of another kind was accepted. */
void working_passed_over(struct working *w);

/* What F has still to fall by, if the next step gains on the last one as that did on the one before
 * it. NaN unless both were whole steps along which F was about as their quadratics say, with so
 * little damping that no direction was hidden by it. */
double working_rest(const struct working *w);

/* The second derivatives of the set were found, and cost so many passes. */
void working_paid(struct working *w, const struct curvature_found *found, double passes);

void working_serialize(struct codec *codec, struct working *w);

#endif
