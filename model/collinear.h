/* The optimum of a linear model some of whose columns nearly follow from others, such as powers of
 * a year. What such a column has of its own is lost in sums of squares: of the fifth power it is
 * 3e-17 of them, and no sum of doubles holds that. Here the factor R of the second derivatives
 * (numeric/orthogonal.h) is made of the rows themselves, in twice the precision, and so are margins
 * and gradients. Weights that are rounded to doubles at the end still have margins that are right
 * to some 1e-9.
 *
 * For linear models whose loss is convex and has second derivatives. One thread reads all
 * training rows of a set in their order, so the bits follow from the set and the parameters. */
#ifndef DML_MODEL_COLLINEAR_H
#define DML_MODEL_COLLINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "data/set/set.h"
#include "model/model.h"

/* Parameters, at most; values of rows, and rows times parameters times parameters, that are no
 * matter to read some ten times. */
#define COLLINEAR_PARAMETERS_MAX 64
#define COLLINEAR_VALUES_MAX 2e7
#define COLLINEAR_WORK_MAX 2e8

enum collinear_kind {
    COLLINEAR_NOT,
    COLLINEAR_EXACTLY, /* it follows from those before it; its weight stays as it is */
    COLLINEAR_ROUNDED, /* so it does but for the rounding of its values; its weight becomes 0 */
};

struct collinear; /* opaque */

/* Whether such a model can be fitted here. It is linear, and no plug-in computes it. */
bool collinear_can(const struct set_info *info, const struct model_layout *layout);

/* Whether any column may nearly follow from those before it: if it does in all rows, it does in a
 * few that are spread evenly. `ridge` as below, `second` about what a row's second derivative is.
 * ERROR_DATA. */
int collinear_look(struct set *set, const struct model_layout *layout, const double *ridge,
                   double second, bool *near);

/* `parameters` by the run's elements, in the units of the set, as summary_fit() has them; `ridge`
 * is Λ of model/summary.h, or NULL. Layout, set and ridge must outlive it. */
struct collinear *collinear_new(struct set *set, const struct model_layout *layout,
                                const double *parameters, const double *ridge);
void collinear_free(struct collinear *collinear); /* harmless on NULL */

struct collinear_fit {
    bool near;  /* a column nearly follows from others in all rows; else nothing has changed */
    bool late;  /* the time was over before the optimum was found */
    bool found; /* so the optimum was looked for, and it was found: */
    double *parameters; /* of the optimum, the caller's: written if `found` */
    double loss;        /* there, as doubles predict, as the run's F: with the penalty */
    double gap;         /* how far it may be above the minimum; unless `near`, about how far the
                           parameters are that were given */
    double gradient_max;
    uint64_t weakest; /* the column that has least of its own of those that are kept */
    double own;       /* as a share of its deviation */
};

/* Newton's steps to the optimum. A mean loss below `least` counts as that. The gradient is by
 * weights in units of 1/scale of their columns; NULL: of 1. No step is begun after `until_ns` by
 * clock_monotonic_ns(). ERROR_DATA. */
int collinear_find(struct collinear *collinear, double least, const double *scale, int64_t until_ns,
                   struct collinear_fit *fit);

/* In place of that: the parameters stay, and R is made at them. ERROR_DATA. */
int collinear_factor(struct collinear *collinear);

/* What element `element` of the run is. */
enum collinear_kind collinear_kind_of(const struct collinear *collinear, uint64_t element);

/* After an optimum was found: restated parameters, whose margins are those of the optimum, and
 * which are 0 where columns follow from others. */
void collinear_restate(const struct collinear *collinear, double *parameters);

/* After an optimum was found, or collinear_factor(): solution = (H + Λ)⁻¹b over what does not
 * follow from others, by the run's elements, *energy = bᵀ(H + Λ)⁻¹b and *sampling = bᵀ(H + Λ)⁻¹H(H
 * + Λ)⁻¹b, which doubles lose where columns follow from others and Λ is small; H as model/hessian.h
 * has it. */
void collinear_solve(const struct collinear *collinear, const double *b, double *solution,
                     double *energy, double *sampling);

#endif
