/* When the curvature is taken, on how many rows, and whether it is in force.
 *
 * The preconditioner P = (Hessian of the loss + l2)⁻¹ is the initial inverse Hessian of L-BFGS
 * (lbfgs.h). The Hessian is a sample's, taken at an accepted point by a refresh. When to refresh
 * follows from the data's shape and from losses at accepted points, never from time, so that it is
 * the same however the run went:
 *
 *   the first refresh   at the starting point, on 20 rows a parameter, or as many as cost little;
 *                       of a full block four times as many where that point is a model's
 *   then                after two steps, once the passes over the data since the last refresh
 *                       exceed its cost (twice that from the second one on; of a leading block
 *                       twice, four times, eight times and so on; all of it doubled by every
 *                       refresh that was followed by a step shorter than 0.1), if the loss has
 *                       changed by more than 5 %, or by what the settings say
 *   a larger sample     of a full block, four times as many rows, once those passes exceed four
 *                       times the cost
 *
 * A cost is what a refresh costs, in passes for a gradient, by the number of terms that it added.
 * If the second derivatives are constant the first refresh takes all rows and is the only one. So
 * it is where outputs share a leading block, but of a sample.
 *
 * Rows are sampled by leverage: row i with chance min(1, floor + rate·h_i·leverage_i), where h_i is
 * the trace of its second derivatives by the margins; objective/objective.h has the formulae. A
 * sampled row weighs 1/chance.
 *
 * The struct is plain data, and changes only where an accepted point, a refresh or a failure is
 * reported: it is stored and resumed with the optimizer. */
#ifndef DML_OPTIMIZER_PRECONDITIONER_H
#define DML_OPTIMIZER_PRECONDITIONER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/codec.h"
#include "wire/evaluation.h"

struct preconditioner_settings {
    enum precondition form; /* PRECONDITION_NONE: none, and the rest is not used */
    uint64_t rows;          /* trained on */
    uint64_t sample;        /* rows that the first refresh aims at */
    uint64_t columns;       /* features, and the intercept */
    uint32_t block_columns; /* of the block (base/layout.h): all features, unless it is LEADING; of
                               LISTED the most weights in it */
    bool shared;    /* LEADING: outputs with weights of their own have one matrix, which does not
                       depend on the point: the first refresh is the only one */
    double ridge;   /* LEADING: l2 relative to the second derivative that columns are scaled by */
    double parts;   /* the trace of a row's second derivatives is that of so many margins */
    double density; /* LISTED: the share of columns that a row has a value of, on average */
    bool near;      /* the run starts from a model, near the minimum */
    bool constant;  /* the second derivatives do not depend on the point */
    double change;  /* the share of F by which it must have changed since the last refresh; 0:
                       5 % */
    double trace_first; /* the trace of a row's second derivatives at the starting point, about */
    double cost_all;    /* the cost of what a refresh does for every row, and of the factor, */
    double cost_term;   /* and that of a term that is added to the Hessian */
};

/* What an evaluation of the curvature found. A score that is not a number: there are no sums. */
struct curvature_found {
    double rows;  /* that were sampled */
    double terms; /* that these added to the Hessian */
    double score; /* Σ h_i·leverage_i over all rows */
    double trace; /* Σ w_i·h_i over all rows */
};

struct preconditioner {
    bool in_force;
    uint64_t refreshes;   /* that succeeded; also the serial number of the factor in force */
    uint64_t evaluations; /* of the curvature, those that gave no factor included */
    uint64_t sample;      /* rows that the last refresh aimed at */
    struct curvature_found found; /* what it found; zeros before it */
    double loss;                  /* F at its point */
    uint64_t steps;               /* since then */
    uint64_t passes;              /* since then */
    double cost_total;            /* of all refreshes */
    uint32_t failures;            /* of P: no descent, or no factor */
    uint32_t overshoots;          /* refreshes whose first step was too long */
};

/* The run starts from a model, near the minimum: the loss changes little from there on, so that the
 * first refresh may be the only one, and its factor is to be good. */
void preconditioner_starts_near(struct preconditioner_settings *settings);

/* Whether a refresh is due at an accepted point with loss F. */
bool preconditioner_due(const struct preconditioner *p, const struct preconditioner_settings *s,
                        double loss);

/* The refresh that is due: rows aimed at, and how they are sampled. */
uint64_t preconditioner_sample(const struct preconditioner *p,
                               const struct preconditioner_settings *s);
struct row_sampling preconditioner_sampling(const struct preconditioner *p,
                                            const struct preconditioner_settings *s);

/* The sampling for any number of rows aimed at, at most all. */
struct row_sampling preconditioner_sampling_of(const struct preconditioner *p,
                                               const struct preconditioner_settings *s,
                                               uint64_t sample);

/* The cost of the last refresh. */
double preconditioner_cost(const struct preconditioner *p, const struct preconditioner_settings *s);

/* A step of this length along the newest direction was accepted after so many passes. */
void preconditioner_stepped(struct preconditioner *p, double length, uint64_t passes);

/* A refresh at a point with loss F found this, and its factor is in force. */
void preconditioner_refreshed(struct preconditioner *p, const struct preconditioner_settings *s,
                              double loss, const struct curvature_found *found);

/* Second derivatives at a point with loss F were found, for a single step: there is no factor. */
void preconditioner_counted(struct preconditioner *p, const struct preconditioner_settings *s,
                            double loss, const struct curvature_found *found);

/* A refresh at a point with loss F gave no factor. */
void preconditioner_unfactored(struct preconditioner *p, const struct preconditioner_settings *s,
                               double loss);

/* P is of no use where the run is: it is not in force until the next refresh. After the third
 * failure there is none. */
void preconditioner_failed(struct preconditioner *p);

void serialize_curvature_found(struct codec *codec, struct curvature_found *found);
void preconditioner_serialize(struct codec *codec, struct preconditioner *p);

#endif
