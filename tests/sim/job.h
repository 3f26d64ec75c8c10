/* The jobs of the simulated world: tiny data sets and settings, all made from a seed, and the
 * model that each has without a fault. */
#ifndef DML_TESTS_SIM_JOB_H
#define DML_TESTS_SIM_JOB_H

#include "base/layout.h"
#include "base/rows.h"
#include "optimizer/downpour.h"
#include "optimizer/lbfgs.h"
#include "data/set/set.h"
#include "numeric/vector.h"
#include "objective/shape.h"

#define JOB_STEPS_MAX 12
#define JOB_EPOCHS_MAX 3
#define JOB_MINIBATCHES_MAX 40 /* of an epoch */

/* One accepted step, as it was recorded. */
struct job_step {
    bool seen;
    double loss, gradient_max, holdout_loss, holdout_accuracy;
};

/* One epoch of Downpour, as it was recorded. */
struct job_epoch {
    bool seen;
    uint64_t minibatches, rows;
    double loss, holdout_loss, holdout_accuracy;
};

/* What a run comes to: to the bit the same however it went. */
struct outcome {
    enum reason reason;
    uint64_t steps;
    uint64_t evaluations; /* made, as many as it took */
    struct optimizer_point answer;
    uint64_t minibatches; /* of Downpour, done */
    struct job_step step[JOB_STEPS_MAX + 1];
    struct job_epoch epoch[JOB_EPOCHS_MAX + 1]; /* by number, from 1 */
    double *model;                              /* owned; parameters */
    double *errors; /* of its estimates, robust ones, and those after l2, `parameters` each, where
                       there are; owned */
    int64_t ended_ns;
};

struct job {
    uint64_t seed;
    struct objective_shape shape;
    bool rough; /* columns of very different scales */
    struct downpour_settings downpour;
    struct optimizer_settings optimizer;
    enum history_type history_type;
    struct column_scaling *columns; /* the scaling that it is trained in, or NULL; owned */
    struct column_limit *limits;    /* of columns, or NULL; owned */
    double *squares; /* of columns that are not scaled, if the gap is estimated; owned, or NULL */
    struct set_info data;
    uint64_t parameters;
    struct rows *chunks;  /* [data.chunks] */
    struct rows *tiles;   /* [set_tiles(&data)], or NULL: the data is not in tiles */
    uint32_t to_count;    /* of them, from the first: what an evaluation covers */
    uint64_t to_train_on; /* rows */
    double *origin;       /* [parameters] where it starts, or NULL: as the layout says; owned */
    double *pairs;        /* curvature pairs to start with: s and y, [parameters] each; owned */
    uint32_t pair_count;
    uint64_t minibatch[JOB_EPOCHS_MAX * JOB_MINIBATCHES_MAX]; /* chunks of each, bit sets */
    uint32_t minibatch_count;
    struct outcome expected;

    /* what `chunks` and `data` point to; owned */
    uint32_t *start, *feature;
    double *value, *label, *weight, *offset;
    int16_t *exponent;
    int16_t *own_exponents; /* of a network's parameters, or NULL */
    int16_t *size;
    uint32_t *tile_start, *tile_feature;
    double *tile_value;
    double rates[JOB_EPOCHS_MAX];
    uint32_t multiples[JOB_EPOCHS_MAX];
};

void job_init(struct job *job, uint64_t seed);
void job_release(struct job *job);

/* Whether an evaluation may be of these chunks, or tiles, a bit set; and whether they are a
 * minibatch. */
bool job_evaluates(const struct job *job, uint64_t chunks);
bool job_has_minibatch(const struct job *job, uint64_t chunks);

#endif
