/* Downpour: minibatch Adagrad on the shards, before L-BFGS or in its place.
 *
 *     A_j += g_j²     x_j −= rate·g_j/(√A_j + 1e-10)
 *
 * g is the gradient at x of the mean loss over a minibatch, with L2; with l1 the step is followed
 * by its proximal step. (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning
 * and stochastic optimization", JMLR 2011; Dean et al., "Large scale distributed deep networks",
 * NIPS 2012.) It is synchronous: one minibatch at a time, which all replicas share, so the model is
 * the same whatever the number of workers.
 *
 * The rows of the set are shuffled, and its chunks have the same number of rows (data/set.h). With
 * C chunks, k of them in a minibatch and the key of an epoch, minibatch j begins at position
 * k·permutation_at(j, ⌈C/k⌉, key) and ends before C; position p is chunk (p + offset) mod C, with
 * offset = permutation_key(key, 1) mod C. So it is a run of chunks, or two, and each row is in one
 * minibatch of the epoch.
 *
 * The struct is plain data: together with the registers x and a (and best) it is all that a run
 * needs to go on. */
#ifndef DML_OPTIMIZER_DOWNPOUR_H
#define DML_OPTIMIZER_DOWNPOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "optimizer/lbfgs.h"
#include "wire/evaluation.h"

struct downpour_settings {
    uint32_t epochs; /* 0: no Downpour */
    uint32_t batch;  /* rows of a minibatch, a multiple of those of a chunk */
    uint64_t seed;   /* of the order of minibatches */
    /* By epoch; the last of a list is for all later ones. Outlive the coordinator. */
    const double *rates;
    uint32_t rate_count;
    const uint32_t *multiples; /* of `batch` */
    uint32_t multiple_count;
    bool alone;    /* no L-BFGS follows */
    bool scales;   /* its sums are H0 of L-BFGS */
    bool measures; /* the loss on the holdout after each epoch; the set has one */
};

/* What there is to learn from. */
struct downpour_data {
    uint32_t chunks;     /* of training */
    uint32_t block_rows; /* of each of them, but the last, which may have fewer */
    uint64_t rows;       /* of all */
    double weight_sum;
};

enum downpour_stage {
    DOWNPOUR_MINIBATCH, /* the minibatch is evaluated */
    DOWNPOUR_HOLDOUT,   /* the epoch is through, and the holdout is evaluated */
    DOWNPOUR_ENDED,     /* all epochs are through */
    DOWNPOUR_OVER,      /* L-BFGS runs, or there was no Downpour */
    DOWNPOUR_STAGES,
};

struct downpour {
    enum downpour_stage stage;
    bool closing;        /* the optimizer runs, but only to measure where Downpour stopped */
    uint64_t epoch;      /* that are through */
    uint64_t minibatch;  /* steps made of the epoch under way */
    uint64_t done;       /* steps in all */
    uint64_t redone;     /* evaluations made again, because a bound was exceeded */
    uint64_t rows;       /* of the minibatches of this epoch, or of the last one if none is done */
    double loss_sum;     /* Σ loss over them, each before its step */
    struct held holdout; /* after the last epoch that is through */
    uint64_t best_epoch; /* with patience: x after it is in register best; 0: there is none */
    struct held best;
    bool at_best; /* x and best have changed places, for the end */
};

void downpour_init(struct downpour *downpour, const struct downpour_settings *settings);

/* Whether x may still be moved by Downpour: in any stage but the last. */
bool downpour_runs(const struct downpour *downpour);

/* ---- the order ---- */

/* In the epoch after `epoch` ones: how many minibatches, and the rate of its steps. */
uint32_t downpour_minibatches(const struct downpour_settings *settings,
                              const struct downpour_data *data, uint64_t epoch);
double downpour_rate(const struct downpour_settings *settings, uint64_t epoch);

/* The minibatch that comes next, as parts of an evaluation of the gradient. */
struct evaluation_parts downpour_parts(const struct downpour *downpour,
                                       const struct downpour_settings *settings,
                                       const struct downpour_data *data);

/* Rows of these chunks. */
uint64_t downpour_rows(const struct evaluation_parts *parts, const struct downpour_data *data);

/* ---- steps ---- */

/* The mean loss over the minibatches of the epoch under way; NaN before the first. */
double downpour_loss(const struct downpour *downpour, const struct downpour_data *data);

/* The step of a minibatch with this Σ loss: appended to the program, with t = x at its end. */
void downpour_step(struct downpour *downpour, const struct downpour_settings *settings,
                   const struct downpour_data *data, const struct optimizer_settings *penalties,
                   double loss_sum, struct bytes *program);

/* The holdout was evaluated: x becomes the best point if it is that, with patience (epochs without
 * a better one before the end; 0: none). */
void downpour_measured(struct downpour *downpour, const struct downpour_settings *settings,
                       uint32_t patience, struct held held, struct bytes *program);

/* Whether it has ended before its last epoch, as the holdout got no better. */
bool downpour_stopped_early(const struct downpour *downpour,
                            const struct downpour_settings *settings);

/* Its end, also one in the middle of an epoch: x becomes the best point, if that is another. */
void downpour_finish(struct downpour *downpour, struct bytes *program);

/* Takes up one that was stored, also one that was closing, or makes the very beginning: t = x. The
 * settings may allow more epochs than before, or fewer. */
void downpour_begin(struct downpour *downpour, const struct downpour_settings *settings,
                    uint32_t patience, struct bytes *program);

#endif
